//! Resources that the repository declares in a directory with another name than theirs, below a parent whose id the server
//! assigned.

use rstest::rstest;
use serde_json::{Value, json};

use crate::api_server::{Answer, ApiServer, Ids, Request, Store};
use crate::safety::Place;

const BY_NAME: &str = "resource: {id: /id, alias: /name}";
const BY_ID_OF_THE_PARENT: &str =
    "resource: {id: /id, alias: /name, remoteCollectionPath: '/groups/{{/ids/group}}/members'}";

fn answer(request: &Request, store: &mut Store) -> Answer {
    match request.segments()[..] {
        ["groups", "1", "members"] if request.method == "GET" => {
            Answer::json(200, &json!(store.members("/groups/1/members")))
        }
        _ => request.rest(store, Ids::Given),
    }
}

fn place(members: &str) -> Place {
    let server = ApiServer::start(&["/groups", "/groups/1/members"], answer);
    server.put("/groups/1", json!({"id": 1, "name": "europe"}));
    server.put("/groups/1/members/7", json!({"id": 7, "name": "ana"}));
    server.put("/groups/1/members/8", json!({"id": 8, "name": "eva"}));
    let files = [
        ("groups/_/metadata.yaml", BY_NAME),
        ("groups/europe/resource.json", r#"{"name": "europe"}"#),
        ("groups/_/members/_/metadata.yaml", members),
        ("groups/europe/members/second/resource.json", r#"{"name": "ana"}"#),
    ];
    Place::new(server, &files)
}

/// Another file for the same resource would fail in each later run.
#[rstest]
#[case::import(BY_NAME, &["import"], "")]
#[case::import_by_id(BY_ID_OF_THE_PARENT, &["import"], "")]
#[case::collection(
    BY_NAME,
    &["resource", "save", "/groups/europe/members/"],
    "/groups/europe/members/ana not saved: another file declares this resource"
)]
#[case::collection_by_id(
    BY_ID_OF_THE_PARENT,
    &["resource", "save", "/groups/europe/members/"],
    "/groups/europe/members/ana not saved: another file declares this resource"
)]
fn only_the_others_are_saved(#[case] members: &str, #[case] command: &[&str], #[case] note: &str) {
    let place = place(members);
    let run = place.run(command);
    assert_eq!(run.code, 0, "{run}");
    assert!(run.stderr.contains(note), "{run}");
    assert!(place.has("groups/europe/members/eva") && !place.has("groups/europe/members/ana"), "{run}");
    let run = place.run(&["plan", "/", "--exit-code"]);
    assert_eq!(run.code, 0, "{run}");
}

#[rstest]
#[case::below(BY_NAME, "/groups/europe/members/ana", "/groups/europe/members/second")]
#[case::by_id(BY_ID_OF_THE_PARENT, "/groups/europe/members/7", "/groups/europe/members/second")]
#[case::at_the_top(BY_NAME, "/groups/1", "/groups/europe")]
fn one_resource_is_not_saved_twice(#[case] members: &str, #[case] path: &str, #[case] other: &str) {
    let place = place(members);
    let run = place.run(&["resource", "save", path]);
    assert_eq!(run.code, 2, "{run}");
    assert!(run.stderr.contains(&format!("{path} not saved: {other} declares this resource")), "{run}");
    assert!(!place.has(path.trim_start_matches('/')), "{run}");
}

/// The list is one resource, or its entries may be parts of others.
#[rstest]
#[case::as_one_resource(BY_NAME, &["resource", "save", "/groups/europe/members", "--mode", "single"], "members/resource.json")]
#[case::parts(
    "resource: {id: /id, alias: /name, onRemove: keep}",
    &["resource", "save", "/groups/europe/members/ana"],
    "members/ana/resource.json"
)]
#[case::patch(
    "resource: {id: /id, alias: /name}\noperations: {update: {method: PATCH}}",
    &["resource", "save", "/groups/europe/members/ana"],
    "members/ana/resource.json"
)]
fn all_is_saved(#[case] members: &str, #[case] command: &[&str], #[case] file: &str) {
    let place = place(members);
    let run = place.run(command);
    assert_eq!(run.code, 0, "{run}");
    assert!(place.home.read(&format!("repo/groups/europe/{file}")).contains("ana"), "{run}");
}

#[test]
fn a_wildcard_saves_the_others() {
    let place = place(BY_NAME);
    place.server.put("/groups/2", json!({"id": 2, "name": "asia"}));
    place.home.write("repo/groups/eu/resource.json", r#"{"name": "europe"}"#);
    std::fs::remove_file(place.home.path("repo/groups/europe/resource.json")).unwrap();
    let run = place.run(&["resource", "save", "/groups/_"]);
    assert_eq!(run.code, 0, "{run}");
    assert!(run.stderr.contains("/groups/europe not saved: /groups/eu declares this resource"), "{run}");
    assert!(place.has("groups/asia"), "{run}");
}

#[test]
fn it_is_not_undeclared() {
    let place = place(BY_NAME);
    let run = place.run(&["resource", "list", "/groups/europe/members", "--undeclared"]);
    let listed: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(listed, json!([{"id": 8, "name": "eva"}]), "{run}");
}
