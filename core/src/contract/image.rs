//! References to container images, compared as registries resolve them.

use std::fmt;

use crate::bundle::{DOCKER_HUB, registry_name};

/// The longest reference, in bytes.
const MAX_LENGTH: usize = 512;

/// A normalised reference: with its registry, and with `library/` for the official images of Docker Hub.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageRef {
    /// Registry and repository.
    pub repository: String,
    /// The tag, if the reference has one.
    pub tag: Option<String>,
    /// The digest, if the reference has one.
    pub digest: Option<String>,
}

impl ImageRef {
    /// Parses a reference; `None` if it is not valid.
    pub fn parse(text: &str) -> Option<Self> {
        if text.len() > MAX_LENGTH {
            return None;
        }
        let (rest, digest) = text.split_once('@').map_or((text, None), |(rest, digest)| (rest, Some(digest)));
        // A colon before the last slash is that of a port.
        let last_slash = rest.rfind('/').map_or(0, |slash| slash + 1);
        let tag = rest[last_slash..].split_once(':').map(|(_, tag)| tag);
        let name = tag.map_or(rest, |tag| &rest[..rest.len() - tag.len() - 1]);
        let (host, path) = match name.split_once('/') {
            Some((host, path)) if host.contains(['.', ':']) || host == "localhost" => (host, path),
            _ => (DOCKER_HUB, name),
        };
        let host = host.to_ascii_lowercase();
        let host = registry_name(&host);
        let valid = is_host(host)
            && path.split('/').all(is_segment)
            && tag.is_none_or(is_tag)
            && digest.is_none_or(is_digest);
        let official = host == DOCKER_HUB && !path.contains('/');
        let repository = if official { format!("{host}/library/{path}") } else { format!("{host}/{path}") };
        valid.then(|| Self { repository, tag: tag.map(str::to_owned), digest: digest.map(str::to_owned) })
    }
}

impl fmt::Display for ImageRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.repository)?;
        if let Some(tag) = &self.tag {
            write!(f, ":{tag}")?;
        }
        self.digest.as_ref().map_or(Ok(()), |digest| write!(f, "@{digest}"))
    }
}

/// Returns the digest of an image id that a container runtime reports: `sha256:…`, or a reference with a digest.
pub fn digest_of_id(id: &str) -> Option<&str> {
    let digest = id.rsplit_once('@').map_or(id, |(_, digest)| digest);
    is_digest(digest).then_some(digest)
}

fn is_host(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-:_[]".contains(&byte);
    !text.is_empty() && text.bytes().all(plain)
}

fn is_segment(text: &str) -> bool {
    let alphanumeric = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let ends = [text.bytes().next(), text.bytes().next_back()];
    ends.into_iter().all(|end| end.is_some_and(alphanumeric))
        && text.bytes().all(|byte| alphanumeric(byte) || b"._-".contains(&byte))
}

fn is_tag(text: &str) -> bool {
    text.len() <= 128
        && text.starts_with(|first: char| first.is_ascii_alphanumeric() || first == '_')
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
}

fn is_digest(text: &str) -> bool {
    text.split_once(':').is_some_and(|(algorithm, hex)| {
        let length = match algorithm {
            "sha256" => 64,
            "sha512" => 128,
            _ => return false,
        };
        hex.len() == length && hex.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    })
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("nginx", Some("docker.io/library/nginx"))]
    #[case("index.docker.io/nginx:1", Some("docker.io/library/nginx:1"))]
    #[case("team/app:1.2", Some("docker.io/team/app:1.2"))]
    #[case("R.IO/a:1", Some("r.io/a:1"))]
    #[case("localhost/a", Some("localhost/a"))]
    #[case("r.io:5000/a/b:1", Some("r.io:5000/a/b:1"))]
    #[case("", None)]
    #[case("A/b", None)]
    #[case("a b", None)]
    #[case("a@sha256:12", None)]
    #[case("a:", None)]
    #[case("https://r.io/a", None)]
    #[case("r.io/-a", None)]
    fn references_are_normalised(#[case] text: &str, #[case] expected: Option<&str>) {
        assert_eq!(ImageRef::parse(text).map(|image| image.to_string()).as_deref(), expected);
    }

    #[test]
    fn digests_of_image_ids() {
        let digest = format!("sha256:{}", "a".repeat(64));
        assert_eq!(digest_of_id(&digest), Some(digest.as_str()));
        assert_eq!(digest_of_id(&format!("docker-pullable://nginx@{digest}")), Some(digest.as_str()));
        assert_eq!(digest_of_id("nginx:1"), None);
    }
}
