//! The errors of secrets in Vault.

use http::StatusCode;

use crate::error::{Category, categories};
use crate::secrets::SecretKey;
use crate::transport::TransportError;

/// A failed call, or settings that do not allow any call.
///
/// Paths are spelled as in policies. Texts from Vault are shortened, and the credentials and values of the call are
/// removed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VaultError {
    /// A setting is invalid, or does not match the Vault server.
    #[error("vault {setting}: {reason}")]
    Setting {
        /// The name of the setting.
        setting: &'static str,
        /// The fault.
        reason: String,
    },
    /// A key that Vault cannot store. Vault was not contacted.
    #[error("secret key {:?} cannot be stored in Vault, whose paths must not contain {obstacle}; choose another key", .key.as_str())]
    Key {
        /// The key. Messages show its invisible characters escaped.
        key: SecretKey,
        /// The part that is not allowed.
        obstacle: &'static str,
    },
    /// A value that exceeds Vault's limit.
    #[error(
        "cannot write secret {key}: its value has {length} bytes, and Vault answers with status {status} ({reason}); \
         by default the limit is 1 MiB (max_json_string_value_length of its listener)",
        status = .status.as_u16()
    )]
    Size {
        /// The key.
        key: SecretKey,
        /// The length of the value in bytes.
        length: usize,
        /// The status of the answer.
        status: StatusCode,
        /// The error of Vault.
        reason: String,
    },
    /// The TLS settings do not allow an HTTP client.
    #[error("vault {0}")]
    Client(#[from] TransportError),
    /// Vault could not be reached, or its answer is incomplete.
    #[error("cannot {action}: Vault at {address} cannot be reached: {reason}")]
    Unreachable {
        /// The failed action.
        action: String,
        /// The address of Vault.
        address: String,
        /// The cause.
        reason: String,
    },
    /// The proxy requires credentials, or rejected them (status 407).
    #[error("cannot {action}: the proxy {proxy} rejected the credentials, or requires some")]
    ProxyCredentials {
        /// The failed action.
        action: String,
        /// The proxy, without credentials.
        proxy: String,
    },
    /// Vault is sealed (status 503).
    #[error("cannot {action}: Vault at {address} is sealed; unseal it")]
    Sealed {
        /// The failed action.
        action: String,
        /// The address of Vault.
        address: String,
    },
    /// Vault rejected the credentials of the login, or returned no token.
    #[error("Vault at {address} refuses the {method} login: {reason}")]
    Login {
        /// The address of Vault.
        address: String,
        /// The login method.
        method: &'static str,
        /// The error of Vault.
        reason: String,
    },
    /// The login succeeded, but lacks a permission (status 401 or 403).
    #[error(
        "cannot {action}: Vault denies it ({reason}); a policy of the login must grant {capability} on {path}"
    )]
    Denied {
        /// The failed action.
        action: String,
        /// The path, as in policies.
        path: String,
        /// The capabilities that a policy must grant on the path.
        capability: &'static str,
        /// The error of Vault.
        reason: String,
    },
    /// There is nothing at a path (status 404).
    #[error("cannot {action}: Vault has nothing at {path}")]
    Absent {
        /// The failed action.
        action: String,
        /// The path.
        path: String,
    },
    /// No engine or login method handles the path (status 404 with a reason).
    #[error("cannot {action}: Vault does not know {path}: {reason}")]
    NoRoute {
        /// The failed action.
        action: String,
        /// The path.
        path: String,
        /// The error of Vault.
        reason: String,
    },
    /// No secret has this key.
    #[error("secret {key} does not exist in Vault at {path}")]
    NotFound {
        /// The key.
        key: SecretKey,
        /// The path of the secret.
        path: String,
    },
    /// The secret exists, but has no field `value`.
    #[error("secret {key} has no field \"value\" in Vault at {path}; store the secret in this field")]
    NoValue {
        /// The key.
        key: SecretKey,
        /// The path of the secret.
        path: String,
    },
    /// The value is not a string.
    #[error("secret {key} is not a string in Vault at {path}; store its field \"value\" as a string")]
    NotText {
        /// The key.
        key: SecretKey,
        /// The path of the secret.
        path: String,
    },
    /// Vault answered with another status of 400 or more.
    #[error("cannot {action}: Vault answers {path} with status {status}: {reason}", status = .status.as_u16())]
    Status {
        /// The failed action.
        action: String,
        /// The path.
        path: String,
        /// The status of the answer.
        status: StatusCode,
        /// The error of Vault.
        reason: String,
    },
    /// An unusable answer, such as the page of a gateway in front of Vault.
    #[error("cannot {action}: the answer for {path} is unusable: {reason}")]
    Answer {
        /// The failed action.
        action: String,
        /// The path.
        path: String,
        /// The fault.
        reason: String,
    },
    /// An answer that is never used: too large, or a redirect that is not followed.
    #[error("cannot {action}: the answer for {path} is unusable: {reason}")]
    Unsupported {
        /// The failed action.
        action: String,
        /// The path.
        path: String,
        /// The fault.
        reason: String,
    },
}

categories!(VaultError {
    {
        Self::Status { status, .. } => match status.as_u16() {
            408 | 425 | 429 => Category::Transport,
            400..=499 => Category::Validation,
            _ => Category::Transport,
        },
    }
    .0: Client;
    Validation: Setting, Key, Size, NotText, Unsupported;
    NotFound: Absent, NoRoute, NotFound, NoValue;
    Auth: ProxyCredentials, Login, Denied;
    Transport: Unreachable, Sealed, Answer;
});
