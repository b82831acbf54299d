use declarest_core::repository::{HistoryFilter, LoggedCommit};
use rstest::rstest;

use crate::checkout::Checkout;
use crate::git_remote::{git_command, output};

/// Commits as somebody, some seconds after 2001-09-09T01:46:40Z.
fn commit(checkout: &Checkout, seconds: i64, author: &str, message: &str) {
    let at = 1_000_000_000 + seconds;
    let mut command = git_command(&checkout.path());
    command
        .args(["commit", "--quiet", "--allow-empty", "--cleanup=verbatim", "--author", author, "-m", message])
        // Written long before, by a clock elsewhere: the list goes by the time of the commit.
        .env("GIT_AUTHOR_DATE", "900000000 +0530")
        .env("GIT_COMMITTER_DATE", format!("{at} +0000"));
    assert!(output(&mut command).status.success());
}

fn add(checkout: &Checkout, file: &str, text: &str) {
    checkout.write(file, text);
    checkout.git(&["add", "--all"]);
}

/// Five commits, `1` to `5` by time, and a merge, `6`, of the side branch with `4`.
fn sample() -> Checkout {
    let checkout = Checkout::new();
    checkout.worktree();
    add(&checkout, "shops/rio/resource.yaml", "1");
    commit(&checkout, 1, "Ava <ava@corp.test>", "1 declare Rio");
    add(&checkout, "shops/ava/resource.yaml", "1");
    commit(&checkout, 2, "Bo <bo@corp.test>", "2 declare Ava\n\nBecause Rio asked.");
    checkout.git(&["branch", "side"]);
    add(&checkout, "shops/rio/resource.yaml", "2");
    commit(&checkout, 3, "Ava <ava@corp.test>", "3 change RIO");
    checkout.git(&["checkout", "--quiet", "side"]);
    add(&checkout, "shops-x/resource.yaml", "1");
    commit(&checkout, 4, "Bo <bo@corp.test>", "4 beside");
    checkout.git(&["checkout", "--quiet", "main"]);
    checkout.remove("shops/ava/resource.yaml");
    checkout.git(&["add", "--all"]);
    commit(&checkout, 5, "Cy <cy@else.test>", "5 remove Ava");
    let mut merge = git_command(&checkout.path());
    merge.args(["merge", "--quiet", "--no-ff", "-m", "6 merge", "side"]);
    assert!(output(merge.env("GIT_COMMITTER_DATE", "1000000006 +0000")).status.success());
    checkout
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
#[case::author_address(HistoryFilter { author: Some("@CORP".into()), ..all() }, "4321")]
#[case::author_across(HistoryFilter { author: Some("bo bo@".into()), ..all() }, "42")]
#[case::author_is_not_a_pattern(HistoryFilter { author: Some("a.a".into()), ..all() }, "")]
#[case::grep(HistoryFilter { grep: Some("rio".into()), ..all() }, "321")]
#[case::grep_in_the_body(HistoryFilter { grep: Some("BECAUSE".into()), ..all() }, "2")]
#[case::since(HistoryFilter { since: Some(1_000_000_004), ..all() }, "654")]
#[case::until(HistoryFilter { until: Some(1_000_000_002), ..all() }, "21")]
#[case::since_and_until(HistoryFilter { since: Some(1_000_000_002), until: Some(1_000_000_003), ..all() }, "32")]
#[case::directory(paths(&["shops"]), "5321")]
#[case::with_slashes(paths(&["/shops/"]), "5321")]
#[case::file(paths(&["shops/rio/resource.yaml"]), "31")]
#[case::removed(paths(&["shops/ava"]), "52")]
#[case::any_of(paths(&["shops/ava", "shops-x"]), "542")]
#[case::whole_segments(paths(&["shop"]), "")]
#[case::root(paths(&["/"]), "654321")]
#[case::max_count(HistoryFilter { max_count: Some(2), ..all() }, "65")]
#[case::max_count_after_filters(HistoryFilter { max_count: Some(1), author: Some("ava".into()), ..all() }, "3")]
#[case::max_count_zero(HistoryFilter { max_count: Some(0), ..all() }, "")]
#[case::reverse(HistoryFilter { reverse: true, ..all() }, "123456")]
#[case::reverse_after_max_count(HistoryFilter { reverse: true, max_count: Some(2), ..all() }, "56")]
#[case::everything(HistoryFilter { grep: Some("declare".into()), author: Some("ava".into()), ..paths(&["shops"]) }, "1")]
fn filters(#[case] filter: HistoryFilter, #[case] expected: &str) {
    let checkout = sample();
    assert_eq!(numbers(&checkout.worktree().history(&filter).unwrap()), expected);
}

#[test]
fn a_commit_is_listed_in_full() {
    let checkout = Checkout::new();
    checkout.worktree();
    let message = "  declare Rio\nand Ava \n\n\nBecause.\n\nAnd so on.\n\n";
    commit(&checkout, 7, "Ávila <avila@corp.test>", message);
    let listed = checkout.worktree().history(&all()).unwrap();
    let [commit] = &listed[..] else { panic!("{listed:?}") };
    assert_eq!(commit.revision.as_str(), checkout.git(&["rev-parse", "HEAD"]));
    assert_eq!((commit.author.name.as_str(), commit.author.email.as_str()), ("Ávila", "avila@corp.test"));
    assert_eq!((commit.author.at, commit.author.offset_minutes), (900_000_000, 330));
    assert_eq!(commit.committed_at, 1_000_000_007);
    assert_eq!(
        (commit.subject.as_str(), commit.body.as_str()),
        ("declare Rio and Ava", "Because.\n\nAnd so on.")
    );
}

#[test]
fn before_the_first_commit_there_is_no_history() {
    assert_eq!(Checkout::new().worktree().history(&all()).unwrap(), []);
}

#[test]
fn the_history_is_that_of_head() {
    let checkout = sample();
    checkout.git(&["checkout", "--quiet", "side"]);
    assert_eq!(numbers(&checkout.worktree().history(&all()).unwrap()), "421");
}
