//! The transform pipeline, which changes payloads between the repository and the server.
//!
//! A [`Pipeline`] is compiled once for the resources that share it, and applied to each payload. Its steps run in
//! order, each on the result of the previous one:
//!
//! - **select** creates a new document of the selected attributes, each at its original position;
//! - **exclude** removes the selected attributes;
//! - **jq** replaces the document with the result of an expression.
//!
//! ```
//! use declarest_core::language::jq::Context;
//! use declarest_core::metadata::transform::{Pipeline, Step};
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

mod error;
mod member;
mod parts;

use std::sync::Arc;

use crate::language::jq::{self, Context, ExpressionError, Origin, Program, ProgramCache};
use crate::payload::Value;

/// The steps of metadata, with the templates in their jq expressions already rendered.
pub use super::document::Step;
pub use error::TransformError;
pub use member::{MemberPath, is_identifier, member_expression};
use parts::Parts;

/// Compiled steps. Cloning is cheap.
#[derive(Clone, Debug, Default)]
pub struct Pipeline {
    steps: Arc<[Compiled]>,
}

#[derive(Debug)]
enum Compiled {
    Select(Parts),
    Exclude(Parts),
    /// An expression that takes a member, and its program, which reports that a value has no members.
    Member(MemberPath, Arc<Program>),
    Jq(Arc<Program>),
}

impl Pipeline {
    /// Compiles steps whose jq expressions are from metadata, without rendered values.
    pub fn compile(steps: impl IntoIterator<Item = Step>) -> Result<Self, TransformError> {
        Self::compile_by(steps, |text| Program::compile(text, Origin::Metadata).map(Arc::new))
    }

    /// Compiles steps whose jq expressions were rendered for one resource. Equal texts are compiled once per `cache`.
    /// Messages do not quote these expressions, because they contain payload values.
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
                Step::Jq(text) => {
                    let program =
                        program(&text).map_err(|source| TransformError::Expression { step, source })?;
                    match MemberPath::parse(&text) {
                        Some(path) => Compiled::Member(path, program),
                        None => Compiled::Jq(program),
                    }
                }
            })
        };
        let steps = steps.into_iter().enumerate().map(compile).collect::<Result<_, TransformError>>()?;
        Ok(Self { steps })
    }

    /// Returns whether there are no steps.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Returns whether its steps only take a member of an answer, and remove attributes of the member.
    pub fn only_reduces(&self) -> bool {
        let of_member = self.steps.iter().skip_while(|step| matches!(step, Compiled::Member(..)));
        of_member.into_iter().all(Compiled::removes)
    }

    /// Returns whether a step removes attributes.
    pub fn removes(&self) -> bool {
        self.steps.iter().any(Compiled::removes)
    }

    /// Returns `value` without the attributes that the steps remove. Steps with jq are left out.
    pub fn without_removed(&self, value: Value) -> Value {
        self.steps.iter().fold(value, |value, step| match step {
            Compiled::Select(parts) => parts.select(value),
            Compiled::Exclude(parts) => parts.exclude(value),
            Compiled::Member(..) | Compiled::Jq(_) => value,
        })
    }

    /// Runs all steps on `value`. Blocks while they run.
    ///
    /// Without steps, the value is returned unchanged. With steps, bytes are an error, because they have no attributes.
    pub fn apply(&self, value: Value, context: Context<'_>) -> Result<Value, TransformError> {
        self.apply_after(0, value, context)
    }

    /// Like [`Self::apply`], for an entry of a list. Leaves out the first steps if they take a member that the entry lacks,
    /// because lists rarely have an envelope around each entry.
    pub fn apply_to_entry(&self, entry: Value, context: Context<'_>) -> Result<Value, TransformError> {
        let lacks = |step: &&Compiled| matches!(step, Compiled::Member(path, _) if !path.is_in(&entry));
        let left_out = self.steps.iter().take_while(lacks).count();
        self.apply_after(left_out, entry, context)
    }

    /// Runs the steps after the first ones.
    fn apply_after(&self, first: usize, value: Value, context: Context<'_>) -> Result<Value, TransformError> {
        if self.steps.len() == first {
            return Ok(value);
        }
        if matches!(value, Value::Bytes(_)) {
            return Err(TransformError::BytesInput);
        }
        if self.steps.iter().any(|step| matches!(step, Compiled::Jq(_))) {
            // The recursion of jq depends on its input, so it needs a stack of known size.
            return jq::on_large_stack(|| self.run(first, value, context))
                .map_err(TransformError::Panicked)?;
        }
        self.run(first, value, context)
    }

    fn run(&self, first: usize, value: Value, context: Context<'_>) -> Result<Value, TransformError> {
        let at = |step| move |source| TransformError::Evaluation { step, source };
        self.steps.iter().enumerate().skip(first).try_fold(value, |value, (index, step)| match step {
            Compiled::Select(parts) => Ok(parts.select(value)),
            Compiled::Exclude(parts) => Ok(parts.exclude(value)),
            Compiled::Member(path, program) => path.take(value).or_else(|value| {
                let failed = jq::on_large_stack(|| program.run(&value, context));
                failed.map_err(TransformError::Panicked)?.map_err(at(index))
            }),
            Compiled::Jq(program) => program.run(&value, context).map_err(at(index)),
        })
    }
}

impl Step {
    /// Whether the step runs jq, so that its evaluation may take long.
    pub(crate) fn runs_jq(&self) -> bool {
        matches!(self, Self::Jq(text) if MemberPath::parse(text).is_none())
    }
}

impl Compiled {
    fn removes(&self) -> bool {
        matches!(self, Self::Select(_) | Self::Exclude(_))
    }
}

/// Calls `work` with the stack that evaluations of jq need, so that evaluations in it share one stack.
pub fn on_evaluation_stack<T>(work: impl FnOnce() -> T) -> Result<T, TransformError> {
    jq::on_large_stack(work).map_err(TransformError::Panicked)
}

#[cfg(test)]
mod tests;
