//! Servers that create members together with a new resource.

use rstest::rstest;
use serde_json::json;

use crate::api_server::{ApiServer, Ids};
use crate::safety::Place;

/// The server creates a list together with each board, and accepts lists that share a name.
#[rstest]
#[case::equal(r#"{"name": "To Do"}"#, &["POST /boards 201", "POST /boards/n7/lists 201"])]
#[case::different(
    r#"{"name": "To Do", "color": "red"}"#,
    &["POST /boards 201", "POST /boards/n7/lists 201", "PUT /boards/n7/lists/d1 200"]
)]
fn what_the_server_creates_together_with_a_parent_is_not_created_again(
    #[case] todo: &str,
    #[case] writes: &[&str],
) {
    let server = ApiServer::start(&["/boards", "/boards/*/lists"], |request, store| {
        let answer = request.rest(store, Ids::Given);
        if request.is("POST", "/boards") {
            store.put("/boards/n7/lists/d1", json!({"id": "d1", "name": "To Do"}));
        }
        answer
    });
    let by_id = "resource: {id: /id, alias: /name}\n";
    let files = [
        ("boards/_/metadata.yaml", by_id),
        ("boards/_/lists/_/metadata.yaml", by_id),
        ("boards/b/resource.json", r#"{"name": "b"}"#),
        ("boards/b/lists/To Do/resource.json", todo),
        ("boards/b/lists/Done/resource.json", r#"{"name": "Done"}"#),
    ];
    let place = Place::new(server, &files);
    let run = place.run(&["resource", "apply", "/", "-r"]);
    assert_eq!(run.code, 0, "{run}");
    let mut sent = place.server.writes();
    sent.sort_by_key(|write| write.starts_with("PUT"));
    assert_eq!(sent, writes);
    assert_eq!(place.server.paths(), ["/boards/n7", "/boards/n7/lists/d1", "/boards/n7/lists/n8"]);
    let run = place.run(&["plan", "/", "-r", "--exit-code"]);
    assert_eq!(run.code, 0, "{run}");
}
