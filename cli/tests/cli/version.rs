use std::path::Path;
use std::process::Command;

use rstest::rstest;

use crate::environment::{Run, declarest, declarest_with};
use crate::git::git;

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Replaces the values that differ in each build with fixed ones.
fn masked(run: &Run) -> String {
    let commit = env!("DECLAREST_BUILD_COMMIT");
    let date = env!("DECLAREST_BUILD_DATE");
    run.to_string().replacen(VERSION, "VERSION", 1).replacen(commit, "COMMIT", 1).replacen(date, "DATE", 1)
}

#[test]
fn text() {
    insta::assert_snapshot!(masked(&declarest(&["version", "-o", "text"])), @r#"
    exit 0
    --- stdout
    VERSION (COMMIT) DATE
    --- stderr
    "#);
}

#[rstest]
#[case::long("--version")]
#[case::short("-V")]
fn the_usual_flag(#[case] flag: &str) {
    let run = declarest(&[flag]);
    assert_eq!((run.code, run.stdout.starts_with(&format!("declarest {VERSION} ("))), (0, true), "{run}");
}

#[test]
fn json_when_piped() {
    insta::assert_snapshot!(masked(&declarest(&["version"])), @r#"
    exit 0
    --- stdout
    {
      "version": "VERSION",
      "commit": "COMMIT",
      "build_date": "DATE"
    }
    --- stderr
    "#);
}

#[test]
fn yaml_from_the_environment() {
    let run = declarest_with(&["version"], &[("DECLAREST_OUTPUT", " yaml ")]);
    let keys: Vec<_> = run.stdout.lines().filter_map(|line| Some(line.split_once(": ")?.0)).collect();
    assert_eq!((run.code, keys), (0, vec!["build_date", "commit", "version"]), "{run}");
}

#[test]
fn unknown_format() {
    insta::assert_snapshot!(declarest(&["version", "--output", "xml"]), @r#"
    exit 2
    --- stdout
    --- stderr
    invalid output format "xml"; use auto, text, json, yaml, wide, name, ndjson, jq=EXPRESSION or jsonpath=TEMPLATE
    "#);
}

/// The build script, run with these variables, in the form that cargo reads.
#[rstest]
#[case::unstamped(&[], "unknown", "unknown")]
#[case::given(&[("DECLAREST_BUILD_COMMIT", "0a1b2c3d4e5f"), ("DECLAREST_BUILD_DATE", "2026-01-31")], "0a1b2c3d4e5f", "2026-01-31")]
#[case::reproducible(&[("SOURCE_DATE_EPOCH", "1769817600")], "unknown", "2026-01-31")]
#[case::leap_day(&[("SOURCE_DATE_EPOCH", "1709251199")], "unknown", "2024-02-29")]
#[case::new_year(&[("SOURCE_DATE_EPOCH", "946684800")], "unknown", "2000-01-01")]
fn stamps(#[case] variables: &[(&str, &str)], #[case] commit: &str, #[case] date: &str) {
    let output = build_script(variables);
    assert!(output.contains(&format!("cargo:rustc-env=DECLAREST_BUILD_COMMIT={commit}\n")), "{output}");
    assert!(output.contains(&format!("cargo:rustc-env=DECLAREST_BUILD_DATE={date}\n")), "{output}");
}

#[test]
fn releases_are_stamped_from_git() {
    let output = build_script(&[("PROFILE", "release")]);
    let commit = git(Path::new(env!("CARGO_MANIFEST_DIR")), &["rev-parse", "--short=12", "HEAD"]);
    assert!(output.contains(&format!("DECLAREST_BUILD_COMMIT={commit}\n")), "{output}");
    let time = git(Path::new(env!("CARGO_MANIFEST_DIR")), &["log", "-1", "--format=%ct"]);
    let date = build_script(&[("SOURCE_DATE_EPOCH", &time)]);
    let date = date.lines().find(|line| line.contains("DECLAREST_BUILD_DATE=")).unwrap();
    assert!(output.lines().any(|line| line == date), "{output}");
}

/// The output of `build.rs`, which is compiled first.
fn build_script(variables: &[(&str, &str)]) -> String {
    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().join("build");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("build.rs");
    let compiled =
        Command::new("rustc").args(["--edition", "2024", "-o"]).arg(&program).arg(source).status().unwrap();
    assert!(compiled.success());
    let mut run = Command::new(program);
    run.current_dir(env!("CARGO_MANIFEST_DIR")).env_clear().env("PATH", std::env::var_os("PATH").unwrap());
    String::from_utf8(run.envs(variables.iter().copied()).output().unwrap().stdout).unwrap()
}
