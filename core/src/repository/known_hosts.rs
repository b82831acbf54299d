//! Parses the `known_hosts` format of OpenSSH, described in sshd(8), and checks host keys against it.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use ring::hmac;
use sha2::{Digest, Sha256};

/// The keys of a `known_hosts` file.
///
/// Invalid lines are ignored, like in OpenSSH. `@cert-authority` lines are ignored, too, because host certificates are
/// not requested.
#[derive(Clone, Debug, Default)]
pub struct KnownHosts {
    entries: Vec<KnownHost>,
}

#[derive(Clone, Debug)]
struct KnownHost {
    revoked: bool,
    hosts: Hosts,
    key: HostKey,
}

#[derive(Clone, Debug)]
enum Hosts {
    /// Patterns with `*` and `?`; true for patterns with a leading `!`.
    Patterns(Vec<(bool, String)>),
    /// HMAC-SHA1 of the name, keyed with the salt.
    Hashed { salt: Vec<u8>, digest: Vec<u8> },
}

/// A public key of an SSH server in wire format (RFC 4253 section 6.6).
#[derive(Clone, PartialEq, Eq)]
pub struct HostKey {
    blob: Vec<u8>,
}

/// The reason why a host key is not trusted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HostKeyError {
    /// No known hosts are configured.
    #[error("the identity of host {0} cannot be checked: no known hosts are configured")]
    Unconfigured(String),
    /// The connection has no usable host key.
    #[error("host {0} presented no usable host key")]
    Unreadable(String),
    /// The known hosts do not list the host.
    #[error("host {host} is not among the known hosts; it presented the {algorithm} key {fingerprint}")]
    UnknownHost {
        /// The host, with its port unless that is 22.
        host: String,
        /// The algorithm of the presented key.
        algorithm: String,
        /// Its fingerprint.
        fingerprint: String,
    },
    /// The host is listed, but only with keys of other algorithms.
    #[error(
        "host {host} presented the {algorithm} key {fingerprint}, but the known hosts list only {} for it; \
         add its {algorithm} key to them",
        known.join(", ")
    )]
    OtherAlgorithm {
        /// The host, with its port unless that is 22.
        host: String,
        /// The algorithm of the presented key.
        algorithm: String,
        /// Its fingerprint.
        fingerprint: String,
        /// The listed algorithms.
        known: Vec<String>,
    },
    /// The host is listed with another key of the same algorithm.
    #[error(
        "host {host} presented the {algorithm} key {fingerprint}, but the known hosts list {}; \
         the connection may be intercepted, or the key was replaced",
        known.join(", ")
    )]
    Mismatch {
        /// The host, with its port unless that is 22.
        host: String,
        /// The algorithm of the presented key.
        algorithm: String,
        /// Its fingerprint.
        fingerprint: String,
        /// The listed fingerprints.
        known: Vec<String>,
    },
    /// The presented key is marked `@revoked`.
    #[error("host {host} presented the {algorithm} key {fingerprint}, which is revoked")]
    Revoked {
        /// The host, with its port unless that is 22.
        host: String,
        /// The algorithm of the presented key.
        algorithm: String,
        /// Its fingerprint.
        fingerprint: String,
    },
}

impl KnownHosts {
    /// Parses the text of a `known_hosts` file.
    pub fn parse(text: &str) -> Self {
        Self { entries: text.lines().filter_map(KnownHost::parse).collect() }
    }

    /// Checks the key that `host` presented on `port`.
    ///
    /// A host with another port than 22 is listed as `[host]:port`. If there is no such line, lines for the plain
    /// name apply, like in OpenSSH.
    pub fn check(&self, host: &str, port: u16, key: &HostKey) -> Result<(), HostKeyError> {
        let (qualified, mut lines) = self.lines_of(host, port);
        let (algorithm, fingerprint) = (key.algorithm(), key.fingerprint());
        let (host, same) = (qualified, |line: &&&KnownHost| line.key == *key);
        if lines.iter().filter(same).any(|line| line.revoked) {
            return Err(HostKeyError::Revoked { host, algorithm, fingerprint });
        }
        lines.retain(|line| !line.revoked);
        if lines.iter().any(|line| line.key == *key) {
            return Ok(());
        }
        let known: Vec<&HostKey> = lines.iter().map(|line| &line.key).collect();
        Err(distrust(host, algorithm, fingerprint, &known))
    }

    /// Returns the algorithms of the keys that are listed for a host.
    pub fn algorithms(&self, host: &str, port: u16) -> Vec<String> {
        let (_, lines) = self.lines_of(host, port);
        lines.iter().filter(|line| !line.revoked).map(|line| line.key.algorithm()).collect()
    }

    /// Returns the name of a host in the list, and its lines.
    fn lines_of(&self, host: &str, port: u16) -> (String, Vec<&KnownHost>) {
        let name = host.to_lowercase();
        let qualified = host_and_port(&name, port);
        let mut lines = self.lines(&qualified);
        if lines.is_empty() && qualified != name {
            lines = self.lines(&name);
        }
        (qualified, lines)
    }

    fn lines(&self, name: &str) -> Vec<&KnownHost> {
        self.entries.iter().filter(|entry| entry.hosts.match_name(name)).collect()
    }
}

/// Returns the error for a key that is not listed for its host.
fn distrust(host: String, algorithm: String, fingerprint: String, known: &[&HostKey]) -> HostKeyError {
    if known.is_empty() {
        return HostKeyError::UnknownHost { host, algorithm, fingerprint };
    }
    let alike: Vec<String> =
        known.iter().filter(|key| key.algorithm() == algorithm).map(|key| key.fingerprint()).collect();
    if alike.is_empty() {
        let mut known: Vec<String> = known.iter().map(|key| key.algorithm()).collect();
        known.sort();
        known.dedup();
        return HostKeyError::OtherAlgorithm { host, algorithm, fingerprint, known };
    }
    HostKeyError::Mismatch { host, algorithm, fingerprint, known: alike }
}

/// Returns a host in the spelling of `known_hosts`: its name, or `[name]:port` for ports other than 22.
pub(super) fn host_and_port(host: &str, port: u16) -> String {
    if port == 22 { host.to_owned() } else { format!("[{host}]:{port}") }
}

impl KnownHost {
    fn parse(line: &str) -> Option<Self> {
        let mut fields = line.split_ascii_whitespace();
        let mut first = fields.next()?;
        let revoked = first == "@revoked";
        if revoked {
            first = fields.next()?;
        } else if first.starts_with(['@', '#']) {
            return None;
        }
        let hosts = Hosts::parse(first)?;
        let algorithm = fields.next()?;
        let key = HostKey::new(STANDARD.decode(fields.next()?).ok()?)?;
        (key.algorithm() == algorithm).then_some(Self { revoked, hosts, key })
    }
}

impl Hosts {
    fn parse(field: &str) -> Option<Self> {
        if let Some(hashed) = field.strip_prefix("|1|") {
            let (salt, digest) = hashed.split_once('|')?;
            return Some(Self::Hashed {
                salt: STANDARD.decode(salt).ok()?,
                digest: STANDARD.decode(digest).ok()?,
            });
        }
        let patterns = field.split(',').filter(|pattern| !pattern.is_empty());
        let patterns = patterns.map(|pattern| match pattern.strip_prefix('!') {
            Some(pattern) => (true, pattern.to_lowercase()),
            None => (false, pattern.to_lowercase()),
        });
        Some(Self::Patterns(patterns.collect()))
    }

    fn match_name(&self, name: &str) -> bool {
        match self {
            Self::Patterns(patterns) => {
                let matching = |negated: bool| {
                    patterns.iter().any(|(not, pattern)| *not == negated && wildcard(pattern, name))
                };
                matching(false) && !matching(true)
            }
            Self::Hashed { salt, digest } => {
                let key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, salt);
                hmac::verify(&key, name.as_bytes(), digest).is_ok()
            }
        }
    }
}

/// Matches `*` and `?` like a shell. All other characters are literal, also brackets as in `[host]:2222`.
fn wildcard(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
    let (mut p, mut t, mut retry) = (0, 0, None);
    while t < text.len() {
        match pattern.get(p) {
            Some('*') => {
                retry = Some((p, t));
                p += 1;
            }
            Some(c) if *c == '?' || *c == text[t] => (p, t) = (p + 1, t + 1),
            _ => match retry {
                // Extend the match of the last star by one character.
                Some((star, from)) => {
                    retry = Some((star, from + 1));
                    (p, t) = (star + 1, from + 1);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}

impl HostKey {
    /// Returns a key in wire format; `None` if it does not start with the name of an algorithm.
    pub fn new(blob: Vec<u8>) -> Option<Self> {
        let key = Self { blob };
        let (algorithm, _) = read_field(&key.blob)?;
        std::str::from_utf8(algorithm).is_ok_and(|name| !name.is_empty()).then_some(key)
    }

    /// Returns the name of the algorithm, such as `ssh-ed25519`.
    pub fn algorithm(&self) -> String {
        let name = read_field(&self.blob).map_or(&[][..], |(name, _)| name);
        String::from_utf8_lossy(name).into_owned()
    }

    /// Returns `SHA256:` and the unpadded base64 of the digest, like `ssh-keygen -l`.
    pub fn fingerprint(&self) -> String {
        format!("SHA256:{}", STANDARD_NO_PAD.encode(Sha256::digest(&self.blob)))
    }
}

/// Splits off one length-prefixed field (RFC 4251 section 5, "string").
fn read_field(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    rest.split_at_checked(usize::try_from(u32::from_be_bytes(*length)).ok()?)
}

impl fmt::Debug for HostKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.algorithm(), self.fingerprint())
    }
}

#[cfg(test)]
#[path = "known_hosts_tests.rs"]
mod tests;
