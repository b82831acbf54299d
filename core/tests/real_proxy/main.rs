//! Managed servers behind a real forward proxy, tinyproxy. Needs its program, from PATH or named by `TINYPROXY`.
//!
//! Loopback is always reached directly, so the servers here have names that do not resolve (RFC 6761): tinyproxy
//! hands them on to a second proxy, which leads to the server of the test.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking, its fixtures too")]

#[path = "../support/network.rs"]
mod network;
#[path = "../support/ports.rs"]
mod ports;
#[path = "../server/proxied.rs"]
mod proxied;
#[path = "../server/recorder.rs"]
mod recorder;
mod tinyproxy;

use std::sync::Arc;

use declarest_core::error::{Categorized, Category};
use declarest_core::proxy::Proxy;
use declarest_core::server::{BaseUrl, Client, Gate, Request, Settings, Throttling};
use declarest_core::transport::{Pem, TlsConfig};
use http::Method;

use crate::network::{Authority, RecordingProxy};
use crate::proxied::server;
use crate::tinyproxy::{PASSWORD, Tinyproxy, USER};

fn through(proxy: &Tinyproxy, password: Option<&str>) -> Proxy {
    let login = password.map(|password| format!("{USER}:{password}"));
    proxied::through(&proxy.url(), login.as_deref(), None)
}

fn client(settings: Settings) -> Client {
    Client::new(settings, Arc::new(Gate::new(&Throttling::default()).unwrap()), None).unwrap()
}

fn settings(base_url: &str, proxy: Proxy) -> Settings {
    Settings { proxy, ..Settings::new(BaseUrl::parse(base_url).unwrap()) }
}

#[tokio::test]
async fn http_goes_through() {
    let server = server().await;
    let upstream = RecordingProxy::start(server.address, None);
    let proxy = Tinyproxy::start(upstream.server.address).await;
    let client = client(settings("http://api.test/v1", through(&proxy, Some(PASSWORD))));
    for number in 0..5 {
        let mut request = Request::new(Method::PUT, format!("/items/{number}"));
        request.body = Some(declarest_core::server::Body {
            media_type: "application/json".to_owned(),
            bytes: "{\"a\": 1}".into(),
        });
        let answer = client.send(&request).await.unwrap();
        assert_eq!(answer.body, "{\"all\": \"well\"}");
    }
    let seen = server.seen();
    assert_eq!(seen.len(), 5);
    assert!(
        seen.iter().all(|seen| seen.body == "{\"a\": 1}" && seen.header("via").contains("tinyproxy")),
        "{seen:?}"
    );
    assert_eq!(seen[0].header("proxy-authorization"), "");
}

#[tokio::test]
async fn https_goes_through_a_tunnel() {
    let (server, authority) = (server().await, Authority::new());
    let front = authority.identity("api.test", &[]).serve(Some(&authority), server.address);
    let upstream = RecordingProxy::start(front.address, None);
    let proxy = Tinyproxy::start(upstream.server.address).await;
    let identity = authority.identity("client", &[]);
    let (ca, key) = (authority.pem(), identity.key());
    let tls = TlsConfig::trusting(Pem { origin: "ca", text: ca.as_bytes() }).unwrap();
    let certificate = Pem { origin: "certificate", text: identity.pem().as_bytes() };
    let tls = tls.presenting(certificate, Pem { origin: "key", text: key.as_bytes() }).unwrap();
    let settings = settings("https://api.test", through(&proxy, Some(PASSWORD)));
    let client = client(Settings { tls: tls.into(), ..settings });
    for _ in 0..3 {
        client.send(&Request::new(Method::GET, "/items")).await.unwrap();
    }
    assert_eq!(upstream.requests().len(), 1, "one tunnel for all requests");
    assert_eq!(server.seen()[0].header("via"), "", "the proxy did not read the request");
}

#[tokio::test]
async fn other_credentials_are_refused() {
    let server = server().await;
    let upstream = RecordingProxy::start(server.address, None);
    let proxy = Tinyproxy::start(upstream.server.address).await;
    // tinyproxy refuses with 401, as a server does, where RFC 9110 section 15.5.8 has 407. That ends a request at
    // once all the same, and a tunnel that was refused says by whom.
    let refusals = [
        ("http://api.test", Category::Auth, 401.to_string()),
        ("https://api.test", Category::Transport, proxy.url()),
    ];
    for (base_url, category, named) in refusals {
        let client = client(settings(base_url, through(&proxy, Some("wrong-password"))));
        let error = client.send(&Request::new(Method::POST, "/x")).await.unwrap_err();
        assert_eq!(error.category(), category, "{base_url} {error}");
        assert!(
            error.to_string().contains(&named) && !error.to_string().contains("wrong-password"),
            "{error}"
        );
    }
    assert_eq!((upstream.requests().len(), server.seen().len()), (0, 0));
}

#[tokio::test]
async fn tokens_come_through() {
    let server = server().await;
    let upstream = RecordingProxy::start(server.address, None);
    let proxy = Tinyproxy::start(upstream.server.address).await;
    let settings = settings("http://api.test", through(&proxy, Some(PASSWORD)));
    let client = client(Settings { auth: proxied::tokens_from_afar(), ..settings });
    client.send(&Request::new(Method::GET, "/x")).await.unwrap();
    assert_eq!(server.seen()[1].header("authorization"), "Bearer token");
}
