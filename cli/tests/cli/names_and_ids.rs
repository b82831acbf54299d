//! Servers that assign ids, and accept names in the place of ids.

use rstest::rstest;
use serde_json::json;

use crate::api_server::{Answer, ApiServer, Ids};
use crate::safety::Place;

const BY_ID: &str = "resource: {id: /id, alias: /name}\n";

/// Reads accept the name of a label, writes only its id. A deletion of anything else is answered with 204.
fn labels() -> ApiServer {
    let server = ApiServer::start(&["/labels"], |request, store| {
        let exists = store.get(&request.path).is_some();
        match (request.method.as_str(), request.segments().get(1)) {
            ("GET", Some(name)) if !exists => {
                let mut labels = store.members("/labels").into_iter();
                let found = labels.find(|label| label["name"] == json!(name));
                found.map_or_else(Answer::missing, |label| Answer::json(200, &label))
            }
            ("DELETE", _) if !exists => Answer::empty(204),
            _ => request.rest(store, Ids::Given),
        }
    });
    server.put("/labels/n1", json!({"id": "n1", "name": "bug"}));
    server
}

#[rstest]
#[case::convention("", 5)]
#[case::address("operations: {delete: {path: './{{/id}}'}}\n", 0)]
fn a_deletion_of_a_name_without_effect_is_a_failure(#[case] operations: &str, #[case] code: i32) {
    let metadata = format!("{BY_ID}{operations}");
    let files =
        [("labels/_/metadata.yaml", metadata.as_str()), ("labels/bug/resource.json", r#"{"name": "bug"}"#)];
    let place = Place::new(labels(), &files);
    let run = place.run(&["resource", "delete", "/labels/bug", "--yes", "--source", "both"]);
    assert_eq!(run.code, code, "{run}");
    assert_eq!(place.server.paths().is_empty(), code == 0);
    assert_eq!(place.home.path("repo/labels/bug/resource.json").exists(), code != 0);
    assert_eq!(run.stderr.contains("state the address in operations.delete.path"), code != 0, "{run}");
}
