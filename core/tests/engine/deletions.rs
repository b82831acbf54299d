//! Deletions that the caller asks for.

use declarest_core::sync::{Intent, Options, Outcome};
use serde_json::json;

use crate::api_server::{Answer, ApiServer, Ids};
use crate::rest_server::Config;
use crate::world::World;

/// The server does not show the zone of a record, and needs it to delete the record.
#[tokio::test]
async fn the_request_has_the_attributes_that_the_payload_states() {
    let metadata = "
resource: {id: /name, alias: /name}
operations:
  delete: {method: POST, path: /records/remove, body: {name: '{{/name}}', zone: '{{/zone}}'}}
";
    let server = ApiServer::start(&["/records"], |request, store| {
        if !request.is("POST", "/records/remove") {
            return request.rest(store, Ids::Stated("name"));
        }
        if request.body != json!({"name": "www", "zone": "a.example"}) {
            return Answer::json(422, &json!({"error": "unknown record"}));
        }
        store.remove("/records/www");
        Answer::empty(204)
    });
    server.put("/records/www", json!({"name": "www"}));
    let world = World::new(Config::default(), &[("records/_/metadata.yaml", metadata)]);
    world.declare("records/www/resource.json", r#"{"name":"www","zone":"a.example"}"#);
    let options = Options { intent: Intent::Delete, ..Options::default() };
    let report = world.sync_with(server.url(), &[], &options).await;
    assert_eq!(report.outcome, Outcome::Succeeded, "{report:?}");
    assert_eq!(server.get("/records/www"), None);
}
