//! Caches the programs of rendered expressions.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;

use super::{ExpressionError, Origin, Program};

/// A cache of compiled expressions by their text. The least recently used one is removed first.
///
/// It is shared by all resources of a revision and can be used by many threads.
pub struct ProgramCache {
    capacity: usize,
    entries: Mutex<Entries>,
}

#[derive(Default)]
struct Entries {
    programs: HashMap<String, (u64, Arc<Program>)>,
    /// The number of uses. Each entry has the number of its last use.
    clock: u64,
}

impl ProgramCache {
    /// Creates an empty cache of at most `capacity` programs, but at least one.
    pub fn new(capacity: usize) -> Self {
        Self { capacity: capacity.max(1), entries: Mutex::default() }
    }

    /// The number of programs.
    pub fn len(&self) -> usize {
        self.entries.lock().programs.len()
    }

    /// Returns whether the cache is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the program of `text`. Errors are not cached.
    pub(crate) fn program(&self, text: &str) -> Result<Arc<Program>, ExpressionError> {
        if let Some(program) = self.entries.lock().used(text) {
            return Ok(program);
        }
        // Compile without the lock, because it takes long. Two threads may compile the same text.
        let program = Arc::new(Program::compile(text, Origin::Rendered)?);
        let mut entries = self.entries.lock();
        while entries.programs.len() >= self.capacity && !entries.programs.contains_key(text) {
            entries.forget_oldest();
        }
        entries.clock += 1;
        let entry = (entries.clock, Arc::clone(&program));
        entries.programs.insert(text.to_owned(), entry);
        Ok(program)
    }
}

impl Default for ProgramCache {
    /// Returns a cache of at most 1024 programs.
    fn default() -> Self {
        Self::new(1024)
    }
}

impl fmt::Debug for ProgramCache {
    /// Omits the texts, which contain payload values.
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
