//! References in deferred attributes: resources may refer to each other.

use serde_json::json;

use crate::api_server::{Answer, ApiServer, Ids, Request, Store};
use crate::safety::Place;

const NAMES: &str = "resource: {id: /id, alias: /name}\n";
const DEFERRED: &str = "resource: {id: /id, alias: /name, deferredAttributes: [/owner]}\n";
const CORE: &str = r#"{"name": "core", "owner": {"user": "{{ref \"/users/ana\" \"/id\"}}"}}"#;
const ANA: &str = r#"{"name": "ana", "team": "{{ref \"/teams/core\" \"/id\"}}"}"#;

/// In the mode `broken`, no user can be created.
fn answer(request: &Request, store: &mut Store) -> Answer {
    if request.is("POST", "/users") && store.mode == "broken" {
        return Answer::json(422, &json!({"error": "no users"}));
    }
    let known = |id: Option<&str>, collection: &str, store: &Store| {
        id.is_none_or(|id| store.get(&format!("/{collection}/{id}")).is_some())
    };
    let is_known = known(request.body["team"].as_str(), "teams", store)
        && known(request.body["owner"]["user"].as_str(), "users", store);
    if !is_known {
        return Answer::json(422, &json!({"error": "refers to nothing"}));
    }
    request.rest(store, Ids::Given)
}

fn place() -> Place {
    let files = [
        ("teams/_/metadata.yaml", DEFERRED),
        ("users/_/metadata.yaml", NAMES),
        ("teams/core/resource.json", CORE),
        ("users/ana/resource.json", ANA),
    ];
    Place::new(ApiServer::start(&["/teams", "/users"], answer), &files)
}

#[test]
fn resources_that_refer_to_each_other_are_created_in_one_run() {
    let place = place();
    let plan = place.run(&["plan", "/"]);
    assert!(plan.code == 0 && plan.stdout.contains("/owner: set after all other writes"), "{plan}");
    let run = place.run(&["resource", "apply", "/", "-r"]);
    assert_eq!(run.code, 0, "{run}");
    assert_eq!(place.server.writes(), ["POST /teams 201", "POST /users 201", "PUT /teams/n7 200"]);
    assert_eq!(place.server.get("/teams/n7").unwrap()["owner"], json!({"user": "n8"}));
    let run = place.run(&["resource", "apply", "/", "-r"]);
    assert_eq!((run.code, place.server.writes().len()), (0, 3), "{run}");
}

/// The run does not report success for a resource without its deferred attribute.
#[test]
fn a_deferred_reference_without_a_value_is_a_failure() {
    let place = place();
    place.server.mode("broken");
    let run = place.run(&["resource", "apply", "/", "-r"]);
    assert_ne!(run.code, 0, "{run}");
    let message = "/teams/core: cannot resolve {{ref \"/users/ana\" \"/id\"}} at \"/owner/user\"";
    assert!(run.stderr.contains(message), "{run}");
    assert_eq!(place.server.paths(), ["/teams/n7"]);
    place.server.mode("");
    let run = place.run(&["resource", "apply", "/", "-r"]);
    assert_eq!(run.code, 0, "{run}");
    assert_eq!(place.server.get("/teams/n7").unwrap()["owner"], json!({"user": "n8"}));
}

/// A create also waits for the values of its other references.
#[test]
fn only_references_in_deferred_attributes_may_lack_values() {
    let place = place();
    let ana = r#"{"name": "ana", "team": "{{ref \"/teams/core\" \"/id\"}}"}"#;
    let core = r#"{"name": "core", "parent": "{{ref \"/teams/all\" \"/id\"}}", "owner": {"user": "{{ref \"/users/ana\" \"/id\"}}"}}"#;
    place.home.write("repo/users/ana/resource.json", ana);
    place.home.write("repo/teams/all/resource.json", r#"{"name": "all"}"#);
    place.home.write("repo/teams/core/resource.json", core);
    let run = place.run(&["resource", "apply", "/", "-r"]);
    assert_eq!(run.code, 0, "{run}");
    assert_eq!(
        place.server.writes(),
        ["POST /teams 201", "POST /teams 201", "POST /users 201", "PUT /teams/n8 200"]
    );
    assert_eq!(
        place.server.get("/teams/n8").unwrap(),
        json!({"id": "n8", "name": "core", "parent": "n7", "owner": {"user": "n9"}})
    );
}

/// The update waits until the other resource exists.
#[test]
fn an_existing_resource_gets_a_deferred_reference_to_a_new_one() {
    let place = place();
    place.server.put("/teams/n1", json!({"id": "n1", "name": "core"}));
    let run = place.run(&["resource", "apply", "/", "-r"]);
    assert_eq!(run.code, 0, "{run}");
    assert_eq!(place.server.writes(), ["POST /users 201", "PUT /teams/n1 200"]);
    assert_eq!(place.server.get("/teams/n1").unwrap()["owner"], json!({"user": "n7"}));
}
