//! The type of a secret text, its form in basic authentication, and the names that secrets have.

mod basic;
mod name;

use std::fmt;

use zeroize::{ZeroizeOnDrop, Zeroizing};

pub(crate) use basic::basic_pair;
pub use name::is_secret_name;

/// A secret text. It implements neither `Display` nor `Serialize`, its `Debug` is `<redacted>`, and its memory is
/// zeroed when the last owner drops it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Zeroizing<String>);

impl ZeroizeOnDrop for Secret {}

impl Secret {
    /// Returns the value. Call this only where the value is sent or stored.
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

    /// Compiles only for types that overwrite their memory on drop.
    fn overwritten<T: ZeroizeOnDrop>(_: &T) {}

    #[test]
    fn the_buffer_is_overwritten_on_drop() {
        let Secret(buffer) = &Secret::from("canary".to_owned());
        overwritten(buffer);
    }

    #[test]
    fn debug_hides_the_value() {
        assert_eq!(format!("{:?}", Some(Secret::from("canary".to_owned()))), "Some(<redacted>)");
    }
}
