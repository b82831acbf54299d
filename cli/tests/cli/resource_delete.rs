//! `resource delete`.

use rstest::rstest;
use serde_json::json;

use crate::api_server::{ApiServer, Ids};
use crate::rest_server::Matcher;
use crate::safety::Place;
use crate::world::World;

fn shops() -> World {
    let world = World::new(
        &["/shops", "/shops/*/tills"],
        &[
            ("shops/rio/resource.yaml", "id: rio\n"),
            ("shops/rio/metadata.yaml", "{}"),
            ("shops/rio/tills/t1/resource.json", r#"{"id": "t1"}"#),
            ("shops/lima/resource.json", r#"{"id": "lima"}"#),
        ],
    );
    for path in ["/shops/rio", "/shops/lima", "/shops/oslo", "/shops/rio/tills/t1"] {
        let id = path.rsplit('/').next().unwrap();
        world.live(path, &format!(r#"{{"id": "{id}"}}"#));
    }
    world
}

#[test]
fn it_must_be_confirmed() {
    let world = shops();
    insta::assert_snapshot!(world.run(&["resource", "delete", "/shops/rio"]), @r"
    exit 2
    --- stdout
    --- stderr
    [ERROR] command execution failed: resource delete cannot be undone; confirm it with --yes.
    ");
    assert!(world.server.log().is_empty());
}

#[rstest]
#[case::one(&["/shops/lima"], &["DELETE /shops/lima"])]
#[case::undeclared(&["/shops/oslo"], &["DELETE /shops/oslo"])]
#[case::children_first(&["/shops/rio", "-r"], &["DELETE /shops/rio/tills/t1", "DELETE /shops/rio"])]
#[case::old_spelling(&["/shops/lima", "--source", "managed-service"], &["DELETE /shops/lima"])]
#[case::another_method(&["/shops/lima", "--http-method", "post"], &["POST /shops/lima"])]
fn on_the_server(#[case] args: &[&str], #[case] writes: &[&str]) {
    let world = shops();
    let run = world.run(&[&["resource", "delete", "-y"], args].concat());
    assert_eq!(world.writes(), writes, "{run}");
    assert!(world.declared("shops/lima/resource.json").is_some());
    if !args.contains(&"--http-method") {
        assert_eq!((run.code, run.stdout.as_str()), (0, ""), "{run}");
        assert!(run.stderr.ends_with("[OK] command executed successfully.\n"), "{run}");
        let deleted = run.stderr.lines().filter(|line| line.starts_with("- ")).count();
        assert_eq!(deleted, writes.len(), "{run}");
    }
}

#[test]
fn members_of_a_collection_are_those_declared() {
    let world = shops();
    assert_eq!(world.run(&["resource", "delete", "/shops", "--yes"]).code, 0);
    assert!(world.observed("/shops/oslo").is_some());
    assert!(world.observed("/shops/rio").is_none());
}

#[test]
fn in_the_repository() {
    let world = shops();
    let run = world.run(&["resource", "delete", "/shops/rio", "--yes", "--source", "repository"]);
    assert_eq!(run.code, 0, "{run}");
    assert!(world.server.log().is_empty());
    assert!(world.declared("shops/rio/resource.yaml").is_none());
    assert!(world.declared("shops/rio/metadata.yaml").is_some());
    assert!(world.declared("shops/rio/tills/t1/resource.json").is_some());
    // Nothing is left to delete.
    assert_eq!(world.run(&["resource", "delete", "/shops/rio", "--yes", "--source", "repository"]).code, 0);
}

#[test]
fn everywhere() {
    let world = shops();
    assert_eq!(world.run(&["resource", "delete", "/shops/rio", "-r", "-y", "--source", "both"]).code, 0);
    assert!(world.observed("/shops/rio").is_none());
    assert!(world.declared("shops/rio/tills/t1/resource.json").is_none());
}

#[test]
fn what_the_server_keeps_stays_declared() {
    let world = shops();
    world.server.fail(Matcher::new("DELETE", "/shops/lima"), 403, 9);
    let run = world.run(&["resource", "delete", "/shops/lima", "-y", "--source", "both"]);
    assert_eq!(run.code, 4, "{run}");
    assert!(world.declared("shops/lima/resource.json").is_some());
}

#[test]
fn nothing_there() {
    insta::assert_snapshot!(shops().run(&["resource", "delete", "/shops/none", "-y"]), @r"
    exit 3
    --- stdout
    --- stderr
    [ERROR] command execution failed: /shops/none not found on the server.
    ");
}

/// An answer without content may mean that the resource does not exist, so nothing states that it still exists.
#[test]
fn nothing_there_on_a_server_that_answers_without_content() {
    let world = shops();
    world.server.fail(Matcher::new("GET", "/shops/none"), 204, 9);
    let delete = ["resource", "delete", "/shops/none", "-y"];
    let run = world.run(&delete);
    assert!(run.code == 3 && run.stderr.contains("state operations.get.absent: {jq: '. == null'}"), "{run}");
    assert!(!run.stderr.contains("still exists"), "{run}");
    world.declare("shops/_/metadata.yaml", "operations: {get: {absent: {jq: '. == null'}}}");
    let run = world.run(&delete);
    assert!(run.code == 3 && run.stderr.contains("/shops/none not found on the server"), "{run}");
}

#[test]
fn what_cannot_be_read_can_still_be_deleted() {
    let world = shops();
    world.server.fail(Matcher::method("GET"), 405, 9);
    assert_eq!(world.run(&["resource", "delete", "/shops/rio", "-y"]).code, 0);
    assert_eq!(world.writes(), ["DELETE /shops/rio"]);
}

#[test]
fn a_name_that_is_no_id() {
    let world = shops();
    world.declare("shops/_/metadata.yaml", "resource: {id: /id, alias: /name}");
    world.live("/shops/u1", r#"{"id": "u1", "name": "ava"}"#);
    assert_eq!(world.run(&["resource", "delete", "/shops/ava", "-y"]).code, 0);
    assert_eq!(world.writes(), ["DELETE /shops/u1"]);
}

#[test]
fn a_method_is_for_the_server() {
    let world = shops();
    let run = world
        .run(&["resource", "delete", "/shops/rio", "-y", "--source", "repository", "--http-method", "POST"]);
    assert_eq!(run.code, 2, "{run}");
    assert!(run.stderr.contains("--http-method"), "{run}");
}

#[test]
fn a_commit_and_no_push() {
    let world = World::with_repository(
        "git: {local: {baseDir: <home>/repo}}",
        &["/shops"],
        &[("shops/lima/resource.json", r#"{"id": "lima"}"#)],
    );
    let commit = world.run(&["repository", "commit", "-m", "first"]);
    assert_eq!(commit.code, 0, "{commit}");
    let delete = ["resource", "delete", "/shops/lima", "-y", "--source", "repository"];
    assert_eq!(world.run(&delete).code, 0);
    let message = crate::git::git(&world.home.path("repo"), &["log", "-1", "--format=%s"]);
    assert_eq!(message, "declarest: delete resource /shops/lima");
    world.declare("stray", "x");
    let run = world.run(&delete);
    assert_eq!(run.code, 2, "{run}");
    assert!(run.stderr.contains("clean git worktree"), "{run}");
}

#[test]
fn a_push_on_request() {
    let world = World::with_repository(
        "git: {local: {baseDir: <home>/repo}, remote: {url: 'file://<home>/origin.git', autoSync: false}}",
        &["/shops"],
        &[("shops/lima/resource.json", r#"{"id": "lima"}"#)],
    );
    let origin = world.home.path("origin.git");
    std::fs::create_dir(&origin).unwrap();
    crate::git::git(&origin, &["init", "--bare", "--initial-branch=main"]);
    assert_eq!(world.run(&["repository", "commit", "-m", "first"]).code, 0);
    let run = world.run(&["resource", "delete", "/shops/lima", "-y", "--push"]);
    assert_eq!(run.code, 2, "{run}");
    assert!(run.stderr.contains("--push needs --source repository or both"), "{run}");
    let run = world.run(&["resource", "delete", "/shops/lima", "-y", "--source", "repository", "--push"]);
    assert_eq!(run.code, 0, "{run}");
    let pushed = crate::git::git(&origin, &["log", "--format=%s", "main"]);
    assert_eq!(pushed, "declarest: delete resource /shops/lima\nfirst");
}

/// Its path has no value for the address.
#[test]
fn a_declared_resource_is_deleted_at_the_address_of_its_payload() {
    let server = ApiServer::rest(&["/devices/eu"], Ids::Stated("name"));
    server.put("/devices/eu/d1", json!({"name": "d1", "code": "c1", "region": "eu"}));
    let path = r#"{path: "./{{/region}}/{{/name}}"}"#;
    let metadata =
        format!("resource: {{id: /code, alias: /name}}\noperations: {{get: {path}, delete: {path}}}\n");
    let place = Place::new(
        server,
        &[
            ("devices/_/metadata.yaml", &metadata),
            ("devices/d1/resource.json", r#"{"name": "d1", "code": "c1", "region": "eu"}"#),
        ],
    );
    let run = place.run(&["resource", "delete", "/devices/d1", "--yes"]);
    assert_eq!((run.code, place.server.writes()), (0, vec!["DELETE /devices/eu/d1 204".to_owned()]), "{run}");
}
