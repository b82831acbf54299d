//! Addresses with the ids of parents, which the server assigns.

use axum::Router;
use axum::http::{StatusCode, Uri};
use declarest_core::path::LogicalPath;
use declarest_core::sync::{self, Options, Outcome, Reading, Selection, Session, Stop};
use rstest::rstest;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::api_server::{Answer, ApiServer, Ids};
use crate::client::client;
use crate::rest_server::{Config, Matcher};
use crate::scene::Scene;
use crate::world::World;

/// A shop with an id of the server, and the tills of shops in a collection that is named after this id.
fn shop() -> Scene {
    let mut scene = Scene::new(Config {
        collections: vec!["/shops".to_owned(), "/tills-of/w-1".to_owned()],
        server_ids: vec!["/shops".to_owned()],
        ..Config::default()
    });
    scene.write("shops/_/metadata.yaml", "resource: {id: /id, alias: /name}");
    scene.write(
        "shops/_/tills/_/metadata.yaml",
        "resource: {remoteCollectionPath: '/tills-of/{{/ids/shop}}'}",
    );
    scene.declare("/shops/rio", &json!({"name": "rio"}));
    scene
}

fn paths(scene: &Scene) -> Vec<String> {
    scene.server().resources().into_iter().map(|(path, _)| path).collect()
}

#[tokio::test]
async fn children_are_created_with_their_parent() {
    let mut scene = shop();
    scene.declare("/shops/rio/tills/t1", &json!({"id": "t1"}));
    let report = scene.run(Reading::Each).await;
    assert_eq!((report.stats.created, report.outcome), (2, Outcome::Succeeded), "{report:?}");
    assert_eq!(paths(&scene), ["/shops/w-1", "/tills-of/w-1/t1"]);
}

/// The create needs a number, and the name of a shop that does not exist yet is none.
#[tokio::test]
async fn the_id_of_a_new_parent_may_be_a_number_in_the_payload() {
    let mut scene = Scene::new(Config {
        collections: vec!["/shops".to_owned(), "/tills".to_owned()],
        server_ids: vec!["/shops".to_owned()],
        id_prefix: String::new(),
        ..Config::default()
    });
    scene.write("shops/_/metadata.yaml", "resource: {id: /id, alias: /name}");
    scene.write(
        "shops/_/tills/_/metadata.yaml",
        r#"resource: {remoteCollectionPath: /tills}
operations:
  create: {transforms: [{jqExpression: '. + {shop: ("{{/ids/shop}}" | tonumber)}'}]}
  compare: {transforms: [{excludeAttributes: [/shop]}]}"#,
    );
    scene.declare("/shops/rio", &json!({"name": "rio"}));
    scene.declare("/shops/rio/tills/t1", &json!({"id": "t1"}));
    let session = scene.session();
    let selection = Selection::full(session.tree.as_ref(), &LogicalPath::root(), true).unwrap();
    let plan = sync::plan(&session, selection, &Options::default(), &Stop::default()).await;
    assert_eq!((plan.failures.len(), plan.actions.len()), (0, 2), "{:?}", plan.failures);
    let report = scene.run(Reading::Each).await;
    assert_eq!((report.stats.created, report.stats.failed), (2, 0), "{report:?}");
    assert_eq!(scene.server().get("/tills/t1").unwrap()["shop"], 1);
    assert_eq!(scene.run(Reading::Each).await.stats.unchanged, 2);
}

/// The name of the shop would address the tills of another shop, or be an error other than 404.
#[tokio::test]
async fn a_name_is_never_sent_in_the_place_of_an_id() {
    let mut scene = shop();
    assert_eq!(scene.run(Reading::Each).await.stats.created, 1);
    for till in 0..4 {
        scene.declare(&format!("/shops/rio/tills/t{till}"), &json!({"id": format!("t{till}"), "open": true}));
    }
    for (reading, created) in [(Reading::Each, 4), (Reading::Each, 0), (Reading::Bulk, 0)] {
        let report = scene.run(reading).await;
        assert_eq!((report.stats.created, report.outcome), (created, Outcome::Succeeded), "{report:?}");
        let asked = scene.asked();
        assert!(!asked.iter().any(|asked| asked.contains("/tills-of/rio")), "{asked:?}");
    }
    scene.server().put_by_hand("/tills-of/w-1/t2", json!({"id": "t2", "open": false}));
    assert_eq!(scene.run(Reading::Bulk).await.stats.updated, 1);
    assert_eq!(scene.server().get("/tills-of/w-1/t2").unwrap()["open"], true);
}

/// An organisation that does not exist, and a server that refuses to show what is below it.
fn organisation(status: u16) -> World {
    let world = World::new(
        Config {
            collections: ["/orgs", "/orgs/*/keys", "/orgs/*/keys/*/uses"].map(str::to_owned).to_vec(),
            ..Config::default()
        },
        &[
            ("orgs/_/metadata.yaml", "resource: {id: /id, alias: /id}"),
            ("orgs/acme/resource.json", r#"{"id":"acme"}"#),
            ("orgs/acme/keys/k1/resource.json", r#"{"id":"k1"}"#),
            ("orgs/acme/keys/k1/uses/u1/resource.json", r#"{"id":"u1"}"#),
        ],
    );
    world.server.fail(Matcher::new("GET", "/orgs/acme/keys/**"), status, usize::MAX);
    world
}

#[rstest]
#[case::forbidden(403)]
#[case::bad_request(400)]
#[case::not_allowed(405)]
#[case::unprocessable(422)]
#[case::error(500)]
#[tokio::test]
async fn children_whose_reads_are_refused_are_created_with_their_parent(#[case] status: u16) {
    let world = organisation(status);
    let report = world.sync().await;
    assert_eq!((report.stats.created, report.outcome), (3, Outcome::Succeeded), "{report:?}");
    let writes = ["POST /orgs 201", "POST /orgs/acme/keys 201", "POST /orgs/acme/keys/k1/uses 201"];
    assert_eq!(world.writes(), writes);
}

#[rstest]
#[case::forbidden(403)]
#[case::bad_request(400)]
#[case::not_allowed(405)]
#[case::unprocessable(422)]
#[case::error(500)]
#[tokio::test]
async fn a_refusal_below_a_parent_that_exists_is_a_failure(#[case] status: u16) {
    let world = organisation(status);
    world.server.put_by_hand("/orgs/acme", json!({"id": "acme"}));
    let report = world.sync().await;
    assert_eq!((report.stats.created, report.stats.failed), (0, 2), "{report:?}");
    assert_eq!(world.writes(), Vec::<String>::new());
}

/// Without the organisation, its keys are gone.
#[rstest]
#[tokio::test]
async fn a_refusal_below_a_parent_that_exists_is_not_a_deletion(
    #[values(400, 403, 405, 422, 500)] status: u16,
    #[values(true, false)] has_parent: bool,
) {
    let world = organisation(status);
    if has_parent {
        world.server.put_by_hand("/orgs/acme", json!({"id": "acme"}));
    }
    let report = world.prune_declared("/orgs/acme/keys/old", r#"{"id":"old"}"#).await;
    assert_eq!((report.stats.pruned, report.stats.failed), (0, usize::from(has_parent)), "{report:?}");
}

/// The list of a role shows its permissions, and is refused without the role.
#[tokio::test]
async fn a_list_that_needs_its_parent_does_not_fail_a_plan() {
    async fn answer(uri: Uri) -> (StatusCode, &'static str) {
        match uri.path() {
            "/roles" => (StatusCode::OK, "[]"),
            "/permissions" => (StatusCode::BAD_REQUEST, r#"{"message":"role name not found"}"#),
            _ => (StatusCode::NOT_FOUND, "{}"),
        }
    }
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let server = tokio::spawn(async { axum::serve(listener, Router::new().fallback(answer)).await });
    let metadata = "resource: {id: /name, alias: /name, remoteCollectionPath: /permissions}\noperations: {get: {from: list}, list: {query: {role: '{{/role}}'}}}";
    let world = World::new(
        Config::default(),
        &[
            ("roles/_/metadata.yaml", "resource: {id: /name, alias: /name}"),
            ("roles/_/permissions/_/metadata.yaml", metadata),
            ("roles/reader/resource.json", r#"{"name":"reader"}"#),
            ("roles/reader/permissions/a/resource.json", r#"{"name":"a"}"#),
        ],
    );
    let session = Session { client: client(&url), ..world.session() };
    let selection = Selection::full(session.tree.as_ref(), &LogicalPath::root(), true).unwrap();
    let plan = sync::plan(&session, selection, &Options::default(), &Stop::default()).await;
    assert!(plan.failures.is_empty(), "{:?}", plan.failures);
    let paths: Vec<&str> = plan.actions.iter().map(|action| action.path.as_str()).collect();
    assert_eq!(paths, ["/roles/reader", "/roles/reader/permissions/a"]);
    server.abort();
}

/// The group "12" has the id 40, and another group has the id 12. Both have a member "ana".
fn groups(metadata_of_members: &str) -> World {
    let config = Config {
        collections: vec!["/groups".to_owned(), "/groups/*/members".to_owned()],
        server_ids: vec!["/groups".to_owned()],
        ..Config::default()
    };
    let world = World::new(
        config,
        &[
            ("groups/_/metadata.yaml", "resource: {id: /id, alias: /name}"),
            ("groups/_/members/_/metadata.yaml", metadata_of_members),
            ("groups/12/resource.json", r#"{"name":"12"}"#),
        ],
    );
    world.server.put_by_hand("/groups/40", json!({"id": "40", "name": "12"}));
    world.server.put_by_hand("/groups/12", json!({"id": 12, "name": "staff"}));
    world.server.put_by_hand("/groups/12/members/ana", json!({"id": "ana", "role": "guest"}));
    world
}

#[rstest]
#[case::by_name("")]
#[case::by_alias("resource: {id: /id, alias: /id}")]
#[tokio::test]
async fn a_child_is_not_taken_from_a_parent_whose_id_is_the_name_of_its_own(
    #[case] metadata: &str,
    #[values(1, 4)] members: usize,
    #[values(Reading::Each, Reading::Bulk)] reading: Reading,
) {
    let world = groups(metadata);
    for name in ["ana", "ben", "eva", "leo"].iter().take(members) {
        let member = json!({"id": name, "role": "admin"}).to_string();
        world.declare(&format!("groups/12/members/{name}/resource.json"), &member);
    }
    let options = Options { reading, first: true, ..Options::default() };
    let report = world.sync_with(&world.server.url(), &[], &options).await;
    assert_eq!((report.stats.created, report.stats.failed), (members, 0), "{report:?}");
    assert_eq!(world.live("/groups/12/members/ana"), r#"{"id":"ana","role":"guest"}"#);
    assert_eq!(world.live("/groups/40/members/ana"), r#"{"id":"ana","role":"admin"}"#);
    let settled = world.sync_with(&world.server.url(), &[], &options).await;
    assert_eq!(settled.stats.unchanged, members + 1, "{settled:?}");
}

#[tokio::test]
async fn a_child_of_a_parent_whose_id_is_the_name_of_another_is_not_deleted() {
    let world = groups("");
    let report = world.prune_declared("/groups/12/members/ana", r#"{"id":"ana"}"#).await;
    assert_eq!((report.stats.pruned, report.stats.failed), (0, 0), "{report:?}");
    assert_eq!(world.writes(), Vec::<String>::new());
}

/// Ids of some servers are texts that look like names.
#[tokio::test]
async fn a_deletion_is_sent_below_the_id_of_its_parent() {
    let world = groups("");
    world.declare("groups/dev/resource.json", r#"{"name":"dev"}"#);
    world.server.put_by_hand("/groups/g7", json!({"id": "g7", "name": "dev"}));
    world.server.put_by_hand("/groups/g7/members/ana", json!({"id": "ana"}));
    world.server.put_by_hand("/groups/dev", json!({"id": "dev", "name": "g7"}));
    world.server.put_by_hand("/groups/dev/members/ana", json!({"id": "ana"}));
    let report = world.prune_declared("/groups/dev/members/ana", r#"{"id":"ana"}"#).await;
    assert_eq!((report.stats.pruned, report.stats.failed), (0, 1), "{report:?}");
    assert_eq!(world.writes(), Vec::<String>::new());
}

/// The server rejects the name of a group in the place of its id, and only lists show members.
#[rstest]
#[tokio::test]
async fn the_parent_of_a_resource_that_only_a_list_shows_is_looked_up(
    #[values(400, 404, 405, 422)] status: u16,
) {
    let server = ApiServer::start(&["/groups", "/groups/*/members"], move |request, store| {
        match request.segments()[..] {
            ["groups", "dev", ..] => Answer::json(status, &json!({"error": "not an id"})),
            _ => request.rest(store, Ids::Given),
        }
    });
    let members = "resource: {id: /id, alias: /name}\noperations: {get: {from: list}}";
    let files = [
        ("groups/_/metadata.yaml", "resource: {id: /id, alias: /name}"),
        ("groups/_/members/_/metadata.yaml", members),
        ("groups/dev/resource.json", r#"{"name":"dev"}"#),
        ("groups/dev/members/ana/resource.json", r#"{"name":"ana"}"#),
    ];
    let world = World::new(Config::default(), &files);
    for stats in [(2, 0), (0, 2)] {
        let report = world.sync_on(server.url(), &[]).await;
        assert_eq!((report.stats.created, report.stats.unchanged), stats, "{report:?}");
    }
    let candidate = ("/groups/dev/members/bob", r#"{"name":"bob"}"#);
    let group = server.paths().into_iter().min().unwrap();
    server.put(&format!("{group}/members/b1"), json!({"id": "b1", "name": "bob"}));
    let report = world.sync_on(server.url(), &[candidate]).await;
    assert_eq!((report.stats.pruned, report.stats.failed), (1, 0), "{report:?}");
}

/// A server that assigns the ids of groups, with a group of another client.
fn staff() -> ApiServer {
    let server = ApiServer::start(&["/groups", "/groups/*/members"], |request, store| {
        request.rest(store, if request.segments().len() > 2 { Ids::Stated("id") } else { Ids::Given })
    });
    server.put("/groups/12", json!({"id": 12, "name": "staff"}));
    server
}

/// The own group has a name that is the id of a group of another client, and does not exist yet.
#[rstest]
#[case::differs(json!({"id": "ana", "role": "guest"}))]
#[case::equal(json!({"id": "ana", "role": "admin"}))]
#[tokio::test]
async fn a_child_of_a_missing_parent_is_not_that_of_the_parent_with_its_number(#[case] foreign: Value) {
    let server = staff();
    server.put("/groups/12/members/ana", foreign.clone());
    let world =
        World::new(Config::default(), &[("groups/_/metadata.yaml", "resource: {id: /id, alias: /name}")]);
    world.declare("groups/12/resource.json", r#"{"name":"12"}"#);
    world.declare("groups/12/members/ana/resource.json", r#"{"id":"ana","role":"admin"}"#);
    let report = world.sync_on(server.url(), &[]).await;
    assert_eq!((report.stats.created, report.stats.failed), (2, 0), "{report:?}");
    assert_eq!(server.get("/groups/12/members/ana"), Some(foreign));
    assert_eq!(server.writes(), ["POST /groups 201", "POST /groups/n7/members 201"]);
}

/// The own group fails before the plan has a create for it. Its name is the id of a group of another client.
#[tokio::test]
async fn a_child_of_a_parent_that_fails_in_the_plan_is_not_created() {
    let server = staff();
    let world =
        World::new(Config::default(), &[("groups/_/metadata.yaml", "resource: {id: /id, alias: /name}")]);
    world.declare("groups/12/resource.json", r#"{"name":"12","pin":"{{secret .}}"}"#);
    world.declare("groups/12/members/ben/resource.json", r#"{"id":"ben"}"#);
    world.declare("groups/30/resource.json", r#"{"name":"30"}"#);
    let report = world.sync_on(server.url(), &[]).await;
    let failed: Vec<&str> = report.failures.iter().map(|failure| failure.path.as_str()).collect();
    assert_eq!((report.stats.created, failed), (1, vec!["/groups/12", "/groups/12/members/ben"]));
    assert_eq!(server.writes(), ["POST /groups 201"]);
}

/// The name of the new shop is the id of another one. Some servers assign numbers, others texts.
#[rstest]
#[case::number("/shops/{{/ids/shop}}", json!(1), true)]
#[case::number_in_path("/shops/{{/shop}}", json!(1), true)]
#[case::text("/shops/{{/ids/shop}}", json!("1"), false)]
#[case::text_in_path("/shops/{{/shop}}", json!("1"), false)]
#[tokio::test]
async fn a_singleton_below_a_new_parent_is_written_below_its_id(
    #[case] collection: &str,
    #[case] id: Value,
    #[case] creates: bool,
) {
    let server = ApiServer::rest(&["/shops"], Ids::Given);
    server.put("/shops/1", json!({"id": id, "name": "alpha"}));
    server.put("/shops/1/settings", json!({"of": "alpha"}));
    server.put("/shops/n7/settings", json!({"of": "nothing"}));
    let settings = format!("resource: {{remoteCollectionPath: '{collection}', singleton: true}}");
    let files = [
        ("shops/_/metadata.yaml", "resource: {id: /id, alias: /name}"),
        ("shops/_/conf/_/metadata.yaml", &settings),
        ("shops/1/resource.json", r#"{"name": "1"}"#),
        ("shops/1/conf/settings/resource.json", r#"{"of": "new"}"#),
    ];
    let world = World::new(Config::default(), &files);
    let report = world.sync_on(server.url(), &[]).await;
    assert_eq!((report.stats.created == 1, report.stats.failed == 0), (creates, creates), "{report:?}");
    assert_eq!(server.get("/shops/1/settings"), Some(json!({"of": "alpha"})), "{:?}", server.writes());
    let of = if creates { "new" } else { "nothing" };
    assert_eq!(server.get("/shops/n7/settings"), Some(json!({"of": of})), "{:?}", server.writes());
}

/// The credentials are wrong, and the server shows lists without what they may not see.
#[tokio::test]
async fn nothing_is_created_below_a_parent_that_the_server_refuses_to_show() {
    let server =
        ApiServer::start(&["/shops", "/shops/*/tills"], |request, store| match request.path.as_str() {
            "/shops/rio" if store.mode == "refused" => Answer::empty(403),
            "/shops/rio/tills" if store.mode == "refused" && request.method == "GET" => {
                Answer::json(200, &json!([]))
            }
            _ => request.rest(store, Ids::Given),
        });
    server.put("/shops/rio", json!({"id": "rio"}));
    server.put("/shops/rio/tills/n1", json!({"id": "n1", "name": "t1"}));
    let files = [
        ("shops/rio/resource.json", r#"{"id": "rio"}"#),
        ("shops/_/tills/_/metadata.yaml", "resource: {id: /id, alias: /name}"),
        ("shops/rio/tills/t1/resource.json", r#"{"name": "t1"}"#),
    ];
    let world = World::new(Config::default(), &files);
    let report = world.sync_on(server.url(), &[]).await;
    assert_eq!(report.stats.unchanged, 2, "{report:?}");
    server.mode("refused");
    let report = world.sync_on(server.url(), &[]).await;
    assert_eq!((report.stats.created, report.stats.failed), (0, 2), "{report:?}");
    assert_eq!(server.count("POST"), 0);
}

/// No template contains the id, so the address of the names is tried first.
#[tokio::test]
async fn a_singleton_is_also_found_below_the_id_of_its_parent() {
    let server = ApiServer::rest(&["/shops"], Ids::Given);
    server.put("/shops/n5", json!({"id": "n5", "name": "rio"}));
    server.put("/shops/n5/settings", json!({"open": false}));
    let files = [
        ("shops/_/metadata.yaml", "resource: {id: /id, alias: /name}"),
        (
            "shops/_/conf/_/metadata.yaml",
            "resource: {remoteCollectionPath: '/shops/{{/shop}}', singleton: true}",
        ),
        ("shops/rio/resource.json", r#"{"name": "rio"}"#),
        ("shops/rio/conf/settings/resource.json", r#"{"open": true}"#),
    ];
    let world = World::new(Config::default(), &files);
    let report = world.sync_on(server.url(), &[]).await;
    assert_eq!((report.stats.updated, report.stats.unchanged), (1, 1), "{report:?}");
    assert_eq!(server.writes(), ["PUT /shops/n5/settings 200"]);
}

/// Metadata is below the names of parents, also if these are addressed by their ids.
#[rstest]
#[case::each(Reading::Each)]
#[case::bulk(Reading::Bulk)]
#[tokio::test]
async fn the_metadata_of_one_parent_applies_at_its_id(#[case] reading: Reading) {
    let mut scene = Scene::new(Config {
        collections: vec!["/shops".to_owned(), "/shops/*/tills".to_owned()],
        server_ids: vec!["/shops".to_owned(), "/shops/*/tills".to_owned()],
        ..Config::default()
    });
    scene.write("shops/_/metadata.yaml", "resource: {id: /id, alias: /name}");
    scene.write("shops/_/tills/_/metadata.yaml", "resource: {alias: /title}");
    scene.write(
        "shops/rio/tills/_/metadata.yaml",
        r#"resource: {alias: /code}
operations:
  create: {transforms: [{jqExpression: '. + {by: "rio"}'}]}
  compare: {transforms: [{excludeAttributes: [/by]}]}"#,
    );
    let till = |title: &str| json!({"code": "t1", "title": title});
    scene.declare("/shops/rio", &json!({"name": "rio"}));
    scene.declare("/shops/rio/tills/t1", &till("one"));
    assert_eq!(scene.run(reading).await.stats.created, 2);
    let tills = |scene: &Scene| {
        let mut tills = scene.server().resources();
        tills.retain(|(path, _)| path.contains("/tills/"));
        tills
    };
    let [(address, shown)] = &tills(&scene)[..] else { panic!("{:?}", tills(&scene)) };
    assert_eq!((&shown["by"], &shown["title"]), (&json!("rio"), &json!("one")));
    // The title, which is the alias in other shops, is that of another till.
    let collection = address.rsplit_once('/').unwrap().0;
    scene
        .server()
        .put_by_hand(&format!("{collection}/x-9"), json!({"id": "x-9", "code": "t9", "title": "two"}));
    scene.declare("/shops/rio/tills/t1", &till("two"));
    let report = scene.run(reading).await;
    assert_eq!((report.stats.updated, report.stats.created), (1, 0), "{report:?}");
    assert_eq!(scene.server().get(address).unwrap()["title"], "two");
    assert_eq!(scene.server().get(&format!("{collection}/x-9")).unwrap()["code"], "t9");
    assert_eq!(scene.run(reading).await.stats.unchanged, 2);
    scene.remove("/shops/rio/tills/t1");
    let report = scene.run_pruning("/shops/rio/tills/t1", &till("two").to_string()).await;
    assert_eq!(report.stats.pruned, 1, "{report:?}");
    assert_eq!(tills(&scene).len(), 1);
}

/// A copied directory may state the id of the original.
#[tokio::test]
async fn nothing_is_written_below_the_id_of_another_parent() {
    let mut scene = Scene::new(Config {
        collections: vec!["/shops".to_owned(), "/shops/*/tills".to_owned()],
        server_ids: vec!["/shops".to_owned()],
        ..Config::default()
    });
    scene.write("shops/_/metadata.yaml", "resource: {id: /id, alias: /name}");
    scene.declare("/shops/rio", &json!({"name": "rio"}));
    scene.declare("/shops/rio/tills/t1", &json!({"id": "t1", "open": true}));
    assert_eq!(scene.run(Reading::Each).await.stats.created, 2);
    scene.declare("/shops/copy", &json!({"id": "w-1", "name": "copy"}));
    scene.declare("/shops/copy/tills/t1", &json!({"id": "t1", "open": false}));
    scene.declare("/shops/copy/tills/t2", &json!({"id": "t2"}));
    let report = scene.run_pruning("/shops/copy/tills/t3", r#"{"id": "t3"}"#).await;
    let failed: Vec<&str> = report.failures.iter().map(|failure| failure.path.as_str()).collect();
    assert!(
        ["/shops/copy", "/shops/copy/tills/t1", "/shops/copy/tills/t2"]
            .iter()
            .all(|path| failed.contains(path)),
        "{report:?}"
    );
    assert_eq!(scene.server().get("/shops/w-1/tills/t1").unwrap()["open"], true);
    assert_eq!(paths(&scene), ["/shops/w-1", "/shops/w-1/tills/t1"]);
    // Without the parent in the selection.
    scene.server().put_by_hand("/shops/w-1/tills/t3", json!({"id": "t3"}));
    let report = scene.run_pruning("/shops/copy/tills/t3", r#"{"id": "t3"}"#).await;
    assert_eq!(report.stats.pruned, 0, "{report:?}");
    let report = scene.run_over(&["/shops/copy/tills/t1", "/shops/copy/tills/t2"]).await;
    assert_eq!(report.stats.failed, 2, "{report:?}");
    assert_eq!(paths(&scene), ["/shops/w-1", "/shops/w-1/tills/t1", "/shops/w-1/tills/t3"]);
}

/// The server has assigned this number to another entry.
#[tokio::test]
async fn a_number_of_another_entry_is_not_the_name_of_a_resource_that_only_the_list_shows() {
    let config = Config {
        collections: vec!["/labels".to_owned()],
        server_ids: vec!["/labels".to_owned()],
        id_prefix: String::new(),
        ..Config::default()
    };
    let metadata = "resource: {id: /id, alias: /title}\noperations: {get: {from: list}, list: {transforms: [{jqExpression: 'map(.id |= tonumber)'}]}}";
    let world = World::new(config, &[("labels/_/metadata.yaml", metadata)]);
    for title in ["all", "news"] {
        world.declare(&format!("labels/{title}/resource.json"), &json!({"title": title}).to_string());
    }
    assert_eq!(world.sync().await.stats.created, 2);
    world.declare("labels/2/resource.json", r#"{"title": "2"}"#);
    let report = world.sync().await;
    assert_eq!((report.stats.created, report.stats.failed), (1, 0), "{report:?}");
    assert_eq!(world.sync().await.stats.unchanged, 3);
}

/// The names of one parent in the files of two: a copied directory in which the names were not changed.
#[rstest]
#[case::id_and_alias("resource: {id: /id, alias: /name}", r#"{"id": "w-1", "name": "rio"}"#)]
#[case::alias("resource: {id: /id, alias: /name}", r#"{"name": "rio"}"#)]
#[tokio::test]
async fn nothing_is_written_below_two_declarations_of_one_parent(
    #[case] metadata: &str,
    #[case] parent: &str,
) {
    let mut scene = Scene::new(Config {
        collections: vec!["/shops".to_owned(), "/shops/*/tills".to_owned()],
        server_ids: vec!["/shops".to_owned()],
        ..Config::default()
    });
    scene.write("shops/_/metadata.yaml", metadata);
    scene.declare("/shops/rio", &json!({"name": "rio"}));
    scene.declare("/shops/rio/tills/t1", &json!({"id": "t1", "open": true}));
    assert_eq!(scene.run(Reading::Each).await.stats.created, 2);
    for shop in ["copy", "rio"] {
        scene.write(&format!("shops/{shop}/resource.json"), parent);
    }
    scene.declare("/shops/rio/tills/t1", &json!({"id": "t1", "open": 1}));
    scene.declare("/shops/copy/tills/t1", &json!({"id": "t1", "open": 2}));
    scene.declare("/shops/copy/tills/t2", &json!({"id": "t2"}));
    let report = scene.run(Reading::Each).await;
    assert_eq!(report.stats.failed, 5, "{report:?}");
    let report = scene.run_over(&["/shops/copy/tills/t1", "/shops/copy/tills/t2"]).await;
    assert_eq!(report.stats.failed, 2, "{report:?}");
    for failure in &report.failures {
        assert!(
            failure.message.contains("/shops/copy: /shops/rio declares the same resource"),
            "{failure:?}"
        );
    }
    assert_eq!(scene.server().get("/shops/w-1/tills/t1").unwrap()["open"], true);
    assert_eq!(paths(&scene), ["/shops/w-1", "/shops/w-1/tills/t1"]);
    // Below other parents, everything is deleted as usual.
    scene.declare("/shops/lima", &json!({"name": "lima"}));
    scene.declare("/shops/lima/tills/t9", &json!({"id": "t9"}));
    assert_eq!(scene.run_over(&["/shops/lima", "/shops/lima/tills/t9"]).await.stats.created, 2);
    scene.remove("/shops/lima/tills/t9");
    let report = scene.run_pruning("/shops/lima/tills/t9", r#"{"id": "t9"}"#).await;
    assert_eq!(report.stats.pruned, 1, "{report:?}");
}
