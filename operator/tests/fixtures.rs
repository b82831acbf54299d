//! The fixtures do what the tests that stand on them rely on.
#![allow(clippy::unwrap_used, reason = "a test fails where it cannot go on")]

#[path = "support/git_http.rs"]
mod git_http;
#[path = "support/git_remote.rs"]
mod git_remote;
#[path = "../../demo/rest_server/mod.rs"]
mod rest_server;

use std::process::Output;
use std::time::Duration;

use git_http::GitHttp;
use git_remote::{GitRemote, git, git_command, output};
use reqwest::{Client, Method, StatusCode};
use rest_server::{Config, Duplicate, Matcher, Requirement, RestServer};
use rstest::rstest;
use serde_json::{Value, json};

/// Sends a request and returns status and JSON body, null when empty.
async fn send(server: &RestServer, method: Method, path: &str, body: Option<Value>) -> (u16, Value) {
    let mut request = client().request(method, format!("{}{path}", server.url()));
    if let Some(body) = body {
        request = request.header("content-type", "application/json").body(body.to_string());
    }
    let response = request.send().await.unwrap();
    let status = response.status().as_u16();
    let body = response.bytes().await.unwrap();
    (status, serde_json::from_slice(&body).unwrap_or(Value::Null))
}

/// The crate builds reqwest without a TLS provider, so that a process chooses one.
fn client() -> Client {
    // A second call finds the first one's provider, which is the same.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Client::new()
}

async fn get(server: &RestServer, path: &str) -> (u16, Value) {
    send(server, Method::GET, path, None).await
}

async fn post(server: &RestServer, path: &str, body: Value) -> (u16, Value) {
    send(server, Method::POST, path, Some(body)).await
}

async fn put(server: &RestServer, path: &str, body: Value) -> (u16, Value) {
    send(server, Method::PUT, path, Some(body)).await
}

async fn delete(server: &RestServer, path: &str) -> u16 {
    send(server, Method::DELETE, path, None).await.0
}

fn start(config: Config) -> RestServer {
    RestServer::start(config).unwrap()
}

#[tokio::test]
async fn client_given_ids() {
    let server = start(Config::default());
    assert_eq!(get(&server, "/shops").await.0, 404);
    assert_eq!(put(&server, "/shops/rio", json!({"name": "rio"})).await.0, 404);
    assert_eq!(post(&server, "/shops", json!({"name": "rio"})).await, (201, json!({"name": "rio"})));
    assert_eq!(post(&server, "/shops", json!({"name": "rio"})).await.0, 409);
    assert_eq!(post(&server, "/shops", json!({"id": 7, "name": "ava"})).await.0, 201);
    assert_eq!(post(&server, "/shops", json!({"city": "nowhere"})).await.0, 400);
    assert_eq!(put(&server, "/shops/rio", json!({"name": "rio", "open": true})).await.0, 200);
    assert_eq!(get(&server, "/shops/rio").await, (200, json!({"name": "rio", "open": true})));
    let list = json!([{"id": 7, "name": "ava"}, {"name": "rio", "open": true}]);
    assert_eq!(get(&server, "/shops").await, (200, list));
    assert_eq!(delete(&server, "/shops/rio").await, 204);
    assert_eq!(delete(&server, "/shops/rio").await, 404);
    assert_eq!(delete(&server, "/shops/7").await, 204);
    assert_eq!(get(&server, "/shops").await, (200, json!([])));
}

#[tokio::test]
async fn server_given_ids_and_their_duplicates() {
    let server = start(Config { server_ids: vec!["/orders".into()], ..Config::default() });
    assert_eq!(get(&server, "/orders").await, (200, json!([])));
    let sent = json!({"name": "first"});
    assert_eq!(post(&server, "/orders", sent.clone()).await, (201, json!({"name": "first", "id": "w-1"})));
    assert_eq!(server.duplicates(), []);
    assert_eq!(post(&server, "/orders", sent).await.1["id"], "w-2");
    assert_eq!(put(&server, "/orders/w-2", json!({"name": "first", "qty": 2})).await.1["id"], "w-2");
    let paths = vec!["/orders/w-1".to_owned(), "/orders/w-2".to_owned()];
    assert_eq!(
        server.duplicates(),
        [Duplicate { collection: "/orders".into(), name: "first".into(), paths }]
    );
}

#[rstest]
#[case::undeclared(&[])]
#[case::declared(&["/shops", "/shops/*/tills"])]
#[tokio::test]
async fn a_nested_collection_needs_its_parent(#[case] collections: &[&str]) {
    let collections = collections.iter().map(ToString::to_string).collect();
    let server = start(Config { collections, refuse_delete_with_children: true, ..Config::default() });
    assert_eq!(post(&server, "/shops/rio/tills", json!({"id": "t1"})).await.0, 404);
    assert_eq!(get(&server, "/shops/rio/tills").await.0, 404);
    server.put_by_hand("/shops/rio", json!({"name": "rio"}));
    assert_eq!(post(&server, "/shops/rio/tills", json!({"id": "t1"})).await.0, 201);
    assert_eq!(delete(&server, "/shops/rio").await, 409);
    assert_eq!(delete(&server, "/shops/rio/tills/t1").await, 204);
    assert_eq!(get(&server, "/shops/rio/tills").await, (200, json!([])));
    assert_eq!(delete(&server, "/shops/rio").await, 204);
    assert_eq!(get(&server, "/shops/rio/tills").await.0, 404);
}

#[tokio::test]
async fn a_delete_includes_the_children_by_default() {
    let server = start(Config::default());
    server.put_by_hand("/shops/rio", json!({"name": "rio"}));
    server.put_by_hand("/shops/rio/tills/t1", json!({"id": "t1"}));
    server.put_by_hand("/shops/rio-2", json!({"name": "rio-2"}));
    assert_eq!(delete(&server, "/shops/rio").await, 204);
    assert_eq!(server.resources(), [("/shops/rio-2".to_owned(), json!({"name": "rio-2"}))]);
}

#[tokio::test]
async fn options_change_the_shape_of_lists_and_the_meaning_of_put() {
    let requirement = Requirement { collection: "/shops".into(), pointer: "/city".into() };
    let server = start(Config {
        upsert: true,
        items_envelope: true,
        requirements: vec![requirement],
        ..Config::default()
    });
    assert_eq!(put(&server, "/shops/rio", json!({"name": "rio"})).await.0, 422);
    assert_eq!(put(&server, "/shops/rio", json!({"city": "Rio"})).await.0, 201);
    assert_eq!(get(&server, "/shops").await, (200, json!({"items": [{"city": "Rio"}]})));
    let patch = Some(json!({"open": true, "city": null}));
    assert_eq!(send(&server, Method::PATCH, "/shops/rio", patch).await.0, 422);
    let patch = Some(json!({"open": true}));
    let patched = json!({"city": "Rio", "open": true});
    assert_eq!(send(&server, Method::PATCH, "/shops/rio", patch).await, (200, patched));
}

#[tokio::test]
async fn requests_are_counted_and_edits_by_hand_are_not() {
    let server = start(Config { log_bodies: true, ..Config::default() });
    server.put_by_hand("/shops/rio", json!({"name": "rio"}));
    assert_eq!(server.get("/shops/rio"), Some(json!({"name": "rio"})));
    get(&server, "/shops/rio").await;
    get(&server, "/shops/rio/").await;
    put(&server, "/shops/rio", json!({"open": true})).await;
    get(&server, "/shops/S%C3%A3o%20Paulo").await;
    let counts = server.counts();
    assert_eq!((counts.total(), counts.writes(), counts.method("GET")), (4, 1, 3));
    assert_eq!(counts.of("GET", "/shops/rio"), 2);
    let writes = server.writes();
    assert_eq!(writes.len(), 1);
    assert_eq!((writes[0].sequence, writes[0].status), (3, Some(200)));
    assert_eq!(writes[0].body, Some(json!({"open": true})));
    assert_eq!(server.log()[3].to_string(), "GET /shops/São Paulo");
    server.reset_counts();
    assert_eq!(server.counts().total(), 0);
    assert!(server.delete_by_hand("/shops/rio"));
    assert!(!server.delete_by_hand("/shops/rio"));
    assert_eq!(server.log(), []);
    get(&server, "/shops").await;
    assert_eq!(server.log()[0].sequence, 5);
}

#[tokio::test]
async fn concurrency_is_measured() {
    let server = start(Config::default());
    let held = server.hold(Matcher::method("GET"));
    let release_at_three = async {
        while server.open() < 3 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert_eq!(post(&server, "/shops", json!({"name": "rio"})).await.0, 201, "not held");
        drop(held);
    };
    tokio::join!(get(&server, "/a"), get(&server, "/b"), get(&server, "/c"), release_at_three);
    assert_eq!((server.peak_concurrency(), server.open()), (4, 0));
    server.reset_counts();
    get(&server, "/a").await;
    assert_eq!(server.peak_concurrency(), 1);
}

#[tokio::test]
async fn latency_delays_every_answer() {
    let server = start(Config::default());
    server.latency(Duration::from_millis(50));
    let start = std::time::Instant::now();
    get(&server, "/a").await;
    assert!(start.elapsed() >= Duration::from_millis(50));
}

#[tokio::test]
async fn failures_strike_as_often_as_asked() {
    let server = start(Config::default());
    server.fail(Matcher::new("POST", "/shops"), 500, 2);
    server.fail_after_effect(Matcher::path("/tills/**"), 504, 1);
    for expected in [500, 500, 201] {
        assert_eq!(post(&server, "/shops", json!({"name": "rio"})).await.0, expected);
    }
    assert_eq!(post(&server, "/tills", json!({"name": "t1"})).await.0, 504);
    assert_eq!(post(&server, "/tills", json!({"name": "t1"})).await.0, 409, "the first one took effect");
    server.fail(Matcher::any(), 503, usize::MAX);
    assert_eq!(get(&server, "/shops/rio").await.0, 503);
    server.clear_failures();
    assert_eq!(get(&server, "/shops/rio").await.0, 200);
}

#[tokio::test]
async fn credentials_are_asked_for() {
    let server = start(Config::default());
    server.require_basic("ops", "first");
    server.require_header("x-tenant", "blue");
    let ask = async |password: &str, tenant: &str| {
        let request = client().get(server.url()).basic_auth("ops", Some(password)).header("x-tenant", tenant);
        request.send().await.unwrap().status()
    };
    assert_eq!(ask("first", "blue").await, StatusCode::OK);
    assert_eq!(ask("first", "red").await, StatusCode::UNAUTHORIZED);
    assert_eq!(ask("second", "blue").await, StatusCode::UNAUTHORIZED);
    server.require_basic("ops", "second");
    assert_eq!(ask("second", "blue").await, StatusCode::OK);
    assert_eq!(get(&server, "/").await.0, 401);
}

#[tokio::test]
async fn an_outage_keeps_what_is_stored() {
    let mut server = start(Config::default());
    server.put_by_hand("/shops/rio", json!({"name": "rio"}));
    server.stop();
    assert!(client().get(server.url()).send().await.is_err());
    server.resume().unwrap();
    assert_eq!(get(&server, "/shops/rio").await.0, 200);
}

#[tokio::test]
async fn the_control_surface_is_served_on_request_and_not_counted() {
    let server = start(Config { control: true, ..Config::default() });
    get(&server, "/shops").await;
    let count = json!({"method": "GET", "path": "/shops", "count": 1});
    let counts = json!({"total": 1, "writes": 0, "peak": 1, "requests": [count]});
    assert_eq!(get(&server, "/_control/counts").await, (200, counts));
    let line = json!({"sequence": 1, "method": "GET", "path": "/shops", "status": 404});
    assert_eq!(get(&server, "/_control/log").await, (200, json!([line])));
    assert_eq!(get(&server, "/_control/duplicates").await, (200, json!([])));
    assert_eq!(send(&server, Method::POST, "/_control/reset", None).await.0, 204);
    assert_eq!(server.counts().total(), 0);
    let plain = start(Config::default());
    assert_eq!(get(&plain, "/_control/counts").await.0, 404);
}

/// Clones with git's own client.
fn clone(remote: &GitRemote, url: &str, name: &str) -> Output {
    output(git_command(remote.root()).args(["clone", "--quiet", url, name]))
}

fn with_password(url: &str, password: &str) -> String {
    url.replacen("http://", &format!("http://token:{password}@"), 1)
}

#[test]
fn a_remote_publishes_what_is_pushed() {
    let remote = GitRemote::new();
    remote.write("shops/rio/resource.yaml", "name: rio\n").write("shops/ava/resource.yaml", "name: ava\n");
    let first = remote.commit("declare two shops");
    remote.push();
    remote.remove("shops/ava");
    let second = remote.commit("close ava");
    assert_eq!(git(&remote.bare(), &["rev-parse", "main"]), first);
    remote.push();
    assert_eq!(git(&remote.bare(), &["rev-parse", "main"]), second);
    let files = git(&remote.bare(), &["ls-tree", "-r", "--name-only", "main"]);
    assert_eq!(files, "shops/rio/resource.yaml");

    remote.reset_to(&first).remove("shops/rio");
    let other = remote.commit("close rio");
    remote.force_push();
    remote.collect_garbage();
    assert_eq!(git(&remote.bare(), &["rev-parse", "main"]), other);
    let kept = output(git_command(&remote.bare()).args(["cat-file", "-e", &second]));
    assert!(!kept.status.success(), "the overwritten commit is collected");
}

#[test]
fn commit_ids_depend_on_the_content_only() {
    let commit = || GitRemote::new().write("a", "1").commit("one");
    assert_eq!(commit(), commit());
}

#[test]
fn http_serves_to_holders_of_the_token() {
    let remote = GitRemote::new();
    // Large enough to make the client compress its requests and the answer span several reads.
    for index in 0..100 {
        remote.write(&format!("shops/s{index}/resource.yaml"), format!("name: s{index}\n"));
    }
    let commit = remote.commit("declare shops");
    remote.push();
    let server = GitHttp::start(remote.root(), Some("open"));
    let url = server.url("desired.git");

    let right = clone(&remote, &with_password(&url, "open"), "right");
    assert!(right.status.success(), "{}", String::from_utf8_lossy(&right.stderr));
    assert_eq!(git(&remote.root().join("right"), &["rev-parse", "HEAD"]), commit);
    assert!(server.requests() >= 2, "git asks for the refs, then for the objects");
    assert!(server.users().iter().all(|user| user == "token"));

    assert!(!clone(&remote, &with_password(&url, "closed"), "wrong").status.success());
    assert!(!clone(&remote, &url, "anonymous").status.success());
    server.set_token("closed");
    assert!(clone(&remote, &with_password(&url, "closed"), "changed").status.success());
    server.set_failure(Some(503));
    assert!(!clone(&remote, &with_password(&url, "closed"), "failing").status.success());
    server.set_failure(None);
    assert!(clone(&remote, &with_password(&url, "closed"), "recovered").status.success());
}

#[test]
fn http_without_a_token_is_public() {
    let remote = GitRemote::new();
    remote.write("a", "1").commit("one");
    remote.push();
    let server = GitHttp::start(remote.root(), None);
    assert!(clone(&remote, &server.url("desired.git"), "public").status.success());
    assert!(!clone(&remote, &server.url("absent.git"), "absent").status.success());
}
