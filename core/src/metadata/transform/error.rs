//! Errors of transform pipelines.

use crate::error::{Categorized, Category};
use crate::language::jq::{ExpressionError, Failure, Panicked, ResourceError, StopReason};
use crate::path::{LogicalPath, PathError};

/// A pipeline cannot be compiled or applied.
///
/// Steps are counted from 0, as in the field names of documents. Messages never contain values of the payload, which
/// may be secret.
#[derive(Clone, Debug, thiserror::Error)]
pub enum TransformError {
    /// A jq expression is not valid.
    #[error("transform step {step}: {source}")]
    Expression {
        /// The step.
        step: usize,
        /// The fault of the expression.
        source: ExpressionError,
    },
    /// The payload is bytes, which steps do not support.
    #[error("transforms do not support bytes; remove the transforms, or set a structured format")]
    BytesInput,
    /// A jq expression does not support a value, or raised an error itself.
    #[error("transform step {step}: jq failed: {reason}")]
    Evaluation {
        /// The step.
        step: usize,
        /// The cause, without values.
        reason: String,
    },
    /// A jq expression exceeded a limit.
    #[error("transform step {step}: jq was stopped: {reason}")]
    Stopped {
        /// The step.
        step: usize,
        /// The exceeded limit.
        reason: StopReason,
    },
    /// The result of a jq expression cannot be a payload.
    #[error("transform step {step}: the result of jq is not a payload: {reason}")]
    Result {
        /// The step.
        step: usize,
        /// The fault.
        reason: &'static str,
    },
    /// `resource(…)` where no server is read.
    #[error("transform step {0}: resource() cannot be used here, because the server is not read")]
    NoReader(usize),
    /// The argument of `resource(…)` is not a path. It is not shown, because it may contain values.
    #[error("transform step {step}: the argument of resource() must be {}", expected_path(.source.as_ref()))]
    ResourcePath {
        /// The step.
        step: usize,
        /// The fault of the path; `None` if the argument is not a string.
        source: Option<PathError>,
    },
    /// The resource that `resource(…)` names could not be read.
    #[error("transform step {step}: resource(\"{path}\") failed: {failure}")]
    Resource {
        /// The step.
        step: usize,
        /// The resource.
        path: LogicalPath,
        /// The cause.
        failure: ResourceError,
    },
    /// The interpreter of jq failed.
    #[error("cannot evaluate transforms: {0}")]
    Panicked(Panicked),
}

fn expected_path(source: Option<&PathError>) -> &'static str {
    match source {
        None => "one string",
        Some(PathError::Blank) => "a path, but it is blank",
        Some(_) => "an absolute logical path such as \"/shops/rio\"",
    }
}

impl TransformError {
    /// Returns the step that failed, from 0, if the error has one.
    pub(in crate::metadata) const fn step_mut(&mut self) -> Option<&mut usize> {
        match self {
            Self::Expression { step, .. }
            | Self::Evaluation { step, .. }
            | Self::Stopped { step, .. }
            | Self::Result { step, .. }
            | Self::NoReader(step)
            | Self::ResourcePath { step, .. }
            | Self::Resource { step, .. } => Some(step),
            Self::BytesInput | Self::Panicked(_) => None,
        }
    }

    pub(super) fn from_jq(step: usize, failure: Failure) -> Self {
        match failure {
            Failure::Evaluation(reason) => Self::Evaluation { step, reason },
            Failure::Stopped(reason) => Self::Stopped { step, reason },
            Failure::Result(reason) => Self::Result { step, reason },
            Failure::NoReader => Self::NoReader(step),
            Failure::ResourcePath(source) => Self::ResourcePath { step, source },
            Failure::Resource(path, failure) => Self::Resource { step, path, failure },
        }
    }
}

impl Categorized for TransformError {
    fn category(&self) -> Category {
        match self {
            Self::Expression { source, .. } => source.category(),
            Self::BytesInput
            | Self::Evaluation { .. }
            | Self::Stopped { .. }
            | Self::Result { .. }
            | Self::NoReader(_)
            | Self::ResourcePath { .. } => Category::Validation,
            Self::Resource { failure, .. } => failure.category(),
            Self::Panicked(_) => Category::Internal,
        }
    }
}
