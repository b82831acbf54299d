//! Tests of commits and pushes of changes, with real Git repositories.

use std::fs;
use std::path::PathBuf;

use git2::Repository as Git;
use rstest::rstest;

use super::*;
use crate::environment::Environment;
use crate::settings::GlobalFlags;

/// A home directory with a context, whose repository is `work` and whose remote is `origin.git`.
struct Home {
    directory: tempfile::TempDir,
    invocation: Invocation,
}

const FILESYSTEM: &str = "filesystem: {baseDir: <home>/work}";
const LOCAL: &str = "git: {local: {baseDir: <home>/work}}";
const SYNCED: &str = "git: {local: {baseDir: <home>/work}, remote: {url: 'file://<home>/origin.git'}}";
const NOT_SYNCED: &str =
    "git: {local: {baseDir: <home>/work}, remote: {url: 'file://<home>/origin.git', autoSync: false}}";

impl Home {
    fn new(repository: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let home = directory.path().to_str().unwrap();
        let catalogue = format!(
            "currentContext: dev\ncontexts: [{{name: dev, repository: {{{repository}}}, managedServer: \
                     {{http: {{url: 'https://api.test', auth: {{customHeaders: [{{header: K, value: v}}]}}}}}}}}]"
        );
        let file = directory.path().join("contexts.yaml");
        fs::write(&file, catalogue.replace("<home>", home)).unwrap();
        let environment =
            Environment::from_iter([("HOME", home), ("DECLAREST_CONTEXTS_FILE", file.to_str().unwrap())]);
        fs::create_dir(directory.path().join("work")).unwrap();
        Git::init_bare(directory.path().join("origin.git")).unwrap();
        let invocation = Invocation::new(
            clap::Command::new("declarest"),
            Vec::new(),
            &GlobalFlags::default(),
            environment,
        );
        Self { directory, invocation }
    }

    fn path(&self, file: &str) -> PathBuf {
        self.directory.path().join(file)
    }

    fn write(&self, file: &str, content: &str) {
        fs::write(self.path("work").join(file), content).unwrap();
    }

    fn begin(&self, message: Option<&str>, push: Push) -> Result<Authoring<'_>, Failure> {
        let message = MessageArgument { message: message.map(str::to_owned) };
        Authoring::begin(&self.invocation, &message, "declarest: save resource /a".to_owned(), push)
    }

    /// Writes a file like a command.
    fn change(&self, file: &str, content: &str, push: Push) -> Result<Option<Revision>, Failure> {
        let authoring = self.begin(None, push)?;
        self.write(file, content);
        authoring.finish()
    }

    fn message(&self) -> String {
        let git = Git::open(self.path("work")).unwrap();
        let commit = git.head().unwrap().peel_to_commit().unwrap();
        format!("{} {}", commit.author(), commit.message().unwrap())
    }

    /// Returns the commit of the remote.
    fn pushed(&self) -> Option<String> {
        let git = Git::open_bare(self.path("origin.git")).unwrap();
        git.find_reference("refs/heads/main").ok().map(|found| found.target().unwrap().to_string())
    }
}

#[rstest]
#[case(None, "declarest: save resource /a")]
#[case(Some("because"), "because")]
fn a_change_is_one_commit(#[case] message: Option<&str>, #[case] expected: &str) {
    let home = Home::new(LOCAL);
    let authoring = home.begin(message, Push::Configured).unwrap();
    home.write("a", "1");
    let revision = authoring.finish().unwrap();
    assert_eq!(home.message(), format!("declarest <declarest@local> {expected}"));
    let head = Git::open(home.path("work")).unwrap().head().unwrap().target().unwrap().to_string();
    assert_eq!(revision.unwrap().as_str(), head);
    assert_eq!(home.change("a", "1", Push::Configured).unwrap(), None);
}

#[rstest]
#[case(FILESYSTEM)]
#[case(LOCAL)]
fn a_blank_message_is_rejected(#[case] repository: &str) {
    let home = Home::new(repository);
    let failure = home.begin(Some(" \n"), Push::Configured).err().unwrap();
    assert_eq!(failure.category().exit_code(), 2);
    assert_eq!(failure.message(), "--message is blank; write a commit message");
}

#[test]
fn a_filesystem_repository_is_not_committed() {
    let home = Home::new(FILESYSTEM);
    assert_eq!(home.change("a", "1", Push::Configured).unwrap(), None);
    assert_eq!(home.change("a", "2", Push::Never).unwrap(), None);
    assert!(!home.path("work/.git").exists());
}

#[test]
fn a_change_needs_a_clean_worktree() {
    let home = Home::new(LOCAL);
    // Before the first commit, metadata becomes part of it.
    home.write("metadata.json", "{}");
    home.write("old", "1");
    let failure = home.begin(None, Push::Configured).err().unwrap();
    assert_eq!(failure.category().exit_code(), 2);
    assert!(failure.message().contains("has no commit yet"), "{}", failure.message());
    assert!(failure.message().contains("(old)"), "{}", failure.message());
    fs::remove_file(home.path("work/old")).unwrap();
    assert!(home.change("a", "1", Push::Configured).unwrap().is_some());
    home.write("old", "2");
    home.write("metadata.yaml", "");
    let failure = home.begin(None, Push::Configured).err().unwrap();
    assert_eq!(failure.category().exit_code(), 2);
    assert!(failure.message().starts_with("a clean git worktree is needed"), "{}", failure.message());
    assert!(failure.message().contains("(metadata.yaml, old)"), "{}", failure.message());
}

#[test]
fn the_clean_check_does_not_contact_the_remote() {
    let home = Home::new(SYNCED);
    fs::remove_dir_all(home.path("origin.git")).unwrap();
    assert!(home.change("a", "1", Push::Never).unwrap().is_some());
    assert!(home.begin(None, Push::Configured).is_ok());
}

#[rstest]
#[case(SYNCED, Push::Configured, true)]
#[case(SYNCED, Push::Always, true)]
#[case(SYNCED, Push::Never, false)]
#[case(NOT_SYNCED, Push::Configured, false)]
#[case(NOT_SYNCED, Push::Always, true)]
#[case(NOT_SYNCED, Push::Never, false)]
fn commits_are_pushed_as_configured(#[case] repository: &str, #[case] push: Push, #[case] expected: bool) {
    let home = Home::new(repository);
    let revision = home.change("a", "1", push).unwrap().unwrap();
    assert_eq!(home.pushed(), expected.then(|| revision.to_string()));
}

#[rstest]
#[case(FILESYSTEM, "--push needs a Git repository")]
#[case(LOCAL, "--push needs a remote")]
fn an_impossible_push_is_rejected_before_anything_is_written(
    #[case] repository: &str,
    #[case] message: &str,
) {
    let home = Home::new(repository);
    let failure = home.begin(None, Push::Always).err().unwrap();
    assert_eq!(failure.category().exit_code(), 2);
    assert!(failure.message().starts_with(message), "{}", failure.message());
    assert!(!home.path("work/.git").exists());
}

#[test]
fn a_failed_push_keeps_the_commit_and_the_next_change_pushes_it() {
    let home = Home::new(SYNCED);
    fs::rename(home.path("origin.git"), home.path("away.git")).unwrap();
    let failure = home.change("a", "1", Push::Configured).unwrap_err();
    assert_eq!(failure.category().exit_code(), 3, "{}", failure.message());
    assert!(failure.message().contains(" is committed, but could not be pushed: "), "{}", failure.message());
    assert_eq!(home.message(), "declarest <declarest@local> declarest: save resource /a");
    fs::rename(home.path("away.git"), home.path("origin.git")).unwrap();
    // Nothing new to commit.
    assert_eq!(home.change("a", "1", Push::Configured).unwrap(), None);
    assert!(home.pushed().is_some());
    // The remote is known to be up to date and is not contacted.
    fs::remove_dir_all(home.path("origin.git")).unwrap();
    assert_eq!(home.change("a", "1", Push::Configured).unwrap(), None);
    assert!(home.change("a", "1", Push::Always).is_err());
}
