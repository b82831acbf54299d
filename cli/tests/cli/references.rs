//! References: `{{ref "/path" "/pointer"}}` in payloads, and `resource()` in the transforms of all operations.

use rstest::rstest;
use serde_json::{Value, json};

use crate::api_server::{Answer, ApiServer, Ids, Request, Store};
use crate::safety::Place;

const NAMES: &str = "resource: {id: /id, alias: /name}\n";
const ANA: &str = r#"{"name": "ana", "role": "{{ref \"/roles/viewer\" \"/id\"}}"}"#;

/// Users with the ids of their roles, which the server assigns.
fn users(files: &[(&str, &str)]) -> Place {
    let metadata = [("_/metadata.yaml", NAMES), ("users/_/metadata.yaml", "resource: {id: /name}\n")];
    Place::new(ApiServer::start(&["/users", "/roles"], answer), &[&metadata, files].concat())
}

fn answer(request: &Request, store: &mut Store) -> Answer {
    let role = request.body["role"].as_str().map(|id| format!("/roles/{id}"));
    if role.is_some_and(|role| store.get(&role).is_none()) {
        return Answer::json(422, &json!({"error": "no such role"}));
    }
    request.rest(store, if request.path.starts_with("/users") { Ids::Stated("name") } else { Ids::Given })
}

fn ana_and_viewer() -> Place {
    users(&[("users/ana/resource.json", ANA), ("roles/viewer/resource.json", r#"{"name": "viewer"}"#)])
}

fn actions(plan: &str) -> Vec<(String, Value)> {
    let plan: Value = serde_json::from_str(plan).unwrap();
    let actions = plan["actions"].as_array().unwrap().iter();
    actions
        .map(|action| (format!("{} {}", action["step"], action["path"]), action["dependsOn"].clone()))
        .collect()
}

#[test]
fn a_reference_to_a_new_resource_is_resolved_in_the_same_run() {
    let place = ana_and_viewer();
    let run = place.run(&["plan", "/", "-r", "-o", "json"]);
    let planned = [
        ("\"create\" \"/roles/viewer\"".to_owned(), Value::Null),
        ("\"create\" \"/users/ana\"".to_owned(), json!(["/roles/viewer"])),
    ];
    assert_eq!((run.code, actions(&run.stdout)), (0, planned.to_vec()), "{run}");
    let run = place.run(&["resource", "apply", "/", "-r"]);
    let writes = ["POST /roles 201", "POST /users 201"].map(String::from).to_vec();
    assert_eq!((run.code, place.server.writes()), (0, writes.clone()), "{run}");
    assert_eq!(place.server.get("/users/ana"), Some(json!({"name": "ana", "role": "n7"})));
    let run = place.run(&["resource", "apply", "/", "-r"]);
    assert_eq!((run.code, place.server.writes()), (0, writes), "{run}");
    let run = place.run(&["resource", "diff", "/", "-r", "-o", "json"]);
    assert_eq!(run.stdout.trim(), "[]", "{run}");
}

#[test]
fn a_resource_that_others_refer_to_is_read_once() {
    let place = ana_and_viewer();
    for user in ["bob", "eve"] {
        place.home.write(&format!("repo/users/{user}/resource.json"), &ANA.replace("ana", user));
    }
    assert_eq!(place.run(&["resource", "apply", "/", "-r"]).code, 0);
    let before = place.server.log().len();
    assert_eq!(place.run(&["resource", "diff", "/", "-r"]).code, 0);
    let mut asked: Vec<String> = place.server.log()[before..].iter().map(ToString::to_string).collect();
    let all = asked.len();
    asked.sort();
    asked.dedup();
    assert_eq!(asked.len(), all, "{asked:?}");
}

#[test]
fn a_value_that_changed_on_the_server_is_drift() {
    let place = ana_and_viewer();
    assert_eq!(place.run(&["resource", "apply", "/", "-r"]).code, 0);
    place.server.remove("/roles/n7");
    let run = place.run(&["plan", "/users/ana", "-o", "json"]);
    assert_eq!(actions(&run.stdout)[0].0, "\"update\" \"/users/ana\"", "{run}");
    let run = place.run(&["resource", "apply", "/", "-r"]);
    assert_eq!(run.code, 0, "{run}");
    assert_eq!(place.server.get("/users/ana"), Some(json!({"name": "ana", "role": "n8"})));
}

#[test]
fn a_reference_without_a_value_fails_its_resource() {
    let place = ana_and_viewer();
    let cases = [
        (
            r#""{{ref \"/roles/editor\" \"/id\"}}""#,
            "the server does not have the resource, and Git does not declare it",
        ),
        (
            r#""{{ref \"/roles/viewer\" \"/uid\"}}""#,
            "the resource has no value there on the server; correct the pointer, or operations.get.transforms if they remove the value",
        ),
        (r#""{{ref \"/roles/viewer\"}}""#, "the reference at \"/role\" is malformed"),
    ];
    place.server.put("/roles/n1", json!({"id": "n1", "name": "viewer"}));
    for (reference, message) in cases {
        place
            .home
            .write("repo/users/ana/resource.json", &format!(r#"{{"name": "ana", "role": {reference}}}"#));
        let run = place.run(&["resource", "apply", "/", "-r"]);
        assert_ne!(run.code, 0, "{run}");
        assert!(run.stderr.contains("/users/ana: ") && run.stderr.contains(message), "{run}");
    }
    assert_eq!(place.server.writes(), Vec::<String>::new());
}

#[test]
fn a_cycle_of_references_is_named() {
    let place = users(&[
        ("users/ana/resource.json", r#"{"name": "ana", "boss": "{{ref \"/users/bob\" \"/name\"}}"}"#),
        ("users/bob/resource.json", r#"{"name": "bob", "boss": "{{ref \"/users/ana\" \"/name\"}}"}"#),
    ]);
    let run = place.run(&["resource", "apply", "/", "-r"]);
    let cycles = ["/users/ana -> /users/bob -> /users/ana", "/users/bob -> /users/ana -> /users/bob"];
    assert_ne!(run.code, 0, "{run}");
    assert!(cycles.iter().any(|cycle| run.stderr.contains(cycle)), "{run}");
    assert_eq!(place.server.writes(), Vec::<String>::new());
}

#[test]
fn a_secret_that_is_referred_to_is_not_shown() {
    let place = ana_and_viewer();
    place.home.write("repo/roles/_/metadata.yaml", "resource: {secretAttributes: [/pin]}\n");
    place.home.write(
        "repo/users/ana/resource.json",
        r#"{"name": "ana", "pin": "{{ref \"/roles/viewer\" \"/pin\"}}"}"#,
    );
    place.server.put("/roles/n1", json!({"id": "n1", "name": "viewer", "pin": "canary-1"}));
    place.server.put("/users/ana", json!({"name": "ana", "pin": "canary-2"}));
    for arguments in [["plan", "/users/ana", "-o", "json"], ["resource", "diff", "/users/ana", "-o"]] {
        let arguments: Vec<_> =
            arguments.into_iter().chain((arguments[0] != "plan").then_some("json")).collect();
        let run = place.run(&arguments);
        assert!(run.stdout.contains("/pin"), "{run}");
        assert!(!format!("{run}").contains("canary"), "{run}");
    }
}

/// A membership is written as a list with the content of a role.
const MEMBERSHIP: &str = r#"resource:
  id: /name
  alias: /name
  remoteCollectionPath: /users/{{/user}}/roles
  dependsOn: ["/roles"]
operations:
  compare: {mode: declared}
  create: {transforms: [{jqExpression: '[resource("/roles/" + .name) | {id, name}]'}]}
  delete: {path: ., transforms: [{jqExpression: '[resource("/roles/" + .name) | {id, name}]'}]}
"#;

fn memberships(request: &Request, store: &mut Store) -> Answer {
    match request.segments()[..] {
        ["users", user, "roles"] if request.method != "GET" => {
            let role = &request.body[0];
            let known = role["id"].as_str().and_then(|id| store.get(&format!("/roles/{id}")));
            if known.is_none_or(|known| known["name"] != role["name"]) {
                return Answer::json(404, &json!({"error": "no such role"}));
            }
            let path = format!("/users/{user}/roles/{}", role["name"].as_str().unwrap());
            if request.method == "DELETE" {
                store.remove(&path);
            } else {
                store.put(&path, role.clone());
            }
            Answer::empty(204)
        }
        _ => answer(request, store),
    }
}

#[test]
fn the_transforms_of_writes_read_other_resources() {
    let files = [
        ("_/metadata.yaml", NAMES),
        ("users/_/metadata.yaml", "resource: {id: /name}\n"),
        ("users/_/roles/_/metadata.yaml", MEMBERSHIP),
        ("users/ana/resource.json", r#"{"name": "ana"}"#),
        ("users/ana/roles/viewer/resource.json", r#"{"name": "viewer"}"#),
        ("roles/viewer/resource.json", r#"{"name": "viewer"}"#),
    ];
    let server = ApiServer::start(&["/users", "/roles", "/users/*/roles"], memberships);
    let place = Place::new(server, &files);
    let run = place.run(&["plan", "/", "-r"]);
    assert!(run.code == 0 && run.stdout.contains("3 to create"), "{run}");
    let run = place.run(&["resource", "apply", "/", "-r"]);
    assert_eq!(run.code, 0, "{run}");
    assert_eq!(place.server.get("/users/ana/roles/viewer"), Some(json!({"id": "n7", "name": "viewer"})));
    let run =
        place.run(&["resource", "delete", "/users/ana/roles/viewer", "-y", "--source", "managed-server"]);
    assert_eq!((run.code, place.server.get("/users/ana/roles/viewer")), (0, None), "{run}");
}

#[test]
fn resources_whose_transforms_need_each_other_are_an_error() {
    let place = users(&[
        (
            "users/_/metadata.yaml",
            "operations: {get: {transforms: [{jqExpression: '. + {b: resource(\"/users/ana\")}'}]}}\n",
        ),
        ("users/ana/resource.json", r#"{"id": "ana", "name": "ana"}"#),
    ]);
    place.server.put("/users/ana", json!({"id": "ana", "name": "ana"}));
    let run = place.run(&["resource", "get", "/users/ana"]);
    assert_ne!(run.code, 0, "{run}");
    assert!(run.stderr.contains("/users/ana: its transforms read it again through resource()"), "{run}");
}

/// The list that the transforms read has a member that the same run creates.
#[rstest]
#[case::create(None, "POST /reviewers 201")]
#[case::update(Some("old"), "PUT /reviewers/n1 200")]
fn the_transforms_of_writes_read_what_the_run_has_created(#[case] title: Option<&str>, #[case] write: &str) {
    let server = ApiServer::rest(&["/repositories", "/reviewers"], Ids::Given);
    if let Some(title) = title {
        server.put("/reviewers/n1", json!({"id": "n1", "name": "dr", "title": title, "repositories": []}));
    }
    let ids = r#"[{jqExpression: '.repositories |= [.[] as $name | resource("/repositories") | .[] | select(.name == $name) | .id]'}]"#;
    let metadata = format!(
        "resource: {{id: /id, alias: /name, dependsOn: [/repositories]}}\noperations:\n  create: {{transforms: {ids}}}\n  \
         update: {{transforms: {ids}}}\n  compare: {{transforms: [{{excludeAttributes: [/repositories]}}]}}\n"
    );
    let place = Place::new(
        server,
        &[
            ("repositories/_/metadata.yaml", "resource: {id: /id, alias: /name}\n"),
            ("repositories/r1/resource.json", r#"{"name": "r1"}"#),
            ("reviewers/_/metadata.yaml", &metadata),
            ("reviewers/dr/resource.json", r#"{"name": "dr", "title": "new", "repositories": ["r1"]}"#),
        ],
    );
    let run = place.run(&["resource", "apply", "/", "-r"]);
    assert_eq!(run.code, 0, "{run}");
    assert_eq!(place.server.writes(), ["POST /repositories 201", write], "{run}");
    let [repository, reviewer] = ["/repositories/", "/reviewers/"].map(|collection| {
        let path = place.server.paths().into_iter().find(|path| path.starts_with(collection)).unwrap();
        place.server.get(&path).unwrap()
    });
    assert_eq!(reviewer["repositories"], json!([repository["id"]]));
}

/// The update that the plan made has the old value. Whether the new one needs a replacement is decided after it.
#[test]
fn a_value_that_the_run_changes_replaces_a_resource() {
    let server = ApiServer::start(&["/o", "/r"], |request, store| {
        let zone = store.get("/r/r1").map(|old| old["zone"].clone());
        let done = request.rest(store, Ids::Stated("id"));
        if let Some(zone) = zone.filter(|_| request.is("PUT", "/r/r1")) {
            let mut updated = store.get("/r/r1").unwrap().clone();
            updated["zone"] = zone;
            store.put("/r/r1", updated);
        }
        done
    });
    server.put("/o/o1", json!({"id": "o1", "zone": "old"}));
    server.put("/r/r1", json!({"id": "r1", "title": "old", "zone": "old"}));
    let place = Place::new(
        server,
        &[
            ("_/metadata.yaml", "resource: {id: /id}\n"),
            ("r/_/metadata.yaml", "resource: {replaceOn: [/zone]}\n"),
            ("o/o1/resource.json", r#"{"id": "o1", "zone": "new"}"#),
            ("r/r1/resource.json", r#"{"id": "r1", "title": "new", "zone": "{{ref \"/o/o1\" \"/zone\"}}"}"#),
        ],
    );
    let run = place.run(&["resource", "apply", "/", "-r"]);
    assert_eq!(run.code, 0, "{run}");
    assert_eq!(place.server.writes()[2..], ["DELETE /r/r1 204", "POST /r 201"], "{run}");
    let run = place.run(&["plan", "/", "--exit-code"]);
    assert_eq!(run.code, 0, "{run}");
}
