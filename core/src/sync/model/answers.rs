//! Answers that a run need not ask for again.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use url::Url;

use crate::server::{Request, Response};

/// So many answers, and bytes of their bodies, are kept for the run that has to look closer; it asks for the others
/// once more.
const MAX_AT_HAND: usize = 4096;
const MAX_BYTES_AT_HAND: usize = 32 << 20;

/// Answers that a run need not ask for again. Each serves once.
#[derive(Debug, Default)]
pub struct Answers {
    at_hand: Mutex<HashMap<Key, Response>>,
    /// Of the bodies of all that were kept.
    bytes: usize,
}

/// What distinguishes reads of one server.
type Key = (String, Vec<(String, String)>, Option<String>, Option<Box<Url>>);

fn key(request: &Request) -> Key {
    (request.path.clone(), request.query.clone(), request.accept.clone(), request.link.clone())
}

impl Answers {
    pub(crate) fn keep(&mut self, request: &Request, response: Response) {
        let bytes = self.bytes + response.body.len();
        let at_hand = self.at_hand.get_mut().unwrap_or_else(PoisonError::into_inner);
        if at_hand.len() < MAX_AT_HAND && bytes <= MAX_BYTES_AT_HAND {
            self.bytes = bytes;
            at_hand.insert(key(request), response);
        }
    }

    pub(crate) fn take(&self, request: &Request) -> Option<Response> {
        let mut at_hand = self.at_hand.lock().unwrap_or_else(PoisonError::into_inner);
        if at_hand.is_empty() { None } else { at_hand.remove(&key(request)) }
    }
}
