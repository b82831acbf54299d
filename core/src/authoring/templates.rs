//! Placeholders and references in payloads of the server: those of the declaration are kept, and others are rejected.

use super::{AuthoringError, Draft, stored};
use crate::language::reference::{is_reference, references};
use crate::metadata::Metadata;
use crate::payload::Value;
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

/// Like [`check_texts`] with the file of the resource, unless the whole resource is a secret: no placeholders are searched
/// in what the secret store returns. Blocks.
pub fn check_saved_texts(store: &Store, metadata: &Metadata, draft: &Draft) -> Result<(), AuthoringError> {
    let is_plain = template_places(&draft.payload, is_reference).is_empty();
    if is_plain || metadata.rules(&draft.path)?.resolved().secret {
        return Ok(());
    }
    check_texts(draft, &stored(store, &draft.path)?.unwrap_or_default())
}

/// Fails if a text of the server would be a placeholder or a reference in the file of `draft`, unless `declared` has it there:
/// the next run would replace the text by a secret or by a value of another resource, and users of the server may be able
/// to write it.
pub fn check_texts(draft: &Draft, declared: &Value) -> Result<(), AuthoringError> {
    let mut places = template_places(&draft.payload, is_reference).into_iter();
    match places.find(|at| at.get(declared) != at.get(&draft.payload)) {
        Some(at) => Err(AuthoringError::Template { path: draft.path.clone(), at }),
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
