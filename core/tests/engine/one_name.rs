//! Resources whose id is also their alias, on servers that answer with a resource of another name.

use declarest_core::path::LogicalPath;
use declarest_core::sync::{self, Intent, Options, Outcome, Resource, Selection, Session, Stop};
use rstest::rstest;
use serde_json::{Value, json};

use crate::api_server::{Answer, ApiServer, Ids, Request};
use crate::client::client;
use crate::rest_server::Config;
use crate::world::{World, failure};

const ONE_TEMPLATE: &str = "resource: {id: /name, alias: /name}";
const ONE_VALUE: &str = "resource: {id: /id, alias: /name}";

/// A server that ignores a suffix after a dot, as some frameworks do.
fn lenient(tag: Value) -> ApiServer {
    let server = ApiServer::start(&["/tags"], |request, store| {
        let path = request.path.split('.').next().unwrap_or_default().to_owned();
        Request { path, ..request.clone() }.rest(store, Ids::Stated("name"))
    });
    server.put("/tags/v1", tag);
    server
}

fn world(metadata: &str) -> World {
    World::new(Config::default(), &[("tags/_/metadata.yaml", metadata)])
}

const DECLARED: &str = r#"{"id":"v1.2","name":"v1.2","note":"mine"}"#;

fn foreign() -> Value {
    json!({"id": "v1", "name": "v1", "note": "theirs"})
}

/// An error that names the other resource.
#[track_caller]
fn assert_conflict(report: &sync::Report, server: &ApiServer) {
    let (reason, message) = failure(report);
    assert_eq!(reason, "ConflictError", "{message}");
    assert!(message.contains("a resource with another alias (\"v1\")"), "{message}");
    assert_eq!(server.writes(), Vec::<String>::new());
}

#[rstest]
#[tokio::test]
async fn another_resource_is_neither_changed_nor_deleted(
    #[values(ONE_TEMPLATE, ONE_VALUE)] metadata: &str,
    #[values(false, true)] first: bool,
) {
    let (server, world) = (lenient(foreign()), world(metadata));
    assert_conflict(&world.sync_on(server.url(), &[("/tags/v1.2", DECLARED)]).await, &server);
    world.declare("tags/v1.2/resource.json", DECLARED);
    for intent in [Intent::Converge, Intent::Delete] {
        let options = Options { intent, first, ..Options::default() };
        assert_conflict(&world.sync_with(server.url(), &[], &options).await, &server);
    }
}

/// The command line deletes a resource that the repository does not declare by its path.
#[tokio::test]
async fn another_resource_is_not_deleted_by_a_path() {
    let (server, world) = (lenient(foreign()), world(ONE_TEMPLATE));
    let session = Session { client: client(server.url()), ..world.session() };
    let path = LogicalPath::parse("/tags/v1.2").unwrap();
    let rules = session.metadata.rules(&path).unwrap();
    let given = vec![Resource::by_path(path, rules).unwrap()];
    let options = Options { intent: Intent::Delete, ..Options::default() };
    let selection = Selection { given, ..Selection::default() };
    assert_conflict(&sync::run(&session, selection, &options, &Stop::default()).await, &server);
}

/// What is right: the answer shows the resource, although its alias is not the declared one.
#[rstest]
#[case::same_id(ONE_VALUE, json!({"id": "v1.2", "name": "old", "note": "mine"}))]
#[case::case(ONE_TEMPLATE, json!({"name": "V1.2", "note": "mine"}))]
#[case::form(ONE_TEMPLATE, json!({"name": "v1.2\u{301}", "note": "mine"}))]
#[case::not_a_name(ONE_TEMPLATE, json!({"name": "projects/p1/tags/v1.2", "note": "mine"}))]
#[case::no_alias(ONE_TEMPLATE, json!({"note": "mine"}))]
#[case::alias_not_stated("resource: {id: /name}", foreign())]
#[case::singleton("resource: {id: /name, alias: /name, singleton: true}", foreign())]
#[tokio::test]
async fn the_resource_with_another_spelling_is_updated(#[case] metadata: &str, #[case] tag: Value) {
    let (server, world) = (lenient(tag), world(metadata));
    world.declare("tags/v1.2/resource.json", DECLARED);
    let report = world.sync_on(server.url(), &[]).await;
    assert_eq!((report.outcome, report.stats.updated), (Outcome::Succeeded, 1), "{report:?}");
    assert_eq!(server.writes(), ["PUT /tags/v1.2 200"]);
}

/// A directory keeps its name when the file gives its resource another one.
#[tokio::test]
async fn a_new_name_in_the_file_is_an_update() {
    let server = ApiServer::start(&["/tags"], |request, store| {
        if request.method != "PUT" {
            return request.rest(store, Ids::Stated("name"));
        }
        if !store.remove(&request.path) {
            return Answer::missing();
        }
        store.put(&format!("/tags/{}", request.body["name"].as_str().unwrap()), request.body.clone());
        Answer::json(200, &request.body)
    });
    server.put("/tags/v1", json!({"name": "v1"}));
    let world = world(ONE_TEMPLATE);
    world.declare("tags/v1/resource.json", r#"{"name":"v2"}"#);
    let report = world.sync_on(server.url(), &[]).await;
    assert_eq!((report.outcome, report.stats.updated), (Outcome::Succeeded, 1), "{report:?}");
    assert_eq!(server.get("/tags/v2"), Some(json!({"name": "v2"})));
    let again = world.sync_on(server.url(), &[]).await;
    assert_eq!((again.outcome, again.stats.unchanged), (Outcome::Succeeded, 1), "{again:?}");
}

/// The message has the reason of the server, such as a quota, and not the answer to the update that follows, unless another
/// client has created the resource.
#[rstest]
#[case::quota(404, false, "POST /tags: ")]
#[case::invalid_name(409, false, "POST /tags: ")]
#[case::exists(409, true, "PUT /tags/v1.2: ")]
#[tokio::test]
async fn a_refused_create_has_the_reason_of_its_answer(
    #[case] update: u16,
    #[case] exists: bool,
    #[case] begin: &str,
) {
    let server = ApiServer::start(&["/tags"], move |request, store| match request.method.as_str() {
        "POST" => {
            if exists {
                store.put("/tags/v1.2", json!({"name": "v1.2", "note": "theirs"}));
            }
            Answer::json(409, &json!({"error": "quota exceeded"}))
        }
        "PUT" => Answer::json(update, &json!({"error": "unable to edit"})),
        _ => request.rest(store, Ids::Stated("name")),
    });
    let world = world(ONE_TEMPLATE);
    world.declare("tags/v1.2/resource.json", DECLARED);
    let report = world.sync_on(server.url(), &[]).await;
    let (reason, message) = failure(&report);
    assert!(message.starts_with(begin), "{message}");
    assert_eq!(message.contains("unable to edit"), exists, "{message}");
    assert_eq!(
        (reason, server.writes()),
        ("ConflictError", vec!["POST /tags 409".to_owned(), format!("PUT /tags/v1.2 {update}")])
    );
}
