//! Who a resource is: its name in the repository and its name on the server.
//!
//! [`IdentityRules`] hold the two [`IdentityTemplate`]s of a resource and answer what follows from them.

mod error;
mod parse;
mod rules;
mod template;

use super::MetadataError;
use crate::path::{LogicalPath, check_segment};
use crate::payload::Value;

pub use error::IdentityError;
pub use rules::IdentityRules;
pub use template::IdentityTemplate;

/// The names of one resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The name people use; the last segment of the logical path.
    pub alias: String,
    /// The segment that addresses it on the server.
    pub remote_id: String,
}

impl Identity {
    /// The names by convention: both are the payload's `id` where that is a scalar that is not blank,
    /// else the last segment of the path.
    pub(super) fn by_convention(path: &LogicalPath, payload: Option<&Value>) -> Result<Self, MetadataError> {
        let id = payload.and_then(own_id).unwrap_or_else(|| path.name().to_owned());
        let segment =
            check_segment(&id).map_err(|source| MetadataError::Identity { path: path.clone(), source })?;
        Ok(Self { alias: segment.to_owned(), remote_id: segment.to_owned() })
    }
}

/// The payload's own `id` as text, if it is a scalar and not blank.
pub(super) fn own_id(payload: &Value) -> Option<String> {
    scalar_member(payload, "id")
}

pub(super) fn scalar_member(payload: &Value, key: &str) -> Option<String> {
    let text = payload.get(key)?.scalar_text()?.trim().to_owned();
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests;
