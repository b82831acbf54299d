//! The errors of evaluations.

use std::fmt;

use super::{OUTPUT_LIMIT, ResourceError, TIME_LIMIT, VOLUME_LIMIT};
use crate::error::categories;
use crate::path::{LogicalPath, PathError};

/// An evaluation has no result. Messages never contain values of the input, which may be secret.
#[derive(Clone, Debug, thiserror::Error)]
pub enum EvaluationError {
    /// The expression does not support a value, or raised an error itself.
    #[error("jq failed: {0}")]
    Failed(String),
    /// The expression exceeded a limit.
    #[error("jq was stopped: {0}")]
    Stopped(StopReason),
    /// An output cannot be a payload.
    #[error("the result of jq is not a payload: {0}")]
    Result(&'static str),
    /// `resource(…)` where no server is read.
    #[error("resource() cannot be used here, because the server is not read")]
    NoReader,
    /// The argument of `resource(…)` is not a path. It is not shown, because it may contain values.
    #[error("the argument of resource() must be {}", expected_path(.0.as_ref()))]
    ResourcePath(Option<PathError>),
    /// The resource that `resource(…)` names could not be read.
    #[error("resource(\"{0}\") failed: {1}")]
    Resource(LogicalPath, ResourceError),
    /// The interpreter of jq failed.
    #[error("cannot evaluate jq: {0}")]
    Panicked(#[from] Panicked),
}

/// The interpreter panicked because of a bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the jq interpreter panicked; please report the expression")]
pub struct Panicked;

/// A limit of jq expressions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// The evaluation took too long.
    Time,
    /// A search could take too long.
    Search,
    /// The evaluation created too many or too large values.
    Memory,
    /// The results are too large.
    Output,
    /// The recursion or the nesting of values is too deep.
    Depth,
}

impl fmt::Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Time => write!(f, "it took longer than {} s", TIME_LIMIT.as_secs()),
            Self::Search => {
                f.write_str("a search could take too long; shorten the text, or what is searched")
            }
            Self::Memory => write!(f, "it created values of more than {} MiB", VOLUME_LIMIT >> 20),
            Self::Output => write!(f, "its results are larger than {} MiB", OUTPUT_LIMIT >> 20),
            Self::Depth => write!(f, "its recursion or nesting is too deep"),
        }
    }
}

fn expected_path(source: Option<&PathError>) -> &'static str {
    match source {
        None => "one string",
        Some(PathError::Blank) => "a path, but it is blank",
        Some(_) => "an absolute logical path such as \"/shops/rio\"",
    }
}

categories!(EvaluationError {
    .1: Resource;
    Validation: Failed, Stopped, Result, NoReader, ResourcePath;
    Internal: Panicked;
});
