//! What the server was asked: log, counts, and the peak of requests open at once.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// One request as the server saw it.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// Counts up from 1 for the life of the server.
    pub sequence: u64,
    pub method: String,
    /// Decoded, without the query and without a trailing slash.
    pub path: String,
    /// None while the answer is pending, and for ever when the client hung up before it.
    pub status: Option<u16>,
    /// Only when the server keeps bodies, and the body was JSON.
    pub body: Option<Value>,
}

impl Request {
    pub fn is_write(&self) -> bool {
        is_write(&self.method)
    }
}

impl std::fmt::Display for Request {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.method, self.path)
    }
}

fn is_write(method: &str) -> bool {
    !matches!(method, "GET" | "HEAD" | "OPTIONS")
}

/// Requests by method and path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts(BTreeMap<(String, String), usize>);

impl Counts {
    pub fn total(&self) -> usize {
        self.0.values().sum()
    }

    pub fn of(&self, method: &str, path: &str) -> usize {
        self.0.get(&(method.to_owned(), path.to_owned())).copied().unwrap_or(0)
    }

    /// All requests of one method, whatever their path.
    pub fn method(&self, method: &str) -> usize {
        self.iter().filter(|(other, ..)| *other == method).map(|(.., count)| count).sum()
    }

    /// All requests that change something, or tried to.
    pub fn writes(&self) -> usize {
        self.iter().filter(|(method, ..)| is_write(method)).map(|(.., count)| count).sum()
    }

    /// Method, path and count, ordered by method and path.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str, usize)> {
        self.0.iter().map(|((method, path), count)| (method.as_str(), path.as_str(), *count))
    }

    pub fn to_json(&self) -> Value {
        let entries: Vec<Value> = self
            .iter()
            .map(|(method, path, count)| json!({"method": method, "path": path, "count": count}))
            .collect();
        json!({"total": self.total(), "writes": self.writes(), "requests": entries})
    }
}

#[derive(Debug, Default)]
pub struct Journal {
    requests: Vec<Request>,
    last_sequence: u64,
    open: usize,
    peak: usize,
}

impl Journal {
    /// Notes an arrival and returns its sequence number.
    pub fn arrive(&mut self, method: &str, path: &str) -> u64 {
        self.last_sequence += 1;
        self.open += 1;
        self.peak = self.peak.max(self.open);
        self.requests.push(Request {
            sequence: self.last_sequence,
            method: method.to_owned(),
            path: path.to_owned(),
            status: None,
            body: None,
        });
        self.last_sequence
    }

    pub fn note_body(&mut self, sequence: u64, body: &Value) {
        if let Some(request) = self.find(sequence) {
            request.body = Some(body.clone());
        }
    }

    pub fn answer(&mut self, sequence: u64, status: u16) {
        if let Some(request) = self.find(sequence) {
            request.status = Some(status);
        }
    }

    pub fn leave(&mut self) {
        self.open -= 1;
    }

    pub fn reset(&mut self) {
        self.requests.clear();
        self.peak = self.open;
    }

    pub fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        for request in &self.requests {
            *counts.0.entry((request.method.clone(), request.path.clone())).or_default() += 1;
        }
        counts
    }

    pub fn log(&self) -> Vec<Request> {
        self.requests.clone()
    }

    pub fn open(&self) -> usize {
        self.open
    }

    pub fn peak(&self) -> usize {
        self.peak
    }

    /// None when a reset came between arrival and answer.
    fn find(&mut self, sequence: u64) -> Option<&mut Request> {
        let index = self.requests.binary_search_by_key(&sequence, |request| request.sequence).ok()?;
        self.requests.get_mut(index)
    }
}
