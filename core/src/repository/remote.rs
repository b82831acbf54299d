//! A remote repository: URL, branch and credentials.

use std::fmt;

use percent_encoding::percent_decode_str;
use url::Url;

use super::RepositoryError;
use crate::proxy::Proxy;
use crate::secrets::Secret;
use crate::transport::{TlsConfig, shown};

/// A remote branch, with everything that is needed to connect to it.
#[derive(Clone, Debug)]
pub struct Remote {
    /// The repository.
    pub url: RemoteUrl,
    /// The branch.
    pub branch: String,
    /// The credentials.
    pub auth: RemoteAuth,
    /// The trusted CAs and the client certificate; https only.
    pub tls: TlsConfig,
    /// The proxies for http and https.
    pub proxy: Proxy,
}

/// The credentials for a remote. They are sent only to the host of its URL.
#[derive(Clone, Debug)]
pub enum RemoteAuth {
    /// A public repository.
    None,
    /// HTTP basic authentication with a token.
    Token {
        /// The user; defaults to the one in the URL, then to `token`.
        user: Option<String>,
        /// The token.
        token: Secret,
    },
    /// HTTP basic authentication with a password.
    Basic {
        /// The user.
        user: String,
        /// The password.
        password: Secret,
    },
    /// An SSH key.
    Ssh {
        /// The user; defaults to the one in the URL, then to `git`.
        user: Option<String>,
        /// The private key in PEM or OpenSSH format.
        private_key: Secret,
        /// The passphrase of the private key.
        passphrase: Option<Secret>,
        /// The text of a `known_hosts` file. Without it connections fail, unless host keys are ignored.
        known_hosts: Option<String>,
        /// Accepts any host key. An attacker on the path then controls the desired state.
        insecure_ignore_host_key: bool,
    },
}

/// The address of a repository.
///
/// `Display` omits userinfo, query and fragment, so it may be shown anywhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteUrl {
    pub(super) kind: RemoteKind,
    pub(super) host: String,
    pub(super) port: u16,
    user: Option<String>,
    form: Form,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RemoteKind {
    Http,
    Ssh,
    Local,
}

/// The syntax of the URL. The path is relative to another directory in `user@host:path` than in `ssh://`.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Form {
    /// A URL without userinfo.
    Url(Box<Url>),
    /// The path of `user@host:path`.
    Scp(String),
}

impl RemoteUrl {
    /// Parses `http://`, `https://` or `ssh://` with a host, or `user@host:path`. Passwords are rejected.
    pub fn parse(text: &str) -> Result<Self, RepositoryError> {
        Self::parse_any(text, false)
    }

    /// Like [`RemoteUrl::parse`], but also accepts `file:///` and absolute paths for a local repository.
    pub fn parse_local_allowed(text: &str) -> Result<Self, RepositoryError> {
        match Url::from_file_path(text.trim()) {
            Ok(url) => Self::parse_any(url.as_str(), true),
            Err(()) => Self::parse_any(text, true),
        }
    }

    fn parse_any(text: &str, local: bool) -> Result<Self, RepositoryError> {
        let text = text.trim();
        if !text.contains("://") {
            return Self::parse_scp(text);
        }
        let Ok(url) = Url::parse(text) else {
            // The text may contain a password anywhere, so it is not shown.
            return Err(invalid("(unreadable)", "it is not a URL"));
        };
        let shown = shown(&url);
        if url.password().is_some() {
            return Err(invalid(
                &shown,
                "it must not contain a password; configure it as credentials instead",
            ));
        }
        let (kind, default_port) = match url.scheme() {
            "http" => (RemoteKind::Http, 80),
            "https" => (RemoteKind::Http, 443),
            "ssh" => (RemoteKind::Ssh, 22),
            "file" if local => (RemoteKind::Local, 0),
            "file" => return Err(invalid(&shown, "repositories on the local disk are not allowed here")),
            _ => return Err(invalid(&shown, "the scheme must be http, https or ssh")),
        };
        let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']).to_owned();
        if host.is_empty() != (kind == RemoteKind::Local) {
            return Err(invalid(&shown, "it must have a host, or none if it is a file URL"));
        }
        let user = percent_decode_str(url.username()).decode_utf8_lossy().into_owned();
        let user = (!user.is_empty()).then_some(user);
        let port = url.port().unwrap_or(default_port);
        Ok(Self { kind, host, port, user, form: Form::Url(Box::new(without_user(url))) })
    }

    fn parse_scp(text: &str) -> Result<Self, RepositoryError> {
        let reason = "it must be an http, https or ssh URL, or user@host:path";
        let parts = text.split_once('@').and_then(|(user, rest)| {
            let (host, path) = match rest.strip_prefix('[').and_then(|rest| rest.split_once("]:")) {
                Some(bracketed) => bracketed,
                None => rest.split_once(':')?,
            };
            let plain = ![user, host].iter().any(|part| part.is_empty() || part.contains(['/', ' ', '@']));
            (plain && !path.is_empty()).then_some((user, host, path))
        });
        let Some((user, host, path)) = parts else { return Err(invalid("(unreadable)", reason)) };
        if user.contains(':') {
            return Err(invalid(
                &format!("{host}:{path}"),
                "it must not contain a password; configure it as credentials instead",
            ));
        }
        Ok(Self {
            kind: RemoteKind::Ssh,
            host: host.to_owned(),
            port: 22,
            user: Some(user.to_owned()),
            form: Form::Scp(path.to_owned()),
        })
    }

    /// The user written in the URL.
    pub fn user(&self) -> Option<&str> {
        self.user.as_deref()
    }

    /// Returns the address that a checkout records for other programs. It contains the user only for SSH, where the
    /// user is part of the address.
    pub(super) fn recorded_text(&self) -> String {
        let user = self.user.as_deref().filter(|_| self.kind == RemoteKind::Ssh).unwrap_or_default();
        match &self.form {
            Form::Url(url) => {
                let mut url = url.clone();
                // Fails only for URLs without a host, which have no user.
                let _ = url.set_username(user);
                url.to_string()
            }
            Form::Scp(path) if self.host.contains(':') => format!("{user}@[{}]:{path}", self.host),
            Form::Scp(path) => format!("{user}@{}:{path}", self.host),
        }
    }

    /// Returns the URL of an http or https remote, without userinfo.
    pub(super) fn http(&self) -> Option<&Url> {
        match &self.form {
            Form::Url(url) if self.kind == RemoteKind::Http => Some(url),
            _ => None,
        }
    }

    /// Returns the path of a repository on an SSH server, as its shell gets it. A path that starts with `~` is below a
    /// home directory.
    pub(super) fn ssh_path(&self) -> String {
        match &self.form {
            Form::Scp(path) => path.clone(),
            Form::Url(url) => {
                let path = percent_decode_str(url.path()).decode_utf8_lossy();
                path.strip_prefix('/').filter(|path| path.starts_with('~')).unwrap_or(&path).to_owned()
            }
        }
    }
}

fn invalid(url: &str, reason: &'static str) -> RepositoryError {
    RepositoryError::InvalidUrl { url: url.to_owned(), reason }
}

fn without_user(mut url: Url) -> Url {
    // Fails only for URLs that cannot have a user.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url
}

impl fmt::Display for RemoteUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.form {
            Form::Url(url) => f.write_str(&shown(url)),
            Form::Scp(path) => write!(f, "{}:{path}", self.host),
        }
    }
}

impl Remote {
    /// Returns a remote without a proxy, with the CAs of the system.
    pub fn new(url: RemoteUrl, branch: impl Into<String>, auth: RemoteAuth) -> Self {
        Self { url, branch: branch.into(), auth, tls: TlsConfig::default(), proxy: Proxy::default() }
    }

    /// Returns the user to authenticate as.
    pub(super) fn user(&self) -> &str {
        let (configured, default) = match &self.auth {
            RemoteAuth::None => (None, "git"),
            RemoteAuth::Basic { user, .. } => (Some(user.as_str()), "git"),
            RemoteAuth::Token { user, .. } => (user.as_deref(), "token"),
            RemoteAuth::Ssh { user, .. } => (user.as_deref(), "git"),
        };
        configured.or(self.url.user()).unwrap_or(default)
    }
}

#[cfg(test)]
#[path = "remote_tests.rs"]
mod tests;
