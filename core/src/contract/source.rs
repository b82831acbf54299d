//! Loads documents: from text, a web server or a registry.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use semver::Version;
use serde::{Deserialize, Serialize};
use url::Url;

use super::document::{Document, MAX_DOCUMENT};
use super::error::ContractError;
use crate::bundle::{
    BundleError, Constraint, DOCKER_HUB, DOCKER_HUB_HOST, OciVersion, PackageLayer, PackageLimits,
    PackageSource, RegistryLogin, parse_image, registry_name,
};
use crate::proxy::Proxy;
use crate::transport::{Access, shown};

/// The name of the document in a bundle.
pub const FILE: &str = "pacto.yaml";

const LIMITS: PackageLimits = PackageLimits {
    time: Duration::from_mins(1),
    file: 10 << 20,
    total: 50 << 20,
    entries: 2000,
    redirects: 5,
};

const LAYER: PackageLayer = PackageLayer {
    own: "application/vnd.pacto.bundle.layer.v1.tar+gzip",
    alone: &[
        "application/vnd.oci.image.layer.v1.tar+gzip",
        "application/vnd.docker.image.rootfs.diff.tar.gzip",
    ],
};

/// The first bytes of a gzip file (RFC 1952, section 2.3.1).
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Where a document is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ContractSource {
    /// The document itself.
    Inline(String),
    /// A document or a bundle on a web server.
    Url(Url),
    /// A bundle in a registry.
    Oci(OciSource),
}

/// A bundle in a registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OciSource {
    registry: String,
    repository: String,
    version: OciChoice,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum OciChoice {
    /// A manifest, and the tag beside its digest.
    Digest(String, Option<String>),
    Tag(String),
    /// The highest version that fits.
    Highest(Option<Constraint>),
}

/// The way to load documents.
#[derive(Clone, Debug, Default)]
pub struct Loading {
    /// The proxy for downloads.
    pub proxy: Proxy,
    /// The credentials for registries.
    pub login: RegistryLogin,
    /// The credentials of one server, for documents at its origin.
    pub access: Option<Access>,
}

/// A loaded document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Loaded {
    /// The bytes of the document.
    pub bytes: Vec<u8>,
    /// The files of its bundle; `None` without a bundle.
    pub files: Option<BTreeSet<String>>,
    /// `inline`, the URL without userinfo and query, or the image with its digest.
    pub source: String,
    /// The image without its digest.
    pub image_ref: Option<String>,
    /// The digest of the layer in the registry.
    pub layer: Option<String>,
}

impl Loaded {
    /// Returns an inline document.
    pub fn inline(text: &str) -> Self {
        Self::plain(text.as_bytes().to_vec(), "inline".to_owned())
    }

    /// Reads and validates the document.
    pub fn document(&self) -> Document {
        Document::read(&self.bytes, self.files.as_ref())
    }

    fn plain(bytes: Vec<u8>, source: String) -> Self {
        Self { bytes, files: None, source, image_ref: None, layer: None }
    }
}

impl OciSource {
    /// Parses `[oci://]host/repository[:tag][@sha256:…][?version=CONSTRAINT]`.
    pub fn parse(text: &str) -> Result<Self, ContractError> {
        let text = text.trim();
        let reference = text.strip_prefix("oci://").unwrap_or(text);
        let refuse = |reason: String| ContractError::Reference(reason);
        let (image, query) =
            reference.split_once('?').map_or((reference, None), |(image, query)| (image, Some(query)));
        let constraint = match query.map(|query| query.strip_prefix("version=")) {
            None => None,
            Some(Some(text)) => {
                let text = percent_encoding::percent_decode_str(text).decode_utf8_lossy().into_owned();
                Some(Constraint::parse(&text).map_err(refuse)?)
            }
            Some(None) => {
                return Err(refuse("the only parameter of an image is version=CONSTRAINT".to_owned()));
            }
        };
        let (name, digest) =
            image.split_once('@').map_or((image, None), |(name, digest)| (name, Some(digest)));
        let start = name.rfind('/').map_or(0, |slash| slash + 1);
        let tag = name[start..].split_once(':').map(|(_, tag)| tag);
        let base = tag.map_or(name, |tag| &name[..name.len() - tag.len() - 1]);
        if constraint.is_some() && (tag.is_some() || digest.is_some()) {
            return Err(refuse("version excludes a tag and a digest".to_owned()));
        }
        // The parts are valid if the references that they form are.
        let parse = |text: &str| {
            let parsed = parse_image(text);
            parsed.map_err(|error| match error {
                BundleError::Reference { reason, .. } => refuse(reason),
                other => ContractError::Package(other),
            })
        };
        let parsed = parse(&format!("{base}:{}", tag.unwrap_or("latest")))?;
        let version = match (digest, tag) {
            (Some(digest), tag) => {
                parse(&format!("{base}@{digest}"))?;
                OciChoice::Digest(digest.to_owned(), tag.map(str::to_owned))
            }
            (None, Some(tag)) => OciChoice::Tag(tag.to_owned()),
            (None, None) => OciChoice::Highest(constraint),
        };
        let (registry, repository) = on_docker_hub(parsed.registry, parsed.repository);
        Ok(Self { registry, repository, version })
    }

    fn image(&self, tag: Option<&str>) -> String {
        let tag = tag.map(|tag| format!(":{tag}")).unwrap_or_default();
        format!("{}/{}{tag}", self.registry, self.repository)
    }
}

/// Returns the host that serves Docker Hub, and the full name of its official repositories.
fn on_docker_hub(registry: String, repository: String) -> (String, String) {
    if registry_name(&registry) != DOCKER_HUB {
        return (registry, repository);
    }
    let official = !repository.contains('/');
    (DOCKER_HUB_HOST.to_owned(), if official { format!("library/{repository}") } else { repository })
}

impl ContractSource {
    /// Loads the document. If the layer in the registry is that of `known`, it is not downloaded again.
    pub async fn load(&self, loading: &Loading, known: Option<&Loaded>) -> Result<Loaded, ContractError> {
        match self {
            Self::Inline(text) => Ok(Loaded::inline(text)),
            Self::Url(url) => {
                let body = packages(loading)?.body(loading.access.as_ref(), url).await?;
                let name = shown(url);
                if body.starts_with(&GZIP) {
                    return from_archive(body.to_vec(), name, loading).await;
                }
                // The validation reports a document that is too large.
                Ok(Loaded::plain(body[..body.len().min(MAX_DOCUMENT + 1)].to_vec(), name))
            }
            Self::Oci(oci) => pull(oci, loading, known).await,
        }
    }

    /// Returns text that identifies the source, to find copies of its documents. It may hold credentials.
    pub fn identity(&self) -> String {
        match self {
            Self::Inline(text) => format!("inline {text}"),
            Self::Url(url) => format!("url {url}"),
            Self::Oci(oci) => format!("oci {oci:?}"),
        }
    }
}

/// Reads a document or a bundle from a file or a directory. Blocks.
pub fn read_local(path: &Path) -> Result<Loaded, ContractError> {
    let failed = |error: std::io::Error| ContractError::Local {
        path: path.display().to_string(),
        source: std::sync::Arc::new(error),
    };
    let name = path.display().to_string();
    if path.is_dir() {
        return from_directory(path, name);
    }
    let file = std::fs::File::open(path).map_err(failed)?;
    let mut bytes = Vec::new();
    std::io::Read::read_to_end(&mut std::io::Read::take(file, LIMITS.file + 1), &mut bytes)
        .map_err(failed)?;
    if !bytes.starts_with(&GZIP) {
        return Ok(Loaded::plain(bytes, name));
    }
    unpacked(&bytes, name, &packages(&Loading::default())?)
}

fn packages(loading: &Loading) -> Result<PackageSource, ContractError> {
    Ok(PackageSource::new(&loading.proxy, loading.login.clone(), LIMITS, LAYER)?)
}

async fn pull(oci: &OciSource, loading: &Loading, known: Option<&Loaded>) -> Result<Loaded, ContractError> {
    let packages = packages(loading)?;
    // Choose the version.
    let (version, tag) = match &oci.version {
        OciChoice::Digest(digest, tag) => (OciVersion::Digest(digest.clone()), tag.clone()),
        OciChoice::Tag(tag) => (OciVersion::Tag(tag.clone()), Some(tag.clone())),
        OciChoice::Highest(constraint) => {
            let tags = packages.tags(&oci.registry, &oci.repository).await?;
            let tag = highest(&tags, constraint.as_ref()).ok_or_else(|| ContractError::NoMatchingTag {
                repository: oci.image(None),
                constraint: constraint.as_ref().map_or("*", Constraint::text).to_owned(),
            })?;
            (OciVersion::Tag(tag.to_owned()), Some(tag.to_owned()))
        }
    };
    // Download its layer, unless it is known.
    let image = packages.image(&oci.registry, &oci.repository, version).await?;
    let image_ref = oci.image(tag.as_deref());
    let source = format!("oci://{image_ref}@{}", image.digest);
    let same = known.filter(|known| known.layer.as_deref() == Some(image.layer.as_str()));
    let loaded = match same {
        Some(known) => Loaded { source, ..known.clone() },
        None => from_archive(packages.layer(&image).await?.to_vec(), source, loading).await?,
    };
    Ok(Loaded { image_ref: Some(image_ref), layer: Some(image.layer), ..loaded })
}

/// Returns the tag with the highest version that satisfies the constraint. A pre-release is chosen only if the
/// constraint names it, or if no release satisfies the constraint.
fn highest<'t>(tags: &'t [String], constraint: Option<&Constraint>) -> Option<&'t str> {
    let version = |tag: &'t String| Some((Version::parse(tag.strip_prefix('v').unwrap_or(tag)).ok()?, tag));
    let versions: Vec<(Version, &String)> = tags.iter().filter_map(version).collect();
    let released = |version: &Version| version.pre.is_empty();
    let fits = |version: &Version| match constraint {
        Some(constraint) => constraint.matches(version),
        None => released(version),
    };
    // Comparators ignore pre-releases that they do not name, so compare the release that they lead to.
    let leads_to_fit = |version: &Version| {
        let release = Version::new(version.major, version.minor, version.patch);
        constraint.is_none_or(|constraint| constraint.matches(&release))
    };
    let chosen = |fits: &dyn Fn(&Version) -> bool| {
        let fitting = versions.iter().filter(|(version, _)| fits(version));
        fitting.max_by(|(a, _), (b, _)| a.cmp(b)).map(|(_, tag)| tag.as_str())
    };
    chosen(&fits).or_else(|| chosen(&leads_to_fit))
}

async fn from_archive(bytes: Vec<u8>, name: String, loading: &Loading) -> Result<Loaded, ContractError> {
    let packages = packages(loading)?;
    let read = tokio::task::spawn_blocking(move || unpacked(&bytes, name, &packages)).await;
    read.unwrap_or_else(|stopped| Err(ContractError::Internal(stopped.to_string())))
}

fn unpacked(bytes: &[u8], name: String, packages: &PackageSource) -> Result<Loaded, ContractError> {
    let directory = tempfile::tempdir().map_err(|error| ContractError::Internal(error.to_string()))?;
    packages.unpack(bytes, directory.path(), &name)?;
    from_directory(directory.path(), name)
}

/// Reads the document of a bundle whose files are in `directory`.
fn from_directory(directory: &Path, name: String) -> Result<Loaded, ContractError> {
    let failed = |error: std::io::Error| ContractError::Local {
        path: name.clone(),
        source: std::sync::Arc::new(error),
    };
    let mut files = BTreeSet::new();
    collect(directory, "", &mut files).map_err(failed)?;
    if !files.contains(FILE) {
        return Err(ContractError::NoDocument(name));
    }
    let file = std::fs::File::open(directory.join(FILE)).map_err(failed)?;
    let mut bytes = Vec::new();
    let limit = MAX_DOCUMENT as u64 + 1;
    std::io::Read::read_to_end(&mut std::io::Read::take(file, limit), &mut bytes).map_err(failed)?;
    Ok(Loaded { files: Some(files), ..Loaded::plain(bytes, name) })
}

/// Adds the regular files below a directory. Links are not followed.
fn collect(directory: &Path, prefix: &str, files: &mut BTreeSet<String>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        let name = if prefix.is_empty() { name } else { format!("{prefix}/{name}") };
        let kind = entry.file_type()?;
        if kind.is_dir() && files.len() < LIMITS.entries {
            collect(&entry.path(), &name, files)?;
        } else if kind.is_file() && files.len() < LIMITS.entries {
            files.insert(name);
        }
    }
    Ok(())
}

#[cfg(test)]
#[path = "source_tests.rs"]
mod tests;
