//! Programs of expressions that templates rendered.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use super::{ExpressionError, Origin, Program};

/// Compiled expressions by their text, the least recently used ones given up first.
///
/// Shared by all resources of a revision; safe to use from many threads.
pub struct ProgramCache {
    capacity: usize,
    entries: Mutex<Entries>,
}

#[derive(Default)]
struct Entries {
    programs: HashMap<String, (u64, Arc<Program>)>,
    /// Counts uses; the smaller the count of an entry, the longer it was not used.
    clock: u64,
}

impl ProgramCache {
    /// An empty cache of at most `capacity` programs, at least one.
    pub fn new(capacity: usize) -> Self {
        Self { capacity: capacity.max(1), entries: Mutex::default() }
    }

    /// How many programs are held.
    pub fn len(&self) -> usize {
        self.lock().programs.len()
    }

    /// Whether no program is held.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The program of `text`. Texts that do not compile are not remembered.
    pub(in super::super) fn program(&self, text: &str) -> Result<Arc<Program>, ExpressionError> {
        if let Some(program) = self.lock().used(text) {
            return Ok(program);
        }
        // Not under the lock: compiling takes long, and two threads that compile one text do no harm.
        let program = Arc::new(Program::compile(text, Origin::Rendered)?);
        let mut entries = self.lock();
        while entries.programs.len() >= self.capacity && !entries.programs.contains_key(text) {
            entries.forget_oldest();
        }
        entries.clock += 1;
        let entry = (entries.clock, Arc::clone(&program));
        entries.programs.insert(text.to_owned(), entry);
        Ok(program)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Entries> {
        // Every state between two calls is a valid one.
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for ProgramCache {
    /// Room for 1024 programs.
    fn default() -> Self {
        Self::new(1024)
    }
}

impl fmt::Debug for ProgramCache {
    /// Texts are not shown: they contain payload values.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProgramCache")
            .field("capacity", &self.capacity)
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}

impl Entries {
    fn used(&mut self, text: &str) -> Option<Arc<Program>> {
        let (used, program) = self.programs.get_mut(text)?;
        self.clock += 1;
        *used = self.clock;
        Some(Arc::clone(program))
    }

    fn forget_oldest(&mut self) {
        let oldest = self.programs.iter().min_by_key(|(_, (used, _))| *used).map(|(text, _)| text.clone());
        if let Some(oldest) = oldest {
            self.programs.remove(&oldest);
        }
    }
}
