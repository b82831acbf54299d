//! `plan`, and `resource apply --plan`.

use rstest::rstest;

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

/// A plan for everything in a file; its name.
fn saved(world: &World) -> String {
    let file = world.home.path("plan.json").display().to_string();
    let run = world.run(&["plan", "/shops", "-r", "--out", &file]);
    assert_eq!(run.code, 0, "{run}");
    file
}

#[test]
fn text() {
    let world = shops();
    insta::assert_snapshot!(world.run(&["plan", "/shops", "-r"]), @r"
    exit 0
    --- stdout
    + /shops/oslo
    + /shops/oslo/tills/t1
    ~ /shops/rio: /tags/1, /tier
    Plan: 2 to create, 1 to update, 0 to delete, 1 unchanged.
    --- stderr
    ");
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
      "actions": [
        {
          "path": "/shops/rio",
          "step": "update",
          "reason": "different",
          "differences": [
            {
              "path": "/tags/1",
              "change": "add",
              "desired": null,
              "observed": "b"
            },
            {
              "path": "/tier",
              "change": "replace",
              "desired": "gold",
              "observed": "free"
            }
          ]
        }
      ],
      "unchanged": 0,
      "targeted": 1,
      "failures": [],
      "prune_refused": null
    }
    --- stderr
    "#);
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
#[case::server_moved(|world: &World| world.live("/shops/oslo", r#"{"id": "oslo"}"#), "/shops/oslo: was to be created, is now to be left alone")]
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
fn a_plan_says_itself_what_it_is_about() {
    let run = shops().run(&["resource", "apply", "/shops", "--plan", "plan.json"]);
    assert_eq!(run.code, 1, "{run}");
    assert!(run.stderr.contains("cannot be used with"), "{run}");
}
