//! The standard library of jq: definitions in jq that every expression may call.

use std::sync::OnceLock;

use jaq_core::load;
use jaq_core::load::parse::{Def, Term};

use super::instrument;
use super::natives::toll;

/// Definitions of jq 1.7 that jaq lacks or defines differently.
const OURS: &str = include_str!("library.jq");

/// Definitions of jaq that access the environment, or that our native functions replace.
const LEFT_OUT: [(&str, usize); 7] = [
    ("halt", 0),
    ("halt_error", 0),
    ("halt_error", 1),
    ("debug", 0),
    ("debug", 1),
    ("stderr", 0),
    ("delpaths", 1),
];

/// All definitions, with tolls. Later ones hide earlier ones of the same name and arity.
pub(super) fn definitions() -> &'static [Def<&'static str>] {
    static DEFINITIONS: OnceLock<Vec<Def<&'static str>>> = OnceLock::new();
    DEFINITIONS.get_or_init(|| {
        let jaq = jaq_core::defs().chain(jaq_std::defs()).chain(jaq_json::defs());
        let jaq = jaq.filter(|def| !LEFT_OUT.contains(&(def.name, def.args.len()))).map(unfold_constants);
        let ours = load::parse(OURS, |parser| parser.defs()).unwrap_or_default();
        // The nesting of the library does not exceed the maximum.
        jaq.chain(ours).filter_map(|def| instrument::definition(def).ok()).collect()
    })
}

/// Replaces the definitions of `nan` and `infinite`, which divide by zero: this is an error here, as in jq.
fn unfold_constants(def: Def<&'static str>) -> Def<&'static str> {
    let name = match (def.name, def.args.as_slice()) {
        ("nan", []) => toll::NAN,
        ("infinite", []) => toll::INFINITE,
        _ => return def,
    };
    Def { body: Term::Call(name, Vec::new()), ..def }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_parses() {
        let ours = load::parse(OURS, |parser| parser.defs()).unwrap();
        assert!(ours.len() > 25);
        assert!(definitions().len() > ours.len() + 100, "{}", definitions().len());
    }
}
