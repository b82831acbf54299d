//! Secret material.

use std::fmt;

use zeroize::Zeroizing;

/// Text that must not be seen: a token, a password, a private key.
///
/// Its memory is wiped when it is dropped. It prints as `<redacted>` and neither displays nor
/// serialises, so that it cannot reach a log, a status or a plan by accident. [`Secret::expose`] is the
/// only way to the text.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    /// The text itself. Hand it to what needs it; never format it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self(Zeroizing::new(text))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("<redacted>")
    }
}

#[cfg(test)]
mod tests {
    use super::Secret;

    #[test]
    fn is_not_printed() {
        let secret = Secret::from("hunter2".to_owned());
        assert_eq!(format!("{:?}", Some(&secret)), "Some(<redacted>)");
        assert_eq!(secret.expose(), "hunter2");
    }
}
