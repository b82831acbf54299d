//! Values that the tasks of a run share, and that only one of them determines.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::OnceCell;

use crate::path::LogicalPath;

/// Values that are determined once per run, by path.
pub(super) type Once<T> = Arc<Mutex<HashMap<LogicalPath, Arc<OnceCell<T>>>>>;

/// Returns the cell of `path`. The first caller determines its value, and the others wait.
pub(super) fn cell<T>(known: &Once<T>, path: &LogicalPath) -> Arc<OnceCell<T>> {
    Arc::clone(known.lock().entry(path.clone()).or_default())
}
