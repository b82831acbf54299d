//! Errors of transform pipelines.

use crate::error::categories;
use crate::language::jq::{EvaluationError, ExpressionError, Panicked};

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
    /// A jq expression has no result.
    #[error("transform step {step}: {source}")]
    Evaluation {
        /// The step.
        step: usize,
        /// The cause.
        source: EvaluationError,
    },
    /// The interpreter of jq failed.
    #[error("cannot evaluate transforms: {0}")]
    Panicked(Panicked),
}

impl TransformError {
    /// Returns the step that failed, from 0, if the error has one.
    pub(in crate::metadata) const fn step_mut(&mut self) -> Option<&mut usize> {
        match self {
            Self::Expression { step, .. } | Self::Evaluation { step, .. } => Some(step),
            Self::BytesInput | Self::Panicked(_) => None,
        }
    }
}

categories!(TransformError {
    .source: Expression, Evaluation;
    Validation: BytesInput;
    Internal: Panicked;
});
