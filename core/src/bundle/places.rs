//! The default locations of the bundle cache and of registry credentials.

use std::ffi::OsString;
use std::path::PathBuf;

use super::login::RegistryLogin;

/// Returns the cache of bundles: `$DECLAREST_BUNDLE_CACHE_DIR`, otherwise `~/.declarest/metadata-bundles`; `None` if
/// there is no home directory either.
///
/// `environment` returns the value of a variable; an empty value counts as unset.
pub fn cache_directory(environment: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    directory(&environment, "DECLAREST_BUNDLE_CACHE_DIR")
        .or_else(|| Some(home(&environment)?.join(".declarest/metadata-bundles")))
}

fn home(environment: &impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let profile = || cfg!(windows).then(|| directory(environment, "USERPROFILE")).flatten();
    directory(environment, "HOME").or_else(profile)
}

/// Returns the credentials for registries of the user: those in `$DOCKER_CONFIG/config.json`, otherwise in
/// `~/.docker/config.json`. The file may not exist.
pub fn registry_login(environment: impl Fn(&str) -> Option<OsString>) -> RegistryLogin {
    let docker = || Some(home(&environment)?.join(".docker"));
    let directory = directory(&environment, "DOCKER_CONFIG").or_else(docker);
    directory.map_or(RegistryLogin::Anonymous, |directory| RegistryLogin::File(directory.join("config.json")))
}

fn directory(environment: impl Fn(&str) -> Option<OsString>, variable: &str) -> Option<PathBuf> {
    environment(variable).filter(|value| !value.is_empty()).map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(&[("DECLAREST_BUNDLE_CACHE_DIR", "/c"), ("HOME", "/h")], Some("/c"))]
    #[case(&[("DECLAREST_BUNDLE_CACHE_DIR", ""), ("HOME", "/h")], Some("/h/.declarest/metadata-bundles"))]
    #[case(&[("HOME", "/h")], Some("/h/.declarest/metadata-bundles"))]
    #[case(&[], None)]
    fn cache(#[case] variables: &[(&str, &str)], #[case] expected: Option<&str>) {
        assert_eq!(cache_directory(of(variables)), expected.map(PathBuf::from));
    }

    #[rstest]
    #[case(&[("DOCKER_CONFIG", "/d"), ("HOME", "/h")], Some("/d/config.json"))]
    #[case(&[("HOME", "/h")], Some("/h/.docker/config.json"))]
    #[case(&[], None)]
    fn credentials(#[case] variables: &[(&str, &str)], #[case] expected: Option<&str>) {
        let found = match registry_login(of(variables)) {
            RegistryLogin::File(file) => Some(file),
            _ => None,
        };
        assert_eq!(found, expected.map(PathBuf::from));
    }

    fn of(variables: &[(&str, &str)]) -> impl Fn(&str) -> Option<OsString> {
        |wanted| variables.iter().find(|(name, _)| *name == wanted).map(|(_, value)| OsString::from(value))
    }
}
