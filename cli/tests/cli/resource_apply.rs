//! `resource apply`, `create` and `update`.

use rstest::rstest;
use serde_json::json;

use crate::rest_server::Matcher;
use crate::world::World;

fn shops() -> World {
    let world = World::new(
        &["/shops", "/shops/*/tills"],
        &[
            ("shops/rio/resource.yaml", "id: rio\ntier: gold\n"),
            ("shops/lima/resource.json", r#"{"id": "lima"}"#),
            ("shops/oslo/resource.json", r#"{"id": "oslo"}"#),
            ("shops/oslo/tills/t1/resource.json", r#"{"id": "t1"}"#),
        ],
    );
    world.live("/shops/rio", r#"{"id": "rio", "tier": "free"}"#);
    world.live("/shops/lima", r#"{"id": "lima"}"#);
    world
}

#[rstest]
#[case::children(&["/shops"], &["POST /shops", "PUT /shops/rio"])]
#[case::everything(&["/shops", "-r"], &["POST /shops", "POST /shops/oslo/tills", "PUT /shops/rio"])]
#[case::one(&["/shops/rio"], &["PUT /shops/rio"])]
#[case::one_by_flag(&["--path", "/shops/rio/"], &["PUT /shops/rio"])]
#[case::itself_and_below(&["/shops/oslo", "-r"], &["POST /shops", "POST /shops/oslo/tills"])]
#[case::equal(&["/shops/lima"], &[])]
#[case::equal_by_force(&["/shops/lima", "--force"], &["PUT /shops/lima"])]
fn targets(#[case] args: &[&str], #[case] writes: &[&str]) {
    let world = shops();
    let run = world.run(&[&["resource", "apply"], args].concat());
    assert_eq!((run.code, run.stdout.as_str()), (0, ""), "{run}");
    assert!(run.stderr.ends_with("[OK] command executed successfully.\n"), "{run}");
    let changed = run.stderr.lines().filter(|line| line.starts_with(['+', '~'])).count();
    assert_eq!(changed, writes.len(), "{run}");
    let mut sent = world.writes();
    sent.sort();
    assert_eq!(sent, writes);
}

#[test]
fn parents_come_first() {
    let world = shops();
    assert_eq!(world.run(&["resource", "apply", "/shops/oslo", "-r"]).code, 0);
    assert_eq!(world.writes(), ["POST /shops", "POST /shops/oslo/tills"]);
}

#[test]
fn nothing_declared() {
    insta::assert_snapshot!(shops().run(&["resource", "apply", "/none"]), @r#"
    exit 3
    --- stdout
    --- stderr
    [ERROR] command execution failed: no local resources found under "/none".
    "#);
}

#[test]
fn no_path() {
    let run = shops().run(&["resource", "apply"]);
    assert!(run.stderr.starts_with("Usage: declarest resource apply"), "{run}");
    assert!(run.stderr.contains("path is required"), "{run}");
    assert_eq!(run.code, 2);
}

#[test]
fn rejected_credentials_are_reported_although_other_requests_need_none() {
    let world = shops();
    world.server.fail(Matcher::new("PUT", "/shops/rio"), 401, 9);
    let run = world.run(&["resource", "apply", "/shops"]);
    let hint = "the server rejects the credentials of context \"dev\"; the requests that it accepted may not need any";
    assert!(run.code == 4 && run.stderr.contains(hint), "{run}");
}

#[test]
fn a_failing_target_does_not_stop_the_others() {
    let world = shops();
    world.server.fail(Matcher::new("PUT", "/shops/rio"), 403, 9);
    world.declare("shops/zoe/resource.json", "{");
    insta::assert_snapshot!(world.run(&["resource", "apply", "/shops"]), @r#"
    exit 4
    --- stdout
    --- stderr
    + /shops/oslo created
    Applied: 1 created, 0 updated, 0 deleted, 1 unchanged, 2 failed.
    PUT /shops/rio: remote request failed with status 403: {"error":"injected failure"}
    /shops/zoe: "shops/zoe/resource.json": cannot decode json, line 1, column 1: EOF while parsing an object
    hint: the server accepted other requests of context "dev"; its credentials may lack a right for this one
    [ERROR] command execution failed: 2 of 4 resources failed.
    "#);
    assert!(world.observed("/shops/oslo").is_some());
}

#[test]
fn the_first_failure_may_end_the_run() {
    let world = shops();
    // A till of a shop that exists, so it does not depend on the update of the shop, but comes after it.
    world.declare("shops/rio/tills/t2/resource.json", r#"{"id": "t2"}"#);
    world.server.fail(Matcher::new("PUT", "/shops/rio"), 422, 9);
    insta::assert_snapshot!(world.run(&["resource", "apply", "/shops/rio", "-r", "--fail-fast"]), @r#"
    exit 2
    --- stdout
    --- stderr
    Applied: 0 created, 0 updated, 0 deleted, 0 unchanged, 1 failed, 1 not attempted.
    PUT /shops/rio: remote request failed with status 422: {"error":"injected failure"}
    /shops/rio/tills/t2: not attempted: another resource failed (--fail-fast)
    [ERROR] command execution failed: 2 of 2 resources failed.
    "#);
    assert!(world.observed("/shops/rio/tills/t2").is_none());
    let others = world.run(&["resource", "apply", "/shops/rio", "-r"]);
    assert!(others.stderr.contains("+ /shops/rio/tills/t2 created"), "{others}");
    // A file that cannot be read prevents all writes.
    world.declare("shops/zoe/resource.json", "{");
    let run = world.run(&["resource", "apply", "/shops", "--fail-fast"]);
    assert_eq!(run.code, 2, "{run}");
    assert!(world.observed("/shops/oslo").is_none());
}

#[rstest]
#[case("1")]
#[case("3")]
fn nothing_is_sent_after_the_first_failure(#[case] parallel: &str) {
    let names: Vec<String> = (10..40).map(|number| format!("s{number}")).collect();
    let files: Vec<(String, String)> = names
        .iter()
        .map(|name| (format!("shops/{name}/resource.json"), format!(r#"{{"id": "{name}"}}"#)))
        .collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(file, text)| (file.as_str(), text.as_str())).collect();
    let world = World::new(&["/shops"], &files);
    world.server.fail(Matcher::new("POST", "/shops"), 422, 99);
    let run = world.run(&["resource", "apply", "/shops", "--fail-fast", "--parallel", parallel]);
    assert_eq!(run.code, 2, "{run}");
    let sent = world.server.log().iter().filter(|request| request.method == "POST").count();
    // Those that were in flight when the first one failed.
    assert!((1..=parallel.parse().unwrap()).contains(&sent), "{sent} requests: {run}");
    assert!(run.stderr.contains("not attempted: another resource failed (--fail-fast)"), "{run}");
}

#[test]
fn the_first_failed_comparison_ends_the_comparisons() {
    let files: Vec<(String, String)> =
        (10..40).map(|number| (format!("s{number}/a/resource.json"), r#"{"id": "a"}"#.to_owned())).collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(file, text)| (file.as_str(), text.as_str())).collect();
    let world = World::new(&[], &files);
    for number in 10..40 {
        world.server.fail(Matcher::new("GET", &format!("/s{number}/a")), 422, 99);
    }
    let run = world.run(&["resource", "apply", "/", "-r", "--fail-fast", "--parallel", "1"]);
    // Another read may start while the first answer is evaluated.
    let reads = world.server.log().len();
    assert!(run.code == 2 && reads <= 2, "{reads} requests: {run}");
}

#[test]
fn one_failure_is_the_failure_of_the_command() {
    let world = shops();
    world.server.fail(Matcher::new("PUT", "/shops/rio"), 400, 9);
    insta::assert_snapshot!(world.run(&["resource", "apply", "/shops/rio"]), @r#"
    exit 2
    --- stdout
    --- stderr
    [ERROR] command execution failed: PUT /shops/rio: remote request failed with status 400: {"error":"injected failure"}.
    "#);
}

#[rstest]
#[case(401, 4)]
#[case(404, 3)]
#[case(409, 5)]
#[case(422, 2)]
fn exit_codes(#[case] status: u16, #[case] code: i32) {
    let world = shops();
    world.server.fail(Matcher::method("PUT"), status, 9);
    assert_eq!(world.run(&["resource", "update", "/shops/rio"]).code, code);
}

#[test]
fn a_create_that_meets_a_conflict_becomes_an_update() {
    let world = shops();
    // The server answers 404 until a client creates it.
    world.live("/shops/oslo", r#"{"id": "oslo", "old": true}"#);
    world.server.fail(Matcher::new("GET", "/shops/oslo"), 404, 9);
    world.server.fail(Matcher::new("GET", "/shops"), 404, 9);
    assert_eq!(world.run(&["resource", "apply", "/shops/oslo"]).code, 0);
    assert_eq!(world.writes(), ["POST /shops", "PUT /shops/oslo"]);
    assert_eq!(world.observed("/shops/oslo"), Some(json!({"id": "oslo"})));
}

#[rstest]
#[case("create", "/shops/oslo", 0, &["POST /shops"])]
#[case("create", "/shops/lima", 5, &[])]
#[case("update", "/shops/lima", 0, &["PUT /shops/lima"])]
#[case("update", "/shops/oslo", 3, &[])]
fn create_and_update_need_no_difference(
    #[case] command: &str,
    #[case] path: &str,
    #[case] code: i32,
    #[case] writes: &[&str],
) {
    let world = shops();
    let run = world.run(&["resource", command, path]);
    assert_eq!(run.code, code, "{run}");
    assert_eq!(world.writes(), writes);
}

#[test]
fn what_cannot_be_read_can_still_be_updated() {
    let world = shops();
    world.server.fail(Matcher::method("GET"), 405, 9);
    assert_eq!(world.run(&["resource", "apply", "/shops/rio"]).code, 2);
    assert_eq!(world.run(&["resource", "update", "/shops/rio"]).code, 0);
    assert_eq!(world.writes(), ["PUT /shops/rio"]);
}

#[test]
fn another_method() {
    let world = shops();
    let run = world.run(&["resource", "apply", "/shops/rio", "--http-method", "patch"]);
    assert_eq!(run.code, 0, "{run}");
    assert_eq!(world.writes(), ["PATCH /shops/rio"]);
}

#[test]
fn records_on_demand() {
    let world = shops();
    insta::assert_snapshot!(world.run(&["resource", "apply", "/shops/rio", "-v"]), @r#"
    exit 0
    --- stdout
    {
      "LogicalPath": "/shops/rio",
      "CollectionPath": "/shops",
      "LocalAlias": "rio",
      "RemoteID": "rio",
      "ResolvedRemotePath": "/shops/rio",
      "Payload": {
        "id": "rio",
        "tier": "gold"
      },
      "PayloadDescriptor": {
        "PayloadType": "yaml",
        "MediaType": "application/yaml",
        "Extension": ".yaml"
      }
    }
    --- stderr
    ~ /shops/rio updated
    [OK] command executed successfully.
    "#);
    insta::assert_snapshot!(world.run(&["resource", "apply", "/shops", "-v", "-o", "text", "-n"]), @r"
    exit 0
    --- stdout
    /shops/lima
    /shops/oslo
    /shops/rio
    --- stderr
    ");
    let batch = world.run(&["resource", "apply", "/shops", "-v", "-o", "json", "-n"]);
    assert!(batch.stdout.starts_with("[\n"), "{batch}");
}

#[test]
fn input_instead_of_the_repository() {
    let world = shops();
    let run = world.run(&["resource", "apply", "/shops/ava", "-f", "id=ava,tier=free"]);
    assert_eq!(run.code, 0, "{run}");
    assert_eq!(world.observed("/shops/ava"), Some(json!({"id": "ava", "tier": "free"})));
    let run =
        world.run_with(&["resource", "apply", "/shops/rio", "-f", "-"], r#"{"id":"rio","tier":"by hand"}"#);
    assert_eq!(run.code, 0, "{run}");
    assert_eq!(world.observed("/shops/rio"), Some(json!({"id": "rio", "tier": "by hand"})));
    assert!(world.declared("shops/ava/resource.json").is_none());
    let run = world.run(&["resource", "apply", "/shops/rio", "-r", "-f", "a=b"]);
    assert_eq!(run.code, 2, "{run}");
    assert!(run.stderr.contains("--recursive"), "{run}");
}

#[rstest]
#[case::same("/shops/rio", "name=rio", 0, "/shops/rio")]
#[case::collection("/shops", "name=ava", 0, "/shops/ava")]
#[case::mismatch("/shops/rio", "name=ava", 2, "does not match path segment \"rio\"")]
#[case::second_choice("/shops", "id=u7", 0, "/shops/u7")]
#[case::unnamed("/shops/rio", "tier=free", 2, "")]
fn names_of_input(#[case] path: &str, #[case] input: &str, #[case] code: i32, #[case] result: &str) {
    let world = shops();
    world.declare("shops/_/metadata.yaml", "resource: {alias: '{{default /name /id}}'}");
    let run = world.run(&["resource", "apply", path, "-f", input]);
    assert_eq!(run.code, code, "{run}");
    if code == 0 {
        assert!(world.observed(result).is_some(), "{run}");
    } else {
        assert!(run.stderr.contains(result), "{run}");
    }
}

#[test]
fn refresh_saves_what_the_server_made_of_it() {
    let world = shops();
    world.declare(
        "shops/_/metadata.yaml",
        "operations: {get: {transforms: [{jqExpression: '. + {checked: true}'}]}, compare: {transforms: \
         [{excludeAttributes: /checked}]}}",
    );
    let run = world.run(&["resource", "apply", "/shops/rio", "--refresh"]);
    assert_eq!(run.code, 0, "{run}");
    assert_eq!(
        world.declared("shops/rio/resource.yaml").as_deref(),
        Some("checked: true\nid: rio\ntier: gold\n")
    );
}

/// A reference determines the order of writes, so its value does not replace it.
#[test]
fn refresh_keeps_references() {
    let world = shops();
    world.declare("shops/rio/resource.yaml", "id: rio\nowner: '{{ref \"/shops/oslo\" \"/id\"}}'\n");
    world.live("/shops/oslo", r#"{"id": "oslo"}"#);
    let run = world.run(&["resource", "apply", "/shops/rio", "--refresh"]);
    assert_eq!(run.code, 0, "{run}");
    assert_eq!(world.observed("/shops/rio").unwrap()["owner"], "oslo");
    let saved = world.declared("shops/rio/resource.yaml").unwrap();
    assert!(saved.contains(r#"{{ref "/shops/oslo" "/id"}}"#), "{saved}");
}

#[test]
fn placeholders_need_a_store() {
    let world = shops();
    world.declare("shops/rio/resource.yaml", "id: rio\npin: '{{secret .}}'\n");
    let run = world.run(&["resource", "apply", "/shops/rio"]);
    assert_eq!(run.code, 2, "{run}");
    assert!(run.stderr.contains("secret"), "{run}");
    assert!(world.writes().is_empty());
}

#[test]
fn the_number_of_requests_in_parallel() {
    let names = ["a", "b", "c", "d", "e", "f"];
    let world = World::new(&["/shops"], &[]);
    for name in names {
        world.declare(&format!("shops/{name}/resource.json"), &format!(r#"{{"id": "{name}"}}"#));
    }
    world.server.latency(std::time::Duration::from_millis(30));
    let run = world.run(&["resource", "apply", "/shops", "-r", "--parallel", "1"]);
    assert_eq!(run.code, 0, "{run}");
    assert_eq!(world.server.peak_concurrency(), 1);
    let run = world.run(&["resource", "apply", "/shops", "-r", "--parallel", "0"]);
    assert_eq!(run.code, 1, "{run}");
}

#[test]
fn verbose_output_names_actions() {
    let world = World::new(&["/shops"], &[]);
    world.declare("shops/Rio/resource.json", r#"{"id": "Rio"}"#);
    let run = world.run(&["resource", "apply", "/shops/Rio", "-vv"]);
    assert!(run.code == 0 && run.stderr.contains("verbose: create /shops/Rio\n"), "{run}");
}

/// The answer has the status 200 and states a failure in its body.
#[test]
fn an_update_without_effect_is_a_failure() {
    let world = shops();
    world.server.fail(Matcher::new("PUT", "/shops/rio"), 200, 9);
    insta::assert_snapshot!(world.run(&["resource", "apply", "/shops/rio", "--ignore-warnings"]), @r#"
    exit 2
    --- stdout
    --- stderr
    [ERROR] command execution failed: /shops/rio: PUT /shops/rio: remote request failed with status 200: { "error": "injected failure" }; the server shows no effect of the request; if a sign-in page or a proxy answers, correct the address or the credentials of the server.
    "#);
    let run = world.run(&["resource", "update", "/shops/rio", "--skip-result-message"]);
    assert!(run.code == 2 && run.stderr.contains("injected failure"), "{run}");
}
