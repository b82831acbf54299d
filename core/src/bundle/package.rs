//! Packages of other formats than metadata bundles, from the same web servers and registries.
//!
//! Requests go through the client of [`PackageSource`], with the same limits on destinations, redirects, time and size
//! as those for bundles. The digests of registries are verified.

use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use url::Url;

use super::archive::{Capacity, unpack};
use super::fetch::{self, Artifact, LayerRule, Limits, Registry};
use super::login::RegistryLogin;
use super::reference::{OciReference, OciVersion};
use super::{BundleError, Reference};
use crate::proxy::Proxy;
use crate::transport::{Access, TlsConfig, client_builder};

/// The limits of a package.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PackageLimits {
    /// The maximum time of all requests for one package.
    pub time: Duration,
    /// The maximum size of a download and of one file, in bytes.
    pub file: u64,
    /// The maximum size of all files together, in bytes.
    pub total: u64,
    /// The maximum number of files and directories.
    pub entries: usize,
    /// The maximum number of redirects of one request.
    pub redirects: usize,
}

/// The media types of the layer that is a package.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PackageLayer {
    /// The type of a layer that is a package although the image has others.
    pub own: &'static str,
    /// The types of a layer that is a package if the image has no other layer.
    pub alone: &'static [&'static str],
}

/// Downloads packages of one format.
pub(crate) struct PackageSource {
    client: reqwest::Client,
    limits: PackageLimits,
    rule: LayerRule,
    login: RegistryLogin,
}

/// A package in a registry.
pub(crate) struct PackageImage {
    /// The digest of its manifest.
    pub digest: String,
    /// The digest of its layer.
    pub layer: String,
    artifact: Artifact,
    reference: OciReference,
}

impl PackageSource {
    /// Creates a source without any I/O.
    pub fn new(
        proxy: &Proxy,
        login: RegistryLogin,
        limits: PackageLimits,
        layer: PackageLayer,
    ) -> Result<Self, BundleError> {
        let client = fetch::client(client_builder(&TlsConfig::default(), proxy))?;
        Ok(Self { client, limits, rule: LayerRule::Only(layer.own, layer.alone), login })
    }

    /// Downloads the body at `url`. Requests to the origin of `access` use its credentials.
    pub async fn body(&self, access: Option<&Access>, url: &Url) -> Result<Bytes, BundleError> {
        fetch::body(&self.client, access, url, &self.requests()).await
    }

    /// Requests all tags of a repository.
    pub async fn tags(&self, registry: &str, repository: &str) -> Result<Vec<String>, BundleError> {
        // The version of the reference is not used by this request.
        let reference = reference(registry, repository, OciVersion::Tag("latest".to_owned()));
        self.registry(&reference, &self.requests()).await?.tags().await
    }

    /// Requests the image with this tag or digest.
    pub async fn image(
        &self,
        registry: &str,
        repository: &str,
        version: OciVersion,
    ) -> Result<PackageImage, BundleError> {
        let reference = reference(registry, repository, version);
        let artifact = self.registry(&reference, &self.requests()).await?.resolve().await?;
        let (digest, layer) = (artifact.digest.clone(), artifact.layer().to_owned());
        Ok(PackageImage { digest, layer, artifact, reference })
    }

    /// Downloads the layer of an image.
    pub async fn layer(&self, image: &PackageImage) -> Result<Bytes, BundleError> {
        self.registry(&image.reference, &self.requests()).await?.read_layer(&image.artifact).await
    }

    /// Unpacks a gzip tar into the empty directory `target`. `name` is the package in errors. Blocks.
    pub fn unpack(&self, archive: &[u8], target: &Path, name: &str) -> Result<(), BundleError> {
        let PackageLimits { file, total, entries, .. } = self.limits;
        unpack(archive, target, Capacity { entries, file, total }, name)
    }

    fn requests(&self) -> Limits {
        let PackageLimits { time, file, redirects, .. } = self.limits;
        Limits { http: time, registry: time, archive: file, redirects }
    }

    async fn registry<'a>(
        &'a self,
        reference: &'a OciReference,
        limits: &'a Limits,
    ) -> Result<Registry<'a>, BundleError> {
        let credentials = self.login.credentials(reference).await?;
        Registry::new(&self.client, reference, credentials, limits, self.rule)
    }
}

/// Parses `registry/repository:tag` or `registry/repository@digest`.
pub(crate) fn parse_image(text: &str) -> Result<OciReference, BundleError> {
    match Reference::parse(&format!("oci://{text}"))? {
        Reference::Oci(reference) => Ok(reference),
        other => Err(BundleError::Reference {
            reference: other.to_string(),
            reason: "is not an image in a registry".to_owned(),
        }),
    }
}

fn reference(registry: &str, repository: &str, version: OciVersion) -> OciReference {
    OciReference { registry: registry.to_owned(), repository: repository.to_owned(), version }
}
