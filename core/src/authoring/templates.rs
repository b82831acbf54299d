//! Placeholders and references in payloads of the server: those of the declaration are kept, and others are rejected.

use super::{AuthoringError, Draft, stored};
use crate::language::reference::{is_reference, references};
use crate::metadata::document::ExternalizedAttribute;
use crate::metadata::{Metadata, includes};
use crate::path::LogicalPath;
use crate::payload::Value;
use crate::payload::pointer::Pointer;
use crate::repository::Store;
use crate::secrets::{placeholder_places, template_places};

/// Returns `payload` with the secret placeholders and references of `declared` wherever it has a value. Use it to store a
/// server's answer without the secrets that were sent, and with the references that determine its values.
pub fn with_templates_of(declared: &Value, mut payload: Value) -> Value {
    let references = references(declared).unwrap_or_default().into_iter().map(|(at, _)| at);
    for at in placeholder_places(declared).into_iter().chain(references) {
        let value = at.get_mut(&mut payload).filter(|value| !value.is_null());
        if let (Some(value), Some(template)) = (value, at.get(declared)) {
            *value = template.clone();
        }
    }
    payload
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
        "{a: live, b: [live, y], c: 1}",
        "{a: '{{secret .}}', b: ['{{secret k}}', y], c: 1}"
    )]
    #[case("{a: '{{secret .}}', b: '{{secret .}}'}", "{a: null}", "{a: null}")]
    #[case("'{{secret .}}'", "{a: live}", "'{{secret .}}'")]
    #[case("{a: '{{ref \"/x/y\" \"/id\"}}', b: x}", "{a: 7, b: y}", "{a: '{{ref \"/x/y\" \"/id\"}}', b: y}")]
    #[case("{a: x}", "{a: y}", "{a: y}")]
    fn templates_stay(#[case] declared: &str, #[case] payload: &str, #[case] expected: &str) {
        let yaml = |text: &str| decode(PayloadType::Yaml, text.as_bytes()).unwrap();
        assert_eq!(with_templates_of(&yaml(declared), yaml(payload)), yaml(expected));
    }
}
