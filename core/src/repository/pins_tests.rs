//! Tests of pins.

use std::time::{Duration, Instant};

use super::super::fixtures::Origin;
use super::super::{Remote, RemoteAuth, RemoteUrl};
use super::*;

/// A mirror with `count` commits of one branch, oldest first.
fn mirror(count: usize) -> (tempfile::TempDir, Mirror, Vec<Revision>) {
    let (origin, directory) = (Origin::new(), tempfile::tempdir().unwrap());
    let mut commits: Vec<Revision> = Vec::new();
    for number in 0..count {
        let parents: Vec<&Revision> = commits.last().into_iter().collect();
        commits.push(origin.commit(&parents, &[("a/resource.json", &number.to_string())]));
    }
    origin.branch("main", commits.last().unwrap());
    let mirror = Mirror::open(directory.path(), "").unwrap();
    let url = RemoteUrl::parse_local_allowed(&origin.url()).unwrap();
    let remote = Remote::new(url, "main", RemoteAuth::None);
    mirror.fetch(&remote, Instant::now() + Duration::from_mins(1)).unwrap();
    (directory, mirror, commits)
}

fn newest_first(commits: &[&Revision]) -> Vec<Revision> {
    commits.iter().map(|&commit| commit.clone()).collect()
}

#[test]
fn a_series_keeps_the_newest_in_the_order_of_pinning() {
    let (_directory, mirror, commits) = mirror(4);
    let [a, b, c, d] = [0, 1, 2, 3].map(|number: usize| &commits[number]);
    assert_eq!(mirror.series("policy/seen").unwrap(), []);
    for revision in [c, a, a, b] {
        mirror.pin_newest("policy/seen", revision, 3).unwrap();
    }
    assert_eq!(mirror.series("policy/seen").unwrap(), newest_first(&[b, a, c]));
    mirror.pin_newest("policy/seen", c, 3).unwrap();
    assert_eq!(mirror.series("policy/seen").unwrap(), newest_first(&[c, b, a]), "seen again");
    mirror.pin_newest("policy/seen", d, 3).unwrap();
    assert_eq!(mirror.series("policy/seen").unwrap(), newest_first(&[d, c, b]), "the oldest goes");
}

#[test]
fn numbers_sort_in_order_beyond_ten() {
    let (_directory, mirror, commits) = mirror(12);
    for revision in &commits {
        mirror.pin_newest("seen", revision, 100).unwrap();
    }
    let expected: Vec<Revision> = commits.iter().rev().cloned().collect();
    assert_eq!(mirror.series("seen").unwrap(), expected);
}

#[test]
fn only_pins_below_a_name_are_unpinned() {
    let (_directory, mirror, commits) = mirror(1);
    for name in ["one/base", "one/seen/x", "one-more/base"] {
        mirror.pin(name, &commits[0]).unwrap();
    }
    mirror.unpin_below("one").unwrap();
    mirror.unpin_below("one").unwrap();
    let left: Vec<String> = mirror.pins().unwrap().into_iter().map(|(name, _)| name).collect();
    assert_eq!(left, ["one-more/base"]);
    assert!(matches!(mirror.unpin_below("*"), Err(RepositoryError::InvalidPin(_))));
}
