//! Failures of commands, with their messages and exit codes.

use std::any::Any;
use std::io;
use std::path::Path;
use std::process::ExitCode;

use declarest_core::error::{Categorized, Category, with_causes};
use declarest_core::server::ServerError;
use declarest_core::sync::SyncError;

/// The exit code for differences.
const DIFFERENT: u8 = 7;
/// The exit code after Ctrl-C: 128 and the number of the signal, as shells report it.
pub const INTERRUPTED: u8 = 130;

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
    /// Ctrl-C ended the command; the text states what was done.
    Interrupted(String),
    /// The command failed.
    Failed(Cause),
}

/// Why a command failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    pub category: Category,
    pub message: String,
    /// What the user can do, if the message does not say so.
    pub hint: Option<String>,
    /// The resource, if the failure concerns a single one.
    pub path: Option<String>,
    /// The status of the server, if it decided the failure.
    pub http_status: Option<u16>,
    /// Whether the server was reached, and its answer states the fault.
    pub answered: bool,
}

/// Converts every error with a category; the message includes its causes.
impl<E: Categorized + 'static> From<E> for Failure {
    fn from(error: E) -> Self {
        let any: &dyn Any = &error;
        let by_engine = any.downcast_ref::<SyncError>().and_then(SyncError::http_status);
        let status = by_engine.or_else(|| any.downcast_ref::<ServerError>().and_then(ServerError::status));
        let http_status = status.map(|status| status.as_u16());
        let answered = http_status.is_some();
        let cause = Cause { http_status, answered, ..Cause::new(error.category(), with_causes(&error)) };
        Self::Failed(cause)
    }
}

impl Cause {
    /// Returns a cause with nothing but its message.
    pub fn new(category: Category, message: impl Into<String>) -> Self {
        Self { category, message: message.into(), hint: None, path: None, http_status: None, answered: false }
    }
}

impl Failure {
    /// Returns a failure of this category.
    pub fn new(category: Category, message: impl Into<String>) -> Self {
        Self::Failed(Cause::new(category, message))
    }

    /// Returns the failure with a hint, unless it has one.
    #[must_use]
    pub fn with_hint(mut self, hint: impl FnOnce(&Self) -> Option<String>) -> Self {
        if self.cause().is_some_and(|cause| cause.hint.is_none()) {
            let hint = hint(&self);
            if let Self::Failed(cause) = &mut self {
                cause.hint = hint;
            }
        }
        self
    }

    /// Returns the failure with an addition to its message.
    #[must_use]
    pub fn with_note(mut self, note: &str) -> Self {
        match &mut self {
            Self::Syntax(message)
            | Self::Interrupted(message)
            | Self::Usage { message, .. }
            | Self::Failed(Cause { message, .. }) => *message = format!("{}; {note}", message.trim_end()),
            Self::Differs => {}
        }
        self
    }

    /// Returns the failure of the resource at `path`.
    #[must_use]
    pub fn at(mut self, path: &str) -> Self {
        if let Self::Failed(cause) = &mut self {
            cause.path = Some(path.to_owned());
        }
        self
    }

    /// Returns the cause, if the command started to work.
    pub fn cause(&self) -> Option<&Cause> {
        match self {
            Self::Failed(cause) => Some(cause),
            _ => None,
        }
    }

    /// Returns the failure of an invalid request.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(Category::Validation, message)
    }

    /// Returns the failure of an operation on this machine.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(Category::Internal, message)
    }

    /// Returns a function that makes the failure of an action on a file or directory of this machine.
    pub fn io(action: &'static str, path: &Path) -> impl Fn(io::Error) -> Self {
        move |error| Self::internal(format!("cannot {action} {}: {error}", path.display()))
    }

    /// Returns a function that makes the failure of reading a file or directory that the user names.
    pub fn read(path: &Path) -> impl Fn(io::Error) -> Self {
        move |error| {
            let missing = error.kind() == io::ErrorKind::NotFound;
            let category = if missing { Category::NotFound } else { Category::Internal };
            Self::new(category, format!("cannot read {}: {error}", path.display()))
        }
    }

    /// Returns the category, which determines the exit code.
    pub fn category(&self) -> Category {
        match self {
            Self::Syntax(_) | Self::Interrupted(_) => Category::Internal,
            Self::Differs => Category::Conflict,
            Self::Usage { .. } => Category::Validation,
            Self::Failed(cause) => cause.category,
        }
    }

    /// Returns the message without the usage.
    pub fn message(&self) -> &str {
        match self {
            Self::Syntax(message)
            | Self::Interrupted(message)
            | Self::Usage { message, .. }
            | Self::Failed(Cause { message, .. }) => message.trim_end(),
            Self::Differs => "there are differences",
        }
    }

    /// Returns the usage to print before the message.
    pub fn usage(&self) -> Option<&str> {
        match self {
            Self::Usage { usage, .. } => Some(usage.trim_end()),
            Self::Syntax(_) | Self::Differs | Self::Interrupted(_) | Self::Failed(_) => None,
        }
    }

    /// Returns the exit code.
    pub fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.code())
    }

    /// Returns the number of the exit code.
    pub fn code(&self) -> u8 {
        match self {
            Self::Differs => DIFFERENT,
            Self::Interrupted(_) => INTERRUPTED,
            other => other.category().exit_code(),
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
