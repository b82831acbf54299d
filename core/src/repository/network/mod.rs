//! The transports through which libgit2 reaches http, https and SSH remotes.
//!
//! libgit2 implements the Git protocol, and calls a transport to exchange bytes. Ours use the HTTP client of the
//! library and `russh`, so that TLS, proxies, redirects and deadlines are the same as for all other connections.
//!
//! A [`Session`] is one fetch or push. libgit2 finds it by the address [`Session::address`].

mod failure;
mod http;
mod negotiation;
mod ssh;

use std::collections::HashMap;
use std::future::Future;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, OnceLock, Weak};

use bytes::Bytes;
use git2::transport::Transport;
use parking_lot::Mutex;
use tokio::runtime::{Builder, Runtime};

use self::http::HttpTransport;
use self::ssh::SshTransport;
use super::deadline::Deadline;
use super::remote::RemoteKind;
use super::{Remote, RepositoryError};

/// The scheme of the addresses that libgit2 gets. It selects our transports.
const SCHEME: &str = "declarest";

/// The most bytes that a remote may send before the content of a pack: its list of refs, and answers of the negotiation.
/// libgit2 holds them in memory, with two to three times this size. This is enough for some 100,000 refs.
const MAX_PREFACE: u64 = 32 << 20;

/// The sessions that libgit2 may connect to. The transports of libgit2 are global, so they find a session by number.
static SESSIONS: LazyLock<Mutex<HashMap<u64, Weak<Session>>>> = LazyLock::new(Mutex::default);

/// One fetch from a remote, or one push to it.
pub(super) struct Session {
    number: u64,
    remote: Remote,
    deadline: Deadline,
    /// The error for an expired deadline.
    timeout: RepositoryError,
    /// `None` only while it is dropped.
    runtime: Option<Runtime>,
    /// The first error. Later ones are its consequences.
    failure: Mutex<Option<RepositoryError>>,
    /// The bytes that the remote may still send.
    room: AtomicU64,
}

impl Session {
    /// Returns a session without connecting. It fails at `deadline` with `timeout`.
    pub fn new(
        remote: &Remote,
        deadline: Deadline,
        timeout: RepositoryError,
    ) -> Result<Arc<Self>, RepositoryError> {
        static NUMBERS: AtomicU64 = AtomicU64::new(0);
        let failed = |error: io::Error| RepositoryError::Git {
            action: format!("prepare the connection to {}", remote.url),
            reason: error.to_string(),
        };
        let runtime = Builder::new_current_thread().enable_all().build().map_err(failed)?;
        let session = Arc::new(Self {
            number: NUMBERS.fetch_add(1, Ordering::Relaxed),
            remote: remote.clone(),
            deadline,
            timeout,
            runtime: Some(runtime),
            failure: Mutex::default(),
            room: AtomicU64::new(MAX_PREFACE),
        });
        SESSIONS.lock().insert(session.number, Arc::downgrade(&session));
        Ok(session)
    }

    /// Returns the address of the remote for libgit2, which is valid as long as the session.
    pub fn address(&self) -> String {
        format!("{SCHEME}://{}/", self.number)
    }

    /// Ends the limit of what the remote sends, because the content of a pack has one of its own.
    pub fn pack_begins(&self) {
        self.room.store(u64::MAX, Ordering::Relaxed);
    }

    /// Counts a part of an answer of the remote. Fails if the remote must not send more.
    fn count(&self, part: &Bytes) -> io::Result<()> {
        let left = |room: u64| room.checked_sub(part.len() as u64);
        let counted = self.room.fetch_update(Ordering::Relaxed, Ordering::Relaxed, left);
        counted.map(drop).map_err(|_| {
            let url = self.remote.url.to_string();
            self.fail(RepositoryError::TooManyRefs { url, limit: MAX_PREFACE })
        })
    }

    /// Stores an error, unless there is one, and returns an error that stops libgit2.
    fn fail(&self, error: RepositoryError) -> io::Error {
        self.failure.lock().get_or_insert(error);
        io::Error::other("stopped")
    }

    /// Returns the first error, once.
    pub fn failure(&self) -> Option<RepositoryError> {
        self.failure.lock().take()
    }

    /// Runs `work` until the deadline.
    fn run<T>(&self, work: impl Future<Output = Result<T, RepositoryError>>) -> io::Result<T> {
        let Some(runtime) = &self.runtime else { return Err(io::ErrorKind::NotConnected.into()) };
        let outcome = runtime.block_on(self.deadline.run(work));
        outcome.unwrap_or_else(|| Err(self.timeout.clone())).map_err(|error| self.fail(error))
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        SESSIONS.lock().remove(&self.number);
        // Does not wait for running DNS lookups.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Makes our transports known to libgit2. Call it before each use of a remote, also of a local one.
pub(super) fn register() -> Result<(), RepositoryError> {
    static REGISTERED: OnceLock<Result<(), RepositoryError>> = OnceLock::new();
    REGISTERED.get_or_init(|| register_once().map_err(RepositoryError::git("register transports"))).clone()
}

#[allow(unsafe_code, reason = "the only way to give libgit2 a transport")]
fn register_once() -> Result<(), git2::Error> {
    // SAFETY: libgit2 requires that no transport is created while one is registered. This crate creates transports
    // only after `register`, which runs this function once and lets other threads wait for it.
    unsafe { git2::transport::register(SCHEME, transport) }
}

/// Returns the transport for a remote with the address of a session.
fn transport(remote: &git2::Remote<'_>) -> Result<Transport, git2::Error> {
    let session = remote.url().ok().and_then(session_at);
    let session = session.ok_or_else(|| git2::Error::from_str("the session has ended"))?;
    match session.remote.url.kind {
        RemoteKind::Ssh => Transport::smart(remote, false, SshTransport::new(session)),
        RemoteKind::Http | RemoteKind::Local => {
            let http = HttpTransport::new(&session).map_err(|error| stopped(&session.fail(error)))?;
            Transport::smart(remote, true, http)
        }
    }
}

fn session_at(address: &str) -> Option<Arc<Session>> {
    let number = address.strip_prefix(SCHEME)?.strip_prefix("://")?.trim_end_matches('/').parse().ok()?;
    SESSIONS.lock().get(&number)?.upgrade()
}

/// Moves the beginning of `part` to `buffer`, and returns its length.
fn take(part: &mut Bytes, buffer: &mut [u8]) -> usize {
    let length = part.len().min(buffer.len());
    buffer[..length].copy_from_slice(&part.split_to(length));
    length
}

/// Converts an error for libgit2. The session has the real one.
fn stopped(error: &io::Error) -> git2::Error {
    git2::Error::from_str(&error.to_string())
}
