//! Keeping secrets out of files.

use super::{AuthoringError, Draft};
use crate::metadata::Metadata;
use crate::payload::Value;
use crate::secrets::{detect, is_placeholder};

/// Fails if one of `drafts` holds a secret that would be written as it is: one that metadata declares, as there
/// is no store to keep it in, or one that looks like it, unless `allow_plaintext`. Placeholders are fine.
pub fn check_secrets(
    metadata: &Metadata,
    drafts: &[Draft],
    allow_plaintext: bool,
) -> Result<(), AuthoringError> {
    let mut found = Vec::new();
    for draft in drafts {
        let rules = metadata.rules(&draft.path)?;
        let resolved = rules.resolved();
        if draft.payload.is_null() || draft.payload.as_str().is_some_and(is_placeholder) {
            continue;
        }
        if resolved.secret {
            let what = "payload as a whole".to_owned();
            return Err(AuthoringError::SecretStoreMissing { path: draft.path.clone(), what });
        }
        if !allow_plaintext {
            let likely = detect(&draft.payload);
            let undeclared = likely.iter().filter(|at| !resolved.secret_attributes.contains(at));
            let undeclared: Vec<String> = undeclared.map(ToString::to_string).collect();
            if !undeclared.is_empty() {
                found.push(format!("{}: {}", draft.path, undeclared.join(", ")));
            }
        }
    }
    if !found.is_empty() {
        return Err(AuthoringError::Plaintext { found });
    }
    drafts.iter().try_for_each(|draft| check_declared(metadata, draft, allow_plaintext))
}

fn check_declared(metadata: &Metadata, draft: &Draft, allow_plaintext: bool) -> Result<(), AuthoringError> {
    let rules = metadata.rules(&draft.path)?;
    for at in &rules.resolved().secret_attributes {
        match at.get(&draft.payload) {
            None | Some(Value::Null) => {}
            Some(Value::String(text)) if text.is_empty() || is_placeholder(text) => {}
            Some(Value::String(_)) => {
                let what = at.to_string();
                return Err(AuthoringError::SecretStoreMissing { path: draft.path.clone(), what });
            }
            Some(_) if allow_plaintext => {}
            Some(other) => {
                let (path, at, kind) = (draft.path.clone(), at.clone(), other.kind());
                return Err(AuthoringError::SecretType { path, at, kind });
            }
        }
    }
    Ok(())
}
