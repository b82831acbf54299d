//! What can go wrong with secrets in Vault.

use http::StatusCode;

use crate::error::{Categorized, Category};
use crate::secrets::SecretKey;
use crate::transport::TransportError;

/// A failed call, or settings that can never make one.
///
/// Paths are those that policies name. Texts from Vault appear shortened and without the credentials and values
/// of the call.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VaultError {
    /// A setting cannot be used, or is not what Vault has.
    #[error("vault {setting}: {reason}")]
    Setting {
        /// Which setting.
        setting: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// A key that no Vault keeps a secret under. Vault was not asked.
    #[error("secret key {:?} cannot be kept in Vault, whose paths hold no {obstacle}; choose another key", .key.as_str())]
    Key {
        /// The key. It is told with its invisible characters escaped.
        key: SecretKey,
        /// What it has in it.
        obstacle: &'static str,
    },
    /// A value that is larger than what Vault takes.
    #[error(
        "cannot write secret {key}: its value has {length} bytes, and Vault answers with status {status} ({reason}); \
         by default it takes texts up to 1 MiB (max_json_string_value_length of its listener)",
        status = .status.as_u16()
    )]
    Size {
        /// The key.
        key: SecretKey,
        /// How long the value is, in bytes.
        length: usize,
        /// The answer's status.
        status: StatusCode,
        /// What Vault says.
        reason: String,
    },
    /// There is no HTTP client with these TLS settings.
    #[error("vault {0}")]
    Client(#[from] TransportError),
    /// Vault could not be reached or stopped answering.
    #[error("cannot {action}: Vault at {address} cannot be reached: {reason}")]
    Unreachable {
        /// What was to be done.
        action: String,
        /// Where Vault should be.
        address: String,
        /// What happened on the way.
        reason: String,
    },
    /// The proxy on the way wants credentials, or other ones (status 407).
    #[error("cannot {action}: the proxy {proxy} rejected the credentials, or requires some")]
    ProxyCredentials {
        /// What was to be done.
        action: String,
        /// The proxy, without credentials.
        proxy: String,
    },
    /// Vault is sealed (status 503).
    #[error("cannot {action}: Vault at {address} is sealed; unseal it")]
    Sealed {
        /// What was to be done.
        action: String,
        /// Where Vault is.
        address: String,
    },
    /// Vault does not take the credentials of the login, or gives no token for them.
    #[error("Vault at {address} refuses the {method} login: {reason}")]
    Login {
        /// Where Vault is.
        address: String,
        /// The login method.
        method: &'static str,
        /// What Vault says.
        reason: String,
    },
    /// The login works but may not do this (status 401 or 403).
    #[error(
        "cannot {action}: Vault denies it ({reason}); a policy of the login must grant {capability} on {path}"
    )]
    Denied {
        /// What was to be done.
        action: String,
        /// The path, as policies name it.
        path: String,
        /// The capabilities that a policy must grant there.
        capability: &'static str,
        /// What Vault says.
        reason: String,
    },
    /// There is nothing at a path (status 404).
    #[error("cannot {action}: Vault has nothing at {path}")]
    Absent {
        /// What was to be done.
        action: String,
        /// The path.
        path: String,
    },
    /// A path leads to no engine or login method, or to none that knows it (status 404 with a reason).
    #[error("cannot {action}: Vault knows no {path}: {reason}")]
    NoRoute {
        /// What was to be done.
        action: String,
        /// The path.
        path: String,
        /// What Vault says.
        reason: String,
    },
    /// No secret has this key.
    #[error("secret {key} does not exist in Vault at {path}")]
    NotFound {
        /// The key.
        key: SecretKey,
        /// Where it would be.
        path: String,
    },
    /// There is a secret, but not one of ours.
    #[error("secret {key} has no field \"value\" in Vault at {path}")]
    NoValue {
        /// The key.
        key: SecretKey,
        /// Where it is.
        path: String,
    },
    /// A value is no text.
    #[error("secret {key} is no text in Vault at {path}; store its field \"value\" as a string")]
    NotText {
        /// The key.
        key: SecretKey,
        /// Where it is.
        path: String,
    },
    /// Vault answered with another status of 400 or more.
    #[error("cannot {action}: Vault answers {path} with status {status}: {reason}", status = .status.as_u16())]
    Status {
        /// What was to be done.
        action: String,
        /// The path.
        path: String,
        /// The answer's status.
        status: StatusCode,
        /// What Vault says.
        reason: String,
    },
    /// An answer that cannot be used: no JSON of Vault's, too large, or a redirect that is not followed.
    #[error("cannot {action}: the answer for {path} is unusable: {reason}")]
    Answer {
        /// What was to be done.
        action: String,
        /// The path.
        path: String,
        /// What is wrong with it.
        reason: String,
    },
}

impl Categorized for VaultError {
    fn category(&self) -> Category {
        match self {
            Self::Setting { .. } | Self::Key { .. } | Self::Size { .. } => Category::Validation,
            Self::Client(error) => error.category(),
            Self::ProxyCredentials { .. } | Self::Login { .. } | Self::Denied { .. } => Category::Auth,
            Self::Absent { .. } | Self::NoRoute { .. } | Self::NotFound { .. } | Self::NoValue { .. } => {
                Category::NotFound
            }
            Self::NotText { .. } => Category::Internal,
            Self::Status { status, .. } => match status.as_u16() {
                408 | 425 | 429 => Category::Transport,
                400..=499 => Category::Validation,
                _ => Category::Transport,
            },
            Self::Unreachable { .. } | Self::Sealed { .. } | Self::Answer { .. } => Category::Transport,
        }
    }
}
