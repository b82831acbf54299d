//! Answers that the reads of one run share, so that it sends no read twice before it writes.
//!
//! Equal reads wait for one request. Most answers are dropped then, because each resource is read once. Answers about
//! candidates for deletion and for references are kept until the next write, because other reads ask the same: where a
//! parent is, and whether it still exists.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::OnceCell;

use crate::error::{Categorized as _, Category};
use crate::server::{Client, Request, Response, ServerError};
use crate::sync::model::ReadKey;

/// The maximum number of kept answers, and of bytes of their bodies. Reads beyond that are sent again.
const MAX_KEPT: usize = 4096;
const MAX_BYTES: usize = 8 << 20;

type Answer = Result<Response, ServerError>;

/// The reads of one run, by their requests.
#[derive(Default)]
pub(super) struct Asked(Mutex<Known>);

#[derive(Default)]
struct Known {
    reads: HashMap<ReadKey, Read>,
    /// The number of kept answers, and of the bytes of their bodies.
    kept: (usize, usize),
}

#[derive(Clone)]
enum Read {
    Sent(Arc<OnceCell<Answer>>),
    Kept(Box<Answer>),
}

impl Asked {
    /// Returns the answer to a read. Sends it, unless an equal one is under way, or its answer was kept.
    pub async fn answer(&self, request: &Request, keep: bool, client: &Client) -> Answer {
        let key = ReadKey::of(request);
        let read =
            self.0.lock().reads.entry(key.clone()).or_insert_with(|| Read::Sent(Arc::default())).clone();
        let mut is_own = false;
        let answer = match read {
            Read::Kept(answer) => *answer,
            Read::Sent(cell) => {
                let send = async {
                    is_own = true;
                    client.send(request).await
                };
                let answer = cell.get_or_init(|| send).await;
                self.0.lock().done(key, &cell, answer, keep);
                // Most reads are the only ones of their kind, so their answers need no copy.
                let taken =
                    Arc::try_unwrap(cell).map_or_else(|cell| cell.get().cloned(), OnceCell::into_inner);
                match taken {
                    Some(answer) => answer,
                    None => return client.send(request).await,
                }
            }
        };
        match answer {
            // An error has no secrets of the request that was sent. Other requests have other secrets.
            Err(error) if !is_own => match client.adopted(request, error) {
                Some(error) => Err(error),
                None => client.send(request).await,
            },
            answer => answer,
        }
    }

    /// Forgets all answers, because a write can change each of them.
    pub fn forget(&self) {
        *self.0.lock() = Known::default();
    }
}

impl Known {
    /// Keeps the answer of a read, or drops it. A read that began before a write leaves nothing.
    fn done(&mut self, key: ReadKey, cell: &Arc<OnceCell<Answer>>, answer: &Answer, keep: bool) {
        let is_current =
            matches!(self.reads.get(&key), Some(Read::Sent(current)) if Arc::ptr_eq(current, cell));
        if !is_current {
            return;
        }
        let bytes = answer.as_ref().map_or(0, |response| response.body.len());
        if keep && lasts(answer) && self.kept.0 < MAX_KEPT && self.kept.1 + bytes <= MAX_BYTES {
            self.kept = (self.kept.0 + 1, self.kept.1 + bytes);
            // A copy of the body holds no share of memory for which other reads wait.
            let copied = |response: &Response| {
                let body = Bytes::copy_from_slice(&response.body);
                Response { body, ..response.clone() }
            };
            let answer = answer.as_ref().map(copied).map_err(Clone::clone);
            self.reads.insert(key, Read::Kept(Box::new(answer)));
        } else {
            self.reads.remove(&key);
        }
    }
}

/// Whether the server would answer the same again.
fn lasts(answer: &Answer) -> bool {
    let is_final = |error: &ServerError| {
        error.status().is_some() && matches!(error.category(), Category::NotFound | Category::Validation)
    };
    answer.as_ref().map_or_else(is_final, |_| true)
}
