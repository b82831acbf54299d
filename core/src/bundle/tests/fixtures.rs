//! Bundles and archives for the tests of this module.

use std::io::Write;
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use tar::{EntryType, Header};

/// A manifest with most keys of the specification.
pub const MANIFEST: &str = r#"
apiVersion: declarest.io/v1alpha1
kind: MetadataBundle
name: till-bundle
version: 1.2.0
description: Till API.
deprecated: false
declarest:
  metadataRoot: metadata
  openapi: openapi.yaml
  compatibleDeclarest: ">=0.1.0"
  compatibleManagedServer: {product: till, versions: ">=26.0.0 <27.0.0"}
distribution: {artifactTemplate: "till-bundle-{version}.tar.gz"}
"#;

/// A minimal manifest.
pub const SHORT: &str = "{apiVersion: declarest.io/v1alpha1, kind: MetadataBundle, name: till-bundle, \
    version: 1.2.0, description: Till API., declarest: {metadataRoot: metadata}}";

/// A valid bundle with [`MANIFEST`].
pub const FILES: [(&str, &str); 3] = [
    ("bundle.yaml", MANIFEST),
    ("openapi.yaml", "openapi: 3.0.0"),
    ("metadata/tills/_/metadata.yaml", "resource: {id: '{{/uid}}', alias: '{{lowercase /name}}'}"),
];

/// Writes files below a directory.
pub fn write(root: &Path, files: &[(&str, &str)]) {
    for (file, content) in files {
        let place = root.join(file);
        std::fs::create_dir_all(place.parent().unwrap()).unwrap();
        std::fs::write(place, content).unwrap();
    }
}

/// Returns an entry of an archive; the name is not checked.
pub fn entry(kind: EntryType, name: &[u8], content: &[u8]) -> Vec<u8> {
    claimed(kind, name, content.len() as u64, content)
}

/// Returns an entry whose header states `size` bytes.
pub fn claimed(kind: EntryType, name: &[u8], size: u64, content: &[u8]) -> Vec<u8> {
    let mut header = Header::new_ustar();
    header.as_old_mut().name[..name.len()].copy_from_slice(name);
    header.set_entry_type(kind);
    header.set_size(size);
    header.set_mode(0o644);
    header.set_cksum();
    let mut bytes = header.as_bytes().to_vec();
    bytes.extend_from_slice(content);
    bytes.resize(bytes.len().next_multiple_of(512), 0);
    bytes
}

pub fn file(name: &str, content: &str) -> Vec<u8> {
    entry(EntryType::Regular, name.as_bytes(), content.as_bytes())
}

/// Returns one PAX record: its length, which includes its own digits, a key and a value.
pub fn pax(key: &str, value: &str) -> Vec<u8> {
    let rest = format!(" {key}={value}\n");
    let length = (rest.len()..rest.len() + 9).find(|length| length - rest.len() == length.to_string().len());
    format!("{}{rest}", length.unwrap()).into_bytes()
}

/// Returns a tar of these entries, with the end marker.
pub fn tar(entries: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = entries.concat();
    bytes.resize(bytes.len() + 1024, 0);
    bytes
}

pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Returns the archive of a bundle with these files.
pub fn archive(files: &[(&str, &str)]) -> Vec<u8> {
    let entries: Vec<_> = files.iter().map(|(name, content)| file(name, content)).collect();
    gzip(&tar(&entries))
}

/// Returns the entries of a cache, without its locks.
pub fn entries_of(cache: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(cache).unwrap().map(|entry| entry.unwrap());
    let mut names: Vec<_> = entries.map(|entry| entry.file_name().into_string().unwrap()).collect();
    names.retain(|name| Path::new(name).extension().is_none_or(|extension| extension != "lock"));
    names.sort();
    names
}
