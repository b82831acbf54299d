//! The Docker configuration with the credentials for registries.

use std::fmt;
use std::path::PathBuf;

use super::BundleError;
use super::fetch::Credentials;
use super::reference::OciReference;
use crate::secret::Secret;

/// The Docker configuration with the credentials for registries.
#[derive(Clone, Default)]
pub enum RegistryLogin {
    /// Requests are anonymous.
    #[default]
    Anonymous,
    /// A file, which may be missing.
    File(PathBuf),
    /// The content of a configuration, and its name for errors.
    Content(String, Secret),
}

impl fmt::Debug for RegistryLogin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Anonymous => "Anonymous",
            Self::File(_) => "File",
            Self::Content(..) => "Content",
        })
    }
}

impl RegistryLogin {
    /// Returns the credentials for the repository of `reference`.
    pub(super) async fn credentials(&self, reference: &OciReference) -> Result<Credentials, BundleError> {
        match self {
            Self::Anonymous => Ok(Credentials::Anonymous),
            Self::Content(origin, content) => {
                Credentials::parse(content.expose().as_bytes(), origin, reference)
            }
            Self::File(file) => {
                let (file, oci) = (file.clone(), reference.clone());
                let found = tokio::task::spawn_blocking(move || Credentials::find(&file, &oci)).await;
                found.map_err(|stopped| BundleError::Client(stopped.to_string()))?
            }
        }
    }
}
