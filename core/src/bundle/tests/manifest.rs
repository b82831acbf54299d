//! Tests of reading bundle manifests.

use rstest::rstest;
use semver::Version;

use super::super::{Manifest, OpenApiSource};
use super::fixtures::{MANIFEST, SHORT};

fn decoded(text: &str) -> Result<Manifest, String> {
    Manifest::decode(text.as_bytes()).map_err(|error| error.to_string())
}

#[test]
fn a_complete_manifest_is_read() {
    let manifest = decoded(MANIFEST).unwrap();
    assert_eq!((manifest.name.as_str(), &manifest.version), ("till-bundle", &Version::new(1, 2, 0)));
    assert_eq!((manifest.description.as_str(), manifest.deprecated), ("Till API.", false));
    assert_eq!(manifest.metadata_root, "metadata");
    assert_eq!(manifest.openapi, Some(OpenApiSource::File("openapi.yaml".into())));
    assert_eq!(manifest.compatible_declarest.unwrap().text(), ">=0.1.0");
    let server = manifest.compatible_managed_server.unwrap();
    assert_eq!((server.product.as_str(), server.versions.text()), ("till", ">=26.0.0 <27.0.0"));
}

#[test]
fn optional_keys_may_be_missing() {
    let manifest = decoded(SHORT).unwrap();
    assert!(!manifest.deprecated);
    assert_eq!(
        (manifest.openapi, manifest.compatible_declarest, manifest.compatible_managed_server),
        (None, None, None)
    );
}

#[rstest]
#[case("home: https://a.test")]
#[case("sources: [https://a.test]")]
#[case("keywords: [a, 1]")]
#[case("maintainers: [{name: a, email: b, url: c}]")]
#[case("license: Apache-2.0")]
#[case("icon: icon.svg")]
#[case("annotations: {any.key/x: [1]}")]
#[case("distribution: {repo: a/b, tagTemplate: 'v{version}'}")]
#[case("deprecated: true")]
fn keys_of_published_bundles_are_accepted(#[case] line: &str) {
    decoded(&SHORT.replacen('{', &format!("{{{line}, "), 1)).unwrap();
}

#[rstest]
#[case("shorthand: till-bundle")]
#[case("metadataFileName: metadata.yaml")]
#[case("compatibleManagedServer: {product: till-9, versions: '*'}")]
#[case("compatibleManagedService: {product: till, versions: 1.x}")]
#[case("openapi: ./api/openapi.json")]
#[case("openapi: https://a.test/openapi.json")]
#[case("openapi: http://a.test/openapi.json")]
#[case("openapi: null")]
fn keys_of_declarest(#[case] line: &str) {
    decoded(&within(line)).unwrap();
}

/// Returns the minimal manifest with this line in `declarest`.
fn within(line: &str) -> String {
    SHORT.replace("metadataRoot: metadata", &format!("metadataRoot: metadata, {line}"))
}

#[rstest]
#[case("1.2.0", "1.2.0")]
#[case("v1.2.0", "1.2.0")]
#[case("1.2.0-rc.1+b", "1.2.0-rc.1+b")]
fn versions(#[case] text: &str, #[case] expected: &str) {
    let manifest = decoded(&SHORT.replace("1.2.0", text)).unwrap();
    assert_eq!(manifest.version.to_string(), expected);
}

#[rstest]
#[case("metadata", "metadata")]
#[case("./a//b/", "a/b")]
fn metadata_roots(#[case] text: &str, #[case] expected: &str) {
    let manifest = decoded(&SHORT.replace("metadataRoot: metadata", &format!("metadataRoot: '{text}'")));
    assert_eq!(manifest.unwrap().metadata_root, expected);
}

#[rstest]
#[case(".", "declarest.metadataRoot: must be a directory below the bundle, not the bundle")]
#[case("./", "declarest.metadataRoot: must be a directory below the bundle, not the bundle")]
#[case("", "declarest.metadataRoot: must be a directory below the bundle, not the bundle")]
#[case("/etc", "declarest.metadataRoot: \"/etc\" must be a relative path inside of the bundle")]
#[case("../a", "declarest.metadataRoot: \"../a\" must be a relative path inside of the bundle")]
#[case("a/../b", "declarest.metadataRoot: \"a/../b\" must be a relative path inside of the bundle")]
#[case("a\\b", "declarest.metadataRoot: \"a\\b\" must be a relative path inside of the bundle")]
fn invalid_metadata_roots(#[case] text: &str, #[case] reason: &str) {
    let manifest = decoded(&SHORT.replace("metadataRoot: metadata", &format!("metadataRoot: '{text}'")));
    let error = manifest.unwrap_err();
    assert!(error.ends_with(reason), "{error}");
}

#[rstest]
#[case("apiVersion: declarest.io/v1alpha1", "\"apiVersion\" is missing")]
#[case("kind: MetadataBundle", "\"kind\" is missing")]
#[case("name: till-bundle", "\"name\" is missing")]
#[case("version: 1.2.0", "\"version\" is missing")]
#[case("description: Till API.", "\"description\" is missing")]
#[case("declarest: {metadataRoot: metadata}", "\"declarest\" is missing")]
#[case("metadataRoot: metadata", "declarest: \"metadataRoot\" is missing")]
fn required_keys(#[case] line: &str, #[case] reason: &str) {
    let shorter = MANIFEST_IN_LINES.replace(line, &line.replace(line.split(':').next().unwrap(), "home"));
    let shorter = if line.starts_with("metadataRoot") { SHORT.replace(line, "") } else { shorter };
    let error = decoded(&shorter).unwrap_err();
    assert!(error.ends_with(reason), "{error}");
}

const MANIFEST_IN_LINES: &str = "
apiVersion: declarest.io/v1alpha1
kind: MetadataBundle
name: till-bundle
version: 1.2.0
description: Till API.
declarest: {metadataRoot: metadata}
";

#[rstest]
#[case(
    "v1alpha1",
    "v1",
    "line 2, column 1: apiVersion: \"declarest.io/v1\" must be \"declarest.io/v1alpha1\""
)]
#[case("MetadataBundle", "Bundle", "line 3, column 1: kind: \"Bundle\" must be \"MetadataBundle\"")]
#[case("till-bundle", "a/b", "line 4, column 1: name: \"a/b\" must be a bare name, without directories")]
#[case("till-bundle", "' '", "line 4, column 1: name: must not be blank")]
#[case(
    "1.2.0",
    "1.2",
    "line 5, column 1: version: \"1.2\" is not a semantic version; write major.minor.patch, such as 1.2.0"
)]
#[case("Till API.", "''", "line 6, column 1: description: must not be blank")]
#[case(
    "description",
    "Description",
    "line 6, column 1: unknown key \"Description\" in the document; did you mean \"description\"?"
)]
#[case(
    "declarest: {",
    "licence: x\ndeclarest: {",
    "line 7, column 1: unknown key \"licence\" in the document; did you mean \"license\"?"
)]
#[case(
    "declarest: {",
    "name: b\ndeclarest: {",
    "cannot decode yaml, line 7, column 1: duplicate key \"name\"; keep one of them"
)]
#[case(
    "metadataRoot: metadata",
    "metadataRoot: metadata, shorthand: till",
    "line 7, column 37: declarest.shorthand: \"till\" must be \"till-bundle\""
)]
#[case(
    "metadataRoot: metadata",
    "metadataRoot: metadata, metadataFileName: a/b",
    "line 7, column 37: declarest.metadataFileName: \"a/b\" must be a bare name, without directories"
)]
#[case(
    "metadataRoot: metadata",
    "metadataRoot: metadata, openapi: ../x",
    "line 7, column 37: declarest.openapi: \"../x\" must be a relative path inside of the bundle"
)]
#[case(
    "metadataRoot: metadata",
    "metadataRoot: metadata, openapi: 'ftp://a.test/x'",
    "line 7, column 37: declarest.openapi: a URL of the scheme \"ftp\" is not supported; use a file or an http(s) URL"
)]
#[case(
    "metadataRoot: metadata",
    "metadataRoot: metadata, compatibleDeclarest: one",
    "line 7, column 37: declarest.compatibleDeclarest: \"one\" is not a version constraint: \"one\" is not a version"
)]
#[case(
    "metadataRoot: metadata",
    "metadataRoot: metadata, compatibleManagedServer: {product: till}",
    "line 7, column 37: declarest.compatibleManagedServer: \"versions\" is missing"
)]
#[case(
    "metadataRoot: metadata",
    "metadataRoot: metadata, compatibleManagedServer: {versions: '*'}",
    "line 7, column 37: declarest.compatibleManagedServer: \"product\" is missing"
)]
#[case(
    "metadataRoot: metadata",
    "metadataRoot: metadata, compatibleManagedServer: {product: -t, versions: '*'}",
    "line 7, column 63: declarest.compatibleManagedServer.product: \"-t\" is not a product name; use lower case letters, digits and \"-\", but not \"-\" first"
)]
#[case(
    "metadataRoot: metadata",
    "metadataRoot: metadata, compatibleManagedServer: {product: t, versions: '<'}",
    "line 7, column 75: declarest.compatibleManagedServer.versions: \"<\" is not a version constraint: a version is missing"
)]
#[case(
    "metadataRoot: metadata}",
    "metadataRoot: metadata, compatibleManagedServer: &a {product: t, versions: '*'}, compatibleManagedService: *a}",
    "line 7, column 1: declarest: compatibleManagedService is another name for compatibleManagedServer; keep one of them"
)]
#[case(
    "declarest: {",
    "maintainers: [{phone: 1}]\ndeclarest: {",
    "line 7, column 16: unknown key \"phone\" in maintainers[0]; use name, email, url"
)]
#[case(
    "declarest: {",
    "distribution: {artifactTemplate: 'till-{version}.tar.gz'}\ndeclarest: {",
    "line 7, column 16: distribution.artifactTemplate: \"till-{version}.tar.gz\" must be \"till-bundle-{version}.tar.gz\""
)]
#[case(
    "declarest: {",
    "distribution: {tag: x}\ndeclarest: {",
    "line 7, column 16: unknown key \"tag\" in distribution; did you mean \"tagTemplate\"?"
)]
#[case(
    "declarest: {",
    "deprecated: maybe\ndeclarest: {",
    "line 7, column 1: deprecated: expected true or false, found a string"
)]
fn errors_name_their_location(#[case] from: &str, #[case] to: &str, #[case] expected: &str) {
    assert_eq!(decoded(&MANIFEST_IN_LINES.replacen(from, to, 1)).unwrap_err(), expected);
}

#[rstest]
#[case("", "the document: is empty; a manifest requires apiVersion, kind, name, version and description")]
#[case("[]", "line 1, column 1: the document: expected an object, found an array")]
fn invalid_manifests(#[case] text: &str, #[case] expected: &str) {
    assert_eq!(decoded(text).unwrap_err(), expected);
}
