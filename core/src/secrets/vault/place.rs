//! The paths of secrets in Vault.

use std::fmt;

use bytes::Bytes;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Serialize;
use url::Url;
use zeroize::Zeroizing;

use super::answer::Mount;
use super::settings::{plain_path, refuse};
use super::{KvVersion, VaultError, VaultSettings};
use crate::secrets::{Secret, SecretKey};

/// Characters that are percent-encoded in a path segment (RFC 3986 section 3.3). Of the optional ones only the colon
/// stays, because keys use it.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b':');

/// A path inside an engine. The paths that it builds are spelled as in policies: unencoded and without the API
/// version.
pub(super) struct Place {
    mount: String,
    /// Empty, or with a trailing slash.
    prefix: String,
    version: KvVersion,
}

impl Place {
    pub(super) fn new(settings: &VaultSettings) -> Result<Self, VaultError> {
        let prefix = match settings.path_prefix.trim().trim_matches('/') {
            "" => String::new(),
            prefix => plain_path("pathPrefix", prefix)? + "/",
        };
        Ok(Self { mount: plain_path("mount", &settings.mount)?, prefix, version: settings.kv_version })
    }

    pub(super) fn version(&self) -> KvVersion {
        self.version
    }

    /// Returns the path to read, write and delete a secret. Fails for keys that Vault rejects on all of them, because
    /// Vault's own errors do not name the key.
    pub(super) fn of(&self, key: &SecretKey) -> Result<String, VaultError> {
        if let Some(obstacle) = obstacle(key.as_str()) {
            return Err(VaultError::Key { key: key.clone(), obstacle });
        }
        let Self { mount, prefix, version } = self;
        Ok(match version {
            KvVersion::V1 => format!("{mount}/{prefix}{key}"),
            KvVersion::V2 => format!("{mount}/data/{prefix}{key}"),
        })
    }

    /// Returns the path to list a folder. `folder` is empty or has a trailing slash.
    pub(super) fn folder(&self, folder: &str) -> String {
        let Self { mount, prefix, version } = self;
        match version {
            KvVersion::V1 => format!("{mount}/{prefix}{folder}"),
            KvVersion::V2 => format!("{mount}/metadata/{prefix}{folder}"),
        }
    }

    /// Returns the path that describes the mount. Any token with a permission in the mount may read it.
    pub(super) fn about_mount(&self) -> String {
        format!("sys/internal/ui/mounts/{}", self.mount)
    }

    /// Checks that the mounted engine matches the settings.
    pub(super) fn check(&self, found: &Mount) -> Result<(), VaultError> {
        let mount = &self.mount;
        let at = found.path.as_deref().unwrap_or(mount).trim_matches('/');
        if at != mount {
            return Err(refuse("mount", format!("the engine is mounted at {at:?}, not at {mount:?}")));
        }
        if !matches!(found.kind.as_str(), "kv" | "generic") {
            return Err(refuse(
                "mount",
                format!("{mount:?} is not a key/value engine; its type is {}", found.kind),
            ));
        }
        let version = found.version();
        if version != self.version.to_string() {
            return Err(refuse(
                "kvVersion",
                format!("{mount:?} is a version {version} engine; set {version}"),
            ));
        }
        Ok(())
    }

    /// Returns the request body that stores `value`.
    pub(super) fn body(&self, value: &Secret) -> Result<Bytes, VaultError> {
        let stored = Stored { value: value.expose() };
        // Escaping makes a text at most six times as long.
        let room = 6 * value.expose().len() + 64;
        match self.version {
            KvVersion::V1 => encode(&stored, room),
            KvVersion::V2 => encode(&Versioned { data: stored }, room),
        }
    }
}

/// Returns what Vault does not allow in a path: two dots in a row, and characters that Go does not treat as
/// printable. The only printable white space is the space.
fn obstacle(key: &str) -> Option<&'static str> {
    if key.contains("..") {
        return Some("two dots in a row");
    }
    // `escape_debug` escapes characters that are not printable. The letter in front keeps it from escaping combining
    // marks.
    let escaped =
        |character: char| ['a', character].iter().collect::<String>().escape_debug().nth(2).is_some();
    key.chars()
        .any(|character| !character.is_ascii_graphic() && character != ' ' && escaped(character))
        .then_some("control or invisible characters")
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.folder(""))
    }
}

#[derive(Serialize)]
struct Versioned<'a> {
    data: Stored<'a>,
}

#[derive(Serialize)]
struct Stored<'a> {
    value: &'a str,
}

/// Encodes `value` as JSON that is zeroed after sending. `room` bytes must be enough, because a buffer that grows
/// leaves unzeroed memory behind.
pub(super) fn encode(value: &impl Serialize, room: usize) -> Result<Bytes, VaultError> {
    let mut json = Zeroizing::new(Vec::with_capacity(room));
    let encoded = serde_json::to_writer(&mut *json, value);
    encoded.map_err(|error| refuse("value", format!("cannot be written as JSON: {error}")))?;
    Ok(Bytes::from_owner(json))
}

/// The address of a Vault server, to which paths are appended.
#[derive(Clone)]
pub(super) struct Address(String);

impl Address {
    pub(super) fn parse(text: &str) -> Result<Self, VaultError> {
        let wrong = |reason: &str| refuse("address", reason.to_owned());
        let url = Url::parse(text.trim()).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
        let url = url
            .filter(Url::has_host)
            .ok_or_else(|| wrong("must be an http:// or https:// URL with a host"))?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err(wrong("must not contain credentials; configure them in the login"));
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(wrong("must not have a query or a fragment"));
        }
        Ok(Self(url.as_str().trim_end_matches('/').to_owned()))
    }

    /// Returns the URL of an unencoded API path.
    pub(super) fn join(&self, path: &str, query: Option<&str>) -> Result<Url, VaultError> {
        let encoded: Vec<_> =
            path.split('/').map(|segment| utf8_percent_encode(segment, ENCODED).to_string()).collect();
        let query = query.map_or_else(String::new, |query| format!("?{query}"));
        let url = format!("{}/v1/{}{query}", self.0, encoded.join("/"));
        Url::parse(&url).map_err(|error| refuse("address", error.to_string()))
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
