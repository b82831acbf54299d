//! Single reads that showed what is desired, in the least memory: there may be as many as resources.

use std::sync::{Arc, Mutex, PoisonError};

use super::knowledge::{Answer, Exchange};
use crate::path::LogicalPath;
use crate::repository::Revision;
use crate::server::{Request, Response, ServerError};

/// Requests that differ in more than their path. Metadata makes a few, unless it puts what each resource holds into
/// their query or headers; such reads are not remembered.
const MAX_SHAPES: usize = 64;

/// The reads of a full run that showed their resource as it is desired at one revision, sorted by path.
#[derive(Debug)]
pub(super) struct Reads {
    revision: Revision,
    reads: Vec<Read>,
}

/// A read of a resource that showed it as it is desired.
#[derive(Clone, Debug)]
pub(super) struct Read {
    path: LogicalPath,
    /// `None` where it is the path of the resource.
    requested: Option<Box<str>>,
    /// All else of the request.
    shape: Arc<Request>,
    answer: Answer,
}

impl Read {
    /// The request that was sent.
    pub fn request(&self) -> Request {
        let path = self.requested.as_deref().unwrap_or(self.path.as_str()).to_owned();
        Request { path, ..self.shape.as_ref().clone() }
    }

    /// Whether `answer` is the same again.
    pub fn is_repeated_by(&self, answer: &Result<Response, ServerError>) -> bool {
        self.answer.is_repeated_by(answer)
    }
}

impl Reads {
    /// Whether they were made at `revision`.
    pub fn are_of(&self, revision: &Revision) -> bool {
        self.revision == *revision
    }

    pub const fn len(&self) -> usize {
        self.reads.len()
    }

    pub fn get(&self, index: usize) -> Option<&Read> {
        self.reads.get(index)
    }

    /// Where the read of the resource at `path` is.
    pub fn position(&self, path: &LogicalPath) -> Option<usize> {
        self.reads.binary_search_by(|read| read.path.cmp(path)).ok()
    }
}

/// Where a run collects its [`Reads`].
#[derive(Debug, Default)]
pub(super) struct Proofs(Mutex<Collected>);

#[derive(Debug, Default)]
struct Collected {
    reads: Vec<Read>,
    shapes: Vec<Arc<Request>>,
}

impl Proofs {
    /// `exchange` shows that the resource at `path` is as desired.
    pub fn add(&self, path: &LogicalPath, exchange: Exchange) {
        let Exchange { mut request, answer } = exchange;
        let requested = std::mem::take(&mut request.path);
        let requested = (requested != path.as_str()).then(|| requested.into_boxed_str());
        let mut collected = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(shape) = collected.shape(request) {
            collected.reads.push(Read { path: path.clone(), requested, shape, answer });
        }
    }

    /// What was collected at `revision`, beside what `earlier` runs did; `None` if that is nothing.
    pub fn collected(&self, revision: &Revision, earlier: Option<&Reads>) -> Option<Reads> {
        let collected = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        let mut reads = collected.reads;
        reads.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        if let Some(earlier) = earlier.filter(|earlier| earlier.are_of(revision)) {
            let known = |read: &&Read| reads.binary_search_by(|new| new.path.cmp(&read.path)).is_ok();
            let kept: Vec<Read> = earlier.reads.iter().filter(|read| !known(read)).cloned().collect();
            reads.extend(kept);
            // Two sorted runs, which the stable sort merges.
            reads.sort_by(|a, b| a.path.cmp(&b.path));
        }
        reads.shrink_to_fit();
        (!reads.is_empty()).then(|| Reads { revision: revision.clone(), reads })
    }
}

impl Collected {
    /// The one value that all requests of this `shape` share; `None` if there are too many shapes.
    fn shape(&mut self, shape: Request) -> Option<Arc<Request>> {
        if let Some(known) = self.shapes.iter().find(|known| ***known == shape) {
            return Some(Arc::clone(known));
        }
        if self.shapes.len() == MAX_SHAPES {
            return None;
        }
        let shape = Arc::new(shape);
        self.shapes.push(Arc::clone(&shape));
        Some(shape)
    }
}
