//! The published form of the bundles.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::product::root;

/// All files below a directory.
fn files(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> =
        entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect();
    files.sort();
    files
}

/// The bundles, packed by `hack/bundles.sh`.
fn packed() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let status = Command::new(root().join("hack/bundles.sh")).arg(directory.path()).status().unwrap();
    assert!(status.success());
    directory
}

#[test]
fn the_same_files_make_the_same_archives_and_images() {
    let (one, other) = (packed(), packed());
    let content = |directory: &Path| -> Vec<(PathBuf, Vec<u8>)> {
        let relative = |path: &PathBuf| path.strip_prefix(directory).unwrap().to_owned();
        files(directory).iter().map(|path| (relative(path), fs::read(path).unwrap())).collect()
    };
    let (one, other) = (content(one.path()), content(other.path()));
    assert!(one.iter().any(|(path, _)| path.ends_with("index.json")));
    assert!(one == other, "packing twice makes different bytes");
}

#[test]
fn an_image_has_the_archive_as_its_first_layer() {
    let directory = packed();
    for index in files(directory.path()).iter().filter(|path| path.ends_with("index.json")) {
        let layout = index.parent().unwrap();
        let blob = |descriptor: &Value| {
            let digest = descriptor["digest"].as_str().unwrap().strip_prefix("sha256:").unwrap();
            let bytes = fs::read(layout.join("blobs/sha256").join(digest)).unwrap();
            let actual =
                Sha256::digest(&bytes).iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"));
            assert_eq!((actual.as_str(), descriptor["size"].as_u64()), (digest, Some(bytes.len() as u64)));
            bytes
        };
        let index: Value = serde_json::from_slice(&fs::read(index).unwrap()).unwrap();
        let manifest: Value = serde_json::from_slice(&blob(&index["manifests"][0])).unwrap();
        let layer = &manifest["layers"][0];
        assert_eq!(layer["mediaType"], "application/vnd.declarest.bundle.v1.tar+gzip");
        assert_eq!(blob(layer), fs::read(layout.with_extension("tar.gz")).unwrap());
    }
}

#[test]
fn the_metadata_of_all_bundles_is_short() {
    let bundles = root().join("bundles");
    let is_metadata = |path: &&PathBuf| !path.components().any(|part| part.as_os_str() == "sample");
    let files = files(&bundles);
    let yaml = files.iter().filter(|path| path.extension().is_some_and(|extension| extension == "yaml"));
    let text: String = yaml.filter(is_metadata).map(|path| fs::read_to_string(path).unwrap()).collect();
    assert!(text.lines().count() < 600, "{} lines", text.lines().count());
    assert!(text.lines().all(|line| line.chars().count() <= 120));
}
