//! The bounded classification that every error of this crate carries.
//!
//! Modules own their error enums (variant = failed action + object); what a caller may *decide* on is
//! only the [`Category`]: exit code, condition reason, metric label and whether trying again can help.

use std::fmt;

/// What kind of failure happened. The set is closed: callers match it exhaustively.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Category {
    /// Input that can never work until somebody changes it: a bad path, an undecodable file, a 4xx.
    Validation,
    /// The named thing does not exist.
    NotFound,
    /// Credentials are missing, refused or insufficient.
    Auth,
    /// Two truths compete: an ambiguous match, a 409, a rejected push, a full queue.
    Conflict,
    /// The other side could not be reached or did not answer usefully; trying later may work.
    Transport,
    /// Everything else: local I/O, a broken repository, a bug.
    Internal,
}

impl Category {
    /// The exit code of a command that ended with this category.
    pub const fn exit_code(self) -> u8 {
        match self {
            Self::Internal => 1,
            Self::Validation => 2,
            Self::NotFound => 3,
            Self::Auth => 4,
            Self::Conflict => 5,
            Self::Transport => 6,
        }
    }

    /// Whether the same call may succeed later without anybody changing anything.
    pub const fn is_transient(self) -> bool {
        matches!(self, Self::Transport)
    }

    /// The CamelCase spelling used in status fields.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::Validation => "ValidationError",
            Self::NotFound => "NotFoundError",
            Self::Auth => "AuthError",
            Self::Conflict => "ConflictError",
            Self::Transport => "TransportError",
            Self::Internal => "InternalError",
        }
    }
}

impl fmt::Display for Category {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.reason())
    }
}

/// An error's text with those of its causes, for places that have room for one text only. A cause that the
/// text already tells is not repeated.
pub fn with_causes(error: &(dyn std::error::Error + 'static)) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    causes.fold(error.to_string(), |text, cause| {
        let cause = cause.to_string();
        if text.contains(&cause) { text } else { format!("{text}: {cause}") }
    })
}

/// An error that knows its [`Category`].
pub trait Categorized: std::error::Error {
    /// The category of the outermost failure.
    fn category(&self) -> Category;
}
