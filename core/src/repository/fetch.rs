//! One fetch over the network: credentials, host keys, the deadline, and what an error means.

use std::cell::{Cell, RefCell};
use std::time::Instant;

use git2::cert::Cert;
use git2::{
    AutotagOption, CertificateCheckStatus, Cred, CredentialType, ErrorClass, ErrorCode, FetchOptions,
    ProxyOptions, RemoteCallbacks, RemoteRedirect, Repository,
};
use url::Url;

use super::known_hosts::host_and_port;
use super::remote::RemoteKind;
use super::{HostKey, HostKeyError, KnownHosts, Remote, RemoteAuth, RepositoryError, Revision};

/// Fetches the branch of `remote` into the ref `tip`, by force, and returns the commit it is at.
pub(super) fn fetch(
    repository: &Repository,
    remote: &Remote,
    tip: &str,
    deadline: Instant,
) -> Result<Revision, RepositoryError> {
    let attempt = Attempt { remote, deadline, failure: RefCell::default(), offered: Cell::new(false) };
    attempt.check_configuration()?;
    let mut connection = repository
        .remote_anonymous(&remote.url.transport_text(remote.user()))
        .map_err(RepositoryError::git("set up the remote"))?;
    let branch = format!("refs/heads/{}", remote.branch);
    let fetched = connection.fetch(&[format!("+{branch}:{tip}")], Some(&mut attempt.options()), None);
    // A callback that fails leaves a more precise error than the one libgit2 makes of it.
    if let Some(failure) = attempt.failure.take() {
        return Err(failure);
    }
    fetched.map_err(|error| attempt.explain(&error))?;
    let heads = connection.list().map_err(|error| attempt.explain(&error))?;
    let head = heads.iter().find(|head| head.name() == branch).map(git2::RemoteHead::oid);
    head.map(Revision::of).ok_or_else(|| RepositoryError::BranchMissing {
        url: remote.url.to_string(),
        branch: remote.branch.clone(),
    })
}

struct Attempt<'a> {
    remote: &'a Remote,
    deadline: Instant,
    failure: RefCell<Option<RepositoryError>>,
    /// The credentials went out once; being asked again means that they were refused.
    offered: Cell<bool>,
}

impl Attempt<'_> {
    fn url(&self) -> String {
        self.remote.url.to_string()
    }

    fn check_configuration(&self) -> Result<(), RepositoryError> {
        if !git2::Branch::name_is_valid(&self.remote.branch).unwrap_or(false) {
            return Err(RepositoryError::InvalidBranch { branch: self.remote.branch.clone() });
        }
        let ssh_key = matches!(self.remote.auth, RemoteAuth::Ssh { .. });
        if self.remote.url.kind == RemoteKind::Ssh && !ssh_key {
            return Err(self.missing("no SSH key is configured"));
        }
        Ok(())
    }

    fn options(&self) -> FetchOptions<'_> {
        let mut callbacks = RemoteCallbacks::new();
        callbacks
            .credentials(|url, _, kinds| self.credentials(url, kinds).map_err(|error| self.fail(error)))
            .certificate_check(|certificate, _| {
                self.certificate(certificate).map_err(|error| self.fail(error))
            })
            .transfer_progress(|_| self.in_time())
            .sideband_progress(|_| self.in_time())
            .update_tips(|_, _, _| self.in_time());
        // HTTPS_PROXY and NO_PROXY; the user's Git configuration is not read.
        let mut proxy = ProxyOptions::new();
        proxy.auto();
        let mut options = FetchOptions::new();
        options
            .remote_callbacks(callbacks)
            .proxy_options(proxy)
            .download_tags(AutotagOption::None)
            .follow_redirects(RemoteRedirect::Initial)
            .update_fetchhead(false);
        options
    }

    /// Keeps the real error for the caller and gives libgit2 something to stop for.
    fn fail(&self, error: RepositoryError) -> git2::Error {
        let stop = git2::Error::new(ErrorCode::User, ErrorClass::Callback, "stopped");
        self.failure.borrow_mut().get_or_insert(error);
        stop
    }

    fn in_time(&self) -> bool {
        let in_time = Instant::now() < self.deadline;
        if !in_time {
            self.fail(timeout(self.remote));
        }
        in_time
    }

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
            RemoteAuth::Token { token, .. } if kinds.contains(CredentialType::USER_PASS_PLAINTEXT) => {
                Cred::userpass_plaintext(user, token.expose())
                    .map_err(RepositoryError::git("prepare the token"))
            }
            RemoteAuth::Ssh { private_key, passphrase, .. } if kinds.contains(CredentialType::SSH_KEY) => {
                let passphrase = passphrase.as_ref().map(crate::secrets::Secret::expose);
                Cred::ssh_key_from_memory(user, None, private_key.expose(), passphrase)
                    .map_err(RepositoryError::git("prepare the private key"))
            }
            RemoteAuth::None => Err(self.missing("none are configured")),
            RemoteAuth::Token { .. } => Err(self.missing("a token is configured, which it does not accept")),
            RemoteAuth::Ssh { .. } => Err(self.missing("an SSH key is configured, which it does not accept")),
        }
    }

    /// After a redirect the question may come from elsewhere. An upgrade to TLS on the same host is fine;
    /// libgit2 itself refuses the downgrade.
    fn check_host(&self, url: &str) -> Result<(), RepositoryError> {
        if self.remote.url.kind != RemoteKind::Http {
            return Ok(());
        }
        let asking = Url::parse(url).ok();
        let host = asking.as_ref().and_then(Url::host_str).unwrap_or_default().trim_matches(['[', ']']);
        let port = asking.as_ref().and_then(Url::port_or_known_default).unwrap_or_default();
        let upgraded = self.remote.url.port == 80 && port == 443;
        if host.eq_ignore_ascii_case(&self.remote.url.host) && (port == self.remote.url.port || upgraded) {
            return Ok(());
        }
        Err(RepositoryError::CredentialsElsewhere { url: self.url(), host: format!("{host}:{port}") })
    }

    /// TLS certificates stay with libgit2 and the system's authorities; host keys are ours to check.
    fn certificate(&self, certificate: &Cert<'_>) -> Result<CertificateCheckStatus, RepositoryError> {
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

    /// libgit2 has few error codes; for the rest its class and text have to do.
    fn explain(&self, error: &git2::Error) -> RepositoryError {
        let (url, reason) = (self.url(), error.message().trim().to_owned());
        let says = |texts: &[&str]| texts.iter().any(|text| reason.to_lowercase().contains(text));
        match (error.code(), error.class()) {
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
            // Said about `shallow` lines only, which end in a newline that libgit2 does not expect.
            (_, ErrorClass::Net) if says(&["invalid packet line"]) => RepositoryError::ShallowRemote { url },
            (ErrorCode::Timeout, _) => timeout(self.remote),
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
            _ => RepositoryError::Git { action: format!("fetch {url}"), reason },
        }
    }
}

/// The error for a fetch that is out of time.
pub(super) fn timeout(remote: &Remote) -> RepositoryError {
    RepositoryError::Timeout { url: remote.url.to_string(), branch: remote.branch.clone() }
}

#[cfg(test)]
#[path = "fetch_tests.rs"]
mod tests;
