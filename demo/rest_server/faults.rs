//! The faults of the server, and the credentials that it asks for.

use std::time::Duration;

use axum::http::HeaderMap;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use tokio::sync::watch;

use super::pattern;

/// Selects requests by method and path.
#[derive(Clone, Debug)]
pub struct Matcher {
    method: Option<String>,
    path: String,
}

impl Matcher {
    /// Every request.
    pub fn any() -> Matcher {
        Matcher::path("/**")
    }

    /// Requests of one method.
    pub fn method(method: &str) -> Matcher {
        Matcher::new(method, "/**")
    }

    /// Requests of any method to the paths of a pattern: `*` is one segment, a last `**` any rest.
    pub fn path(pattern: &str) -> Matcher {
        Matcher { method: None, path: pattern.to_owned() }
    }

    pub fn new(method: &str, pattern: &str) -> Matcher {
        Matcher { method: Some(method.to_owned()), path: pattern.to_owned() }
    }

    fn matches(&self, method: &str, path: &str) -> bool {
        self.method.as_deref().is_none_or(|wanted| wanted.eq_ignore_ascii_case(method))
            && pattern::matches(&self.path, path)
    }
}

/// When a failure strikes: instead of the effect, or after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    Before,
    After,
}

/// Stands for the status of an answer that breaks off.
pub const CUT: u16 = 0;

#[derive(Debug)]
struct Failure {
    matcher: Matcher,
    status: u16,
    left: usize,
    moment: Moment,
}

/// Requests wait as long as this lives.
#[must_use = "dropping it lets the requests go on"]
#[derive(Debug)]
pub struct Held(
    #[allow(dead_code, reason = "only its drop matters: it closes the channel")] watch::Sender<()>,
);

#[derive(Debug, Default)]
pub struct Rules {
    failures: Vec<Failure>,
    holds: Vec<(Matcher, watch::Receiver<()>)>,
    headers: Vec<(String, String)>,
    pub latency: Duration,
    /// A collection whose list shows an empty first page and says that there is more, but not where.
    pub paginated: Option<String>,
}

impl Rules {
    pub fn add_failure(&mut self, matcher: Matcher, status: u16, times: usize, moment: Moment) {
        self.failures.push(Failure { matcher, status, left: times, moment });
    }

    pub fn clear_failures(&mut self) {
        self.failures.clear();
    }

    /// Uses up one of the first failure that matches; earlier rules go first.
    pub fn strike(&mut self, method: &str, path: &str) -> Option<(u16, Moment)> {
        let failure = self.failures.iter_mut().find(|f| f.left > 0 && f.matcher.matches(method, path))?;
        failure.left -= 1;
        Some((failure.status, failure.moment))
    }

    pub fn hold(&mut self, matcher: Matcher) -> Held {
        let (sender, receiver) = watch::channel(());
        self.holds.push((matcher, receiver));
        Held(sender)
    }

    /// Channels whose closing the request has to wait for.
    pub fn holds(&mut self, method: &str, path: &str) -> Vec<watch::Receiver<()>> {
        self.holds.retain(|(_, receiver)| receiver.has_changed().is_ok());
        let matching = self.holds.iter().filter(|(matcher, _)| matcher.matches(method, path));
        matching.map(|(_, receiver)| receiver.clone()).collect()
    }

    pub fn require_basic(&mut self, user: &str, password: &str) {
        let credentials = STANDARD.encode(format!("{user}:{password}"));
        self.require_header("authorization", &format!("Basic {credentials}"));
    }

    pub fn require_header(&mut self, name: &str, value: &str) {
        self.headers.retain(|(other, _)| !other.eq_ignore_ascii_case(name));
        self.headers.push((name.to_owned(), value.to_owned()));
    }

    pub fn require_nothing(&mut self) {
        self.headers.clear();
    }

    /// Whether the request has every header that is asked for.
    pub fn admits(&self, headers: &HeaderMap) -> bool {
        self.headers
            .iter()
            .all(|(name, value)| headers.get(name).is_some_and(|given| given.as_bytes() == value.as_bytes()))
    }
}
