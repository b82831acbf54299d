//! The HTTP listener of the in-process API.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::Method;
use rstest::rstest;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::api;
use crate::standalone::Access;

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// A served API; it stops with the test.
struct Server {
    base: String,
    token: String,
    http: reqwest::Client,
    shutdown: CancellationToken,
    task: JoinHandle<()>,
}

impl Server {
    async fn start() -> Self {
        let api = api();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let access = Access::new().unwrap();
        let kubeconfig = access.kubeconfig(listener.local_addr().unwrap());
        let shutdown = CancellationToken::new();
        let task = tokio::spawn(api.serve(listener, access, shutdown.clone()).unwrap());
        // reqwest is built without a default crypto provider.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let text = |pointer: &str| kubeconfig.pointer(pointer).unwrap().as_str().unwrap().to_owned();
        let authority = STANDARD.decode(text("/clusters/0/cluster/certificate-authority-data")).unwrap();
        let authority = reqwest::Certificate::from_pem(&authority).unwrap();
        let http = reqwest::Client::builder().no_proxy().tls_certs_only([authority]).build().unwrap();
        let (base, token) = (text("/clusters/0/cluster/server"), text("/users/0/user/token"));
        Self { base, token, http, shutdown, task }
    }

    fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        self.http.request(method, format!("{}{path}", self.base)).bearer_auth(&self.token)
    }
}

#[tokio::test]
async fn only_loopback_is_served() {
    let listener = TcpListener::bind("0.0.0.0:0").await.unwrap();
    let served = api().serve(listener, Access::new().unwrap(), CancellationToken::new());
    let error = served.err().unwrap();
    assert_eq!(error.kind(), std::io::ErrorKind::PermissionDenied);
    assert!(error.to_string().contains("use a loopback address"), "{error}");
}

#[rstest]
#[case::no_token(None)]
#[case::another_token(Some("Bearer c2VjcmV0"))]
#[case::another_scheme(Some("Basic YTpi"))]
#[tokio::test]
async fn requests_without_the_token_are_rejected(#[case] header: Option<&str>) {
    let server = Server::start().await;
    let request = server.http.get(format!("{}/api/v1/secrets", server.base));
    let request = header.into_iter().fold(request, |request, value| request.header("authorization", value));
    let response = request.send().await.unwrap();
    assert_eq!(response.status(), 401);
    let status: Value = serde_json::from_slice(&response.bytes().await.unwrap()).unwrap();
    assert_eq!((&status["kind"], &status["reason"]), (&json!("Status"), &json!("Unauthorized")));
}

#[tokio::test]
async fn each_process_has_another_token() {
    let (server, other) = (Server::start().await, Server::start().await);
    let request = server.http.get(format!("{}/api/v1/secrets", server.base)).bearer_auth(&other.token);
    assert_eq!(request.send().await.unwrap().status(), 401);
    assert_eq!(server.request(Method::GET, "/api/v1/secrets").send().await.unwrap().status(), 200);
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
    tokio::time::timeout(Duration::from_secs(10), server.task).await.expect("it stops").unwrap();
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
