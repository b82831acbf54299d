//! Servers that accept an update and do not carry it out.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::State;
use axum::http::{Method, StatusCode};
use declarest_core::path::LogicalPath;
use declarest_core::sync::{self, Options, Outcome, Recurrences, Report, Selection, Session, Stop};
use rstest::rstest;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::api_server::{Answer, ApiServer, Ids};
use crate::client::client;
use crate::rest_server::Config;
use crate::world::World;

/// One resource, the answer to its update, and the content after it.
#[derive(Clone)]
struct Server {
    content: Arc<Mutex<Value>>,
    answer: (StatusCode, String),
    after: Value,
    reads: Arc<Mutex<usize>>,
}

async fn answer(State(server): State<Server>, method: Method) -> (StatusCode, String) {
    if method == Method::GET {
        *server.reads.lock().unwrap() += 1;
        return (StatusCode::OK, server.content.lock().unwrap().to_string());
    }
    *server.content.lock().unwrap() = server.after.clone();
    server.answer
}

/// Updates `/hosts/web` to the kind `new`. Returns the report, and the number of reads.
async fn update(
    answered: (StatusCode, &str),
    after: Value,
    recurrences: Option<Arc<Recurrences>>,
) -> (Report, usize) {
    let before = json!({"id": "web", "kind": "old", "rank": 1});
    update_from(before, answered, after, recurrences).await
}

async fn update_from(
    before: Value,
    answered: (StatusCode, &str),
    after: Value,
    recurrences: Option<Arc<Recurrences>>,
) -> (Report, usize) {
    let content = Arc::new(Mutex::new(before));
    let answered = (answered.0, answered.1.to_owned());
    let server = Server { content, answer: answered, after, reads: Arc::default() };
    let reads = Arc::clone(&server.reads);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let router = Router::new().fallback(answer).with_state(server);
    let serving = tokio::spawn(async { axum::serve(listener, router).await });
    let world = World::new(
        Config::default(),
        &[("hosts/web/resource.json", r#"{"id":"web","kind":"new","rank":1}"#)],
    );
    let session = Session { client: client(&url), ..world.session() };
    let selection = Selection::full(session.tree.as_ref(), &LogicalPath::root(), true).unwrap();
    let options = Options { recurrences, ..Options::default() };
    let report = sync::run(&session, selection, &options, &Stop::default()).await;
    serving.abort();
    let reads = *reads.lock().unwrap();
    (report, reads)
}

const FAILED: &str = r#"{"results":[{"code":500,"status":"Attribute 'kind' could not be set"}]}"#;

const ADDED: &str = "/hosts/web: the server answered 200 to the update, but still shows /changed, which the file does \
                     not state; if the server sets such attributes, state operations.compare.mode: declared";

const HIDDEN: &str = "/hosts/web: the server answered 200 to the update, but does not show /kind; if the server never \
                      shows such attributes, state them in resource.writeOnlyAttributes";

/// Without content, the answer states no more than its status.
#[rstest]
#[case::failed((StatusCode::OK, FAILED), "old", 2, Some("/hosts/web: the server answered 200 to the update, but shows other values at /kind"))]
#[case::hidden((StatusCode::OK, r#"{"results":[{"code":200}]}"#), "", 2, Some(HIDDEN))]
#[case::done((StatusCode::OK, r#"{"results":[{"code":200}]}"#), "new", 2, Some(ADDED))]
#[case::shown((StatusCode::OK, r#"{"id":"web","kind":"new","rank":1}"#), "new", 1, None)]
#[case::empty((StatusCode::NO_CONTENT, ""), "old", 1, None)]
#[tokio::test]
async fn an_update_is_confirmed_if_its_answer_does_not_show_it(
    #[case] answered: (StatusCode, &str),
    #[case] kind: &str,
    #[case] reads: usize,
    #[case] message: Option<&str>,
) {
    let mut after = json!({"id": "web", "kind": kind, "rank": 1, "changed": 7});
    if kind.is_empty() {
        after.as_object_mut().unwrap().remove("kind");
    }
    let (report, seen) = update(answered, after, None).await;
    assert_eq!((report.outcome, report.stats.updated), (Outcome::Succeeded, 1), "{report:?}");
    let messages: Vec<&str> = report.unconfirmed.iter().map(|failure| failure.message.as_str()).collect();
    assert_eq!(messages, message.into_iter().collect::<Vec<_>>());
    assert_eq!(seen, reads);
}

/// Like Review Board, the server sorts texts.
#[tokio::test]
async fn the_message_names_an_array_with_another_order() {
    let server = ApiServer::start(&["/hooks"], |request, store| {
        let answer = request.rest(store, Ids::Stated("id"));
        store.put("/hooks/web", json!({"id": "web", "events": ["close", "open"]}));
        if request.method == "PUT" { Answer::json(200, &json!({"result": "stored"})) } else { answer }
    });
    server.put("/hooks/web", json!({"id": "web", "events": []}));
    let hook = r#"{"id": "web", "events": ["open", "close"]}"#;
    let world = World::new(Config::default(), &[("hooks/web/resource.json", hook)]);
    let report = world.sync_on(server.url(), &[]).await;
    let message = report.unconfirmed.first().map(|failure| failure.message.as_str());
    assert_eq!(
        message,
        Some(
            "/hooks/web: the server answered 200 to the update, but shows the entries of /events in another order; if \
             the order does not matter, state {/events: set} in operations.compare.arrays"
        ),
        "{report:?}"
    );
}

#[rstest]
#[case::kept(json!({"id": "web", "kind": "new", "rank": 1, "changed": 7}), 1)]
#[case::removed(json!({"id": "web", "kind": "new", "rank": 1}), 0)]
#[tokio::test]
async fn an_update_that_only_removes_attributes_is_confirmed(
    #[case] after: Value,
    #[case] unconfirmed: usize,
    #[values((StatusCode::NO_CONTENT, ""), (StatusCode::OK, r#"{"id":"web","kind":"new","rank":1}"#))]
    answered: (StatusCode, &str),
) {
    let before = json!({"id": "web", "kind": "new", "rank": 1, "changed": 7});
    let (report, seen) = update_from(before, answered, after, None).await;
    assert_eq!((report.stats.updated, seen), (1, 2), "{report:?}");
    let expected = ADDED.replace("200", &answered.0.as_u16().to_string());
    let messages: Vec<&str> = report.unconfirmed.iter().map(|failure| failure.message.as_str()).collect();
    assert_eq!(messages, vec![expected; unconfirmed]);
}

/// The server adds an attribute to a new resource, and no request can remove it.
#[tokio::test]
async fn a_created_resource_that_cannot_be_updated_is_created() {
    let server = ApiServer::start(&["/hosts", "/hosts/web/disks"], |request, store| {
        if !request.is("POST", "/hosts") {
            return request.rest(store, Ids::Stated("id"));
        }
        store.put("/hosts/web", json!({"id": "web", "zone": "eu"}));
        Answer::json(200, &json!({}))
    });
    let metadata = "operations: {update: {path: './{{/zone}}-{{/serial}}'}}";
    let world = World::new(Config::default(), &[("hosts/_/metadata.yaml", metadata)]);
    world.declare("hosts/web/resource.json", r#"{"id": "web"}"#);
    world.declare("hosts/web/disks/a/resource.json", r#"{"id": "a"}"#);
    let report = world.sync_on(server.url(), &[]).await;
    assert_eq!((report.stats.created, report.stats.failed), (2, 0), "{report:?}");
    let message = &report.unconfirmed[0].message;
    assert!(message.starts_with("/hosts/web: created, but differs and cannot be updated: "), "{message}");
    assert_eq!(world.sync_on(server.url(), &[]).await.stats.failed, 1);
}

/// The server sets an attribute in creates. The update that completes the resource lacks it, and its answer is empty.
#[rstest]
#[case::kept(true, 1)]
#[case::removed(false, 0)]
#[tokio::test]
async fn the_update_that_completes_a_resource_is_confirmed(#[case] keeps: bool, #[case] unconfirmed: usize) {
    let server = ApiServer::start(&["/hosts"], move |request, store| match request.method.as_str() {
        "POST" => {
            store.put("/hosts/web", json!({"id": "web", "zone": "eu"}));
            Answer::json(201, &json!({"message": "done"}))
        }
        "PUT" => {
            let zone = if keeps { json!({"id": "web", "zone": "eu"}) } else { request.body.clone() };
            store.put("/hosts/web", zone);
            Answer::empty(204)
        }
        _ => request.rest(store, Ids::Stated("id")),
    });
    let world = World::new(Config::default(), &[("hosts/web/resource.json", r#"{"id": "web"}"#)]);
    let report = world.sync_on(server.url(), &[]).await;
    assert_eq!((report.stats.created, server.writes().len()), (1, 2), "{report:?}");
    let messages: Vec<&str> = report.unconfirmed.iter().map(|failure| failure.message.as_str()).collect();
    let expected = "/hosts/web: the server answered 204 to the update, but still shows /zone, which the file does not \
                    state; if the server sets such attributes, state operations.compare.mode: declared";
    assert_eq!(messages, vec![expected; unconfirmed]);
}

/// The transforms of the reads remove the attribute that the file states.
#[tokio::test]
async fn attributes_that_the_own_transforms_remove_are_named() {
    let server = ApiServer::start(&["/hosts"], |request, store| {
        let answer = request.rest(store, Ids::Stated("id"));
        let is_update = request.method == "PUT";
        if is_update { Answer::json(200, &json!({"updated": true})) } else { answer }
    });
    server.put("/hosts/web", json!({"id": "web", "kind": "vm", "size": 1}));
    let metadata = "operations: {get: {transforms: [{excludeAttributes: [/kind]}]}}";
    let world = World::new(Config::default(), &[("hosts/_/metadata.yaml", metadata)]);
    world.declare("hosts/web/resource.json", r#"{"id": "web", "kind": "vm", "size": 1}"#);
    let report = world.sync_on(server.url(), &[]).await;
    let message = &report.unconfirmed[0].message;
    assert!(message.contains("does not show /kind; if operations.get.transforms remove them"), "{message}");
}

/// The next run reads the resource anyway.
#[tokio::test]
async fn nothing_is_read_where_recurrences_are_watched() {
    let after = json!({"id": "web", "kind": "old", "rank": 1});
    let (report, seen) = update((StatusCode::OK, FAILED), after, Some(Arc::default())).await;
    assert_eq!((report.unconfirmed.len(), seen), (0, 1), "{report:?}");
}

/// A server whose update with a name removes the name, like `PATCH /users/ana` of `JupyterHub`. Lists show all users.
fn nameless() -> ApiServer {
    ApiServer::start(&["/users"], |request, store| {
        let mut request = request.clone();
        if request.is("POST", "/users") {
            request.body["admin"] = json!(false);
            return request.rest(store, Ids::Stated("name"));
        }
        if request.method != "PUT" {
            return request.rest(store, Ids::Stated("name"));
        }
        let Some(mut user) = store.get(&request.path).cloned() else { return Answer::missing() };
        store.remove(&request.path);
        user["name"] = Value::Null;
        user["admin"] = request.body["admin"].clone();
        let orphan = format!("/users/{}", store.next_id());
        store.put(&orphan, user.clone());
        Answer::json(200, &user)
    })
}

#[rstest]
#[case::after_a_create(None, false)]
#[case::of_a_resource(Some(json!({"name": "ana", "admin": false})), false)]
#[case::after_a_create_of_the_operator(None, true)]
#[case::of_a_resource_by_the_operator(Some(json!({"name": "ana", "admin": false})), true)]
#[tokio::test]
async fn a_resource_that_an_update_renames_is_a_failure(
    #[case] before: Option<Value>,
    #[case] watches: bool,
) {
    let server = nameless();
    if let Some(user) = before {
        server.put("/users/ana", user);
    }
    let world = World::new(Config::default(), &[]);
    world.declare("users/_/metadata.yaml", "resource: {id: /name, alias: /name}");
    world.declare("users/ana/resource.json", r#"{"name":"ana","admin":true}"#);
    let session = Session { client: client(server.url()), ..world.session() };
    for expected in
        ["answered 200 to the update, and does not show the resource afterwards", "/users/ana: created"]
    {
        let recurrences = watches.then(Arc::default);
        let options = Options { recurrences, ..Options::default() };
        let selection = Selection::full(session.tree.as_ref(), &LogicalPath::root(), true).unwrap();
        let report = sync::run(&session, selection, &options, &Stop::default()).await;
        assert_eq!(report.failures.len(), 1, "{report:?}");
        assert!(report.failures[0].message.contains(expected), "{report:?}");
        assert_eq!(server.all().len(), 1, "{report:?}");
    }
}

/// A stub or a proxy, which answers everything with 200 and nothing.
#[tokio::test]
async fn the_update_of_a_resource_without_content_is_read_again() {
    let server = ApiServer::start(&["/users"], |_, _| Answer::empty(200));
    let world = World::new(Config::default(), &[]);
    world.declare("users/ana/resource.json", r#"{"id":"ana"}"#);
    let report = world.sync_on(server.url(), &[]).await;
    assert_eq!(report.unconfirmed.len(), 1, "{report:?}");
    let message = &report.unconfirmed[0].message;
    assert!(
        message.contains("answered 200 to the update, but shows other values at the whole resource"),
        "{message}"
    );
}
