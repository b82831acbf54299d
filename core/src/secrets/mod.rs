//! Secret values: their type, the stores that hold them by key, their placeholders in payloads, and their detection.
//!
//! A [`SecretReader`] replaces placeholders with values. [`DeclaredSecrets`] and the [`Redactor`] remove values from
//! texts that are shown.

mod bare;
mod declared;
mod detect;
pub mod file;
mod key;
mod mask;
mod placeholder;
mod reader;
mod redact;
mod scope;
mod store;
pub mod vault;
mod walk;
mod whole;

pub use crate::secret::{Secret, is_secret_name};
pub use bare::{ExtractError, extract};
pub use declared::DeclaredSecrets;
pub use detect::detect;
pub use key::{KeyError, SecretKey};
pub use mask::{has_any, mask, mask_list};
pub use placeholder::{DescriptorPlaceholder, PLACEHOLDER, Placeholder, PlaceholderError, is_placeholder};
pub use reader::{ResolveError, Resolved, SecretReader};
pub(crate) use redact::excerpt;
pub use redact::{Confidential, Redactor};
pub use scope::Scope;
pub use store::{SecretStore, StoreError};
pub use walk::{
    MAX_NESTING, WalkError, find_placeholder, normalize, placeholder_places, secret_placeholders,
    template_places,
};
pub use whole::{WholeError, decode_file, decode_file_within, encode_file, whole_placeholder, whole_secret};

#[cfg(test)]
mod tests {
    use zeroize::Zeroizing;

    use super::*;

    /// Compiles only for types that overwrite their memory on drop.
    fn overwritten<T: zeroize::ZeroizeOnDrop>(_: &T) {}

    /// Checks all types that hold key material, down to the buffer.
    #[test]
    fn key_material_is_overwritten_on_drop() {
        let key = file::KeyMaterial::key(&Secret::from("k".repeat(32))).unwrap();
        let passphrase = file::KeyMaterial::passphrase(&Secret::from("blue kettle".to_owned())).unwrap();
        for material in [key, passphrase] {
            match &material.0 {
                file::Material::Key(bytes) => overwritten(bytes),
                file::Material::Passphrase(secret) => overwritten(secret),
            }
        }
        // Keys that are derived from a passphrase, and the buffers of the cipher and of Vault.
        overwritten(&file::Key::default());
        let answer = vault::Answer { action: String::new(), path: String::new(), body: Zeroizing::default() };
        overwritten(&answer.body);
    }
}
