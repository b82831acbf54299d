//! A create whose response takes longer than the timeout of a request.

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

#[path = "support/api_server.rs"]
mod api_server;
#[path = "support/client.rs"]
mod client;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use declarest_core::metadata::Metadata;
use declarest_core::path::LogicalPath;
use declarest_core::repository::{DirTree, Tree};
use declarest_core::sync::{self, Options, Report, Selection, Session, Stop};
use serde_json::json;

use api_server::{Answer, ApiServer, Ids};

const PATIENCE: Duration = Duration::from_millis(1500);

fn write(root: &Path, file: &str, content: &str) {
    let file = root.join(file);
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(file, content).unwrap();
}

async fn run(root: &Path, server: &ApiServer) -> Report {
    let tree: Arc<dyn Tree> = Arc::new(DirTree::open(root).unwrap());
    let metadata = Arc::new(Metadata::new(Arc::clone(&tree)));
    let client = client::client(server.url()).with_attempt_timeout(PATIENCE);
    let session = Session::new(tree, metadata, client);
    let everything = Selection::full(session.tree.as_ref(), &LogicalPath::root(), true).unwrap();
    sync::run(&session, everything, &Options::default(), &Stop::default()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_create_that_takes_long_is_sent_once() {
    // The list shows the created resource only after the server has completed the request.
    let server = ApiServer::start(&["/issues"], |request, store| match request.method.as_str() {
        "POST" if store.mode == "slow" => Answer::json(201, &json!({})).after(10 * PATIENCE),
        _ => request.rest(store, Ids::Given),
    });
    server.mode("slow");
    let directory = tempfile::tempdir().unwrap();
    write(directory.path(), "issues/_/metadata.yaml", "resource: {id: /id, alias: /name}");
    write(directory.path(), "issues/zeta/resource.json", r#"{"name": "zeta"}"#);
    let report = run(directory.path(), &server).await;
    assert_eq!(server.count("POST"), 1, "{:?}", server.writes());
    let failed: Vec<&str> = report.failures.iter().map(|failure| failure.path.as_str()).collect();
    assert_eq!(failed, ["/issues/zeta"]);
    // After the server has completed the request, the next run finds the resource.
    server.mode("");
    server.put("/issues/n7", json!({"id": "n7", "name": "zeta"}));
    tokio::time::sleep(2 * PATIENCE).await;
    let report = run(directory.path(), &server).await;
    assert_eq!((report.failures.len(), server.count("POST")), (0, 1), "{:?}", server.writes());
    assert_eq!(server.paths(), ["/issues/n7"]);
}
