//! Reads registry credentials from a Docker configuration.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

use super::super::BundleError;
use super::super::reference::{OciReference, registry_name};
use crate::secrets::Secret;

/// The credentials for a registry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::bundle) enum Credentials {
    /// No credentials.
    #[default]
    Anonymous,
    /// A user name and a password.
    Password(String, Secret),
    /// A refresh token (`identitytoken`).
    RefreshToken(Secret),
}

/// The part of `config.json` that is used here.
#[derive(Default, Deserialize)]
struct Config {
    /// Null if it is empty, as Go encodes it.
    auths: Option<BTreeMap<String, Login>>,
}

#[derive(Default, Deserialize)]
struct Login {
    auth: Option<String>,
    username: Option<String>,
    password: Option<String>,
    identitytoken: Option<String>,
}

impl Credentials {
    /// Returns the credentials for `registry/repository` in the Docker configuration `file`; if the file does not exist, or
    /// has no such entry, [`Self::Anonymous`]. Blocks.
    pub fn find(file: &Path, oci: &OciReference) -> Result<Self, BundleError> {
        let bytes = match std::fs::read(file) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Self::Anonymous),
            Err(error) => return Err(BundleError::io("read", file)(error)),
        };
        Self::parse(&bytes, &file.display().to_string(), oci)
    }

    /// Returns the credentials for the repository of `oci` in a Docker configuration. `origin` names it in errors.
    ///
    /// The key of an entry is a registry, or a registry and the beginning of the path of its repositories. The longest one
    /// applies (containers-auth.json).
    pub fn parse(bytes: &[u8], origin: &str, oci: &OciReference) -> Result<Self, BundleError> {
        let refuse = |reason: String| BundleError::Credentials { file: origin.to_owned(), reason };
        // Do not use the parser's own message: it may quote the file.
        let config: Config = serde_json::from_slice(bytes).map_err(|error| {
            refuse(format!(
                "line {}, column {}: it is not a Docker configuration",
                error.line(),
                error.column()
            ))
        })?;
        let (registry, repository) = (registry_name(&oci.registry), oci.repository.as_str());
        let fits = |key: &str| {
            let (host, path) = split(key);
            let below = |rest: &str| rest.is_empty() || path.is_empty() || rest.starts_with('/');
            host == registry && repository.strip_prefix(path).is_some_and(below)
        };
        let entries = config.auths.unwrap_or_default().into_iter().filter(|(key, _)| fits(key));
        let login = entries.max_by_key(|(key, _)| split(key).1.len());
        login.map_or(Ok(Self::Anonymous), |(key, login)| {
            login.credentials().ok_or_else(|| refuse(format!("the entry \"{key}\" cannot be decoded")))
        })
    }
}

impl Login {
    fn credentials(self) -> Option<Credentials> {
        let stated = |text: Option<String>| text.filter(|text| !text.is_empty());
        if let Some(token) = stated(self.identitytoken) {
            return Some(Credentials::RefreshToken(token.into()));
        }
        let Some(auth) = stated(self.auth) else {
            let login = |user| Credentials::Password(user, self.password.unwrap_or_default().into());
            return Some(stated(self.username).map_or(Credentials::Anonymous, login));
        };
        let decoded = String::from_utf8(STANDARD.decode(auth.trim()).ok()?).ok()?;
        let (user, password) = decoded.split_once(':')?;
        // Some tools pad the password with NUL.
        Some(Credentials::Password(user.to_owned(), password.trim_end_matches('\0').to_owned().into()))
    }
}

/// Returns the host and the path in a key of the configuration, which may be a URL. All names of Docker Hub are equal.
fn split(key: &str) -> (&str, &str) {
    let key = key.split_once("://").map_or(key, |(_, rest)| rest);
    let (host, path) = key.split_once('/').unwrap_or((key, ""));
    let path = path.trim_matches('/');
    // The versions of the API are not a part of the repository.
    (registry_name(host), if matches!(path, "v1" | "v2") { "" } else { path })
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::bundle::reference::Reference;

    fn repository(registry: &str) -> OciReference {
        let Reference::Oci(oci) = Reference::parse(&format!("oci://{registry}/acme/b:1")).unwrap() else {
            panic!("not an OCI reference");
        };
        oci
    }

    fn password(user: &str, password: &str) -> Credentials {
        Credentials::Password(user.to_owned(), password.to_owned().into())
    }

    #[rstest]
    #[case(r#"{"auths": {"r.test": {"auth": "b3BzOmE6Yg=="}}}"#, password("ops", "a:b"))]
    #[case(r#"{"auths": {"https://r.test/v2/": {"auth": "b3BzOmE6Yg=="}}}"#, password("ops", "a:b"))]
    #[case(r#"{"auths": {"r.test": {"username": "ops", "password": "x"}}}"#, password("ops", "x"))]
    #[case(
        r#"{"auths": {"r.test": {"auth": "b3BzOg==", "identitytoken": "t"}}}"#,
        Credentials::RefreshToken("t".to_owned().into())
    )]
    #[case(r#"{"auths": {"r.test": {}}}"#, Credentials::Anonymous)]
    #[case(r#"{"auths": {"r.test:5000": {"auth": "b3BzOmE6Yg=="}}}"#, Credentials::Anonymous)]
    #[case(r#"{"credsStore": "x"}"#, Credentials::Anonymous)]
    #[case(r#"{"auths": {"https://index.docker.io/v1/": {"auth": "b3BzOmE6Yg=="}}}"#, Credentials::Anonymous)]
    fn logins(#[case] config: &str, #[case] expected: Credentials) {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("config.json");
        std::fs::write(&file, config).unwrap();
        assert_eq!(Credentials::find(&file, &repository("r.test")).unwrap(), expected);
    }

    #[rstest]
    #[case("https://index.docker.io/v1/", "registry-1.docker.io")]
    #[case("docker.io", "registry-1.docker.io")]
    #[case("registry-1.docker.io", "docker.io")]
    fn the_names_of_docker_hub_are_equal(#[case] key: &str, #[case] registry: &str) {
        let config = format!(r#"{{"auths": {{"{key}": {{"auth": "b3BzOmE6Yg=="}}}}}}"#);
        let found = Credentials::parse(config.as_bytes(), "test", &repository(registry)).unwrap();
        assert_eq!(found, password("ops", "a:b"));
    }

    #[rstest]
    #[case("team-a/b", "a")]
    #[case("team-a", "a")]
    #[case("team-ab/c", "o")]
    #[case("team-b/deep/c", "d")]
    fn the_longest_key_applies(#[case] name: &str, #[case] user: &str) {
        let config = r#"{"auths": {
            "r.test/team-a": {"auth": "YTpw"}, "r.test/team-b": {"auth": "Yjpw"}, "r.test": {"auth": "bzpw"},
            "r.test/team-b/deep/": {"auth": "ZDpw"}, "other.test/team-a/b": {"auth": "eDpw"}
        }}"#;
        let oci = OciReference { repository: name.to_owned(), ..repository("r.test") };
        assert_eq!(Credentials::parse(config.as_bytes(), "test", &oci).unwrap(), password(user, "p"));
    }

    #[rstest]
    #[case(r#"{"auths": null, "credsStore": "desktop"}"#)]
    #[case(r#"{"auths": {"r.test": {"auth": null}}}"#)]
    fn null_means_none(#[case] config: &str) {
        let found = Credentials::parse(config.as_bytes(), "test", &repository("r.test")).unwrap();
        assert_eq!(found, Credentials::Anonymous);
    }

    #[test]
    fn without_a_file_credentials_are_anonymous() {
        let missing = Path::new("/nowhere/config.json");
        assert_eq!(Credentials::find(missing, &repository("r.test")).unwrap(), Credentials::Anonymous);
    }

    #[rstest]
    #[case(r#"{"auths": ["canary"]}"#, "line 1, column 10: it is not a Docker configuration")]
    #[case(r#"{"auths": {"r.test": {"auth": "canary!"}}}"#, "the entry \"r.test\" cannot be decoded")]
    fn broken_files_are_errors_that_show_no_secret(#[case] config: &str, #[case] reason: &str) {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("config.json");
        std::fs::write(&file, config).unwrap();
        let error = Credentials::find(&file, &repository("r.test")).unwrap_err().to_string();
        assert_eq!(error, format!("registry credentials in {}: {reason}", file.display()));
    }
}
