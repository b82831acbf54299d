//! Answers that a run need not ask for again.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use url::Url;

use crate::server::{Request, Response, ServerError};

/// So many answers, and bytes of their bodies, are kept for the run that has to look closer; it asks for the others
/// once more.
const MAX_AT_HAND: usize = 4096;
const MAX_BYTES_AT_HAND: usize = 32 << 20;

/// Answers that a run need not ask for again. Each serves once.
#[derive(Debug, Default)]
pub struct Answers(Mutex<AtHand>);

#[derive(Debug, Default)]
struct AtHand {
    answers: HashMap<Key, Result<Response, ServerError>>,
    /// Of the bodies.
    bytes: usize,
}

/// What distinguishes reads of one server.
type Key = (String, Vec<(String, String)>, Option<String>, Option<Box<Url>>);

fn key(request: &Request) -> Key {
    (request.path.clone(), request.query.clone(), request.accept.clone(), request.link.clone())
}

impl Answers {
    pub(crate) fn keep(&self, request: &Request, answer: Result<Response, ServerError>) {
        let bytes = answer.as_ref().map_or(0, |response| response.body.len());
        let mut at_hand = self.at_hand();
        if at_hand.answers.len() < MAX_AT_HAND && at_hand.bytes + bytes <= MAX_BYTES_AT_HAND {
            at_hand.bytes += bytes;
            at_hand.answers.insert(key(request), answer);
        }
    }

    pub(crate) fn take(&self, request: &Request) -> Option<Result<Response, ServerError>> {
        let mut at_hand = self.at_hand();
        if at_hand.answers.is_empty() { None } else { at_hand.answers.remove(&key(request)) }
    }

    fn at_hand(&self) -> MutexGuard<'_, AtHand> {
        // Every state between two calls is a valid one.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
