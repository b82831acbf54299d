//! Tests of bundle references and their names in the cache.

use std::path::PathBuf;

use proptest::prelude::*;
use rstest::rstest;
use semver::Version;
use sha2::{Digest, Sha256};
use url::Url;

use super::super::{OciReference, OciVersion, RELEASES, Reference};
use crate::digest::hex;
use crate::error::{Categorized, Category};

const DIGEST: &str = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

fn oci(registry: &str, repository: &str, version: OciVersion) -> Reference {
    let (registry, repository) = (registry.to_owned(), repository.to_owned());
    Reference::Oci(OciReference { registry, repository, version })
}

fn tag(text: &str) -> OciVersion {
    OciVersion::Tag(text.to_owned())
}

fn release(name: &str, version: &str) -> Reference {
    Reference::Release { name: name.to_owned(), version: version.parse().unwrap() }
}

fn url(text: &str) -> Reference {
    Reference::Url(text.parse().unwrap())
}

fn path(text: &str) -> Reference {
    Reference::Path(PathBuf::from(text))
}

#[rstest]
#[case("oci://r.test/a/till-bundle:1.2.0", oci("r.test", "a/till-bundle", tag("1.2.0")))]
#[case("OCI://R.test:5000/a:latest", oci("r.test:5000", "a", tag("latest")))]
#[case(&format!("oci://r.test/a@{DIGEST}"), oci("r.test", "a", OciVersion::Digest(DIGEST.to_owned())))]
#[case(&format!("oci://r.test/a:1@{DIGEST}"), oci("r.test", "a", OciVersion::Digest(DIGEST.to_owned())))]
#[case("oci://r.test/a__b/c.d/e---f_g:v1_.-", oci("r.test", "a__b/c.d/e---f_g", tag("v1_.-")))]
#[case("till-bundle:1.2.0", release("till-bundle", "1.2.0"))]
#[case(" till-bundle:v1.2.0 ", release("till-bundle", "1.2.0"))]
#[case("9till:1.2.0-rc.1", release("9till", "1.2.0-rc.1"))]
#[case("https://a.test/till.tar.gz?key=1", url("https://a.test/till.tar.gz?key=1"))]
#[case("http://a.test/till.tgz", url("http://a.test/till.tgz"))]
#[case("HTTPS://a.test/x", url("https://a.test/x"))]
#[case("file:///srv/till.tar.gz", path("/srv/till.tar.gz"))]
#[case("file://localhost/srv/a%20b", path("/srv/a b"))]
#[case("./bundles/till", path("./bundles/till"))]
#[case("/srv/till.tar.gz", path("/srv/till.tar.gz"))]
#[case("till", path("till"))]
#[case("till:latest", path("till:latest"))]
#[case("till:1.2", path("till:1.2"))]
#[case("Till:1.2.0", path("Till:1.2.0"))]
#[case("-till:1.2.0", path("-till:1.2.0"))]
#[case("a b://x", path("a b://x"))]
fn the_first_matching_form_applies(#[case] text: &str, #[case] expected: Reference) {
    assert_eq!(Reference::parse(text).unwrap(), expected);
}

#[rstest]
#[case("", "is empty; give name:version, an oci or https URL, or a path")]
#[case("s3://bucket/till", "the scheme \"s3\" is not supported; use oci, https, http or file")]
#[case("ssh://a.test/x", "the scheme \"ssh\" is not supported; use oci, https, http or file")]
#[case("https://", "is not a URL: empty host")]
#[case("file://other/srv/x", "must be file:///<absolute path>; files of other hosts cannot be read")]
#[case("oci://r.test", "write oci://registry/repository:tag or oci://registry/repository@sha256:digest")]
#[case(
    "oci:///a:1",
    "\"\" is not a registry; write oci://registry/repository:tag or oci://registry/repository@sha256:digest"
)]
#[case(
    "oci://u@r.test/a:1",
    "\"u@r.test\" is not a registry; write oci://registry/repository:tag or oci://registry/repository@sha256:digest"
)]
#[case(
    "oci://r.test/a",
    "tag and digest are missing; write oci://registry/repository:tag or oci://registry/repository@sha256:digest"
)]
#[case(
    "oci://r.test/A:1",
    "\"A\" is not a repository; write oci://registry/repository:tag or oci://registry/repository@sha256:digest"
)]
#[case(
    "oci://r.test/a//b:1",
    "\"a//b\" is not a repository; write oci://registry/repository:tag or oci://registry/repository@sha256:digest"
)]
#[case(
    "oci://r.test/../b:1",
    "\"../b\" is not a repository; write oci://registry/repository:tag or oci://registry/repository@sha256:digest"
)]
#[case(
    "oci://r.test/a:",
    "\"\" is not a tag; write oci://registry/repository:tag or oci://registry/repository@sha256:digest"
)]
#[case(
    "oci://r.test/a:-1",
    "\"-1\" is not a tag; write oci://registry/repository:tag or oci://registry/repository@sha256:digest"
)]
#[case(
    "oci://r.test/a@sha256:12",
    "\"sha256:12\" is not a SHA-256 digest; write oci://registry/repository:tag or oci://registry/repository@sha256:digest"
)]
fn invalid_references(#[case] text: &str, #[case] reason: &str) {
    let error = Reference::parse(text).unwrap_err();
    assert_eq!(error.category(), Category::Validation);
    assert!(error.to_string().ends_with(&format!("\": {reason}")), "{error}");
}

#[test]
fn the_name_of_a_release_is_a_valid_file_name() {
    let error = Reference::parse(&format!("{}:1.2.0", "a".repeat(130))).unwrap_err().to_string();
    assert!(error.ends_with("\": name and version are too long"), "{error}");
}

#[rstest]
#[case("till-bundle:1.2.0", Ok(path("till-bundle:1.2.0")))]
#[case("./till.tar.gz", Ok(path("./till.tar.gz")))]
#[case("file:///srv/till", Ok(path("/srv/till")))]
#[case("https://a.test/x", Err("bundle reference \"https://a.test/x\": must be a path or a file URL"))]
#[case("oci://r.test/a:1", Err("bundle reference \"oci://r.test/a:1\": must be a path or a file URL"))]
#[case(
    "file://h/x",
    Err(
        "bundle reference \"file://h/x\": must be file:///<absolute path>; files of other hosts cannot be read"
    )
)]
#[case(" ", Err("bundle reference \"\": is empty; give name:version, an oci or https URL, or a path"))]
fn references_to_files(#[case] text: &str, #[case] expected: Result<Reference, &str>) {
    let parsed = Reference::parse_file(text).map_err(|error| error.to_string());
    assert_eq!(parsed, expected.map_err(str::to_owned));
}

#[rstest]
#[case("till-bundle", "1.2.0", "declarest-bundle-till/releases/download/v1.2.0/till-bundle-1.2.0.tar.gz")]
#[case("till", "1.2.0", "declarest-bundle-till/releases/download/v1.2.0/till-1.2.0.tar.gz")]
#[case(
    "a-bundle-b",
    "1.2.0-rc.1",
    "declarest-bundle-a-bundle-b/releases/download/v1.2.0-rc.1/a-bundle-b-1.2.0-rc.1.tar.gz"
)]
#[case(
    "a-bundle-bundle",
    "1.2.0",
    "declarest-bundle-a-bundle/releases/download/v1.2.0/a-bundle-bundle-1.2.0.tar.gz"
)]
fn urls_of_releases(#[case] name: &str, #[case] version: &str, #[case] expected: &str) {
    let version: Version = version.parse().unwrap();
    let url = Reference::release_url(&RELEASES.parse().unwrap(), name, &version).unwrap();
    assert_eq!(url.as_str(), format!("https://github.com/crmarques/{expected}"));
}

#[rstest]
#[case("till-bundle:1.2.0", "till-bundle-1.2.0", None)]
#[case("till-bundle:v1.2.0", "till-bundle-1.2.0", None)]
#[case("https://a.test/b/till.tar.gz?key=1", "till-", Some("https://a.test/b/till.tar.gz?key=1"))]
#[case("https://a.test/till.tgz", "till-", Some("https://a.test/till.tgz"))]
#[case("https://a.test/", "bundle-", Some("https://a.test/"))]
#[case("https://a.test/%2e%2e%2fx", "-2e-2e-2fx-", Some("https://a.test/%2e%2e%2fx"))]
#[case("oci://r.test/a/till-bundle:1.2.0", "till-bundle-", Some("oci://r.test/a/till-bundle:1.2.0"))]
#[case("/srv/till.tar.gz", "till-", Some("/srv/till.tar.gz"))]
#[case("/srv/.hidden é.tar.gz", "hidden---", Some("/srv/.hidden é.tar.gz"))]
fn names_in_the_cache(#[case] text: &str, #[case] artifact: &str, #[case] source: Option<&str>) {
    let digest = source.map(|source| hex(&Sha256::digest(source))[..12].to_owned());
    let expected = format!("{artifact}{}", digest.unwrap_or_default());
    assert_eq!(Reference::parse(text).unwrap().cache_entry(), expected);
}

#[test]
fn equal_artifacts_of_different_sources_do_not_collide() {
    let entry = |text: &str| Reference::parse(text).unwrap().cache_entry();
    assert_ne!(entry("https://a.test/till.tar.gz"), entry("https://b.test/till.tar.gz"));
    assert_eq!(entry("file:///srv/till.tar.gz"), entry("/srv/till.tar.gz"));
}

#[test]
fn userinfo_and_query_of_a_url_are_not_shown() {
    let reference = Reference::parse("https://ops:canary@a.test/till.tar.gz?token=canary#canary").unwrap();
    assert_eq!(reference.to_string(), "https://a.test/till.tar.gz");
    let error = Reference::parse("s3://ops:canary@a.test/x?canary").unwrap_err().to_string();
    assert!(!error.contains("canary"), "{error}");
}

proptest! {
    #[test]
    fn any_text_is_a_reference_or_rejected(text in ".{0,40}") {
        if let Ok(reference) = Reference::parse(&text) {
            let entry = reference.cache_entry();
            prop_assert!(!entry.starts_with('.') && !entry.contains(['/', '\\', '\0']), "{}", entry);
        }
        let _ = Reference::parse_file(&text);
    }

    #[test]
    fn references_to_registries_are_parsed_as_they_are_shown(
        repository in "[a-z0-9]{1,5}(/[a-z0-9]{1,4}([._]|__|-{1,3})[a-z0-9]{1,3}){0,2}",
        tag in "[A-Za-z0-9_][A-Za-z0-9._-]{0,9}",
    ) {
        let text = format!("oci://r.test:5000/{repository}:{tag}");
        prop_assert_eq!(Reference::parse(&text).unwrap().to_string(), text);
    }
}

#[test]
fn releases_are_below_a_directory() {
    assert!(RELEASES.parse::<Url>().unwrap().as_str().ends_with('/'));
}
