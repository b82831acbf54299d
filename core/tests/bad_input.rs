//! Messages for broken input. Each file or directory in `fixtures/bad` has one fault, and is read by the function of
//! the library that a user would call. A snapshot for each group contains all messages.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails where it cannot go on")]

#[path = "support/session.rs"]
mod session;

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use declarest_core::bundle::{BundleSource, Options, Reference};
use declarest_core::error::{Categorized, with_causes};
use declarest_core::memory::Share;
use declarest_core::metadata::openapi::OpenApi;
use declarest_core::metadata::{Listing, Metadata, OperationName};
use declarest_core::path::{LogicalPath, PathNames};
use declarest_core::payload::{PayloadType, Value, decode};
use declarest_core::repository::resources;
use declarest_core::sync::{
    Address, ListAnswer, Observed, Question, Resource, SyncError, Verdict, Wanted, decide, desired, judge,
};
use flate2::Compression;
use flate2::write::GzEncoder;
use rstest::rstest;
use tar::{EntryType, Header};
use tempfile::TempDir;

const GROUPS: [&str; 8] =
    ["payload", "collection", "resource", "tree", "list", "openapi", "manifest", "archive"];

/// An address without a server; no requests are sent.
const NOWHERE: &str = "http://127.0.0.1:9";

/// Returns the fixtures of a group, sorted.
fn fixtures(group: &str) -> Vec<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/bad").join(group);
    let mut found: Vec<PathBuf> =
        fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    found.sort();
    found
}

/// Returns an error as users see it: its category, and its text with all causes.
fn shown<E: Categorized + 'static>(error: &E) -> String {
    format!("{}: {}", error.category(), with_causes(error))
}

/// Returns a directory with `files`.
fn directory(files: &[(&str, &[u8])]) -> TempDir {
    let root = tempfile::tempdir().unwrap();
    for (file, content) in files {
        let file = root.path().join(file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, content).unwrap();
    }
    root
}

fn extension(fixture: &Path) -> &str {
    fixture.extension().unwrap().to_str().unwrap()
}

/// Returns the errors of a payload: the fixture is `/shops/rio`.
fn payload(fixture: &Path) -> Vec<String> {
    let file = format!("shops/rio/resource.{}", extension(fixture));
    tree(directory(&[(&file, &fs::read(fixture).unwrap())]).path())
}

/// Returns the errors of a metadata document: the fixture is in the directory `place`, and governs `/shops/rio`.
fn document(fixture: &Path, place: &str) -> Vec<String> {
    let file = format!("{place}/metadata.{}", extension(fixture));
    let content = fs::read(fixture).unwrap();
    tree(directory(&[("shops/rio/resource.yaml", b"name: Rio"), (&file, &content)]).path())
}

/// Returns the errors of a repository when all its resources are planned: as absent and as different on the server, and
/// as deleted.
fn tree(root: &Path) -> Vec<String> {
    let session = session::session(root, NOWHERE);
    let listing = resources(session.tree.as_ref(), &LogicalPath::root(), true).unwrap();
    let mut errors: Vec<String> = listing.broken.iter().map(|(_, error)| shown(error)).collect();
    for file in listing.resources {
        match desired(&session, file) {
            Ok(resource) => errors.extend(refusals(&resource)),
            Err(error) => errors.push(shown(&error)),
        }
    }
    errors.dedup();
    errors
}

/// Returns the errors of creating, updating, reading and deleting `resource`.
fn refusals(resource: &Resource) -> Vec<String> {
    let observed = |payload| Observed::new(resource.clone(), payload);
    let create = decide(resource, &observed(None), false).map(drop);
    let update = decide(resource, &observed(Some(Value::Null)), false).map(drop);
    let render = |operation| {
        let rendered = resource.evaluation().and_then(|evaluation| Ok(evaluation.render(operation)?));
        rendered.map(drop)
    };
    let outcomes = [create, update, render(OperationName::Get), render(OperationName::Delete)];
    outcomes.iter().filter_map(|outcome| outcome.as_ref().err()).map(shown).collect()
}

/// Returns the errors of looking up `/shops/rio` in a list response for `/shops`.
fn list(fixture: &Path) -> Vec<String> {
    let answer = match decode(PayloadType::Json, &fs::read(fixture).unwrap()) {
        Ok(answer) => answer,
        Err(error) => return vec![shown(&error)],
    };
    let shops = LogicalPath::parse("/shops").unwrap();
    let entries = match Metadata::layered(Vec::new()).rules(&shops).unwrap().entries(&shops, answer) {
        Ok(entries) => entries,
        Err(error) => return vec![shown(&error)],
    };
    let paths = entries.named.iter().filter_map(|entry| entry.path(&shops, PathNames::Literal).err());
    let mut errors: Vec<String> = paths.map(|error| shown(&error)).collect();
    let list =
        ListAnswer::Listed { listing: Listing::new(entries.named), doubt: None, held: Share::default() };
    let wanted = Wanted { name: "rio", one_name: true, by_members: true, ..Wanted::default() };
    let question = Question { wanted, ..Question::default() };
    if let Verdict::Unknown(doubt) = judge(&question, Address::NotFound, &list) {
        let path = shops.join("rio").unwrap();
        errors.push(shown(&SyncError::Undecided(path, doubt)));
    }
    errors
}

fn openapi(fixture: &Path) -> Vec<String> {
    OpenApi::parse(&fs::read(fixture).unwrap()).err().iter().map(shown).collect()
}

const MANIFEST: &str = "{apiVersion: declarest.io/v1alpha1, kind: MetadataBundle, name: till-bundle, \
    version: 1.2.0, description: Till API., declarest: {metadataRoot: metadata}}";

/// Returns the errors of a bundle manifest; the bundle is a directory.
fn manifest(fixture: &Path) -> Vec<String> {
    let content = fs::read(fixture).unwrap();
    let bundle = directory(&[("bundle.yaml", &content), ("metadata/tills/_/metadata.yaml", b"")]);
    open(bundle.path())
}

/// Returns the errors of an archive. The fixture has a line for each entry: its kind, its name, and the target of a
/// link.
fn archive(fixture: &Path) -> Vec<String> {
    let described = fs::read_to_string(fixture).unwrap();
    let mut entries = Vec::new();
    for line in described.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        entries.extend(match words[..] {
            ["file", "bundle.yaml"] => entry(EntryType::Regular, "bundle.yaml", "", MANIFEST),
            ["file", name] => entry(EntryType::Regular, name, "", "resource: {alias: /name}"),
            ["bad", name] => entry(EntryType::Regular, name, "", "resource:\n  aliass: /name"),
            ["symlink", name, target] => entry(EntryType::Symlink, name, target, ""),
            ["link", name, target] => entry(EntryType::Link, name, target, ""),
            ["device", name] => entry(EntryType::Char, name, "", ""),
            ["plain"] => return open_archive(b"this is not an archive"),
            _ => panic!("{}: {line}", fixture.display()),
        });
    }
    entries.resize(entries.len() + 1024, 0);
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(&entries).unwrap();
    open_archive(&encoder.finish().unwrap())
}

fn entry(kind: EntryType, name: &str, target: &str, content: &str) -> Vec<u8> {
    let mut header = Header::new_ustar();
    // Write the names directly, because the functions of the library reject such names.
    header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
    header.as_old_mut().linkname[..target.len()].copy_from_slice(target.as_bytes());
    header.set_entry_type(kind);
    header.set_size(content.len() as u64);
    header.set_mode(0o644);
    header.set_cksum();
    let mut bytes = [header.as_bytes(), content.as_bytes()].concat();
    bytes.resize(bytes.len().next_multiple_of(512), 0);
    bytes
}

fn open_archive(content: &[u8]) -> Vec<String> {
    let place = directory(&[("till-bundle.tar.gz", content)]);
    open(&place.path().join("till-bundle.tar.gz"))
}

fn open(bundle: &Path) -> Vec<String> {
    let cache = tempfile::tempdir().unwrap();
    let reference = Reference::parse(bundle.to_str().unwrap()).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let opened = runtime.block_on(BundleSource::new(Options::new(cache.path())).open(&reference));
    let error = opened.err().map(|error| shown(&error));
    error.into_iter().map(|text| text.replace(bundle.to_str().unwrap(), "<bundle>")).collect()
}

fn errors(group: &str, fixture: &Path) -> Vec<String> {
    match group {
        "payload" => payload(fixture),
        "collection" => document(fixture, "shops/_"),
        "resource" => document(fixture, "shops/rio"),
        "tree" => tree(fixture),
        "list" => list(fixture),
        "openapi" => openapi(fixture),
        "manifest" => manifest(fixture),
        _ => archive(fixture),
    }
}

#[rstest]
fn broken_input_is_explained(
    #[values("payload", "collection", "resource", "tree", "list", "openapi", "manifest", "archive")]
    group: &str,
) {
    let (mut table, mut accepted) = (String::new(), Vec::new());
    for fixture in fixtures(group) {
        let errors = errors(group, &fixture);
        let name = fixture.file_name().unwrap().to_str().unwrap();
        if errors.is_empty() {
            accepted.push(name.to_owned());
        }
        writeln!(table, "{name}").unwrap();
        for text in errors {
            writeln!(table, "    {}", text.replace('\n', "\n    ")).unwrap();
        }
    }
    assert!(accepted.is_empty(), "{accepted:?} were accepted");
    insta::with_settings!({ snapshot_path => "fixtures/bad", prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_snapshot!(group, table);
    });
}

/// A fixture in a directory without a group would not be tested.
#[test]
fn every_fixture_belongs_to_a_group() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/bad");
    let mut groups: Vec<String> = fs::read_dir(root)
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.file_type().unwrap().is_dir())
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect();
    groups.sort();
    let mut known = GROUPS.map(str::to_owned);
    known.sort();
    assert_eq!(groups, known);
    assert!(GROUPS.iter().map(|group| fixtures(group).len()).sum::<usize>() >= 60);
}
