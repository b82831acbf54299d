//! The progress of a run, for callers that show it.

use std::fmt::Debug;

use super::Step;
use crate::path::LogicalPath;

/// Receives the progress of a run. Tasks call it concurrently, so it must not block. A resource that is tried again is
/// reported again.
pub trait Progress: Debug + Send + Sync {
    /// The resource at `path` was compared with the server, or the comparison failed.
    fn compared(&self, path: &LogicalPath);

    /// The action for the resource at `path` was executed with this effect; `None` if it failed.
    fn executed(&self, path: &LogicalPath, effect: Option<Step>);
}
