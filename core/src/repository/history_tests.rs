//! Tests of ancestry and undeclared resources.

use std::time::{Duration, Instant};

use super::super::fixtures::{File, Origin};
use super::super::{Mirror, Remote, RemoteAuth, RemoteUrl};
use super::*;

/// Fetches `tips` in turn as `main`, each pinned, so that all of them stay in the mirror.
fn mirror(origin: &Origin, tips: &[&Revision]) -> (tempfile::TempDir, Mirror) {
    let directory = tempfile::tempdir().unwrap();
    let mirror = Mirror::open(directory.path(), "").unwrap();
    let url = RemoteUrl::parse_local_allowed(&origin.url()).unwrap();
    let remote = Remote::new(url, "main", RemoteAuth::None);
    for tip in tips {
        origin.branch("main", tip);
        mirror.fetch(&remote, Instant::now() + Duration::from_mins(1)).unwrap();
        mirror.pin(tip.as_str(), tip).unwrap();
    }
    (directory, mirror)
}

fn undeclared(
    mirror: &Mirror,
    seen: &[&Revision],
    target: &Revision,
    scope: &str,
) -> Vec<(String, Revision, String)> {
    let scope = LogicalPath::parse(scope).unwrap();
    let seen: Vec<Revision> = seen.iter().map(|&revision| revision.clone()).collect();
    let found = mirror.undeclared(&seen, target, &scope).unwrap();
    found.into_iter().map(|gone| (gone.path.to_string(), gone.revision, gone.file)).collect()
}

const A: (&str, &str) = ("s/a/resource.json", "1");
const B: (&str, &str) = ("s/b/resource.json", "1");
const KEEP: (&str, &str) = ("s/keep/resource.json", "1");

fn gone(path: &str, revision: &Revision) -> (String, Revision, String) {
    (path.to_owned(), revision.clone(), format!("{}/resource.json", &path[1..]))
}

#[test]
fn a_deleted_payload_is_undeclared_with_the_newest_revision_that_declared_it() {
    let origin = Origin::new();
    let one = origin.commit(&[], &[A, KEEP]);
    let two = origin.commit(&[&one], &[("s/a/resource.json", "2"), KEEP]);
    let three = origin.commit(&[&two], &[KEEP]);
    let (_directory, mirror) = mirror(&origin, &[&three]);
    assert_eq!(undeclared(&mirror, &[&two, &one], &three, "/"), [gone("/s/a", &two)]);
    assert_eq!(undeclared(&mirror, &[&three, &two, &one], &three, "/s/a"), [gone("/s/a", &two)]);
    assert_eq!(undeclared(&mirror, &[&one], &three, "/"), [gone("/s/a", &one)], "two was not seen");
    assert_eq!(undeclared(&mirror, &[&two, &one], &three, "/s/keep"), []);
    assert_eq!(undeclared(&mirror, &[&two, &one], &three, "/other"), []);
    assert_eq!(undeclared(&mirror, &[&three], &three, "/"), []);
    assert_eq!(undeclared(&mirror, &[], &three, "/"), []);
    let last = mirror.tree(&two).unwrap();
    assert_eq!(last.read("s/a/resource.json").unwrap().unwrap(), b"2");
}

#[test]
fn a_resource_of_an_intermediate_revision_counts_only_if_that_was_seen() {
    let origin = Origin::new();
    let one = origin.commit(&[], &[KEEP]);
    let two = origin.commit(&[&one], &[A, KEEP]);
    let three = origin.commit(&[&two], &[KEEP]);
    let (_directory, mirror) = mirror(&origin, &[&three]);
    assert_eq!(undeclared(&mirror, &[&one], &three, "/"), []);
    assert_eq!(undeclared(&mirror, &[&two, &one], &three, "/"), [gone("/s/a", &two)]);
}

#[test]
fn a_resource_that_returned_in_another_format_is_declared() {
    let origin = Origin::new();
    let one = origin.commit(&[], &[A, B, ("s/c/resource.json", "")]);
    let two = origin.commit(&[&one], &[KEEP]);
    let back = [A, KEEP, ("s/b/resource.yaml", ""), ("s/c/resource.xml", ""), ("s/c/resource.ini", "")];
    let three = origin.commit(&[&two], &back);
    let (_directory, mirror) = mirror(&origin, &[&three]);
    assert_eq!(undeclared(&mirror, &[&two, &one], &three, "/"), []);
    let four = origin.commit(&[&three], &[KEEP]);
    origin.branch("main", &four);
    let (_directory, mirror) = self::mirror(&origin, &[&four]);
    let last = undeclared(&mirror, &[&three, &one], &four, "/s/b");
    assert_eq!(last, [("/s/b".to_owned(), three.clone(), "s/b/resource.yaml".to_owned())]);
}

#[test]
fn revisions_of_a_merged_branch_do_not_count() {
    let origin = Origin::new();
    let base = origin.commit(&[], &[A, B, KEEP]);
    let left = origin.commit(&[&base], &[B, KEEP]);
    let right = origin.commit(&[&base], &[A, B, KEEP, ("s/r/resource.json", "")]);
    let merge = origin.commit(&[&left, &right], &[KEEP]);
    let (_directory, mirror) = mirror(&origin, &[&merge]);
    assert_eq!(undeclared(&mirror, &[&base], &merge, "/s"), [gone("/s/a", &base), gone("/s/b", &base)]);
}

#[test]
fn a_seen_revision_counts_after_a_force_push() {
    let origin = Origin::new();
    let one = origin.commit(&[], &[KEEP]);
    let seen = origin.commit(&[&one], &[A, KEEP]);
    let other = origin.commit(&[&one], &[B, KEEP]);
    let target = origin.commit(&[&other], &[KEEP]);
    let (_directory, mirror) = mirror(&origin, &[&seen, &target]);
    assert_eq!(undeclared(&mirror, &[&seen], &target, "/"), [gone("/s/a", &seen)]);
}

#[test]
fn only_payloads_of_addressable_resources_count() {
    let origin = Origin::new();
    let files = [
        ("resource.json", ""),
        ("s/_/resource.json", ""),
        ("s/.git-not/resource.json", ""),
        ("s/a/metadata.yaml", ""),
        ("s/a/open.sh", ""),
        ("s/a/resources.json", ""),
    ];
    let base = origin.commit(&[], &files);
    let target = origin.commit(&[&base], &[KEEP]);
    let (_directory, mirror) = mirror(&origin, &[&target]);
    assert_eq!(undeclared(&mirror, &[&base], &target, "/"), [gone("/s/.git-not", &base)]);
}

#[test]
fn a_resource_replaced_by_a_link_or_a_file_is_hidden() {
    let origin = Origin::new();
    let files = [A, ("s/b/resource.json", "1"), ("t/u/v/resource.json", "1"), ("w/x/resource.json", "1")];
    let base = origin.commit(&[], &files);
    let new = [
        ("s/a/resource.json", File::Link("x")),
        ("s/b", File::Submodule),
        ("t", File::Link("x")),
        ("w", File::Text("x")),
    ];
    let target = origin.commit_at(2_000_000_000, &[&base], &new);
    let (_directory, mirror) = mirror(&origin, &[&target]);
    let hidden = |scope: &str| {
        let scope = LogicalPath::parse(scope).unwrap();
        let found = mirror.undeclared(std::slice::from_ref(&base), &target, &scope).unwrap();
        let names = found.into_iter().map(|gone| (gone.path.to_string(), gone.hidden_by.unwrap().0));
        names.collect::<Vec<_>>()
    };
    let name = |path: &str, file: &str| (path.to_owned(), file.to_owned());
    let expected =
        [name("/s/a", "s/a/resource.json"), name("/s/b", "s/b"), name("/t/u/v", "t"), name("/w/x", "w")];
    assert_eq!(hidden("/"), expected);
    assert_eq!(hidden("/t/u/v"), [name("/t/u/v", "t")], "the link is above the scope");
}

#[test]
fn descent_is_found_in_spite_of_wrong_clocks() {
    let origin = Origin::new();
    let hour = 3600;
    // The older commits have later times than the commits on top of them.
    let seen = origin.commit_at(10 * hour, &[], &[("k", File::Text(""))]);
    let base = origin.commit_at(2 * hour, &[&seen], &[("k", File::Text("1"))]);
    let side = origin.commit_at(8 * hour, &[&seen], &[("k", File::Text("2"))]);
    let target = origin.commit_at(3 * hour, &[&base, &side], &[("k", File::Text("3"))]);
    let (_directory, mirror) = mirror(&origin, &[&target]);
    assert!(mirror.descends(&target, &seen).unwrap());
    assert!(mirror.descends(&base, &base).unwrap());
    assert!(!mirror.descends(&base, &target).unwrap());
}

#[test]
fn an_unknown_revision_is_an_error() {
    let origin = Origin::new();
    let base = origin.commit(&[], &[A]);
    let (_directory, mirror) = mirror(&origin, &[&base]);
    let unknown: Revision = "1".repeat(40).parse().unwrap();
    let scope = LogicalPath::root();
    for (from, to) in [(&unknown, &base), (&base, &unknown)] {
        let error = mirror.undeclared(std::slice::from_ref(from), to, &scope).unwrap_err();
        assert_eq!(error, RepositoryError::RevisionMissing(unknown.to_string()));
    }
    assert!(!mirror.descends(&base, &unknown).unwrap());
}
