//! Resources that were declared once, and those that another policy declares now.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::{Method, StatusCode, Uri};
use declarest_core::path::LogicalPath;
use declarest_core::payload::{PayloadType, decode};
use declarest_core::server::Throttling;
use declarest_core::sync::{self, Candidate, Options, Outcome, PruneLimit, Report, Selection, Session, Stop};
use rstest::rstest;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::api_server::{Answer, ApiServer, Ids, Request};
use crate::client::{client, throttled};
use crate::rest_server::{Config, Matcher};
use crate::world::{World, failure};

fn things(files: &[(&str, &str)]) -> World {
    let world = World::new(Config { collections: vec!["/things".to_owned()], ..Config::default() }, files);
    world.server.put_by_hand("/things/main", json!({"id": "main"}));
    world
}

async fn sync_and_prune(world: &World, whole: bool) -> Report {
    let session = world.session();
    let payload = decode(PayloadType::Json, br#"{"id":"main"}"#).unwrap();
    let prune =
        vec![Candidate { path: LogicalPath::parse("/things/main").unwrap(), payload, declared_in: None }];
    let selection = if whole {
        Selection::full(session.tree.as_ref(), &LogicalPath::root(), true).unwrap()
    } else {
        Selection::default()
    };
    let selection = Selection { prune, ..selection };
    sync::run(&session, selection, &Options::default(), &Stop::default()).await
}

/// The old path had the name that is the id, and the new one has not; it may be selected with the old one, or have been
/// declared long before.
#[rstest]
#[tokio::test]
async fn what_another_path_stands_for_stays(#[values(true, false)] whole: bool) {
    let world = things(&[("things/hq/resource.json", r#"{"id":"main"}"#)]);
    let report = sync_and_prune(&world, whole).await;
    assert_eq!((report.outcome, report.stats.pruned), (Outcome::Succeeded, 0), "{report:?}");
    assert_eq!(world.live("/things/main"), r#"{"id":"main"}"#);
}

#[rstest]
#[case::secret("{\"id\":\"main\",\"pw\":\"{{secret .}}\"}", None)]
#[case::syntax("{\"id\":\"main\"", None)]
#[case::answer("{\"id\":\"main\"}", Some(500))]
#[tokio::test]
async fn it_stays_also_if_the_other_path_cannot_be_worked_on(
    #[case] payload: &str,
    #[case] status: Option<u16>,
    #[values(true, false)] whole: bool,
) {
    let world = things(&[("things/hq/resource.json", payload)]);
    if let Some(status) = status {
        world.server.fail(Matcher::new("GET", "/things/main"), status, usize::MAX);
    }
    sync_and_prune(&world, whole).await;
    assert_eq!(world.live("/things/main"), r#"{"id":"main"}"#);
    assert!(world.server.counts().method("DELETE") == 0);
}

#[tokio::test]
async fn undeclared_resources_are_deleted() {
    let world = things(&[("things/hq/resource.json", r#"{"id":"hq"}"#)]);
    let report = sync_and_prune(&world, true).await;
    assert_eq!((report.stats.created, report.stats.pruned), (1, 1), "{report:?}");
    assert_eq!(world.live("/things/main"), "absent");
}

/// The reads take longer than a part of a run, and each part has fewer replacements than the limit.
#[rstest]
#[case::above(10, 0)]
#[case::within(30, 30)]
#[tokio::test]
async fn replacements_count_for_the_limit_of_the_whole_run(#[case] limit: usize, #[case] replaced: usize) {
    const RESOURCES: usize = 30;
    let world = things(&[("things/_/metadata.yaml", "resource: {replaceOn: [/kind]}")]);
    for index in 0..RESOURCES {
        let desired = json!({"id": format!("t{index}"), "kind": "new"});
        world.declare(&format!("things/t{index}/resource.json"), &desired.to_string());
        world
            .server
            .put_by_hand(&format!("/things/t{index}"), json!({"id": format!("t{index}"), "kind": "old"}));
    }
    world.server.latency(Duration::from_millis(150));
    let throttling = Throttling { max_concurrent_requests: Some(2), ..Throttling::default() };
    let session = Session { client: throttled(&world.server.url(), &throttling), ..world.session() };
    let selection = Selection::full(session.tree.as_ref(), &LogicalPath::root(), true).unwrap();
    let options = Options { prune_limit: PruneLimit::Count(limit), ..Options::default() };
    let report = sync::run(&session, selection, &options, &Stop::default()).await;
    let counts = world.server.counts();
    assert_eq!((counts.method("DELETE"), counts.method("POST")), (replaced, replaced), "{report:?}");
    assert_eq!(report.prune_refused.map(|refused| refused.count), (replaced == 0).then_some(RESOURCES));
    let kind = if replaced == 0 { "old" } else { "new" };
    for index in 0..RESOURCES {
        assert_eq!(world.server.get(&format!("/things/t{index}")).unwrap()["kind"], kind);
    }
}

/// Metadata addresses the declared resource below the other one, wherever the repository has it.
#[rstest]
#[case::no_query("{}")]
#[case::option("{delete: {query: {force: 'true'}}}")]
#[case::revision("{delete: {query: {rev: '{{$observed.id}}'}}}")]
#[tokio::test]
async fn a_resource_above_a_declared_one_on_the_server_stays(#[case] operations: &str) {
    let shops = format!("operations: {operations}");
    let config =
        Config { collections: vec!["/shops".to_owned(), "/shops/*/tills".to_owned()], ..Config::default() };
    let world = World::new(
        config,
        &[
            ("shops/_/metadata.yaml", &shops),
            ("tills/_/metadata.yaml", "resource: {remoteCollectionPath: '/shops/{{/shop}}/tills'}"),
            ("tills/t1/resource.json", r#"{"id":"t1","shop":"rio"}"#),
        ],
    );
    for shop in ["lima", "rio", "rio2"] {
        world.server.put_by_hand(&format!("/shops/{shop}"), json!({"id": shop}));
    }
    world.server.put_by_hand("/shops/rio/tills/t1", json!({"id": "t1", "shop": "rio"}));
    let report = world.prune("/shops/rio").await;
    assert_eq!((report.stats.pruned, report.kept.len()), (0, 1), "{report:?}");
    assert_ne!(world.live("/shops/rio/tills/t1"), "absent");
    for other in ["/shops/lima", "/shops/rio2"] {
        assert_eq!(world.prune(other).await.stats.pruned, 1);
    }
}

/// The server deletes a resource together with its parent. Singletons belong to their parents.
#[rstest]
#[case::kept("resource: {onRemove: keep}", 0, 2)]
#[case::singleton("resource: {singleton: true}", 1, 0)]
#[tokio::test]
async fn the_parent_of_a_resource_that_metadata_keeps_stays(
    #[case] metadata: &str,
    #[case] pruned: usize,
    #[case] kept: usize,
) {
    let world = World::new(Config::default(), &[("projects/_/data/_/metadata.yaml", metadata)]);
    let candidates = [("/projects/p1", r#"{"id":"p1"}"#), ("/projects/p1/data/main", r#"{"id":"main"}"#)];
    for (path, payload) in candidates {
        world.server.put_by_hand(path, serde_json::from_str(payload).unwrap());
    }
    let report = world.apply(world.plan_prune(&candidates).await).await;
    assert_eq!((report.stats.pruned, report.kept.len()), (pruned, kept), "{report:?}");
    assert_eq!(world.live("/projects/p1/data/main") == "absent", pruned == 1);
}

/// Many servers answer a filter by a parent that they do not know with an empty list.
#[tokio::test]
async fn an_empty_list_below_the_name_of_a_parent_proves_nothing() {
    type Posts = Arc<Mutex<Vec<String>>>;
    async fn answer(
        State(posts): State<Posts>,
        method: Method,
        uri: Uri,
        body: String,
    ) -> (StatusCode, String) {
        let (status, answer) = match (method, uri.path()) {
            (Method::POST, path) => {
                posts.lock().unwrap().push(path.to_owned());
                return (StatusCode::CREATED, body);
            }
            (_, "/projects") => (StatusCode::OK, r#"[{"id":"17","name":"p1"}]"#),
            (_, "/projects/17") => (StatusCode::OK, r#"{"id":"17","name":"p1"}"#),
            (_, "/projects/p1/items" | "/projects/17/items") => (StatusCode::OK, "[]"),
            _ => (StatusCode::NOT_FOUND, "{}"),
        };
        (status, answer.to_owned())
    }
    let posts = Posts::default();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let router = Router::new().fallback(answer).with_state(Arc::clone(&posts));
    let server = tokio::spawn(async { axum::serve(listener, router).await });
    let world =
        World::new(Config::default(), &[("projects/_/metadata.yaml", "resource: {id: /id, alias: /name}")]);
    world.declare("projects/p1/resource.json", r#"{"name":"p1"}"#);
    for index in 0..8 {
        let id = format!("x{index}");
        world.declare(&format!("projects/p1/items/{id}/resource.json"), &json!({"id": id}).to_string());
    }
    for first in [true, false] {
        let session = Session { client: client(&url), ..world.session() };
        let everything = Selection::full(session.tree.as_ref(), &LogicalPath::root(), true).unwrap();
        let options = Options { first, ..Options::default() };
        let report = sync::run(&session, everything, &options, &Stop::default()).await;
        assert_eq!(report.stats.created, 8, "{report:?}");
        let paths = std::mem::take(&mut *posts.lock().unwrap());
        assert!(paths.iter().all(|path| path == "/projects/17/items"), "{paths:?}");
    }
    server.abort();
}

/// Serves these answers to GET, and 404 to everything else. Also returns the URL.
async fn serve(answers: &'static [(&'static str, &'static str)]) -> (String, JoinHandle<io::Result<()>>) {
    let answer = move |method: Method, uri: Uri| async move {
        let found = answers.iter().find(|(path, _)| method == Method::GET && *path == uri.path());
        found.map_or((StatusCode::NOT_FOUND, "{}"), |(_, answer)| (StatusCode::OK, *answer))
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let router = Router::new().fallback(answer);
    (url, tokio::spawn(async { axum::serve(listener, router).await }))
}

/// The list of the projects is cut before the parent, whose id is not in the payload.
#[tokio::test]
async fn a_cut_list_without_the_parent_proves_nothing() {
    let (url, server) = serve(&[
        ("/projects", r#"{"total":2,"items":[{"id":"1","name":"other"}]}"#),
        ("/projects/17", r#"{"id":"17","name":"p1"}"#),
        ("/projects/17/items/old", r#"{"id":"old"}"#),
    ])
    .await;
    let world =
        World::new(Config::default(), &[("projects/_/metadata.yaml", "resource: {id: /id, alias: /name}")]);
    world.declare("projects/p1/resource.json", r#"{"name":"p1"}"#);
    let path = LogicalPath::parse("/projects/p1/items/old").unwrap();
    let payload = decode(PayloadType::Json, br#"{"id":"old"}"#).unwrap();
    let prune = vec![Candidate { path, payload, declared_in: None }];
    let selection = Selection { prune, ..Selection::default() };
    let session = Session { client: client(&url), ..world.session() };
    let report = sync::run(&session, selection, &Options::default(), &Stop::default()).await;
    let (_, message) = failure(&report);
    assert!(message.contains("the list of its collection has further pages"), "{message}");
    server.abort();
}

/// Such an id comes with files that were saved from another server.
#[rstest]
#[case::texts("resource: {id: /id, alias: /name}", json!("w-1"), json!("w-9"))]
#[case::numbers("resource: {id: /id, alias: /name}", json!(1), json!(9))]
#[case::by_default("resource: {alias: /name}", json!(1), json!(9))]
#[tokio::test]
async fn an_id_that_nothing_has_is_neither_compared_nor_sent(
    #[case] metadata: &str,
    #[case] stated: Value,
    #[case] id: Value,
) {
    let config = Config { collections: vec!["/shops".to_owned()], ..Config::default() };
    let declared = json!({"id": stated, "name": "rio", "tier": "gold"});
    let world = World::new(
        config,
        &[("shops/_/metadata.yaml", metadata), ("shops/rio/resource.json", &declared.to_string())],
    );
    let path = format!("/shops/{}", id.as_str().map_or_else(|| id.to_string(), str::to_owned));
    world.server.put_by_hand(&path, json!({"id": id, "name": "rio", "tier": "free"}));
    assert_eq!(world.sync().await.stats.updated, 1);
    assert_eq!(world.server.get(&path), Some(json!({"id": id, "name": "rio", "tier": "gold"})));
    assert_eq!(world.sync().await.stats.unchanged, 1);
    assert_eq!(world.writes(), [format!("PUT {path} 200")]);
}

/// The address of a member of a group comes from its payload, and its deletion has a query or another method.
#[rstest]
#[case::query("{path: '/groups/{{/group}}/members/{{/user}}', query: {notify: 'false'}}")]
#[case::revision("{path: '/groups/{{/group}}/members/{{/user}}', query: {rev: '{{$observed.user}}'}}")]
#[case::method("{method: POST, path: '/groups/{{/group}}/members/{{/user}}/remove'}")]
#[case::function(
    "{method: POST, path: '/groups/{{/group}}/members/{{/user}}/remove', body: {rev: '{{index $observed \"user\"}}'}}"
)]
#[tokio::test]
async fn a_renamed_file_of_an_address_in_the_payload_deletes_nothing(#[case] delete: &str) {
    let server = ApiServer::rest(&["/groups", "/groups/*/members"], Ids::Stated("user"));
    let address = "path: '/groups/{{/group}}/members/{{/user}}'";
    let metadata = format!(
        "operations: {{get: {{{address}}}, create: {{method: PUT, {address}}}, update: {{{address}}}, delete: {delete}}}"
    );
    let world = World::new(Config::default(), &[("members/_/metadata.yaml", &metadata)]);
    let ana = r#"{"group":"admins","user":"ana"}"#;
    world.declare("members/admins-ana/resource.json", ana);
    server.put("/groups/admins/members/ana", json!({"group": "admins", "user": "ana"}));
    let report = world.sync_on(server.url(), &[("/members/ana-admins", ana)]).await;
    assert_eq!((report.kept.len(), report.stats.pruned), (1, 0), "{report:?}");
    assert_eq!(server.writes(), [""; 0]);
}

const MEMBERS: &str = "
operations:
  get: {path: '/groups/{{/group}}/members/{{/user}}'}
  create: {method: PUT, path: '/groups/{{/group}}/members/{{/user}}'}
  update: {path: '/groups/{{/group}}/members/{{/user}}'}
  delete: {path: '/groups/{{/group}}/members/{{/user}}'}
";

/// A server that assigns the ids of groups, and names their members by users.
fn groups() -> ApiServer {
    ApiServer::start(&["/groups", "/groups/*/members"], |request, store| {
        request.rest(store, if request.segments().len() > 2 { Ids::Stated("user") } else { Ids::Given })
    })
}

fn member_of(group: &str) -> String {
    json!({"group": group, "user": "ana"}).to_string()
}

/// The address of a removed membership has the id of its group, which the payload states as a reference.
#[rstest]
#[case::group(true)]
#[case::no_group(false)]
#[tokio::test]
async fn a_candidate_is_deleted_at_the_address_of_its_references(#[case] exists: bool) {
    let server = groups();
    let metadata = [
        ("members/_/metadata.yaml", MEMBERS),
        ("groups/_/metadata.yaml", "resource: {id: /id, alias: /name}"),
        ("groups/admins/resource.json", r#"{"name":"admins"}"#),
    ];
    let world = World::new(Config::default(), &metadata);
    if exists {
        server.put("/groups/g1", json!({"id": "g1", "name": "admins"}));
        server.put("/groups/g1/members/ana", json!({"user": "ana"}));
    }
    let candidate = member_of(r#"{{ref "/groups/admins" "/id"}}"#);
    let report = world.sync_on(server.url(), &[("/members/admins-ana", &candidate)]).await;
    if exists {
        assert_eq!((report.stats.pruned, report.failures.len()), (1, 0), "{report:?}");
        assert_eq!(server.writes(), ["DELETE /groups/g1/members/ana 204"]);
    } else {
        // It does not exist without its group.
        assert_eq!((report.stats.pruned, report.failures.len()), (0, 0), "{report:?}");
        assert_eq!(server.writes(), ["POST /groups 201"]);
    }
}

/// A commit renames the file and states the group by a reference.
#[tokio::test]
async fn a_claim_has_the_address_of_its_references() {
    let server = groups();
    server.put("/groups/g1", json!({"id": "g1", "name": "admins"}));
    server.put("/groups/g1/members/ana", json!({"group": "g1", "user": "ana"}));
    let metadata = [
        ("members/_/metadata.yaml", MEMBERS),
        ("groups/_/metadata.yaml", "resource: {id: /id, alias: /name}"),
        ("groups/admins/resource.json", r#"{"name":"admins"}"#),
    ];
    let world = World::new(Config::default(), &metadata);
    let now = member_of(r#"{{ref "/groups/admins" "/id"}}"#);
    world.declare("members/admins-ana/resource.json", &now);
    let report = world.sync_on(server.url(), &[("/members/ana-admins", &member_of("g1"))]).await;
    assert_eq!((report.kept.len(), report.failures.len()), (1, 0), "{report:?}");
    assert_eq!(server.count("DELETE"), 0);
}

/// The placeholder of a reset is in metadata, so no store fills it.
#[tokio::test]
async fn a_reset_does_not_send_a_placeholder() {
    let server = ApiServer::rest(&["/settings"], Ids::Stated("id"));
    server.put("/settings/mail", json!({"id": "mail", "password": "old"}));
    let metadata = "resource: {onRemove: {reset: {id: mail, password: '{{secret mail}}'}}}";
    let world = World::new(Config::default(), &[("settings/_/metadata.yaml", metadata)]);
    let options = Options { allow_empty: true, ..Options::default() };
    let candidate = ("/settings/mail", r#"{"id":"mail","password":"{{secret .}}"}"#);
    let report = world.sync_with(server.url(), &[candidate], &options).await;
    let (_, message) = failure(&report);
    assert!(message.contains("its request has a placeholder"), "{message}");
    assert_eq!(server.writes(), [""; 0]);
}

/// A declared membership refers to a group that Git does not declare, and cannot be written. Another one is removed.
#[tokio::test]
async fn a_claim_without_a_value_does_not_keep_other_resources() {
    let server = ApiServer::rest(&["/groups/*/members"], Ids::Stated("user"));
    server.put("/groups/g1/members/ana", json!({"group": "g1", "user": "ana"}));
    let world = World::new(Config::default(), &[("members/_/metadata.yaml", MEMBERS)]);
    let broken = json!({"group": r#"{{ref "/groups/none" "/id"}}"#, "user": "bob"}).to_string();
    world.declare("members/none-bob/resource.json", &broken);
    let report = world.sync_on(server.url(), &[("/members/g1-ana", &member_of("g1"))]).await;
    let (_, message) = failure(&report);
    assert!(message.contains("/members/none-bob: cannot resolve"), "{message}");
    assert_eq!(server.writes(), ["DELETE /groups/g1/members/ana 204"]);
}

/// A commit removes a group and a membership that refers to it. The server deletes only empty groups.
#[tokio::test]
async fn a_candidate_is_deleted_before_what_it_refers_to() {
    let server = groups();
    server.put("/groups/g1", json!({"id": "g1", "name": "admins"}));
    server.put("/groups/g1/members/ana", json!({"user": "ana"}));
    let metadata = [
        ("members/_/metadata.yaml", MEMBERS),
        ("groups/_/metadata.yaml", "resource: {id: /id, alias: /name}"),
    ];
    let former = [("groups/admins/resource.json", r#"{"name":"admins"}"#)];
    let earlier = World::new(Config::default(), &[&metadata[..], &former].concat());
    let world = World::new(Config::default(), &metadata);
    let membership = member_of(r#"{{ref "/groups/admins" "/id"}}"#);
    let session = Session { client: client(server.url()), ..world.session() };
    let candidate = |path: &str, payload: &str| Candidate {
        path: LogicalPath::parse(path).unwrap(),
        payload: decode(PayloadType::Json, payload.as_bytes()).unwrap(),
        declared_in: Some(earlier.session().tree),
    };
    let prune =
        vec![candidate("/groups/admins", r#"{"name":"admins"}"#), candidate("/members/ana", &membership)];
    let selection = Selection { prune, ..Selection::default() };
    let options = Options { allow_empty: true, ..Options::default() };
    let report = sync::run(&session, selection, &options, &Stop::default()).await;
    assert_eq!((report.stats.pruned, report.failures.len()), (2, 0), "{report:?}");
    assert_eq!(server.writes(), ["DELETE /groups/g1/members/ana 204", "DELETE /groups/g1 204"]);
}

/// Both have the name that a secret or another resource states.
#[rstest]
#[case::secret("{{secret rio}}")]
#[case::reference(r#"{{ref "/owners/ana" "/shop"}}"#)]
#[tokio::test]
async fn a_renamed_directory_of_a_resource_with_a_name_from_elsewhere_is_kept(#[case] name: &str) {
    let config = Config { collections: vec!["/shops".to_owned(), "/owners".to_owned()], ..Config::default() };
    let payload = json!({"name": name}).to_string();
    let files = [
        ("shops/_/metadata.yaml", "resource: {id: /id, alias: /name}"),
        ("shops/rio-prod/resource.json", &payload),
        ("owners/ana/resource.json", r#"{"id": "ana", "shop": "rio"}"#),
    ];
    let world = World::new(config, &files).with_secrets(&[("rio", "rio")]).await;
    world.server.put_by_hand("/owners/ana", json!({"id": "ana", "shop": "rio"}));
    world.server.put_by_hand("/shops/s7", json!({"id": "s7", "name": "rio"}));
    let report = world.sync_on(&world.server.url(), &[("/shops/rio", &payload)]).await;
    assert_eq!((report.stats.pruned, report.stats.created), (0, 0), "{report:?}");
    assert_eq!(world.writes(), Vec::<String>::new());
}

/// The server answers 403 below an event that it does not have. An earlier run has deleted the event.
#[rstest]
#[case::absent(false, 0)]
#[case::hidden(true, 1)]
#[tokio::test]
async fn what_was_below_an_absent_parent_is_gone(#[case] exists: bool, #[case] failed: usize) {
    let server = ApiServer::start(&["/events"], |request, store| match request.segments()[..] {
        ["events", _, ..] => Answer::json(403, &json!({"error": "forbidden"})),
        _ => request.rest(store, Ids::Stated("id")),
    });
    if exists {
        server.put("/events/camp", json!({"id": "camp"}));
    }
    let metadata = "resource: {id: /id, alias: /id}\noperations: {get: {from: list}}";
    let world = World::new(Config::default(), &[("events/_/metadata.yaml", metadata)]);
    let report = world.sync_on(server.url(), &[("/events/camp/items/tent", r#"{"id":"tent"}"#)]).await;
    assert_eq!((report.stats.pruned, report.stats.failed), (0, failed), "{report:?}");
}

/// All requests of a server of remote procedures have one path, and no request reads a resource alone.
#[rstest]
#[tokio::test]
async fn members_of_other_lists_are_not_the_same(#[values("", "get: {method: POST, path: /rpc}")] get: &str) {
    let server = ApiServer::start(&["/hosts", "/groups"], |request, store| {
        let (collection, id) = (request.body["of"].as_str().unwrap(), request.body["id"].as_str());
        match id {
            None => Answer::json(200, &json!({"result": store.members(collection)})),
            Some(id) => Answer::json(200, &json!({"result": store.remove(&format!("{collection}/{id}"))})),
        }
    });
    server.put("/hosts/1", json!({"id": "1", "name": "web"}));
    server.put("/groups/1", json!({"id": "1", "name": "old"}));
    server.put("/groups/2", json!({"id": "2", "name": "own"}));
    let all = format!(
        "operations:\n  list: {{method: POST, path: /rpc, transforms: [{{jqExpression: .result}}]}}\n  \
         delete: {{method: POST, path: /rpc}}\n  {get}"
    );
    let of = |collection: &str| {
        format!(
            "resource: {{id: /id, alias: /name}}\noperations:\n  get: {{from: list}}\n  list: {{body: {{of: {collection}}}}}\n  \
             delete: {{body: {{of: {collection}, id: '{{{{/remoteID}}}}'}}}}"
        )
    };
    let (hosts, groups) = (of("/hosts"), of("/groups"));
    let files = [
        ("_/metadata.yaml", all.as_str()),
        ("hosts/_/metadata.yaml", &hosts),
        ("groups/_/metadata.yaml", &groups),
    ];
    let world = World::new(Config::default(), &files);
    world.declare("hosts/web/resource.json", r#"{"name": "web"}"#);
    let report = world.sync_on(server.url(), &[("/groups/old", r#"{"name": "old"}"#)]).await;
    assert_eq!((report.stats.pruned, report.stats.failed), (1, 0), "{report:?}");
    assert_eq!(server.paths(), ["/groups/2", "/hosts/1"]);
    // The directory of the collection was renamed, so the declared host has another collection, and the same list.
    let candidate = ("/servers/web", r#"{"name": "web"}"#);
    world.declare("servers/_/metadata.yaml", &hosts);
    let report = world.sync_on(server.url(), &[candidate]).await;
    assert_eq!((report.stats.pruned, report.kept.len()), (0, 1), "{report:?}");
    assert_eq!(server.paths(), ["/groups/2", "/hosts/1"]);
}

/// Only a list shows the memberships of a group, and they are deleted elsewhere.
#[tokio::test]
async fn a_parent_is_kept_whose_declared_members_have_another_address_of_deletions() {
    let server = ApiServer::rest(&["/groups", "/groups/*/members", "/memberships"], Ids::Stated("id"));
    server.put("/groups/g1", json!({"id": "g1"}));
    server.put("/groups/g1/members/ana", json!({"id": "ana"}));
    let metadata = "resource: {remoteCollectionPath: /groups/g1/members, id: /id, alias: /id}\noperations: {get: {from: list}, \
                    delete: {path: '/memberships/{{/id}}'}}";
    let world = World::new(Config::default(), &[("access/_/metadata.yaml", metadata)]);
    world.declare("access/ana/resource.json", r#"{"id": "ana"}"#);
    let report = world.sync_on(server.url(), &[("/groups/g1", r#"{"id": "g1"}"#)]).await;
    assert_eq!((report.stats.pruned, report.kept.len()), (0, 1), "{report:?}");
}

/// The directory of a product had the id of another one as its name, so it was refused, and removed from Git. The server
/// assigns ids.
#[rstest]
#[case::unknown("", Outcome::PartiallyFailed)]
#[case::kept(", onRemove: keep", Outcome::Succeeded)]
#[tokio::test]
async fn a_removed_file_with_the_id_of_another_resource_can_be_kept(
    #[case] on_remove: &str,
    #[case] outcome: Outcome,
) {
    let server = ApiServer::rest(&["/products"], Ids::Given);
    server.put("/products/5", json!({"id": "5", "name": "p10"}));
    let metadata = format!("resource: {{id: /id, alias: /name{on_remove}}}\n");
    let world = World::new(Config::default(), &[("products/_/metadata.yaml", &metadata)]);
    let report = world.sync_on(server.url(), &[("/products/5", r#"{"name":"five"}"#)]).await;
    assert_eq!((report.outcome, server.writes()), (outcome, Vec::<String>::new()), "{report:?}");
    if outcome == Outcome::PartiallyFailed {
        let (reason, message) = failure(&report);
        assert_eq!(reason, "ConflictError");
        assert!(
            message.ends_with("(\"p10\"), which is not deleted; state resource.onRemove: keep for its path"),
            "{message}"
        );
    } else {
        assert!(report.kept[0].reason.contains("resource.onRemove: keep"), "{report:?}");
    }
}

/// The deletion names the resource in its query, at a path beside that of the collection, as for groups of Jira.
#[rstest]
#[case::address(
    "get: {path: /group, query: {name: '{{/name}}'}}, delete: {path: /group, query: {name: '{{/name}}'}}"
)]
#[case::list("get: {from: list}, delete: {path: /group, query: {name: '{{/name}},{{$observed.name}}'}}")]
#[tokio::test]
async fn a_resource_is_deleted_at_a_path_beside_its_collection(#[case] operations: &str) {
    let server = ApiServer::start(&["/groups"], |request, store| match request.query.get("name") {
        Some(name) if request.path == "/group" => {
            let path = format!("/groups/{}", name.split(',').next().unwrap());
            Request { path, query: BTreeMap::new(), ..request.clone() }.rest(store, Ids::Stated("name"))
        }
        _ => request.rest(store, Ids::Stated("name")),
    });
    for name in ["a", "b"] {
        server.put(&format!("/groups/{name}"), json!({"name": name}));
    }
    let metadata = format!("resource: {{id: /name, alias: /name}}\noperations: {{{operations}}}\n");
    let world = World::new(Config::default(), &[("groups/_/metadata.yaml", &metadata)]);
    world.declare("groups/b/resource.json", r#"{"name":"b"}"#);
    let report = world.sync_on(server.url(), &[("/groups/a", r#"{"name":"a"}"#)]).await;
    assert_eq!((report.stats.pruned, report.kept.len()), (1, 0), "{report:?}");
    assert_eq!(server.paths(), ["/groups/b"]);
}
