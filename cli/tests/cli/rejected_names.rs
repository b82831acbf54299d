//! Servers that assign ids and reject a name in the place of one, with another answer than 404.

use rstest::rstest;
use serde_json::{Value, json};

use crate::api_server::{Answer, ApiServer, Ids, Store};
use crate::safety::Place;

const BY_ID: &str = "resource: {id: /id, alias: /name}\n";

fn is_id(segment: &str) -> bool {
    segment.strip_prefix('n').is_some_and(|number| number.parse::<u32>().is_ok())
}

/// Shops with tills. The server answers `status` to a path that has a name in the place of an id.
fn shops(status: u16) -> ApiServer {
    ApiServer::start(&["/shops", "/shops/*/tills"], move |request, store| {
        let ids = request.segments();
        if ids.iter().skip(1).step_by(2).all(|segment| is_id(segment)) {
            request.rest(store, Ids::Given)
        } else {
            Answer::json(status, &json!({"error": "not an id"}))
        }
    })
}

fn place(server: ApiServer, shop: &Value) -> Place {
    let files = [
        ("shops/_/metadata.yaml", BY_ID),
        ("shops/_/tills/_/metadata.yaml", BY_ID),
        ("shops/rio/resource.json", &shop.to_string()),
    ];
    Place::new(server, &files)
}

#[rstest]
#[case::bad_request(400)]
#[case::method_not_allowed(405)]
#[case::unprocessable(422)]
fn the_list_decides_if_the_server_rejects_a_name(#[case] status: u16) {
    let place = place(shops(status), &json!({"name": "rio"}));
    place.home.write("repo/shops/rio/tills/t1/resource.json", r#"{"name": "t1"}"#);
    let run = place.run(&["resource", "apply", "/", "-r"]);
    assert_eq!(run.code, 0, "{run}");
    assert_eq!(place.server.paths(), ["/shops/n7", "/shops/n7/tills/n8"]);
    let run = place.run(&["plan", "/", "-r", "--exit-code"]);
    assert_eq!(run.code, 0, "{run}");
    let run = place.run(&["resource", "list", "/shops/rio/tills/", "-o", "name"]);
    assert_eq!(run.stdout, "/shops/rio/tills/t1\n", "{run}");
    place.home.write("repo/shops/rio/tills/t1/resource.json", r#"{"name": "t1", "open": true}"#);
    let run = place.run(&["resource", "apply", "/", "-r"]);
    assert_eq!(run.code, 0, "{run}");
    assert_eq!(place.server.get("/shops/n7/tills/n8"), Some(json!({"id": "n8", "name": "t1", "open": true})));
    let run = place.run(&["resource", "delete", "/shops/rio/tills/t1", "--yes"]);
    assert_eq!(run.code, 0, "{run}");
    assert_eq!(place.server.paths(), ["/shops/n7"]);
}

/// A server whose database does not accept a name in the place of a number. Below a parent that is created in the same
/// run, the answer is a failure of the server, so the next run creates the member.
#[test]
fn the_list_decides_if_the_server_fails_for_a_name() {
    let place = place(shops(500), &json!({"name": "rio"}));
    let run = place.run(&["resource", "apply", "/", "-r"]);
    assert_eq!((run.code, place.server.paths()), (0, vec!["/shops/n7".to_owned()]), "{run}");
    place.home.write("repo/shops/rio/resource.json", r#"{"name": "rio", "tier": "gold"}"#);
    place.home.write("repo/shops/rio/tills/t1/resource.json", r#"{"name": "t1"}"#);
    let run = place.run(&["resource", "apply", "/", "-r"]);
    assert_eq!(run.code, 0, "{run}");
    assert_eq!(place.server.get("/shops/n7"), Some(json!({"id": "n7", "name": "rio", "tier": "gold"})));
    assert_eq!(place.server.paths(), ["/shops/n7", "/shops/n7/tills/n8"]);
    let run = place.run(&["plan", "/", "-r", "--exit-code"]);
    assert_eq!(run.code, 0, "{run}");
    let run = place.run(&["resource", "list", "/shops/rio/tills/", "-o", "name"]);
    assert_eq!(run.stdout, "/shops/rio/tills/t1\n", "{run}");
}

/// A list that may have further pages, and a stated id.
#[rstest]
#[case::page(400, 20, json!({"name": "rio"}), "20 entries, which is a usual page size")]
#[case::id(400, 1, json!({"name": "rio", "id": "old"}), "not an id")]
#[case::page_after_a_fault(500, 20, json!({"name": "rio"}), "20 entries, which is a usual page size")]
#[case::id_after_a_fault(500, 1, json!({"name": "rio", "id": "old"}), "not an id")]
fn a_rejection_alone_does_not_prove_absence(
    #[case] status: u16,
    #[case] others: u32,
    #[case] shop: Value,
    #[case] reason: &str,
) {
    let place = place(shops(status), &shop);
    for other in 100..100 + others {
        place.server.put(&format!("/shops/n{other}"), json!({"id": format!("n{other}"), "name": "other"}));
    }
    let run = place.run(&["resource", "apply", "/", "-r"]);
    assert_ne!(run.code, 0, "{run}");
    assert!(run.stderr.contains(reason), "{run}");
    assert_eq!(place.server.writes(), Vec::<String>::new());
}

/// The update is the request that creates resources, and its body lacks the id.
#[rstest]
#[case::shows_the_resource(true)]
#[case::shows_nothing(false)]
fn an_update_that_creates_another_resource_is_a_failure(#[case] shows: bool) {
    let server = ApiServer::start(&["/shops"], move |request, store: &mut Store| {
        let answer = request.rest(store, Ids::Given);
        if request.method == "POST" && !shows { Answer::empty(201) } else { answer }
    });
    server.put("/shops/n1", json!({"id": "n1", "name": "rio", "tier": "free"}));
    let place = place(server, &json!({"name": "rio", "tier": "gold"}));
    place.home.write(
        "repo/shops/_/metadata.yaml",
        &format!("{BY_ID}operations: {{update: {{method: POST, path: .}}}}\n"),
    );
    let run = place.run(&["resource", "apply", "/shops/rio"]);
    assert_eq!(run.code, 5, "{run}");
    assert!(run.stderr.contains("have its names (ids: n1, n7)"), "{run}");
    assert!(run.stderr.contains("operations.update.transforms"), "{run}");
    let run = place.run(&["resource", "apply", "/shops/rio"]);
    assert_eq!((run.code, place.server.writes().len()), (5, 1), "{run}");
}

/// The server answers null for a missing member, and 400 below a parent that does not exist.
#[test]
fn absence_can_have_several_answers() {
    let server = ApiServer::start(&[], |request, store| {
        if request.method != "GET" {
            store.put(&request.path, request.body.clone());
            return Answer::empty(200);
        }
        match (store.get(&request.path), store.get("/config/http")) {
            (Some(shown), _) => Answer::json(200, shown),
            (None, Some(_)) => Answer::json(200, &Value::Null),
            (None, None) => Answer::json(400, &json!({"error": "invalid traversal path"})),
        }
    });
    let metadata = "resource: {remoteCollectionPath: /config/http}
operations:
  get: {absent: {status: [200, 400], jq: '. == null or (.error | startswith(\"invalid traversal\"))'}}
  create: {method: PUT, path: './{{/id}}'}
";
    let files = [("sites/_/metadata.yaml", metadata), ("sites/main/resource.json", r#"{"port": 80}"#)];
    let place = Place::new(server, &files);
    for parent in [None, Some(json!({}))] {
        if let Some(parent) = parent {
            place.server.remove("/config/http/main");
            place.server.put("/config/http", parent);
        }
        let run = place.run(&["resource", "apply", "/", "-r"]);
        assert_eq!(run.code, 0, "{run}");
        assert_eq!(place.server.get("/config/http/main"), Some(json!({"port": 80})));
    }
}

/// The id in the file is stale, so the resource with its name may be another one.
#[test]
fn a_resource_with_another_id_is_not_deleted() {
    let place = place(shops(422), &json!({"name": "rio", "id": "n1"}));
    place.server.put("/shops/n2", json!({"id": "n2", "name": "rio"}));
    let run = place.run(&["resource", "delete", "/shops/rio", "--yes"]);
    assert_eq!(run.code, 5, "{run}");
    assert!(run.stderr.contains("states the id n1, but the resource with its name has the id n2"), "{run}");
    assert_eq!(place.server.writes(), Vec::<String>::new());
}

/// Without a condition, no resource would exist.
#[test]
fn success_alone_does_not_state_absence() {
    let server = ApiServer::rest(&["/sites"], Ids::Stated("id"));
    let metadata = "operations:\n  get: {absent: {status: [200]}}\n";
    let files = [("sites/_/metadata.yaml", metadata), ("sites/main/resource.json", r#"{"id": "main"}"#)];
    let run = Place::new(server, &files).run(&["plan", "/", "-r"]);
    assert_eq!(run.code, 2, "{run}");
    assert!(run.stderr.contains("operations.get.absent.status: 200 is not allowed"), "{run}");
    assert!(run.stderr.contains("or 2xx together with jq"), "{run}");
}
