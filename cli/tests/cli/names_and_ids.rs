//! Servers that assign ids, and either accept names in the place of ids or have one space of ids for all collections.

use rstest::rstest;
use serde_json::{Value, json};

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

/// An update is not sent again to the id, and its error has the advice.
#[rstest]
#[case::convention("", 3)]
#[case::address("operations: {update: {path: './{{/id}}'}}\n", 0)]
fn an_update_of_a_name_has_an_advice(#[case] operations: &str, #[case] code: i32) {
    let metadata = format!("{BY_ID}{operations}");
    let files = [
        ("labels/_/metadata.yaml", metadata.as_str()),
        ("labels/bug/resource.json", r#"{"name": "bug", "color": "red"}"#),
    ];
    let place = Place::new(labels(), &files);
    let run = place.run(&["resource", "apply", "/labels/bug"]);
    assert_eq!(run.code, code, "{run}");
    let advice = "state the address in operations.update.path, for example \"./{{/id}}\"";
    assert_eq!(run.stderr.contains(advice), code != 0, "{run}");
}

/// The list does not show what was created, for example because the credentials have expired and the server treats the
/// client as a guest.
#[test]
fn what_its_list_does_not_show_is_created_once() {
    let server = ApiServer::start(&["/labels"], |request, store| {
        if request.is("GET", "/labels") {
            return Answer::json(200, &json!([]));
        }
        request.rest(store, Ids::Given)
    });
    let files = [
        ("labels/_/metadata.yaml", BY_ID),
        ("labels/bug/resource.json", r#"{"name": "bug"}"#),
        ("labels/doc/resource.json", r#"{"name": "doc"}"#),
    ];
    let place = Place::new(server, &files);
    for _ in 0..2 {
        let run = place.run(&["resource", "apply", "/labels"]);
        assert!(run.code != 0 && run.stderr.contains("created with the id n"), "{run}");
        assert_eq!(place.server.paths(), ["/labels/n7", "/labels/n8"]);
    }
}

/// Teams of organisations. A team is addressed without its organisation.
fn teams(members: &[(&str, &str)]) -> ApiServer {
    let server = ApiServer::start(&["/teams"], |request, store| {
        let organisation = match request.segments()[..] {
            ["orgs", name, "teams"] => name.to_owned(),
            _ => return request.rest(store, Ids::Given),
        };
        if request.method == "GET" {
            let mut teams = store.members("/teams");
            teams.retain(|team| team["org"] == json!(organisation));
            return Answer::json(200, &Value::Array(teams));
        }
        let id = store.next_id();
        let mut team = request.body.clone();
        (team["id"], team["org"]) = (json!(id), json!(organisation));
        store.put(&format!("/teams/{id}"), team.clone());
        Answer::json(201, &team)
    });
    for (id, organisation) in members {
        server.put(&format!("/teams/{id}"), json!({"id": id, "org": organisation, "name": "devs"}));
    }
    server
}

fn organisations(server: ApiServer, team: &Value) -> Place {
    let metadata = format!(
        "{BY_ID}operations:\n  compare: {{mode: declared}}\n  get: {{path: '/teams/{{{{/id}}}}'}}\n  \
         update: {{path: '/teams/{{{{/id}}}}'}}\n  delete: {{path: '/teams/{{{{/id}}}}'}}\n"
    );
    let files = [
        ("orgs/_/teams/_/metadata.yaml", metadata.as_str()),
        ("orgs/acme/teams/devs/resource.json", &team.to_string()),
    ];
    Place::new(server, &files)
}

/// The id in the file is that of a team with the same name in another organisation, as after the server was set up again.
#[rstest]
#[case::another_id(&[("n1", "other"), ("n2", "acme")], "states the id n1, but the resource with its name has the id n2")]
#[case::missing(&[("n1", "other")], "the list of its collection does not show the resource with this id")]
fn a_stale_id_does_not_address_another_collection(#[case] members: &[(&str, &str)], #[case] reason: &str) {
    let place = organisations(teams(members), &json!({"id": "n1", "name": "devs", "tier": "gold"}));
    for command in
        [&["resource", "apply", "/", "-r"][..], &["resource", "delete", "/orgs/acme/teams/devs", "--yes"]]
    {
        let run = place.run(command);
        assert_eq!(run.code, 5, "{run}");
        assert!(run.stderr.contains(reason), "{run}");
        assert_eq!(place.server.writes(), Vec::<String>::new());
    }
    place.home.write("repo/orgs/acme/teams/devs/resource.json", r#"{"name": "devs", "tier": "gold"}"#);
    let run = place.run(&["resource", "apply", "/", "-r"]);
    assert_eq!(run.code, 0, "{run}");
    assert_eq!(place.server.get("/teams/n1"), Some(json!({"id": "n1", "org": "other", "name": "devs"})));
}

/// The id of another label is the name of the declared one.
#[test]
fn a_name_may_be_the_number_of_another_resource() {
    let server = ApiServer::rest(&["/labels"], Ids::Given);
    server.put("/labels/12", json!({"id": 12, "name": "bug"}));
    server.put("/labels/2", json!({"id": 2, "name": "12"}));
    let files =
        [("labels/_/metadata.yaml", BY_ID), ("labels/12/resource.json", r#"{"name": "12", "color": "red"}"#)];
    let place = Place::new(server, &files);
    let run = place.run(&["resource", "apply", "/", "-r"]);
    assert_eq!(run.code, 0, "{run}");
    assert_eq!(place.server.get("/labels/2"), Some(json!({"id": 2, "name": "12", "color": "red"})));
    let run = place.run(&["resource", "delete", "/labels/12", "--yes"]);
    assert_eq!(run.code, 0, "{run}");
    assert_eq!(place.server.paths(), ["/labels/12"]);
    assert_eq!(place.server.get("/labels/12"), Some(json!({"id": 12, "name": "bug"})));
    let run = place.run(&["resource", "apply", "/", "-r"]);
    assert_eq!(run.code, 0, "{run}");
    assert_eq!(place.server.get("/labels/12"), Some(json!({"id": 12, "name": "bug"})));
    assert_eq!(place.server.writes().last().unwrap(), "POST /labels 201");
}

/// The server changes the names of secrets to upper case, and shows them only in its list.
#[rstest]
#[case::same("/name", 2)]
#[case::upper_case("'{{uppercase /name}}'", 0)]
fn a_name_that_the_server_changes_is_explained(#[case] name: &str, #[case] code: i32) {
    let server = ApiServer::start(&["/secrets"], |request, store| {
        if request.method != "PUT" {
            return request.rest(store, Ids::Stated("name"));
        }
        store.put(&request.path.to_uppercase().replace("/SECRETS", "/secrets"), {
            let mut secret = request.body.clone();
            secret["name"] = json!(request.body["name"].as_str().map(str::to_uppercase));
            secret
        });
        Answer::empty(201)
    });
    let metadata = format!(
        "resource: {{id: {name}, alias: {name}}}\noperations:\n  get: {{from: list}}\n  \
         create: {{method: PUT, path: './{{{{/name}}}}'}}\n  \
         compare: {{transforms: [{{jqExpression: '.name |= ascii_upcase'}}]}}\n"
    );
    let files = [
        ("secrets/_/metadata.yaml", metadata.as_str()),
        ("secrets/token/resource.json", r#"{"name": "token"}"#),
    ];
    let place = Place::new(server, &files);
    let run = place.run(&["resource", "apply", "/", "-r"]);
    assert_eq!(run.code, code, "{run}");
    let message = r#"the server answered 201 to the create, but shows the name "TOKEN"; if it is this resource, use this name"#;
    assert_eq!(run.stderr.contains(message), code != 0, "{run}");
    if code == 0 {
        place.server.clear_log();
        assert_eq!(place.run(&["resource", "apply", "/", "-r"]).code, 0);
        assert_eq!(place.server.writes(), Vec::<String>::new());
    }
}

/// The file has the id of another server.
#[test]
fn an_id_of_another_server_is_no_difference() {
    let files = [
        ("labels/_/metadata.yaml", BY_ID),
        ("labels/bug/resource.json", r#"{"id": "n7", "name": "bug", "color": "red"}"#),
    ];
    let place = Place::new(labels(), &files);
    place.server.put("/labels/n1", json!({"id": "n1", "name": "bug", "color": "red"}));
    for command in
        [&["plan", "/"][..], &["resource", "diff", "/", "-r"], &["resource", "diff", "/labels/bug"]]
    {
        let run = place.run(&[command, &["--exit-code"]].concat());
        assert_eq!(run.code, 0, "{run}");
    }
    let run = place.run(&["resource", "explain", "/labels/bug"]);
    assert!(run.code == 0 && !run.stdout.contains("n7"), "{run}");
}

/// The id of an imposter of mountebank is its port, which clients choose. To keep it would be a success that is not there.
#[rstest]
#[case::id("[/kind, /id]", 2)]
#[case::another("[/kind]", 0)]
fn an_id_that_must_be_replaced_is_a_failure(#[case] replace_on: &str, #[case] code: i32) {
    let metadata = format!("resource: {{id: /id, alias: /name, replaceOn: {replace_on}}}\n");
    let files = [
        ("labels/_/metadata.yaml", &*metadata),
        ("labels/bug/resource.json", r#"{"id": "n7", "name": "bug"}"#),
    ];
    let place = Place::new(labels(), &files);
    for command in [&["plan", "/"][..], &["resource", "apply", "/", "-r"], &["resource", "diff", "/", "-r"]] {
        let run = place.run(command);
        assert_eq!(run.code, code, "{run}");
        let message = "resource.replaceOn (labels/_/metadata.yaml): \"/id\" is the id, and the server has the resource with \
                       another id, which it keeps";
        assert_eq!(run.stderr.contains(message), code != 0, "{run}");
    }
    assert_eq!(place.server.writes(), [""; 0]);
}
