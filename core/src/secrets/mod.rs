//! Secret values: a type that cannot be printed, their names in stores, the redactor, placeholders in payloads,
//! and what of a payload looks like a secret.

mod declared;
mod detect;
mod key;
mod mask;
mod placeholder;
mod redact;
pub mod vault;

use std::fmt;

use zeroize::Zeroizing;

pub use declared::DeclaredSecrets;
pub use detect::{detect, is_secret_name};
pub use key::{KeyError, SecretKey};
pub use mask::{PLACEHOLDER, mask};
pub use placeholder::{find_placeholder, is_placeholder};
pub use redact::Redactor;

/// A secret text. It has no `Display` and no `Serialize`, its `Debug` is `<redacted>`, and its memory is
/// zeroed when the last owner drops it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    /// The value, for the one place that sends it where it belongs.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl From<String> for Secret {
    fn from(value: String) -> Self {
        Self(Zeroizing::new(value))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("<redacted>")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_hides_the_value() {
        assert_eq!(format!("{:?}", Some(Secret::from("canary".to_owned()))), "Some(<redacted>)");
    }
}
