//! Placeholders on their way to the server: `resource apply`, `create`, `update`, `diff`, `explain` and `plan` with a
//! secret store.

use rstest::rstest;
use serde_json::json;

use crate::api_server::{Answer, ApiServer, Ids};
use crate::environment::Run;
use crate::safety::Place;
use crate::world::World;

const VALUE: &str = "s3cret/one";
const OTHER: &str = "live/s3cret";

/// `/apps/a` has a placeholder; the store holds its value.
fn apps() -> World {
    let world = World::with_store(
        &["/apps"],
        &[("apps/a/resource.json", r#"{"id": "a", "pw": "{{secret .}}", "size": 1}"#)],
    );
    world.store_secret("/apps/a:/pw", VALUE);
    world
}

/// The same where the server has another value.
fn different() -> World {
    let world = apps();
    world.live("/apps/a", &json!({"id": "a", "pw": OTHER, "size": 1}).to_string());
    world
}

fn hides(run: &Run) {
    let shown = run.to_string();
    assert!(!shown.contains(VALUE) && !shown.contains(OTHER), "{shown}");
}

#[rstest]
#[case::apply_new("apply", false, "POST /apps")]
#[case::apply_other("apply", true, "PUT /apps/a")]
#[case::create("create", false, "POST /apps")]
#[case::update("update", true, "PUT /apps/a")]
fn the_server_gets_the_value(#[case] command: &str, #[case] is_there: bool, #[case] write: &str) {
    let world = if is_there { different() } else { apps() };
    let run = world.run(&["resource", command, "/apps/a", "-vvv"]);
    assert_eq!((run.code, world.writes()), (0, vec![write.to_owned()]), "{run}");
    assert_eq!(world.observed("/apps/a"), Some(json!({"id": "a", "pw": VALUE, "size": 1})));
    hides(&run);
    assert!(run.stdout.contains("\"pw\": \"{{secret .}}\""), "{run}");
    assert!(world.declared("apps/a/resource.json").unwrap().contains("{{secret .}}"));
}

#[test]
fn what_is_equal_is_left_alone() {
    let world = apps();
    world.live("/apps/a", &json!({"id": "a", "pw": VALUE, "size": 1}).to_string());
    assert_eq!(world.run(&["resource", "apply", "/apps/a"]).code, 0);
    assert!(world.writes().is_empty());
    let diff = world.run(&["resource", "diff", "/apps/a", "--exit-code"]);
    assert_eq!(diff.stdout, "No differences for /apps/a.\n", "{diff}");
}

#[test]
fn a_payload_of_the_command_line_may_hold_placeholders() {
    let world = apps();
    world.store_secret("/apps/b:ci", VALUE);
    let input = r#"{"id": "b", "token": "{{secret ci}}"}"#;
    let run = world.run_with(&["resource", "apply", "/apps/b", "-f", "-"], input);
    assert_eq!(run.code, 0, "{run}");
    assert_eq!(world.observed("/apps/b"), Some(json!({"id": "b", "token": VALUE})));
}

#[test]
fn a_diff_shows_that_a_secret_differs() {
    let run = different().run(&["resource", "diff", "/apps/a"]);
    hides(&run);
    insta::assert_snapshot!(run, @r#"
    exit 0
    --- stdout
    /apps/a [CHANGED]
    --- repository
    +++ managed-server
    @@ -1,5 +1,5 @@
     {
       "id": "a",
    -  "pw": "{{secret .}}",
    +  "pw": "{{secret .}}",
       "size": 1
     }
    --- stderr
    "#);
}

#[rstest]
#[case::explain(&["resource", "explain", "/apps/a"])]
#[case::diff(&["resource", "diff", "/apps", "-o", "json"])]
#[case::plan(&["plan", "/apps", "-o", "json"])]
fn records_have_the_placeholder_on_both_sides(#[case] args: &[&str]) {
    let run = different().run(args);
    hides(&run);
    assert_eq!(run.stdout.matches("\"{{secret .}}\"").count(), 2, "{run}");
    assert!(run.stdout.contains("\"/pw\""), "{run}");
}

#[test]
fn a_plan_in_a_file_holds_no_value_and_is_carried_out() {
    let world = different();
    let file = world.home.path("plan.json").display().to_string();
    assert_eq!(world.run(&["plan", "/apps", "--out", &file]).code, 0);
    let content = std::fs::read_to_string(&file).unwrap();
    assert!(!content.contains(VALUE) && !content.contains(OTHER), "{content}");
    world.store_secret("/apps/a:/pw", "s3cret/two");
    let run = world.run(&["resource", "apply", "--plan", &file]);
    assert_eq!(run.code, 5, "another value is another plan: {run}");
    world.store_secret("/apps/a:/pw", VALUE);
    let run = world.run(&["resource", "apply", "--plan", &file]);
    assert_eq!((run.code, world.writes()), (0, vec!["PUT /apps/a".to_owned()]), "{run}");
    assert_eq!(world.observed("/apps/a"), Some(json!({"id": "a", "pw": VALUE, "size": 1})));
}

#[rstest]
#[case::no_store(
    |world: &World| {
        let catalogue = world.home.catalogue();
        let kept: Vec<&str> = catalogue.lines().filter(|line| !line.contains("secretStore")).collect();
        world.home.write(".declarest/configs/contexts.yaml", &kept.join("\n"));
    },
    2,
    "/apps/a: secret provider is not configured: the value at \"/pw\" is a placeholder"
)]
#[case::no_such_key(
    |world: &World| assert_eq!(world.run(&["secret", "delete", "/apps/a:/pw"]).code, 0),
    3,
    "cannot read the secret apps/a:/pw for \"/pw\": secret apps/a:/pw not found in <home>/secrets.json"
)]
#[case::wrong_key(
    |world: &World| {
        let catalogue = world.home.catalogue().replace("0123456789abcdef0", "fedcba98765432100");
        world.home.write(".declarest/configs/contexts.yaml", &catalogue);
    },
    4,
    "cannot decrypt secret file <home>/secrets.json"
)]
#[case::malformed(
    |world: &World| world.declare("apps/a/resource.json", r#"{"id": "a", "pw": "{{secret a b}}"}"#),
    2,
    "the placeholder's key has white space or a brace"
)]
fn what_cannot_be_resolved_is_not_sent(
    #[case] change: fn(&World),
    #[case] code: i32,
    #[case] message: &str,
    #[values(&["resource", "apply"], &["resource", "create"], &["resource", "update"], &["resource", "diff"], &["plan"])]
    command: &[&str],
) {
    let world = different();
    change(&world);
    let run = world.run(&[command, &["/apps/a"]].concat());
    assert_eq!(run.code, code, "{run}");
    assert!(run.stderr.contains(message), "{run}");
    assert_eq!(run.stderr.contains("hint: \"declarest secret list --missing\" prints"), code == 3, "{run}");
    hides(&run);
    assert!(world.server.log().is_empty(), "nothing was asked for");
}

#[test]
fn a_resource_can_be_a_secret_as_a_whole() {
    let world = World::with_store(&["/apps"], &[("apps/a/resource.yaml", "'{{secret .}}'\n")]);
    // Not declared as secret: its file says it.
    world.declare("apps/_/metadata.yaml", "resource: {defaults: {value: {tier: silver}}}");
    world.store_secret("/apps/a:.", "id: a\npw: s3cret/one\n");
    let applied = world.run(&["resource", "apply", "/apps/a", "-v"]);
    assert_eq!(applied.code, 0, "{applied}");
    assert_eq!(world.observed("/apps/a"), Some(json!({"id": "a", "pw": VALUE})));
    world.live("/apps/a", &json!({"id": "a", "pw": OTHER}).to_string());
    let diff = world.run(&["resource", "diff", "/apps/a"]);
    assert!(diff.stdout.contains("[CHANGED]"), "{diff}");
    hides(&applied);
    hides(&diff);
}

#[test]
fn a_rotated_secret_is_sent_by_the_next_run() {
    let world = apps();
    assert_eq!(world.run(&["resource", "apply", "/apps/a"]).code, 0);
    world.store_secret("/apps/a:/pw", OTHER);
    let diff = world.run(&["resource", "diff", "/apps/a", "--list"]);
    assert_eq!(diff.stdout, "/apps/a\n", "{diff}");
    assert_eq!(world.run(&["resource", "apply", "/apps/a"]).code, 0);
    assert_eq!(world.observed("/apps/a"), Some(json!({"id": "a", "pw": OTHER, "size": 1})));
    assert_eq!(world.writes(), ["POST /apps", "PUT /apps/a"]);
}

/// Files of Git hold a placeholder for each of these secrets.
const ENV: &str = r#"[{"name": "A", "value": "{{secret a}}"}, {"name": "B", "value": "{{secret b}}"}]"#;

/// The server shows its entries in another order, with one of its own first.
#[rstest]
#[case::found(
    false,
    0,
    r#"[{"name":"SYS","value":"x"},{"name":"B","value":"{{secret b}}"},{"name":"A","value":"{{secret a}}"}]"#
)]
#[case::renamed(true, 2, ENV)]
fn refreshed_entries_keep_their_placeholders(
    #[case] renames: bool,
    #[case] code: i32,
    #[case] expected: &str,
) {
    let server = ApiServer::start(&["/apps"], move |request, store| {
        if request.method != "GET" {
            return request.rest(store, Ids::Stated("id"));
        }
        let Some(app) = store.get(&request.path) else { return request.rest(store, Ids::Stated("id")) };
        let mut app = app.clone();
        let entries = app["env"].as_array_mut().unwrap();
        entries.reverse();
        entries.insert(0, json!({"name": "SYS", "value": "x"}));
        if renames {
            entries[1]["name"] = json!("b");
        }
        Answer::json(200, &app)
    });
    let metadata = "resource: {id: /id}\noperations: {compare: {mode: declared, arrays: {/env: /name}}}\n";
    let payload = format!(r#"{{"id": "a", "env": {ENV}}}"#);
    let place = Place::new(server, &[("apps/_/metadata.yaml", metadata), ("apps/a/resource.json", &payload)]);
    for (key, value) in [("/apps/a:a", VALUE), ("/apps/a:b", OTHER)] {
        let run = place.run(&["secret", "set", key, value]);
        assert_eq!(run.code, 0, "{run}");
    }
    let run = place.run(&["resource", "apply", "/apps/a", "--refresh"]);
    assert_eq!(run.code, code, "{run}");
    hides(&run);
    let file = place.home.read("repo/apps/a/resource.json");
    let declared: serde_json::Value = serde_json::from_str(&file).unwrap();
    assert_eq!(declared["env"], serde_json::from_str::<serde_json::Value>(expected).unwrap(), "{file}");
}
