//! Tests of the bundles as directories and as archives.

use std::fs::File;
use std::path::{Path, PathBuf};

use declarest_core::bundle::{BundleSource, Options, Reference};
use flate2::Compression;
use flate2::write::GzEncoder;
use rstest::rstest;

use crate::check;
use crate::engine::Shared;
use crate::table::{Operation, Table, directory};

#[rstest]
#[case::keycloak("keycloak-bundle", "1.4.0", "keycloak", ">=26.0.0 <27.0.0")]
#[case::rundeck("rundeck-bundle", "2.1.0", "rundeck", "5.x || ^6.0")]
#[tokio::test]
async fn a_directory_and_an_archive_are_the_same_bundle(
    #[case] name: &str,
    #[case] version: &str,
    #[case] product: &str,
    #[case] versions: &str,
    #[values(false, true)] packed: bool,
) {
    let scratch = tempfile::tempdir().unwrap();
    let place = if packed { pack(name, scratch.path()) } else { directory(name) };
    let source = BundleSource::new(Options::new(scratch.path().join("cache")));
    let bundle = source.open(&Reference::parse(place.to_str().unwrap()).unwrap()).await.unwrap();

    assert_eq!(
        (bundle.manifest.name.as_str(), bundle.manifest.version.to_string().as_str()),
        (name, version)
    );
    let server = bundle.manifest.compatible_managed_server.as_ref().unwrap();
    assert_eq!((server.product.as_str(), server.versions.text()), (product, versions));
    assert!(bundle.warnings.is_empty(), "{:?}", bundle.warnings);
    let shared = Shared::new(bundle.documents(u64::MAX).unwrap());
    check(name, &Table::of(name), &shared, |case| case.operation == Operation::List).await;
}

/// Packs the bundle as it is published, without the expectations.
fn pack(name: &str, target: &Path) -> PathBuf {
    let archive = target.join("published.tar.gz");
    let mut builder =
        tar::Builder::new(GzEncoder::new(File::create(&archive).unwrap(), Compression::default()));
    builder.append_path_with_name(directory(name).join("bundle.yaml"), "bundle.yaml").unwrap();
    builder.append_dir_all("metadata", directory(name).join("metadata")).unwrap();
    builder.into_inner().unwrap().finish().unwrap();
    archive
}
