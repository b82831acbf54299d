use std::convert::Infallible;
use std::net::IpAddr;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::response::Response as Answer;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Empty, StreamBody};
use hyper::body::Frame;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rstest::rstest;
use tokio::net::TcpListener;

use super::*;
use crate::transport::HostPattern;

fn names() -> Names {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let pattern: HostPattern = "*.svc".parse().unwrap();
    Names::new(vec![(pattern, IpAddr::from([127, 0, 0, 1]))])
}

fn prober() -> Prober {
    Prober::new(&TlsConfig::default(), &names()).unwrap()
}

fn request(kind: ProbeKind, protocol: Protocol, port: u16, path: &str) -> ProbeRequest {
    let url = format!("http://shop.team.svc:{port}{path}").parse().unwrap();
    ProbeRequest { kind, url, protocol }
}

/// A server that answers by path.
async fn web() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let router = Router::new().fallback(async |request: Request| {
        let host = request.headers()["host"].to_str().unwrap().to_owned();
        let path = request.uri().path().to_owned();
        let to = |target: String| {
            Answer::builder().status(302).header("location", target).body(Body::empty()).unwrap()
        };
        match path.as_str() {
            "/ok" if host.starts_with("shop.team.svc:") => {
                Answer::builder().status(204).body(Body::empty()).unwrap()
            }
            "/empty" => Answer::new(Body::empty()),
            "/body" => Answer::new(Body::from("up 1")),
            "/same" => to("/ok".to_owned()),
            "/other" => to("http://other.team.svc:1/".to_owned()),
            "/loop" => to("/loop".to_owned()),
            "/never" => std::future::pending().await,
            _ => Answer::builder().status(503).body(Body::empty()).unwrap(),
        }
    });
    tokio::spawn(async move { axum::serve(listener, router).await });
    port
}

#[rstest]
#[case::ok(ProbeKind::Health, "/ok", Some(204), ProbeAnswer::Healthy { empty: false })]
#[case::status(ProbeKind::Health, "/broken", Some(503), ProbeAnswer::Status)]
#[case::same_origin(ProbeKind::Health, "/same", Some(204), ProbeAnswer::Healthy { empty: false })]
#[case::other_origin(ProbeKind::Health, "/other", Some(302), ProbeAnswer::Redirected)]
#[case::endless(ProbeKind::Health, "/loop", Some(302), ProbeAnswer::Redirected)]
#[case::empty_metrics(ProbeKind::Metrics, "/empty", Some(200), ProbeAnswer::Healthy { empty: true })]
#[case::metrics(ProbeKind::Metrics, "/body", Some(200), ProbeAnswer::Healthy { empty: false })]
#[tokio::test]
async fn http(
    #[case] kind: ProbeKind,
    #[case] path: &str,
    #[case] status: Option<u16>,
    #[case] answer: ProbeAnswer,
) {
    let probed = prober().send(&request(kind, Protocol::Http, web().await, path)).await;
    assert_eq!((probed.status, probed.answer), (status, answer));
}

#[tokio::test]
async fn the_time_is_limited() {
    let prober = Prober { limit: Duration::from_millis(100), ..prober() };
    let probed = prober.send(&request(ProbeKind::Health, Protocol::Http, web().await, "/never")).await;
    assert_eq!(probed.answer, ProbeAnswer::Timeout);
}

#[tokio::test]
async fn a_refused_connection_and_an_unknown_host() {
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
    let probed = prober().send(&request(ProbeKind::Health, Protocol::Http, closed, "/ok")).await;
    assert!(matches!(probed.answer, ProbeAnswer::ConnectionFailed(_)), "{probed:?}");
    let url = "http://host.invalid/x?token=canary".parse().unwrap();
    let unknown = ProbeRequest { kind: ProbeKind::Health, url, protocol: Protocol::Http };
    let probed = prober().send(&unknown).await;
    assert!(matches!(probed.answer, ProbeAnswer::Unresolved(_)), "{probed:?}");
    assert_eq!(probed.url, "http://host.invalid/x");
}

#[tokio::test]
async fn https_needs_a_trusted_certificate() {
    let key = rcgen::generate_simple_self_signed(["shop.team.svc".to_owned()]).unwrap();
    let (certificate, pem) = (key.cert.der().clone(), key.cert.pem());
    let private = rustls::pki_types::PrivateKeyDer::try_from(key.signing_key.serialize_der()).unwrap();
    let names = names();
    let config = rustls::ServerConfig::builder().with_no_client_auth();
    let config = config.with_single_cert(vec![certificate], private).unwrap();
    let acceptor = tokio_rustls::TlsAcceptor::from(std::sync::Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let Ok(stream) = acceptor.accept(stream).await else { continue };
            let service = hyper::service::service_fn(async |_| {
                Ok::<_, Infallible>(hyper::Response::new(Empty::<Bytes>::new()))
            });
            let server = hyper::server::conn::http1::Builder::new();
            let _ = server.serve_connection(TokioIo::new(stream), service).await;
        }
    });
    let url = format!("https://shop.team.svc:{port}/").parse().unwrap();
    let request = ProbeRequest { kind: ProbeKind::Health, url, protocol: Protocol::Http };
    let untrusted = prober().send(&request).await;
    assert!(matches!(untrusted.answer, ProbeAnswer::TlsFailed(_)), "{untrusted:?}");
    let pem = crate::transport::Pem { origin: "test", text: pem.as_bytes() };
    let trusting = Prober::new(&TlsConfig::trusting(pem).unwrap(), &names).unwrap();
    assert_eq!(trusting.send(&request).await.answer, ProbeAnswer::Healthy { empty: false });
}

/// A gRPC server whose health check answers with this message and this status.
async fn grpc(message: &'static [u8], code: &'static str, trailers_only: bool) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let service =
            hyper::service::service_fn(move |request: hyper::Request<hyper::body::Incoming>| async move {
                assert_eq!(request.uri().path(), HEALTH_CHECK);
                let body = request.into_body().collect().await.unwrap().to_bytes();
                assert_eq!(body.as_ref(), EMPTY_MESSAGE);
                let answer = hyper::Response::builder().header("content-type", "application/grpc");
                let mut trailers = HeaderMap::new();
                trailers.insert("grpc-status", code.parse().unwrap());
                let body: BoxBody<Bytes, Infallible> = if trailers_only {
                    return Ok::<_, Infallible>(
                        answer.header("grpc-status", code).body(Empty::new().boxed()).unwrap(),
                    );
                } else {
                    let frames = [Frame::data(Bytes::from_static(message)), Frame::trailers(trailers)];
                    BodyExt::boxed(StreamBody::new(futures::stream::iter(frames.map(Ok))))
                };
                Ok(answer.body(body).unwrap())
            });
        let server = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
        let _ = server.serve_connection(TokioIo::new(stream), service).await;
    });
    port
}

#[rstest]
#[case::serving(&[0, 0, 0, 0, 2, 8, 1], "0", false, ProbeAnswer::Healthy { empty: false })]
#[case::not_serving(&[0, 0, 0, 0, 2, 8, 2], "0", false, ProbeAnswer::NotServing("status NOT_SERVING".to_owned()))]
#[case::unknown(&[0, 0, 0, 0, 0], "0", false, ProbeAnswer::NotServing("status UNKNOWN".to_owned()))]
#[case::unimplemented(&[], "12", true, ProbeAnswer::Unimplemented)]
#[case::late_unimplemented(&[], "12", false, ProbeAnswer::Unimplemented)]
#[case::failed(&[], "14", true, ProbeAnswer::NotServing("gRPC status 14".to_owned()))]
#[tokio::test]
async fn health_checks(
    #[case] message: &'static [u8],
    #[case] code: &'static str,
    #[case] trailers_only: bool,
    #[case] expected: ProbeAnswer,
) {
    let port = grpc(message, code, trailers_only).await;
    let probed = prober().send(&request(ProbeKind::Health, Protocol::Grpc, port, "/")).await;
    assert_eq!((probed.status, probed.answer), (Some(200), expected));
}
