//! Metadata that states which answers show or hide the members of a collection.

use rstest::rstest;
use serde_json::{Value, json};

use crate::api_server::{Answer, ApiServer, Ids, Request, Store};
use crate::safety::Place;

/// Vault answers 400 for a mount that does not exist, and for malformed requests.
fn mounts(request: &Request, store: &mut Store) -> Answer {
    if request.method == "GET" && request.path == "/mounts/broken" {
        return Answer::json(400, &json!({"errors": ["unsupported path"]}));
    }
    let answer = request.rest(store, Ids::Stated("name"));
    let is_missing =
        request.method == "GET" && store.get(&request.path).is_none() && request.path != "/mounts";
    if is_missing { Answer::json(400, &json!({"errors": ["No secret engine mount at kv/"]})) } else { answer }
}

#[test]
fn metadata_states_which_answers_mean_absence() {
    let metadata = r#"resource: {id: /name, alias: /name}
operations: {get: {absent: {status: [400], jq: '.errors[0] | startswith("No secret engine")'}}}
"#;
    let files = [
        ("mounts/_/metadata.yaml", metadata),
        ("mounts/kv/resource.json", r#"{"name": "kv"}"#),
        ("mounts/broken/resource.json", r#"{"name": "broken"}"#),
    ];
    let place = Place::new(ApiServer::start(&["/mounts"], mounts), &files);
    let run = place.run(&["resource", "apply", "/mounts/kv"]);
    assert_eq!((run.code, place.server.writes()), (0, vec!["POST /mounts 201".into()]), "{run}");
    let run = place.run(&["resource", "apply", "/mounts/broken"]);
    assert!(run.code != 0 && run.stderr.contains("unsupported path"), "{run}");
    assert_eq!(place.server.writes().len(), 1, "{run}");
}

/// Members that only the list of their collection shows.
fn bindings(request: &Request, store: &mut Store) -> Answer {
    match (request.method.as_str(), request.path.as_str()) {
        ("GET", "/bindings") => request.rest(store, Ids::Stated("name")),
        ("GET", _) => Answer::json(405, &json!({"error": "method not allowed"})),
        _ => request.rest(store, Ids::Stated("name")),
    }
}

#[test]
fn a_member_that_only_a_list_shows_is_created_updated_and_deleted() {
    let metadata = "resource: {id: /name, alias: /name}\noperations: {get: {from: list}}\n";
    let files = [
        ("bindings/_/metadata.yaml", metadata),
        ("bindings/b1/resource.json", r#"{"name": "b1", "to": "x"}"#),
    ];
    let place = Place::new(ApiServer::start(&["/bindings"], bindings), &files);
    for _ in 0..2 {
        let run = place.run(&["resource", "apply", "/bindings/b1"]);
        assert_eq!(run.code, 0, "{run}");
    }
    place.server.put("/bindings/b1", json!({"name": "b1", "to": "y"}));
    let run = place.run(&["resource", "apply", "/bindings/b1"]);
    assert_eq!(run.code, 0, "{run}");
    let run = place.run(&["resource", "delete", "/bindings/b1", "-y", "--source", "managed-server"]);
    assert_eq!(run.code, 0, "{run}");
    assert_eq!(
        place.server.writes(),
        ["POST /bindings 201", "PUT /bindings/b1 200", "DELETE /bindings/b1 204"]
    );
}

/// The server adds a state to each entry, and shows deleted members for some time.
#[test]
fn an_entry_of_a_list_is_transformed_like_a_single_read() {
    let metadata = "resource: {id: /name, alias: /name}
operations: {get: {from: list, transforms: [{jqExpression: 'if .deleted then null else del(.state) end'}]}}
";
    let place =
        Place::new(ApiServer::start(&["/bindings"], bindings), &[("bindings/_/metadata.yaml", metadata)]);
    place.server.put("/bindings/b1", json!({"name": "b1", "to": "x", "state": "up"}));
    place.server.put("/bindings/b2", json!({"name": "b2", "to": "x", "deleted": true}));
    let run = place.run(&["resource", "save", "/bindings/"]);
    assert_eq!(run.code, 0, "{run}");
    let saved: Value = serde_json::from_str(&place.home.read("repo/bindings/b1/resource.json")).unwrap();
    assert_eq!(saved, json!({"name": "b1", "to": "x"}));
    place.home.write("repo/bindings/b2/resource.json", r#"{"name": "b2", "to": "y"}"#);
    let run = place.run(&["plan", "/", "-r"]);
    insta::assert_snapshot!(run.stdout, @r"
    + /bindings/b2
    Plan: 1 to create, 0 to update, 0 to delete, 1 unchanged.
    ");
}

/// The answers to other requests than the list have an envelope, as those of Directus.
#[rstest]
#[case::a_member("[{jqExpression: .data}]")]
#[case::a_member_and_attributes("[{jqExpression: .data.item}, {excludeAttributes: [/state]}]")]
fn an_entry_without_the_envelope_of_an_answer_is_the_resource(#[case] transforms: &str) {
    let metadata = format!(
        "resource: {{id: /id, alias: /name}}\noperations: {{get: {{from: list, transforms: {transforms}}}}}\n"
    );
    let files = [
        ("roles/_/metadata.yaml", metadata.as_str()),
        ("roles/admin/resource.json", r#"{"name": "admin"}"#),
        ("roles/guest/resource.json", r#"{"name": "guest"}"#),
    ];
    let server = ApiServer::start(&["/roles"], |request, store| match request.method.as_str() {
        "GET" if request.path != "/roles" => Answer::json(403, &json!({"error": "forbidden"})),
        _ => request.rest(store, Ids::Given),
    });
    server.put("/roles/n1", json!({"id": "n1", "name": "admin"}));
    let place = Place::new(server, &files);
    for _ in 0..2 {
        let run = place.run(&["resource", "apply", "/", "-r"]);
        assert_eq!((run.code, place.server.all().len()), (0, 2), "{run}");
    }
}

/// The server looks at the credentials only if the address has an id.
#[rstest]
#[case(&["resource", "get", "/users/amy"])]
#[case(&["resource", "save", "/users/amy"])]
fn what_rejected_credentials_may_hide_does_not_count_as_absent(#[case] args: &[&str]) {
    let server = ApiServer::start(&["/users"], |request, _| match request.path.as_str() {
        "/users" => Answer::json(403, &json!({"detail": "Invalid username/password."})),
        _ => Answer::missing(),
    });
    let place = Place::new(server, &[("users/_/metadata.yaml", "resource: {id: /id, alias: /username}")]);
    let run = place.run(args);
    assert!(run.code == 4 && run.stderr.contains("403"), "{run}");
}

/// The server answers to each address with the same resource.
#[rstest]
#[case(&["resource", "list", "/svcs"])]
#[case(&["resource", "save", "/svcs/"])]
#[case(&["import", "/"])]
fn members_of_which_each_read_shows_another_one_are_not_saved(#[case] args: &[&str]) {
    let server = ApiServer::start(&["/svcs"], |request, store| match request.segments()[..] {
        ["svcs", _] => Answer::json(200, &json!({"name": "a", "size": 3})),
        _ => request.rest(store, Ids::Stated("name")),
    });
    for name in ["a", "b"] {
        server.put(&format!("/svcs/{name}"), json!({"name": name}));
    }
    let metadata = "resource: {id: /name, alias: /name}\noperations: {list: {mode: names}}";
    let place = Place::new(server, &[("svcs/_/metadata.yaml", metadata)]);
    let run = place.run(args);
    let shown = format!("{}{}", run.stdout, run.stderr);
    assert!(run.code != 0 && shown.contains("another resource at the address with the id b"), "{run}");
    assert!(!place.home.path("repo/svcs/b").exists(), "{run}");
}

/// The address of a member is below the root, and the collection has a name only in the repository.
#[rstest]
fn an_address_with_only_the_id_does_not_mean_the_collection(#[values("id", "name")] attribute: &str) {
    let server = ApiServer::start(&[""], |request, store| match request.path.as_str() {
        "/_all" => Answer::json(200, &json!(["shop", "till"])),
        path => store.get(path).map_or_else(Answer::missing, |found| Answer::json(200, found)),
    });
    for name in ["shop", "till"] {
        server.put(&format!("/{name}"), json!({"name": name}));
    }
    let metadata = format!(
        "resource: {{id: /name, alias: /name, remoteCollectionPath: /}}
operations: {{list: {{path: /_all, mode: names}}, get: {{path: '/{{{{/{attribute}}}}}'}}}}"
    );
    let place = Place::new(server, &[("dbs/_/metadata.yaml", &metadata)]);
    let run = place.run(&["resource", "save", "/dbs/"]);
    assert_eq!(run.code, 0, "{run}");
    let read = |path: &str| std::fs::read_to_string(place.home.path(path)).unwrap_or_default();
    assert!(read("repo/dbs/till/resource.json").contains(r#""name": "till""#), "{run}");
}

/// A wrong address of the members does not count as their absence.
#[rstest]
#[case(&["resource", "list", "/svcs"])]
#[case(&["resource", "save", "/svcs/"])]
#[case(&["import", "/"])]
fn a_list_whose_members_cannot_be_read_is_a_failure(#[case] args: &[&str]) {
    let server = ApiServer::start(&["/svcs"], |request, store| request.rest(store, Ids::Stated("name")));
    server.put("/svcs/a", json!({"name": "a"}));
    let metadata = "resource: {id: /name, alias: /name}
operations: {list: {mode: names}, get: {path: '/wrong/{{/id}}'}}";
    let place = Place::new(server, &[("svcs/_/metadata.yaml", metadata)]);
    let run = place.run(args);
    assert_eq!(run.code, 2, "{run}");
    let shown = format!("{}{}", run.stdout, run.stderr);
    assert!(shown.contains("shows members (1), but the server answers"), "{run}");
    assert!(shown.contains("operations.get.path or resource.id in svcs/_/metadata.yaml"), "{run}");
}
