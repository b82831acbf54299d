//! Commands that print contexts.

use std::io::IsTerminal as _;

use declarest_core::payload::Value;

use super::HookShell;
use crate::context::{Catalogue, Context, FaultyCredential, Setting, Stored, masked};
use crate::error::Failure;
use crate::invocation::Invocation;
use crate::output::OutputPolicy;

const TEMPLATE: &str = include_str!("template.yaml");

/// `context print-template`.
pub fn template(invocation: &Invocation) -> Result<(), Failure> {
    Ok(invocation.output(OutputPolicy::Text)?.show(&(), Some(TEMPLATE))?)
}

/// `context list`.
pub fn list(invocation: &Invocation) -> Result<(), Failure> {
    let output = invocation.output(OutputPolicy::Adaptive)?;
    let contexts = invocation.catalogue()?.catalogue.contexts;
    let names: Vec<_> = contexts.iter().map(|context| context.name.0.as_str()).collect();
    let values: Vec<_> = contexts.iter().map(|context| shown(context.stored())).collect();
    Ok(output.show(&values, Some(&names.join("\n")))?)
}

/// `context current`.
pub fn current(invocation: &Invocation) -> Result<(), Failure> {
    let output = invocation.output(OutputPolicy::Adaptive)?;
    let stored = invocation.catalogue()?;
    let context = select(&stored, invocation.settings.context.as_deref())?;
    let name = context.contexts.first().map(|context| context.name.0.clone()).unwrap_or_default();
    let value = context.contexts.first().map(Context::stored).unwrap_or_default();
    Ok(output.show(&shown(value), Some(&name))?)
}

/// `context show`.
pub fn show(name: Option<&str>, invocation: &Invocation) -> Result<(), Failure> {
    let output = invocation.output(OutputPolicy::Yaml)?;
    let name = invocation.context_name(name)?;
    let stored = invocation.catalogue()?;
    let catalogue = select(&stored, name.as_deref())?;
    for context in &catalogue.contexts {
        stored.check_fault(context)?;
    }
    Ok(output.show(&shown(catalogue.write().unwrap_or_default()), None)?)
}

/// `context resolve`.
pub fn resolve(name: Option<&str>, invocation: &Invocation) -> Result<(), Failure> {
    let output = invocation.output(OutputPolicy::Adaptive)?;
    let resolved = invocation.resolve(name)?;
    Ok(output.show(&shown(resolved.context.write().unwrap_or_default()), Some(&resolved.name))?)
}

/// Returns a catalogue with the context `wanted`, or the current one, and the credentials that it refers to.
pub fn select(stored: &Stored, wanted: Option<&str>) -> Result<Catalogue, Failure> {
    let Catalogue { current_context, default_editor, credentials, mut contexts, faulty_credentials, .. } =
        stored.catalogue.clone();
    let current = current_context.filter(|name| !name.trim().is_empty());
    let Some(name) = wanted.map(str::to_owned).or(current) else { return Err(stored.not_found(None).into()) };
    let context = contexts.swap_remove(stored.position(name.trim())?);
    let mut referred = Vec::new();
    references(&context.stored(), &mut referred);
    let is_referred =
        |faulty: &FaultyCredential| faulty.name.as_ref().is_some_and(|name| referred.contains(name));
    Ok(Catalogue {
        current_context: Some(context.name.0.clone()),
        default_editor,
        faulty_credentials: faulty_credentials.into_iter().filter(is_referred).collect(),
        credentials: credentials.into_iter().filter(|found| referred.contains(&found.name.0)).collect(),
        contexts: vec![context],
        nameless: Vec::new(),
    })
}

/// Collects the names of all credentials that a context refers to.
fn references(value: &Value, names: &mut Vec<String>) {
    let name = value.get("credentialsRef").and_then(|reference| reference.get("name")?.as_str());
    names.extend(name.map(str::to_owned));
    value.children().for_each(|child| references(child, names));
}

/// Masks the secrets of a value if standard output is a terminal. Programs receive the whole value.
fn shown(value: Value) -> Value {
    if std::io::stdout().is_terminal() { masked(value) } else { value }
}

/// `context session-hook`: prints the code that a shell evaluates when it starts.
pub fn session_hook(shell: HookShell, invocation: &Invocation) -> Result<(), Failure> {
    let script = match shell {
        HookShell::Bash => include_str!("hook.bash"),
        HookShell::Zsh => include_str!("hook.zsh"),
    };
    Ok(invocation.output(OutputPolicy::Text)?.show(&(), Some(script))?)
}

#[cfg(test)]
mod tests {
    use declarest_core::payload::PayloadType;

    use super::*;
    use crate::context::decode_catalogue;

    #[test]
    fn the_template_is_a_valid_catalogue() {
        let catalogue = decode_catalogue("template", PayloadType::Yaml, TEMPLATE.as_bytes()).unwrap();
        assert_eq!(catalogue.contexts.len(), 2);
    }
}
