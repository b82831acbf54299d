//! Paths whose last segment is the id of another resource, on a server like Redmine: the versions of a project are listed
//! below it and read by an id of the whole server, and the number at the start of a name is an id.

use rstest::rstest;
use serde_json::{Value, json};

use crate::api_server::{Answer, ApiServer, Ids, Request, Store};
use crate::safety::Place;

const VERSIONS: &str = r#"
resource: {id: /id, alias: /name}
operations:
  list: {path: "/projects/{{/project}}/versions"}
  create: {path: "/projects/{{/project}}/versions"}
  get: {path: "/versions/{{/id}}"}
  delete: {path: "/versions/{{/id}}"}
"#;

fn answer(request: &Request, store: &mut Store) -> Answer {
    match (request.method.as_str(), request.segments()[..].to_vec()) {
        ("GET", segments) if segments.len() == 3 && segments[2] == "versions" => {
            let is_of = |version: &Value| version["project"] == segments[1];
            Answer::json(200, &store.members("/versions").into_iter().filter(is_of).collect())
        }
        ("POST", segments) if segments.len() == 3 => {
            store.put("/versions/4", json!({"id": 4, "name": request.body["name"], "project": segments[1]}));
            Answer::json(201, store.get("/versions/4").unwrap())
        }
        (_, segments) if segments.len() == 2 => {
            let number = segments[1].split(|c: char| !c.is_ascii_digit()).next().unwrap_or_default();
            Request { path: format!("/{}/{number}", segments[0]), ..request.clone() }.rest(store, Ids::Given)
        }
        _ => request.rest(store, Ids::Given),
    }
}

fn place() -> Place {
    let server = ApiServer::start(&["/users", "/versions"], answer);
    server.put("/users/9", json!({"id": 9, "login": "tom", "mail": "tom@example.com"}));
    server.put("/users/7", json!({"id": 7, "login": "ava"}));
    server.put("/versions/2", json!({"id": 2, "name": "2.0", "project": "gamma"}));
    server.put("/versions/3", json!({"id": 3, "name": "1.0", "project": "alpha"}));
    let files = [
        ("users/_/metadata.yaml", "resource: {id: /id, alias: /login}\n"),
        ("users/ava/resource.json", r#"{"login": "ava"}"#),
        ("projects/_/versions/_/metadata.yaml", VERSIONS),
    ];
    Place::new(server, &files)
}

#[rstest]
#[case::id("/projects/gamma/versions/2", "DELETE /versions/2 204")]
#[case::name("/projects/gamma/versions/2.0", "DELETE /versions/2 204")]
#[case::user("/users/9", "DELETE /users/9 204")]
#[case::declared("/users/ava", "DELETE /users/7 204")]
fn the_resource_at_the_path_is_deleted(#[case] path: &str, #[case] write: &str) {
    let place = place();
    let run = place.run(&["resource", "delete", path, "--yes"]);
    assert_eq!((run.code, place.server.writes()), (0, vec![write.to_owned()]), "{run}");
}

/// The messages about duplicates ask users to delete one of them.
#[test]
fn a_duplicate_of_a_declared_resource_is_deleted_by_its_id() {
    let place = place();
    place.server.put("/users/8", json!({"id": 8, "login": "ava"}));
    let run = place.run(&["resource", "delete", "/users/8", "--yes"]);
    assert_eq!((run.code, place.server.writes()), (0, vec!["DELETE /users/8 204".to_owned()]), "{run}");
}

#[rstest]
#[case::of_another_parent(
    "/projects/gamma/versions/3",
    "the list of its collection does not show it, so it may belong to another one; use its path there"
)]
#[case::with_other_names(
    "/users/9tommy",
    "the server shows tom with the id 9 at its address; use one of its names in the path"
)]
#[case::declared("/users/7", "Git declares it at /users/ava; use this path")]
fn another_resource_is_not_deleted(#[case] path: &str, #[case] reason: &str) {
    let place = place();
    let run = place.run(&["resource", "delete", path, "--yes"]);
    assert!(run.code == 5 && run.stderr.contains(&format!("not deleted: {path}: {reason}")), "{run}");
    assert_eq!(place.server.writes(), [""; 0]);
}

/// The name of a new version is the id of a version of another project.
#[test]
fn a_name_that_is_the_id_of_another_resource_is_created() {
    let place = place();
    place.home.write("repo/projects/gamma/versions/3/resource.json", r#"{"name": "3", "project": "gamma"}"#);
    let run = place.run(&["resource", "apply", "/projects/gamma/versions/3"]);
    assert_eq!(
        (run.code, place.server.writes()),
        (0, vec!["POST /projects/gamma/versions 201".to_owned()]),
        "{run}"
    );
    let run = place.run(&["plan", "/projects", "-r", "--exit-code"]);
    assert_eq!(run.code, 0, "{run}");
}

/// Metadata states no alias, so the path has the only name.
#[rstest]
#[case::by_id("resource: {id: /id}\n", "9tommy", false)]
#[case::without_names("{}\n", "9tommy", false)]
#[case::its_id("resource: {id: /id}\n", "9", true)]
#[case::a_usual_name("{}\n", "9", true)]
fn another_name_than_the_only_one_is_not_deleted(
    #[case] rules: &str,
    #[case] name: &str,
    #[case] done: bool,
) {
    let place = place();
    place.home.write("repo/users/_/metadata.yaml", rules);
    let run = place.run(&["resource", "delete", &format!("/users/{name}"), "--yes"]);
    assert_eq!((run.code == 0, place.server.writes().len()), (done, usize::from(done)), "{run}");
}

/// The file in the directory `ava` declares the user `eve`.
#[rstest]
#[case::ids("resource: {id: /id, alias: /login}\n", r#"{"login": "eve"}"#)]
#[case::names("resource: {id: /login, alias: /login}\n", r#"{"login": "eve"}"#)]
#[case::no_metadata("", r#"{"id": "eve"}"#)]
fn the_declared_resource_is_deleted_and_not_what_has_the_name_of_its_directory(
    #[case] metadata: &str,
    #[case] payload: &str,
    #[values(true, false)] exists: bool,
) {
    let ids = if metadata.contains("id: /id") { Ids::Given } else { Ids::Stated("login") };
    let server = ApiServer::rest(&["/users"], ids);
    let id =
        |number: &'static str, name: &'static str| if metadata.contains("id: /id") { number } else { name };
    let (other, own) = (id("7", "ava"), id("8", "eve"));
    server.put(&format!("/users/{other}"), json!({"id": other, "login": "ava"}));
    if exists {
        server.put(&format!("/users/{own}"), json!({"id": own, "login": "eve"}));
    }
    let place =
        Place::new(server, &[("users/_/metadata.yaml", metadata), ("users/ava/resource.json", payload)]);
    let run = place.run(&["resource", "delete", "/users/ava", "--yes"]);
    assert_eq!(run.code == 0, exists, "{run}");
    let deleted = exists.then(|| format!("DELETE /users/{own} 204"));
    assert_eq!(place.server.writes(), Vec::from_iter(deleted), "{run}");
}

/// Like Elasticsearch: reads and deletions take patterns.
#[rstest]
#[case::metadata("resource: {id: /name, alias: /name}\n")]
#[case::no_metadata("")]
fn a_pattern_deletes_nothing(#[case] metadata: &str) {
    let server = ApiServer::start(&["/users"], |request, store| {
        let Some(prefix) = request.path.strip_suffix('*') else {
            return request.rest(store, Ids::Stated("name"));
        };
        let found: Vec<String> = store.paths().filter(|path| path.starts_with(prefix)).cloned().collect();
        if request.method == "DELETE" {
            for path in &found {
                store.remove(path);
            }
            return Answer::json(200, &json!({"acknowledged": true}));
        }
        let users: Vec<_> = found.iter().filter_map(|path| store.get(path)).collect();
        Answer::json(200, &json!({"users": users}))
    });
    for name in ["ava", "avi"] {
        server.put(&format!("/users/{name}"), json!({"name": name}));
    }
    let place = Place::new(server, &[("users/_/metadata.yaml", metadata)]);
    let run = place.run(&["resource", "delete", "/users/av*", "--yes"]);
    assert!(run.code != 0 && run.stderr.contains("may take it for a pattern"), "{run}");
    assert_eq!(place.server.writes(), Vec::<String>::new());
}

/// The payload has a member `id` that is not the id of the resource, but that of another one.
#[rstest]
#[case::number("12")]
#[case::text("web")]
fn another_member_called_id_addresses_nothing(#[case] name: &'static str) {
    let server = ApiServer::start(&["/hosts"], move |request, store| {
        let path = if request.path == format!("/hosts/{name}") { "/hosts/u7" } else { request.path.as_str() };
        Request { path: path.to_owned(), ..request.clone() }.rest(store, Ids::Given)
    });
    server.put("/hosts/u7", json!({"uid": "u7", "id": 3, "name": name}));
    server.put("/hosts/3", json!({"uid": "u9", "id": 9, "name": "other"}));
    let payload = format!(r#"{{"name": "{name}", "id": 3}}"#);
    let file = format!("hosts/{name}/resource.json");
    let files = [("hosts/_/metadata.yaml", "resource: {id: /uid, alias: /name}\n"), (&*file, &*payload)];
    let place = Place::new(server, &files);
    let run = place.run(&["resource", "delete", &format!("/hosts/{name}"), "--yes"]);
    assert_eq!((run.code, place.server.paths()), (0, vec!["/hosts/3".to_owned()]), "{run}");
}

/// The server does not answer reads of single resources.
#[test]
fn a_pattern_that_cannot_be_read_deletes_nothing() {
    let server = ApiServer::start(&["/users"], |request, store| match request.method.as_str() {
        "GET" if request.path != "/users" => Answer::empty(405),
        _ => request.rest(store, Ids::Stated("name")),
    });
    let place = Place::new(server, &[]);
    let run = place.run(&["resource", "delete", "/users/*", "--yes"]);
    assert!(run.code != 0 && place.server.writes().is_empty(), "{run}");
}
