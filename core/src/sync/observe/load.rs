//! Reading desired resources from the tree, ahead of the requests about them.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread::available_parallelism;

use futures::{Stream, StreamExt as _};
use tokio::sync::mpsc;

use super::desired::desired;
use crate::path::LogicalPath;
use crate::repository::ResourceFile;
use crate::sync::model::{Resource, Session, SyncError};

/// How many resources are read at once: each trip to the blocking pool costs more than one.
const BATCH: usize = 32;
/// How many batches may wait to be looked at. While the first answers are under way is the time to read.
const AHEAD: usize = 32;

/// What a file declares, or why that cannot be read.
type Loaded = (LogicalPath, Result<Resource, SyncError>);

/// The resources in `files`, roughly in their order, and the first of them at once. Trees block, so they are read on
/// the blocking pool, as many batches at a time as there are cores.
pub fn loaded(session: &Session, files: Vec<ResourceFile>) -> impl Stream<Item = Loaded> + use<> {
    let loaders = available_parallelism().map_or(1, usize::from).min(files.len().div_ceil(BATCH));
    let (sender, mut receiver) = mpsc::channel(AHEAD);
    let batches = Arc::new(Mutex::new(Batches { files: files.into_iter(), size: 1 }));
    for _ in 0..loaders {
        let (session, batches, sender) = (session.clone(), Arc::clone(&batches), sender.clone());
        // It ends with the files, or when the receiver is dropped.
        tokio::spawn(async move {
            while let Some(batch) = next(&batches) {
                if sender.send(load(&session, batch).await).await.is_err() {
                    return;
                }
            }
        });
    }
    futures::stream::poll_fn(move |context| receiver.poll_recv(context)).flat_map(futures::stream::iter)
}

struct Batches {
    files: std::vec::IntoIter<ResourceFile>,
    /// Of the next one.
    size: usize,
}

fn next(batches: &Mutex<Batches>) -> Option<Vec<ResourceFile>> {
    let mut batches = batches.lock().unwrap_or_else(PoisonError::into_inner);
    let size = std::mem::replace(&mut batches.size, BATCH);
    let batch: Vec<ResourceFile> = batches.files.by_ref().take(size).collect();
    (!batch.is_empty()).then_some(batch)
}

async fn load(session: &Session, batch: Vec<ResourceFile>) -> Vec<Loaded> {
    let session = session.clone();
    let paths: Vec<LogicalPath> = batch.iter().map(|file| file.path.clone()).collect();
    let read = move || batch.into_iter().map(|file| (file.path.clone(), desired(&session, file))).collect();
    tokio::task::spawn_blocking(read).await.unwrap_or_else(|error| {
        let reason = error.to_string();
        let lost = |path: LogicalPath| (path.clone(), Err(SyncError::Task(path, reason.clone())));
        paths.into_iter().map(lost).collect()
    })
}
