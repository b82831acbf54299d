//! Lists that answer for their members.

use declarest_core::server::MAX_CONCURRENCY;
use declarest_core::sync::{Options, Reading, Report, Stats};
use rstest::rstest;
use serde_json::json;

use crate::api_server::{Answer, ApiServer, Ids};
use crate::rest_server::{Config, Matcher};
use crate::scene::Scene;
use crate::world::World;

/// A server with one collection, and a repository that declares `count` members of it.
fn widgets(count: usize, config: Config) -> Scene {
    let mut scene = Scene::new(Config { collections: vec!["/widgets".to_owned()], ..config });
    for index in 0..count {
        scene.declare(&format!("/widgets/w{index}"), &json!({"id": format!("w{index}"), "size": index}));
    }
    scene
}

/// The same, in its desired state, and looked at from afar once.
async fn settled(count: usize, config: Config) -> Scene {
    let scene = widgets(count, config);
    assert_eq!(scene.run(Reading::Each).await.stats.created, count);
    assert_eq!(unchanged(&scene.interval().await), count);
    scene
}

#[track_caller]
fn unchanged(report: &Report) -> usize {
    let Stats { targeted, unchanged, failed, .. } = report.stats;
    assert_eq!((unchanged, failed), (targeted, 0), "{report:?}");
    unchanged
}

#[tokio::test]
async fn one_list_shows_that_a_whole_collection_is_missing() {
    let scene = widgets(300, Config::default());
    let report = scene.run(Reading::Each).await;
    assert_eq!(report.stats.created, 300, "{report:?}");
    let counts = scene.server().counts();
    assert_eq!((counts.of("GET", "/widgets"), counts.method("POST")), (1, 300));
    let reads = counts.method("GET") - 1;
    assert!(
        reads <= MAX_CONCURRENCY,
        "no more are read than are under way when the first is found missing: {reads}"
    );
}

#[tokio::test]
async fn a_first_run_asks_for_the_list_and_one_member() {
    let scene = widgets(30, Config::default());
    let report = scene.first().await;
    assert_eq!(report.stats.created, 30, "{report:?}");
    let counts = scene.server().counts();
    assert_eq!((counts.of("GET", "/widgets"), counts.method("GET"), counts.total()), (1, 2, 32));
    assert_eq!(unchanged(&scene.first().await), 30);
    assert_eq!(scene.server().counts().total(), 31, "what exists is read by itself all the same");
    for index in 0..4 {
        scene.server().delete_by_hand(&format!("/widgets/w{index}"));
    }
    let report = scene.first().await;
    assert_eq!((report.stats.created, report.stats.unchanged), (4, 26), "{report:?}");
}

#[tokio::test]
async fn a_first_run_needs_no_list_of_what_exists() {
    let scene = widgets(30, Config::default());
    scene.first().await;
    scene.server().fail(Matcher::new("GET", "/widgets"), 500, usize::MAX);
    assert_eq!(unchanged(&scene.first().await), 30);
}

#[tokio::test]
async fn a_settled_check_asks_for_the_list_and_nothing_else() {
    let scene = settled(30, Config::default()).await;
    assert_eq!(unchanged(&scene.interval().await), 30);
    assert_eq!(scene.asked(), ["1 GET /widgets"]);
}

/// Secrets of the store may change, and those that the server shows are in its answers.
#[tokio::test]
async fn ids_that_are_secrets_do_not_prevent_a_recheck() {
    let mut scene = widgets(30, Config::default());
    scene.write("widgets/_/metadata.yaml", "resource: {secretAttributes: [/id]}");
    for reading in [Reading::Each, Reading::Bulk] {
        scene.run(reading).await;
    }
    assert_eq!(unchanged(&scene.interval().await), 30);
    assert_eq!(scene.read_from_git(), 0);
}

#[tokio::test]
async fn the_first_check_compares_the_list_with_one_member() {
    let scene = widgets(30, Config::default());
    scene.run(Reading::Each).await;
    assert_eq!(unchanged(&scene.interval().await), 30);
    assert_eq!(scene.server().counts().total(), 2, "{:?}", scene.asked());
}

#[tokio::test]
async fn what_differs_is_read_by_itself_and_the_list_is_not_asked_for_again() {
    let scene = settled(30, Config::default()).await;
    scene.server().put_by_hand("/widgets/w7", json!({"id": "w7", "size": 0}));
    let report = scene.interval().await;
    assert_eq!((report.stats.updated, report.stats.unchanged), (1, 29), "{report:?}");
    assert_eq!(scene.asked(), ["1 GET /widgets", "1 GET /widgets/w7", "1 PUT /widgets/w7"]);
    assert_eq!(unchanged(&scene.interval().await), 30);
}

#[tokio::test]
async fn members_with_unchanged_entries_are_not_read_from_git() {
    let scene = settled(30, Config::default()).await;
    assert_eq!(scene.read_from_git(), 30);
    scene.server().put_by_hand("/widgets/w7", json!({"id": "w7", "size": 0}));
    scene.server().put_by_hand("/widgets/w9", json!({"id": "w9", "size": 10, "note": "by hand"}));
    let report = scene.interval().await;
    assert_eq!((report.stats.updated, report.stats.unchanged), (2, 28), "{report:?}");
    assert_eq!(scene.read_from_git(), 2);
    assert_eq!((report.stats.targeted, report.stats.applied), (30, 30));
}

#[tokio::test]
async fn a_new_entry_with_the_name_of_a_member_has_it_compared_again() {
    let scene = settled(30, Config::default()).await;
    scene.server().put_by_hand("/widgets/x", json!({"id": "x", "name": "w7"}));
    assert_eq!(unchanged(&scene.interval().await), 30);
    assert_eq!(scene.read_from_git(), 1);
}

#[tokio::test]
async fn a_new_revision_is_read_from_git() {
    let mut scene = settled(30, Config::default()).await;
    scene.declare("/widgets/w7", &json!({"id": "w7", "size": 70}));
    scene.interval().await;
    assert_eq!(scene.read_from_git(), 30);
}

#[tokio::test]
async fn the_first_that_is_missing_is_looked_for_by_itself() {
    let scene = settled(31, Config::default()).await;
    for index in 0..4 {
        scene.server().delete_by_hand(&format!("/widgets/w{index}"));
    }
    let report = scene.interval().await;
    assert_eq!((report.stats.created, report.stats.unchanged), (4, 27), "{report:?}");
    let counts = scene.server().counts();
    assert_eq!((counts.of("GET", "/widgets"), counts.method("GET"), counts.method("POST")), (1, 2, 4));
}

#[tokio::test]
async fn a_list_as_long_as_a_page_proves_no_absence() {
    let scene = settled(104, Config::default()).await;
    for index in 0..4 {
        scene.server().delete_by_hand(&format!("/widgets/w{index}"));
    }
    let report = scene.interval().await;
    assert_eq!((report.stats.created, report.stats.unchanged), (4, 100), "{report:?}");
    assert_eq!(scene.server().counts().method("GET"), 5, "{:?}", scene.asked());
}

#[tokio::test]
async fn a_list_of_summaries_proves_no_equality() {
    // Comparing only what the list shows makes its entries look equal.
    let mut scene = widgets(20, Config { summaries: vec!["/widgets".to_owned()], ..Config::default() });
    scene
        .write("widgets/_/metadata.yaml", "operations: {compare: {transforms: [{selectAttributes: [/id]}]}}");
    scene.run(Reading::Each).await;
    for _ in 0..2 {
        assert_eq!(unchanged(&scene.interval().await), 20);
    }
    assert_eq!(scene.server().counts().method("GET"), 21, "{:?}", scene.asked());
}

#[tokio::test]
async fn a_list_that_omits_members_is_found_out() {
    let scene = settled(30, Config::default()).await;
    scene.server().paginate("/widgets");
    assert_eq!(unchanged(&scene.interval().await), 30);
    assert_eq!(scene.server().counts().writes(), 0, "{:?}", scene.asked());
}

#[tokio::test]
async fn a_list_that_fails_is_no_reason_to_write() {
    let scene = settled(30, Config::default()).await;
    scene.server().fail(Matcher::new("GET", "/widgets"), 500, 10);
    assert_eq!(unchanged(&scene.interval().await), 30);
    assert_eq!(scene.server().counts().writes(), 0, "{:?}", scene.asked());
}

#[rstest]
#[case::get("operations: {get: {transforms: [{jqExpression: .}]}}")]
#[case::list("operations: {list: {transforms: [{jqExpression: .}]}}")]
#[case::elsewhere("operations: {get: {path: './{{/id}}'}}")]
#[case::jq("operations: {compare: {transforms: [{jqExpression: .}]}}")]
#[tokio::test]
async fn metadata_that_lets_reads_differ_from_lists_has_them_read(#[case] metadata: &str) {
    let mut scene = widgets(20, Config::default());
    scene.write("widgets/_/metadata.yaml", metadata);
    scene.run(Reading::Each).await;
    assert_eq!(unchanged(&scene.interval().await), 20);
    assert!(scene.server().counts().method("GET") >= 20, "{:?}", scene.asked());
}

/// The attributes that only the server states are in the entries, too.
#[rstest]
#[case::own("operations: {get: {transforms: [{excludeAttributes: [/seen]}]}}")]
#[case::shared("operations: {defaults: {transforms: [{excludeAttributes: [/seen]}]}}")]
#[tokio::test]
async fn a_list_proves_equality_without_the_attributes_that_reads_exclude(#[case] metadata: &str) {
    let mut scene = widgets(20, Config::default());
    scene.write("widgets/_/metadata.yaml", metadata);
    scene.run(Reading::Each).await;
    for seen in 1..4 {
        for index in 0..20 {
            let body = json!({"id": format!("w{index}"), "size": index, "seen": seen});
            scene.server().put_by_hand(&format!("/widgets/w{index}"), body);
        }
        assert_eq!(unchanged(&scene.interval().await), 20);
        assert!(scene.server().counts().method("GET") <= 2, "{:?}", scene.asked());
    }
    scene.server().put_by_hand("/widgets/w7", json!({"id": "w7", "size": 70, "seen": 9}));
    let report = scene.interval().await;
    assert_eq!((report.stats.updated, report.stats.unchanged), (1, 19), "{report:?}");
}

/// Reads have an envelope around the resource, and the entries of the list do not.
#[tokio::test]
async fn a_list_proves_equality_with_what_reads_show_in_an_envelope() {
    let server = ApiServer::start(&["/widgets"], |request, store| match store.get(&request.path) {
        Some(widget) if request.method == "GET" => Answer::json(200, &json!({"data": widget})),
        _ => request.rest(store, Ids::Stated("id")),
    });
    let metadata = "operations: {get: {transforms: [{jqExpression: .data}, {excludeAttributes: [/seen]}]}}";
    let scene = World::new(Config::default(), &[("widgets/_/metadata.yaml", metadata)]);
    for index in 0..20 {
        scene.declare(&format!("widgets/w{index}/resource.json"), &format!(r#"{{"id":"w{index}"}}"#));
    }
    let options = Options { reading: Reading::Bulk, ..Options::default() };
    let run = || scene.sync_with(server.url(), &[], &options);
    assert_eq!(run().await.stats.created, 20);
    for index in 0..20 {
        server.put(&format!("/widgets/w{index}"), json!({"id": format!("w{index}"), "seen": index}));
    }
    let before = server.log().len();
    assert_eq!(unchanged(&run().await), 20);
    assert!(server.log().len() - before <= 2, "{:?}", server.log());
    server.put("/widgets/w7", json!({"id": "w7", "size": 70}));
    let report = run().await;
    assert_eq!((report.stats.updated, report.stats.unchanged), (1, 19), "{report:?}");
}

#[tokio::test]
async fn a_commit_makes_the_next_check_look_at_everything() {
    let mut scene = settled(30, Config::default()).await;
    scene.declare("/widgets/w7", &json!({"id": "w7", "size": 70}));
    let report = scene.interval().await;
    assert_eq!((report.stats.updated, report.stats.unchanged), (1, 29), "{report:?}");
    assert_eq!(scene.asked(), ["1 GET /widgets", "1 GET /widgets/w7", "1 PUT /widgets/w7"]);
}

#[tokio::test]
async fn other_metadata_has_the_list_proven_again() {
    let mut scene = settled(30, Config::default()).await;
    scene.write(
        "widgets/_/metadata.yaml",
        "operations: {compare: {transforms: [{excludeAttributes: [/size]}]}}",
    );
    assert_eq!(unchanged(&scene.interval().await), 30);
    assert_eq!(scene.server().counts().total(), 2, "{:?}", scene.asked());
}

#[tokio::test]
async fn few_members_are_read_by_themselves() {
    let scene = settled(2, Config::default()).await;
    assert_eq!(unchanged(&scene.interval().await), 2);
    assert_eq!(scene.asked(), ["1 GET /widgets/w0", "1 GET /widgets/w1"]);
}
