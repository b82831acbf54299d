//! `resource list --undeclared` and `--crawl`.

use rstest::rstest;
use serde_json::json;

use crate::api_server::{Answer, ApiServer, Ids};
use crate::rest_server::Matcher;
use crate::safety::Place;
use crate::world::World;

/// Rio and its till t1 are declared, and Lima under its former name; Oslo and the till t2 are not.
fn shops() -> World {
    let world = World::new(
        &["/shops", "/shops/*/tills"],
        &[
            ("shops/_/metadata.yaml", "resource: {id: /id, alias: /name, secretAttributes: [/pin]}\n"),
            ("shops/_/tills/_/metadata.yaml", "resource: {id: /id}\n"),
            ("shops/rio/resource.yaml", "id: '1'\nname: rio\n"),
            ("shops/lima-old/resource.yaml", "id: '2'\nname: lima-old\n"),
            ("shops/rio/tills/t1/resource.yaml", "id: t1\n"),
        ],
    );
    world.live("/shops/1", r#"{"id": "1", "name": "rio"}"#);
    world.live("/shops/2", r#"{"id": "2", "name": "lima"}"#);
    world.live("/shops/3", r#"{"id": "3", "name": "oslo", "pin": "canary"}"#);
    world.live("/shops/1/tills/t1", r#"{"id": "t1"}"#);
    world.live("/shops/1/tills/t2", r#"{"id": "t2"}"#);
    world
}

#[rstest]
#[case::collection(&["/shops"], "/shops/oslo\n")]
#[case::below_a_resource(&["/shops/rio/tills"], "/shops/rio/tills/t2\n")]
#[case::everything(&["/", "--crawl"], "/shops/oslo\n/shops/rio/tills/t2\n")]
#[case::excluded(&["/", "--crawl", "--exclude", "oslo"], "/shops/rio/tills/t2\n")]
fn what_git_does_not_have(#[case] args: &[&str], #[case] expected: &str) {
    let run = shops().run(&[&["resource", "list", "--undeclared", "-o", "text"], args].concat());
    assert_eq!(run.to_string(), format!("exit 0\n--- stdout\n{expected}--- stderr\n"));
}

#[test]
fn for_programs() {
    insta::assert_snapshot!(shops().run(&["resource", "list", "--undeclared", "/shops"]), @r#"
    exit 0
    --- stdout
    [
      {
        "id": "3",
        "name": "oslo",
        "pin": "{{secret .}}"
      }
    ]
    --- stderr
    "#);
}

#[test]
fn crawl_lists_all_collections() {
    insta::assert_snapshot!(shops().run(&["resource", "list", "--crawl", "/", "-o", "text"]), @r"
    exit 0
    --- stdout
    /shops/lima
    /shops/oslo
    /shops/rio
    /shops/rio/tills/t1
    /shops/rio/tills/t2
    --- stderr
    ");
}

#[test]
fn a_collection_that_cannot_be_listed_is_reported_after_the_others() {
    let world = shops();
    world.server.fail(Matcher::path("/shops/1/tills"), 500, 99);
    insta::assert_snapshot!(world.run(&["resource", "list", "--crawl", "/", "-o", "text"]), @r#"
    exit 6
    --- stdout
    /shops/lima
    /shops/oslo
    /shops/rio
    --- stderr
    /shops/_/tills: GET /shops/1/tills: remote request failed with status 500: {"error":"injected failure"}
    collections that could not be listed: 1
    hint: "declarest context check dev" shows which parts of the context can be reached
    "#);
}

#[test]
fn a_declaration_that_cannot_be_read_is_not_ignored() {
    let world = shops();
    world.declare("shops/broken/resource.json", "{");
    insta::assert_snapshot!(world.run(&["resource", "list", "--undeclared", "/shops"]), @r#"
    exit 2
    --- stdout
    --- stderr
    cannot determine whether a file at another path declares /shops/oslo: a declared resource that may be the same one cannot be compared: "shops/broken/resource.json": cannot decode json, line 1, column 1: EOF while parsing an object
    "#);
}

#[rstest]
#[case(&["--undeclared"])]
#[case(&["--crawl"])]
fn needs_the_server(#[case] args: &[&str]) {
    let run = shops().run(&[&["resource", "list", "/shops", "--source", "repository"], args].concat());
    assert_eq!(run.code, 2, "{run}");
    assert!(run.stderr.contains("need --source managed-server"), "{run}");
}

#[test]
fn absent_collections_and_servers() {
    let mut world = shops();
    assert_eq!(world.run(&["resource", "list", "--undeclared", "/none"]).code, 3);
    world.server.require_header("K", "other");
    assert_eq!(world.run(&["resource", "list", "--undeclared", "/shops"]).code, 4);
    world.server.stop();
    assert_eq!(world.run(&["resource", "list", "--undeclared", "/shops"]).code, 6);
}

/// Folders, which are resources and have members at every level.
#[rstest]
#[case::by_the_repository("web/_/metadata.yaml", "selector: {descendants: true}\n", "/web/docs/new\n")]
#[case::by_metadata("web/_/_/metadata.yaml", "", "/web/docs/new\n/web/docs/sub\n")]
fn members_of_members_are_listed(#[case] file: &str, #[case] selector: &str, #[case] undeclared: &str) {
    let server = ApiServer::start(&["/web", "/web/docs"], |request, store| {
        match request.path.strip_suffix("/items") {
            Some(folder) => Answer::json(200, &store.members(folder).into()),
            None => request.rest(store, Ids::Stated("id")),
        }
    });
    for path in ["/web/docs", "/web/docs/sub", "/web/docs/new"] {
        server.put(path, json!({"id": path.rsplit('/').next()}));
    }
    let rules = "resource: {id: /id, alias: /id}\noperations: {list: {path: ./items}}\n";
    let place = Place::new(
        server,
        &[
            ("web/_/metadata.yaml", rules),
            (file, &format!("{selector}{rules}")),
            ("web/docs/resource.json", r#"{"id": "docs"}"#),
        ],
    );
    if !selector.is_empty() {
        place.home.write("repo/web/docs/sub/resource.json", r#"{"id": "sub"}"#);
    }
    let run = place.run(&["resource", "list", "/", "--crawl", "--undeclared", "-o", "text"]);
    assert_eq!((run.code, run.stdout.as_str()), (0, undeclared), "{run}");
    assert_eq!(place.run(&["import"]).code, 0);
    assert!(place.has("web/docs/new/resource.json"));
}

/// Metadata of collections below members does not make the members collections.
#[test]
fn members_without_members_are_not_listed() {
    let server = ApiServer::rest(&["/shops", "/shops/*/tills"], Ids::Stated("id"));
    server.put("/shops/rio", json!({"id": "rio", "tags": [{"id": "t1"}]}));
    server.put("/shops/rio/tills/t", json!({"id": "t"}));
    let rules = "resource: {id: /id}\n";
    let place = Place::new(
        server,
        &[
            ("shops/_/metadata.yaml", rules),
            ("shops/_/_/_/metadata.yaml", rules),
            ("shops/_/tills/_/metadata.yaml", rules),
        ],
    );
    let run = place.run(&["import"]);
    assert!(run.code == 0 && run.stdout.contains("Import: 2 resources saved"), "{run}");
    assert!(!place.has("shops/rio/t1/resource.json"), "{run}");
}
