//! Tests of the comparison of trees.

use std::collections::BTreeMap;

use git2::{Delta, DiffOptions, ObjectType};
use proptest::prelude::*;

use super::*;
use crate::path::LogicalPath;
use crate::repository::{ApplyTarget, Changes, Mirror, Revision, classify};

/// Mode and content of a name.
type Node = (i32, u8);
type Nodes = BTreeMap<Vec<&'static str>, Node>;

/// Few names, some of which sort differently as files than as directories.
fn nodes() -> impl Strategy<Value = Nodes> {
    let name = prop::sample::select(vec!["a", "a-b", "a.b", "a0", "b"]);
    let path = prop::collection::vec(name, 1..4);
    let mode = prop::sample::select(vec![0o100_644, 0o100_644, 0o100_755, 0o120_000, 0o160_000]);
    prop::collection::btree_map(path, (mode, 0_u8..2), 0..8)
}

/// Writes a tree of these names, without their objects. Names below a file are left out.
fn write(repository: &Repository, nodes: &Nodes) -> Oid {
    let mut here: BTreeMap<Vec<u8>, Vec<u8>> = BTreeMap::new();
    let mut below: BTreeMap<&str, Nodes> = BTreeMap::new();
    let mut entry = |name: &str, mode: i32, id: Oid| {
        let key = if mode == 0o040_000 { format!("{name}/") } else { name.to_owned() };
        let line = [format!("{mode:o} {name}\0").as_bytes(), id.as_bytes()].concat();
        here.insert(key.into_bytes(), line);
    };
    for (path, (mode, content)) in nodes {
        match path[..] {
            [name] => entry(name, *mode, Oid::from_str(&format!("{:040}", content + 1)).unwrap()),
            [name, ref rest @ ..] if !nodes.contains_key(&vec![name]) => {
                below.entry(name).or_default().insert(rest.to_vec(), (*mode, *content));
            }
            _ => {}
        }
    }
    for (name, nodes) in below {
        entry(name, 0o040_000, write(repository, &nodes));
    }
    let content: Vec<u8> = here.into_values().flatten().collect();
    repository.odb().unwrap().write(ObjectType::Tree, &content).unwrap()
}

/// Returns the same comparison by libgit2.
fn by_libgit2(repository: &Repository, old: &Tree<'_>, new: &Tree<'_>, scope: &str) -> Vec<FileChange> {
    let mut options = DiffOptions::new();
    options.include_typechange(true).skip_binary_check(true);
    if !scope.is_empty() {
        options.pathspec(scope).disable_pathspec_match(true);
    }
    let diff = repository.diff_tree_to_tree(Some(old), Some(new), Some(&mut options)).unwrap();
    let change = |delta: git2::DiffDelta<'_>| {
        let kind = |file: git2::DiffFile<'_>| {
            file.exists().then(|| entry_kind(u32::from(file.mode()).cast_signed()))
        };
        let status = match delta.status() {
            Delta::Added => ChangeStatus::Added,
            Delta::Deleted => ChangeStatus::Deleted,
            Delta::Typechange => ChangeStatus::TypeChanged,
            Delta::Modified if delta.old_file().id() == delta.new_file().id() => ChangeStatus::ModeOnly,
            Delta::Modified => ChangeStatus::Modified,
            other => panic!("{other:?}"),
        };
        let file = if status == ChangeStatus::Deleted { delta.old_file() } else { delta.new_file() };
        FileChange {
            path: String::from_utf8(file.path_bytes().unwrap().to_vec()).unwrap(),
            status,
            old: kind(delta.old_file()),
            new: kind(delta.new_file()),
        }
    };
    let mut changes: Vec<_> = diff.deltas().map(change).collect();
    changes.sort_by(|a, b| a.path.cmp(&b.path));
    changes
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn the_differences_are_those_of_libgit2(
        old in nodes(),
        new in nodes(),
        scope in prop::sample::select(vec!["", "a", "a-b", "a/b", "b/a/a"]),
    ) {
        let directory = tempfile::tempdir().unwrap();
        let repository = Repository::init_bare(directory.path()).unwrap();
        let tree = |nodes: &Nodes| repository.find_tree(write(&repository, nodes)).unwrap();
        let (old, new) = (tree(&old), tree(&new));
        let found = between(&repository, &old, &new, Some(scope)).unwrap();
        prop_assert_eq!(found, by_libgit2(&repository, &old, &new, scope));
    }
}

/// The repository has only the directories above the change, and no files.
#[test]
fn a_change_is_found_without_reading_unrelated_objects() {
    let directory = tempfile::tempdir().unwrap();
    let mirror = Mirror::open(directory.path(), "test").unwrap();
    let repository = Repository::open_bare(directory.path().join("git")).unwrap();
    let absent = |digit: &str| Oid::from_str(&digit.repeat(40)).unwrap();
    let tree = |entries: &[(&str, &str, Oid)]| {
        let line = |(mode, name, id): &(&str, &str, Oid)| {
            [format!("{mode} {name}\0").as_bytes(), id.as_bytes()].concat()
        };
        let content: Vec<u8> = entries.iter().flat_map(line).collect();
        repository.odb().unwrap().write(ObjectType::Tree, &content).unwrap()
    };
    let commit = |content: &str| {
        let rio = tree(&[("100644", "open.sh", absent("1")), ("100644", "resource.yaml", absent(content))]);
        let shops = tree(&[("40000", "ava", absent("2")), ("40000", "rio", rio)]);
        let root = tree(&[
            ("100644", "README.md", absent("3")),
            ("40000", "cities", absent("4")),
            ("40000", "shops", shops),
        ]);
        let text = format!(
            "tree {root}\nauthor a <a@example.org> 1 +0000\ncommitter a <a@example.org> 1 +0000\n\na\n"
        );
        Revision::of(repository.odb().unwrap().write(ObjectType::Commit, text.as_bytes()).unwrap())
    };
    let (base, target) = (commit("5"), commit("6"));
    let changes = mirror.diff(&base, &target).unwrap();
    assert_eq!(changes.len(), 1, "{changes:?}");
    let (base, target) = (mirror.tree(&base).unwrap(), mirror.tree(&target).unwrap());
    let affected = classify(&changes, &base, &target, &LogicalPath::root()).unwrap();
    let rio = ApplyTarget { path: LogicalPath::parse("/shops/rio").unwrap(), recursive: false };
    assert_eq!(affected, Changes::Targets { apply: vec![rio], prune: Vec::new() });
}
