//! Members whose requests contain the id that the server assigned to their parent, on a server with enveloped answers.

use serde_json::{Value, json};

use crate::api_server::{Answer, ApiServer, Ids, Request, Store};
use crate::safety::Place;

/// Books are members of one collection, and their attribute `author` is the id of an author.
fn enveloped(request: &Request, store: &mut Store) -> Answer {
    let answer = request.rest(store, Ids::Given);
    let author = request.query.get("author").map(|author| json!(author));
    let is_of = |book: &Value| author.as_ref().is_none_or(|author| book["author"] == *author);
    let data = match (request.method.as_str(), store.get(&request.path)) {
        ("GET", Some(resource)) => resource.clone(),
        ("GET", None) if store.is_collection(&request.path) => {
            store.members(&request.path).into_iter().filter(is_of).collect()
        }
        ("POST", _) => store.members(&request.path).pop().unwrap_or_default(),
        _ => return answer,
    };
    Answer::json(200, &json!({"data": data}))
}

fn place(files: &[(&str, &str)]) -> Place {
    with_server(ApiServer::start(&["/authors", "/books"], enveloped), files)
}

fn with_server(server: ApiServer, files: &[(&str, &str)]) -> Place {
    let authors = "resource: {id: /id, alias: /name}\n\
        operations: {get: {transforms: [{jqExpression: .data}]}, list: {transforms: [{jqExpression: .data}]}}\n";
    let books = r#"resource: {id: /id, alias: /title, remoteCollectionPath: /books}
operations:
  compare: {mode: declared}
  get: {transforms: [{jqExpression: .data}]}
  list: {query: {author: "{{/ids/author}}"}, transforms: [{jqExpression: .data}]}
  create: {transforms: [{jqExpression: '. + {author: "{{/ids/author}}"}'}]}
"#;
    let metadata = [("authors/_/metadata.yaml", authors), ("authors/_/books/_/metadata.yaml", books)];
    Place::new(server, &[&metadata[..], files].concat())
}

#[test]
fn a_member_is_created_with_the_id_of_its_new_parent() {
    let place = place(&[
        ("authors/kim/resource.json", r#"{"name": "kim"}"#),
        ("authors/kim/books/one/resource.json", r#"{"title": "one"}"#),
    ]);
    let run = place.run(&["resource", "apply", "/", "-r"]);
    assert_eq!(run.code, 0, "{run}");
    let book = json!({"id": "n8", "title": "one", "author": "n7"});
    assert_eq!(place.server.get("/books/n8"), Some(book));
    let run = place.run(&["resource", "apply", "/", "-r"]);
    assert_eq!(run.code, 0, "{run}");
    assert_eq!(place.server.writes(), ["POST /authors 200", "POST /books 200"]);
}

/// The name of an author is the id of another one.
#[test]
fn a_member_of_another_parent_is_not_changed_while_its_own_is_missing() {
    let place = place(&[
        ("authors/bob/resource.json", r#"{"name": "bob"}"#),
        ("authors/bob/books/one/resource.json", r#"{"title": "one", "note": "ours"}"#),
    ]);
    let foreign = json!({"id": "x1", "title": "one", "author": "bob"});
    place.server.put("/books/x1", foreign.clone());
    let run = place.run(&["resource", "apply", "/", "-r"]);
    assert_eq!(run.code, 0, "{run}");
    assert_eq!(place.server.get("/books/x1"), Some(foreign));
    assert_eq!(place.server.all()["/books/n8"]["author"], "n7");
}

/// The answer to a create is empty, so a further pass looks up the id of the parent.
#[test]
fn the_id_of_a_new_parent_is_looked_up() {
    let server = ApiServer::start(&["/authors", "/books"], |request, store| {
        let answer = enveloped(request, store);
        if request.is("POST", "/authors") { Answer::empty(204) } else { answer }
    });
    let place = with_server(
        server,
        &[
            ("authors/kim/resource.json", r#"{"name": "kim"}"#),
            ("authors/kim/books/one/resource.json", r#"{"title": "one"}"#),
        ],
    );
    let run = place.run(&["resource", "apply", "/", "-r"]);
    assert_eq!(run.code, 0, "{run}");
    assert_eq!(place.server.all()["/books/n8"]["author"], "n7");
    assert_eq!(place.server.writes(), ["POST /authors 204", "POST /books 200"]);
}

/// The server never gets the name of a parent in the place of its id.
#[test]
fn a_member_without_its_parent_is_not_created() {
    let place = place(&[
        ("authors/kim/resource.json", r#"{"name": "kim"}"#),
        ("authors/kim/books/one/resource.json", r#"{"title": "one"}"#),
    ]);
    for command in ["apply", "create"] {
        let run = place.run(&["resource", command, "/authors/kim/books/one"]);
        assert_eq!(run.code, 3, "{run}");
        assert!(run.stderr.contains("its parent /authors/kim does not exist on the server"), "{run}");
    }
    assert_eq!(place.server.writes(), Vec::<String>::new());
    let run = place.run(&["resource", "create", "/authors/kim", "-r"]);
    assert_eq!(run.code, 0, "{run}");
    assert_eq!(place.server.all()["/books/n8"]["author"], "n7");
}

/// The list of the books fails, so only the caller decides that the book does not exist.
#[test]
fn a_requested_create_has_the_id_of_the_parent() {
    let server = ApiServer::start(&["/authors", "/books"], |request, store| {
        if request.is("GET", "/books") { Answer::missing() } else { enveloped(request, store) }
    });
    let place = with_server(
        server,
        &[
            ("authors/kim/resource.json", r#"{"name": "kim"}"#),
            ("authors/kim/books/one/resource.json", r#"{"title": "one"}"#),
        ],
    );
    place.server.put("/authors/a1", json!({"id": "a1", "name": "kim"}));
    let run = place.run(&["resource", "create", "/authors/kim/books/one"]);
    assert_eq!(place.server.writes(), ["POST /books 200"], "{run}");
    assert!(place.server.all().values().any(|book| book["author"] == "a1"), "{run}");
}

/// The path of the member does not show its names.
#[test]
fn a_member_with_a_composed_alias_is_found_below_its_parent() {
    let server = ApiServer::rest(&["/accounts", "/accounts/*/keys"], Ids::Given);
    server.put("/accounts/a1", json!({"id": "a1", "name": "one"}));
    server.put("/accounts/a1/keys/k7", json!({"id": "k7", "name": "build"}));
    let metadata = [
        ("accounts/_/metadata.yaml", "resource: {id: /id, alias: 'sa.{{/name}}'}\n"),
        ("accounts/_/keys/_/metadata.yaml", "resource: {id: /id, alias: 'key.{{/name}}'}\n"),
        ("accounts/sa.one/resource.json", r#"{"name": "one"}"#),
    ];
    let place = Place::new(server, &metadata);
    let run = place.run(&["resource", "get", "/accounts/sa.one/keys/key.build"]);
    assert!(run.code == 0 && run.stdout.contains("\"k7\""), "{run}");
    let run = place.run(&["resource", "delete", "/accounts/sa.one/keys/key.build", "--yes"]);
    assert_eq!(run.code, 0, "{run}");
    assert_eq!(place.server.writes(), ["DELETE /accounts/a1/keys/k7 204"]);
    let run = place.run(&["resource", "get", "/accounts/sa.one/keys/key.build"]);
    assert_eq!(run.code, 3, "{run}");
}
