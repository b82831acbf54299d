//! A run at a gate whose queue is full.

use std::time::Duration;

use declarest_core::path::LogicalPath;
use declarest_core::server::Throttling;
use declarest_core::sync::{self, Options, Outcome, Report, Selection, Session, Stop};
use rstest::rstest;
use serde_json::json;

use crate::client::throttled;
use crate::rest_server::{Config, Matcher};
use crate::world::World;

const RESOURCES: usize = 200;

fn throttling(max_concurrent_requests: usize) -> Throttling {
    Throttling {
        max_concurrent_requests: Some(max_concurrent_requests),
        queue_size: Some(1),
        ..Throttling::default()
    }
}

/// A server that answers 503 to so many of the first creations, and what a run over it reports.
async fn run(throttling: &Throttling, refusals: usize) -> (World, Report) {
    let config = Config { server_ids: vec!["/items".to_owned()], ..Config::default() };
    // A list of any length is whole, also one that is as long as a page when it is asked for.
    let metadata = "{resource: {id: /id, alias: /name}, operations: {list: {pagination: {style: none}}}}";
    let world = World::new(config, &[("items/_/metadata.yaml", metadata)]);
    for index in 0..RESOURCES {
        let name = format!("i{index:03}");
        world.declare(&format!("items/{name}/resource.json"), &json!({"name": name}).to_string());
    }
    world.server.fail(Matcher::method("POST"), 503, refusals);
    let session = Session { client: throttled(&world.server.url(), throttling), ..world.session() };
    let selection = Selection::full(session.tree.as_ref(), &LogicalPath::root(), true).unwrap();
    let (options, stop) = (Options::default(), Stop::default());
    let held = world.server.hold(Matcher::method("POST"));
    let run = sync::run(&session, selection, &options, &stop);
    // The refusals come together, so that no creation gets two of them.
    let release = async {
        while world.server.counts().method("POST") < refusals {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        drop(held);
    };
    let (report, ()) = tokio::join!(run, release);
    (world, report)
}

#[rstest]
#[case::one_at_once(1, 1)]
#[case::four_at_once(4, 3)]
#[case::sixteen_at_once(16, 3)]
#[tokio::test]
async fn a_full_queue_fails_nothing(#[case] at_once: usize, #[case] refusals: usize) {
    let (world, report) = run(&throttling(at_once), refusals).await;
    let failed: Vec<_> = report.failures.iter().take(3).collect();
    assert_eq!((report.stats.created, report.stats.failed), (RESOURCES, 0), "{failed:?}");
    assert_eq!(report.outcome, Outcome::Succeeded);
    assert_eq!(world.server.resources().len(), RESOURCES, "each of them once");
    assert_eq!(world.server.duplicates().len(), 0);
    assert_eq!(world.server.counts().method("POST"), RESOURCES + refusals);
    assert!(world.server.peak_concurrency() <= at_once, "{}", world.server.peak_concurrency());
}

/// Waiting ends when the run ends, however long the queue is.
#[tokio::test]
async fn a_run_that_ends_waits_no_longer() {
    let world = World::new(Config { collections: vec!["/items".to_owned()], ..Config::default() }, &[]);
    for index in 0..40 {
        let id = format!("i{index:02}");
        world.declare(&format!("items/{id}/resource.json"), &json!({"id": id}).to_string());
    }
    let plan = world.plan(&Options::default()).await;
    let held = world.server.hold(Matcher::method("POST"));
    let session = Session { client: throttled(&world.server.url(), &throttling(2)), ..world.session() };
    let stop = Stop::default();
    let run = sync::apply(&session, plan, &stop);
    let end = async {
        while world.server.open() < 2 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        stop.request("the policy is suspended");
        drop(held);
    };
    let both = async { tokio::join!(run, end) };
    let (report, ()) = tokio::time::timeout(Duration::from_secs(20), both).await.expect("the run waits on");
    assert_eq!(report.stats.created, 2);
    assert!(report.failures.iter().all(|failure| failure.message.contains("not attempted")), "{report:?}");
}
