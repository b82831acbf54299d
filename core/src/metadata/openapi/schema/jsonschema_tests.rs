//! Tests of `jsonschema`: the reasons why it does not replace this module. If one of them fails, reconsider that; see
//! `docs/decisions.md`.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use jsonschema::Keyword;
use serde_json::{Value, json};

/// A keyword that rejects every value and counts how often it is applied.
struct Counted(Arc<AtomicUsize>);

impl<'i> Keyword<'i> for Counted {
    fn validate(&self, _: &'i Value) -> Result<(), jsonschema::ValidationError<'i>> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Err(jsonschema::ValidationError::custom("rejected"))
    }

    fn is_valid(&self, _: &'i Value) -> bool {
        self.0.fetch_add(1, Ordering::Relaxed);
        false
    }
}

/// Returns how often the last of `schemas` is applied to a value, if each one refers twice to the next one.
fn applications(schemas: usize) -> usize {
    let count = Arc::new(AtomicUsize::new(0));
    let shared = Arc::clone(&count);
    let next = |at: usize| json!({"$ref": format!("#/{}", at + 1)});
    let alternatives = (1..schemas).map(|at| (at.to_string(), json!({"anyOf": [next(at), next(at)]})));
    let last = (schemas.to_string(), json!({"counted": true}));
    let root = ("$ref".to_owned(), json!("#/1"));
    let schema = alternatives.chain([last, root]).collect::<serde_json::Map<_, _>>().into();
    let options = jsonschema::options()
        .with_keyword("counted", move |_, _, _| Ok(Box::new(Counted(Arc::clone(&shared)))));
    assert!(!options.build(&schema).unwrap().is_valid(&json!(1)));
    count.load(Ordering::Relaxed)
}

#[test]
fn jsonschema_has_no_limit_of_work() {
    let (few, many) = (applications(5), applications(13));
    assert!(many > few << 6, "{few} applications with 5 schemas, {many} with 13");
}

#[test]
fn jsonschema_accepts_everything_for_a_circular_schema() {
    let schema = json!({"allOf": [{"anyOf": [{"$ref": "#"}]}]});
    assert!(jsonschema::is_valid(&schema, &json!(1)));
}

#[test]
fn jsonschema_rejects_a_schema_whose_unused_part_has_no_target() {
    let schema = json!({"properties": {"a": {"$ref": "#/nowhere"}}});
    let error = jsonschema::validator_for(&schema).unwrap_err().to_string();
    assert_eq!(error, "Pointer '/nowhere' does not exist");
}
