//! Servers whose addresses end with a slash, such as those made with Django.

use serde_json::json;

use crate::api_server::{Answer, ApiServer, Ids, Request};
use crate::safety::Place;

const OPENAPI: &str = "openapi: 3.0.3
paths:
  /api/sites/:
    get: {}
    post: {requestBody: {content: {application/json: {schema: {properties: {id: {readOnly: true}, name: {}}}}}}}
  /api/sites/{id}/:
    get: {responses: {'200': {content: {application/json: {schema: {properties: {id: {}, name: {}}}}}}}}
    put: {}
    delete: {}
";

/// Sites. A read without the slash is redirected, and a write without it fails.
fn sites() -> ApiServer {
    ApiServer::start(&["/api/sites"], |request, store| match request.path.strip_suffix('/') {
        Some(path) => Request { path: path.to_owned(), ..request.clone() }.rest(store, Ids::Given),
        None if request.is_write() => Answer::json(500, &json!({"error": "the URL does not end in a slash"})),
        None => Answer::redirect(&format!("{}/", request.path)),
    })
}

#[test]
fn paths_of_operations_keep_their_slash() {
    let site = ("api/sites/rio/resource.json", r#"{"name": "rio"}"#);
    let place = Place::with_openapi(sites(), OPENAPI, &[site]);
    let run = place.run(&["resource", "metadata", "infer", "/api/sites/", "--apply", "-o", "yaml"]);
    assert_eq!(run.code, 0, "{run}");
    let run = place.run(&["resource", "apply", "/", "-r"]);
    assert_eq!((run.code, place.server.paths()), (0, vec!["/api/sites/n7".to_owned()]), "{run}");
    let run = place.run(&["plan", "/", "-r", "--exit-code"]);
    assert_eq!(run.code, 0, "{run}");
    place.home.write("repo/api/sites/rio/resource.json", r#"{"name": "rio", "open": true}"#);
    let run = place.run(&["resource", "apply", "/", "-r"]);
    assert_eq!(run.code, 0, "{run}");
    assert_eq!(place.server.get("/api/sites/n7").unwrap()["open"], true);
    let run = place.run(&["resource", "list", "/api/sites/", "-o", "name"]);
    assert_eq!(run.stdout, "/api/sites/rio\n", "{run}");
    let run = place.run(&["resource", "delete", "/api/sites/rio", "--yes"]);
    assert_eq!((run.code, place.server.paths()), (0, vec![]), "{run}");
    let asked = place.server.log();
    assert!(asked.iter().all(|request| request.path.ends_with('/')), "{asked:?}");
}
