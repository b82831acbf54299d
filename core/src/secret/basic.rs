//! The encoding of basic authentication.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use zeroize::Zeroizing;

use super::Secret;

/// Returns user and password in the encoding of basic authentication (RFC 7617 section 2).
pub(crate) fn basic_pair(username: &str, password: &Secret) -> Secret {
    let pair = Zeroizing::new(format!("{username}:{}", password.expose()));
    Secret::from(STANDARD.encode(pair.as_bytes()))
}
