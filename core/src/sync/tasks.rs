//! The tasks of a run: waits for the next result, and runs blocking work and jq on suitable threads.

use tokio::task::{JoinError, JoinSet};

use super::model::{Resource, SyncError};
use crate::metadata::transform::on_evaluation_stack;
use crate::path::LogicalPath;

/// Waits for the next task to end and returns its result, or `None` if no task is left. If the task panicked, the
/// panic is resumed in the caller.
pub(super) async fn next<T: 'static>(running: &mut JoinSet<T>) -> Option<T> {
    match running.join_next().await?.map_err(JoinError::try_into_panic) {
        Ok(made) => Some(made),
        Err(Ok(panic)) => std::panic::resume_unwind(panic),
        // The task was aborted. This happens only at the end of the run.
        Err(Err(_)) => None,
    }
}

/// Runs blocking or long work for the resource at `path` on the blocking pool.
pub(super) async fn blocking<T: Send + 'static>(
    path: LogicalPath,
    work: impl FnOnce() -> Result<T, SyncError> + Send + 'static,
) -> Result<T, SyncError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(SyncError::Task(path, error.to_string())))
}

/// Evaluates rules of `resource`. Rules with jq run on the blocking pool, on a stack that is large enough for jq.
pub(super) async fn evaluated<T: Send + 'static>(
    resource: Resource,
    work: impl FnOnce(&Resource) -> Result<T, SyncError> + Send + 'static,
) -> Result<T, SyncError> {
    if !resource.rules.runs_jq() {
        return work(&resource);
    }
    let path = resource.path.clone();
    let work = move || {
        let done = on_evaluation_stack(|| work(&resource));
        done.map_err(|source| SyncError::Task(resource.path.clone(), source.to_string()))?
    };
    blocking(path, work).await
}
