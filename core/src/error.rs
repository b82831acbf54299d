//! The categories of errors.
//!
//! Modules define their own error enums (variant = failed action + object). Callers decide only by the [`Category`]:
//! exit code, condition reason, metric label, and whether to retry.

use std::fmt;

/// The category of a failure. The set is closed: callers match it exhaustively.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Category {
    /// Input that is always rejected: an invalid path, an undecodable file, a status 4xx.
    Validation,
    /// The named object does not exist.
    NotFound,
    /// Credentials are missing, rejected or insufficient.
    Auth,
    /// A conflict: an ambiguous match, a status 409, a rejected push, a full queue.
    Conflict,
    /// The other side could not be reached, or its answer was not usable. A later attempt may succeed.
    Transport,
    /// Any other failure: local I/O, a damaged repository, a bug.
    Internal,
}

impl Category {
    /// Returns its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Validation => "validation",
            Self::NotFound => "not_found",
            Self::Auth => "auth",
            Self::Conflict => "conflict",
            Self::Transport => "transport",
            Self::Internal => "internal",
        }
    }

    /// Returns the exit code of a command that fails with this category.
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

    /// Whether the same call may succeed later without any change.
    pub const fn is_transient(self) -> bool {
        matches!(self, Self::Transport)
    }

    /// Returns the CamelCase spelling for status fields.
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

/// Returns the text of an error with its causes, for places with a single text. A cause that the text already
/// contains is not repeated.
pub fn with_causes(error: &(dyn std::error::Error + 'static)) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    causes.fold(error.to_string(), |text, cause| {
        let cause = cause.to_string();
        if text.contains(&cause) { text } else { format!("{text}: {cause}") }
    })
}

/// Returns a text that ends with a clause, without the full stop that other programs write at the end of a sentence, so
/// that it can be continued.
pub fn clause(text: impl fmt::Display) -> String {
    let mut text = text.to_string();
    text.truncate(text.trim_end().len());
    // A full stop after another sign is a part of it, as in "..." and "./.".
    let ended = text.strip_suffix(['.', ';']).filter(|rest| !rest.ends_with(['.', '/', ' ']));
    let length = ended.map_or(text.len(), str::len);
    text.truncate(length);
    text
}

/// An error with a [`Category`].
pub trait Categorized: std::error::Error {
    /// Returns the category of the outermost failure.
    fn category(&self) -> Category;
}

/// Implements [`Categorized`] for an error by the names of its variants. Every variant needs a category, otherwise the
/// code does not compile.
///
/// ```
/// use declarest_core::error::{Categorized, Category, categories};
///
/// #[derive(Debug, thiserror::Error)]
/// #[error("{0} is not a number")]
/// struct NumberError(String);
///
/// // All errors of this type have one category.
/// categories!(NumberError: Validation);
///
/// #[derive(Debug, thiserror::Error)]
/// enum OrderError {
///     #[error(transparent)]
///     Number(NumberError),
///     #[error("{place}: {source}")]
///     Row { place: String, source: NumberError },
///     #[error("status {0}")]
///     Status(u16),
///     #[error("the order has no items")]
///     Empty,
///     #[error("customer {0} does not exist")]
///     Customer(String),
/// }
///
/// categories!(OrderError {
///     // Arms that compute the category precede all others.
///     { Self::Status(404) => Category::NotFound, }
///     // The category is that of field 0, or of the field `source`.
///     .0: Number;
///     .source: Row;
///     // The category is stated.
///     Validation: Empty, Customer;
///     Transport: Status;
/// });
///
/// assert_eq!(OrderError::Number(NumberError("x".to_owned())).category(), Category::Validation);
/// assert_eq!(OrderError::Status(404).category(), Category::NotFound);
/// assert_eq!(OrderError::Status(503).category(), Category::Transport);
/// ```
#[doc(hidden)]
#[macro_export]
macro_rules! categories {
    ($error:ident: $category:ident) => {
        impl $crate::error::Categorized for $error {
            fn category(&self) -> $crate::error::Category {
                $crate::error::Category::$category
            }
        }
    };
    ($error:ident {
        $({ $($arms:tt)+ })?
        $(.$field:tt: $($caused:ident),+;)*
        $($category:ident: $($variant:ident),+;)*
    }) => {
        impl $crate::error::Categorized for $error {
            fn category(&self) -> $crate::error::Category {
                match self {
                    $($($arms)+)?
                    $($(Self::$caused { $field: cause, .. } => cause.category(),)+)*
                    $($(Self::$variant { .. })|+ => $crate::error::Category::$category,)*
                }
            }
        }
    };
}
#[doc(inline)]
pub use categories;

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::sentence("that are not present locally.", "that are not present locally")]
    #[case::line("not permitted.\n", "not permitted")]
    #[case::quoted("\"no.\"", "\"no.\"")]
    #[case::omission("and so on...", "and so on...")]
    #[case::directory("cannot read ./.", "cannot read ./.")]
    #[case::stop(".", "")]
    fn a_clause_has_no_full_stop(#[case] text: &str, #[case] expected: &str) {
        assert_eq!(clause(text), expected);
    }
}
