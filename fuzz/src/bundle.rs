//! Metadata bundles.

use std::io::Write;
use std::path::Path;
use std::sync::LazyLock;

use declarest_core::bundle::{BundleSource, Constraint, Manifest, Options, Reference};
use flate2::Compression;
use flate2::write::GzEncoder;
use semver::Version;
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};
use url::Url;

use super::utf8;

const BLOCK: usize = 512;

static RUNTIME: LazyLock<Runtime> =
    LazyLock::new(|| Builder::new_current_thread().build().expect("a runtime"));

/// Opens the input as the archive of a bundle: a tar, which is compressed here, since no mutation of compressed
/// data would get past its checksum. What is compressed already is taken as it is.
pub fn archive(data: &[u8]) {
    let compressed =
        if data.starts_with(&[0x1f, 0x8b]) { data.to_vec() } else { gzip(&with_checksums(data)) };
    let place = TempDir::new().expect("a directory");
    let (file, cache) = (place.path().join("till.tar.gz"), place.path().join("cache"));
    std::fs::write(&file, compressed).expect("the archive can be written");
    let opened = RUNTIME.block_on(BundleSource::new(Options::new(&cache)).open(&Reference::Path(file)));
    if let Ok(bundle) = opened {
        assert!(bundle.root.starts_with(&cache) && bundle.metadata_root.starts_with(&bundle.root));
        bundle.documents(u64::MAX).expect("the metadata of a valid bundle can be read");
    }
    assert_eq!(names(place.path()), ["cache", "till.tar.gz"], "nothing is unpacked elsewhere");
    let inside = names(&cache);
    assert!(inside.iter().all(|name| name.trim_start_matches('.').starts_with("till")), "{inside:?}");
}

fn names(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).expect("a directory");
    let mut names: Vec<_> =
        entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::none());
    encoder.write_all(bytes).expect("memory takes all");
    encoder.finish().expect("memory takes all")
}

/// The tar with the checksum that each of its headers should have, for the same reason.
fn with_checksums(data: &[u8]) -> Vec<u8> {
    let mut tar = data.to_vec();
    let mut at = 0;
    while let Some(header) = tar.get_mut(at..at + BLOCK).filter(|block| block.iter().any(|byte| *byte != 0)) {
        header[148..156].fill(b' ');
        let sum: u32 = header.iter().copied().map(u32::from).sum();
        header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        let digits = header[124..136].iter().filter(|byte| matches!(byte, b'0'..=b'7'));
        let size = digits.fold(0_usize, |size, digit| size << 3 | usize::from(digit - b'0'));
        at = (at + BLOCK).saturating_add(size.next_multiple_of(BLOCK));
    }
    tar
}

pub fn manifest(data: &[u8]) {
    let Ok(manifest) = Manifest::decode(data) else { return };
    let root = &manifest.metadata_root;
    assert!(root.split('/').all(|segment| !matches!(segment, "" | "." | "..")), "{root:?}");
    assert!(!manifest.name.contains('/'), "{:?}", manifest.name);
}

/// The first line is a constraint, the second a version.
pub fn constraint(data: &[u8]) {
    let Some(text) = utf8(data) else { return };
    let (text, version) = text.split_once('\n').unwrap_or((text, "1.2.3"));
    let Ok(constraint) = Constraint::parse(text) else { return };
    let version = Version::parse(version).unwrap_or_else(|_| Version::new(1, 2, 3));
    let again = Constraint::parse(constraint.text()).expect("a constraint is shown as it is written");
    assert_eq!(again.matches(&version), constraint.matches(&version));
}

pub fn reference(data: &[u8]) {
    let Some(text) = utf8(data) else { return };
    for reference in [Reference::parse(text), Reference::parse_file(text)].into_iter().flatten() {
        let shown = reference.to_string();
        match &reference {
            Reference::Oci(_) | Reference::Release { .. } => {
                assert_eq!(Reference::parse(&shown).expect("it is shown as one can write it"), reference);
            }
            Reference::Url(_) => {
                let shown = Url::parse(&shown).expect("a URL");
                assert!(shown.username().is_empty() && shown.password().is_none(), "{shown}");
            }
            Reference::Path(path) => assert!(!path.as_os_str().is_empty()),
        }
    }
}
