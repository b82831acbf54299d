//! Signatures of webhook deliveries.

use ring::hmac;

/// The HMAC-SHA256 of a body in hexadecimal digits.
pub fn signature(secret: &str, body: &str) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
    let code = hmac::sign(&key, body.as_bytes());
    code.as_ref().iter().fold(String::new(), |code, byte| format!("{code}{byte:02x}"))
}
