//! jq expressions, compiled once and evaluated within limits.
//!
//! The `jaq` crates parse and interpret the language. They cannot limit an evaluation, and a Rust thread cannot be
//! stopped from outside, so limits are built into the program itself. Before the syntax tree (and that of the standard
//! library) is compiled, calls of *tolls* are inserted at all places where work can repeat or values are kept
//! (`instrument`). Tolls are native functions that return their input. If a limit is exceeded, a toll ends the
//! evaluation with an exception that `try` cannot catch.
//!
//! The guarantees for any expression:
//!
//! - *Time*: an evaluation runs for at most `TIME_LIMIT`, plus the time of one native function for one value. That of a
//!   regular expression is limited by itself (`regex`).
//! - *Stack*: expressions run with a stack of known size; tolls compare its use to a limit.
//! - *Memory*: each created value is charged with its size, up to `VOLUME_LIMIT` per evaluation. Shared parts are
//!   charged each time they occur, so a value that is small in memory cannot become huge when it is printed or
//!   compared.
//! - *Output*: results are converted one by one, up to `OUTPUT_LIMIT`.
//!
//! Expressions have no access to the environment, files, modules or further input, and `debug` prints nothing.

mod alternatives;
mod cache;
mod compile;
mod convert;
mod describe;
mod error;
mod instrument;
mod library;
mod machine;
mod meter;
mod natives;
mod query;
mod regex;
mod resources;
mod search;
mod shape;
mod update;

use std::fmt;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use jaq_core::{Ctx, Vars};
use jaq_json::Val;

pub use cache::ProgramCache;
pub use compile::ExpressionError;
pub use error::{EvaluationError, Panicked, StopReason};
pub use query::Query;
pub use resources::{Context, ResourceError, ResourceReader};

use crate::payload::Value;
use machine::{Machine, Run};
use meter::Meter;

/// The maximum CPU time of one evaluation, without reads of other resources.
const TIME_LIMIT: Duration = Duration::from_secs(5);
/// The maximum size of all values that one evaluation creates, in bytes.
const VOLUME_LIMIT: usize = 256 << 20;
/// The maximum size of results: the bytes of texts, and [`convert::NODE`] bytes for each value.
const OUTPUT_LIMIT: usize = 32 << 20;
/// The stack of an evaluation, in bytes. Memory is allocated as the stack grows.
const STACK: usize = 64 << 20;
/// The additional size of a new stack, for the frames before the evaluation.
const STACK_RESERVE: usize = 4 << 20;
/// The maximum use of the stack at a toll. The rest is sufficient for the code between two tolls.
const STACK_LIMIT: usize = 32 << 20;

/// The origin of the text of an expression, which determines whether messages may quote it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// The text is from metadata.
    Metadata,
    /// A template inserted payload values into the text.
    Rendered,
}

/// A compiled expression.
pub(crate) struct Program {
    filter: jaq_core::Filter<Machine>,
    /// The text, if messages may quote it.
    source: Option<String>,
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Program").field("source", &self.source).finish_non_exhaustive()
    }
}

impl Program {
    pub(crate) fn compile(text: &str, origin: Origin) -> Result<Self, ExpressionError> {
        let filter = compile::filter(text)?;
        Ok(Self { filter, source: (origin == Origin::Metadata).then(|| text.to_owned()) })
    }

    /// Returns the result for `input`: null if there is no output, the output if there is one, otherwise an array of
    /// the outputs. Must run on the stack of [`on_large_stack`].
    pub(crate) fn run(&self, input: &Value, context: Context<'_>) -> Result<Value, EvaluationError> {
        self.run_metered(input, context.observed, &Meter::start(context.resources, TIME_LIMIT))
    }

    fn run_metered(
        &self,
        input: &Value,
        observed: Option<&Value>,
        meter: &Meter<'_>,
    ) -> Result<Value, EvaluationError> {
        let mut outputs = self.outputs(input, observed, meter)?;
        Ok(match outputs.len() {
            0 => Value::Null,
            1 => outputs.remove(0),
            _ => Value::Array(outputs),
        })
    }

    fn outputs(
        &self,
        input: &Value,
        observed: Option<&Value>,
        meter: &Meter<'_>,
    ) -> Result<Vec<Value>, EvaluationError> {
        let (mut budget, mut outputs) = (OUTPUT_LIMIT, Vec::new());
        self.each_output(input, observed, meter, |output| {
            outputs.push(convert::from_jq(output, &mut budget)?);
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(outputs)
    }

    fn each_output(
        &self,
        input: &Value,
        observed: Option<&Value>,
        meter: &Meter<'_>,
        mut take: impl FnMut(&Val) -> Result<ControlFlow<()>, EvaluationError>,
    ) -> Result<(), EvaluationError> {
        let to_jq =
            |value| convert::to_jq(value).map_err(|reason| EvaluationError::Failed(reason.to_owned()));
        let (input, observed) = (to_jq(input)?, observed.map_or(Ok(Val::Null), to_jq)?);
        let context = Ctx::new(Run { lut: &self.filter.lut, meter }, Vars::new([observed]));
        for output in self.filter.id.run::<Machine>((context, input)) {
            let output = output.map_err(|exception| match exception.get_err() {
                Ok(error) => EvaluationError::Failed(describe::error(error, self.source.as_deref())),
                // Only tolls raise exceptions that are not errors, and the meter has their cause.
                Err(_) => meter.failure(),
            })?;
            if take(&output)?.is_break() {
                return Ok(());
            }
            meter.step().map_err(|_| meter.failure())?;
        }
        Ok(())
    }
}

/// Calls `work` with the stack that evaluations need: the current one if it has enough space.
pub(crate) fn on_large_stack<T>(work: impl FnOnce() -> T) -> Result<T, Panicked> {
    on_stack(STACK, work)
}

/// Calls `work` with `size` bytes of stack. A new stack is slightly larger, so that nested calls with the same `size`
/// do not need another one.
fn on_stack<T>(size: usize, work: impl FnOnce() -> T) -> Result<T, Panicked> {
    // Unwinding cannot expose an inconsistent state, because the result is discarded.
    let call = AssertUnwindSafe(|| stacker::maybe_grow(size, size + STACK_RESERVE, work));
    catch_unwind(call).map_err(|_| Panicked)
}

#[cfg(test)]
mod tests;
