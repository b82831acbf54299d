//! What ends a run, and what does not.

use std::time::Duration;

use declarest_core::error::Category;
use declarest_core::path::LogicalPath;
use declarest_core::server::Throttling;
use declarest_core::sync::{self, FailureReason, Options, Outcome, Selection, Session, Stop};
use rstest::rstest;
use serde_json::json;

use crate::client::throttled;
use crate::rest_server::{Config, Matcher};
use crate::world::World;

fn items(count: usize) -> World {
    let world = World::new(Config { collections: vec!["/items".to_owned()], ..Config::default() }, &[]);
    for index in 0..count {
        let id = format!("i{index:02}");
        world.declare(&format!("items/{id}/resource.json"), &json!({"id": id}).to_string());
    }
    world
}

/// What waits for its turn has not been sent, and need not be.
#[rstest]
#[case::rate(Throttling { requests_per_second: Some(2.0), burst: Some(3), ..Throttling::default() })]
#[case::slots(Throttling { max_concurrent_requests: Some(1), ..Throttling::default() })]
#[tokio::test]
async fn a_run_that_is_to_end_sends_nothing_that_still_waits_at_the_gate(#[case] throttling: Throttling) {
    let world = items(40);
    let plan = world.plan(&Options::default()).await;
    let session = Session { client: throttled(&world.server.url(), &throttling), ..world.session() };
    let stop = Stop::default();
    let run = sync::apply(&session, plan, &stop);
    let end = async {
        while world.server.counts().method("POST") == 0 {
            tokio::task::yield_now().await;
        }
        stop.request("the policy is suspended");
    };
    let (report, ()) = tokio::time::timeout(Duration::from_secs(20), async { tokio::join!(run, end) })
        .await
        .expect("the run waits on");
    let sent = world.server.counts().method("POST");
    assert!((1..=6).contains(&sent), "{sent} sent");
    assert_eq!((report.outcome, report.stats.created), (Outcome::Failed, sent));
    assert_eq!(report.failures.len(), 40 - sent);
    for failure in &report.failures {
        assert_eq!(failure.reason, FailureReason::NotAttempted);
        assert!(failure.message.ends_with("not attempted: the policy is suspended"), "{}", failure.message);
    }
}

#[tokio::test]
async fn resources_that_the_server_chokes_on_do_not_keep_it_from_the_others() {
    let world = items(30);
    for index in 0..8 {
        world.server.fail(Matcher::new("GET", &format!("/items/i{index:02}")), 500, usize::MAX);
    }
    let report = world.sync().await;
    assert_eq!((report.outcome, report.stats.created), (Outcome::PartiallyFailed, 22), "{report:?}");
    assert_eq!((report.stats.failed, report.aborted_by), (8, None));
}

#[tokio::test]
async fn rejected_credentials_are_sent_three_times() {
    let world = items(100);
    world.server.fail(Matcher::any(), 401, usize::MAX);
    let plan = world.plan(&Options::default()).await;
    assert_eq!((plan.actions.len(), plan.failures.len()), (0, 100));
    assert_eq!(world.server.counts().total(), 3);
}

#[tokio::test]
async fn a_server_without_time_is_left_alone() {
    let world = items(30);
    world.server.fail(Matcher::method("POST"), 503, usize::MAX);
    let report = world.sync().await;
    assert_eq!((report.outcome, report.aborted_by), (Outcome::Failed, Some(Category::Transport)));
}

/// Behind a gateway, the server of one collection fails, and those of the others answer.
#[rstest]
#[case::first("a")]
#[case::between("m")]
#[case::last("z")]
#[tokio::test]
async fn a_collection_whose_server_is_down_does_not_keep_a_run_from_the_others(#[case] broken: &str) {
    let collections = ["f", broken, "t"].map(|name| format!("/{name}")).to_vec();
    let world = World::new(Config { collections, ..Config::default() }, &[]);
    for (name, count) in [("f", 10), (broken, 30), ("t", 10)] {
        for index in 0..count {
            let id = format!("i{index:02}");
            world.declare(&format!("{name}/{id}/resource.json"), &json!({"id": id}).to_string());
        }
    }
    for index in 0..30 {
        world.server.fail(Matcher::new("GET", &format!("/{broken}/i{index:02}")), 503, usize::MAX);
    }
    let throttling = Throttling { max_concurrent_requests: Some(4), ..Throttling::default() };
    let session = Session { client: throttled(&world.server.url(), &throttling), ..world.session() };
    let mut created = 0;
    // The first run ends before it reads a resource that the server shows.
    for _ in 0..2 {
        let everything = Selection::full(session.tree.as_ref(), &LogicalPath::root(), true).unwrap();
        let report = sync::run(&session, everything, &Options::default(), &Stop::default()).await;
        let mut failures = report.failures.iter();
        assert!(failures.any(|failure| failure.reason == FailureReason::NotAttempted), "{report:?}");
        created += report.stats.created;
    }
    assert_eq!(created, 20);
}
