//! Tests of local bundles: directories in place, archives through the cache.

use std::fs;
use std::path::Path;

use rstest::rstest;

use super::super::{
    Build, Bundle, BundleError, BundleSource, BundleWarning, OpenApiHint, Options, Reference,
};
use super::fixtures::{FILES, MANIFEST, SHORT, archive, entries_of, write};
use crate::error::{Categorized, Category};
use crate::repository::Tree;

fn source(cache: &Path) -> BundleSource {
    BundleSource::new(Options::new(cache))
}

async fn open(cache: &Path, place: &Path) -> Result<Bundle, BundleError> {
    source(cache).open(&Reference::parse(place.to_str().unwrap())?).await
}

/// Opens a directory with these files.
async fn open_files(files: &[(&str, &str)]) -> Result<Bundle, String> {
    let root = tempfile::tempdir().unwrap();
    write(root.path(), files);
    let name = format!("bundle {}", root.path().display());
    let opened = open(&root.path().join("cache"), root.path()).await;
    opened.map_err(|error| error.to_string().replace(&name, "bundle b"))
}

#[tokio::test]
async fn a_directory_is_used_in_place() {
    let root = tempfile::tempdir().unwrap();
    write(root.path(), &FILES);
    let cache = root.path().join("cache");
    let bundle = open(&cache, root.path()).await.unwrap();
    assert_eq!((bundle.root.as_path(), bundle.metadata_root), (root.path(), root.path().join("metadata")));
    assert_eq!(bundle.openapi, Some(OpenApiHint::File(root.path().join("openapi.yaml"))));
    assert_eq!(bundle.warnings, []);
    assert!(!cache.exists());
}

#[tokio::test]
async fn the_tree_is_that_of_metadata_root() {
    let root = tempfile::tempdir().unwrap();
    write(root.path(), &FILES);
    let tree = open(root.path(), root.path()).await.unwrap().documents(u64::MAX).unwrap();
    assert!(tree.read("tills/_/metadata.yaml").unwrap().is_some());
    assert!(tree.read("bundle.yaml").unwrap().is_none());
}

#[tokio::test]
async fn an_archive_is_unpacked_once_and_again_when_it_changed() {
    let root = tempfile::tempdir().unwrap();
    let (cache, place) = (root.path().join("cache"), root.path().join("till.tar.gz"));
    fs::write(&place, archive(&FILES)).unwrap();
    let first = open(&cache, &place).await.unwrap();
    assert!(first.root.starts_with(&cache));
    let witness = first.root.join("witness");
    fs::write(&witness, "").unwrap();
    let again = open(&cache, &place).await.unwrap();
    assert_eq!((&again.digest, &again.root), (&first.digest, &first.root));
    assert!(witness.exists(), "nothing was unpacked");

    fs::write(&place, archive(&[("bundle.yaml", SHORT), FILES[2]])).unwrap();
    let changed = open(&cache, &place).await.unwrap();
    assert_ne!(changed.digest, first.digest);
    assert_eq!(changed.root, first.root);
    assert_eq!(changed.openapi, None);
    assert!(!witness.exists());

    // The same size, another time.
    let file = fs::File::options().write(true).open(&place).unwrap();
    fs::write(changed.root.join("witness"), "").unwrap();
    file.set_modified(std::time::UNIX_EPOCH).unwrap();
    open(&cache, &place).await.unwrap();
    assert!(!witness.exists());
}

const DOCUMENT: (&str, &str) = FILES[2];

#[rstest]
#[case::no_manifest(&[DOCUMENT], "bundle b has no bundle.yaml at its root")]
#[case::broken_manifest(
    &[("bundle.yaml", "kind: x"), DOCUMENT],
    "bundle b: bundle.yaml: line 1, column 1: the document: \"apiVersion\" is missing"
)]
#[case::no_root(&[("bundle.yaml", SHORT)], "bundle b: metadataRoot \"metadata\" is not a directory in the bundle")]
#[case::root_is_a_file(
    &[("bundle.yaml", SHORT), ("metadata", "")],
    "bundle b: metadataRoot \"metadata\" is not a directory in the bundle"
)]
#[case::no_document(
    &[("bundle.yaml", SHORT), ("metadata/a/metadata.yml", "")],
    "bundle b: metadataRoot \"metadata\" holds no metadata.yaml or metadata.json"
)]
#[case::no_openapi(
    &[("bundle.yaml", MANIFEST), DOCUMENT],
    "bundle b: declarest.openapi \"openapi.yaml\" is not a file in the bundle"
)]
#[case::unknown_key(
    &[("bundle.yaml", SHORT), ("metadata/a/_/metadata.yaml", "resource: {Id: x}")],
    "bundle b: \"a/_/metadata.yaml\": line 1, column 12: unknown key \"Id\" in resource; did you mean \"id\"?"
)]
#[case::selector_of_a_resource(
    &[("bundle.yaml", SHORT), ("metadata/a/metadata.json", r#"{"selector": {"descendants": true}}"#)],
    "bundle b: \"a/metadata.json\": line 1, column 2: selector: only the metadata of a collection can have one"
)]
#[case::jq(
    &[("bundle.yaml", SHORT), DOCUMENT,
      ("metadata/z/_/metadata.yaml", "operations: {get: {transforms: [{jqExpression: '.a |'}]}}")],
    "bundle b: \"z/_/metadata.yaml\": line 1, column 34: operations.get.transforms[0].jqExpression: "
)]
#[tokio::test]
async fn invalid_bundles_are_rejected(#[case] files: &[(&str, &str)], #[case] reason: &str) {
    let error = open_files(files).await.unwrap_err();
    assert!(error.starts_with(reason), "{error}");
}

#[tokio::test]
async fn headers_with_conditionals_are_templates() {
    let document = "operations: {list: {headers: {X-Shop: '{{if .shop}}{{.shop}}{{else}}all{{end}}'}}}";
    let files = [("bundle.yaml", SHORT), ("metadata/tills/_/metadata.yaml", document)];
    assert!(open_files(&files).await.is_ok());
    let unclosed = document.replace("{{end}}", "");
    let error = open_files(&[files[0], (files[1].0, &unclosed)]).await.unwrap_err();
    assert!(error.contains("operations.list.headers.X-Shop: "), "{error}");
}

#[rstest]
#[case::none(&[], None)]
#[case::yaml_first(&["openapi.json", "openapi.yml", "openapi.yaml"], Some("openapi.yaml"))]
#[case::then_yml(&["openapi.json", "openapi.yml"], Some("openapi.yml"))]
#[case::then_json(&["openapi.json", "metadata/openapi.yaml"], Some("openapi.json"))]
#[case::in_metadata_root(&["a/openapi.yaml", "metadata/openapi.json"], Some("metadata/openapi.json"))]
#[case::anywhere(&["b/openapi.yaml", "b/a/openapi.json", "z/openapi.yaml"], Some("b/a/openapi.json"))]
#[case::another_name(&["api.yaml"], None)]
#[tokio::test]
async fn the_openapi_document_is_found(#[case] files: &[&str], #[case] expected: Option<&str>) {
    let mut all: Vec<_> = files.iter().map(|file| (*file, "openapi: 3.0.0")).collect();
    all.extend([("bundle.yaml", SHORT), DOCUMENT]);
    let bundle = open_files(&all).await.unwrap();
    let expected = expected.map(|file| OpenApiHint::File(bundle.root.join(file)));
    assert_eq!(bundle.openapi, expected);
}

#[tokio::test]
async fn the_openapi_document_of_the_manifest_takes_precedence() {
    let hinted = |hint: &str| {
        SHORT.replace("metadataRoot: metadata", &format!("metadataRoot: metadata, openapi: {hint}"))
    };
    let files = [("openapi.yaml", ""), ("metadata/api/v1.yaml", ""), DOCUMENT];
    let file = hinted("metadata/api/v1.yaml");
    let bundle = open_files(&[&files[..], &[("bundle.yaml", &file)]].concat()).await.unwrap();
    assert_eq!(bundle.openapi, Some(OpenApiHint::File(bundle.root.join("metadata/api/v1.yaml"))));
    let url = "https://a.test/openapi.json";
    let bundle = open_files(&[&files[..], &[("bundle.yaml", &hinted(url))]].concat()).await.unwrap();
    assert_eq!(bundle.openapi, Some(OpenApiHint::Url(url.parse().unwrap())));
}

#[tokio::test]
async fn a_deprecated_bundle_warns() {
    let manifest = SHORT.replacen('{', "{deprecated: true, ", 1);
    let bundle = open_files(&[("bundle.yaml", &manifest), DOCUMENT]).await.unwrap();
    let [warning] = bundle.warnings.as_slice() else { panic!("{:?}", bundle.warnings) };
    assert_eq!(
        *warning,
        BundleWarning::Deprecated { name: "till-bundle".into(), version: "1.2.0".parse().unwrap() }
    );
    assert_eq!(warning.to_string(), "metadata bundle till-bundle 1.2.0 is deprecated");
}

#[rstest]
#[case::floor("0.1.0", ">=0.3.0", None)]
#[case::floor_itself("0.1.0", ">0.3.8", Some("0.3.8"))]
#[case::own("0.4.0", ">=0.4.0", None)]
#[case::own_too_new("0.4.0", "<0.4.0", Some("0.4.0"))]
#[case::own_v("v0.4.0", "=0.4.0", None)]
#[case::development("dev", ">=99", None)]
#[tokio::test]
async fn compatibility(#[case] own: &str, #[case] constraint: &str, #[case] compared: Option<&str>) {
    let root = tempfile::tempdir().unwrap();
    let (cache, place) = (root.path().join("cache"), root.path().join("till.tgz"));
    let manifest = MANIFEST.replace(">=0.1.0", constraint);
    fs::write(&place, archive(&[("bundle.yaml", &manifest), FILES[1], DOCUMENT])).unwrap();
    let options = Options { build: Build::of(own), ..Options::new(&cache) };
    let opened = BundleSource::new(options).open(&Reference::Path(place.clone())).await;
    let Some(compared) = compared else {
        opened.unwrap();
        return;
    };
    let error = opened.unwrap_err();
    assert_eq!(error.category(), Category::Validation);
    let place = place.display();
    let expected = format!(
        "bundle {place} requires DeclaREST {constraint}, but this build is compatible with {compared}"
    );
    assert_eq!(error.to_string(), expected);
    assert_eq!(entries_of(&cache), Vec::<String>::new(), "nothing is cached");
}

#[tokio::test]
async fn a_bundle_that_does_not_exist() {
    let root = tempfile::tempdir().unwrap();
    for (name, hint) in [("till", ""), ("till:latest", "; the form of a release is name:1.2.3")] {
        let place = root.path().join(name);
        let error = open(root.path(), &place).await.unwrap_err();
        assert_eq!(error.category(), Category::NotFound);
        assert_eq!(error.to_string(), format!("bundle {} does not exist{hint}", place.display()));
    }
}

#[tokio::test]
async fn other_file_types_are_rejected() {
    let root = tempfile::tempdir().unwrap();
    let sparse = root.path().join("large.tar.gz");
    fs::File::create(&sparse).unwrap().set_len((256 << 20) + 1).unwrap();
    for place in [Path::new("/dev/null"), &sparse] {
        let error = open(root.path(), place).await.unwrap_err();
        let place = place.display();
        let expected = format!("archive of bundle {place}: it is not a regular file of at most 256 MiB");
        assert_eq!(error.to_string(), expected);
    }
}

#[tokio::test]
async fn an_archive_without_a_manifest() {
    let root = tempfile::tempdir().unwrap();
    let place = root.path().join("till.tar.gz");
    fs::write(&place, archive(&[("till/bundle.yaml", SHORT)])).unwrap();
    let error = open(&root.path().join("cache"), &place).await.unwrap_err();
    assert_eq!(error.category(), Category::NotFound);
    assert_eq!(error.to_string(), format!("bundle {} has no bundle.yaml at its root", place.display()));
}

#[tokio::test]
async fn an_invalid_document_keeps_the_bundle_out_of_the_cache() {
    let root = tempfile::tempdir().unwrap();
    let (cache, place) = (root.path().join("cache"), root.path().join("till.tar.gz"));
    fs::write(&place, archive(&[("bundle.yaml", SHORT), ("metadata/_/metadata.yaml", "resourse: {}")]))
        .unwrap();
    let error = open(&cache, &place).await.unwrap_err();
    assert_eq!(error.category(), Category::Validation);
    assert_eq!(entries_of(&cache), Vec::<String>::new());
}

#[rstest]
#[case::no_marker(|entry: &Path| fs::remove_file(entry.join(".declarest-bundle-ready")).unwrap())]
#[case::empty_marker(|entry: &Path| fs::write(entry.join(".declarest-bundle-ready"), "").unwrap())]
#[case::no_manifest(|entry: &Path| fs::remove_file(entry.join("bundle.yaml")).unwrap())]
#[case::no_documents(|entry: &Path| fs::remove_dir_all(entry.join("metadata")).unwrap())]
#[case::a_file(|entry: &Path| {
    fs::remove_dir_all(entry).unwrap();
    fs::write(entry, "").unwrap();
})]
#[case::left_over(|entry: &Path| {
    let (cache, name) = (entry.parent().unwrap(), entry.file_name().unwrap().to_str().unwrap());
    fs::remove_dir_all(entry).unwrap();
    write(cache, &[(&format!(".{name}.new/bundle.yaml"), "half"), (&format!(".{name}.old/x"), "")]);
})]
#[tokio::test]
async fn an_incomplete_entry_is_created_again(#[case] damage: fn(&Path)) {
    let root = tempfile::tempdir().unwrap();
    let (cache, place) = (root.path().join("cache"), root.path().join("till.tar.gz"));
    fs::write(&place, archive(&FILES)).unwrap();
    let bundle = open(&cache, &place).await.unwrap();
    damage(&bundle.root);
    let again = open(&cache, &place).await.unwrap();
    assert_eq!((&again.root, &again.digest), (&bundle.root, &bundle.digest));
    assert!(again.documents(u64::MAX).unwrap().read("tills/_/metadata.yaml").unwrap().is_some());
    assert_eq!(entries_of(&cache), [again.root.file_name().unwrap().to_str().unwrap()]);
}

#[tokio::test]
async fn the_digest_of_a_directory_covers_files_that_have_an_effect() {
    let root = tempfile::tempdir().unwrap();
    write(root.path(), &FILES);
    let digest = async || open(root.path(), root.path()).await.unwrap().digest;
    let first = digest().await;
    write(root.path(), &[("README.md", "x")]);
    assert_eq!(digest().await, first);
    write(root.path(), &[("metadata/tills/_/defaults.yaml", "a: 1")]);
    let second = digest().await;
    assert_ne!(second, first);
    write(root.path(), &[("openapi.yaml", "openapi: 3.1.0")]);
    assert_ne!(digest().await, second);
}

#[cfg(unix)]
#[tokio::test]
async fn a_defaults_file_may_be_a_link_within_the_bundle() {
    let root = tempfile::tempdir().unwrap();
    write(root.path(), &FILES);
    write(root.path(), &[("metadata/shared.yaml", "size: 1")]);
    let file = root.path().join("metadata/tills/_/defaults.yaml");
    std::os::unix::fs::symlink("../../shared.yaml", file).unwrap();
    let documents = open(root.path(), root.path()).await.unwrap().documents(u64::MAX).unwrap();
    assert_eq!(documents.read("tills/_/defaults.yaml").unwrap().unwrap(), b"size: 1");
}

#[tokio::test]
async fn a_metadata_root_behind_a_link_out_of_the_bundle_is_rejected() {
    let root = tempfile::tempdir().unwrap();
    write(root.path(), &[("b/bundle.yaml", SHORT), ("elsewhere/_/metadata.yaml", "")]);
    std::os::unix::fs::symlink("../elsewhere", root.path().join("b/metadata")).unwrap();
    let error = open(root.path(), &root.path().join("b")).await.unwrap_err();
    assert_eq!(error.category(), Category::Validation);
    assert!(error.to_string().contains("leads outside of the repository through a symbolic link"), "{error}");
}
