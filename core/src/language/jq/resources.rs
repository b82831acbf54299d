//! Reads of other resources by `resource("path")`.

use std::fmt;
use std::sync::Arc;

use crate::error::Categorized;
use crate::path::LogicalPath;
use crate::payload::Value;

/// The error of a [`ResourceReader`].
pub type ResourceError = Arc<dyn Categorized + Send + Sync>;

/// Reads other resources for the `resource("path")` function of jq.
///
/// It is called on a thread outside of any async runtime and may block. Its time does not count against the time limit
/// of the expression. The implementation is responsible for caching and the detection of cycles.
pub trait ResourceReader: Send + Sync {
    /// Returns the payload of the resource at `path`, like a complete read from the server.
    fn read(&self, path: &LogicalPath) -> Result<Value, ResourceError>;
}

impl fmt::Debug for dyn ResourceReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ResourceReader")
    }
}

/// The inputs of an evaluation in addition to the payload.
#[derive(Clone, Copy, Default)]
pub struct Context<'a> {
    /// The reader for `resource("path")`; without it, the function is an error.
    pub resources: Option<&'a dyn ResourceReader>,
    /// The value of the variable `$observed`; null if it is not set.
    pub observed: Option<&'a Value>,
}
