//! What can go wrong with a pipeline.

use std::sync::Arc;

use super::jq::{ExpressionError, Failure, Panicked, StopReason};
use crate::error::{Categorized, Category};
use crate::path::{LogicalPath, PathError};

/// The failure of a [`ResourceReader`](super::ResourceReader).
pub type ResourceError = Arc<dyn Categorized + Send + Sync>;

/// Why a pipeline could not be compiled or applied.
///
/// Steps are counted from 0, as in the address of a step within its document. No message contains a value
/// of the payload: it may be a secret.
#[derive(Clone, Debug, thiserror::Error)]
pub enum TransformError {
    /// A jq expression that is not one.
    #[error("transform step {step}: {source}")]
    Expression {
        /// The step.
        step: usize,
        /// What is wrong with the expression.
        source: ExpressionError,
    },
    /// Steps met a payload that is not text.
    #[error("transforms cannot work on bytes; remove the transforms or give the payload a structured format")]
    BytesInput,
    /// A jq expression met a value that it cannot work on, or raised an error itself.
    #[error("transform step {step}: jq failed: {reason}")]
    Evaluation {
        /// The step.
        step: usize,
        /// What happened, without values.
        reason: String,
    },
    /// A jq expression reached one of its limits.
    #[error("transform step {step}: jq was stopped: {reason}")]
    Stopped {
        /// The step.
        step: usize,
        /// Which limit.
        reason: StopReason,
    },
    /// The result of a jq expression is outside of the value model.
    #[error("transform step {step}: the result of jq is no payload: {reason}")]
    Result {
        /// The step.
        step: usize,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// `resource(…)` outside of a list.
    #[error("transform step {step}: resource() works in the transforms of list only")]
    ResourceOutsideList {
        /// The step.
        step: usize,
    },
    /// The argument of `resource(…)` is not a path. A bad path is not shown, since it may hold values.
    #[error("transform step {step}: the argument of resource() must be {}", expected_path(.source.as_ref()))]
    ResourcePath {
        /// The step.
        step: usize,
        /// What is wrong with the path; `None` if the argument is not even text.
        source: Option<PathError>,
    },
    /// The resource that `resource(…)` names could not be read.
    #[error("transform step {step}: resource(\"{path}\") failed: {failure}")]
    Resource {
        /// The step.
        step: usize,
        /// The resource.
        path: LogicalPath,
        /// What failed.
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
    /// The step that failed, from 0, if one did.
    pub(in crate::metadata) const fn step_mut(&mut self) -> Option<&mut usize> {
        match self {
            Self::Expression { step, .. }
            | Self::Evaluation { step, .. }
            | Self::Stopped { step, .. }
            | Self::Result { step, .. }
            | Self::ResourceOutsideList { step }
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
            Failure::ResourceOutsideList => Self::ResourceOutsideList { step },
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
            | Self::ResourceOutsideList { .. }
            | Self::ResourcePath { .. } => Category::Validation,
            Self::Resource { failure, .. } => failure.category(),
            Self::Panicked(_) => Category::Internal,
        }
    }
}
