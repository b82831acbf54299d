//! Resources of several parents in one collection of the server. The names of the parents are parts of their addresses.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::State;
use axum::http::{Method, StatusCode, Uri};
use declarest_core::path::LogicalPath;
use declarest_core::payload::{PayloadType, decode};
use declarest_core::sync::{
    self, Candidate, Options, Outcome, Report, Selection, Session, Stats, Stop, WrittenValues,
};
use rstest::rstest;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::api_server::{Answer, ApiServer, Ids, Request, Store};
use crate::client::client;
use crate::commit::Commit;
use crate::rest_server::Config;
use crate::world::{World, selected};

/// Services of hosts, as a monitoring system has them.
const SERVICES: (&str, &str) = (
    "hosts/_/services/_/metadata.yaml",
    "resource: {id: /name, alias: /name, remoteCollectionPath: /services}\noperations: {get: {path: './{{/host}}!{{/name}}'}, delete: {path: './{{/host}}!{{/name}}'}}",
);

/// The same, and the list of a host has only its services.
const LISTED_SERVICES: (&str, &str) = (
    SERVICES.0,
    r#"
resource: {id: /name, alias: /name, remoteCollectionPath: /services}
operations:
  create: {method: PUT, path: './{{/host}}!{{/name}}'}
  get: {path: './{{/host}}!{{/name}}'}
  delete: {path: './{{/host}}!{{/name}}'}
  list: {transforms: [{jqExpression: '[.[] | select(.host == "{{/host}}")]'}]}
"#,
);

/// Deletes `path`, which `former` declares and `world` does not.
async fn prune(world: &World, former: &World, path: &str, url: Option<&str>) -> Report {
    prune_with(world, former, path, url, Selection::default()).await
}

/// The same in a run over `selection`.
async fn prune_with(
    world: &World,
    former: &World,
    path: &str,
    url: Option<&str>,
    selection: Selection,
) -> Report {
    let declared_in = Commit::numbered(former.session().tree, 1, Arc::new(AtomicUsize::new(0)));
    let file = format!("{}/resource.json", path.trim_start_matches('/'));
    let payload = declared_in.read_within(&file, 1 << 20).unwrap().unwrap();
    let candidate = Candidate {
        path: LogicalPath::parse(path).unwrap(),
        payload: decode(PayloadType::Json, &payload).unwrap(),
        declared_in: Some(declared_in),
    };
    let mut session = world.session();
    if let Some(url) = url {
        session = Session { client: client(url), ..session };
    }
    let selection = Selection { prune: vec![candidate], ..selection };
    sync::run(&session, selection, &Options::default(), &Stop::default()).await
}

/// The run that created a moved resource at its new place could not delete it at the former one.
#[rstest]
#[case::another_id("2", 1)]
#[case::same_id("1", 0)]
#[tokio::test]
async fn a_moved_resource_with_another_id_is_deleted(#[case] id: &str, #[case] pruned: usize) {
    let metadata = SERVICES.1.replace("{id: /name,", "{id: /id,");
    let metadata = (SERVICES.0, metadata.as_str());
    let config = || Config { collections: vec!["/services".to_owned()], ..Config::default() };
    let (former, world) = (World::new(config(), &[metadata]), World::new(config(), &[metadata]));
    former.declare("hosts/web2/services/http/resource.json", r#"{"name":"http"}"#);
    world.declare("hosts/web1/services/http/resource.json", r#"{"name":"http"}"#);
    for (host, id) in [("web2", "1"), ("web1", id)] {
        let payload = json!({"name": "http", "id": id, "host": host});
        world.server.put_by_hand(&format!("/services/{host}!http"), payload);
    }
    let report = prune(&world, &former, "/hosts/web2/services/http", None).await;
    assert_eq!((report.stats.pruned, report.kept.len()), (pruned, 1 - pruned), "{report:?}");
    assert_ne!(world.live("/services/web1!http"), "absent");
}

/// A service was moved to another host in Git. It is deleted at its former address only after this run has created it at
/// the new one.
#[rstest]
#[case::whole_scope(true)]
#[case::former_parent(false)]
#[tokio::test]
async fn a_moved_resource_is_deleted_after_its_create(#[case] creates: bool) {
    let config = || Config { collections: vec!["/services".to_owned()], ..Config::default() };
    let (former, world) =
        (World::new(config(), &[LISTED_SERVICES]), World::new(config(), &[LISTED_SERVICES]));
    former.declare("hosts/web2/services/http/resource.json", r#"{"name":"http"}"#);
    world.declare("hosts/web1/services/http/resource.json", r#"{"name":"http"}"#);
    let server = ApiServer::start(&["/services"], |request, store| {
        if request.method == "PUT" && store.get(&request.path).is_none() {
            store.put(&request.path, request.body.clone());
            return Answer::json(201, &request.body);
        }
        request.rest(store, Ids::Given)
    });
    server.put("/services/web2!http", json!({"name": "http", "host": "web2"}));
    let selection = if creates {
        Selection::full(world.session().tree.as_ref(), &LogicalPath::root(), true).unwrap()
    } else {
        Selection::default()
    };
    let path = "/hosts/web2/services/http";
    let report = prune_with(&world, &former, path, Some(server.url()), selection).await;
    let counts = (report.stats.created, report.stats.pruned);
    assert_eq!(counts, (usize::from(creates), usize::from(creates)), "{report:?}");
    let left = if creates { "/services/web1!http" } else { "/services/web2!http" };
    assert_eq!(server.paths(), [left]);
    let refused = "this run does not create /hosts/web1/services/http, which may be the same resource";
    assert_eq!(
        report.failures.iter().any(|failure| failure.message.contains(refused)),
        !creates,
        "{report:?}"
    );
}

/// A service that was declared beside another one of this name is not the other one. A service that the same commit
/// declares for another host may be the one that was moved there.
#[rstest]
#[case::beside(&["web1", "web2"], "", 1)]
#[case::revision(&["web1", "web2"], ", query: {rev: '{{$observed.host}}'}", 1)]
#[case::moved(&["web2"], "", 0)]
#[tokio::test]
async fn a_name_below_another_parent_is_another_resource(
    #[case] before: &[&str],
    #[case] query: &str,
    #[case] pruned: usize,
) {
    let config = || Config { collections: vec!["/services".to_owned()], ..Config::default() };
    let delete = "delete: {path: './{{/host}}!{{/name}}'";
    let metadata = LISTED_SERVICES.1.replace(delete, &format!("{delete}{query}"));
    let services = [(LISTED_SERVICES.0, metadata.as_str())];
    let (former, world) = (World::new(config(), &services), World::new(config(), &services));
    for host in before {
        former.declare(&format!("hosts/{host}/services/http/resource.json"), r#"{"name":"http"}"#);
    }
    world.declare("hosts/web1/services/http/resource.json", r#"{"name":"http"}"#);
    for host in ["web1", "web2"] {
        world.server.put_by_hand(&format!("/services/{host}!http"), json!({"name": "http", "host": host}));
    }
    let report = prune(&world, &former, "/hosts/web2/services/http", None).await;
    assert_eq!((report.outcome, report.stats.pruned), (Outcome::Succeeded, pruned), "{report:?}");
    assert_eq!(report.kept.len(), 1 - pruned);
    assert_ne!(world.live("/services/web1!http"), "absent");
    assert_eq!(world.live("/services/web2!http") == "absent", pruned == 1);
}

/// Two declarations that one request deletes are one resource, even if they are read in different ways.
#[tokio::test]
async fn resources_with_one_address_of_deletion_are_one() {
    let metadata = (
        SERVICES.0,
        "resource: {id: /name, alias: /name, remoteCollectionPath: /services}\noperations: {get: {path: './{{/host}}!{{/name}}'}, delete: {path: './{{/name}}'}}",
    );
    let config = || Config { collections: vec!["/services".to_owned()], ..Config::default() };
    let (former, world) = (World::new(config(), &[metadata]), World::new(config(), &[metadata]));
    for host in ["web1", "web2"] {
        former.declare(&format!("hosts/{host}/services/http/resource.json"), r#"{"name":"http"}"#);
        world.server.put_by_hand(&format!("/services/{host}!http"), json!({"name": "http", "host": host}));
    }
    world.declare("hosts/web1/services/http/resource.json", r#"{"name":"http"}"#);
    world.server.put_by_hand("/services/http", json!({"name": "http"}));
    let report = prune(&world, &former, "/hosts/web2/services/http", None).await;
    assert_eq!((report.stats.pruned, report.kept.len()), (0, 1), "{report:?}");
    assert_ne!(world.live("/services/http"), "absent");
}

/// The roles of users on a server of remote procedures: all reads have one path, and the user is in the body.
#[derive(Clone, Default)]
struct Grants(Arc<Mutex<BTreeSet<(String, String)>>>);

impl Grants {
    async fn serve(&self) -> (String, JoinHandle<()>) {
        async fn answer(
            State(Grants(grants)): State<Grants>,
            uri: Uri,
            body: String,
        ) -> (StatusCode, String) {
            let body: Value = serde_json::from_str(&body).unwrap_or_default();
            let text = |key: &str| body[key].as_str().unwrap_or_default().to_owned();
            let mut grants = grants.lock().unwrap();
            match uri.path() {
                "/user/get" => {
                    let of_user = grants.iter().filter(|(user, _)| *user == text("user"));
                    let roles: Vec<&String> = of_user.map(|(_, role)| role).collect();
                    return (StatusCode::OK, json!({"roles": roles}).to_string());
                }
                "/user/revoke" => grants.remove(&(text("user"), text("role"))),
                _ => return (StatusCode::NOT_FOUND, "{}".to_owned()),
            };
            (StatusCode::OK, "{}".to_owned())
        }
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let router = Router::new().fallback(answer).with_state(self.clone());
        (url, tokio::spawn(async { axum::serve(listener, router).await.unwrap() }))
    }
}

#[tokio::test]
async fn a_body_is_a_part_of_the_address() {
    let metadata = r#"
resource: {id: /name, alias: /name, remoteCollectionPath: /user}
operations:
  get:
    method: POST
    path: ./get
    body: {user: "{{/user}}"}
    transforms: [{jqExpression: 'if (.roles | index("{{/name}}")) then {name: "{{/name}}"} else null end'}]
  delete: {method: POST, path: ./revoke, body: {user: "{{/user}}", role: "{{/name}}"}}
"#;
    let metadata = ("users/_/roles/_/metadata.yaml", metadata);
    let (former, world) =
        (World::new(Config::default(), &[metadata]), World::new(Config::default(), &[metadata]));
    for user in ["ana", "bob"] {
        former.declare(&format!("users/{user}/roles/reader/resource.json"), r#"{"name":"reader"}"#);
    }
    world.declare("users/ana/roles/reader/resource.json", r#"{"name":"reader"}"#);
    let grants = Grants::default();
    let pair = |user: &str| (user.to_owned(), "reader".to_owned());
    grants.0.lock().unwrap().extend([pair("ana"), pair("bob")]);
    let (url, server) = grants.serve().await;
    let report = prune(&world, &former, "/users/bob/roles/reader", Some(&url)).await;
    assert_eq!((report.stats.pruned, report.kept.len()), (1, 0), "{report:?}");
    assert_eq!(*grants.0.lock().unwrap(), BTreeSet::from([pair("ana")]));
    server.abort();
}

/// The permissions of policies on a server that assigns ids and filters its list.
async fn permissions(
    State(stored): State<Arc<Mutex<BTreeMap<String, Value>>>>,
    method: Method,
    uri: Uri,
) -> (StatusCode, String) {
    let mut stored = stored.lock().unwrap();
    if let Some(id) = uri.path().strip_prefix("/permissions/") {
        let is_stored = stored.contains_key(id);
        if method == Method::DELETE {
            stored.remove(id);
        }
        return (if is_stored { StatusCode::OK } else { StatusCode::NOT_FOUND }, "{}".to_owned());
    }
    let policy = uri.query().and_then(|query| query.strip_prefix("policy=")).unwrap_or_default();
    let shown: Vec<&Value> = stored.values().filter(|permission| permission["policy"] == policy).collect();
    (StatusCode::OK, json!(shown).to_string())
}

/// Only the list shows whose permission it is, and the address of the deletion contains the id alone. A file may state the
/// id, as imported ones do.
#[rstest]
#[case::without_id(r#"{"name":"read"}"#, 1)]
#[case::with_id(r#"{"name":"read","id":"4"}"#, 1)]
#[case::with_an_id_of_no_resource(r#"{"name":"read","id":"9"}"#, 0)]
#[case::with_the_id_of_the_removed(r#"{"name":"read","id":"5"}"#, 0)]
#[tokio::test]
async fn resources_with_other_ids_are_others(#[case] declared: &str, #[case] pruned: usize) {
    let metadata = (
        "policies/_/permissions/_/metadata.yaml",
        "resource: {id: /id, alias: /name, remoteCollectionPath: /permissions}\noperations: {get: {from: list}, list: {query: {policy: '{{/policy}}'}}}",
    );
    let (former, world) =
        (World::new(Config::default(), &[metadata]), World::new(Config::default(), &[metadata]));
    for policy in ["editing", "viewing"] {
        former.declare(&format!("policies/{policy}/permissions/read/resource.json"), r#"{"name":"read"}"#);
    }
    world.declare("policies/editing/permissions/read/resource.json", declared);
    let permission = |id: &str, policy: &str| json!({"id": id, "name": "read", "policy": policy});
    let stored = [("4", "editing"), ("5", "viewing")].map(|(id, of)| (id.to_owned(), permission(id, of)));
    let stored = Arc::new(Mutex::new(BTreeMap::from(stored)));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let router = Router::new().fallback(permissions).with_state(Arc::clone(&stored));
    let server = tokio::spawn(async { axum::serve(listener, router).await.unwrap() });
    let report = prune(&world, &former, "/policies/viewing/permissions/read", Some(&url)).await;
    assert_eq!(report.stats.pruned, pruned, "{report:?}");
    assert_eq!(stored.lock().unwrap().len(), 2 - pruned);
    assert!(stored.lock().unwrap().contains_key("4"));
    server.abort();
}

/// Members of groups, which the server has only in their group.
const MEMBERS: (&str, &str) = (
    "groups/_/members/_/metadata.yaml",
    r#"
resource: {id: /name, alias: /name}
operations:
  get:
    path: ".."
    transforms: [{jqExpression: 'if (.members | index("{{/name}}")) then {name: "{{/name}}"} else null end'}]
"#,
);

fn group(request: &Request, store: &mut Store) -> Answer {
    let segments = request.segments();
    let ("DELETE", ["groups", group, "members", member]) = (request.method.as_str(), segments.as_slice())
    else {
        return request.rest(store, Ids::Stated("name"));
    };
    let path = format!("/groups/{group}");
    let Some(mut group) = store.get(&path).cloned() else { return Answer::missing() };
    group["members"].as_array_mut().unwrap().retain(|other| other != member);
    store.put(&path, group);
    Answer::empty(204)
}

/// The parent has the address at which its members are read, and is not one of them.
#[tokio::test]
async fn a_member_that_is_read_at_the_address_of_its_parent_is_pruned() {
    let server = ApiServer::start(&["/groups"], group);
    server.put("/groups/ops", json!({"name": "ops", "members": ["ana", "bob"]}));
    let (former, world) =
        (World::new(Config::default(), &[MEMBERS]), World::new(Config::default(), &[MEMBERS]));
    for world in [&former, &world] {
        world.declare("groups/ops/resource.json", r#"{"name":"ops"}"#);
        world.declare("groups/ops/members/ana/resource.json", r#"{"name":"ana"}"#);
    }
    former.declare("groups/ops/members/bob/resource.json", r#"{"name":"bob"}"#);
    let report = prune(&world, &former, "/groups/ops/members/bob", Some(server.url())).await;
    assert_eq!((report.stats.pruned, report.kept.len()), (1, 0), "{report:?}");
    assert_eq!(server.get("/groups/ops"), Some(json!({"name": "ops", "members": ["ana"]})));
}

/// Routes of hosts, which the server addresses without the host.
fn routes(on_remove: &str) -> (&'static str, String) {
    let metadata = format!(
        "
resource: {{id: /id, alias: /id, onRemove: {on_remove}}}
operations:
  get: {{path: '/routes/{{{{/id}}}}'}}
  update: {{path: '/routes/{{{{/id}}}}'}}
  delete: {{path: '/routes/{{{{/id}}}}'}}
  compare: {{mode: declared}}
"
    );
    ("hosts/_/routes/_/metadata.yaml", metadata)
}

/// Each run would overwrite one of them with the other.
#[rstest]
#[case::resources("delete", "", Outcome::PartiallyFailed, 0)]
#[case::revision("delete", ", query: {rev: '{{$observed.id}}'}", Outcome::PartiallyFailed, 0)]
#[case::function("delete", ", query: {rev: '{{index $observed \"id\"}}'}", Outcome::PartiallyFailed, 0)]
#[case::parts_of_one("keep", "", Outcome::Succeeded, 2)]
#[tokio::test]
async fn two_files_with_one_address_are_one_resource(
    #[case] on_remove: &str,
    #[case] query: &str,
    #[case] outcome: Outcome,
    #[case] updated: usize,
) {
    let server = ApiServer::start(&["/routes"], |request, store| request.rest(store, Ids::Stated("id")));
    server.put("/routes/r", json!({"id": "r", "to": "z", "from": "z"}));
    let (path, metadata) = routes(on_remove);
    let metadata = ["update", "delete"].iter().fold(metadata, |metadata, operation| {
        let path = format!("{operation}: {{path: '/routes/{{{{/id}}}}'");
        metadata.replace(&path, &format!("{path}{query}"))
    });
    let world = World::new(Config::default(), &[(path, &metadata)]);
    world.declare("hosts/a/routes/r/resource.json", r#"{"id":"r","to":"a"}"#);
    world.declare("hosts/b/routes/r/resource.json", r#"{"id":"r","from":"b"}"#);
    let report = world.sync_on(server.url(), &[]).await;
    assert_eq!((report.outcome, report.stats.updated), (outcome, updated), "{report:?}");
    for failure in &report.failures {
        assert!(failure.message.contains("declares the same resource"), "{failure:?}");
    }
    assert_eq!((report.failures.len(), server.writes().len()), (2 - updated, updated));
}

/// The server shows the global fields in each project, and deletes them there. The members of the groups are users, of which
/// only the membership is deleted.
fn in_projects(request: &Request, store: &mut Store) -> Answer {
    if request.is("DELETE", "/projects/p1/fields/area") {
        return Answer::json(403, &json!({"error": "the field is built in"}));
    }
    let path = request.path.replace("/projects/p1/fields", "/fields");
    if request.method == "DELETE" && request.path.starts_with("/groups/ops/users/") {
        return Answer::empty(204);
    }
    let path = path.replace("/groups/ops/users", "/users");
    Request { path, ..request.clone() }.rest(store, Ids::Stated("name"))
}

/// Files below two collections that the server shows as one.
#[tokio::test]
async fn a_resource_that_is_declared_in_another_collection_is_not_lost() {
    let server = ApiServer::start(&["/fields"], in_projects);
    let world = World::new(Config::default(), &[]);
    for collection in ["fields", "projects/_/fields"] {
        world.declare(&format!("{collection}/_/metadata.yaml"), "resource: {id: /name, alias: /name}");
    }
    let fields = ["area", "city", "country", "zone"];
    for field in fields {
        server.put(&format!("/fields/{field}"), json!({"name": field}));
        world.declare(&format!("fields/{field}/resource.json"), &json!({"name": field}).to_string());
    }
    let former = World::new(Config::default(), &[]);
    former.declare("projects/_/fields/_/metadata.yaml", "resource: {id: /name, alias: /name}");
    let declared_in = Commit::numbered(former.session().tree, 1, Arc::new(AtomicUsize::new(0)));
    let candidate = |field: &str| {
        let path = format!("/projects/p1/fields/{field}");
        let Candidate { path, payload, .. } =
            selected(&[(&path, &json!({"name": field}).to_string())]).prune.remove(0);
        Candidate { path, payload, declared_in: Some(Arc::clone(&declared_in)) }
    };
    let directory = tempfile::tempdir().unwrap();
    let run = async || {
        let written = Some(Arc::new(WrittenValues::open(directory.path(), server.url().to_owned())));
        let session = Session { client: client(server.url()), written, ..world.session() };
        let everything = Selection::full(session.tree.as_ref(), &LogicalPath::root(), true).unwrap();
        let selection = Selection { prune: fields.map(candidate).into(), ..everything };
        server.clear_log();
        sync::run(&session, selection, &Options::default(), &Stop::default()).await
    };
    let report = run().await;
    let Stats { targeted, applied, created, failed, .. } = report.stats;
    assert_eq!((targeted, applied, created, failed), (4, 4, 1, 4), "{report:?}");
    for failure in &report.failures[1..] {
        let advice = "state resource.onRemove: keep in the metadata of /projects/p1/fields";
        assert!(failure.message.contains("also deleted /fields/city, which Git declares"), "{failure:?}");
        assert!(failure.message.ends_with(advice), "{failure:?}");
    }
    let writes =
        ["DELETE /projects/p1/fields/area 403", "DELETE /projects/p1/fields/city 204", "POST /fields 201"];
    assert_eq!(server.writes(), writes);
    assert_eq!(server.paths(), ["/fields/area", "/fields/city", "/fields/country", "/fields/zone"]);
    // Later runs know it, also those of other processes.
    let report = run().await;
    assert_eq!((report.stats.unchanged, report.stats.failed), (4, 4), "{report:?}");
    assert_eq!(server.writes(), Vec::<String>::new());
    world.declare("projects/p1/fields/_/metadata.yaml", "resource: {onRemove: keep}");
    let report = run().await;
    assert_eq!((report.outcome, report.stats.unchanged, report.kept.len()), (Outcome::Succeeded, 4, 4));
}

/// Only the names show that both may be one resource, if one commit changes the global fields and removes those of a
/// project.
#[rstest]
#[case::changed(200, 3, &["PUT /fields/city 200", "DELETE /projects/p1/fields/city 204", "POST /fields 201"])]
#[case::not_readable(403, 4, &[])]
#[tokio::test]
async fn a_changed_resource_is_not_lost(#[case] status: u16, #[case] failed: usize, #[case] writes: &[&str]) {
    let server = ApiServer::start(&["/fields", "/projects"], move |request, store| match status {
        403 if request.is("GET", "/fields/city") => Answer::empty(403),
        _ => in_projects(request, store),
    });
    let world = World::new(Config::default(), &[]);
    for collection in ["fields", "projects", "projects/_/fields"] {
        world.declare(&format!("{collection}/_/metadata.yaml"), "resource: {id: /name, alias: /name}");
    }
    for field in ["city", "country"] {
        server.put(&format!("/fields/{field}"), json!({"name": field}));
        let size = if field == "city" { 2 } else { 1 };
        let declared = json!({"name": field, "size": size});
        world.declare(&format!("fields/{field}/resource.json"), &declared.to_string());
    }
    server.put("/fields/country", json!({"name": "country", "size": 1}));
    server.put("/projects/p1", json!({"name": "p1"}));
    let candidates = [
        ("/projects/p1", r#"{"name":"p1"}"#),
        ("/projects/p1/fields/city", r#"{"name":"city"}"#),
        ("/projects/p1/fields/country", r#"{"name":"country"}"#),
    ];
    let report = world.sync_on(server.url(), &candidates).await;
    assert_eq!((report.stats.failed, report.stats.pruned), (failed, 0), "{report:?}");
    assert_eq!(server.writes(), writes);
    assert_eq!(server.paths(), ["/fields/city", "/fields/country", "/projects/p1"]);
}

/// The projects show the same fields, and the global fields are others.
#[tokio::test]
async fn each_collection_with_the_name_may_be_shared() {
    let server = ApiServer::start(&["/fields", "/projects/p2/fields"], |request, store| {
        let path = request.path.replace("/projects/p1/", "/projects/p2/");
        Request { path, ..request.clone() }.rest(store, Ids::Stated("name"))
    });
    let world = World::new(Config::default(), &[]);
    for collection in ["fields", "projects/_/fields"] {
        world.declare(&format!("{collection}/_/metadata.yaml"), "resource: {id: /name, alias: /name}");
    }
    for field in ["fields/city", "projects/p2/fields/city"] {
        server.put(&format!("/{field}"), json!({"name": "city"}));
        world.declare(&format!("{field}/resource.json"), r#"{"name":"city"}"#);
    }
    let report = world.sync_on(server.url(), &[("/projects/p1/fields/city", r#"{"name":"city"}"#)]).await;
    assert_eq!((report.stats.created, report.stats.failed, report.stats.pruned), (1, 1, 0), "{report:?}");
    assert_eq!(server.paths(), ["/fields/city", "/projects/p2/fields/city"]);
}

/// A group shows its members like the users that they are.
#[tokio::test]
async fn a_membership_is_deleted_although_the_member_is_declared() {
    let server = ApiServer::start(&["/users"], in_projects);
    let metadata = "resource: {id: /name, alias: /name}";
    let world = World::new(Config::default(), &[("users/_/metadata.yaml", metadata)]);
    world.declare("groups/_/users/_/metadata.yaml", metadata);
    for user in ["ana", "bob"] {
        server.put(&format!("/users/{user}"), json!({"name": user}));
        world.declare(&format!("users/{user}/resource.json"), &json!({"name": user}).to_string());
    }
    let members =
        [("/groups/ops/users/ana", r#"{"name":"ana"}"#), ("/groups/ops/users/bob", r#"{"name":"bob"}"#)];
    let report = world.sync_on(server.url(), &members).await;
    assert_eq!((report.outcome, report.stats.pruned), (Outcome::Succeeded, 2), "{report:?}");
    assert_eq!(server.writes().len(), 2);
}

/// A server of remote procedures, which deletes by an id that only lists show.
#[tokio::test]
async fn deletions_by_an_id_of_the_server_name_different_resources() {
    let metadata = "resource: {id: /name, alias: /name}\noperations:\n  get: {from: list}\n  delete: {method: POST, path: \
                    /rpc/delete, body: {oid: '{{$observed.oid}}'}}\n";
    let server = ApiServer::start(&["/users", "/groups"], |request, store| {
        if request.is("POST", "/rpc/delete") {
            let is_meant =
                |path: &&String| store.get(path).is_some_and(|it| it["oid"] == request.body["oid"]);
            let path = store.paths().find(is_meant).cloned();
            path.map(|path| store.remove(&path));
            return Answer::empty(204);
        }
        request.rest(store, Ids::Stated("name"))
    });
    server.put("/users/ana", json!({"name": "ana", "oid": "7"}));
    server.put("/groups/staff", json!({"name": "staff", "oid": "8"}));
    let files = [("users/_/metadata.yaml", metadata), ("groups/_/metadata.yaml", metadata)];
    let world = World::new(Config::default(), &files);
    world.declare("groups/staff/resource.json", r#"{"name":"staff","oid":"8"}"#);
    let report = world.sync_on(server.url(), &[("/users/ana", r#"{"name":"ana"}"#)]).await;
    assert_eq!((report.stats.pruned, report.kept.len()), (1, 0), "{report:?}");
    assert_eq!(server.paths(), ["/groups/staff"]);
}
