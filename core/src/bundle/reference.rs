//! References to bundles, in all their forms, and their names in the cache.

use std::fmt;
use std::path::{Path, PathBuf};

use semver::Version;
use sha2::{Digest, Sha256};
use url::Url;

use super::BundleError;
use super::manifest::{is_product, version};
use crate::digest::hex;
use crate::transport::shown;

/// The base URL of the releases of named bundles.
pub const RELEASES: &str = "https://github.com/crmarques/";

/// The name of Docker Hub in references.
pub(crate) const DOCKER_HUB: &str = "docker.io";
/// The host that serves Docker Hub.
pub(crate) const DOCKER_HUB_HOST: &str = "registry-1.docker.io";

/// The maximum length of a shorthand, so that a cache entry has a valid file name.
const SHORTHAND_LIMIT: usize = 128;
/// The maximum number of characters of an artifact's name in its cache entry.
const ARTIFACT_LIMIT: usize = 64;

/// The location of a bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reference {
    /// `oci://registry/repository:tag` or `…@digest`.
    Oci(OciReference),
    /// `name:version`, a release on GitHub.
    Release {
        /// The bundle's name.
        name: String,
        /// The bundle's version.
        version: Version,
    },
    /// The URL of an archive, http or https.
    Url(Url),
    /// A directory or an archive on this machine.
    Path(PathBuf),
}

/// Returns the name of a registry. All hosts of Docker Hub are one registry.
pub(crate) fn registry_name(host: &str) -> &str {
    if matches!(host, "index.docker.io" | DOCKER_HUB_HOST) { DOCKER_HUB } else { host }
}

/// An artifact in a registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OciReference {
    /// The host, and the port if it is not the default one.
    pub registry: String,
    /// The repository in the registry.
    pub repository: String,
    /// The tag or digest of the manifest.
    pub version: OciVersion,
}

/// The tag or digest of a manifest in a repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OciVersion {
    /// The manifest that the tag currently refers to.
    Tag(String),
    /// The manifest with this digest, `sha256:` and 64 hexadecimal digits.
    Digest(String),
}

impl Reference {
    /// Parses a reference. The first form that matches applies: `oci://`, `name:version`, `http(s)://`, `file://`, a
    /// path. Another scheme is [`BundleError::Reference`].
    pub fn parse(text: &str) -> Result<Self, BundleError> {
        let text = text.trim();
        let refuse = |reason: &str| refused(text, reason);
        if let Some(rest) = strip_scheme(text, "oci") {
            return OciReference::parse(rest).map(Self::Oci).map_err(|reason| refuse(&reason));
        }
        if let Some((name, version)) = release(text) {
            if text.len() > SHORTHAND_LIMIT {
                return Err(refuse("name and version are too long"));
            }
            return Ok(Self::Release { name, version });
        }
        match text.split_once("://").filter(|(scheme, _)| is_scheme(scheme)) {
            None if text.is_empty() => {
                Err(refuse("is empty; give name:version, an oci or https URL, or a path"))
            }
            None => Ok(Self::Path(PathBuf::from(text))),
            Some((scheme, _)) => match scheme.to_ascii_lowercase().as_str() {
                "http" | "https" => {
                    Url::parse(text).map(Self::Url).map_err(|error| refuse(&format!("is not a URL: {error}")))
                }
                "file" => local(text).map(Self::Path).ok_or_else(|| {
                    refuse("must be file:///<absolute path>; files of other hosts cannot be read")
                }),
                scheme => Err(refuse(&format!(
                    "the scheme \"{scheme}\" is not supported; use oci, https, http or file"
                ))),
            },
        }
    }

    /// Parses a reference to a local file: `file://` or a path, even if the path looks like `name:version`.
    pub fn parse_file(text: &str) -> Result<Self, BundleError> {
        let text = text.trim();
        match text.split_once("://").filter(|(scheme, _)| is_scheme(scheme)) {
            Some((scheme, _)) if !scheme.eq_ignore_ascii_case("file") => {
                Err(refused(text, "must be a path or a file URL"))
            }
            None if !text.is_empty() => Ok(Self::Path(PathBuf::from(text))),
            _ => Self::parse(text),
        }
    }

    /// Returns the URL of the archive of a release below `base`.
    ///
    /// `till-bundle:1.2.0` is `declarest-bundle-till/releases/download/v1.2.0/till-bundle-1.2.0.tar.gz`.
    pub(super) fn release_url(base: &Url, name: &str, version: &Version) -> Result<Url, url::ParseError> {
        let product = name.strip_suffix("-bundle").unwrap_or(name);
        base.join(&format!("declarest-bundle-{product}/releases/download/v{version}/{name}-{version}.tar.gz"))
    }

    /// Returns the name of its entry in the cache: `<name>-<version>` of a release, otherwise
    /// `<artifact>-<12 hex digits>` of the SHA-256 of the source. A path must be absolute.
    pub(super) fn cache_entry(&self) -> String {
        let artifact = match self {
            Self::Release { name, version } => return format!("{name}-{version}"),
            Self::Oci(oci) => last_segment(&oci.repository).to_owned(),
            Self::Url(url) => last_segment(url.path()).to_owned(),
            Self::Path(path) => {
                path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
            }
        };
        format!("{}-{}", plain(&artifact), &self.source_digest()[..12])
    }

    /// Returns the SHA-256 of the source in hexadecimal. A path must be absolute.
    pub(super) fn source_digest(&self) -> String {
        let digest = match self {
            Self::Path(path) => Sha256::digest(path.as_os_str().as_encoded_bytes()),
            Self::Url(url) => Sha256::digest(url.as_str()),
            other => Sha256::digest(other.to_string()),
        };
        hex(&digest)
    }
}

impl fmt::Display for Reference {
    /// Writes the reference as it was given, but URLs without userinfo and query.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Oci(reference) => write!(f, "oci://{reference}"),
            Self::Release { name, version } => write!(f, "{name}:{version}"),
            Self::Url(url) => f.write_str(&shown(url)),
            Self::Path(path) => write!(f, "{}", path.display()),
        }
    }
}

impl OciReference {
    fn parse(text: &str) -> Result<Self, String> {
        const FORM: &str = "write oci://registry/repository:tag or oci://registry/repository@sha256:digest";
        let (registry, rest) = text.split_once('/').ok_or(FORM)?;
        if registry.is_empty()
            || Url::parse(&format!("https://{registry}/")).is_err()
            || registry.contains('@')
        {
            return Err(format!("\"{registry}\" is not a registry; {FORM}"));
        }
        let (name, digest) = rest.split_once('@').map_or((rest, None), |(name, digest)| (name, Some(digest)));
        let (repository, tag) = name.split_once(':').map_or((name, None), |(name, tag)| (name, Some(tag)));
        if !repository.split('/').all(is_repository_segment) {
            return Err(format!("\"{repository}\" is not a repository; {FORM}"));
        }
        if let Some(tag) = tag.filter(|tag| !is_tag(tag)) {
            return Err(format!("\"{tag}\" is not a tag; {FORM}"));
        }
        let version = match (digest, tag) {
            (Some(digest), _) if is_sha256(digest) => OciVersion::Digest(digest.to_owned()),
            (Some(digest), _) => return Err(format!("\"{digest}\" is not a SHA-256 digest; {FORM}")),
            (None, Some(tag)) => OciVersion::Tag(tag.to_owned()),
            (None, None) => return Err(format!("tag and digest are missing; {FORM}")),
        };
        Ok(Self { registry: registry.to_ascii_lowercase(), repository: repository.to_owned(), version })
    }
}

impl fmt::Display for OciReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { registry, repository, version } = self;
        match version {
            OciVersion::Tag(tag) => write!(f, "{registry}/{repository}:{tag}"),
            OciVersion::Digest(digest) => write!(f, "{registry}/{repository}@{digest}"),
        }
    }
}

/// Returns whether this is `sha256:` and 64 lower case hexadecimal digits, the form that registries use.
pub(super) fn is_sha256(digest: &str) -> bool {
    digest.strip_prefix("sha256:").is_some_and(|hex| {
        hex.len() == 64 && hex.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    })
}

/// Makes a path absolute, with `.` resolved and links kept.
pub(super) fn absolute(path: &Path) -> Result<PathBuf, BundleError> {
    std::path::absolute(path).map_err(BundleError::io("resolve", path))
}

fn refused(text: &str, reason: &str) -> BundleError {
    let reference = Url::parse(text).ok().filter(Url::has_host);
    // If the URL cannot be parsed, the text before an @ may be a user name and a password.
    let unread = || match (text.split_once("://"), text.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, rest))) => format!("{scheme}://{rest}"),
        _ => text.to_owned(),
    };
    let reference = reference.map_or_else(unread, |url| shown(&url));
    BundleError::Reference { reference, reason: reason.to_owned() }
}

fn release(text: &str) -> Option<(String, Version)> {
    let (name, number) = text.split_once(':')?;
    is_product(name).then(|| version(number).ok()).flatten().map(|version| (name.to_owned(), version))
}

fn local(text: &str) -> Option<PathBuf> {
    Url::parse(text).ok().filter(|url| !url.cannot_be_a_base())?.to_file_path().ok()
}

fn strip_scheme<'t>(text: &'t str, scheme: &str) -> Option<&'t str> {
    let (found, rest) = text.split_once("://")?;
    found.eq_ignore_ascii_case(scheme).then_some(rest)
}

/// Returns whether this is a URI scheme (RFC 3986, section 3.1).
fn is_scheme(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
}

/// Returns whether this is a segment of a repository name. In the OCI distribution specification, it consists of lower
/// case letters and digits, separated by `.`, `_`, `__` or dashes.
fn is_repository_segment(text: &str) -> bool {
    let alphanumeric = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let separators = text.split(|c: char| c.is_ascii() && alphanumeric(c as u8));
    let separated = separators
        .filter(|part| !part.is_empty())
        .all(|part| matches!(part, "." | "_" | "__") || part.bytes().all(|byte| byte == b'-'));
    separated
        && text.bytes().next().is_some_and(alphanumeric)
        && text.bytes().next_back().is_some_and(alphanumeric)
}

/// Returns whether this is a tag according to the OCI distribution specification.
fn is_tag(text: &str) -> bool {
    text.len() <= 128
        && text.starts_with(|first: char| first.is_ascii_alphanumeric() || first == '_')
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte))
}

fn last_segment(path: &str) -> &str {
    path.trim_end_matches('/').rsplit('/').next().unwrap_or_default()
}

/// Returns an artifact's name without its extension, and with `-` for characters that are not portable in file names.
fn plain(artifact: &str) -> String {
    let stem =
        [".tar.gz", ".tgz"].iter().find_map(|ending| artifact.strip_suffix(ending)).unwrap_or(artifact);
    let plain = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '-' };
    let name: String = stem.trim_start_matches('.').chars().map(plain).take(ARTIFACT_LIMIT).collect();
    if name.is_empty() { "bundle".to_owned() } else { name }
}
