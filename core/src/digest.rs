//! Digests as text.

use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

/// Returns the bytes as lower-case hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Returns `sha256:` and the digest, the form that registries use.
pub fn sha256(hashed: Sha256) -> String {
    format!("sha256:{}", hex(&hashed.finalize()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_of_empty_input() {
        let expected = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(sha256(Sha256::new()), expected);
    }
}
