//! The transform pipeline: how a payload changes between the repository and the server.
//!
//! A [`Pipeline`] is compiled once for the resources that share it and applied to each payload. Its steps
//! run in order, each on the result of the one before:
//!
//! - **select** builds a new document of the addressed parts, each at its old place;
//! - **exclude** deletes the addressed parts;
//! - **jq** replaces the document by what an expression makes of it.
//!
//! ```
//! use declarest_core::metadata::transform::{Context, Pipeline, Step};
//! use declarest_core::payload::{PayloadType, decode};
//!
//! let pipeline = Pipeline::compile([
//!     Step::Exclude(vec!["/etag".parse()?]),
//!     Step::Jq(". + {n: (.tags|length)}".to_owned()),
//!     Step::Select(vec!["/name".parse()?, "/n".parse()?]),
//! ])?;
//! let payload = decode(PayloadType::Json, br#"{"name": "Rio", "etag": "x", "tags": ["a", "b"]}"#)?;
//! let expected = decode(PayloadType::Json, br#"{"n": 2, "name": "Rio"}"#)?;
//! assert_eq!(pipeline.apply(payload, Context::default())?, expected);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod condition;
mod error;
mod jq;
mod parts;

use std::sync::Arc;

use crate::path::LogicalPath;
use crate::payload::Value;

/// The steps as metadata states them; templates in their jq expressions are rendered already.
pub use super::document::Step;
pub use condition::{Condition, ConditionError};
pub use error::{ResourceError, TransformError};
pub use jq::{ExpressionError, Panicked, ProgramCache, StopReason};

use jq::{Origin, Program};
use parts::Parts;

/// Reads other resources for the `resource("path")` function of jq.
///
/// Called on a thread of its own, outside of any async runtime; it may block. The time it takes does not
/// count against the time limit of the expression. Caching and the detection of cycles are its business.
pub trait ResourceReader: Sync {
    /// The payload of the resource at `path`, as a full remote read gives it.
    fn read(&self, path: &LogicalPath) -> Result<Value, ResourceError>;
}

/// What steps may reach besides their input.
#[derive(Clone, Copy, Default)]
pub struct Context<'a> {
    /// Answers `resource("path")`. Set for lists only; without it the function is an error.
    pub resources: Option<&'a dyn ResourceReader>,
}

/// Compiled steps. Cloning is cheap.
#[derive(Clone, Debug, Default)]
pub struct Pipeline {
    steps: Arc<[Compiled]>,
}

#[derive(Debug)]
enum Compiled {
    Select(Parts),
    Exclude(Parts),
    Jq(Arc<Program>),
}

impl Pipeline {
    /// Compiles steps whose jq expressions stand in metadata as they are.
    pub fn compile(steps: impl IntoIterator<Item = Step>) -> Result<Self, TransformError> {
        Self::compile_by(steps, |text| Program::compile(text, Origin::Metadata).map(Arc::new))
    }

    /// Compiles steps whose jq expressions were rendered for one resource; equal texts are compiled once
    /// per `cache`. Messages do not quote these expressions, since rendering put payload values into them.
    pub fn compile_rendered(
        steps: impl IntoIterator<Item = Step>,
        cache: &ProgramCache,
    ) -> Result<Self, TransformError> {
        Self::compile_by(steps, |text| cache.program(text))
    }

    fn compile_by(
        steps: impl IntoIterator<Item = Step>,
        program: impl Fn(&str) -> Result<Arc<Program>, ExpressionError>,
    ) -> Result<Self, TransformError> {
        let compile = |(step, source)| {
            Ok(match source {
                Step::Select(pointers) => Compiled::Select(Parts::new(&pointers)),
                Step::Exclude(pointers) => Compiled::Exclude(Parts::new(&pointers)),
                Step::Jq(text) => Compiled::Jq(
                    program(&text).map_err(|source| TransformError::Expression { step, source })?,
                ),
            })
        };
        let steps = steps.into_iter().enumerate().map(compile).collect::<Result<_, TransformError>>()?;
        Ok(Self { steps })
    }

    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Runs all steps on `value`. Blocks for as long as they compute.
    ///
    /// Without steps every value passes unchanged; with steps bytes are refused, because no step can
    /// address them.
    pub fn apply(&self, value: Value, context: Context<'_>) -> Result<Value, TransformError> {
        if self.is_empty() {
            return Ok(value);
        }
        if matches!(value, Value::Bytes(_)) {
            return Err(TransformError::BytesInput);
        }
        if self.steps.iter().any(|step| matches!(step, Compiled::Jq(_))) {
            // jq recurses as deep as its input says, so it needs a stack of known size.
            return jq::on_large_stack(|| self.run(value, context)).map_err(TransformError::Panicked)?;
        }
        self.run(value, context)
    }

    fn run(&self, value: Value, context: Context<'_>) -> Result<Value, TransformError> {
        self.steps.iter().enumerate().try_fold(value, |value, (index, step)| match step {
            Compiled::Select(parts) => Ok(parts.select(value)),
            Compiled::Exclude(parts) => Ok(parts.exclude(value)),
            Compiled::Jq(program) => {
                program.run(&value, context).map_err(|failure| TransformError::from_jq(index, failure))
            }
        })
    }
}

/// Calls `work` with the stack that evaluations of jq need, so that each one in it does not set up its own.
pub fn on_evaluation_stack<T>(work: impl FnOnce() -> T) -> Result<T, TransformError> {
    jq::on_large_stack(work).map_err(TransformError::Panicked)
}

#[cfg(test)]
mod tests;
