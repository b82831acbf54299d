//! Failures of commands, with their messages and exit codes.

use std::process::ExitCode;

use declarest_core::error::{Categorized, Category, with_causes};

/// The exit code for differences.
const DIFFERENT: u8 = 7;

/// A command that did not succeed. The message is printed to standard error, and the category determines the exit
/// code.
#[derive(Debug)]
pub enum Failure {
    /// The command line is invalid; the text has the cause and the usage.
    Syntax(String),
    /// A required argument is missing; the usage is printed before the message.
    Usage { usage: String, message: String },
    /// There are differences, and `--exit-code` was given. Nothing failed.
    Differs,
    /// The command failed.
    Failed { category: Category, message: String },
}

/// Converts every error with a category; the message includes its causes.
impl<E: Categorized + 'static> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::Failed { category: error.category(), message: with_causes(&error) }
    }
}

impl Failure {
    /// Returns the failure of an invalid request.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::Failed { category: Category::Validation, message: message.into() }
    }

    /// Returns the failure of an operation on this machine.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::Failed { category: Category::Internal, message: message.into() }
    }

    /// Returns the category, which determines the exit code.
    pub fn category(&self) -> Category {
        match self {
            Self::Syntax(_) => Category::Internal,
            Self::Differs => Category::Conflict,
            Self::Usage { .. } => Category::Validation,
            Self::Failed { category, .. } => *category,
        }
    }

    /// Returns the message without the usage.
    pub fn message(&self) -> &str {
        match self {
            Self::Syntax(message) | Self::Usage { message, .. } | Self::Failed { message, .. } => {
                message.trim_end()
            }
            Self::Differs => "there are differences",
        }
    }

    /// Returns the usage to print before the message.
    pub fn usage(&self) -> Option<&str> {
        match self {
            Self::Usage { usage, .. } => Some(usage.trim_end()),
            Self::Syntax(_) | Self::Differs | Self::Failed { .. } => None,
        }
    }

    /// Returns the exit code.
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Self::Differs => ExitCode::from(DIFFERENT),
            other => ExitCode::from(other.category().exit_code()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn syntax_errors_and_invalid_values_have_different_exit_codes() {
        assert_eq!(Failure::Syntax(String::new()).category().exit_code(), 1);
        assert_eq!(Failure::invalid("no").category().exit_code(), 2);
    }
}
