//! One connection to a remote: credentials, host keys, certificates, relay, deadline, and the translation of errors.

use std::cell::{Cell, RefCell};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use git2::cert::Cert;
use git2::{CertificateCheckStatus, Cred, CredentialType, ErrorClass, ErrorCode, RemoteCallbacks};
use url::Url;

use super::known_hosts::host_and_port;
use super::relay::Relay;
use super::remote::RemoteKind;
use super::{HostKey, HostKeyError, KnownHosts, Remote, RemoteAuth, RepositoryError};
use crate::secrets::Secret;

/// The time after the deadline in which a connection may still report its own error.
const GRACE: Duration = Duration::from_millis(500);

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

/// Runs `job`, which connects to `remote`, on a separate thread, and returns at `deadline` even if the connection
/// hangs. The thread then lasts until the connection ends.
pub(super) fn until<T: Send + 'static>(
    deadline: Instant,
    remote: &Remote,
    purpose: Purpose,
    job: impl FnOnce() -> Result<T, RepositoryError> + Send + 'static,
) -> Result<T, RepositoryError> {
    let (done, outcome) = mpsc::sync_channel(1);
    let spawned = thread::Builder::new().name("git".to_owned()).spawn(move || {
        // After the deadline there is no receiver.
        let _ = done.send(job());
    });
    let failed = |reason: String| RepositoryError::Git {
        action: format!("{} {}", purpose.verb(), remote.url),
        reason,
    };
    spawned.map_err(|error| failed(error.to_string()))?;
    let patience = deadline.saturating_duration_since(Instant::now()) + GRACE;
    match outcome.recv_timeout(patience) {
        Ok(result) => result,
        Err(RecvTimeoutError::Timeout) => Err(timeout(remote, purpose)),
        Err(RecvTimeoutError::Disconnected) => Err(failed("its thread ended without a result".to_owned())),
    }
}

/// One attempt to connect to a remote.
pub(super) struct Connection<'a> {
    pub remote: &'a Remote,
    purpose: Purpose,
    deadline: Instant,
    /// A local relay, for connections that libgit2 does not support.
    relay: Option<Relay>,
    failure: RefCell<Option<RepositoryError>>,
    /// Whether the credentials were sent. A second request for them means that they were rejected.
    offered: Cell<bool>,
}

impl<'a> Connection<'a> {
    /// Checks the configuration without network access, and starts a relay if necessary.
    pub fn new(remote: &'a Remote, purpose: Purpose, deadline: Instant) -> Result<Self, RepositoryError> {
        let (failure, offered) = (RefCell::default(), Cell::new(false));
        let mut connection = Self { remote, purpose, deadline, relay: None, failure, offered };
        connection.check_configuration()?;
        if let Some(target) = remote.relayed() {
            connection.relay = Some(Relay::start(remote, target, deadline, timeout(remote, purpose))?);
        }
        Ok(connection)
    }

    /// Returns the address for the Git library. Do not show or store it: the address of a relay is valid only for
    /// this connection.
    pub fn address(&self) -> String {
        match &self.relay {
            Some(relay) => relay.address().into(),
            None => self.remote.url.transport_text(self.remote.user()),
        }
    }

    fn url(&self) -> String {
        self.remote.url.to_string()
    }

    fn check_configuration(&self) -> Result<(), RepositoryError> {
        if !git2::Branch::name_is_valid(&self.remote.branch).unwrap_or(false) {
            return Err(RepositoryError::InvalidBranch { branch: self.remote.branch.clone() });
        }
        if self.remote.url.kind != RemoteKind::Http && self.remote.tls.is_set() {
            return Err(RepositoryError::TlsUnused { url: self.url() });
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
            .credentials(|url, _, kinds| self.credentials(url, kinds).map_err(|error| self.fail(error)))
            .certificate_check(|certificate, _| {
                self.certificate(certificate).map_err(|error| self.fail(error))
            })
            .transfer_progress(|_| self.in_time())
            .sideband_progress(|_| self.in_time())
            .update_tips(|_, _, _| self.in_time());
        callbacks
    }

    /// Returns the outcome of the attempt. The error of a callback or the relay replaces that of libgit2, because it
    /// is more precise.
    pub fn outcome<T>(&self, result: Result<T, git2::Error>) -> Result<T, RepositoryError> {
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        result.map_err(|error| {
            let relayed = self.relay.as_ref().and_then(Relay::failure);
            relayed.unwrap_or_else(|| self.explain(&error))
        })
    }

    /// Stores `error` for [`Self::outcome`] and returns an error that stops libgit2.
    pub fn fail(&self, error: RepositoryError) -> git2::Error {
        let stop = git2::Error::new(ErrorCode::User, ErrorClass::Callback, "stopped");
        self.failure.borrow_mut().get_or_insert(error);
        stop
    }

    pub fn in_time(&self) -> bool {
        let in_time = Instant::now() < self.deadline;
        if !in_time {
            self.fail(timeout(self.remote, self.purpose));
        }
        in_time
    }

    /// Returns the credentials that libgit2 asks for. A second request for them means that they were rejected.
    fn credentials(&self, url: &str, kinds: CredentialType) -> Result<Cred, RepositoryError> {
        self.check_host(url)?;
        let user = self.remote.user();
        if kinds.contains(CredentialType::USERNAME) {
            return Cred::username(user).map_err(RepositoryError::git("prepare the user name"));
        }
        if self.offered.replace(true) {
            return Err(self.rejected());
        }
        match &self.remote.auth {
            RemoteAuth::Basic { password: secret, .. } | RemoteAuth::Token { token: secret, .. }
                if kinds.contains(CredentialType::USER_PASS_PLAINTEXT) =>
            {
                Cred::userpass_plaintext(user, secret.expose())
                    .map_err(RepositoryError::git("prepare the credentials"))
            }
            RemoteAuth::Ssh { private_key, passphrase, .. } if kinds.contains(CredentialType::SSH_KEY) => {
                let passphrase = passphrase.as_ref().map(Secret::expose);
                Cred::ssh_key_from_memory(user, None, private_key.expose(), passphrase)
                    .map_err(RepositoryError::git("prepare the private key"))
            }
            RemoteAuth::None => Err(self.missing("none are configured")),
            RemoteAuth::Basic { .. } => {
                Err(self.missing("a password is configured, which it does not accept"))
            }
            RemoteAuth::Token { .. } => Err(self.missing("a token is configured, which it does not accept")),
            RemoteAuth::Ssh { .. } => Err(self.missing("an SSH key is configured, which it does not accept")),
        }
    }

    /// Checks that the configured host asks for the credentials. After a redirect it may be another one. A redirect
    /// from http to https on the same host is allowed; libgit2 rejects the reverse. A relay does not connect to other
    /// hosts.
    fn check_host(&self, url: &str) -> Result<(), RepositoryError> {
        if self.remote.url.kind != RemoteKind::Http {
            return Ok(());
        }
        let asking = Url::parse(url).ok();
        let relay = self.relay.as_ref().map(|relay| relay.address().origin());
        if relay.is_some() && relay == asking.as_ref().map(Url::origin) {
            return Ok(());
        }
        let host = asking.as_ref().and_then(Url::host_str).unwrap_or_default().trim_matches(['[', ']']);
        let port = asking.as_ref().and_then(Url::port_or_known_default).unwrap_or_default();
        let upgraded = self.remote.url.port == 80 && port == 443;
        if host.eq_ignore_ascii_case(&self.remote.url.host) && (port == self.remote.url.port || upgraded) {
            return Ok(());
        }
        Err(RepositoryError::CredentialsElsewhere { url: self.url(), host: format!("{host}:{port}") })
    }

    /// Checks host keys against the known hosts. libgit2 checks certificates against the CAs of the system, unless
    /// all certificates are trusted. A relay checks certificates against configured CAs.
    fn certificate(&self, certificate: &Cert<'_>) -> Result<CertificateCheckStatus, RepositoryError> {
        if certificate.as_x509().is_some() && self.remote.tls.trusts_all() {
            return Ok(CertificateCheckStatus::CertificateOk);
        }
        let (Some(presented), RemoteAuth::Ssh { known_hosts, insecure_ignore_host_key, .. }) =
            (certificate.as_hostkey(), &self.remote.auth)
        else {
            return Ok(CertificateCheckStatus::CertificatePassthrough);
        };
        if *insecure_ignore_host_key {
            return Ok(CertificateCheckStatus::CertificateOk);
        }
        let (host, port) = (&self.remote.url.host, self.remote.url.port);
        let shown = || host_and_port(host, port);
        let checked = match (known_hosts, presented.hostkey().map(<[u8]>::to_vec).and_then(HostKey::new)) {
            (None, _) => Err(HostKeyError::Unconfigured { host: shown() }),
            (_, None) => Err(HostKeyError::Unreadable { host: shown() }),
            (Some(text), Some(key)) => KnownHosts::parse(text).check(host, port, &key),
        };
        match checked {
            Ok(()) => Ok(CertificateCheckStatus::CertificateOk),
            Err(error) => Err(RepositoryError::HostKey { url: self.url(), source: Box::new(error) }),
        }
    }

    fn missing(&self, configured: &'static str) -> RepositoryError {
        RepositoryError::CredentialsMissing { url: self.url(), configured }
    }

    fn rejected(&self) -> RepositoryError {
        RepositoryError::CredentialsRejected { url: self.url() }
    }

    /// Returns the error for a push that the remote or libgit2 rejected.
    pub fn rejected_push(&self, reason: &str) -> RepositoryError {
        let (branch, reason) = (self.remote.branch.clone(), reason.to_owned());
        RepositoryError::PushRejected { url: self.url(), branch, reason }
    }

    /// Translates an error of libgit2. It has few error codes, so class and text are evaluated, too.
    fn explain(&self, error: &git2::Error) -> RepositoryError {
        let (url, reason) = (self.url(), error.message().trim());
        let reason = self.relay.as_ref().map_or_else(|| reason.to_owned(), |relay| relay.hide(reason));
        let says = |texts: &[&str]| texts.iter().any(|text| reason.to_lowercase().contains(text));
        match (error.code(), error.class()) {
            (ErrorCode::NotFastForward, _) => self.rejected_push(&reason),
            _ if says(&["status code: 401", "status code: 403"]) => self.rejected(),
            (ErrorCode::Auth, _) => self.rejected(),
            (_, ErrorClass::Ssh) if says(&["authenticate ssh session", "private key", "passphrase"]) => {
                RepositoryError::PrivateKey { url, reason }
            }
            _ if says(&["status code: 404", "repository not found", "not appear to be a git repository"]) => {
                RepositoryError::RemoteMissing { url }
            }
            (ErrorCode::NotFound, _) | (_, ErrorClass::Os) if self.remote.url.kind == RemoteKind::Local => {
                RepositoryError::RemoteMissing { url }
            }
            // libgit2 reports this only for `shallow` lines, which end in a newline that it does not expect.
            (_, ErrorClass::Net) if says(&["invalid packet line"]) => RepositoryError::ShallowRemote { url },
            (ErrorCode::Timeout, _) => timeout(self.remote, self.purpose),
            (
                _,
                ErrorClass::Net
                | ErrorClass::Http
                | ErrorClass::Ssl
                | ErrorClass::Ssh
                | ErrorClass::Os
                | ErrorClass::Indexer
                | ErrorClass::Zlib,
            ) => RepositoryError::Network { url, reason },
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
