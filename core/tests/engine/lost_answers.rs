//! A write whose answer is lost may have been carried out.

use declarest_core::sync::{Intent, Options, PRUNE, Reading};
use rstest::rstest;

use crate::api_server::{Answer, ApiServer, Ids};
use crate::rest_server::{Config, Matcher};
use crate::scene::Scene;
use crate::world::{World, failure, json};

/// The server assigns the ids of shops; only the list shows which shop has which name.
fn shops() -> World {
    let config =
        Config { server_ids: vec!["/shops".to_owned(), "/shops/*/tills".to_owned()], ..Config::default() };
    World::new(
        config,
        &[
            ("shops/_/metadata.yaml", "resource: {id: /id, alias: /name}"),
            ("shops/rio/resource.json", r#"{"name":"rio","tier":"gold"}"#),
        ],
    )
}

/// How an answer gets lost.
#[derive(Clone, Copy, Debug)]
enum Loss {
    Cut,
    Status(u16),
}

fn lose(world: &World, loss: Loss, after_effect: bool, times: usize) {
    let post = Matcher::method("POST");
    match (loss, after_effect) {
        (Loss::Cut, true) => world.server.cut_after_effect(post, times),
        (Loss::Cut, false) => world.server.cut(post, times),
        (Loss::Status(status), true) => world.server.fail_after_effect(post, status, times),
        (Loss::Status(status), false) => world.server.fail(post, status, times),
    }
}

#[rstest]
#[case::cut_after_effect(Loss::Cut, true)]
#[case::bad_gateway_after_effect(Loss::Status(502), true)]
#[case::unavailable_after_effect(Loss::Status(503), true)]
#[case::unavailable(Loss::Status(503), false)]
#[tokio::test]
async fn a_create_is_carried_out_once(#[case] loss: Loss, #[case] after_effect: bool) {
    let world = shops();
    lose(&world, loss, after_effect, 1);
    let report = world.sync().await;
    assert_eq!((report.stats.created, report.stats.failed), (1, 0), "{report:?}");
    assert_eq!(world.server.resources().len(), 1);
    assert_eq!(world.writes().len(), if after_effect { 1 } else { 2 }, "{:?}", world.writes());
    assert_eq!(world.sync().await.stats.unchanged, 1);
}

/// A list may show a new resource later. Without one, the address proves absence, and no other resource gets its id.
#[rstest]
#[tokio::test]
async fn a_create_that_no_list_shows_is_not_sent_again(
    #[values(Loss::Cut, Loss::Status(502))] loss: Loss,
    #[values(true, false)] assigns_ids: bool,
) {
    let mut scene = if assigns_ids {
        scene()
    } else {
        Scene::new(Config { collections: vec!["/shops".to_owned()], ..Config::default() })
    };
    let shop = if assigns_ids { r#"{"name":"rio"}"# } else { r#"{"id":"rio","name":"rio"}"# };
    scene.declare("/shops/rio", &json(shop));
    let post = Matcher::method("POST");
    match loss {
        Loss::Cut => scene.server().cut(post, 1),
        Loss::Status(status) => scene.server().fail(post, status, 1),
    }
    let report = scene.run(Reading::Each).await;
    assert_eq!(scene.server().resources().len(), usize::from(!assigns_ids), "{report:?}");
    if assigns_ids {
        for _ in 0..2 {
            let (_, message) = failure(&scene.run(Reading::Each).await);
            assert!(message.starts_with("/shops/rio: creation outcome unknown"), "{message}");
        }
    }
}

/// A gateway that gave up waiting says nothing about the server behind it, which may create the resource any time
/// later.
#[rstest]
#[tokio::test]
async fn a_create_that_is_late_is_not_sent_again(
    #[values(true, false)] after_effect: bool,
    #[values(504, 499, 524)] status: u16,
) {
    let world = shops();
    lose(&world, Loss::Status(status), after_effect, 1);
    let (reason, message) = failure(&world.sync().await);
    assert_eq!(reason, "TransportError");
    assert!(message.starts_with("/shops/rio: creation outcome unknown: POST /shops:"), "{message}");
    assert_eq!(world.writes().len(), 1, "{:?}", world.writes());
    assert_eq!(world.server.resources().len(), usize::from(after_effect));
}

/// Each PUT of the collection creates a resource.
#[rstest]
#[tokio::test]
async fn a_put_of_a_collection_is_not_sent_again(#[values(502, 504, 520)] status: u16) {
    let server = ApiServer::start(&["/shops"], move |request, store| {
        if !request.is("PUT", "/shops") {
            return request.rest(store, Ids::Given);
        }
        let id = store.members("/shops").len() + 1;
        store.put(&format!("/shops/{id}"), serde_json::json!({"id": id, "name": request.body["name"]}));
        Answer::empty(status)
    });
    let metadata = "resource: {id: /id, alias: /name}\noperations: {create: {method: PUT, path: .}}";
    let world = World::new(Config::default(), &[("shops/_/metadata.yaml", metadata)]);
    world.declare("shops/rio/resource.json", r#"{"name":"rio"}"#);
    let first = world.sync_on(server.url(), &[]).await;
    let again = world.sync_on(server.url(), &[]).await;
    assert!(server.get("/shops/1").is_some() && server.get("/shops/2").is_none(), "{first:?} {again:?}");
}

/// A commit renames the file while the server may still create the shop.
#[tokio::test]
async fn a_create_that_is_late_is_not_sent_for_another_path_either() {
    let mut scene = late_create().await;
    scene.remove("/shops/rio");
    scene.declare("/shops/river", &json(r#"{"name":"rio","tier":"gold"}"#));
    let (reason, message) = failure(&scene.run(Reading::Each).await);
    assert_eq!(reason, "TransportError");
    assert!(message.starts_with("/shops/river: creation outcome unknown"), "{message}");
    assert_eq!(scene.server().resources().len(), 0);
}

/// A commit removes the file while the server may still create the shop.
#[tokio::test]
async fn what_may_still_be_created_is_not_deleted_yet() {
    let mut scene = late_create().await;
    scene.remove("/shops/rio");
    scene.declare("/shops/lima", &json(r#"{"name":"lima"}"#));
    let report = scene.run_pruning("/shops/rio", r#"{"name":"rio"}"#).await;
    assert_eq!((report.stats.created, report.stats.failed, report.failures[0].operation), (1, 1, PRUNE));
    let message = &report.failures[0].message;
    assert!(message.starts_with("/shops/rio: creation outcome unknown"), "{message}");
}

/// A server that assigns ids.
fn scene() -> Scene {
    let config = Config { server_ids: vec!["/shops".to_owned()], ..Config::default() };
    let mut scene = Scene::new(config);
    scene.write("shops/_/metadata.yaml", "resource: {id: /id, alias: /name}");
    scene
}

/// A run whose create timed out.
async fn late_create() -> Scene {
    let mut scene = scene();
    scene.declare("/shops/rio", &json(r#"{"name":"rio","tier":"gold"}"#));
    scene.server().fail(Matcher::method("POST"), 504, 1);
    assert_eq!(failure(&scene.run(Reading::Each).await).0, "TransportError");
    scene
}

#[tokio::test]
async fn a_create_is_not_sent_for_ever() {
    let world = shops();
    lose(&world, Loss::Status(503), false, 9);
    let report = world.sync().await;
    assert_eq!(failure(&report).0, "TransportError");
    assert_eq!(world.writes().len(), 2);
    world.server.clear_failures();
    assert_eq!(world.sync().await.stats.created, 1, "the next run sees that it is missing");
}

#[tokio::test]
async fn what_was_created_and_differs_is_updated() {
    let world = shops();
    world.server.cut(Matcher::method("POST"), 1);
    let plan = world.plan(&Options::default()).await;
    world.server.put_by_hand("/shops/w-9", json(r#"{"id":"w-9","name":"rio"}"#));
    let report = world.apply(plan).await;
    assert_eq!((report.stats.updated, report.stats.failed), (1, 0), "{report:?}");
    assert_eq!(world.live("/shops/w-9"), r#"{"id":"w-9","name":"rio","tier":"gold"}"#);
}

#[rstest]
#[case::list_fails(500, "remote request failed with status 500")]
#[case::no_list(404, "its collection cannot be listed (HTTP 404)")]
#[tokio::test]
async fn without_proof_of_absence_nothing_is_sent_again(#[case] status: u16, #[case] why: &str) {
    let world = shops();
    let plan = world.plan(&Options::default()).await;
    world.server.cut(Matcher::method("POST"), 1);
    world.server.fail(Matcher::new("GET", "/shops"), status, 9);
    let (reason, message) = failure(&world.apply(plan).await);
    assert_eq!(reason, "TransportError");
    assert!(message.starts_with("/shops/rio: creation outcome unknown: POST /shops:"), "{message}");
    assert!(message.contains(why), "{message}");
    assert_eq!(world.writes().len(), 1);
}

#[tokio::test]
async fn children_go_below_the_id_that_was_found() {
    let world = shops();
    world.declare("shops/_/tills/_/metadata.yaml", "resource: {id: /id, alias: /name}");
    world.declare("shops/rio/tills/t1/resource.json", r#"{"name":"t1"}"#);
    world.server.cut_after_effect(Matcher::method("POST"), 2);
    let report = world.sync().await;
    assert_eq!((report.stats.created, report.stats.failed), (2, 0), "{report:?}");
    assert_eq!(world.live("/shops/w-1/tills/w-2"), r#"{"id":"w-2","name":"t1"}"#);
    assert_eq!(world.writes(), ["POST /shops 200", "POST /shops/w-1/tills 200"]);
}

/// Another client creates the shop after the list was read, so the server answers 409.
#[rstest]
#[case::equal(r#"{"id":"w-9","name":"rio","tier":"gold"}"#)]
#[case::different(r#"{"id":"w-9","name":"rio","tier":"free"}"#)]
#[tokio::test]
async fn children_go_below_the_id_of_a_parent_that_exists(#[case] live: &str) {
    let world = shops();
    world.declare("shops/_/tills/_/metadata.yaml", "resource: {id: /id, alias: /name}");
    world.declare("shops/rio/tills/t1/resource.json", r#"{"name":"t1"}"#);
    let plan = world.plan(&Options::default()).await;
    world.server.put_by_hand("/shops/w-9", json(live));
    world.server.fail(Matcher::new("POST", "/shops"), 409, 1);
    let report = world.apply(plan).await;
    assert_eq!((report.stats.created, report.stats.failed), (2, 0), "{report:?}");
    assert_eq!(world.live("/shops/w-9/tills/w-1"), r#"{"id":"w-1","name":"t1"}"#);
}

#[rstest]
#[case::equal(r#"{"id":"w-9","name":"rio","tier":"gold"}"#, true)]
#[case::different(r#"{"id":"w-9","name":"rio","tier":"free"}"#, false)]
#[tokio::test]
async fn a_creation_that_was_asked_for_overwrites_nothing(#[case] live: &str, #[case] created: bool) {
    let world = shops();
    let plan = world.plan(&Options { intent: Intent::Create, ..Options::default() }).await;
    world.server.cut(Matcher::method("POST"), 1);
    world.server.put_by_hand("/shops/w-9", json(live));
    let report = world.apply(plan).await;
    assert_eq!((report.stats.created == 1, report.failures.is_empty()), (created, created), "{report:?}");
    assert_eq!(json(&world.live("/shops/w-9")), json(live));
}

#[tokio::test]
async fn a_deletion_that_was_carried_out_is_done() {
    let world = World::new(
        Config { collections: vec!["/shops".to_owned()], ..Config::default() },
        &[("shops/lima/resource.json", r#"{"id":"lima"}"#)],
    );
    world.server.put_by_hand("/shops/rio", json(r#"{"id":"rio"}"#));
    world.server.cut_after_effect(Matcher::method("DELETE"), 1);
    let report = world.prune("/shops/rio").await;
    assert_eq!((report.stats.pruned, report.stats.failed), (1, 0), "{report:?}");
    assert_eq!(world.writes(), ["DELETE /shops/rio 200", "DELETE /shops/rio 404"]);
}

/// A shop that was declared once, whose id is the server's.
fn closed_shop() -> World {
    let world = shops();
    world.server.put_by_hand("/shops/w-9", json(r#"{"id":"w-9","name":"lima"}"#));
    world
}

#[tokio::test]
async fn a_deletion_waits_for_the_list_that_names_it() {
    let world = closed_shop();
    world.server.fail(Matcher::new("GET", "/shops"), 503, 4);
    let report = world.prune_declared("/shops/lima", r#"{"name":"lima"}"#).await;
    let (reason, message) = failure(&report);
    assert_eq!((reason, report.failures[0].operation), ("TransportError", PRUNE));
    assert!(message.starts_with("cannot determine whether /shops/lima exists: GET /shops: "), "{message}");
    assert_eq!(world.prune_declared("/shops/lima", r#"{"name":"lima"}"#).await.stats.pruned, 1);
    assert_eq!(world.live("/shops/w-9"), "absent");
}

/// Nothing shows whether the shop still exists, so a success would be a lie.
#[tokio::test]
async fn where_nothing_is_ever_listed_a_deletion_is_reported() {
    let world = closed_shop();
    world.server.fail(Matcher::new("GET", "/shops"), 405, 9);
    let report = world.prune_declared("/shops/lima", r#"{"name":"lima"}"#).await;
    let (_, message) = failure(&report);
    assert!(message.contains("/shops/lima") && message.contains("HTTP 405"), "{message}");
    assert_eq!((report.stats.pruned, world.writes().len()), (0, 0));
}

/// A shop with a till, both with ids of the server's.
fn shop_with_till() -> World {
    let world = shops();
    world.declare("shops/_/tills/_/metadata.yaml", "resource: {id: /id, alias: /name}");
    world.declare("shops/rio/tills/t1/resource.json", r#"{"name":"t1"}"#);
    world.server.put_by_hand("/shops/w-8", json(r#"{"id":"w-8","name":"rio","tier":"gold"}"#));
    world.server.put_by_hand("/shops/w-8/tills/w-9", json(r#"{"id":"w-9","name":"t1"}"#));
    world
}

#[rstest]
#[case::of_the_siblings("/shops/w-8/tills", 1)]
#[case::of_the_parent("/shops", 2)]
#[tokio::test]
async fn what_a_failed_list_does_not_show_is_not_absent(#[case] list: &str, #[case] failed: usize) {
    let world = shop_with_till();
    world.server.fail(Matcher::new("GET", list), 503, 4);
    let report = world.sync().await;
    assert_eq!((report.stats.failed, world.writes().len()), (failed, 0), "{report:?} {:?}", world.writes());
    assert_eq!(world.sync().await.stats.unchanged, 2);
}

#[tokio::test]
async fn a_deletion_waits_for_the_list_that_names_its_parent() {
    let world = shop_with_till();
    world.server.put_by_hand("/shops/w-8/tills/w-10", json(r#"{"id":"w-10","name":"t2"}"#));
    world.server.fail(Matcher::new("GET", "/shops"), 503, 4);
    let report = world.prune_declared("/shops/rio/tills/t2", r#"{"name":"t2"}"#).await;
    assert_eq!(failure(&report).0, "TransportError");
    assert_eq!(world.prune_declared("/shops/rio/tills/t2", r#"{"name":"t2"}"#).await.stats.pruned, 1);
    assert_eq!(world.live("/shops/w-8/tills/w-10"), "absent");
}
