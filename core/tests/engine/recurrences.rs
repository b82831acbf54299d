//! Servers that make something else of what they are sent.

use std::sync::Arc;

use declarest_core::path::LogicalPath;
use declarest_core::sync::{Options, Outcome, Recurrences, Report, Unsettled};
use rstest::rstest;

use crate::rest_server::{Config, Matcher};
use crate::world::{World, json};

/// The server counts the version of each shop up with every write.
fn shops() -> World {
    let config = Config {
        collections: vec!["/shops".to_owned()],
        versioned: vec!["/shops".to_owned()],
        ..Config::default()
    };
    let world = World::new(config, &[("shops/rio/resource.json", r#"{"id":"rio","version":0}"#)]);
    world.server.put_by_hand("/shops/rio", json(r#"{"id":"rio","version":1}"#));
    world
}

async fn run(world: &World, earlier: Recurrences) -> (Report, Recurrences) {
    let options = Options { recurrences: Some(Arc::new(earlier)), ..Options::default() };
    let report = world.apply(world.plan(&options).await).await;
    let recurrences = report.recurrences.clone().unwrap();
    (report, recurrences)
}

/// Runs until the shop is left alone.
async fn held(world: &World) -> Recurrences {
    let mut known = Recurrences::default();
    // The second run reads the resource after the write.
    for outcome in [Outcome::Succeeded, Outcome::PartiallyFailed, Outcome::PartiallyFailed] {
        let (report, next) = run(world, known).await;
        assert_eq!((report.outcome, report.failures.len()), (outcome, 0), "{report:?}");
        known = next;
    }
    assert_eq!(world.writes().len(), 3);
    world.server.reset_counts();
    known
}

#[tokio::test]
async fn three_writes_without_effect_are_enough() {
    let world = shops();
    let (report, known) = run(&world, held(&world).await).await;
    assert_eq!(
        (report.outcome, report.stats.targeted, report.stats.failed),
        (Outcome::PartiallyFailed, 1, 1)
    );
    let [entry] = &report.unsettled[..] else { panic!("{report:?}") };
    assert_eq!((entry.path.as_str(), entry.reason.as_str()), ("/shops/rio", "NeverConverges"));
    assert!(
        entry.message.contains(
            "add {excludeAttributes: [/version]} to operations.compare.transforms in shops/_/metadata.yaml"
        ),
        "{}",
        entry.message
    );
    assert!(world.writes().is_empty());
    assert_eq!(run(&world, known.clone()).await.1, known, "nothing new, nothing to record");
}

#[rstest]
#[case::desired_payload("shops/rio/resource.json", r#"{"id":"rio","version":0,"tier":"gold"}"#, 1)]
#[case::metadata("shops/_/metadata.yaml", "operations: {update: {query: {force: 'true'}}}", 1)]
#[case::rule(
    "shops/_/metadata.yaml",
    "operations: {compare: {transforms: [{excludeAttributes: [/version]}]}}",
    0
)]
#[case::other_metadata("other/_/metadata.yaml", "resource: {id: /uid}", 0)]
#[tokio::test]
async fn what_is_left_alone_is_written_when_something_changes(
    #[case] file: &str,
    #[case] content: &str,
    #[case] writes: usize,
) {
    let world = shops();
    let known = held(&world).await;
    world.declare(file, content);
    run(&world, known).await;
    assert_eq!(world.writes().len(), writes);
}

#[tokio::test]
async fn the_rule_that_is_named_silences_it() {
    let world = shops();
    let known = held(&world).await;
    let rule = "operations: {compare: {transforms: [{excludeAttributes: [/version]}]}}";
    world.declare("shops/_/metadata.yaml", rule);
    let (report, known) = run(&world, known).await;
    assert_eq!((report.outcome, report.stats.unchanged), (Outcome::Succeeded, 1), "{report:?}");
    assert_eq!(known.unsettled().count(), 0);
}

#[tokio::test]
async fn what_is_on_record_outlives_the_process() {
    let world = shops();
    let known = held(&world).await;
    let recorded: Vec<(LogicalPath, Unsettled)> =
        known.unsettled().map(|(path, unsettled)| (path.clone(), unsettled.clone())).collect();
    assert_eq!((recorded[0].1.writes, &recorded[0].1.pointers[..]), (3, &["/version".to_owned()][..]));
    let (report, _) = run(&world, Recurrences::recorded(recorded)).await;
    assert_eq!((report.unsettled.len(), world.writes().len()), (1, 0));
}

#[tokio::test]
async fn repeated_changes_of_another_client_are_corrected_every_time() {
    let world = World::new(
        Config { collections: vec!["/shops".to_owned()], ..Config::default() },
        &[("shops/rio/resource.json", r#"{"id":"rio","tier":"gold"}"#)],
    );
    let mut known = Recurrences::default();
    for round in 1..=6 {
        world.server.put_by_hand("/shops/rio", json(r#"{"id":"rio","tier":"free"}"#));
        let (report, next) = run(&world, known).await;
        assert_eq!((report.stats.updated, report.unsettled.len()), (1, 0), "round {round}");
        known = next;
    }
}

#[tokio::test]
async fn a_run_that_could_not_write_does_not_count() {
    let world = shops();
    let (_, known) = run(&world, Recurrences::default()).await;
    let (_, known) = run(&world, known).await;
    world.server.fail(Matcher::method("PUT"), 422, 1);
    let (report, known) = run(&world, known).await;
    assert_eq!((report.failures.len(), report.unsettled.len()), (1, 0));
    let (report, _) = run(&world, known).await;
    assert_eq!(report.unsettled.len(), 1, "the third write");
}

#[tokio::test]
async fn secrets_stay_out_of_what_is_recorded_and_a_new_one_is_written() {
    let world = shops();
    world.declare("shops/_/metadata.yaml", "resource: {secretAttributes: [/pin]}\noperations: {get: {transforms: [{excludeAttributes: [/pin]}]}, compare: {transforms: [{excludeAttributes: [/version]}]}}");
    world.declare("shops/rio/resource.json", r#"{"id":"rio","version":0,"pin":"canary-1"}"#);
    let known = held(&world).await;
    assert!(!format!("{known:?}").contains("canary"), "{known:?}");
    // The digest does not distinguish the values, so the caller reports the change.
    world.declare("shops/rio/resource.json", r#"{"id":"rio","version":0,"pin":"canary-2"}"#);
    run(&world, known.in_epoch("next")).await;
    assert_eq!(world.writes().len(), 1);
}
