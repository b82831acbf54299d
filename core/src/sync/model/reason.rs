//! The reasons of failures in reports, metrics and conditions.

use serde::Serialize;

use crate::error::Category;

/// The reason of a failure, one of a fixed set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureReason {
    /// The category is the reason.
    Category(Category),
    /// There is a placeholder, but no secret store.
    SecretStoreMissing,
    /// The secret store does not return the secret of a placeholder.
    SecretUnreadable(Category),
    /// The parent's creation failed.
    ParentFailed,
    /// The run ended before the resource.
    NotAttempted,
    /// The server does not keep the desired state.
    NeverConverges,
}

impl FailureReason {
    /// Returns the category that determines the exit code.
    pub const fn category(self) -> Category {
        match self {
            Self::Category(category) | Self::SecretUnreadable(category) => category,
            Self::SecretStoreMissing => Category::Validation,
            Self::ParentFailed | Self::NeverConverges => Category::Conflict,
            Self::NotAttempted => Category::Transport,
        }
    }

    /// Returns the CamelCase spelling of status fields.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Category(category) => category.reason(),
            Self::SecretStoreMissing => "SecretStoreMissing",
            Self::SecretUnreadable(_) => "SecretUnreadable",
            Self::ParentFailed => "ParentFailed",
            Self::NotAttempted => "NotAttempted",
            Self::NeverConverges => "NeverConverges",
        }
    }
}

impl Serialize for FailureReason {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}
