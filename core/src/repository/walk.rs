//! The limits of a walk over a tree. Git stores equal directories once, so a few small objects can describe any number of
//! directories.

use super::RepositoryError;

/// The most directories of one walk. A resource needs one.
pub(super) const MOST_DIRECTORIES: usize = 500_000;

/// The most bytes of their names, each with all names above it.
const MOST_NAMES: usize = 64 << 20;

/// The most levels of directories.
const DEEPEST: usize = 64;

/// Counts what a walk visits, or is about to visit.
#[derive(Debug)]
pub(super) struct Walk<'s> {
    scope: &'s str,
    most: usize,
    entries: usize,
    names: usize,
}

impl<'s> Walk<'s> {
    /// Returns a walk of the directories below `scope`, for which the errors name it.
    pub fn below(scope: &'s str) -> Self {
        Self::within(scope, MOST_DIRECTORIES)
    }

    /// Returns a walk of at most `most` entries.
    pub fn within(scope: &'s str, most: usize) -> Self {
        Self { scope, most, entries: 0, names: 0 }
    }

    /// Counts an entry by its name relative to the root. Fails if the walk must end.
    pub fn enter(&mut self, name: &str) -> Result<(), RepositoryError> {
        self.entries += 1;
        self.names += name.len();
        let excess = if self.entries > self.most {
            format!("more than {} of them", self.most)
        } else if self.names > MOST_NAMES {
            format!("names of more than {} MiB together", MOST_NAMES >> 20)
        } else if name.bytes().filter(|byte| *byte == b'/').count() >= DEEPEST {
            format!("more than {DEEPEST} levels")
        } else {
            return Ok(());
        };
        Err(RepositoryError::TooManyDirectories { directory: self.scope.to_owned(), excess })
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use rstest::rstest;

    use super::super::fixtures::Origin;
    use super::super::{
        GitTree, MetadataFiles, Mirror, Remote, RemoteAuth, RemoteUrl, Revision, declares_at_least, resources,
    };
    use super::*;
    use crate::path::LogicalPath;

    /// Seven levels of these are five million directories.
    const NAMES: [&str; 9] = ["a", "b", "c", "d", "e", "f", "g", "h", "i"];

    struct Bomb {
        _origin: Origin,
        _directory: tempfile::TempDir,
        mirror: Mirror,
        plain: Revision,
        nested: Revision,
    }

    impl Bomb {
        /// Returns a branch with a resource, and then with `levels` of directories with all `names`, which have `file`.
        fn new(names: &[&str], levels: usize, file: Option<&str>) -> Self {
            let (origin, directory) = (Origin::new(), tempfile::tempdir().unwrap());
            let plain = origin.commit(&[], &[("shops/rio/resource.json", "{}")]);
            let bomb = origin.nested_commit(&plain, names, levels, file);
            origin.branch("main", &bomb);
            let mirror = Mirror::open(directory.path(), "binding").unwrap();
            let remote =
                Remote::new(RemoteUrl::parse_local_allowed(&origin.url()).unwrap(), "main", RemoteAuth::None);
            mirror.fetch(&remote, Instant::now() + Duration::from_mins(1)).unwrap();
            Self { _origin: origin, _directory: directory, mirror, plain, nested: bomb }
        }

        fn tree(&self) -> GitTree {
            self.mirror.tree(&self.nested).unwrap()
        }
    }

    fn is_refused<T: std::fmt::Debug>(result: Result<T, RepositoryError>) {
        let error = result.unwrap_err();
        assert!(matches!(error, RepositoryError::TooManyDirectories { .. }), "{error}");
    }

    #[test]
    fn equal_directories_end_each_walk() {
        let bomb = Bomb::new(&NAMES, 7, Some("resource.json"));
        is_refused(resources(&bomb.tree(), &LogicalPath::root(), true));
        is_refused(bomb.mirror.diff(&bomb.plain, &bomb.nested));
        let one = LogicalPath::parse("/a/a/a").unwrap();
        assert_eq!(resources(&bomb.tree(), &one, false).unwrap().broken, []);
        let empty = Bomb::new(&NAMES, 7, None);
        is_refused(declares_at_least(&empty.tree(), &LogicalPath::root(), 1));
    }

    #[test]
    fn metadata_of_many_wildcards_is_refused() {
        let bomb = Bomb::new(&["_", "a"], 20, None);
        let path = LogicalPath::parse(&"/a".repeat(15)).unwrap();
        is_refused(MetadataFiles::default().documents(&bomb.tree(), &path));
    }

    #[rstest]
    #[case::many("a", 501, "more than 500 of them")]
    #[case::long(&"a".repeat(1 << 20), 65, "names of more than 64 MiB together")]
    #[case::deep(&"a/".repeat(64), 1, "more than 64 levels")]
    fn limits(#[case] name: &str, #[case] at: usize, #[case] excess: &str) {
        let mut walk = Walk::within("shops", 500);
        for _ in 1..at {
            walk.enter(name).unwrap();
        }
        let expected = format!("\"/shops\" has too many directories: {excess}; remove directories");
        assert_eq!(walk.enter(name).unwrap_err().to_string(), expected);
    }
}
