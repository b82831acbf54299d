//! The identity of a resource: its alias in the repository and its remote id on the server.
//!
//! [`IdentityRules`] hold the two [`IdentityTemplate`]s of a resource and evaluate them.

mod error;
mod parse;
mod rules;
mod template;

use crate::payload::Value;

pub use error::IdentityError;
pub use rules::IdentityRules;
pub use template::IdentityTemplate;

/// The alias and remote id of one resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The name for people; the last segment of the logical path.
    pub alias: String,
    /// The segment that addresses the resource on the server.
    pub remote_id: String,
}

/// Returns the member `key` as text, if it is a scalar and not blank.
pub(super) fn scalar_member(payload: &Value, key: &str) -> Option<String> {
    let text = payload.get(key)?.scalar_text()?.trim().to_owned();
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests;
