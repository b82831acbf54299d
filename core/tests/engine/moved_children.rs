//! Resources that Git moves below another parent, on servers that address them without the parent.

use declarest_core::sync::{Options, Outcome};
use serde_json::json;

use crate::api_server::{Answer, ApiServer, Ids, Request, Store};
use crate::rest_server::Config;
use crate::world::World;

const ROUTES: &str = "
resource: {id: /id, alias: /id}
operations:
  get: {path: '/routes/{{/id}}'}
  update: {path: '/routes/{{/id}}'}
  delete: {path: '/routes/{{/id}}'}
  compare: {mode: declared}
";

/// Routes have addresses of their own, and are deleted together with their host.
fn answer(request: &Request, store: &mut Store) -> Answer {
    let host = request.path.split('/').nth(2).unwrap_or_default().to_owned();
    let of_host = |store: &Store| {
        let routes = store.members("/routes").into_iter();
        routes.filter(|route| route["host"] == host.as_str()).collect::<Vec<_>>()
    };
    match (request.method.as_str(), request.segments().as_slice()) {
        ("POST", ["hosts", _, "routes"]) => {
            let mut route = request.body.clone();
            route["host"] = json!(host);
            let path = format!("/routes/{}", route["id"].as_str().unwrap_or_default());
            store.put(&path, route.clone());
            Answer::json(201, &route)
        }
        ("GET", ["hosts", _, "routes"]) => Answer::json(200, &json!(of_host(store))),
        ("DELETE", ["hosts", _]) => {
            for route in of_host(store) {
                store.remove(&format!("/routes/{}", route["id"].as_str().unwrap_or_default()));
            }
            store.remove(&request.path);
            Answer::empty(204)
        }
        _ => request.rest(store, Ids::Stated("id")),
    }
}

#[tokio::test]
async fn what_a_server_deletes_together_with_a_renamed_parent_is_created_in_the_same_run() {
    let server = ApiServer::start(&["/hosts", "/routes"], answer);
    server.put("/hosts/old", json!({"id": "old"}));
    server.put("/routes/a", json!({"id": "a", "host": "old"}));
    let world = World::new(Config::default(), &[("hosts/_/routes/_/metadata.yaml", ROUTES)]);
    world.declare("hosts/new/resource.json", r#"{"id":"new"}"#);
    world.declare("hosts/new/routes/a/resource.json", r#"{"id":"a"}"#);
    let candidates = [("/hosts/old", r#"{"id":"old"}"#), ("/hosts/old/routes/a", r#"{"id":"a"}"#)];
    let report = world.sync_with(server.url(), &candidates, &Options::default()).await;
    assert_eq!(report.outcome, Outcome::Succeeded, "{report:?}");
    assert_eq!(server.get("/routes/a"), Some(json!({"id": "a", "host": "new"})), "{:?}", server.writes());
    assert_eq!((report.stats.created, report.stats.pruned, report.stats.unchanged), (2, 1, 0), "{report:?}");
}
