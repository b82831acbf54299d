//! Tests of mirrors.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rstest::rstest;
use tokio_util::sync::CancellationToken;

use super::super::fixtures::{File, Origin};
use super::super::{ChangeStatus, EntryKind, RemoteAuth, RemoteUrl, Tree, resources};
use super::*;
use crate::error::{Categorized, Category};

struct Fixture {
    origin: Origin,
    directory: tempfile::TempDir,
    mirror: Mirror,
}

impl Fixture {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mirror = Mirror::open(&directory.path().join("mirror"), "binding").unwrap();
        Self { origin: Origin::new(), directory, mirror }
    }

    fn reopen(&self, binding: &str) -> Mirror {
        Mirror::open(&self.directory.path().join("mirror"), binding).unwrap()
    }

    fn fetch_branch(&self, branch: &str) -> Result<Revision, RepositoryError> {
        fetch_from(&self.mirror, &self.origin.url(), branch)
    }

    fn fetch(&self) -> Revision {
        self.fetch_branch("main").unwrap()
    }
}

fn fetch_from(mirror: &Mirror, url: &str, branch: &str) -> Result<Revision, RepositoryError> {
    let url = RemoteUrl::parse_local_allowed(url).unwrap();
    let remote = Remote::new(url, branch, RemoteAuth::None);
    mirror.fetch(&remote, Instant::now() + Duration::from_mins(1))
}

fn path(text: &str) -> LogicalPath {
    LogicalPath::parse(text).unwrap()
}

#[test]
fn fetches_and_reads_a_commit_without_checkout() {
    let f = Fixture::new();
    assert_eq!(f.mirror.tip().unwrap(), None);
    let files = [("shops/rio/resource.yaml", "name: Rio"), ("shops-x/a", ""), ("b", "x")];
    let first = f.origin.commit(&[], &files);
    f.origin.branch("main", &first);
    assert_eq!(f.fetch(), first);
    assert_eq!(f.mirror.tip().unwrap(), Some(first.clone()));
    let tree = f.mirror.tree(&first).unwrap();
    assert_eq!(tree.revision(), Some(&first));
    assert_eq!(tree.read("shops/rio/resource.yaml").unwrap().unwrap(), b"name: Rio");
    assert_eq!(tree.read("shops/rio/none").unwrap(), None);
    assert_eq!(tree.read("b/below/a/file").unwrap(), None);
    assert_eq!(tree.read("shops").unwrap(), None);
    assert_eq!(tree.entries("b").unwrap(), None);
    assert!(matches!(tree.read("../x"), Err(RepositoryError::OutsidePath(_))));
    let names: Vec<_> = tree.entries("").unwrap().unwrap().into_iter().map(|entry| entry.name).collect();
    assert_eq!(names, ["b", "shops", "shops-x"]);
    assert_eq!(resources(&tree, &path("/shops"), true).unwrap().resources.len(), 1);
}

#[test]
fn many_threads_read_one_tree() {
    let f = Fixture::new();
    let files: Vec<_> = (0..40).map(|n| (format!("d/{n}/resource.txt"), n.to_string())).collect();
    let files: Vec<_> = files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    let first = f.origin.commit(&[], &files);
    f.origin.branch("main", &first);
    f.fetch();
    let tree = f.mirror.tree(&first).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..12 {
            scope.spawn(|| {
                for (name, text) in &files {
                    assert_eq!(tree.read(name).unwrap().unwrap(), text.as_bytes());
                }
            });
        }
    });
}

#[test]
fn links_and_submodules_are_not_followed() {
    let f = Fixture::new();
    let files = [
        ("a/resource.yaml", File::Link("../../etc/passwd")),
        ("sub", File::Submodule),
        ("x", File::Executable("")),
    ];
    let first = f.origin.commit_at(1, &[], &files);
    f.origin.branch("main", &first);
    let tree = f.mirror.tree(&f.fetch()).unwrap();
    assert_eq!(tree.read("a/resource.yaml").unwrap(), None);
    assert_eq!(tree.entries("sub").unwrap(), None);
    let kinds: Vec<_> = tree.entries("").unwrap().unwrap().into_iter().map(|entry| entry.kind).collect();
    assert_eq!(kinds, [EntryKind::Directory, EntryKind::Other, EntryKind::File]);
}

#[test]
fn a_force_push_is_followed_and_pins_survive_it() {
    let f = Fixture::new();
    let first = f.origin.commit(&[], &[("a/resource.txt", "1")]);
    let second = f.origin.commit(&[&first], &[("a/resource.txt", "2")]);
    f.origin.branch("main", &second);
    f.fetch();
    f.mirror.pin("policy.applied", &second).unwrap();
    let rewritten = f.origin.commit(&[&first], &[("b/resource.txt", "3")]);
    f.origin.branch("main", &rewritten);
    assert_eq!(f.fetch(), rewritten);
    assert!(!f.mirror.descends(&rewritten, &second).unwrap());
    assert!(f.mirror.descends(&rewritten, &first).unwrap());
    collect_garbage(&f.directory.path().join("mirror/git"));
    let f = Fixture { mirror: f.reopen("binding"), ..f };
    assert_eq!(f.mirror.pins().unwrap(), [("policy.applied".to_owned(), second.clone())]);
    assert_eq!(f.mirror.tree(&second).unwrap().read("a/resource.txt").unwrap().unwrap(), b"2");
    assert_eq!(f.mirror.diff(&second, &rewritten).unwrap().len(), 2);
    f.mirror.unpin("policy.applied").unwrap();
    f.mirror.unpin("policy.applied").unwrap();
    assert_eq!(f.mirror.pins().unwrap(), []);
    collect_garbage(&f.directory.path().join("mirror/git"));
    let mirror = f.reopen("binding");
    assert!(matches!(mirror.tree(&second), Err(RepositoryError::RevisionMissing(_))));
    assert!(matches!(mirror.pin("x", &second), Err(RepositoryError::RevisionMissing(_))));
    assert!(!mirror.descends(&rewritten, &second).unwrap());
}

/// Changes that an administrator, or Git itself, may make to the mirror.
fn collect_garbage(repository: &Path) {
    let status = std::process::Command::new("git")
        .args(["gc", "--quiet", "--prune=now"])
        .current_dir(repository)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_COUNT", "1")
        .env("GIT_CONFIG_KEY_0", "safe.directory")
        .env("GIT_CONFIG_VALUE_0", "*")
        .status();
    assert!(status.unwrap().success());
}

#[rstest]
#[case("")]
#[case("a..b")]
#[case("a b")]
fn pin_names_are_ref_names(#[case] name: &str) {
    let f = Fixture::new();
    let first = f.origin.commit(&[], &[]);
    assert!(matches!(f.mirror.pin(name, &first), Err(RepositoryError::InvalidPin(_))));
    assert!(matches!(f.mirror.unpin(name), Err(RepositoryError::InvalidPin(_))));
}

#[test]
fn the_error_names_an_unknown_branch_and_the_mirror_does_not_change() {
    let f = Fixture::new();
    let empty = f.fetch_branch("main").unwrap_err();
    assert_eq!(empty.category(), Category::NotFound);
    let first = f.origin.commit(&[], &[("a", "")]);
    f.origin.branch("main", &first);
    f.origin.branch("feature", &first);
    f.fetch();
    let error = f.fetch_branch("feature/x").unwrap_err();
    assert_eq!(error.category(), Category::NotFound);
    assert!(error.to_string().ends_with("has no branch \"feature/x\""), "{error}");
    assert_eq!(f.mirror.tip().unwrap(), Some(first.clone()));
    assert_eq!(f.fetch_branch("feature").unwrap(), first);
}

#[test]
fn a_branch_is_fetched_although_its_name_was_a_directory_of_an_earlier_one() {
    let f = Fixture::new();
    let first = f.origin.commit(&[], &[("a", "")]);
    f.origin.branch("x/y", &first);
    assert_eq!(f.fetch_branch("x/y").unwrap(), first);
    let other = Origin::new();
    let second = other.commit(&[], &[("b", "")]);
    other.branch("x", &second);
    assert_eq!(fetch_from(&f.mirror, &other.url(), "x").unwrap(), second);
    assert_eq!(f.mirror.tip().unwrap(), Some(second));
}

#[test]
fn a_missing_repository_is_not_found() {
    let f = Fixture::new();
    let error = fetch_from(&f.mirror, "file:///nonexistent/declarest", "main").unwrap_err();
    assert_eq!(error.category(), Category::NotFound, "{error}");
}

#[test]
fn an_unreachable_host_is_a_transport_error() {
    let f = Fixture::new();
    // Nothing listens on this port, and no other test can get it.
    let error = fetch_from(&f.mirror, "http://127.0.0.1:1/a", "main").unwrap_err();
    assert_eq!(error.category(), Category::Transport, "{error}");
}

#[test]
fn a_silent_connection_does_not_outlast_the_deadline() {
    let f = Fixture::new();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = RemoteUrl::parse(&format!("http://{}/a", listener.local_addr().unwrap())).unwrap();
    let remote = Remote::new(url, "main", RemoteAuth::None);
    let error = f.mirror.fetch(&remote, Instant::now()).unwrap_err();
    assert!(matches!(error, RepositoryError::Timeout { .. }), "{error}");
    let first = f.origin.commit(&[], &[("a", "")]);
    f.origin.branch("main", &first);
    assert_eq!(f.fetch(), first, "the mirror stays usable");
    drop(listener);
}

#[test]
fn another_binding_discards_the_mirror() {
    let f = Fixture::new();
    f.origin.branch("main", &f.origin.commit(&[], &[("a", "")]));
    let first = f.fetch();
    assert_eq!(f.reopen("binding").tip().unwrap(), Some(first));
    assert_eq!(f.reopen("other").tip().unwrap(), None);
    assert_eq!(f.reopen("binding").tip().unwrap(), None);
}

#[rstest]
#[case::unfinished(&["binding"], None)]
#[case::no_head(&["git/HEAD"], None)]
#[case::no_objects(&["git/objects"], None)]
#[case::empty_ref(&[], Some(("git/refs/declarest/tip", "")))]
#[case::ref_to_nothing(&[], Some(("git/refs/declarest/tip", "1111111111111111111111111111111111111111\n")))]
fn a_damaged_mirror_is_recreated(#[case] removed: &[&str], #[case] written: Option<(&str, &str)>) {
    let f = Fixture::new();
    f.origin.branch("main", &f.origin.commit(&[], &[("a", "")]));
    let first = f.fetch();
    let directory = f.directory.path().join("mirror");
    for name in removed {
        let place = directory.join(name);
        if place.is_dir() { fs::remove_dir_all(place).unwrap() } else { fs::remove_file(place).unwrap() }
    }
    if let Some((name, text)) = written {
        fs::write(directory.join(name), text).unwrap();
    }
    let mirror = f.reopen("binding");
    assert_eq!(mirror.tip().unwrap(), None);
    assert_eq!(fetch_from(&mirror, &f.origin.url(), "main").unwrap(), first);
}

/// Each fetch adds a pack. The objects of a forced push stay, because a run may still read them.
#[test]
fn many_packs_become_one() {
    let f = Fixture::new();
    let first = f.origin.commit(&[], &[("a/resource.txt", "first")]);
    f.origin.branch("main", &first);
    f.fetch();
    let tree = f.mirror.tree(&first).unwrap();
    let ended = AtomicBool::new(false);
    let mut revisions = vec![first.clone()];
    std::thread::scope(|scope| {
        let reading = scope.spawn(|| {
            while !ended.load(Ordering::Relaxed) {
                let fresh = f.mirror.tree(&first).unwrap();
                assert_eq!(fresh.read("a/resource.txt").unwrap().unwrap(), b"first");
            }
        });
        for number in 1..=60 {
            let text = number.to_string();
            let parent = if number % 2 == 0 { &first } else { revisions.last().unwrap() };
            let next = f.origin.commit(&[parent], &[("a/resource.txt", &text)]);
            f.origin.branch("main", &next);
            assert_eq!(f.fetch(), next);
            revisions.push(next);
        }
        ended.store(true, Ordering::Relaxed);
        reading.join().unwrap();
    });
    assert!(packs(&f, "pack").len() < 20, "{:?}", packs(&f, "pack"));
    assert_eq!(packs(&f, "idx").len(), packs(&f, "pack").len());
    assert_eq!(tree.read("a/resource.txt").unwrap().unwrap(), b"first");
    f.mirror.examine().unwrap();
    for mirror in [f.mirror.clone(), f.reopen("binding")] {
        for (number, revision) in revisions.iter().enumerate().skip(1) {
            let content = mirror.tree(revision).unwrap().read("a/resource.txt").unwrap();
            assert_eq!(content.unwrap(), number.to_string().as_bytes());
        }
    }
}

/// The objects of pins stay, and those of a tree in use.
#[test]
fn a_full_mirror_loses_what_forced_pushes_replaced() {
    let f = Fixture::new();
    let random = |seed| {
        let mut random = fastrand::Rng::with_seed(seed);
        std::iter::repeat_with(|| random.alphanumeric()).take(100 << 10).collect::<String>()
    };
    let remote =
        Remote::new(RemoteUrl::parse_local_allowed(&f.origin.url()).unwrap(), "main", RemoteAuth::None);
    let fetch = |seed| {
        let next = f.origin.commit(&[], &[("a/resource.txt", &random(seed))]);
        f.origin.branch("main", &next);
        let quota = Quota { mirror: 450 << 10, ..Quota::default() };
        let deadline = Instant::now() + Duration::from_mins(1);
        (f.mirror.fetch_within(&remote, &deadline.into(), quota), next)
    };
    let pinned = fetch(0).0.unwrap();
    f.mirror.pin("policy/base", &pinned).unwrap();
    for seed in 1..12 {
        let (fetched, next) = fetch(seed);
        assert_eq!(fetched.unwrap(), next);
    }
    let tree = f.mirror.tree(&f.mirror.tip().unwrap().unwrap()).unwrap();
    let failed = (12..20).find_map(|seed| fetch(seed).0.err()).unwrap();
    assert!(failed.to_string().contains("its mirror exceeds its limit of 450 KiB"), "{failed}");
    assert_eq!(tree.read("a/resource.txt").unwrap().unwrap(), random(11).as_bytes());
    drop(tree);
    assert!(fetch(20).0.is_ok());
    f.mirror.examine().unwrap();
    assert_eq!(
        f.mirror.tree(&pinned).unwrap().read("a/resource.txt").unwrap().unwrap(),
        random(0).as_bytes()
    );
    assert!(f.reopen("binding").tree(&pinned).is_ok());
}

/// Building a pack reads its objects as a whole, and a few bytes can be an object of any size.
#[test]
fn a_full_mirror_with_a_large_object_is_left_alone() {
    let f = Fixture::new();
    let remote =
        Remote::new(RemoteUrl::parse_local_allowed(&f.origin.url()).unwrap(), "main", RemoteAuth::None);
    let fetch = |file: &str, content: &str, limit| {
        let next = f.origin.commit(&[], &[(file, content)]);
        f.origin.branch("main", &next);
        let quota = Quota { mirror: limit, ..Quota::default() };
        f.mirror.fetch_within(&remote, &(Instant::now() + Duration::from_mins(1)).into(), quota)
    };
    fetch("a/resource.txt", &"x".repeat(33 << 20), u64::MAX).unwrap();
    let kept = packs(&f, "pack");
    let error = fetch("b/resource.txt", "b", 1 << 10).unwrap_err();
    assert!(error.to_string().contains("its mirror exceeds its limit"), "{error}");
    assert_eq!(packs(&f, "pack"), kept);
}

/// Building a pack reads its objects as a whole.
#[test]
fn packs_with_large_objects_stay() {
    let f = Fixture::new();
    let large = "x".repeat(2 << 20);
    let first = f.origin.commit(&[], &[("a/resource.txt", &large)]);
    f.origin.branch("main", &first);
    f.fetch();
    let [kept] = &packs(&f, "pack")[..] else { panic!("{:?}", packs(&f, "pack")) };
    assert!(fs::metadata(kept).unwrap().len() < 1 << 20, "its objects are compressed");
    let mut last = first;
    for number in 0..55 {
        last = f.origin.commit(&[&last], &[("b/resource.txt", &number.to_string())]);
        f.origin.branch("main", &last);
        f.fetch();
    }
    assert!(kept.exists() && packs(&f, "pack").len() < 20, "{:?}", packs(&f, "pack"));
    assert!(f.mirror.tree(&last).unwrap().read("b/resource.txt").unwrap().is_some());
}

/// Returns the pack files of the fixture's mirror that have this extension.
fn packs(f: &Fixture, extension: &str) -> Vec<std::path::PathBuf> {
    let files = files_in(&f.directory.path().join("mirror/git/objects/pack"), false).unwrap();
    files.into_iter().filter(|file| file.extension().is_some_and(|found| found == extension)).collect()
}

type Harm = fn(&Fixture);

#[rstest]
#[case::truncated_pack(|f: &Fixture| truncate(&packs(f, "pack")[0]))]
#[case::truncated_index(|f: &Fixture| truncate(&packs(f, "idx")[0]))]
#[case::overwritten(|f: &Fixture| overwrite(&packs(f, "pack")[0]))]
#[case::removed(|f: &Fixture| fs::remove_dir_all(f.directory.path().join("mirror/git")).unwrap())]
fn damage_to_an_open_mirror_is_an_error_until_it_is_recreated(#[case] harm: Harm) {
    let f = Fixture::new();
    // Larger than a page, so that a part can be beyond the end of the file.
    let files: Vec<_> = (0..400).map(|n| (format!("d/{n}/resource.json"), format!("{n:0600}"))).collect();
    let files: Vec<_> = files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    let first = f.origin.commit(&[], &files);
    f.origin.branch("main", &first);
    f.fetch();
    let tree = f.mirror.tree(&first).unwrap();
    tree.read("d/0/resource.json").unwrap();
    f.mirror.verify().unwrap();
    harm(&f);
    std::thread::sleep(Duration::from_millis(100));
    for (name, _) in &files {
        assert!(matches!(tree.read(name), Err(RepositoryError::Damaged { .. })), "{name}");
    }
    assert!(matches!(f.mirror.tree(&first), Err(RepositoryError::Damaged { .. })));
    assert!(matches!(f.fetch_branch("main"), Err(RepositoryError::Damaged { .. })));
    assert!(f.mirror.verify().is_err() && f.mirror.is_damaged());
    let reopened = Mirror::open_empty(&f.directory.path().join("mirror"), "binding").unwrap();
    assert_eq!(fetch_from(&reopened, &f.origin.url(), "main").unwrap(), first);
    reopened.verify().unwrap();
    assert!(!reopened.is_damaged());
}

#[test]
fn an_examination_finds_damage_from_before_the_mirror_was_opened() {
    let f = Fixture::new();
    let files: Vec<_> = (0..400).map(|n| (format!("d/{n}/resource.json"), format!("{n:0600}"))).collect();
    let files: Vec<_> = files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    let first = f.origin.commit(&[], &files);
    f.origin.branch("main", &first);
    f.fetch();
    f.mirror.examine().unwrap();
    overwrite(&packs(&f, "pack")[0]);
    let mirror = f.reopen("binding");
    if mirror.tip().unwrap().is_some() {
        assert!(matches!(mirror.examine(), Err(RepositoryError::Damaged { .. })));
        assert!(mirror.is_damaged());
    }
}

fn truncate(file: &Path) {
    let size = fs::metadata(file).unwrap().len();
    writable(file).set_len(size / 3).unwrap();
}

fn overwrite(file: &Path) {
    use std::os::unix::fs::FileExt as _;

    let size = fs::metadata(file).unwrap().len();
    writable(file).write_all_at(&vec![0x55; usize::try_from(size / 3).unwrap()], size / 3).unwrap();
}

/// Packs are read-only files.
fn writable(file: &Path) -> fs::File {
    use std::os::unix::fs::PermissionsExt as _;

    fs::set_permissions(file, fs::Permissions::from_mode(0o600)).unwrap();
    fs::File::options().write(true).open(file).unwrap()
}

#[test]
fn leftovers_of_a_killed_fetch_do_not_block_the_next() {
    let f = Fixture::new();
    f.origin.branch("main", &f.origin.commit(&[], &[("a", "")]));
    let first = f.fetch();
    let git = f.directory.path().join("mirror/git");
    for name in ["refs/declarest/tip.lock", "packed-refs.lock", "objects/pack/pack_git2_x1y2z3"] {
        fs::write(git.join(name), "").unwrap();
    }
    let second = f.origin.commit(&[&first], &[("a", "2")]);
    f.origin.branch("main", &second);
    let mirror = f.reopen("binding");
    assert_eq!(mirror.tip().unwrap(), Some(first));
    assert_eq!(fetch_from(&mirror, &f.origin.url(), "main").unwrap(), second);
    assert!(!git.join("objects/pack/pack_git2_x1y2z3").exists());
}

#[test]
fn other_files_beside_the_mirror_are_not_touched() {
    let f = Fixture::new();
    let foreign = f.directory.path().join("mirror/lost+found");
    fs::create_dir(&foreign).unwrap();
    f.reopen("other");
    assert!(foreign.exists());
}

#[test]
fn a_diff_distinguishes_kinds() {
    let f = Fixture::new();
    let before = [
        ("deleted", File::Text("1")),
        ("linked", File::Text("2")),
        ("mode", File::Text("3")),
        ("modified", File::Text("4")),
        ("moved", File::Text("5")),
        ("same", File::Text("6")),
        ("sub", File::Submodule),
    ];
    let after = [
        ("added/x", File::Text("0")),
        ("linked", File::Link("x")),
        ("mode", File::Executable("3")),
        ("modified", File::Text("44")),
        ("moved-away", File::Text("5")),
        ("same", File::Text("6")),
    ];
    let base = f.origin.commit_at(1, &[], &before);
    let target = f.origin.commit_at(2, &[&base], &after);
    f.origin.branch("main", &target);
    f.fetch();
    let changes = f.mirror.diff(&base, &target).unwrap();
    let seen: Vec<_> = changes.iter().map(|c| (c.path.as_str(), c.status, c.old, c.new)).collect();
    let (file, other) = (Some(EntryKind::File), Some(EntryKind::Other));
    let expected = [
        ("added/x", ChangeStatus::Added, None, file),
        ("deleted", ChangeStatus::Deleted, file, None),
        ("linked", ChangeStatus::TypeChanged, file, other),
        ("mode", ChangeStatus::ModeOnly, file, file),
        ("modified", ChangeStatus::Modified, file, file),
        ("moved", ChangeStatus::Deleted, file, None),
        ("moved-away", ChangeStatus::Added, None, file),
        ("sub", ChangeStatus::Deleted, other, None),
    ];
    assert_eq!(seen, expected);
    assert_eq!(f.mirror.diff(&target, &target).unwrap(), []);
}

#[test]
fn a_local_remote_may_be_shallow() {
    let f = Fixture::new();
    let first = f.origin.commit(&[], &[("a/resource.txt", "1"), ("b/resource.txt", "1")]);
    let second = f.origin.commit(&[&first], &[("a/resource.txt", "2"), ("b/resource.txt", "1")]);
    let third = f.origin.commit(&[&second], &[("a/resource.txt", "3")]);
    f.origin.branch("main", &third);
    let shallow = f.directory.path().join("shallow");
    let cloned = std::process::Command::new("git")
        .args(["clone", "--quiet", "--bare", "--depth=2", "--branch=main"])
        .args([f.origin.url().as_ref(), shallow.as_os_str()])
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .status();
    assert!(cloned.unwrap().success());
    let url = format!("file://{}", shallow.display());
    assert_eq!(fetch_from(&f.mirror, &url, "main").unwrap(), third);
    assert!(f.mirror.descends(&third, &second).unwrap());
    assert!(!f.mirror.descends(&third, &first).unwrap());
    let gone = f.mirror.undeclared(&[second], &third, &LogicalPath::root()).unwrap();
    assert_eq!(gone.len(), 1);
    assert_eq!(f.reopen("binding").tip().unwrap(), Some(third));
}

#[test]
fn a_silent_remote_fails_the_fetch_at_its_deadline() {
    let f = Fixture::new();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = RemoteUrl::parse(&format!("http://{}/a", listener.local_addr().unwrap())).unwrap();
    let remote = Remote::new(url, "main", RemoteAuth::None);
    let timed_out = f.mirror.fetch(&remote, Instant::now());
    assert!(matches!(timed_out, Err(RepositoryError::Timeout { .. })), "{timed_out:?}");
}

#[test]
fn a_fetch_from_a_silent_remote_ends_when_it_is_cancelled() {
    let f = Fixture::new();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = RemoteUrl::parse(&format!("http://{}/a", listener.local_addr().unwrap())).unwrap();
    let remote = Remote::new(url, "main", RemoteAuth::None);
    let cancelled = CancellationToken::new();
    let deadline = Deadline::new(Instant::now() + Duration::from_hours(1), cancelled.clone());
    let fetch = {
        let mirror = f.mirror.clone();
        std::thread::spawn(move || mirror.fetch_within(&remote, &deadline, Quota::default()))
    };
    let _connection = listener.accept().unwrap();
    cancelled.cancel();
    assert!(matches!(fetch.join().unwrap(), Err(RepositoryError::Timeout { .. })));
}

/// Another user may write to the volume of a mirror.
#[test]
fn a_mirror_that_others_can_write_is_not_trusted() {
    let f = Fixture::new();
    let first = f.origin.commit(&[], &[("a", "1")]);
    f.origin.branch("main", &first);
    f.fetch();
    let git = f.directory.path().join("mirror/git");
    let stolen = f.directory.path().join("stolen");
    fs::create_dir_all(&stolen).unwrap();
    fs::write(git.join("config"), "[core]\nbare = true\nworktree = /\n[include]\npath = /etc/gitconfig\n")
        .unwrap();
    fs::write(git.join("objects/info/alternates"), format!("{}\n", stolen.display())).unwrap();
    fs::create_dir_all(git.join("hooks")).unwrap();
    fs::write(git.join("hooks/post-update"), "#!/bin/sh\ntouch /tmp/owned\n").unwrap();
    let mirror = f.reopen("binding");
    assert_eq!(mirror.tip().unwrap(), Some(first), "the objects are used");
    assert_eq!(fs::read_to_string(git.join("config")).unwrap(), CONFIG);
    assert!(!git.join("objects/info/alternates").exists() && !git.join("hooks").exists());

    // A link to another repository: the mirror is fetched again.
    fs::rename(git.join("objects"), stolen.join("objects")).unwrap();
    std::os::unix::fs::symlink(stolen.join("objects"), git.join("objects")).unwrap();
    assert_eq!(f.reopen("binding").tip().unwrap(), None);
    assert!(stolen.join("objects").exists());
}
