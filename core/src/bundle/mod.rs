//! Metadata bundles: shared metadata for the REST API of a product.
//!
//! A bundle is a directory with a [`Manifest`] (`bundle.yaml`) and a tree of metadata documents, usually packed
//! as a gzip tar archive. [`BundleSource::open`] finds the one that a [`Reference`] names, unpacks it into a
//! cache once and validates every document. [`Bundle::documents`] are then a source of metadata like a metadata
//! directory.
//!
//! ```
//! use declarest_core::bundle::{BundleSource, Options, Reference};
//!
//! # let runtime = tokio::runtime::Runtime::new()?;
//! # let directory = std::env::temp_dir().join(format!("declarest-bundle-{}", std::process::id()));
//! # std::fs::create_dir_all(directory.join("metadata/tills/_"))?;
//! # std::fs::write(directory.join("metadata/tills/_/metadata.yaml"), "resource: {alias: /name}")?;
//! # std::fs::write(directory.join("bundle.yaml"), r#"
//! # apiVersion: declarest.io/v1alpha1
//! # kind: MetadataBundle
//! # name: till-bundle
//! # version: 1.2.0
//! # description: Till API.
//! # declarest: {metadataRoot: metadata}
//! # "#)?;
//! # runtime.block_on(async {
//! let source = BundleSource::new(Options::new("/home/alice/.declarest/metadata-bundles"));
//! let bundle = source.open(&Reference::parse(directory.to_str().unwrap())?).await?;
//! assert_eq!(bundle.manifest.name, "till-bundle");
//! assert!(bundle.warnings.is_empty());
//! # std::fs::remove_dir_all(&directory)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod archive;
mod cache;
mod constraint;
mod content;
mod error;
mod fetch;
mod login;
mod manifest;
mod package;
mod places;
mod reference;
mod source;

use std::fmt;
use std::path::PathBuf;

use semver::Version;

use crate::repository::{DirTree, MemoryTree};

pub use archive::{MAX_ENTRIES, MAX_FILE, MAX_TOTAL};
pub use constraint::Constraint;
pub use content::{MANIFEST, OpenApiHint};
pub use error::BundleError;
pub use login::RegistryLogin;
pub use manifest::{API_VERSION, KIND, ManagedServerVersions, Manifest, OpenApiSource};
pub(crate) use package::{PackageLayer, PackageLimits, PackageSource, parse_image};
pub use places::{cache_directory, registry_login};
pub(crate) use reference::{DOCKER_HUB, DOCKER_HUB_HOST, registry_name};
pub use reference::{OciReference, OciVersion, RELEASES, Reference};
pub use source::{BundleSource, Options};

/// Bundles for this version and earlier ones are supported, even if the version of this build is lower.
const UNDERSTOOD: Version = Version::new(0, 3, 8);

/// A bundle whose files are on this machine.
#[derive(Clone, Debug)]
pub struct Bundle {
    /// The manifest.
    pub manifest: Manifest,
    /// The directory of the whole bundle.
    ///
    /// A directory in the cache keeps its path, but a moved tag or a changed local archive replaces its content. To
    /// detect this, compare [`Bundle::digest`].
    pub root: PathBuf,
    /// The directory of its metadata tree.
    pub metadata_root: PathBuf,
    /// The location of the server's `OpenAPI` document, if the bundle states it.
    pub openapi: Option<OpenApiHint>,
    /// `sha256:` and the digest of the archive, of the manifest in the registry, or for a directory of the files that
    /// have an effect. It differs if the content differs.
    pub digest: String,
    /// The warnings for the user.
    pub warnings: Vec<BundleWarning>,
}

impl Bundle {
    /// Returns a copy of the metadata documents, because another process may replace the content of the cache while a
    /// run reads them. The copy has the layout of a metadata directory. Fails if the documents have more than `limit`
    /// bytes together. Blocks.
    pub fn documents(&self, limit: u64) -> Result<MemoryTree, BundleError> {
        let is_read = |name: &str| name.starts_with("metadata.") || name.starts_with("defaults");
        let copied =
            DirTree::open(&self.metadata_root).and_then(|tree| MemoryTree::copy(&tree, is_read, limit));
        copied.map_err(|source| BundleError::Files { bundle: self.manifest.name.clone(), source })
    }
}

/// A warning for the user of a bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BundleWarning {
    /// The authors deprecated the bundle.
    Deprecated {
        /// The bundle's name.
        name: String,
        /// The bundle's version.
        version: Version,
    },
    /// The check for a newer version failed, so the cached copy is used.
    Stale {
        /// The reference.
        reference: String,
        /// The cause.
        reason: String,
    },
}

impl fmt::Display for BundleWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Deprecated { name, version } => {
                write!(f, "metadata bundle {name} {version} is deprecated")
            }
            Self::Stale { reference, reason } => {
                write!(
                    f,
                    "metadata bundle {reference} could not be refreshed, using the cached copy: {reason}"
                )
            }
        }
    }
}

/// The build of `DeclaREST` that uses a bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Build {
    /// A build without a version, which accepts every bundle.
    Development,
    /// A release.
    Release(Version),
}

impl Build {
    /// Returns the build of this library.
    pub fn current() -> Self {
        Self::of(env!("CARGO_PKG_VERSION"))
    }

    /// Returns the build with this version. `dev`, and any other text that is not a version, is a development build.
    pub fn of(version: &str) -> Self {
        manifest::version(version).map_or(Self::Development, Self::Release)
    }

    /// Returns the version that bundles have to be compatible with.
    fn compared(&self) -> Option<Version> {
        match self {
            Self::Development => None,
            Self::Release(version) => Some(version.clone().max(UNDERSTOOD)),
        }
    }
}

#[cfg(test)]
mod tests;
