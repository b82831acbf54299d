//! `--report` of the commands that check something.

use serde_json::Value;

use crate::environment::Home;
use crate::rest_server::Matcher;
use crate::world::World;

/// Two shops that are equal, one that differs, and one that the server does not have.
fn world() -> World {
    let world = World::new(
        &["/shops"],
        &[
            ("shops/oslo/resource.json", r#"{"id": "oslo"}"#),
            ("shops/rio/resource.json", r#"{"id": "rio", "tier": "gold"}"#),
            ("shops/new/resource.json", r#"{"id": "new"}"#),
        ],
    );
    world.live("/shops/oslo", r#"{"id": "oslo"}"#);
    world.live("/shops/rio", r#"{"id": "rio", "tier": "free"}"#);
    world
}

fn sarif(home: &Home) -> Vec<(String, String, String)> {
    let log: Value = serde_json::from_str(&home.read("out.sarif")).unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let results = log["runs"][0]["results"].as_array().unwrap().iter();
    let place = "/locations/0/physicalLocation/artifactLocation/uri";
    results
        .map(|result| (text(&result["ruleId"]), text(&result["level"]), text(result.pointer(place).unwrap())))
        .collect()
}

/// A report that cannot be written hides no failure.
#[test]
fn a_failed_report() {
    let world = world();
    world.server.fail(Matcher::method("PUT"), 501, 9);
    let run = world.run(&["resource", "apply", "/shops/rio", "--report", "junit=/nonexistent/out.xml"]);
    assert_eq!(run.code, 6, "{run}");
    assert!(run.stderr.contains("PUT /shops/rio") && run.stderr.contains("/nonexistent/out.xml"), "{run}");
    world.server.clear_failures();
    for command in [&["diff", "/shops"][..], &["apply", "/shops"], &["apply", "/shops", "--dry-run"]] {
        let run = world.run(&[&["resource"], command, &["--report", "junit=/nonexistent/out.xml"]].concat());
        assert_eq!(run.code, 1, "{run}");
        assert!(run.stderr.contains("/nonexistent/out.xml"), "{run}");
    }
    assert_eq!(world.run(&["resource", "diff", "/shops", "--exit-code"]).code, 0, "it was applied");
}

#[test]
fn a_comparison() {
    let world = world();
    let reports = ["--report", "junit=<home>/out.xml", "--report", "sarif=<home>/out.sarif"];
    let plain = world.run(&["resource", "diff", "/shops"]);
    let run = world.run(&[&["resource", "diff", "/shops"][..], &reports].concat());
    assert_eq!((run.code, &run.stdout, &run.stderr), (0, &plain.stdout, &plain.stderr));
    insta::assert_snapshot!(world.home.read("out.xml"), @r#"
    <?xml version="1.0" encoding="UTF-8"?>
    <testsuites name="declarest" tests="3" failures="2" errors="0" skipped="0">
      <testsuite name="declarest diff" tests="3" failures="2" errors="0" skipped="0">
        <testcase classname="declarest.diff" name="/shops/new" file="shops/new/resource.json">
          <failure type="drift" message="/shops/new differs on the server">/shops/new differs on the server
    replace the whole resource</failure>
        </testcase>
        <testcase classname="declarest.diff" name="/shops/oslo" file="shops/oslo/resource.json"/>
        <testcase classname="declarest.diff" name="/shops/rio" file="shops/rio/resource.json">
          <failure type="drift" message="/shops/rio differs on the server">/shops/rio differs on the server
    replace /tier</failure>
        </testcase>
      </testsuite>
    </testsuites>
    "#);
    let drift = |file: &str| ("drift".to_owned(), "warning".to_owned(), file.to_owned());
    assert_eq!(sarif(&world.home), [drift("shops/new/resource.json"), drift("shops/rio/resource.json")]);
    let run = world.run(&["resource", "diff", "/shops", "--report", "github", "--list"]);
    assert_eq!(run.stdout, "/shops/new\n/shops/rio\n");
    insta::assert_snapshot!(run.stderr, @r"
    ::warning file=shops/new/resource.json,title=declarest drift::/shops/new differs on the server%0Areplace the whole resource
    ::warning file=shops/rio/resource.json,title=declarest drift::/shops/rio differs on the server%0Areplace /tier
    ");
}

#[test]
fn a_plan() {
    let world = world();
    let run = world.run(&["plan", "/shops", "--report", "github", "--report", "junit=<home>/out.xml"]);
    assert_eq!(run.code, 0, "{run}");
    insta::assert_snapshot!(run, @r#"
    exit 0
    --- stdout
    + /shops/new
    ~ /shops/rio
        /tier: "free" -> "gold"
    Plan: 1 to create, 1 to update, 0 to delete, 1 unchanged.
    --- stderr
    ::warning file=shops/new/resource.json,title=declarest change::/shops/new: would be created
    ::warning file=shops/rio/resource.json,title=declarest change::/shops/rio: would be updated%0A/tier: "free" -> "gold"
    "#);
    insta::assert_snapshot!(world.home.read("out.xml"), @r#"
    <?xml version="1.0" encoding="UTF-8"?>
    <testsuites name="declarest" tests="3" failures="2" errors="0" skipped="0">
      <testsuite name="declarest plan" tests="3" failures="2" errors="0" skipped="0">
        <testcase classname="declarest.plan" name="/shops/new" file="shops/new/resource.json">
          <failure type="change" message="/shops/new: would be created">/shops/new: would be created</failure>
        </testcase>
        <testcase classname="declarest.plan" name="/shops/oslo" file="shops/oslo/resource.json"/>
        <testcase classname="declarest.plan" name="/shops/rio" file="shops/rio/resource.json">
          <failure type="change" message="/shops/rio: would be updated">/shops/rio: would be updated
    /tier: &quot;free&quot; -&gt; &quot;gold&quot;</failure>
        </testcase>
      </testsuite>
    </testsuites>
    "#);
}

#[test]
fn an_apply_with_failures() {
    let world = world();
    world.declare("shops/bad/resource.json", "{");
    let run =
        world.run(&["resource", "apply", "/shops", "--report", "junit=<home>/out.xml", "--report", "github"]);
    assert_eq!(run.code, 2, "{run}");
    insta::assert_snapshot!(run, @r#"
    exit 2
    --- stdout
    --- stderr
    + /shops/new created
    ~ /shops/rio updated
    Applied: 1 created, 1 updated, 0 deleted, 1 unchanged, 1 failed.
    ::error file=shops/bad/resource.json,title=declarest failure::"shops/bad/resource.json": cannot decode json, line 1, column 1: EOF while parsing an object
    /shops/bad: "shops/bad/resource.json": cannot decode json, line 1, column 1: EOF while parsing an object
    [ERROR] command execution failed: 1 of 4 resources failed.
    "#);
    insta::assert_snapshot!(world.home.read("out.xml"), @r#"
    <?xml version="1.0" encoding="UTF-8"?>
    <testsuites name="declarest" tests="4" failures="0" errors="1" skipped="0">
      <testsuite name="declarest apply" tests="4" failures="0" errors="1" skipped="0">
        <testcase classname="declarest.apply" name="/shops/bad" file="shops/bad/resource.json">
          <error type="failure" message="&quot;shops/bad/resource.json&quot;: cannot decode json, line 1, column 1: EOF while parsing an object">&quot;shops/bad/resource.json&quot;: cannot decode json, line 1, column 1: EOF while parsing an object</error>
        </testcase>
        <testcase classname="declarest.apply" name="/shops/new" file="shops/new/resource.json"/>
        <testcase classname="declarest.apply" name="/shops/oslo" file="shops/oslo/resource.json"/>
        <testcase classname="declarest.apply" name="/shops/rio" file="shops/rio/resource.json"/>
      </testsuite>
    </testsuites>
    "#);
}

#[test]
fn the_check_of_a_context() {
    let mut world = world();
    world.server.stop();
    let run = world.run(&["context", "check", "--report", "junit=<home>/out.xml", "--report", "github"]);
    assert_eq!(run.code, 2, "{run}");
    let (error, rest) = run.stderr.split_once('\n').unwrap();
    assert!(error.starts_with("::error title=declarest component::managedServer: "), "{run}");
    assert!(rest.contains("failed the check of managedServer"), "{run}");
    let report = world.home.read("out.xml");
    assert!(report.contains("tests=\"5\" failures=\"0\" errors=\"1\" skipped=\"1\""), "{report}");
    assert!(
        report.contains("name=\"secretStore\">\n      <skipped message=\"secretStore: not configured\"/>"),
        "{report}"
    );
}

#[test]
fn a_validation() {
    let home = Home::new();
    home.write("repo/a/resource.json", "{\n  \"id\": ,\n}");
    let run = home.run(&["validate", "--dir", "repo", "--report", "junit=<home>/out.xml"]);
    assert_eq!(run.code, 2, "{run}");
    insta::assert_snapshot!(home.read("out.xml"), @r#"
    <?xml version="1.0" encoding="UTF-8"?>
    <testsuites name="declarest" tests="1" failures="0" errors="1" skipped="0">
      <testsuite name="declarest validate" tests="1" failures="0" errors="1" skipped="0">
        <testcase classname="declarest.validate" name="/a" file="repo/a/resource.json" line="2">
          <error type="payload" message="&quot;a/resource.json&quot;: cannot decode json, line 2, column 9: expected a value: an object, an array, text in quotes, a number, true, false or null">&quot;a/resource.json&quot;: cannot decode json, line 2, column 9: expected a value: an object, an array, text in quotes, a number, true, false or null
    hint: correct the file; its extension determines the format</error>
        </testcase>
      </testsuite>
    </testsuites>
    "#);
}

#[test]
fn a_report_that_cannot_be_written_or_is_not_known_fails() {
    let world = world();
    let run = world.run(&["resource", "diff", "/shops", "--report", "junit=<home>/absent/out.xml"]);
    assert_eq!(run.code, 1, "{run}");
    assert!(run.stderr.contains("cannot write <home>/absent/out.xml"), "{run}");
    for command in [&["plan", "/shops"][..], &["resource", "apply", "/shops"], &["context", "check"]] {
        let run = world.run(&[command, &["--report", "html"]].concat());
        assert_eq!((run.code, world.writes().len()), (2, 0), "{run}");
        assert!(run.stderr.contains("use junit=FILE, sarif=FILE or github"), "{run}");
    }
}
