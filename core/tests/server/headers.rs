//! What a request carries: which header beats which, and where the defaults go.

use declarest_core::secrets::Secret;
use declarest_core::server::{Auth, BaseUrl, Body, Client, HeaderCredential, Request, Settings};
use http::header::{ACCEPT, CONTENT_TYPE, HeaderName};
use http::{HeaderValue, Method};
use rstest::rstest;

use crate::recorder::{Recorder, Seen, json};
use crate::server::gate;

fn credential(header: &str, prefix: &str, value: &str) -> HeaderCredential {
    let (header, prefix) = (header.to_owned(), prefix.to_owned());
    HeaderCredential { header, prefix, value: Secret::from(value.to_owned()) }
}

/// What arrives of a `PUT` with a body whose own headers are these.
async fn sent(default_headers: &[(&str, &str)], headers: Vec<(HeaderName, HeaderValue)>, auth: Auth) -> Seen {
    let server = Recorder::start(|_| json(200, "{}")).await;
    let default_headers = default_headers.iter().map(|(name, value)| ((*name).into(), (*value).into()));
    let settings = Settings { auth, default_headers: default_headers.collect(), ..server.settings() };
    let client = Client::new(settings, gate(None), None).unwrap();
    let mut request = Request::new(Method::PUT, "/x");
    request.accept = Some("application/json".into());
    request.body = Some(Body { media_type: "application/json".to_owned(), bytes: "{}".into() });
    request.headers = headers;
    client.send(&request).await.unwrap();
    server.seen().remove(0)
}

#[tokio::test]
async fn computed_ones_give_way_to_defaults_and_those_to_the_operation() {
    let own = HeaderValue::from_static("own");
    let seen = sent(
        &[("accept", "text/plain"), ("Content-Type", "text/csv"), ("X-Tenant", "blue"), ("x-both", "blue")],
        vec![(ACCEPT, own.clone()), (HeaderName::from_static("x-both"), own)],
        Auth::None,
    )
    .await;
    let values = ["accept", "content-type", "x-tenant", "x-both"].map(|name| seen.header(name));
    assert_eq!(values, ["own", "text/csv", "blue", "own"]);
    let names = seen.headers.keys().filter(|name| **name == ACCEPT || **name == CONTENT_TYPE);
    assert_eq!(names.count(), 2, "each is sent once: {seen:?}");
}

#[tokio::test]
async fn computed_ones_are_sent_by_default() {
    let seen = sent(&[], Vec::new(), Auth::None).await;
    assert_eq!(
        (seen.header("accept"), seen.header("content-type")),
        ("application/json", "application/json")
    );
    assert_eq!(seen.header("authorization"), "");
}

#[tokio::test]
async fn credentials_beat_everything() {
    let authorization = (HeaderName::from_static("authorization"), HeaderValue::from_static("own"));
    let basic = Auth::Basic { username: "ops".to_owned().into(), password: "pa:ss".to_owned().into() };
    let seen = sent(&[("Authorization", "default")], vec![authorization.clone()], basic).await;
    assert_eq!(seen.headers.get_all("authorization").iter().collect::<Vec<_>>(), ["Basic b3BzOnBhOnNz"]);

    let headers = vec![
        credential(" Authorization ", " Bearer ", " t0ken\n"),
        credential("X-Key", "", "first"),
        credential("x-key", "", "second"),
    ];
    let seen = sent(&[("x-key", "default")], vec![authorization], Auth::Headers(headers)).await;
    assert_eq!(seen.headers.get_all("authorization").iter().collect::<Vec<_>>(), ["Bearer t0ken"]);
    assert_eq!(seen.headers.get_all("x-key").iter().collect::<Vec<_>>(), ["second"]);
}

#[rstest]
#[case::base(None, "/api?t=1")]
#[case::path(Some("up"), "/api/up?t=1")]
#[case::url(Some("<origin>/ping"), "/ping")]
#[tokio::test]
async fn the_health_check_carries_what_every_request_does(#[case] check: Option<&str>, #[case] target: &str) {
    let server = Recorder::start(|_| json(204, "")).await;
    let settings = Settings {
        auth: Auth::Headers(vec![credential("X-Key", "", "secret")]),
        default_headers: vec![("X-Tenant".to_owned(), "blue".to_owned())],
        health_check: check.map(|check| check.replace("<origin>", &server.url())),
        ..Settings::new(BaseUrl::parse(&format!("{}/api/?t=1", server.url())).unwrap())
    };
    Client::new(settings, gate(None), None).unwrap().health().await.unwrap();
    let seen = &server.seen()[0];
    assert_eq!(
        (seen.method.as_str(), seen.target.as_str(), seen.header("x-key"), seen.header("x-tenant")),
        ("GET", target, "secret", "blue")
    );
}

#[tokio::test]
async fn headers_of_the_transfer_are_those_of_the_client() {
    let length = (http::header::CONTENT_LENGTH, HeaderValue::from_static("1"));
    let seen = sent(&[("Transfer-Encoding", "chunked")], vec![length], Auth::None).await;
    let headers = (seen.header("content-length"), seen.header("transfer-encoding"));
    assert_eq!((seen.body.as_str(), headers), ("{}", ("2", "")));
}
