//! Tests of the relay.

use std::sync::Mutex;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use http::header::{
    AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE, COOKIE, HeaderMap, HeaderValue, LOCATION, SET_COOKIE,
    WWW_AUTHENTICATE,
};
use http::{Method, Request, Response, StatusCode};
use http_body_util::BodyExt;
use rstest::rstest;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::mpsc;

use super::super::{RemoteAuth, RemoteUrl};
use super::*;
use crate::error::{Categorized, Category};

#[derive(Default)]
struct Seen {
    requests: Mutex<Vec<(Method, String, HeaderMap)>>,
    /// The answer to every request; if absent, the body is echoed as it arrives.
    answer: Mutex<Option<(StatusCode, HeaderMap, &'static [u8])>>,
}

/// A remote that records its requests, on the runtime of the test.
struct Upstream {
    seen: Arc<Seen>,
    url: String,
}

impl Upstream {
    async fn start() -> Upstream {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/team/a.git", listener.local_addr().unwrap());
        let seen = Arc::new(Seen::default());
        let router = Router::new().fallback(answer).with_state(Arc::clone(&seen));
        tokio::spawn(async move { axum::serve(listener, router).await });
        Upstream { seen, url }
    }

    fn answers(&self, status: StatusCode, headers: &[(http::HeaderName, &str)], body: &'static [u8]) {
        let headers =
            headers.iter().map(|(name, value)| (name.clone(), HeaderValue::from_str(value).unwrap()));
        *self.seen.answer.lock().unwrap() = Some((status, headers.collect(), body));
    }

    fn requests(&self) -> Vec<(Method, String, HeaderMap)> {
        self.seen.requests.lock().unwrap().clone()
    }
}

async fn answer(State(seen): State<Arc<Seen>>, request: Request<Body>) -> Response<Body> {
    let (head, body) = request.into_parts();
    let path = head.uri.path_and_query().unwrap().to_string();
    seen.requests.lock().unwrap().push((head.method, path, head.headers));
    let Some((status, headers, text)) = seen.answer.lock().unwrap().clone() else {
        return Response::new(body);
    };
    let mut answer = Response::new(Body::from(text));
    (*answer.status_mut(), *answer.headers_mut()) = (status, headers);
    answer
}

fn timeout() -> RepositoryError {
    RepositoryError::Timeout { url: "u".into(), action: "fetching", branch: "main".into() }
}

fn relay_until(url: &str, deadline: Instant) -> Relay {
    let remote = Remote::new(RemoteUrl::parse(url).unwrap(), "main", RemoteAuth::None);
    Relay::start(&remote, &Url::parse(url).unwrap(), deadline, timeout()).unwrap()
}

fn relay(url: &str) -> Relay {
    relay_until(url, Instant::now() + Duration::from_mins(1))
}

/// A client in place of libgit2, without decompression and redirects.
fn client() -> reqwest::Client {
    let builder = reqwest::Client::builder().no_proxy().no_gzip();
    builder.redirect(reqwest::redirect::Policy::none()).build().unwrap()
}

#[tokio::test]
async fn requests_without_the_token_are_not_found() {
    let upstream = Upstream::start().await;
    let (relay, other) = (relay(&upstream.url), relay(&upstream.url));
    let (own, foreign) = (relay.address(), other.address());
    assert_ne!(own.path(), foreign.path());
    let token = own.path().split('/').nth(1).unwrap();
    assert_eq!(URL_SAFE_NO_PAD.decode(token).unwrap().len(), 16);
    let cut = &token[1..];
    for path in [
        "/",
        "/team/a.git",
        "/http/team/a.git",
        &format!("/{token}"),
        &format!("/{token}/"),
        &format!("/{token}/http"),
        &format!("/{token}/https/team/a.git"),
        &format!("/{cut}/http/team/a.git"),
        &format!("//{token}/http/team/a.git"),
        foreign.path(),
    ] {
        let mut url = own.clone();
        url.set_path(path);
        assert_eq!(client().get(url).send().await.unwrap().status(), StatusCode::NOT_FOUND, "{path}");
    }
    assert!(upstream.requests().is_empty());
    assert_eq!(client().get(own).send().await.unwrap().status(), StatusCode::OK);
    assert_eq!(upstream.requests().len(), 1);
}

#[tokio::test]
async fn requests_and_answers_are_forwarded_unchanged() {
    let upstream = Upstream::start().await;
    let relay = relay(&upstream.url);
    let packed: &[u8] = &[0x1f, 0x8b, 0, 1, 2];
    let headers = [
        (CONTENT_TYPE, "application/x-git"),
        (CONTENT_ENCODING, "gzip"),
        (WWW_AUTHENTICATE, "Basic realm=\"git\""),
        (SET_COOKIE, "a=b"),
    ];
    upstream.answers(StatusCode::UNAUTHORIZED, &headers, packed);
    let url = format!("{}/git-upload-pack?a=%2F&b", relay.address());
    let request = client().post(url).body("pack").header(COOKIE, "a=b").header(AUTHORIZATION, "Basic x");
    let request = request.header("git-protocol", "version=2").header("user-agent", "git/2.0");
    let answer = request.send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::UNAUTHORIZED);
    for (name, value) in &headers[..3] {
        assert_eq!(answer.headers()[name], *value);
    }
    assert!(!answer.headers().contains_key(SET_COOKIE));
    assert_eq!(answer.bytes().await.unwrap(), packed);
    let (method, path, headers) = upstream.requests().remove(0);
    assert_eq!((method, path.as_str()), (Method::POST, "/team/a.git/git-upload-pack?a=%2F&b"));
    assert_eq!(headers[AUTHORIZATION], "Basic x");
    assert_eq!(
        (&headers["git-protocol"], &headers["user-agent"]),
        (&"version=2".parse().unwrap(), &"git/2.0".parse().unwrap())
    );
    assert!(!headers.contains_key(COOKIE) && !headers.contains_key("accept-encoding"));
    let authority = upstream.url.split('/').nth(2).unwrap();
    assert_eq!(headers["host"], authority);
    assert!(relay.failure().is_none());
}

/// Each part of the body comes back before the next one is sent.
#[tokio::test]
async fn bodies_are_streamed_both_ways() {
    let upstream = Upstream::start().await;
    let relay = relay(&upstream.url);
    let (sender, parts) = mpsc::channel::<Result<&'static str, std::io::Error>>(1);
    let parts =
        futures::stream::unfold(parts, |mut parts| async { parts.recv().await.map(|part| (part, parts)) });
    let body = reqwest::Body::wrap_stream(parts);
    sender.send(Ok("first")).await.unwrap();
    let mut answer = client().post(relay.address()).body(body).send().await.unwrap();
    assert_eq!(answer.chunk().await.unwrap().unwrap(), "first");
    sender.send(Ok("second")).await.unwrap();
    assert_eq!(answer.chunk().await.unwrap().unwrap(), "second");
    drop(sender);
    assert_eq!(answer.chunk().await.unwrap(), None);
}

#[tokio::test]
async fn redirects_stay_within_the_relay() {
    let upstream = Upstream::start().await;
    let relay = relay(&upstream.url);
    upstream.answers(StatusCode::MOVED_PERMANENTLY, &[(LOCATION, "/new/info/refs?service=x")], b"");
    let answer = client().get(relay.address()).send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::MOVED_PERMANENTLY);
    let expected = format!("{}/http/new/info/refs?service=x", relay.base);
    assert_eq!(answer.headers()[LOCATION], expected.as_str());
    assert_eq!(upstream.requests().len(), 1);
}

#[rstest]
#[case("http://h.test/a", "http", "https://h.test/b?c", Ok("https/b?c"))]
#[case("http://h.test/a", "http", "http://h.test/b", Ok("http/b"))]
#[case("http://h.test/a", "https", "http://h.test/b", Err("h.test:80"))]
#[case("http://h.test:81/a", "http", "https://h.test/b", Err("h.test:443"))]
#[case("https://h.test/a", "https", "https://h.test:444/b", Err("h.test:444"))]
#[case("https://h.test/a", "https", "https://evil.test/b", Err("evil.test:443"))]
#[case("https://h.test/a", "https", "ftp://h.test/b", Err("h.test:21"))]
fn redirects(#[case] url: &str, #[case] from: &str, #[case] to: &str, #[case] expected: Result<&str, &str>) {
    let relay = relay(url);
    let translated = relay.forwarder.translated(from, &Url::parse(to).unwrap());
    match expected {
        Ok(path) => assert_eq!(translated.unwrap(), format!("{}/{path}", relay.base)),
        Err(host) => assert_eq!(
            translated.unwrap_err(),
            RepositoryError::CredentialsElsewhere { url: url.to_owned(), host: host.to_owned() }
        ),
    }
}

#[tokio::test]
async fn the_first_failure_is_stored() {
    let upstream = Upstream::start().await;
    let relay_to = relay(&upstream.url);
    upstream.answers(StatusCode::FOUND, &[(LOCATION, "http://evil.test/?x=hunter2")], b"");
    let answer = client().get(relay_to.address()).send().await.unwrap();
    assert_eq!((answer.status(), answer.headers().get(LOCATION)), (StatusCode::BAD_GATEWAY, None));
    let error = relay_to.failure().unwrap();
    assert_eq!(error.category(), Category::Auth);
    assert!(error.to_string().contains("evil.test:80") && !error.to_string().contains("hunter2"), "{error}");

    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let relay_to = relay(&format!("http://{free}/a?x=hunter2"));
    let answer = client().get(relay_to.address()).send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::BAD_GATEWAY);
    assert!(answer.bytes().await.unwrap().is_empty());
    let error = relay_to.failure().unwrap();
    assert_eq!(error.category(), Category::Transport);
    let text = error.to_string();
    assert!(text.starts_with(&format!("repository http://{free}/a: ")), "{text}");
    assert!(text.contains("refused") && !text.contains("hunter2"), "{text}");
    assert!(relay_to.failure().is_none());
}

#[tokio::test]
async fn an_incomplete_answer_is_reported() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/a", listener.local_addr().unwrap());
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.unwrap());
        }
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nfirst").await.unwrap();
    });
    let relay = relay(&url);
    let answer = client().get(relay.address()).send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
    assert!(answer.bytes().await.is_err());
    let text = relay.failure().unwrap().to_string();
    assert!(text.starts_with(&format!("repository {url}: its answer is incomplete: ")), "{text}");
}

#[test]
fn a_passed_deadline_ends_the_relay() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/a", silent.local_addr().unwrap());
    let relay = relay_until(&url, Instant::now() + Duration::from_millis(50));
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let answer = runtime.block_on(async { client().get(relay.address()).send().await });
    assert!(answer.is_err());
    assert_eq!(relay.failure(), Some(timeout()));
}

#[test]
fn a_dropped_relay_stops_listening() {
    let relay = relay("http://h.test/a");
    let address = relay.address().socket_addrs(|| None).unwrap()[0];
    assert!(std::net::TcpStream::connect(address).is_ok());
    drop(relay);
    assert!(std::net::TcpStream::connect(address).is_err());
}

#[test]
fn texts_of_the_library_name_the_remote() {
    let relay = relay("https://h.test:8443/a?x=hunter2");
    let address = relay.address();
    let text = format!("cannot use {address}/info, at {} or {}", relay.base, address.authority());
    let hidden = relay.hide(&text);
    assert!(hidden.starts_with("cannot use https://h.test:8443/a"), "{hidden}");
    assert!(
        !hidden.contains("127.0.0.1") && !hidden.contains(relay.base.rsplit('/').next().unwrap()),
        "{hidden}"
    );
}

#[tokio::test]
async fn answers_of_the_relay_have_no_body() {
    let upstream = Upstream::start().await;
    let relay = relay(&upstream.url);
    upstream.answers(StatusCode::NOT_FOUND, &[], b"nothing here");
    let answer = client().get(relay.address()).send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::NOT_FOUND);
    let body = http::Response::<reqwest::Body>::from(answer).into_body().collect().await.unwrap();
    assert_eq!(body.to_bytes(), "nothing here");
}
