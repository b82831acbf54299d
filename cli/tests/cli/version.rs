use crate::environment::{Run, declarest, declarest_with};

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The build's own values replaced by what does not change from build to build.
fn masked(run: &Run) -> String {
    let commit = option_env!("DECLAREST_BUILD_COMMIT").unwrap_or("unknown");
    let date = option_env!("DECLAREST_BUILD_DATE").unwrap_or("unknown");
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
    invalid output format "xml"; use auto, text, json or yaml
    "#);
}
