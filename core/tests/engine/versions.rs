//! If the server distinguishes versions, no change of another client is overwritten unseen.

use std::sync::atomic::{AtomicUsize, Ordering};

use declarest_core::sync::{Options, Report};
use rstest::rstest;

use crate::api_server::{Answer, ApiServer, Ids, Request, Store};
use crate::rest_server::{Config, Matcher};
use crate::world::{World, failure, json};

/// A shop that differs from what is desired, on a server with entity tags.
fn shops() -> World {
    let config = Config { collections: vec!["/shops".to_owned()], etags: true, ..Config::default() };
    let world = World::new(config, &[("shops/rio/resource.json", r#"{"id":"rio","tier":"gold"}"#)]);
    world.server.put_by_hand("/shops/rio", json(r#"{"id":"rio","tier":"free"}"#));
    world
}

#[rstest]
#[case::changed(r#"{"id":"rio","tier":"silver"}"#, &["PUT /shops/rio 412", "PUT /shops/rio 200"], 1)]
#[case::made_equal(r#"{"id":"rio","tier":"gold"}"#, &["PUT /shops/rio 412"], 0)]
#[tokio::test]
async fn an_update_meets_another_version(
    #[case] meanwhile: &str,
    #[case] writes: &[&str],
    #[case] updated: usize,
) {
    let world = shops();
    let plan = world.plan(&Options::default()).await;
    world.server.put_by_hand("/shops/rio", json(meanwhile));
    let report = world.apply(plan).await;
    assert_eq!(
        (report.stats.updated, report.stats.applied, report.stats.failed),
        (updated, 1, 0),
        "{report:?}"
    );
    assert_eq!(world.writes(), writes);
    assert_eq!(world.live("/shops/rio"), r#"{"id":"rio","tier":"gold"}"#);
}

/// Another client replaces the resource before this run does.
#[rstest]
#[case::made_equal(r#"{"id":"rio","tier":"gold"}"#, &["DELETE /shops/rio 412"])]
#[case::other_difference(
    r#"{"id":"rio","tier":"gold","size":2}"#,
    &["DELETE /shops/rio 412", "PUT /shops/rio 200"]
)]
#[case::still_different(
    r#"{"id":"rio","tier":"silver"}"#,
    &["DELETE /shops/rio 412", "DELETE /shops/rio 204", "POST /shops 201"]
)]
#[tokio::test]
async fn a_replacement_meets_another_version(#[case] meanwhile: &str, #[case] writes: &[&str]) {
    let world = shops();
    world.declare("shops/_/metadata.yaml", "resource: {replaceOn: [/tier]}");
    let plan = world.plan(&Options::default()).await;
    world.server.put_by_hand("/shops/rio", json(meanwhile));
    let report = world.apply(plan).await;
    assert_eq!((report.stats.applied, report.stats.failed), (1, 0), "{report:?}");
    assert_eq!(report.stats.pruned, writes.len() / 3, "{report:?}");
    assert_eq!(world.writes(), writes);
    assert_eq!(world.live("/shops/rio"), r#"{"id":"rio","tier":"gold"}"#);
}

#[tokio::test]
async fn an_update_meets_nothing() {
    let world = shops();
    let plan = world.plan(&Options::default()).await;
    world.server.delete_by_hand("/shops/rio");
    assert_eq!(world.apply(plan).await.stats.created, 1);
    assert_eq!(world.writes(), ["PUT /shops/rio 412", "POST /shops 201"]);
}

/// The server executes the create, and its answer is lost.
#[tokio::test]
async fn an_update_meets_nothing_and_the_answer_to_the_create_is_lost() {
    let world = shops();
    let plan = world.plan(&Options::default()).await;
    world.server.delete_by_hand("/shops/rio");
    world.server.fail_after_effect(Matcher::method("POST"), 502, 1);
    let report = world.apply(plan).await;
    assert_eq!((report.stats.created, report.stats.failed), (1, 0), "{report:?}");
    assert_eq!(world.writes(), ["PUT /shops/rio 412", "POST /shops 502"]);
}

#[tokio::test]
async fn an_update_meets_nothing_and_deferred_attributes_are_set_after_the_create() {
    let world = shops();
    world.declare("shops/_/metadata.yaml", "resource: {deferredAttributes: [/tier]}");
    let plan = world.plan(&Options::default()).await;
    world.server.delete_by_hand("/shops/rio");
    let report = world.apply(plan).await;
    assert_eq!((report.stats.created, report.stats.failed), (1, 0), "{report:?}");
    assert_eq!(world.writes(), ["PUT /shops/rio 412", "POST /shops 201", "PUT /shops/rio 200"]);
    assert_eq!(world.live("/shops/rio"), r#"{"id":"rio","tier":"gold"}"#);
}

#[tokio::test]
async fn without_interference_one_request_is_enough() {
    let world = shops();
    assert_eq!(world.sync().await.stats.updated, 1);
    assert_eq!(world.writes(), ["PUT /shops/rio 200"]);
}

/// A server whose shops another client changes before each of the first `changes` writes. Later ones have this answer.
fn contended(
    changes: usize,
    answer: impl Fn(&Request, &mut Store) -> Answer + Send + Sync + 'static,
) -> ApiServer {
    let version = AtomicUsize::new(0);
    let server = ApiServer::start(&["/shops"], move |request, store| {
        let seen = version.load(Ordering::Relaxed);
        if !request.is_write() {
            return request.rest(store, Ids::Stated("id")).header("etag", &format!("\"{seen}\""));
        }
        if seen < changes {
            version.store(seen + 1, Ordering::Relaxed);
            return Answer::json(412, &serde_json::json!({"error": "another version"}));
        }
        answer(request, store)
    });
    server.put("/shops/rio", json(r#"{"id":"rio","tier":"free"}"#));
    server
}

/// Runs once: updates the shop, or deletes it.
async fn write(server: &ApiServer, deletes: bool) -> Report {
    let declared = ("shops/rio/resource.json", r#"{"id":"rio","tier":"gold"}"#);
    let candidate = [("/shops/rio", declared.1)];
    let (files, candidates) = if deletes { (vec![], &candidate[..]) } else { (vec![declared], &[][..]) };
    let world = World::new(Config::default(), &files);
    let options = Options { allow_empty: true, ..Options::default() };
    world.sync_with(server.url(), candidates, &options).await
}

/// In an ordered array, the run's own deletions change the versions of other members.
#[rstest]
#[tokio::test]
async fn a_version_that_changes_a_few_times_is_read_again(#[values(true, false)] deletes: bool) {
    let server = contended(4, |request, store| request.rest(store, Ids::Stated("id")));
    let report = write(&server, deletes).await;
    assert_eq!((report.stats.updated + report.stats.pruned, report.stats.failed), (1, 0), "{report:?}");
    let tier = server.get("/shops/rio").map(|shop| shop["tier"].clone());
    assert_eq!(tier, (!deletes).then(|| "gold".into()));
}

#[rstest]
#[tokio::test]
async fn a_client_that_keeps_changing_it_is_reported_and_not_overwritten(
    #[values(true, false)] deletes: bool,
) {
    let server = contended(9, |request, store| request.rest(store, Ids::Stated("id")));
    let (reason, message) = failure(&write(&server, deletes).await);
    assert_eq!(reason, "ConflictError");
    assert!(message.starts_with("/shops/rio: it keeps changing: 5 times in a row"), "{message}");
    assert_eq!(server.get("/shops/rio").unwrap()["tier"], "free");
}

#[rstest]
#[tokio::test]
async fn the_second_write_is_refused_with_status_200(#[values(true, false)] deletes: bool) {
    let refusal = serde_json::json!({"success": false, "message": "quota exceeded"});
    let server = contended(1, move |_, _| Answer::json(200, &refusal));
    let (reason, message) = failure(&write(&server, deletes).await);
    assert_eq!((reason, message.contains("quota exceeded")), ("ValidationError", true), "{message}");
}

#[tokio::test]
async fn a_server_that_refuses_its_own_tags_is_not_taken_at_its_word() {
    let world = shops();
    world.server.fail(Matcher::method("PUT"), 412, 1);
    assert_eq!(world.sync().await.stats.updated, 1);
    assert_eq!(world.writes(), ["PUT /shops/rio 412", "PUT /shops/rio 200"]);
}

#[tokio::test]
async fn an_update_whose_answer_was_lost_is_done() {
    let world = shops();
    world.server.cut_after_effect(Matcher::method("PUT"), 1);
    let report = world.sync().await;
    assert_eq!((report.stats.applied, report.stats.failed), (1, 0), "{report:?}");
    assert_eq!(world.writes(), ["PUT /shops/rio 200", "PUT /shops/rio 412"]);
}

#[tokio::test]
async fn metadata_that_asks_for_a_version_means_it() {
    let world = shops();
    world.declare("shops/_/metadata.yaml", "operations: {update: {headers: {If-Match: '\"mine\"'}}}");
    let (reason, message) = failure(&world.sync().await);
    assert_eq!((reason, message.contains("412")), ("ConflictError", true), "{message}");
    assert_eq!(world.writes(), ["PUT /shops/rio 412"]);
}

#[tokio::test]
async fn a_deletion_meets_another_version() {
    let world = shops();
    world.server.put_by_hand("/shops/lima", json(r#"{"id":"lima"}"#));
    world.server.fail(Matcher::method("DELETE"), 412, 1);
    assert_eq!(world.prune("/shops/lima").await.stats.pruned, 1);
    assert_eq!(world.writes(), ["DELETE /shops/lima 412", "DELETE /shops/lima 204"]);
    assert_eq!(world.live("/shops/lima"), "absent");
}

/// Another resource has the name in a member that metadata does not state, or it has the id.
#[rstest]
#[case::name("", "/shops/lima", "{}", "/shops/7", r#"{"id":"7","name":"lima"}"#)]
#[case::id(
    "resource: {id: /id, alias: /name}",
    "/shops/u1",
    r#"{"id":"u1","name":"lima"}"#,
    "/shops/u1",
    r#"{"id":"u1","name":"ava"}"#
)]
#[tokio::test]
async fn a_deletion_meets_another_resource(
    #[case] metadata: &str,
    #[case] path: &str,
    #[case] declared: &str,
    #[case] other_path: &str,
    #[case] other: &str,
) {
    let world = shops();
    world.declare("shops/_/metadata.yaml", metadata);
    world.server.put_by_hand(path, json(declared));
    let plan = world.plan_prune(&[("/shops/lima", declared)]).await;
    world.server.delete_by_hand(path);
    world.server.put_by_hand(other_path, json(other));
    let (reason, message) = failure(&world.apply(plan).await);
    assert_eq!(reason, "ConflictError", "{message}");
    assert_eq!(world.writes(), [format!("DELETE {path} 412")]);
    assert_eq!(world.live(other_path), other);
}
