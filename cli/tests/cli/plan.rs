//! `plan`, and `resource apply --plan`.

use rstest::rstest;
use serde_json::{Value, json};

use crate::environment::Run;
use crate::terminal::Terminal;
use crate::world::World;

/// `rio` differs, `lima` is equal, and `oslo` with its till is not on the server.
fn shops() -> World {
    let world = World::new(
        &["/shops", "/shops/*/tills"],
        &[
            ("shops/rio/resource.yaml", "id: rio\ntier: gold\ntags: [a]\n"),
            ("shops/lima/resource.json", r#"{"id": "lima"}"#),
            ("shops/oslo/resource.json", r#"{"id": "oslo"}"#),
            ("shops/oslo/tills/t1/resource.json", r#"{"id": "t1"}"#),
        ],
    );
    world.live("/shops/rio", r#"{"id": "rio", "tier": "free", "tags": ["a", "b"]}"#);
    world.live("/shops/lima", r#"{"id": "lima"}"#);
    world
}

/// Saves a plan for all resources to a file, and returns the name of the file.
fn saved(world: &World) -> String {
    let file = world.home.path("plan.json").display().to_string();
    let run = world.run(&["plan", "/shops", "--out", &file]);
    assert_eq!(run.code, 0, "{run}");
    file
}

#[test]
fn text() {
    let world = shops();
    assert_eq!(world.run(&["plan", "/shops", "-r"]).to_string(), world.run(&["plan", "/shops"]).to_string());
    insta::assert_snapshot!(world.run(&["plan", "/shops"]), @r#"
    exit 0
    --- stdout
    + /shops/oslo
    + /shops/oslo/tills/t1
    ~ /shops/rio
        /tags/1: "b" -> (removed)
        /tier: "free" -> "gold"
    Plan: 2 to create, 1 to update, 0 to delete, 1 unchanged.
    --- stderr
    "#);
    assert!(world.writes().is_empty());
}

#[test]
fn nothing_to_do() {
    insta::assert_snapshot!(shops().run(&["plan", "/shops/lima", "--exit-code"]), @r"
    exit 0
    --- stdout
    Plan: 0 to create, 0 to update, 0 to delete, 1 unchanged.
    --- stderr
    ");
}

#[test]
fn json() {
    insta::assert_snapshot!(shops().run(&["plan", "/shops/rio", "-o", "json"]), @r#"
    exit 0
    --- stdout
    {
      "revision": null,
      "summary": {
        "create": 0,
        "update": 1,
        "delete": 0,
        "unchanged": 0
      },
      "actions": [
        {
          "path": "/shops/rio",
          "step": "update",
          "reason": "different",
          "differences": [
            {
              "ResourcePath": "/shops/rio",
              "Path": "/tags/1",
              "Operation": "add",
              "Local": null,
              "Remote": "b"
            },
            {
              "ResourcePath": "/shops/rio",
              "Path": "/tier",
              "Operation": "replace",
              "Local": "gold",
              "Remote": "free"
            }
          ],
          "requests": [
            "PUT /shops/rio"
          ]
        }
      ],
      "unchanged": 0,
      "targeted": 1,
      "failures": [],
      "pruneRefused": null
    }
    --- stderr
    "#);
}

#[test]
fn a_plan_is_recursive_unless_the_flag_is_false() {
    let world = shops();
    insta::assert_snapshot!(world.run(&["plan", "/shops", "--recursive=false"]), @r#"
    exit 0
    --- stdout
    + /shops/oslo
    ~ /shops/rio
        /tags/1: "b" -> (removed)
        /tier: "free" -> "gold"
    Plan: 1 to create, 1 to update, 0 to delete, 1 unchanged.
    --- stderr
    "#);
    insta::assert_snapshot!(world.run(&["plan", "/", "--recursive=false"]), @r#"
    exit 3
    --- stdout
    --- stderr
    no local resources found under "/"; add --recursive for the 4 below its collections
    "#);
}

#[test]
fn markdown() {
    let world = shops();
    world.declare("shops/zoe/resource.yaml", "id: zoe\nnote: |\n  ```\n  x\n");
    world.live("/shops/zoe", r#"{"id": "zoe"}"#);
    world.declare("shops/bad/resource.json", "{");
    insta::assert_snapshot!(world.run(&["plan", "/shops", "-o", "markdown"]), @r#"
    exit 2
    --- stdout
    <!-- declarest-plan -->
    ### Plan for `/shops`

    Server `<server>/`. Incomplete plan: 2 to create, 2 to update, 0 to delete, 1 unchanged, 1 failed.

    ````diff
    + /shops/oslo
    + /shops/oslo/tills/t1
    ! /shops/rio
    !   /tags/1: "b" -> (removed)
    !   /tier: "free" -> "gold"
    ! /shops/zoe
    !   /note: (absent) -> "```\nx\n"
    ````

    - **failed** `/shops/bad`: "shops/bad/resource.json": cannot decode json, line 1, column 1: EOF while parsing an object
    --- stderr
    /shops/bad: "shops/bad/resource.json": cannot decode json, line 1, column 1: EOF while parsing an object
    1 of 6 resources failed
    "#);
}

#[test]
fn markdown_has_a_limit() {
    let world = World::new(&["/shops"], &[]);
    for n in 0..900 {
        let id = format!("shop-{n}-{}", "x".repeat(80));
        world.declare(&format!("shops/{id}/resource.json"), &format!(r#"{{"id": "{id}"}}"#));
    }
    let run = world.run(&["plan", "/shops", "-o", "markdown"]);
    assert!(run.stdout.len() < 65_000, "{}", run.stdout.len());
    assert!(run.stdout.contains(" more resources are not shown."), "{run}");
}

#[test]
fn markdown_is_for_plans_only() {
    insta::assert_snapshot!(shops().run(&["resource", "diff", "/shops", "-o", "markdown"]), @r#"
    exit 2
    --- stdout
    --- stderr
    "declarest resource diff" prints text, JSON and YAML only; remove --output markdown
    "#);
}

#[test]
fn colours_mark_the_steps() {
    let world = shops();
    let command = world.home.command(&["plan", "/shops", "--ignore-warnings"], &[("TERM", "xterm")]);
    let (code, shown) = Terminal::start(command).end();
    assert_eq!(code, 0, "{shown}");
    assert!(shown.contains("\u{1b}[32m+ /shops/oslo\u{1b}[0m"), "{shown}");
    assert!(shown.contains("\u{1b}[33m~ /shops/rio\u{1b}[0m"), "{shown}");
}

#[test]
fn long_values_are_folded() {
    let world = shops();
    world.declare(
        "shops/rio/resource.yaml",
        &format!("id: rio\ntier: {}\ntags: [1, 2, 3, 4, 5, 6]\n", "x".repeat(100)),
    );
    insta::assert_snapshot!(world.run(&["plan", "/shops/rio"]), @r#"
    exit 0
    --- stdout
    ~ /shops/rio
        /tags/0: "a" -> 1
        /tags/1: "b" -> 2
        /tags/2: (absent) -> 3
        /tags/3: (absent) -> 4
        /tags/4: (absent) -> 5
        /tags/5: (absent) -> 6
        /tier: "free" -> "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx... (102 characters)
    Plan: 0 to create, 1 to update, 0 to delete, 0 unchanged.
    --- stderr
    "#);
}

#[test]
fn a_long_text_is_shown_by_the_lines_that_differ() {
    let world =
        World::new(&["/rules"], &[("rules/_/metadata.yaml", "resource: {id: /name, alias: /name}\n")]);
    let rules = |last: &str| format!("{}allow {last}\n", "deny all\n".repeat(20));
    world.live("/rules/a", &serde_json::json!({"name": "a", "rules": rules("read")}).to_string());
    let declared = serde_json::json!({"name": "a", "rules": rules("write")});
    world.declare("rules/a/resource.json", &declared.to_string());
    insta::assert_snapshot!(world.run(&["plan", "/rules"]), @r#"
    exit 0
    --- stdout
    ~ /rules/a
        /rules: (191 characters) -> (192 characters)
          - allow read
          + allow write
    Plan: 0 to create, 1 to update, 0 to delete, 0 unchanged.
    --- stderr
    "#);
}

#[test]
fn a_dry_run_prints_the_plan_and_writes_nothing() {
    let world = shops();
    insta::assert_snapshot!(world.run(&["resource", "apply", "/shops", "--dry-run"]), @r#"
    exit 0
    --- stdout
    + /shops/oslo
    ~ /shops/rio
        /tags/1: "b" -> (removed)
        /tier: "free" -> "gold"
    Plan: 1 to create, 1 to update, 0 to delete, 1 unchanged.
    --- stderr
    [OK] command executed successfully.
    "#);
    let file = saved(&world);
    let planned = world.run(&["resource", "apply", "--plan", &file, "--dry-run", "-o", "json"]);
    assert!(planned.stdout.contains("\"create\": 2"), "{planned}");
    assert!(world.writes().is_empty());
    let both = world.run(&["resource", "apply", "/shops", "--dry-run", "--refresh"]);
    assert_eq!(both.code, 1, "{both}");
}

#[rstest]
#[case::plan(&["plan", "/shops", "--exit-code"], 7)]
#[case::plan_without(&["plan", "/shops"], 0)]
#[case::plan_equal(&["plan", "/shops/lima", "--exit-code"], 0)]
#[case::diff(&["resource", "diff", "/shops", "--exit-code"], 7)]
#[case::diff_equal(&["resource", "diff", "/shops/lima", "--exit-code"], 0)]
#[case::nothing(&["plan", "/none"], 3)]
fn exit_codes(#[case] args: &[&str], #[case] code: i32) {
    let run = shops().run(args);
    assert_eq!(run.code, code, "{run}");
    assert_eq!(run.stderr.is_empty(), code != 3, "{run}");
}

#[test]
fn what_was_planned_is_done() {
    let world = shops();
    let file = saved(&world);
    insta::assert_snapshot!(world.run(&["resource", "apply", "--plan", &file]), @r"
    exit 0
    --- stdout
    --- stderr
    + /shops/oslo created
    + /shops/oslo/tills/t1 created
    ~ /shops/rio updated
    Applied: 2 created, 1 updated, 0 deleted, 1 unchanged, 0 failed.
    [OK] command executed successfully.
    ");
    let mut writes = world.writes();
    writes.sort();
    assert_eq!(writes, ["POST /shops", "POST /shops/oslo/tills", "PUT /shops/rio"]);
    let again = world.run(&["resource", "apply", "--plan", &file]);
    assert_eq!(again.code, 5, "{again}");
    assert_eq!(world.writes().len(), 3);
}

#[rstest]
#[case::server_moved(|world: &World| world.live("/shops/oslo", r#"{"id": "oslo"}"#), "/shops/oslo: was to be created, is now to be skipped")]
#[case::other_value(|world: &World| world.live("/shops/rio", r#"{"id": "rio", "tier": "silver", "tags": ["a", "b"]}"#), "the steps are the same")]
#[case::desired(|world: &World| world.declare("shops/rio/resource.yaml", "id: rio\ntier: silver\ntags: [a]\n"), "the steps are the same")]
#[case::body(|world: &World| world.declare("shops/_/metadata.yaml", "operations: {update: {transforms: [{excludeAttributes: [/tags]}]}}"), "the steps are the same")]
#[case::more(|world: &World| world.declare("shops/zoe/resource.json", r#"{"id": "zoe"}"#), "/shops/zoe is selected now")]
#[case::less(|world: &World| std::fs::remove_file(world.home.path("repo/shops/lima/resource.json")).unwrap(), "/shops/lima is no longer selected")]
fn what_does_not_hold_any_more_is_refused(#[case] change: fn(&World), #[case] what: &str) {
    let world = shops();
    let file = saved(&world);
    change(&world);
    let run = world.run(&["resource", "apply", "--plan", &file]);
    assert_eq!(run.code, 5, "{run}");
    assert!(run.stderr.contains("the plan is stale: "), "{run}");
    assert!(run.stderr.contains(what), "{run}");
    assert!(world.writes().is_empty());
}

/// A user who reviews the file may expect that an action without a line is not executed.
#[rstest]
#[case::removed(|actions: &mut Vec<Value>| drop(actions.remove(1)), "it does not show the action for /shops/oslo")]
#[case::added(
    |actions: &mut Vec<Value>| actions.push(json!({"path": "/shops/x", "step": "delete", "reason": "undeclared"})),
    "it shows an action for /shops/x that was not planned"
)]
#[case::value(
    |actions: &mut Vec<Value>| actions[3]["differences"][0]["desired"] = json!("x"),
    "it does not show the action for /shops/rio"
)]
#[case::twice(|actions: &mut Vec<Value>| actions.push(actions[1].clone()), "it shows an action twice")]
fn a_file_that_does_not_show_its_actions_is_refused(#[case] edit: fn(&mut Vec<Value>), #[case] what: &str) {
    let world = shops();
    let file = saved(&world);
    let mut content: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    edit(content["plan"]["actions"].as_array_mut().unwrap());
    std::fs::write(&file, content.to_string()).unwrap();
    let run = world.run(&["resource", "apply", "--plan", &file]);
    assert!(run.code == 2 && run.stderr.contains(&format!("the plan file was edited: {what}")), "{run}");
    assert!(world.writes().is_empty());
}

#[test]
fn a_plan_is_for_one_server() {
    let (world, other) = (shops(), shops());
    let file = saved(&world);
    let run = other.run(&["resource", "apply", "--plan", &file]);
    assert_eq!(run.code, 5, "{run}");
    assert!(run.stderr.contains("it was made for http://127.0.0.1:"), "{run}");
    assert!(run.stderr.contains("and this is <server>"), "{run}");
}

#[test]
fn secrets_do_not_show_and_count() {
    let world = shops();
    world.declare("shops/_/metadata.yaml", "resource: {secretAttributes: [/pin]}");
    world.declare("shops/rio/resource.yaml", "id: rio\npin: canary-1\n");
    let file = saved(&world);
    let content = std::fs::read_to_string(&file).unwrap();
    assert!(!content.contains("canary"), "{content}");
    assert!(content.contains("/pin"), "{content}");
    let shown = world.run(&["plan", "/shops", "-o", "json"]);
    assert!(!shown.stdout.contains("canary"), "{shown}");
    world.declare("shops/rio/resource.yaml", "id: rio\npin: canary-2\n");
    assert_eq!(world.run(&["resource", "apply", "--plan", &file]).code, 5);
    world.declare("shops/rio/resource.yaml", "id: rio\npin: canary-1\n");
    assert_eq!(world.run(&["resource", "apply", "--plan", &file]).code, 0);
}

/// Metadata does not declare the attribute, and a plan is often shown in a pull request.
#[test]
fn attributes_that_look_like_secrets_do_not_show_in_added_entries() {
    let world = shops();
    let parts =
        |parts: &str| format!(r#"{{"id": "rio", "parts": [{{"name": "x", "password": "hunter1"}}{parts}]}}"#);
    world.live("/shops/rio", &parts(""));
    world.declare("shops/rio/resource.yaml", &parts(r#", {"name": "y", "password": "hunter2"}"#));
    let run = world.run(&["plan", "/shops/rio", "-v"]);
    assert!(run.stdout.contains(r#""name":"y""#) && !run.to_string().contains("hunter"), "{run}");
}

#[test]
fn a_file_that_cannot_be_written_is_named() {
    let run = shops().run(&["plan", "/shops/lima", "--out", "<home>/none/plan.json"]);
    assert_eq!(run.code, 1, "{run}");
    assert_eq!(run.stderr, "cannot write <home>/none/plan.json: No such file or directory (os error 2)\n");
}

#[test]
fn a_plan_with_failures_is_not_saved() {
    let world = shops();
    world.declare("shops/zoe/resource.json", "{");
    let file = world.home.path("plan.json");
    let run = world.run(&["plan", "/shops", "--out", file.to_str().unwrap()]);
    assert_eq!(run.code, 2, "{run}");
    assert!(run.stderr.contains("shops/zoe/resource.json"), "{run}");
    assert!(!file.exists());
}

/// The last line of standard output.
fn last_line(run: &Run) -> &str {
    run.stdout.lines().last().unwrap_or_default()
}

#[rstest]
#[case::plan(&["plan", "/shops"])]
#[case::dry_run(&["resource", "apply", "/shops", "-r", "--dry-run"])]
fn a_plan_without_all_resources_is_incomplete(#[case] args: &[&str]) {
    let world = shops();
    world.declare("shops/zoe/resource.json", "{");
    let run = world.run(args);
    assert_eq!(run.code, 2, "{run}");
    let expected = "Incomplete plan: 2 to create, 1 to update, 0 to delete, 1 unchanged, 1 failed.";
    assert_eq!(last_line(&run), expected, "{run}");
    let json: Value = serde_json::from_str(&world.run(&[args, &["-o", "json"]].concat()).stdout).unwrap();
    assert_eq!(json["failures"][0]["path"], "/shops/zoe", "{json}");
}

/// A create that cannot be made has failed, and does not count as a create, too.
#[test]
fn a_resource_counts_once() {
    let world = shops();
    let metadata = "operations: {create: {validate: {requiredAttributes: [/tier]}}}\n";
    world.declare("shops/_/metadata.yaml", metadata);
    let run = world.run(&["plan", "/shops", "--recursive=false"]);
    assert!(run.stdout.contains("+ /shops/oslo (failed)\n"), "{run}");
    let expected = "Incomplete plan: 0 to create, 1 to update, 0 to delete, 1 unchanged, 1 failed.";
    assert_eq!(last_line(&run), expected, "{run}");
}

#[rstest]
#[case::one(&["plan", "/shops/rio"], "No plan: 1 resource failed.", 1)]
#[case::several(&["plan", "/shops"], "No plan: 4 resources failed.", 4)]
#[case::markdown(&["plan", "/shops", "-o", "markdown"], "No plan: 4 resources failed.", 4)]
#[case::dry_run(&["resource", "apply", "/shops/rio", "--dry-run"], "No plan: 1 resource failed.", 1)]
fn a_server_that_cannot_be_reached_gives_no_plan(
    #[case] args: &[&str],
    #[case] line: &str,
    #[case] failed: usize,
) {
    let world = shops();
    let dead = [args, &["--retries", "0", "--set", "managedServer.http.url=http://127.0.0.1:1"]].concat();
    let run = world.run(&dead);
    assert_eq!(run.code, 6, "{run}");
    assert!(run.stdout.contains(line), "{run}");
    assert!(!run.stdout.contains("to create"), "{run}");
    if !args.contains(&"markdown") {
        let json: Value =
            serde_json::from_str(&world.run(&[&dead[..], &["-o", "json"]].concat()).stdout).unwrap();
        assert_eq!(json["failures"].as_array().unwrap().len(), failed, "{json}");
    }
}

#[rstest]
#[case::missing(None, 3, "cannot read")]
#[case::no_plan(Some("{}"), 2, "not a plan of \"declarest plan --out\"")]
#[case::newer(Some(r#"{"format": 2, "server": "", "path": "/", "recursive": false, "salt": "", "hash": "", "plan": {"actions": []}}"#), 2, "plan format 2 is not known")]
fn files_that_are_no_plans(#[case] content: Option<&str>, #[case] code: i32, #[case] message: &str) {
    let world = shops();
    if let Some(content) = content {
        world.home.write("plan.json", content);
    }
    let file = world.home.path("plan.json").display().to_string();
    let run = world.run(&["resource", "apply", "--plan", &file]);
    assert_eq!(run.code, code, "{run}");
    assert!(run.stderr.contains(message), "{run}");
}

#[test]
fn a_path_cannot_be_combined_with_a_saved_plan() {
    let run = shops().run(&["resource", "apply", "/shops", "--plan", "plan.json"]);
    assert_eq!(run.code, 1, "{run}");
    assert!(run.stderr.contains("cannot be used with"), "{run}");
}

/// A server with another base URL answers 404 to everything. Messages about single resources do not name that cause.
#[rstest]
#[case::plan(&["plan", "/"])]
#[case::apply(&["resource", "apply", "/", "-r"])]
fn wrong_base_url(#[case] arguments: &[&str]) {
    let world = shops();
    world.declare("shops/_/metadata.yaml", "resource: {id: /id, alias: /name}\n");
    world.declare("shops/rio/resource.yaml", "name: rio\n");
    let catalogue = world.home.catalogue();
    let wrong = catalogue.replace(&world.server.url(), &format!("{}/v2", world.server.url()));
    world.home.write(".declarest/configs/contexts.yaml", &wrong);
    let hint =
        "the server answered 404 to each request; if its base URL is wrong, correct managedServer.http.url";
    let run = world.run(arguments);
    assert!(run.code != 0 && run.stderr.contains(hint), "{run}");
    // The answer 404 proves that a resource whose request states its name is absent.
    let put = "operations: {create: {method: PUT, path: './{{/id}}'}}\nresource: {id: /name, alias: /name}\n";
    world.declare("parks/_/metadata.yaml", put);
    for park in ["north", "south", "west"] {
        world.declare(&format!("parks/{park}/resource.yaml"), &format!("name: {park}\n"));
    }
    let run = world.run(&["plan", "/parks"]);
    assert!(run.code == 0 && run.stdout.contains("3 to create") && run.stderr.contains(hint), "{run}");

    world.home.write(".declarest/configs/contexts.yaml", &catalogue);
    let run = world.run(arguments);
    assert!(!run.stderr.contains(hint), "{run}");
}
