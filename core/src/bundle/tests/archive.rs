//! Tests of unpacking archives: content, forbidden entries, limits.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read};
use std::path::Path;

use proptest::prelude::*;
use rstest::rstest;
use tar::EntryType::{
    Block, Char, Directory, Fifo, GNULongLink, GNULongName, GNUSparse, Link, Regular, Symlink, XGlobalHeader,
    XHeader,
};

use super::super::BundleError;
use super::super::archive::{Capacity, MAX_FILE, MAX_TOTAL, unpack};
use super::fixtures::{claimed, entry, file, gzip, pax, tar};
use crate::error::{Categorized, Category};

/// Unpacks an archive, and returns its files with their content.
fn unpacked(archive: &[u8]) -> Result<BTreeMap<String, String>, BundleError> {
    unpacked_within(Capacity::default(), archive)
}

fn unpacked_within(capacity: Capacity, archive: &[u8]) -> Result<BTreeMap<String, String>, BundleError> {
    let outer = tempfile::tempdir().unwrap();
    let target = outer.path().join("target");
    fs::create_dir(&target).unwrap();
    let outcome = unpack(archive, &target, capacity, "b");
    let beside: Vec<_> =
        fs::read_dir(outer.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(beside, ["target"], "something was written outside");
    outcome.map(|()| files(&target, ""))
}

fn files(directory: &Path, prefix: &str) -> BTreeMap<String, String> {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap());
    let below = entries.flat_map(|entry| {
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        if entry.file_type().unwrap().is_dir() {
            files(&entry.path(), &format!("{name}/"))
        } else {
            let content = fs::read(entry.path()).unwrap();
            BTreeMap::from([(name, String::from_utf8_lossy(&content).into_owned())])
        }
    });
    below.collect()
}

fn refusal(archive: &[u8]) -> String {
    fault_of(unpacked(archive).unwrap_err())
}

/// Returns the fault of the archive, as the error states it.
fn fault_of(error: BundleError) -> String {
    match error {
        error @ BundleError::Archive { .. } => {
            assert_eq!(error.category(), Category::Validation);
            error.to_string().strip_prefix("archive of bundle b: ").unwrap().to_owned()
        }
        error => panic!("{error:?}"),
    }
}

#[test]
fn files_and_directories_are_unpacked() {
    let long = format!("{}/{}", "a".repeat(150), "b".repeat(150));
    let archive = tar(&[
        entry(XGlobalHeader, b"pax_global_header", &pax("comment", "0123")),
        entry(Directory, b"./", b""),
        file("./bundle.yaml", "name: x"),
        entry(Directory, b"metadata/", b""),
        file("metadata//_/./metadata.yaml", "a"),
        entry(XHeader, b"PaxHeaders/long", &[pax("mtime", "1.5"), pax("path", &long)].concat()),
        file("short", "by pax"),
        entry(GNULongName, b"././@LongLink", format!("{long}2\0").as_bytes()),
        file("short", "by gnu"),
        file("empty", ""),
    ]);
    let expected = [
        (long.clone(), "by pax"),
        (format!("{long}2"), "by gnu"),
        ("bundle.yaml".to_owned(), "name: x"),
        ("empty".to_owned(), ""),
        ("metadata/_/metadata.yaml".to_owned(), "a"),
    ];
    let expected = expected.map(|(name, content)| (name, content.to_owned()));
    assert_eq!(unpacked(&gzip(&archive)).unwrap(), BTreeMap::from(expected));
}

#[rstest]
#[case::absolute(file("/etc/passwd", "x"), "\"/etc/passwd\" is outside of the archive")]
#[case::up(file("../target2", "x"), "\"../target2\" is outside of the archive")]
#[case::up_later(file("a/../../target2", "x"), "\"a/../../target2\" is outside of the archive")]
#[case::up_inside(file("a/..", "x"), "\"a/..\" is outside of the archive")]
#[case::up_directory(entry(Directory, b"../", b""), "\"../\" is outside of the archive")]
#[case::backslash(file("..\\x", "x"), "\"..\\\\x\" is not a portable name")]
#[case::not_utf8(entry(Regular, b"caf\xe9", b""), "the name \"caf\u{fffd}\" is not UTF-8")]
#[case::root_file(file(".", "x"), "its root is a file")]
#[case::symlink(
    entry(Symlink, b"a", b""),
    "\"a\" is a symbolic link; only directories and regular files are allowed"
)]
#[case::hard_link(
    entry(Link, b"a", b""),
    "\"a\" is a hard link; only directories and regular files are allowed"
)]
#[case::character(
    entry(Char, b"a", b""),
    "\"a\" is a device; only directories and regular files are allowed"
)]
#[case::block(entry(Block, b"a", b""), "\"a\" is a device; only directories and regular files are allowed")]
#[case::fifo(entry(Fifo, b"a", b""), "\"a\" is a named pipe; only directories and regular files are allowed")]
#[case::sparse(
    entry(GNUSparse, b"a", b""),
    "\"a\" is a sparse file; only directories and regular files are allowed"
)]
#[case::long_link(
    entry(GNULongLink, b"a", b"x"),
    "\"a\" is a link with a long name; only directories and regular files are allowed"
)]
#[case::twice([file("a", "1"), file("a", "2")].concat(), "\"a\" is duplicated")]
#[case::file_and_parent([file("a", "1"), file("a/b", "2")].concat(), "\"a\" is duplicated")]
#[case::directory_and_file([file("a/b", "1"), file("a", "2")].concat(), "\"a\" is a directory and a file")]
#[case::pax_up([entry(XHeader, b"p", &pax("path", "../x")), file("a", "")].concat(), "\"../x\" is outside of the archive")]
#[case::pax_size(
    [entry(XHeader, b"p", &pax("size", "9")), file("a", "")].concat(),
    "a file has its size in an extended header"
)]
#[case::pax_sparse(
    [entry(XHeader, b"p", &pax("GNU.sparse.major", "1")), file("a", "")].concat(),
    "it holds a sparse file"
)]
#[case::gnu_up([entry(GNULongName, b"l", b"../x\0"), file("a", "")].concat(), "\"../x\" is outside of the archive")]
#[case::two_names(
    [entry(GNULongName, b"l", b"x"), entry(XHeader, b"p", &pax("path", "y")), file("a", "")].concat(),
    "an entry has two long names"
)]
#[case::name_of_nothing(entry(GNULongName, b"l", b"x"), "it ends with an extended header without an entry")]
#[case::long_segment([entry(GNULongName, b"l", &[b'x'; 256]), file("a", "")].concat(), &format!("the name \"{}…\" is too long", "x".repeat(80)))]
#[case::deep([entry(GNULongName, b"l", ("a/".repeat(64) + "f").as_bytes()), file("a", "")].concat(), &format!("\"{}…\" is below more than 64 directories", "a/".repeat(40)))]
#[case::extension(
    claimed(XHeader, b"p", 65 << 10, b""),
    "an extended header is larger than 64 KiB"
)]
#[case::large(claimed(Regular, b"a", MAX_FILE + 1, b""), "\"a\" is larger than 64 MiB")]
#[case::huge(claimed(Regular, b"a", MAX_TOTAL + 1, b""), "its files are larger than 256 MiB together")]
#[case::huge_global(claimed(XGlobalHeader, b"g", 1 << 33, b""), "its files are larger than 256 MiB together")]
fn archives_with_forbidden_content_are_rejected(#[case] entries: Vec<u8>, #[case] reason: &str) {
    assert_eq!(refusal(&gzip(&tar(&[entries]))), reason);
}

#[rstest]
#[case::empty(Vec::new())]
#[case::no_gzip(tar(&[file("a", "x")]))]
#[case::cut_gzip(gzip(&tar(&[file("a", "x")]))[..40].to_vec())]
#[case::no_checksum({ let whole = gzip(&tar(&[file("a", "x")])); whole[..whole.len() - 8].to_vec() })]
#[case::wrong_checksum({ let mut bytes = gzip(&tar(&[file("a", "x")])); let at = bytes.len() - 6; bytes[at] ^= 1; bytes })]
#[case::no_tar(gzip(&[b'x'; 2048]))]
#[case::cut_header(gzip(&file("a", "x")[..100]))]
#[case::trailing([gzip(&tar(&[file("a", "x")])), b"more".to_vec()].concat())]
fn broken_archives(#[case] archive: Vec<u8>) {
    let reason = refusal(&archive);
    assert!(reason.starts_with("it is not a complete gzip tar archive: "), "{reason}");
}

#[test]
fn an_archive_that_ends_within_a_file() {
    let archive = gzip(&claimed(Regular, b"a", 600, &[b'x'; 512]));
    assert_eq!(refusal(&archive), "it ends within \"a\"");
}

#[test]
fn the_documented_limits() {
    let contract = Capacity { entries: 10_000, file: 64 * 1024 * 1024, total: 256 * 1024 * 1024 };
    assert_eq!(Capacity::default(), contract);
}

const SMALL: Capacity = Capacity { entries: 3, file: 1 << 20, total: 2 << 20 };

#[test]
fn the_number_of_entries_is_limited() {
    let directory = entry(Directory, b"a/", b"");
    let global = entry(XGlobalHeader, b"g", b"");
    let allowed = [directory.repeat(3), global].concat();
    assert_eq!(unpacked_within(SMALL, &gzip(&tar(&[allowed]))).unwrap(), BTreeMap::new());
    let error = unpacked_within(SMALL, &gzip(&tar(&[directory.repeat(4)]))).unwrap_err();
    assert_eq!(fault_of(error), "it holds more than 3 entries");
}

#[test]
fn directories_without_entries_are_counted() {
    let two = [entry(Directory, b"a", b""), file("a/b/f", "")].concat();
    assert_eq!(unpacked_within(SMALL, &gzip(&tar(&[two]))).unwrap().len(), 1);
    let error = unpacked_within(SMALL, &gzip(&tar(&[file("a/b/c/f", "")]))).unwrap_err();
    assert_eq!(fault_of(error), "it holds more than 3 entries");
}

#[test]
fn headers_without_entries_are_counted() {
    let archive = gzip(&tar(&[entry(XGlobalHeader, b"g", b"").repeat(13)]));
    assert_eq!(fault_of(unpacked_within(SMALL, &archive).unwrap_err()), "it holds more than 12 headers");
}

/// An endless stream of zeros after `head`, which counts the bytes read.
struct Endless {
    head: io::Cursor<Vec<u8>>,
    read: u64,
}

impl Read for &mut Endless {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut count = self.head.read(buffer)?;
        if count == 0 {
            buffer.fill(0);
            count = buffer.len();
        }
        self.read += count as u64;
        Ok(count)
    }
}

/// A gzip member of stored blocks can be endless; reading must stop.
#[test]
fn an_endless_archive_is_not_read_to_its_end() {
    let plain = claimed(Regular, b"a", MAX_FILE + 1, b"");
    let mut head = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];
    head.extend([0, 0, 2, 0xff, 0xfd]);
    head.extend(&plain);
    let mut endless = Endless { head: io::Cursor::new(head), read: 0 };
    let target = tempfile::tempdir().unwrap();
    let error = unpack(&mut endless, target.path(), Capacity::default(), "b").unwrap_err();
    assert_eq!(error.to_string(), "archive of bundle b: \"a\" is larger than 64 MiB");
    assert!(endless.read < 1 << 20, "{} bytes were read", endless.read);
    assert!(files(target.path(), "").is_empty());
}

/// Two files of the maximum size fit, a third does not, although the archive itself is small.
#[test]
fn an_archive_bomb_is_rejected_by_the_sum_of_its_sizes() {
    let zeros = vec![0; 1 << 20];
    let one = |name: &str| entry(Regular, name.as_bytes(), &zeros);
    let bomb = gzip(&tar(&[one("a"), one("b"), one("c")]));
    assert!(bomb.len() < 64 << 10, "{} bytes", bomb.len());
    let target = tempfile::tempdir().unwrap();
    let error = unpack(&*bomb, target.path(), SMALL, "b").unwrap_err();
    assert_eq!(fault_of(error), "its files are larger than 2 MiB together");
    let sizes =
        ["a", "b", "c"].map(|name| fs::metadata(target.path().join(name)).ok().map(|file| file.len()));
    assert_eq!(sizes, [Some(1 << 20), Some(1 << 20), None]);
}

fn fragment() -> impl Strategy<Value = Vec<u8>> {
    let kinds = prop::sample::select(vec![
        Regular, Directory, Symlink, XHeader, XGlobalHeader, GNULongName, GNUSparse,
    ]);
    let names = prop::sample::select(vec!["a", "a/b", "../x", "/x", "b/", "", "."]);
    let contents = prop::collection::vec(any::<u8>(), 0..40);
    (kinds, names, contents, 0u64..80)
        .prop_map(|(kind, name, content, size)| claimed(kind, name.as_bytes(), size, &content))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_bytes_are_unpacked_or_rejected(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        let _ = unpacked(&bytes);
        let _ = unpacked(&gzip(&bytes));
    }

    #[test]
    fn any_entries_are_unpacked_or_rejected(entries in prop::collection::vec(fragment(), 0..6)) {
        // `unpacked` checks that nothing is written outside of the target, in any order of entries.
        if let Err(error) = unpacked(&gzip(&tar(&entries))) {
            prop_assert_eq!(error.category(), Category::Validation);
        }
    }
}
