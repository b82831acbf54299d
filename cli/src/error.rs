//! Failures, and the one map from a failure to what is told and to an exit code.

use std::process::ExitCode;

use declarest_core::error::{Categorized, Category, with_causes};

use crate::output::tell;

/// The exit code that tells differences.
const DIFFERENT: u8 = 7;

/// The end of a command that did not succeed. The text goes to standard error, the category decides the
/// exit code.
#[derive(Debug)]
pub enum Failure {
    /// The command line is not understood; the text says why and shows the usage.
    Syntax(String),
    /// A required argument is missing: the usage goes before the text.
    Usage { usage: String, message: String },
    /// Nothing failed: there are differences, and `--exit-code` asks to be told.
    Differs,
    /// The command could not do what it should.
    Failed { category: Category, message: String },
}

/// Every error with a category ends a command with its text and that of its causes.
impl<E: Categorized + 'static> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::Failed { category: error.category(), message: with_causes(&error) }
    }
}

impl Failure {
    /// What the command line asked for can never work.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::Failed { category: Category::Validation, message: message.into() }
    }

    /// Something that should work on this machine does not.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::Failed { category: Category::Internal, message: message.into() }
    }

    /// The category, which decides the exit code.
    pub fn category(&self) -> Category {
        match self {
            Self::Syntax(_) => Category::Internal,
            Self::Differs => Category::Conflict,
            Self::Usage { .. } => Category::Validation,
            Self::Failed { category, .. } => *category,
        }
    }

    /// What went wrong, without the usage.
    pub fn message(&self) -> &str {
        match self {
            Self::Syntax(message) | Self::Usage { message, .. } | Self::Failed { message, .. } => {
                message.trim_end()
            }
            Self::Differs => "there are differences",
        }
    }

    /// The usage that goes before the message.
    pub fn usage(&self) -> Option<&str> {
        match self {
            Self::Usage { usage, .. } => Some(usage.trim_end()),
            Self::Syntax(_) | Self::Differs | Self::Failed { .. } => None,
        }
    }

    /// The exit code.
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Self::Differs => ExitCode::from(DIFFERENT),
            other => ExitCode::from(other.category().exit_code()),
        }
    }

    /// Tells the user, and gives the exit code.
    pub fn report(self) -> ExitCode {
        tell(self.message());
        self.exit_code()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn syntax_is_told_apart_from_invalid_values() {
        assert_eq!(Failure::Syntax(String::new()).category().exit_code(), 1);
        assert_eq!(Failure::invalid("no").category().exit_code(), 2);
    }
}
