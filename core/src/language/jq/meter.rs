//! Measures one evaluation against its limits.

use std::cell::{Cell, RefCell};
use std::hint::black_box;
use std::time::Duration;

use jaq_json::Val;
#[cfg(unix)]
use rustix::time::{ClockId, clock_gettime};

use super::resources::ResourceReader;
use super::{EvaluationError, STACK_LIMIT, StopReason, VOLUME_LIMIT};

/// The maximum nesting of values and length of paths in an expression. Payloads nest less.
pub(super) const MAX_NESTING: usize = 512;

/// The number of steps after which the clock is read.
const STEPS_PER_CLOCK: u32 = 64;
/// The clock is also read after each charge of more bytes than this.
const BYTES_PER_CLOCK: usize = 4096;

/// The most work of one search with a regular expression: the bytes of the text, times the bytes of the compiled
/// expression. The worst expressions need 0.5 ns for each unit, and one match may take two searches, so this is less than
/// the time limit.
const SEARCH_LIMIT: u64 = 1 << 32;

/// The maximum length of an array that is searched in another one by `.[…]`.
const MAX_SEARCHED: usize = 64;

/// The maximum number of parameters, variables and labels that recursive calls keep. They are dropped by recursion, which
/// needs less than 160 bytes of the stack for each one.
const MAX_BINDINGS: usize = 200_000;

/// The maximum bytes of a piece of one byte: a value, its buffer, and the object that describes a match.
pub(super) const PIECE: usize = 64;

/// The bytes of a value in addition to its text.
const NODE: usize = 16;
/// The bytes of an object without its members.
const OBJECT: usize = 64;
/// The bytes of a member in addition to its key and value.
const MEMBER: usize = 32;

/// The evaluation ended; [`Meter::failure`] returns the cause.
#[derive(Debug)]
pub(super) struct Ended;

/// The counters of one evaluation, on the thread that started it.
pub(super) struct Meter<'a> {
    pub(super) resources: Option<&'a dyn ResourceReader>,
    /// The deadline in the time of [`computed`].
    deadline: Cell<Duration>,
    steps: Cell<u32>,
    bindings_left: Cell<usize>,
    volume_left: Cell<usize>,
    stack_base: usize,
    failure: RefCell<Option<EvaluationError>>,
}

impl<'a> Meter<'a> {
    pub(super) fn start(resources: Option<&'a dyn ResourceReader>, time: Duration) -> Self {
        Self {
            resources,
            deadline: Cell::new(computed() + time),
            steps: Cell::new(0),
            bindings_left: Cell::new(MAX_BINDINGS),
            volume_left: Cell::new(VOLUME_LIMIT),
            stack_base: stack_position(),
            failure: RefCell::new(None),
        }
    }

    /// Returns the cause of the end of the evaluation.
    pub(super) fn failure(&self) -> EvaluationError {
        let failure = self.failure.borrow().clone();
        failure.unwrap_or_else(|| EvaluationError::Failed("it ended without a reason".to_owned()))
    }

    /// Ends the evaluation; the first cause is kept.
    pub(super) fn end(&self, failure: EvaluationError) -> Ended {
        self.failure.borrow_mut().get_or_insert(failure);
        Ended
    }

    fn stop(&self, reason: StopReason) -> Ended {
        self.end(EvaluationError::Stopped(reason))
    }

    /// Counts one step, and checks the stack and, at intervals, the clock.
    pub(super) fn step(&self) -> Result<(), Ended> {
        if self.stack_base.abs_diff(stack_position()) > STACK_LIMIT {
            return Err(self.stop(StopReason::Depth));
        }
        let steps = self.steps.get().wrapping_add(1);
        self.steps.set(steps);
        if steps.is_multiple_of(STEPS_PER_CLOCK) { self.look_at_the_clock() } else { Ok(()) }
    }

    fn look_at_the_clock(&self) -> Result<(), Ended> {
        if computed() > self.deadline.get() { Err(self.stop(StopReason::Time)) } else { Ok(()) }
    }

    /// Charges `bytes` of created values.
    pub(super) fn charge(&self, bytes: usize) -> Result<(), Ended> {
        let Some(left) = self.volume_left.get().checked_sub(bytes) else {
            return Err(self.stop(StopReason::Memory));
        };
        self.volume_left.set(left);
        if bytes > BYTES_PER_CLOCK { self.look_at_the_clock() } else { Ok(()) }
    }

    /// Checks the clock before a search with a regular expression, and the work of the search against
    /// [`SEARCH_LIMIT`].
    pub(super) fn search(&self, work: u64) -> Result<(), Ended> {
        if work > SEARCH_LIMIT { Err(self.stop(StopReason::Search)) } else { self.look_at_the_clock() }
    }

    /// Counts `bindings` that a call keeps until the calls in it have ended.
    pub(super) fn keep_bindings(&self, bindings: usize) -> Result<(), Ended> {
        let Some(left) = self.bindings_left.get().checked_sub(bindings) else {
            return Err(self.stop(StopReason::Depth));
        };
        self.bindings_left.set(left);
        Ok(())
    }

    /// Checks the length of an array that is searched in another one.
    pub(super) fn look_for(&self, length: usize) -> Result<(), Ended> {
        if length > MAX_SEARCHED { Err(self.stop(StopReason::Search)) } else { Ok(()) }
    }

    /// Charges a value with all of its parts, because it becomes a part of another one.
    pub(super) fn hold(&self, value: &Val) -> Result<(), Ended> {
        let left = self.volume_left.get();
        match deep_size(value, left, MAX_NESTING) {
            Ok(size) => self.charge(size),
            Err(reason) => Err(self.stop(reason)),
        }
    }

    /// Checks the length of a path, which consists of `nodes`.
    pub(super) fn path(&self, mut nodes: impl Iterator) -> Result<(), Ended> {
        if nodes.nth(MAX_NESTING).is_some() { Err(self.stop(StopReason::Depth)) } else { Ok(()) }
    }

    /// Runs `work` without counting its time.
    pub(super) fn without_clock<T>(&self, work: impl FnOnce() -> T) -> T {
        let start = computed();
        let result = work();
        self.deadline.set(self.deadline.get() + computed().saturating_sub(start));
        result
    }
}

/// Returns the CPU time of this thread, so the result does not depend on the load of the machine.
#[cfg(unix)]
fn computed() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    // Seconds and nanoseconds are never negative.
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or_default())
}

/// Returns the time since the first call. The standard library of Windows has no clock of a thread.
#[cfg(not(unix))]
fn computed() -> Duration {
    static START: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
    START.get_or_init(std::time::Instant::now).elapsed()
}

/// Returns the size of a copy of `value` that shares its parts.
pub(super) fn shallow_size(value: &Val) -> usize {
    match value {
        Val::Null | Val::Bool(_) | Val::Num(_) => NODE,
        Val::BStr(text) | Val::TStr(text) => NODE + text.len(),
        Val::Arr(items) => NODE.saturating_mul(items.len() + 1),
        Val::Obj(members) => OBJECT.saturating_add(members.len().saturating_mul(NODE + MEMBER)),
    }
}

fn deep_size(value: &Val, limit: usize, depth: usize) -> Result<usize, StopReason> {
    let add = |sum: usize, part: &Val| {
        let depth = depth.checked_sub(1).ok_or(StopReason::Depth)?;
        let left = limit.checked_sub(sum).ok_or(StopReason::Memory)?;
        Ok(sum + deep_size(part, left, depth)?)
    };
    let size = match value {
        Val::Arr(items) => items.iter().try_fold(NODE, add)?,
        Val::Obj(members) => {
            members.iter().try_fold(OBJECT, |sum, (key, member)| add(add(sum + MEMBER, key)?, member))?
        }
        _ => shallow_size(value),
    };
    if size > limit { Err(StopReason::Memory) } else { Ok(size) }
}

/// Returns the current position in the stack. The stack grows in one direction, so the difference of two positions is
/// the size between them.
#[inline(never)]
fn stack_position() -> usize {
    let marker = 0_u8;
    std::ptr::from_ref(black_box(&marker)).addr()
}
