//! jq expressions, compiled once and evaluated within limits.
//!
//! The `jaq` crates parse and interpret the language. They have no notion of fuel, and a Rust thread cannot
//! be stopped from outside, so limits are built into the program itself: before it is compiled, its syntax
//! tree (and that of jq's own library) is rewritten so that calls of *tolls*, native functions that pass
//! their input on, stand wherever work can repeat and wherever values are kept ([`instrument`]). A toll that
//! finds a limit exceeded ends the evaluation with an exception that `try` cannot catch.
//!
//! What this guarantees, whatever the expression:
//!
//! - *Time*: an evaluation computes for at most [`TIME_LIMIT`], plus what one native function needs for one value.
//! - *Stack*: expressions run with a stack of known size; tolls compare its use to a bound.
//! - *Memory*: building a value costs its size, and the costs of one evaluation are bounded by
//!   [`VOLUME_LIMIT`]. Costs count shared parts as often as they occur, so that no small value can be huge
//!   once it is printed or compared.
//! - *Output*: results are converted one by one and end at [`OUTPUT_LIMIT`].
//!
//! There is no environment, no file, no module, no further input, and `debug` prints nothing.

mod cache;
mod compile;
mod convert;
mod describe;
mod instrument;
mod library;
mod meter;
mod natives;
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
pub use meter::StopReason;

use super::{Context, ResourceError};
use crate::path::{LogicalPath, PathError};
use crate::payload::Value;
use meter::Meter;
use natives::{Machine, Run};

/// How long one evaluation may take, without the time that reads of other resources need.
const TIME_LIMIT: Duration = Duration::from_secs(5);
/// How many bytes of values one evaluation may build, counted as they are built.
const VOLUME_LIMIT: usize = 256 << 20;
/// How large results may be: text as its bytes, and [`convert::NODE`] bytes for each value.
const OUTPUT_LIMIT: usize = 32 << 20;
/// The stack of an evaluation. Memory is taken as the stack grows.
const STACK: usize = 64 << 20;
/// What a new stack has on top, for the frames between its start and an evaluation.
const STACK_RESERVE: usize = 4 << 20;
/// How much of the stack may be in use where a toll stands; what lies between two tolls fits the rest.
const STACK_LIMIT: usize = 32 << 20;

/// Why an evaluation gave no value.
#[derive(Clone, Debug)]
pub(super) enum Failure {
    Evaluation(String),
    Stopped(StopReason),
    Result(&'static str),
    ResourceOutsideList,
    ResourcePath(Option<PathError>),
    Resource(LogicalPath, ResourceError),
}

/// Where the text of an expression comes from, which decides whether messages may quote it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// It stands in metadata.
    Metadata,
    /// A template put payload values into it.
    Rendered,
}

/// A compiled expression.
pub(super) struct Program {
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
    pub(super) fn compile(text: &str, origin: Origin) -> Result<Self, ExpressionError> {
        let filter = compile::filter(text)?;
        Ok(Self { filter, source: (origin == Origin::Metadata).then(|| text.to_owned()) })
    }

    /// The result for `input`: null without output, the output if there is one, else an array of them.
    /// Must run on the stack of [`on_large_stack`].
    pub(super) fn run(&self, input: &Value, context: Context<'_>) -> Result<Value, Failure> {
        self.run_metered(input, &Meter::start(context.resources, TIME_LIMIT))
    }

    fn run_metered(&self, input: &Value, meter: &Meter<'_>) -> Result<Value, Failure> {
        let mut budget = OUTPUT_LIMIT;
        let mut outputs = Vec::new();
        self.each_output(input, meter, |output| {
            outputs.push(convert::from_jq(output, &mut budget)?);
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(match outputs.len() {
            0 => Value::Null,
            1 => outputs.remove(0),
            _ => Value::Array(outputs),
        })
    }

    /// Whether some output for `input` is neither null nor false; what would follow it is not computed.
    /// Must run on the thread of [`on_large_stack`].
    pub(super) fn holds(&self, input: &Value) -> Result<bool, Failure> {
        let mut holds = false;
        self.each_output(input, &Meter::start(None, TIME_LIMIT), |output| {
            holds = !matches!(output, Val::Null | Val::Bool(false));
            Ok(if holds { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        })?;
        Ok(holds)
    }

    fn each_output(
        &self,
        input: &Value,
        meter: &Meter<'_>,
        mut take: impl FnMut(&Val) -> Result<ControlFlow<()>, Failure>,
    ) -> Result<(), Failure> {
        let input = convert::to_jq(input).map_err(|reason| Failure::Evaluation(reason.to_owned()))?;
        let context = Ctx::new(Run { lut: &self.filter.lut, meter }, Vars::new([]));
        for output in self.filter.id.run::<Machine>((context, input)) {
            let output = output.map_err(|exception| match exception.get_err() {
                Ok(error) => Failure::Evaluation(describe::error(error, self.source.as_deref())),
                // Tolls say why they ended the evaluation; nothing else raises exceptions that are no errors.
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

/// The interpreter died of a mistake of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the jq interpreter panicked; please report the expression")]
pub struct Panicked;

/// Calls `work` with the stack that evaluations need: the present one where enough of it is left.
pub(super) fn on_large_stack<T>(work: impl FnOnce() -> T) -> Result<T, Panicked> {
    on_stack(STACK, work)
}

/// Calls `work` with `size` bytes of stack. A new stack is a little larger, so that what runs on it may
/// ask for `size` again without getting yet another one.
fn on_stack<T>(size: usize, work: impl FnOnce() -> T) -> Result<T, Panicked> {
    // Nothing that unwinding could leave half done is looked at again: the result is lost.
    let call = AssertUnwindSafe(|| stacker::maybe_grow(size, size + STACK_RESERVE, work));
    catch_unwind(call).map_err(|_| Panicked)
}

#[cfg(test)]
mod tests;
