//! Where in Vault a secret is.

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

/// All but what needs no encoding in a segment of a path (RFC 3986 section 3.3), of which keys use the colon.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b':');

/// A path inside an engine. Paths that it makes are those of policies: unencoded, without the version of the API.
pub(super) struct Place {
    mount: String,
    /// Empty, or with a slash behind.
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

    /// The path that a secret is read from, written to and deleted at; an error for a key that Vault would refuse
    /// on all of them, with texts and statuses that do not tell the key.
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

    /// The path that tells what a folder holds. `folder` is empty or has a slash behind.
    pub(super) fn folder(&self, folder: &str) -> String {
        let Self { mount, prefix, version } = self;
        match version {
            KvVersion::V1 => format!("{mount}/{prefix}{folder}"),
            KvVersion::V2 => format!("{mount}/metadata/{prefix}{folder}"),
        }
    }

    /// The path that tells what is mounted. Any token that may do something in a mount may read it.
    pub(super) fn about_mount(&self) -> String {
        format!("sys/internal/ui/mounts/{}", self.mount)
    }

    /// Whether what is mounted is what the settings say.
    pub(super) fn check(&self, found: &Mount) -> Result<(), VaultError> {
        let mount = &self.mount;
        let at = found.path.as_deref().unwrap_or(mount).trim_matches('/');
        if at != mount {
            return Err(refuse("mount", format!("the engine is mounted at {at:?}, not at {mount:?}")));
        }
        if !matches!(found.kind.as_str(), "kv" | "generic") {
            return Err(refuse("mount", format!("{mount:?} is no key/value engine but {}", found.kind)));
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

    /// The request that stores `value`.
    pub(super) fn body(&self, value: &Secret) -> Result<Bytes, VaultError> {
        let stored = Stored { value: value.expose() };
        // Six times is the most that escaping makes of it.
        let room = 6 * value.expose().len() + 64;
        match self.version {
            KvVersion::V1 => encode(&stored, room),
            KvVersion::V2 => encode(&Versioned { data: stored }, room),
        }
    }
}

/// What of a key Vault takes in no path: two dots anywhere, and what its language does not call printable, of which
/// the space is the only white space.
fn obstacle(key: &str) -> Option<&'static str> {
    if key.contains("..") {
        return Some("two dots in a row");
    }
    // What the standard library escapes is not printable, once a mark has a letter to stand on.
    let escaped =
        |character: char| ['a', character].iter().collect::<String>().escape_debug().nth(2).is_some();
    key.chars()
        .any(|character| !character.is_ascii_graphic() && character != ' ' && escaped(character))
        .then_some("control characters or invisible ones")
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

/// `value` as JSON that is zeroed once it is sent. `room` bytes must be enough: what a growing buffer leaves
/// behind is not zeroed.
pub(super) fn encode(value: &impl Serialize, room: usize) -> Result<Bytes, VaultError> {
    let mut json = Zeroizing::new(Vec::with_capacity(room));
    let encoded = serde_json::to_writer(&mut *json, value);
    encoded.map_err(|error| refuse("value", format!("cannot be written as JSON: {error}")))?;
    Ok(Bytes::from_owner(json))
}

/// The address of a server, to which paths are appended.
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
            return Err(wrong("must not hold credentials; give them in the login"));
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(wrong("must have neither query nor fragment"));
        }
        Ok(Self(url.as_str().trim_end_matches('/').to_owned()))
    }

    /// The URL of an unencoded path of the API.
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
