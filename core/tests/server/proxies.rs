//! The way through a proxy. Only the proxy resolves names below `test` (RFC 6761).

use std::time::Duration;

use declarest_core::error::{Categorized, Category};
use declarest_core::proxy::Proxy;
use declarest_core::server::{BaseUrl, Client, Request, ServerError, Settings};
use declarest_core::transport::TlsConfig;
use http::Method;

use crate::network::{Authority, RecordingProxy};
use crate::proxied::{self, server};
use crate::server::gate;

const LOGIN: &str = "proxy-user:proxy-secret";

fn through(proxy: &RecordingProxy, login: Option<&str>, no_proxy: Option<&str>) -> Proxy {
    proxied::through(&format!("http://{}", proxy.server.address), login, no_proxy)
}

fn client(base_url: &str, proxy: Proxy, tls: TlsConfig) -> Client {
    let settings = Settings { proxy, tls: tls.into(), ..Settings::new(BaseUrl::parse(base_url).unwrap()) };
    Client::new(settings, gate(None), None).unwrap()
}

async fn send(client: &Client, method: Method) -> Result<(), ServerError> {
    client.send(&Request::new(method, "/x")).await.map(drop)
}

#[tokio::test]
async fn http_is_asked_of_the_proxy_with_its_credentials() {
    let server = server().await;
    let proxy = RecordingProxy::start(server.address, Some(LOGIN));
    let client = client("http://api.test/v1", through(&proxy, Some(LOGIN), None), TlsConfig::default());
    send(&client, Method::GET).await.unwrap();
    assert_eq!(proxy.requests(), ["GET http://api.test/v1/x HTTP/1.1"]);
    assert_eq!(server.seen()[0].header("host"), "api.test");
}

#[tokio::test]
async fn https_goes_through_a_tunnel_that_sees_nothing_of_it() {
    let (server, authority) = (server().await, Authority::new());
    let front = authority.serve("api.test", server.address);
    let proxy = RecordingProxy::start(front.address, Some(LOGIN));
    let trusting = authority.trusted();
    let client = client("https://api.test", through(&proxy, Some(LOGIN), None), trusting);
    for _ in 0..3 {
        send(&client, Method::GET).await.unwrap();
    }
    assert_eq!(proxy.requests(), ["CONNECT api.test:443 HTTP/1.1"]);
    assert_eq!(server.lines(), ["GET /x", "GET /x", "GET /x"]);
    assert_eq!(
        server.seen()[0].header("proxy-authorization"),
        "",
        "the proxy's credentials are not the server's"
    );
}

#[tokio::test]
async fn a_proxy_that_refuses_credentials_is_named_and_asked_once() {
    let server = server().await;
    let proxy = RecordingProxy::start(server.address, Some(LOGIN));
    for base_url in ["http://api.test", "https://api.test"] {
        for login in [None, Some("proxy-user:wrong-secret")] {
            let client = client(base_url, through(&proxy, login, None), TlsConfig::default());
            let error = send(&client, Method::GET).await.unwrap_err();
            assert_eq!(error.category(), Category::Auth, "{error}");
            let expected = format!("the proxy http://{} rejected the credentials", proxy.server.address);
            assert!(
                error.to_string().contains(&expected) && !error.to_string().contains("secret"),
                "{error}"
            );
        }
    }
    assert_eq!((proxy.requests().len(), server.seen().len()), (0, 0));
}

#[tokio::test]
async fn loopback_and_exceptions_are_reached_directly() {
    let server = server().await;
    let proxy = RecordingProxy::start(server.address, None);
    let local = client(&server.url(), through(&proxy, None, None), TlsConfig::default());
    send(&local, Method::GET).await.unwrap();
    let excepted = client("http://api.test", through(&proxy, None, Some(".test")), TlsConfig::default());
    // Only the proxy knows the name; a write is not tried again if it may have been sent.
    let error = send(&excepted.with_attempt_timeout(Duration::from_secs(5)), Method::POST).await.unwrap_err();
    assert_eq!(error.category(), Category::Transport);
    assert_eq!(proxy.requests(), [""; 0]);
}

#[tokio::test]
async fn tokens_come_through_the_same_proxy() {
    let server = server().await;
    let proxy = RecordingProxy::start(server.address, Some(LOGIN));
    let settings = Settings {
        auth: proxied::tokens_from_afar(),
        proxy: through(&proxy, Some(LOGIN), None),
        ..Settings::new(BaseUrl::parse("http://api.test").unwrap())
    };
    let client = Client::new(settings, gate(None), None).unwrap();
    send(&client, Method::GET).await.unwrap();
    assert_eq!(proxy.requests(), ["POST http://idp.test/token HTTP/1.1", "GET http://api.test/x HTTP/1.1"]);
}

#[tokio::test]
async fn certificates_count_behind_a_proxy_too() {
    let (server, authority) = (server().await, Authority::new());
    let front = authority.serve("api.test", server.address);
    let proxy = RecordingProxy::start(front.address, None);
    let stranger = Authority::new();
    let trusting = stranger.trusted();
    let error = send(&client("https://api.test", through(&proxy, None, None), trusting), Method::GET)
        .await
        .unwrap_err();
    let text = error.to_string();
    assert!(text.contains("through the proxy http://") && text.contains("is not trusted"), "{text}");
    assert_eq!(proxy.requests().len(), 1, "not tried again");
}
