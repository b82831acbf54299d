use std::path::Path;

use declarest_core::repository::{HistoryFilter, LoggedCommit, Worktree, WorktreeSettings};
use git2::{Index, IndexEntry, IndexTime, Oid, Repository, Signature, Time};
use rstest::rstest;
use tempfile::TempDir;

/// A checkout whose commits are made without files on disk.
struct Log {
    directory: TempDir,
    repository: Repository,
}

impl Log {
    fn new() -> Log {
        let directory = tempfile::tempdir().unwrap();
        open(directory.path());
        let repository = Repository::open(directory.path()).unwrap();
        Log { directory, repository }
    }

    /// Commits these files and contents on a branch, some seconds after 2001-09-09T01:46:40Z.
    fn commit(
        &self,
        branch: &str,
        parents: &[Oid],
        seconds: i64,
        author: &str,
        message: &str,
        files: &[(&str, &str)],
    ) -> Oid {
        let mut index = Index::new().unwrap();
        for (path, text) in files {
            let id = self.repository.blob(text.as_bytes()).unwrap();
            index.add(&entry(path, id)).unwrap();
        }
        let tree = index.write_tree_to(&self.repository).unwrap();
        let tree = self.repository.find_tree(tree).unwrap();
        // Written long before, by a clock elsewhere: the list goes by the time of the commit.
        let written = Time::new(900_000_000, 330);
        let author = Signature::new(author, &format!("{author}@corp.test").to_lowercase(), &written).unwrap();
        let time = Time::new(1_000_000_000 + seconds, 0);
        let committer = Signature::new("Committer", "committer@else.test", &time).unwrap();
        let parents: Vec<_> = parents.iter().map(|id| self.repository.find_commit(*id).unwrap()).collect();
        let parents: Vec<_> = parents.iter().collect();
        let branch = format!("refs/heads/{branch}");
        self.repository.commit(Some(&branch), &author, &committer, message, &tree, &parents).unwrap()
    }

    fn list(&self, filter: &HistoryFilter) -> Vec<LoggedCommit> {
        open(self.directory.path()).history(filter).unwrap()
    }
}

fn open(directory: &Path) -> Worktree {
    let settings = WorktreeSettings { directory: directory.to_owned(), auto_init: true, remote: None };
    Worktree::open(settings).unwrap()
}

fn entry(path: &str, id: Oid) -> IndexEntry {
    let time = IndexTime::new(0, 0);
    IndexEntry {
        ctime: time,
        mtime: time,
        dev: 0,
        ino: 0,
        mode: 0o100_644,
        uid: 0,
        gid: 0,
        file_size: 0,
        id,
        flags: 0,
        flags_extended: 0,
        path: path.into(),
    }
}

/// Five commits, `1` to `5` by time, and a merge, `6`, of the side branch with `4`.
fn sample() -> Log {
    let log = Log::new();
    let (rio, ava, beside) = ("shops/rio/resource.yaml", "shops/ava/resource.yaml", "shops-x/resource.yaml");
    let one = log.commit("main", &[], 1, "Ava", "1 declare Rio", &[(rio, "1")]);
    let message = "2 declare Ava\n\nBecause Rio asked.";
    let two = log.commit("main", &[one], 2, "Bo", message, &[(rio, "1"), (ava, "1")]);
    let three = log.commit("main", &[two], 3, "Ava", "3 change RIO", &[(rio, "2"), (ava, "1")]);
    let files = [(rio, "1"), (ava, "1"), (beside, "1")];
    log.repository.reference("refs/heads/side", two, false, "test").unwrap();
    let four = log.commit("side", &[two], 4, "Bo", "4 beside", &files);
    let five = log.commit("main", &[three], 5, "Cy", "5 remove Ava", &[(rio, "2")]);
    log.commit("main", &[five, four], 6, "Test", "6 merge", &[(rio, "2"), (beside, "1")]);
    log
}

fn numbers(commits: &[LoggedCommit]) -> String {
    commits.iter().map(|commit| &commit.subject[..1]).collect()
}

fn all() -> HistoryFilter {
    HistoryFilter::default()
}

fn paths(paths: &[&str]) -> HistoryFilter {
    HistoryFilter { paths: paths.iter().map(|path| (*path).to_owned()).collect(), ..all() }
}

#[rstest]
#[case::all(all(), "654321")]
#[case::author_name(HistoryFilter { author: Some("aVA".into()), ..all() }, "31")]
#[case::author_address(HistoryFilter { author: Some("y@CORP".into()), ..all() }, "5")]
#[case::author_across(HistoryFilter { author: Some("bo bo@".into()), ..all() }, "42")]
#[case::author_is_not_a_pattern(HistoryFilter { author: Some("a.a".into()), ..all() }, "")]
#[case::grep(HistoryFilter { grep: Some("rio".into()), ..all() }, "321")]
#[case::grep_in_the_body(HistoryFilter { grep: Some("BECAUSE".into()), ..all() }, "2")]
#[case::since(HistoryFilter { since: Some(1_000_000_004), ..all() }, "654")]
#[case::until(HistoryFilter { until: Some(1_000_000_002), ..all() }, "21")]
#[case::since_and_until(HistoryFilter { since: Some(1_000_000_002), until: Some(1_000_000_003), ..all() }, "32")]
#[case::directory(paths(&["shops/"]), "5321")]
#[case::beginning(paths(&["shops"]), "654321")]
#[case::beginning_of_a_file(paths(&["shops/rio/res"]), "31")]
#[case::with_slashes(paths(&["/shops/"]), "5321")]
#[case::file(paths(&["shops/rio/resource.yaml"]), "31")]
#[case::removed(paths(&["shops/ava"]), "52")]
#[case::any_of(paths(&["shops/ava", "shops-x"]), "542")]
#[case::beginning_of_two_directories(paths(&["shop"]), "654321")]
#[case::not_a_beginning(paths(&["ops"]), "")]
#[case::root(paths(&["/"]), "654321")]
#[case::max_count(HistoryFilter { max_count: Some(2), ..all() }, "65")]
#[case::max_count_after_filters(HistoryFilter { max_count: Some(1), author: Some("ava".into()), ..all() }, "3")]
#[case::max_count_zero(HistoryFilter { max_count: Some(0), ..all() }, "")]
#[case::reverse(HistoryFilter { reverse: true, ..all() }, "123456")]
#[case::reverse_after_max_count(HistoryFilter { reverse: true, max_count: Some(2), ..all() }, "56")]
#[case::everything(HistoryFilter { grep: Some("declare".into()), author: Some("ava".into()), ..paths(&["shops/"]) }, "1")]
fn filters(#[case] filter: HistoryFilter, #[case] expected: &str) {
    assert_eq!(numbers(&sample().list(&filter)), expected);
}

#[test]
fn a_commit_is_listed_in_full() {
    let log = Log::new();
    let message = "  declare Rio\nand Ava \n\n\nBecause.\n\nAnd so on.\n\n";
    let id = log.commit("main", &[], 7, "Ávila", message, &[]);
    let listed = log.list(&all());
    let [commit] = &listed[..] else { panic!("{listed:?}") };
    assert_eq!(commit.revision.as_str(), id.to_string());
    assert_eq!((commit.author.name.as_str(), commit.author.email.as_str()), ("Ávila", "ávila@corp.test"));
    assert_eq!((commit.author.at, commit.author.offset_minutes), (900_000_000, 330));
    assert_eq!(commit.committed_at, 1_000_000_007);
    assert_eq!(commit.subject, "declare Rio and Ava");
    assert_eq!(commit.body, "Because.\n\nAnd so on.");
}

#[test]
fn commits_of_one_second_are_in_their_order() {
    let log = Log::new();
    let mut last = Vec::new();
    for number in 1..=9 {
        last = vec![log.commit("main", &last, 1, "Ava", &number.to_string(), &[])];
    }
    assert_eq!(numbers(&log.list(&all())), "987654321");
}

#[test]
fn before_the_first_commit_there_is_no_history() {
    assert_eq!(Log::new().list(&all()), []);
}

#[test]
fn the_history_is_that_of_head() {
    let log = sample();
    log.repository.set_head("refs/heads/side").unwrap();
    assert_eq!(numbers(&log.list(&all())), "421");
}
