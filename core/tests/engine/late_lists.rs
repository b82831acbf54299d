//! A server that assigns ids, and shows new resources after a while.

use std::sync::Arc;
use std::time::Duration;

use declarest_core::path::LogicalPath;
use declarest_core::sync::{self, Knowledge, Options, Report, Selection, Session, Stop};
use rstest::rstest;
use serde_json::json;

use crate::api_server::{Answer, ApiServer, Ids};
use crate::client::client;
use crate::rest_server::Config;
use crate::world::{World, failure, selected};

/// The server shows resources in the mode `late`.
fn server() -> ApiServer {
    ApiServer::start(&["/users"], |request, store| {
        let is_late = request.method == "GET" && store.mode != "late";
        match request.path.as_str() {
            "/users" if is_late => Answer::json(200, &json!([])),
            _ if is_late => Answer::missing(),
            _ => request.rest(store, Ids::Given),
        }
    })
}

async fn run(world: &World, server: &ApiServer, knowledge: &Arc<Knowledge>, prune: &[&str]) -> Report {
    let (knowledge, client) = (Arc::clone(knowledge), client(server.url()));
    let session = Session { client, knowledge, list_delay: Duration::from_secs(20), ..world.session() };
    let everything = Selection::full(session.tree.as_ref(), &LogicalPath::root(), true).unwrap();
    let prune: Vec<_> = prune.iter().map(|path| (*path, r#"{"name":"ana"}"#)).collect();
    let selection = Selection { prune: selected(&prune).prune, ..everything };
    let options = Options { recurrences: Some(Arc::default()), ..Options::default() };
    sync::run(&session, selection, &options, &Stop::default()).await
}

/// What a second commit changes.
#[derive(Clone, Copy, Debug)]
enum Change {
    Nothing,
    Payload,
    Path,
    Configuration,
}

#[rstest]
#[tokio::test]
async fn a_further_run_does_not_create_it_again(
    #[values(Change::Nothing, Change::Payload, Change::Path, Change::Configuration)] change: Change,
) {
    let server = server();
    let metadata = "resource: {id: /id, alias: /name}";
    let world = World::new(Config::default(), &[("users/_/metadata.yaml", metadata)]);
    world.declare("users/ana/resource.json", r#"{"name":"ana"}"#);
    let mut knowledge = Arc::<Knowledge>::default();
    let report = run(&world, &server, &knowledge, &[]).await;
    assert_eq!((report.stats.created, report.stats.failed), (1, 0), "{report:?}");
    match change {
        Change::Nothing => {}
        Change::Payload => world.declare("users/ana/resource.json", r#"{"name":"ana","age":3}"#),
        Change::Path => {
            world.remove("users/ana");
            world.declare("users/zoe/resource.json", r#"{"name":"ana"}"#);
        }
        Change::Configuration => knowledge = Arc::new(knowledge.of_creates(false)),
    }
    let (_, message) = failure(&run(&world, &server, &knowledge, &[]).await);
    assert!(message.contains("creation outcome unknown"), "{message}");
    server.mode("late");
    let report = run(&world, &server, &knowledge, &[]).await;
    assert_eq!((report.stats.created, report.stats.failed), (0, 0), "{report:?}");
    assert_eq!(server.paths(), ["/users/n7"]);
}

/// A commit removes the file before the server shows the resource.
#[tokio::test]
async fn what_is_not_shown_yet_is_deleted_later() {
    let (server, knowledge) = (server(), Arc::default());
    let metadata = "resource: {id: /id, alias: /name}";
    let world = World::new(Config::default(), &[("users/_/metadata.yaml", metadata)]);
    world.declare("users/ana/resource.json", r#"{"name":"ana"}"#);
    world.declare("users/eve/resource.json", r#"{"name":"eve"}"#);
    assert_eq!(run(&world, &server, &knowledge, &[]).await.stats.created, 2);
    world.remove("users/ana");
    let report = run(&world, &server, &knowledge, &["/users/ana"]).await;
    assert_eq!((report.stats.pruned, report.failures.len()), (0, 2), "{report:?}");
    server.mode("late");
    let report = run(&world, &server, &knowledge, &["/users/ana"]).await;
    assert_eq!((report.stats.pruned, report.stats.failed), (1, 0), "{report:?}");
    assert_eq!(server.paths().len(), 1);
    // After a run has found it, its absence means that it was deleted.
    let report = run(&world, &server, &knowledge, &["/users/ana"]).await;
    assert_eq!((report.stats.unchanged, report.stats.failed), (1, 0), "{report:?}");
}
