//! Failures, and the one map from a failure to an exit code.

use std::io::Write as _;
use std::process::ExitCode;

use declarest_core::error::{Categorized, Category};

/// Why a command failed. The text goes to standard error, the category decides the exit code.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The command line is not understood; the text says why and shows the usage.
    #[error("{0}")]
    Syntax(String),
    #[error("invalid output format {0:?}; use auto, text, json or yaml")]
    OutputFormat(String),
    #[error("\"declarest {command}\" prints text only; remove --output {format}")]
    TextOnly { command: &'static str, format: &'static str },
    #[error("cannot write the result as {format}: {reason}")]
    Encode { format: &'static str, reason: String },
    #[error("cannot write to standard output: {0}")]
    Write(#[from] std::io::Error),
}

impl Categorized for Failure {
    fn category(&self) -> Category {
        match self {
            Self::OutputFormat(_) | Self::TextOnly { .. } => Category::Validation,
            Self::Syntax(_) | Self::Encode { .. } | Self::Write(_) => Category::Internal,
        }
    }
}

impl Failure {
    /// Tells the user, and gives the exit code.
    pub fn report(self) -> ExitCode {
        let text = self.to_string();
        // Nothing can be told any more if standard error is closed; the exit code still says it.
        let _ = writeln!(std::io::stderr(), "{}", text.trim_end());
        ExitCode::from(self.category().exit_code())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn syntax_is_told_apart_from_invalid_values() {
        assert_eq!(Failure::Syntax(String::new()).category().exit_code(), 1);
        assert_eq!(Failure::OutputFormat("xml".to_owned()).category().exit_code(), 2);
    }
}
