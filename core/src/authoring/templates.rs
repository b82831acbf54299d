//! Placeholders and references in payloads of the server: those of the declaration are kept, and others are rejected.

use super::{AuthoringError, Draft, stored};
use crate::language::reference::is_reference;
use crate::metadata::document::ExternalizedAttribute;
use crate::metadata::{Metadata, includes};
use crate::path::LogicalPath;
use crate::payload::Value;
use crate::payload::pointer::Pointer;
use crate::repository::Store;
use crate::secrets::{placeholder_places, template_places};

/// Returns the payload that the server has `shown` with the secret placeholders and references of `declared` wherever it has
/// a value. Use it to store a server's answer without the secrets that were sent, and with the references that determine
/// its values.
///
/// # Errors
/// An entry of an array with a placeholder or a reference that is not found in the array that the server has shown.
pub fn with_templates_of(
    path: &LogicalPath,
    declared: &Value,
    mut shown: Value,
) -> Result<Value, AuthoringError> {
    keep_templates(declared, &mut shown, &Pointer::default())
        .map_err(|at| AuthoringError::Entries { path: path.clone(), at })?;
    Ok(shown)
}

/// Replaces the values of `shown` for which `declared` has templates. Fails with the place of an array whose entries cannot be
/// matched.
fn keep_templates(declared: &Value, shown: &mut Value, at: &Pointer) -> Result<(), Pointer> {
    if shown.is_null() || !has_template(declared) {
        return Ok(());
    }
    match (declared, shown) {
        (Value::Object(members), Value::Object(shown)) => {
            members.iter().try_for_each(|(name, member)| match shown.get_mut(name) {
                Some(value) => keep_templates(member, value, &at.child(name)),
                None => Ok(()),
            })
        }
        (Value::Array(entries), Value::Array(shown)) => keep_in_entries(entries, shown, at),
        (Value::Object(_) | Value::Array(_), _) if placeholder_places(declared).is_empty() => Ok(()),
        // Another type may show the secrets.
        (Value::Object(_) | Value::Array(_), _) => Err(at.clone()),
        (template, shown) => {
            *shown = template.clone();
            Ok(())
        }
    }
}

/// Matches entries by what they have beside the templates: the server may show them in another order, and others with them.
fn keep_in_entries(declared: &[Value], shown: &mut [Value], at: &Pointer) -> Result<(), Pointer> {
    let is_reference = |entry: &Value| is_template(entry) && placeholder_places(entry).is_empty();
    // References that are entries themselves have nothing else to be found by, and hide nothing.
    if declared.len() == shown.len()
        && declared.iter().all(|entry| !has_template(entry) || is_reference(entry))
    {
        for (entry, shown) in declared.iter().zip(shown).filter(|(entry, _)| has_template(entry)) {
            *shown = entry.clone();
        }
        return Ok(());
    }
    let mut left: Vec<usize> = (0..shown.len()).collect();
    for entry in declared.iter().filter(|entry| !has_template(entry)) {
        if let Some(found) = left.iter().position(|&index| shown[index] == *entry) {
            left.remove(found);
        }
    }
    let mut has_unfound = false;
    for entry in declared.iter().filter(|entry| has_template(entry)) {
        let mut fitting = (0..left.len()).filter(|&number| fits(entry, &shown[left[number]]));
        match (fitting.next(), fitting.next()) {
            (Some(number), None) => {
                let index = left.remove(number);
                keep_templates(entry, &mut shown[index], &at.child(&index.to_string()))?;
            }
            (None, _) => has_unfound = true,
            _ => return Err(at.clone()),
        }
    }
    // An entry that is left may be one that was not found, with other attributes.
    if has_unfound && !left.is_empty() { Err(at.clone()) } else { Ok(()) }
}

/// Whether `shown` may be the `declared` value with the values of its templates.
fn fits(declared: &Value, shown: &Value) -> bool {
    if is_template(declared) {
        return true;
    }
    match (declared.as_object(), declared.as_array()) {
        (Some(members), _) => members.iter().all(|(name, member)| {
            let may_be_absent = || member.is_null() || is_template(member);
            shown.get(name).map_or_else(may_be_absent, |value| fits(member, value))
        }),
        (_, Some(_)) if has_template(declared) => shown.as_array().is_some(),
        _ => declared == shown,
    }
}

/// Whether a text in `value` has a placeholder of a secret, or is a reference.
pub fn has_template(value: &Value) -> bool {
    !template_places(value, is_reference).is_empty()
}

fn is_template(value: &Value) -> bool {
    value.as_str().is_some() && has_template(value)
}

/// Like [`check_texts`] with the file of the resource. Also rejects texts that would include the file of an externalized
/// attribute. Texts within a resource that is `whole` a secret are not in a file, and the secret store returns them unchanged.
/// Blocks.
pub fn check_saved_texts(
    store: &Store,
    metadata: &Metadata,
    draft: &Draft,
    whole: bool,
) -> Result<(), AuthoringError> {
    let rules = metadata.rules(&draft.path)?;
    let resolved = rules.resolved();
    let includes = |attribute: &&ExternalizedAttribute| {
        !includes::referenced(&draft.payload, std::slice::from_ref(attribute)).is_empty()
    };
    if let Some(attribute) = resolved.externalized_attributes.iter().find(includes) {
        return Err(AuthoringError::Template { path: draft.path.clone(), at: attribute.path.clone() });
    }
    let places = template_places(&draft.payload, is_reference);
    if places.is_empty() || (whole || resolved.secret) && places.iter().all(|at| !at.tokens().is_empty()) {
        return Ok(());
    }
    let declared = stored(store, &draft.path)?.unwrap_or_default();
    reject_others(&draft.path, &draft.payload, &declared, places)
}

/// Fails if a text that the server has `shown` would be a placeholder or a reference in the file of the resource, unless
/// `declared` has it there: the next run would replace the text by a secret or by a value of another resource, and users of
/// the server may be able to write it.
pub fn check_texts(path: &LogicalPath, shown: &Value, declared: &Value) -> Result<(), AuthoringError> {
    reject_others(path, shown, declared, template_places(shown, is_reference))
}

/// Fails if `declared` has another value than `shown` at one of these `places`.
fn reject_others(
    path: &LogicalPath,
    shown: &Value,
    declared: &Value,
    places: Vec<Pointer>,
) -> Result<(), AuthoringError> {
    match places.into_iter().find(|at| at.get(declared) != at.get(shown)) {
        Some(at) => Err(AuthoringError::Template { path: path.clone(), at }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::payload::{PayloadType, decode};

    #[rstest]
    #[case(
        "{a: '{{secret .}}', b: ['{{secret k}}', x]}",
        "{a: live, b: [x, live], c: 1}",
        "{a: '{{secret .}}', b: [x, '{{secret k}}'], c: 1}"
    )]
    #[case(
        SECRETS,
        "{env: [{name: SYS, value: x}, {name: B, value: live, id: 2}, {name: A, value: live}]}",
        "{env: [{name: SYS, value: x}, {name: B, value: '{{secret b}}', id: 2}, {name: A, value: '{{secret a}}'}]}"
    )]
    #[case(SECRETS, "{env: [{name: B, value: live}]}", "{env: [{name: B, value: '{{secret b}}'}]}")]
    #[case(SECRETS, "{env: []}", "{env: []}")]
    #[case(
        "{m: ['{{ref \"/u/a\" \"/id\"}}', x, '{{ref \"/u/b\" \"/id\"}}']}",
        "{m: [7, x, 8]}",
        "{m: ['{{ref \"/u/a\" \"/id\"}}', x, '{{ref \"/u/b\" \"/id\"}}']}"
    )]
    #[case(
        "{e: [{name: A, d: null, v: '{{secret a}}'}, {name: B}]}",
        "{e: [{name: B}, {name: A, v: live}]}",
        "{e: [{name: B}, {name: A, v: '{{secret a}}'}]}"
    )]
    #[case("{a: '{{secret .}}', b: '{{secret .}}'}", "{a: null}", "{a: null}")]
    #[case("'{{secret .}}'", "{a: live}", "'{{secret .}}'")]
    #[case("{a: '{{ref \"/x/y\" \"/id\"}}', b: x}", "{a: 7, b: y}", "{a: '{{ref \"/x/y\" \"/id\"}}', b: y}")]
    #[case("{a: x}", "{a: y}", "{a: y}")]
    fn templates_stay(#[case] declared: &str, #[case] payload: &str, #[case] expected: &str) {
        let yaml = |text: &str| decode(PayloadType::Yaml, text.as_bytes()).unwrap();
        let kept = with_templates_of(&LogicalPath::root(), &yaml(declared), yaml(payload));
        assert_eq!(kept.unwrap(), yaml(expected));
    }

    const SECRETS: &str = "{env: [{name: A, value: '{{secret a}}'}, {name: B, value: '{{secret b}}'}]}";

    #[rstest]
    #[case::entries_without_names("{env: ['{{secret a}}', '{{secret b}}']}", "{env: [live, other]}")]
    #[case::another_name(SECRETS, "{env: [{name: C, value: live}]}")]
    #[case::another_value("{env: ['{{secret a}}', x]}", "{env: [live, y]}")]
    #[case::another_type(SECRETS, "{env: {A: live}}")]
    #[case::twice(SECRETS, "{env: [{name: A, value: live}, {name: A, value: live}]}")]
    fn entries_that_cannot_be_matched_are_rejected(#[case] declared: &str, #[case] payload: &str) {
        let yaml = |text: &str| decode(PayloadType::Yaml, text.as_bytes()).unwrap();
        let error = with_templates_of(&LogicalPath::root(), &yaml(declared), yaml(payload)).unwrap_err();
        assert!(error.to_string().contains("\"/env\""), "{error}");
    }
}
