//! The HTTP listener of the in-process API.

use std::time::Duration;

use reqwest::Method;
use rstest::rstest;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::api;

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// A served API; it stops with the test.
struct Server {
    base: String,
    http: reqwest::Client,
    shutdown: CancellationToken,
    task: JoinHandle<std::io::Result<()>>,
}

impl Server {
    async fn start() -> Self {
        let api = api();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let shutdown = CancellationToken::new();
        let task = tokio::spawn({
            let shutdown = shutdown.clone();
            async move { api.serve(listener, shutdown).await }
        });
        // reqwest is built without a default crypto provider.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        Self { base, http, shutdown, task }
    }

    fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        self.http.request(method, format!("{}{path}", self.base))
    }
}

#[tokio::test]
async fn only_loopback_is_served() {
    let listener = TcpListener::bind("0.0.0.0:0").await.unwrap();
    let error = api().serve(listener, CancellationToken::new()).await.unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::PermissionDenied);
    assert!(error.to_string().contains("use a loopback address"), "{error}");
}

#[rstest]
#[case::rebound_name("host", "attacker.example")]
#[case::web_page("origin", "https://attacker.example")]
#[tokio::test]
async fn requests_of_browsers_are_rejected(#[case] header: &str, #[case] value: &str) {
    let server = Server::start().await;
    let response = server.request(Method::GET, "/api/v1/secrets").header(header, value).send().await.unwrap();
    assert_eq!(response.status(), 403);
    let status: Value = serde_json::from_slice(&response.bytes().await.unwrap()).unwrap();
    assert_eq!((&status["kind"], &status["reason"]), (&json!("Status"), &json!("Forbidden")));
}

#[tokio::test]
async fn a_shutdown_ends_watches_and_the_server() {
    let server = Server::start().await;
    let mut watch = server
        .request(Method::GET, "/apis/example.io/v1/widgets?watch=1&resourceVersion=1")
        .send()
        .await
        .unwrap();
    server.shutdown.cancel();
    tokio::time::timeout(Duration::from_secs(10), server.task).await.expect("it stops").unwrap().unwrap();
    let rest = tokio::time::timeout(Duration::from_secs(10), watch.chunk()).await.expect("the watch ends");
    assert!(!matches!(rest, Ok(Some(_))));
}

#[rstest]
#[case::delete_of_a_namespace("DELETE", "/api/v1/namespaces/default", "*/*", 405, "MethodNotAllowed")]
#[case::protobuf_alone("GET", "/api/v1/secrets", PROTOBUF, 406, "NotAcceptable")]
#[tokio::test]
async fn unsupported_requests_are_rejected(
    #[case] method: &str,
    #[case] path: &str,
    #[case] accept: &str,
    #[case] code: u16,
    #[case] reason: &str,
) {
    let server = Server::start().await;
    let method = Method::from_bytes(method.as_bytes()).unwrap();
    let request = server.request(method, path).header("accept", accept);
    let response = request.send().await.unwrap();
    assert_eq!(response.status(), code);
    let status: Value = serde_json::from_slice(&response.bytes().await.unwrap()).unwrap();
    assert_eq!((&status["kind"], &status["reason"]), (&json!("Status"), &json!(reason)));
}
