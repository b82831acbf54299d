//! Tests of commits that are too large.

use std::path::Path;
use std::time::{Duration, Instant};

use git2::{Oid, Repository};
use rstest::rstest;

use super::super::fixtures::Origin;
use super::super::{Mirror, Remote, RemoteAuth, RemoteUrl, RepositoryError, Revision, Tree as _};
use super::origin;
use crate::error::{Categorized, Category};

fn fetch(mirror: &Mirror, origin: &Origin) -> Result<Revision, RepositoryError> {
    let url = RemoteUrl::parse_local_allowed(&origin.url()).unwrap();
    mirror.fetch(&Remote::new(url, "main", RemoteAuth::None), Instant::now() + Duration::from_mins(1))
}

fn open(directory: &Path) -> Mirror {
    Mirror::open(directory, "binding").unwrap()
}

#[rstest]
#[case::at_the_tip(0)]
#[case::below_the_tip(2)]
fn a_branch_with_a_large_commit_is_an_error_until_it_is_rewritten(#[case] above: usize) {
    let (origin, directory) = (Origin::new(), tempfile::tempdir().unwrap());
    let mirror = open(directory.path());
    let first = origin.commit(&[], &[("a/resource.txt", "1")]);
    origin.branch("main", &first);
    assert_eq!(fetch(&mirror, &origin).unwrap(), first);
    let large = origin.large_commit(&[&first]);
    let tip = (0..above).fold(large.clone(), |tip, _| origin.commit(&[&tip], &[]));
    origin.branch("main", &tip);
    for mirror in [mirror.clone(), mirror, open(directory.path())] {
        let error = fetch(&mirror, &origin).unwrap_err();
        let expected = format!("commit {large} in the history of the branch has ");
        let advice = "more than the limit of 1 MiB; rewrite the branch without this commit";
        assert!(error.to_string().starts_with(&expected) && error.to_string().ends_with(advice), "{error}");
        assert_eq!(error.category(), Category::Transport);
        assert_eq!(mirror.tip().unwrap(), Some(first.clone()));
        mirror.verify().unwrap();
        assert_eq!(mirror.tree(&first).unwrap().read("a/resource.txt").unwrap().unwrap(), b"1");
        for error in [mirror.pin("x", &tip).unwrap_err(), mirror.descends(&tip, &first).unwrap_err()] {
            assert!(matches!(error, RepositoryError::CommitTooLarge { .. }), "{error}");
        }
        assert!(!mirror.is_damaged());
    }
    let repaired = origin.commit(&[&first], &[("a/resource.txt", "2")]);
    origin.branch("main", &repaired);
    assert_eq!(fetch(&open(directory.path()), &origin).unwrap(), repaired);
}

/// A former version fetched commits of any size.
#[test]
fn a_mirror_loses_its_refs_to_large_commits_and_keeps_the_others() {
    let (origin, directory) = (Origin::new(), tempfile::tempdir().unwrap());
    let mirror = open(directory.path());
    let first = origin.commit(&[], &[("a/resource.txt", "1")]);
    origin.branch("main", &first);
    fetch(&mirror, &origin).unwrap();
    mirror.pin("policy/base", &first).unwrap();
    let large = origin.large_commit(&[&first]);
    let tip = origin.commit(&[&large], &[]);
    origin.branch("main", &tip);
    fetch(&mirror, &origin).unwrap_err();
    drop(mirror);
    let repository = Repository::open_bare(directory.path().join("git")).unwrap();
    for (name, revision) in [("tip", &tip), ("pins/policy/large", &large)] {
        let name = format!("refs/declarest/{name}");
        repository.reference(&name, revision.oid().unwrap(), true, "test").unwrap();
    }
    let mirror = open(directory.path());
    assert_eq!(mirror.tip().unwrap(), None);
    assert_eq!(mirror.pins().unwrap(), [("policy/base".to_owned(), first)]);
}

/// The side that was checked before may be newer or older than the other one.
#[rstest]
#[case(0)]
#[case(9)]
fn a_merge_is_checked_on_both_sides(#[case] newer: usize) {
    let (origin, directory) = (Origin::new(), tempfile::tempdir().unwrap());
    let checked = (0..newer).fold(origin.commit(&[], &[]), |tip, _| origin.commit(&[&tip], &[]));
    let side = (0..4).fold(origin.large_commit(&[]), |tip, _| origin.commit(&[&tip], &[]));
    let merged = origin.commit(&[&checked, &side], &[]);
    let mirror = open(directory.path());
    origin.branch("main", &checked);
    fetch(&mirror, &origin).unwrap();
    origin.branch("main", &merged);
    assert!(matches!(fetch(&mirror, &origin), Err(RepositoryError::CommitTooLarge { .. })));
    let next = origin.commit(&[&checked], &[("a", "")]);
    origin.branch("main", &next);
    assert_eq!(fetch(&mirror, &origin).unwrap(), next);
}

#[rstest]
#[case("tree t\nparent P\nauthor a <b> 1 +0000\ncommitter c d <e> 7 +0000\n\nparent Q\n", 7, 1)]
#[case("tree t\nparent P\nparent Q\nauthor \u{e4}\ncommitter c\ngpgsig x\n parent R\n", 0, 2)]
#[case("tree t\n\n", 0, 0)]
#[case("", 0, 0)]
fn the_origin_of_a_commit_is_read_although_it_is_invalid(
    #[case] text: &str,
    #[case] time: i64,
    #[case] parents: usize,
) {
    let ids = ["1", "2"].map(|digit| digit.repeat(40));
    let text = text
        .replace("parent P", &format!("parent {}", ids[0]))
        .replace("parent Q", &format!("parent {}", ids[1]));
    let expected = ids.iter().take(parents).map(|id| Oid::from_str(id).unwrap()).collect();
    assert_eq!(origin(text.as_bytes()), (time, expected));
}
