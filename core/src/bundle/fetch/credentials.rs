//! Reads registry credentials from a Docker configuration.

use std::collections::HashMap;
use std::io::ErrorKind;
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

use super::super::BundleError;
use super::super::reference::registry_name;
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
    #[serde(default)]
    auths: HashMap<String, Login>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Login {
    auth: String,
    username: String,
    password: String,
    identitytoken: String,
}

impl Credentials {
    /// Returns the credentials for `registry` in the Docker configuration `file`; without a file or an entry,
    /// [`Self::Anonymous`]. Blocks.
    pub fn find(file: Option<&Path>, registry: &str) -> Result<Self, BundleError> {
        let Some(file) = file else { return Ok(Self::Anonymous) };
        let bytes = match std::fs::read(file) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Self::Anonymous),
            Err(error) => return Err(BundleError::io("read", file)(error)),
        };
        Self::parse(&bytes, &file.display().to_string(), registry)
    }

    /// Returns the credentials for `registry` in a Docker configuration. `origin` names it in errors.
    pub fn parse(bytes: &[u8], origin: &str, registry: &str) -> Result<Self, BundleError> {
        let refuse = |reason: String| BundleError::Credentials { file: origin.to_owned(), reason };
        // Do not use the parser's own message: it may quote the file.
        let config: Config = serde_json::from_slice(bytes).map_err(|error| {
            refuse(format!(
                "line {}, column {}: it is not a Docker configuration",
                error.line(),
                error.column()
            ))
        })?;
        let login = config.auths.into_iter().find(|(key, _)| host(key) == host(registry));
        login.map_or(Ok(Self::Anonymous), |(key, login)| {
            login.credentials().ok_or_else(|| refuse(format!("the entry \"{key}\" cannot be decoded")))
        })
    }
}

impl Login {
    fn credentials(self) -> Option<Credentials> {
        if !self.identitytoken.is_empty() {
            return Some(Credentials::RefreshToken(self.identitytoken.into()));
        }
        if self.auth.is_empty() {
            let anonymous = self.username.is_empty();
            let login = || Credentials::Password(self.username, self.password.into());
            return Some(if anonymous { Credentials::Anonymous } else { login() });
        }
        let decoded = String::from_utf8(STANDARD.decode(self.auth.trim()).ok()?).ok()?;
        let (user, password) = decoded.split_once(':')?;
        // Some tools pad the password with NUL.
        Some(Credentials::Password(user.to_owned(), password.trim_end_matches('\0').to_owned().into()))
    }
}

/// Returns the host of a registry, or of a key of the configuration, which may be a URL. All names of Docker Hub are
/// equal.
fn host(key: &str) -> &str {
    let key = key.split_once("://").map_or(key, |(_, rest)| rest);
    registry_name(key.split('/').next().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

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
        assert_eq!(Credentials::find(Some(&file), "r.test").unwrap(), expected);
    }

    #[rstest]
    #[case("https://index.docker.io/v1/", "registry-1.docker.io")]
    #[case("docker.io", "registry-1.docker.io")]
    #[case("registry-1.docker.io", "docker.io")]
    fn the_names_of_docker_hub_are_equal(#[case] key: &str, #[case] registry: &str) {
        let config = format!(r#"{{"auths": {{"{key}": {{"auth": "b3BzOmE6Yg=="}}}}}}"#);
        let found = Credentials::parse(config.as_bytes(), "test", registry).unwrap();
        assert_eq!(found, password("ops", "a:b"));
    }

    #[test]
    fn without_a_file_credentials_are_anonymous() {
        let missing = Path::new("/nowhere/config.json");
        assert_eq!(Credentials::find(Some(missing), "r.test").unwrap(), Credentials::Anonymous);
        assert_eq!(Credentials::find(None, "r.test").unwrap(), Credentials::Anonymous);
    }

    #[rstest]
    #[case(r#"{"auths": ["canary"]}"#, "line 1, column 10: it is not a Docker configuration")]
    #[case(r#"{"auths": {"r.test": {"auth": "canary!"}}}"#, "the entry \"r.test\" cannot be decoded")]
    fn broken_files_are_errors_that_show_no_secret(#[case] config: &str, #[case] reason: &str) {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("config.json");
        std::fs::write(&file, config).unwrap();
        let error = Credentials::find(Some(&file), "r.test").unwrap_err().to_string();
        assert_eq!(error, format!("registry credentials in {}: {reason}", file.display()));
    }
}
