//! Failures: what failed, on which host, why, and what to do; as text and for programs.

use rstest::rstest;
use serde_json::Value;

use crate::environment::declarest;
use crate::rest_server::Matcher;
use crate::server::{Route, Server};
use crate::world::World;

fn shops() -> World {
    let world = World::new(&["/shops"], &[]);
    for shop in ["lima", "oslo", "rio", "rome", "zoe"] {
        world.declare(&format!("shops/{shop}/resource.yaml"), &format!("id: {shop}\n"));
    }
    world
}

#[test]
fn failures_with_the_same_reason_share_a_line() {
    let world = shops();
    world.server.fail(Matcher::any(), 422, usize::MAX);
    let run = world.run(&["resource", "diff", "/shops"]);
    insta::assert_snapshot!(run, @r#"
    exit 2
    --- stdout
    --- stderr
    5 resources (/shops/lima, /shops/oslo, /shops/rio and 2 more): GET: remote request failed with status 422: {"error":"injected failure"}
    5 of 5 resources failed
    "#);
}

#[test]
fn an_unreachable_server_is_named_with_its_host() {
    let mut world = shops();
    world.server.stop();
    let run = world.run(&["resource", "get", "/shops/rio"]);
    assert_eq!(run.code, 6, "{run}");
    let host = world.server.url().replace("http://", "");
    assert!(
        run.stderr.starts_with(&format!("GET /shops/rio: cannot connect to {host}: Connection refused")),
        "{run}"
    );
    let hint = "hint: \"declarest context check dev\" shows which parts of the context can be reached\n";
    assert!(run.stderr.ends_with(hint), "{run}");
}

/// The server was reached, so the hint does not suggest a check of the context.
#[test]
fn an_answer_that_states_the_fault_has_no_hint() {
    let world = shops();
    world.server.fail(Matcher::method("GET"), 500, 99);
    for args in [&["resource", "get", "/shops/rio"][..], &["resource", "diff", "/", "-r"]] {
        let run = world.run(args);
        assert_eq!(run.code, 6, "{run}");
        assert!(run.stderr.contains("injected failure") && !run.stderr.contains("hint:"), "{run}");
    }
}

#[test]
fn a_hint_precedes_the_footer() {
    let world = shops();
    world.server.require_header("k", "another");
    insta::assert_snapshot!(world.run(&["resource", "apply", "/shops/rio"]), @r#"
    exit 4
    --- stdout
    --- stderr
    hint: correct the credentials of context "dev", and test them with "declarest context check dev"
    [ERROR] command execution failed: GET /shops/rio: remote request failed with status 401: {"error":"credentials are missing or wrong"}.
    "#);
}

/// A server may answer with a sentence.
#[test]
fn the_full_stop_of_an_answer_is_not_repeated() {
    const ROUTES: &[Route] = &[
        ("GET /shops/rio", 200, r#"{"id": "rio", "size": 1}"#),
        ("PUT /shops/rio", 400, "The size is immutable."),
        ("GET /shops/oslo", 403, "You may not read this shop."),
        ("GET /shops/lima", 200, r#"{"id": "lima", "size": 1}"#),
        // A state that may pass.
        ("PUT /shops/lima", 409, "The shop is immutable now."),
    ];
    let server = Server::new(ROUTES);
    let home = server.home();
    home.write("repo/shops/rio/resource.json", r#"{"id": "rio", "size": 2}"#);
    home.write("repo/shops/oslo/resource.json", r#"{"id": "oslo"}"#);
    home.write("repo/shops/lima/resource.json", r#"{"id": "lima", "size": 2}"#);
    let last = |path| {
        let run = home.run(&["resource", "apply", path, "--ignore-warnings"]);
        run.stderr.lines().last().unwrap().to_owned()
    };
    insta::assert_snapshot!(last("/shops/rio"), @"[ERROR] command execution failed: PUT /shops/rio: remote request failed with status 400: The size is immutable; if an update cannot change this attribute, state it in resource.replaceOn: then the resource is deleted and created again.");
    insta::assert_snapshot!(last("/shops/lima"), @"[ERROR] command execution failed: PUT /shops/lima: remote request failed with status 409: The shop is immutable now.");
    insta::assert_snapshot!(last("/shops/oslo"), @"[ERROR] command execution failed: GET /shops/oslo: remote request failed with status 403: You may not read this shop.");
}

/// The records of standard error.
fn records(stderr: &str) -> Vec<Value> {
    stderr.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn failures_are_records_on_request() {
    // A list replaces reads only if a collection has three members or more.
    let world = World::new(&["/shops"], &[]);
    for shop in ["oslo", "rio"] {
        world.declare(&format!("shops/{shop}/resource.yaml"), &format!("id: {shop}\n"));
    }
    world.server.fail(Matcher::path("/shops/rio"), 403, 1);
    world.server.fail(Matcher::path("/shops/oslo"), 422, 1);
    let run = world.run(&["resource", "diff", "/shops", "--error-format", "json"]);
    assert_eq!(run.code, 2, "{run}");
    insta::assert_snapshot!(run.stderr, @r#"
    {"category":"validation","exitCode":2,"message":"GET /shops/oslo: remote request failed with status 422: {\"error\":\"injected failure\"}; the list of its collection does not show it: if this answer means that it does not exist, state operations.get.absent: {status: [422]} in shops/_/metadata.yaml","hint":null,"path":"/shops/oslo","httpStatus":422}
    {"category":"auth","exitCode":4,"message":"GET /shops/rio: remote request failed with status 403: {\"error\":\"injected failure\"}","hint":null,"path":"/shops/rio","httpStatus":403}
    {"category":"validation","exitCode":2,"message":"2 of 2 resources failed","hint":null,"path":null,"httpStatus":null}
    "#);
    assert_eq!(records(&run.stderr).len(), 3);
}

#[rstest]
#[case::not_found(&["resource", "get", "/shops/none"], 3, "not-found", Some("/shops/none"))]
#[case::invalid(&["resource", "get", "shops"], 2, "validation", None)]
#[case::usage(&["resource", "get"], 2, "validation", None)]
#[case::syntax(&["resource", "gett"], 1, "internal", None)]
fn each_category_is_a_record(
    #[case] args: &[&str],
    #[case] code: i32,
    #[case] category: &str,
    #[case] path: Option<&str>,
) {
    let run = shops().run(&[args, &["--error-format=json"]].concat());
    assert_eq!(run.code, code, "{run}");
    let record = records(&run.stderr).pop().unwrap();
    assert_eq!(
        (record["exitCode"].as_i64(), record["category"].as_str()),
        (Some(code.into()), Some(category))
    );
    assert_eq!(record["path"].as_str(), path, "{run}");
    assert!(!record["message"].as_str().unwrap().is_empty());
}

#[rstest]
#[case::command("resorce", "'resource'")]
#[case::group("gett", "'resource get'")]
#[case::far("wxyz", "")]
fn a_command_is_suggested(#[case] word: &str, #[case] suggestion: &str) {
    let run = declarest(&[word]);
    assert_eq!(run.code, 1);
    let tip = format!("tip: a similar subcommand exists: {suggestion}\n");
    assert_eq!(run.stderr.contains(&tip), !suggestion.is_empty(), "{run}");
}

#[rstest]
#[case::in_a_group(&["resource", "gett", "/"], "'get'")]
#[case::flag(&["resource", "get", "/shops", "--exclud", "a"], "'--exclude'")]
fn commands_and_flags_are_suggested(#[case] args: &[&str], #[case] suggestion: &str) {
    let run = shops().run(args);
    assert!(run.code == 1 && run.stderr.contains("tip: ") && run.stderr.contains(suggestion), "{run}");
}

#[rstest]
#[case::segment(&["resource", "diff", "/shops/rioo"], "/shops/rio")]
#[case::collection(&["plan", "/shop"], "/shops")]
#[case::both(&["resource", "apply", "/shop/olso"], "/shops/oslo")]
#[case::of_the_server(&["resource", "get", "/shops/rioo"], "/shops/rio")]
#[case::of_the_repository(&["resource", "get", "/shops/rioo", "--source", "repository"], "/shops/rio")]
fn a_path_is_suggested(#[case] args: &[&str], #[case] path: &str) {
    let run = shops().run(args);
    assert_eq!(run.code, 3, "{run}");
    assert!(run.stderr.contains(&format!("hint: did you mean {path}?\n")), "{run}");
}

#[test]
fn a_context_is_suggested() {
    let run = shops().run(&["resource", "get", "/shops", "-c", "dve"]);
    assert_eq!(run.stderr, "context \"dve\" not found; there are dev; did you mean \"dev\"?\n");
}

/// The message of one resource names its own path, which the others do not share.
#[test]
fn a_shared_reason_has_no_path_of_a_resource() {
    let world = World::new(&["/shops", "/shops/*/tills"], &[]);
    world.declare("shops/_/metadata.yaml", "resource: {id: /id, alias: /name}\n");
    for till in ["a", "b"] {
        world.declare(&format!("shops/rio/tills/{till}/resource.yaml"), &format!("id: {till}\n"));
    }
    world.declare("shops/rio/resource.yaml", "name: rio\n");
    world.server.fail(Matcher::path("/shops"), 500, usize::MAX);
    insta::assert_snapshot!(world.run(&["resource", "diff", "/shops/rio/tills", "-r"]), @r#"
    exit 6
    --- stdout
    --- stderr
    2 resources (/shops/rio/tills/a, /shops/rio/tills/b): cannot address it: cannot determine whether /shops/rio exists: GET /shops: remote request failed with status 500: {"error":"injected failure"}
    2 of 2 resources failed
    "#);
}

/// The creates of two resources have one address.
#[test]
fn the_address_of_a_shared_request_is_shown() {
    let world = World::new(&["/shops"], &[("shops/a/resource.json", "{}"), ("shops/b/resource.json", "{}")]);
    world.server.fail(Matcher::method("POST"), 422, 99);
    let run = world.run(&["resource", "apply", "/shops", "-r"]);
    assert!(
        run.stderr.contains("2 resources (/shops/a, /shops/b): POST /shops: remote request failed"),
        "{run}"
    );
}
