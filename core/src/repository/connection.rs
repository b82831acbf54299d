//! One connection to a remote: its checks, its deadline, and the translation of errors.

use std::cell::RefCell;
use std::sync::Arc;
use std::thread;

use git2::{ErrorClass, ErrorCode, RemoteCallbacks};

use super::deadline::Deadline;
use super::network::{self, Session};
use super::remote::RemoteKind;
use super::{Remote, RemoteAuth, RepositoryError};
use crate::error::clause;

/// The purpose of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    Fetch,
    Push,
}

impl Purpose {
    fn verb(self) -> &'static str {
        match self {
            Self::Fetch => "fetch",
            Self::Push => "push to",
        }
    }
}

/// Runs `job`, which connects to `remote`, on a separate thread, because it must not block a thread of a runtime. The
/// connection ends the job at its deadline.
pub(super) fn on_thread<T: Send>(
    remote: &Remote,
    purpose: Purpose,
    job: impl FnOnce() -> Result<T, RepositoryError> + Send,
) -> Result<T, RepositoryError> {
    let failed = |reason: String| RepositoryError::Git {
        action: format!("{} {}", purpose.verb(), remote.url),
        reason,
    };
    thread::scope(|scope| {
        let spawned = thread::Builder::new().name("git".to_owned()).spawn_scoped(scope, job);
        let joined = spawned.map_err(|error| failed(error.to_string()))?.join();
        joined.unwrap_or_else(|_| Err(failed("its thread ended without a result".to_owned())))
    })
}

/// The bytes that a fetch may receive, and the error if it receives more.
pub struct Left {
    pub bytes: u64,
    pub exceeded: RepositoryError,
}

/// One attempt to connect to a remote.
pub(super) struct Connection<'a> {
    pub remote: &'a Remote,
    purpose: Purpose,
    deadline: Deadline,
    /// The connection to a remote that is not on the local disk.
    session: Option<Arc<Session>>,
    failure: RefCell<Option<RepositoryError>>,
    left: Option<Left>,
}

impl<'a> Connection<'a> {
    /// Checks the configuration without network access.
    pub fn new(remote: &'a Remote, purpose: Purpose, deadline: Deadline) -> Result<Self, RepositoryError> {
        let mut connection =
            Self { remote, purpose, deadline, session: None, failure: RefCell::default(), left: None };
        connection.check_configuration()?;
        network::register()?;
        if remote.url.kind != RemoteKind::Local {
            let deadline = connection.deadline.clone();
            connection.session = Some(Session::new(remote, deadline, timeout(remote, purpose))?);
        }
        Ok(connection)
    }

    /// Returns the address for libgit2. Do not show or store it: that of a session is valid only for this connection.
    pub fn address(&self) -> String {
        match &self.session {
            Some(session) => session.address(),
            None => self.remote.url.recorded_text(),
        }
    }

    fn url(&self) -> String {
        self.remote.url.to_string()
    }

    fn check_configuration(&self) -> Result<(), RepositoryError> {
        if !git2::Branch::name_is_valid(&self.remote.branch).unwrap_or(false) {
            return Err(RepositoryError::InvalidBranch(self.remote.branch.clone()));
        }
        if self.remote.url.kind != RemoteKind::Http && self.remote.tls.is_set() {
            return Err(RepositoryError::TlsUnused(self.url()));
        }
        let ssh_key = matches!(self.remote.auth, RemoteAuth::Ssh { .. });
        if self.remote.url.kind == RemoteKind::Ssh && !ssh_key {
            return Err(self.missing("no SSH key is configured"));
        }
        Ok(())
    }

    /// Returns the callbacks that fetches and pushes share.
    pub fn callbacks(&self) -> RemoteCallbacks<'_> {
        let mut callbacks = RemoteCallbacks::new();
        callbacks
            .transfer_progress(|progress| {
                if let Some(session) = &self.session {
                    session.pack_begins();
                }
                self.in_time() && self.in_quota(progress.received_bytes() as u64)
            })
            .sideband_progress(|_| self.in_time());
        callbacks
    }

    /// Returns the outcome of the attempt. The error of a callback or the session replaces that of libgit2, because it
    /// is more precise.
    pub fn outcome<T>(&self, result: Result<T, git2::Error>) -> Result<T, RepositoryError> {
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        result.map_err(|error| {
            let failure = self.session.as_ref().and_then(|session| session.failure());
            failure.unwrap_or_else(|| self.explain(&error))
        })
    }

    /// Whether the deadline has not passed. If it has, [`Self::outcome`] returns the error for that.
    pub fn in_time(&self) -> bool {
        let in_time = !self.deadline.has_passed();
        if !in_time {
            self.failure.replace(Some(timeout(self.remote, self.purpose)));
        }
        in_time
    }

    /// Returns the connection, which receives only what is left of a quota.
    pub fn within(self, left: Left) -> Self {
        Self { left: Some(left), ..self }
    }

    fn in_quota(&self, received: u64) -> bool {
        match &self.left {
            Some(left) if received > left.bytes => {
                self.failure.replace(Some(left.exceeded.clone()));
                false
            }
            _ => true,
        }
    }

    fn missing(&self, configured: &'static str) -> RepositoryError {
        RepositoryError::CredentialsMissing { url: self.url(), configured }
    }

    /// Returns the error for a push that the remote or libgit2 rejected.
    pub fn rejected_push(&self, reason: &str) -> RepositoryError {
        let (branch, reason) = (self.remote.branch.clone(), clause(reason));
        RepositoryError::PushRejected { url: self.url(), branch, reason }
    }

    /// Translates an error of libgit2. It has few error codes, so class and text are evaluated, too.
    fn explain(&self, error: &git2::Error) -> RepositoryError {
        let (url, reason) = (self.url(), clause(error.message().trim_start()));
        let says = |texts: &[&str]| texts.iter().any(|text| reason.to_lowercase().contains(text));
        match (error.code(), error.class()) {
            (ErrorCode::NotFastForward, _) => self.rejected_push(&reason),
            _ if says(&["repository not found", "not appear to be a git repository"]) => {
                RepositoryError::RemoteMissing(url)
            }
            // The texts of ENOSPC and EDQUOT. libgit2 has no code for them.
            _ if says(&["no space left on device", "disk quota exceeded"]) => {
                RepositoryError::DiskFull { url, reason }
            }
            (ErrorCode::NotFound, _) | (_, ErrorClass::Os) if self.remote.url.kind == RemoteKind::Local => {
                RepositoryError::RemoteMissing(url)
            }
            // libgit2 reports this only for `shallow` lines, which end in a newline that it does not expect.
            (_, ErrorClass::Net) if says(&["invalid packet line"]) => RepositoryError::ShallowRemote(url),
            (_, ErrorClass::Net | ErrorClass::Os | ErrorClass::Indexer | ErrorClass::Zlib) => {
                RepositoryError::Network { url, reason }
            }
            _ => RepositoryError::Git { action: format!("{} {url}", self.purpose.verb()), reason },
        }
    }
}

/// Returns the error for an expired deadline.
fn timeout(remote: &Remote, purpose: Purpose) -> RepositoryError {
    let action = match purpose {
        Purpose::Fetch => "fetching",
        Purpose::Push => "pushing to",
    };
    RepositoryError::Timeout { url: remote.url.to_string(), action, branch: remote.branch.clone() }
}

#[cfg(test)]
#[path = "connection_tests.rs"]
mod tests;
