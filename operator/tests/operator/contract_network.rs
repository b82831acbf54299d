//! What the operator connects to because of a contract: probes of HTTPS and gRPC services, and addresses that are refused.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Redirect};
use bytes::Bytes;
use declarest_core::contract::status::{ContractStatus, Gate, Phase};
use http_body_util::StreamBody;
use hyper::body::Frame;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rstest::rstest;
use serde_json::{Value, json};

use super::contract_server::serve;
use super::contracts::{RUNTIME, deploy_service, start, start_resolving, verified};
use crate::support::network::Authority;
use crate::support::world::{World, condition, declarest};

fn contract(kind: &str, port: u16, health: &str) -> String {
    let definition = if kind == "grpc" { ", contract: shop.proto" } else { "" };
    format!(
        "pactoVersion: '1.0'\nservice: {{name: shop, version: 1.0.0}}\n\
         interfaces: [{{name: api, type: {kind}, port: {port}{definition}}}]\n{RUNTIME}  health: {health}\n"
    )
}

/// The result of the health check of a Service with this port.
async fn health(world: &World, port: Value, contract: &str, http: Value) -> (String, ContractStatus) {
    deploy_service(world, port).await;
    let spec = json!({"http": http, "contract": {"inline": contract, "target": {"service": "shop"}}});
    world.create(declarest("ManagedServer", "server", &spec)).await;
    let found = verified(world, "the contract is verified", |contract| contract.phase.is_some()).await;
    let status = *found.contract.unwrap();
    let check = status.checks.iter().find(|check| check.kind.as_str() == "HealthEndpointReachable").unwrap();
    (format!("{} {}", check.status.as_str(), check.reason), status)
}

#[rstest]
#[case::trusted(true, "True Match")]
#[case::untrusted(false, "False TLSFailed")]
#[tokio::test]
async fn a_service_with_https(#[case] trusts: bool, #[case] expected: &str) {
    let world = start().await;
    let behind = serve(Router::new().route("/health", axum::routing::get(async || "ok"))).await;
    let authority = Authority::new();
    let host = format!("shop.{}.svc", world.namespace);
    let server = authority.identity(&host, &[]).serve(None, behind);
    let port = server.address.port();
    world.create_secret("ca", &[("ca.crt", &authority.pem())]).await;
    let mut http = json!({"baseURL": "http://127.0.0.1:1"});
    if trusts {
        http =
            json!({"baseURL": "https://127.0.0.1:1", "tls": {"caCertRef": {"name": "ca", "key": "ca.crt"}}});
    }
    let contract = contract("http", port, "{interface: api, path: /health}");
    let (result, status) = health(&world, json!({"name": "https", "port": port}), &contract, http).await;
    assert_eq!(result, expected, "{status:#?}");
    assert_eq!(status.endpoints[0].url, format!("https://{host}:{port}/health"));
}

/// Without its CAs, the server says nothing about the service.
#[tokio::test]
async fn a_service_with_https_is_not_judged_without_the_configured_authority() {
    let world = start().await;
    let contract = contract("http", 8443, "{interface: api, path: /health}");
    let missing = json!({"caCertRef": {"name": "absent", "key": "ca.crt"}});
    let http = json!({"baseURL": "https://127.0.0.1:1", "tls": missing});
    let (result, status) = health(&world, json!({"port": 8443}), &contract, http).await;
    assert_eq!(result, "Unknown ObservationFailed", "{status:#?}");
    assert_eq!(status.gate, Some(Gate::Closed));
    assert!(status.endpoints[0].error.contains("absent"), "{status:#?}");
}

/// A gRPC server whose health check answers with this status.
async fn grpc(serving: u8) -> SocketAddr {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let service = hyper::service::service_fn(move |request: hyper::Request<_>| async move {
                let _: hyper::body::Incoming = request.into_body();
                let message = Bytes::copy_from_slice(&[0, 0, 0, 0, 2, 8, serving]);
                let trailers = HeaderMap::from_iter([("grpc-status".parse().unwrap(), "0".parse().unwrap())]);
                let frames = [Frame::data(message), Frame::trailers(trailers)];
                let body = StreamBody::new(futures::stream::iter(frames.map(Ok::<_, Infallible>)));
                let answer = hyper::Response::builder().header(header::CONTENT_TYPE, "application/grpc");
                Ok::<_, Infallible>(answer.body(body).unwrap())
            });
            let server = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
            let _ = server.serve_connection(TokioIo::new(stream), service).await;
        }
    });
    address
}

#[rstest]
#[case::serving(1, "True Match")]
#[case::not_serving(2, "False NotServing")]
#[tokio::test]
async fn a_service_with_grpc(#[case] serving: u8, #[case] expected: &str) {
    let world = start().await;
    let port = grpc(serving).await.port();
    let contract = contract("grpc", port, "{interface: api}");
    let http = json!({"baseURL": "http://127.0.0.1:1"});
    let (result, status) = health(&world, json!({"port": port}), &contract, http).await;
    assert_eq!(result, expected, "{status:#?}");
}

/// The metadata service of clouds, which has a link-local address.
const METADATA: &str = "169.254.169.254";
/// Denies an address that a name resolves to on any machine.
const NO_LOOPBACK: &[&str] = &["--deny-cidr=127.0.0.0/8,::1/128"];

/// A web server that redirects, and a registry whose realm of tokens is the metadata service.
async fn hostile() -> SocketAddr {
    let away = async || Redirect::temporary(&format!("http://{METADATA}/?key=canary"));
    let challenge = format!(r#"Bearer realm="http://{METADATA}/token?key=canary",service="r""#);
    let registry = async move || {
        (StatusCode::UNAUTHORIZED, [(header::WWW_AUTHENTICATE, challenge.clone())]).into_response()
    };
    serve(Router::new().route("/redirect", axum::routing::get(away)).fallback(registry)).await
}

#[rstest]
#[case::address(&[], "url", "http://169.254.169.254/pacto.yaml")]
#[case::name(&[], "url", "http://metadata.google.internal/pacto.yaml")]
#[case::resolved_name(NO_LOOPBACK, "url", "http://localhost:PORT/pacto.yaml")]
#[case::redirect(&[], "url", "http://127.0.0.1:PORT/redirect")]
#[case::registry(&[], "oci", "169.254.169.254/team/shop:1")]
#[case::resolved_registry(NO_LOOPBACK, "oci", "localhost:PORT/team/shop:1")]
#[case::realm(&[], "oci", "127.0.0.1:PORT/team/shop:1")]
#[tokio::test]
async fn denied_addresses_are_refused(#[case] arguments: &[&str], #[case] kind: &str, #[case] source: &str) {
    let world = World::start_with(arguments).await;
    let source = source.replace("PORT", &hostile().await.port().to_string());
    let spec = json!({"http": {"baseURL": "http://127.0.0.1:1"}, "contract": {kind: source}});
    world.create(declarest("ManagedServer", "server", &spec)).await;
    let is_invalid = |contract: &ContractStatus| contract.phase == Some(Phase::Invalid);
    let status = verified(&world, "there is no contract", is_invalid).await;
    let verified = condition(&status.conditions, "ContractVerified");
    assert_eq!(verified.reason, "ContractUnavailable");
    assert!(verified.message.contains("denied"), "{}", verified.message);
    assert!(!verified.message.contains("canary"), "{}", verified.message);
}

/// Names of Services are resolved, and DNS may answer with any address.
#[rstest]
#[case::metadata(&["--resolve=*.svc=169.254.169.254"])]
#[case::link_local(&["--resolve=*.svc=fe80::1"])]
#[case::denied(&["--resolve=*.svc=127.0.0.1", "--deny-cidr=127.0.0.1/32"])]
#[tokio::test]
async fn probes_do_not_reach_denied_addresses(#[case] arguments: &[&str]) {
    let world = start_resolving(arguments).await;
    let requests = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&requests);
    let router = Router::new().fallback(async move || {
        counted.fetch_add(1, Ordering::Relaxed);
    });
    let port = serve(router).await.port();
    let contract = contract("http", port, "{interface: api, path: /health}");
    let http = json!({"baseURL": "https://shop.example"});
    let (result, status) = health(&world, json!({"port": port}), &contract, http).await;
    assert_eq!(result, "Unknown ObservationFailed", "{status:#?}");
    assert!(status.endpoints[0].error.contains("denied"), "{status:#?}");
    assert_eq!(requests.load(Ordering::Relaxed), 0);
}
