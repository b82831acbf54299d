//! Servers that treat expired credentials like none, or show to each client what it may see, and answer 404 for all
//! other resources.

use std::sync::Arc;

use declarest_core::path::LogicalPath;
use declarest_core::payload::{PayloadType, decode};
use declarest_core::server::{BaseUrl, Client, Gate, Settings, Throttling};
use declarest_core::sync::{self, Candidate, Options, Report, Selection, Session, Stop};
use rstest::rstest;
use serde_json::json;

use crate::rest_server::{Config, Matcher};
use crate::world::World;

/// A server whose health check answers `status`. Git declares the resource `hq`, which the server does not show.
fn world(status: u16) -> World {
    let config = Config { collections: vec!["/things".to_owned()], ..Config::default() };
    let world = World::new(config, &[("things/hq/resource.json", r#"{"id":"hq"}"#)]);
    world.server.fail(Matcher::new("GET", "/admin"), status, usize::MAX);
    world
}

/// Runs over everything that is declared, and the candidates for deletion with these names.
async fn run(world: &World, candidates: &[&str]) -> Report {
    let base_url = BaseUrl::parse(&world.server.url()).unwrap();
    let settings = Settings { health_check: Some("/admin".to_owned()), ..Settings::new(base_url) };
    let gate = Arc::new(Gate::new(&Throttling::default()).unwrap());
    let session = Session { client: Client::new(settings, gate, None).unwrap(), ..world.session() };
    let candidate = |name: &&str| Candidate {
        path: LogicalPath::parse(&format!("/things/{name}")).unwrap(),
        payload: decode(PayloadType::Json, json!({"id": name}).to_string().as_bytes()).unwrap(),
        declared_in: None,
    };
    let prune = candidates.iter().map(candidate).collect();
    let selection = Selection::full(session.tree.as_ref(), &LogicalPath::root(), true).unwrap();
    sync::run(&session, Selection { prune, ..selection }, &Options::default(), &Stop::default()).await
}

#[rstest]
#[case::expired(401)]
#[case::fewer_rights(403)]
#[tokio::test]
async fn nothing_is_absent_while_the_health_check_rejects_the_credentials(#[case] status: u16) {
    let world = world(status);
    let report = run(&world, &["gone"]).await;
    let failed: Vec<_> = report.failures.iter().map(|failure| failure.path.to_string()).collect();
    assert_eq!(failed, ["/things/gone", "/things/hq"], "{report:?}");
    let message = &report.failures[0].message;
    assert!(
        message.contains("the health check rejects the credentials, so the server may hide"),
        "{message}"
    );
    let counts = world.server.counts();
    assert_eq!((counts.of("GET", "/admin"), counts.method("POST")), (1, 0));
}

/// The server rejects the credentials for one resource, and hides others.
#[tokio::test]
async fn nothing_is_created_in_a_run_whose_credentials_are_rejected() {
    let world = world(200);
    world.declare("things/known/resource.json", r#"{"id":"known"}"#);
    world.server.fail(Matcher::new("GET", "/things/known"), 401, usize::MAX);
    let report = run(&world, &[]).await;
    let failed: Vec<_> = report.failures.iter().map(|failure| failure.path.to_string()).collect();
    assert_eq!(failed, ["/things/hq", "/things/known"], "{report:?}");
    let message = &report.failures[0].message;
    assert!(message.contains("the server rejects the credentials for /things/known"), "{message}");
    assert_eq!(world.server.counts().method("POST"), 0);
}

/// The health check of a server may fail for other reasons, and says nothing about resources that exist.
#[tokio::test]
async fn other_failures_of_the_health_check_do_not_count() {
    let world = world(500);
    let report = run(&world, &["gone"]).await;
    assert_eq!((report.failures.len(), report.stats.created), (0, 1), "{report:?}");
}

#[tokio::test]
async fn a_settled_run_does_not_request_the_health_check() {
    let world = world(401);
    world.server.put_by_hand("/things/hq", json!({"id": "hq"}));
    let report = run(&world, &[]).await;
    assert_eq!(report.failures.len(), 0, "{report:?}");
    assert_eq!(world.server.counts().of("GET", "/admin"), 0);
}
