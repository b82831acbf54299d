//! A server that ignores a part of each create: the run reads what it has created, and updates it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::{Method, StatusCode, Uri};
use declarest_core::path::LogicalPath;
use declarest_core::sync::{self, Options, Outcome, Report, Selection, Session, Stop};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::client::client;
use crate::rest_server::Config;
use crate::world::World;

/// The steps of a flow, which only a list shows, and which all have one address for updates.
const METADATA: &str = "
resource: {id: /id, alias: /name, remoteCollectionPath: /flow}
operations:
  compare: {mode: declared}
  get: {from: list}
  list: {pagination: {style: none}}
  create: {path: ./steps}
  update: {path: ., mode: merge}
";

#[derive(Default)]
struct Flow {
    steps: Vec<Value>,
    /// How many of the lists that show a step fail.
    failures: usize,
    /// Whether it rejects updates.
    rejects: bool,
    creates: usize,
    /// The number of updates under way, and the most at once.
    updates: (usize, usize),
}

type Shared = Arc<Mutex<Flow>>;

async fn answer(State(flow): State<Shared>, method: Method, uri: Uri, body: String) -> (StatusCode, String) {
    let lock = || flow.lock().unwrap();
    match (method, uri.path()) {
        (Method::GET, "/flow") => {
            let mut flow = lock();
            if flow.failures > 0 && !flow.steps.is_empty() {
                flow.failures -= 1;
                return (StatusCode::INTERNAL_SERVER_ERROR, String::new());
            }
            (StatusCode::OK, Value::from(flow.steps.clone()).to_string())
        }
        (Method::POST, "/flow/steps") => {
            let sent: Value = serde_json::from_str(&body).unwrap();
            let mut flow = lock();
            flow.creates += 1;
            let id = format!("s{}", flow.creates);
            flow.steps.push(json!({"id": id, "name": sent["name"], "required": false}));
            (StatusCode::CREATED, String::new())
        }
        (Method::PUT, "/flow") => {
            let sent: Value = serde_json::from_str(&body).unwrap();
            {
                let mut flow = lock();
                flow.updates.0 += 1;
                flow.updates.1 = flow.updates.1.max(flow.updates.0);
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
            let mut flow = lock();
            flow.updates.0 -= 1;
            if flow.rejects {
                return (StatusCode::UNPROCESSABLE_ENTITY, json!({"error": "no forms"}).to_string());
            }
            let step = flow.steps.iter_mut().find(|step| step["id"] == sent["id"]).unwrap();
            *step = sent;
            (StatusCode::NO_CONTENT, String::new())
        }
        _ => (StatusCode::NOT_FOUND, String::new()),
    }
}

/// Runs twice over four required steps. Returns the report of each run, and the flow.
async fn runs(flow: Flow) -> ([Report; 2], Shared) {
    let flow = Shared::new(Mutex::new(flow));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let router = Router::new().fallback(answer).with_state(Arc::clone(&flow));
    let server = tokio::spawn(async { axum::serve(listener, router).await });
    let world = World::new(Config::default(), &[("steps/_/metadata.yaml", METADATA)]);
    for name in ["cookie", "forms", "otp", "password"] {
        let step = json!({"name": name, "required": true});
        world.declare(&format!("steps/{name}/resource.json"), &step.to_string());
    }
    let session = Session { client: client(&url), ..world.session() };
    let run = async || {
        let selection = Selection::full(session.tree.as_ref(), &LogicalPath::root(), true).unwrap();
        sync::run(&session, selection, &Options::default(), &Stop::default()).await
    };
    let reports = [run().await, run().await];
    server.abort();
    (reports, flow)
}

#[track_caller]
fn assert_complete([first, second]: &[Report; 2], flow: &Flow) {
    assert_eq!((first.stats.created, first.outcome), (4, Outcome::Succeeded), "{first:?}");
    assert_eq!((second.stats.unchanged, second.outcome), (4, Outcome::Succeeded), "{second:?}");
    assert_eq!(flow.creates, 4);
    assert!(flow.steps.iter().all(|step| step["required"] == true), "{:?}", flow.steps);
}

#[tokio::test]
async fn updates_at_one_address_are_sent_one_after_the_other() {
    let (reports, flow) = runs(Flow::default()).await;
    let flow = flow.lock().unwrap();
    assert_complete(&reports, &flow);
    assert_eq!(flow.updates.1, 1);
}

/// The run does not end before it knows that they are complete.
#[tokio::test]
async fn created_resources_that_the_server_fails_to_show_are_read_again() {
    let (reports, flow) = runs(Flow { failures: 4, ..Flow::default() }).await;
    assert_complete(&reports, &flow.lock().unwrap());
}

/// They are never created again, and the run reports that their state is unknown.
#[tokio::test]
async fn created_resources_that_cannot_be_read_fail() {
    let (reports, flow) = runs(Flow { failures: usize::MAX, ..Flow::default() }).await;
    assert_eq!(flow.lock().unwrap().creates, 4);
    for report in &reports {
        assert_eq!(report.outcome, Outcome::PartiallyFailed, "{report:?}");
        assert_eq!((report.stats.created, report.stats.failed), (0, 4), "{report:?}");
    }
}

#[tokio::test]
async fn a_failure_names_the_update_after_a_create() {
    let ([first, second], flow) = runs(Flow { rejects: true, ..Flow::default() }).await;
    let messages = |report: &Report| -> Vec<String> {
        report.failures.iter().map(|failure| failure.message.clone()).collect()
    };
    let update = "PUT /flow: remote request failed with status 422: {\"error\":\"no forms\"}";
    assert_eq!(messages(&first), vec![format!("created, but not completed: {update}"); 4]);
    assert_eq!(messages(&second), vec![update; 4]);
    assert_eq!(flow.lock().unwrap().creates, 4);
}
