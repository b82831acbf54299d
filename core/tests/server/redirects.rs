use std::sync::Arc;
use std::time::{Duration, Instant};

use http::header::LOCATION;
use http::{HeaderValue, Method};
use rstest::rstest;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use declarest_core::error::{Categorized as _, Category};
use declarest_core::server::{BaseUrl, Client, Gate, Request, Settings, Throttling};

use crate::network::Authority;
use crate::recorder::{Recorder, json};
use crate::server::{Server, gate, status};

/// A server that redirects every request to another one, which answers with `code`.
async fn redirecting(code: u16) -> (Server, Server) {
    let elsewhere = Server::start(move |_| async move { status(code) }).await;
    let location = HeaderValue::try_from(format!("http://{}/x", elsewhere.address)).unwrap();
    let server = Server::start(move |_| {
        let location = location.clone();
        async move {
            let mut answer = status(307);
            answer.headers_mut().insert(LOCATION, location);
            answer
        }
    })
    .await;
    (server, elsewhere)
}

#[rstest]
#[case(404)]
#[case(410)]
#[case(401)]
#[case(500)]
#[tokio::test]
async fn what_fails_elsewhere_says_nothing_of_the_server(#[case] code: u16) {
    let (server, elsewhere) = redirecting(code).await;
    let client = server.client(&gate(None));
    let error = client.send(&Request::new(Method::GET, "/x")).await.unwrap_err();
    assert_eq!((error.category(), error.is_gone()), (Category::Transport, false));
    let expected = format!("redirected to http://{}, which answers with status {code}", elsewhere.address);
    assert!(error.to_string().ends_with(&expected), "{error}");
}

#[tokio::test]
async fn a_read_is_answered_from_elsewhere() {
    let (server, _elsewhere) = redirecting(200).await;
    let client = server.client(&gate(None));
    assert_eq!(client.send(&Request::new(Method::GET, "/x")).await.unwrap().status, 200);
}

#[tokio::test]
async fn no_write_goes_elsewhere() {
    let (server, elsewhere) = redirecting(200).await;
    let client = server.client(&gate(None));
    for method in [Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
        let error = client.send(&Request::new(method, "/x")).await.unwrap_err();
        assert!(error.to_string().contains("is not followed for a write"), "{error}");
    }
    assert_eq!(elsewhere.connections(), 0);
}

/// A server that leads from `/1` to `/2` and so on.
async fn chain() -> Recorder {
    Recorder::start(|seen| {
        let number: usize = seen.target.trim_start_matches('/').parse().unwrap();
        let mut answer = json(302, "");
        answer.headers_mut().insert(LOCATION, HeaderValue::try_from(format!("/{}", number + 1)).unwrap());
        if number > 10 { json(200, "{}") } else { answer }
    })
    .await
}

#[rstest]
#[case(Method::GET, "/1", true)]
#[case(Method::HEAD, "/1", true)]
#[case(Method::GET, "/0", false)]
#[case(Method::OPTIONS, "/1", false)]
#[tokio::test]
async fn ten_redirects_of_a_read_are_followed(
    #[case] method: Method,
    #[case] path: &str,
    #[case] followed: bool,
) {
    let server = chain().await;
    let client = Client::new(server.settings(), gate(None), None).unwrap();
    let sent = client.send(&Request::new(method.clone(), path)).await;
    assert_eq!(sent.is_ok(), followed, "{sent:?}");
    assert_eq!(server.seen().len(), if method == Method::OPTIONS { 1 } else { 11 });
}

/// Reads from a server that admits clients with a certificate of `authority`, and redirects all of them.
async fn read_over_tls(authority: &Authority, location: String) -> String {
    let behind = Recorder::start(move |_| {
        let mut answer = json(302, "");
        answer.headers_mut().insert(LOCATION, HeaderValue::try_from(&location).unwrap());
        answer
    })
    .await;
    let front = authority.identity("localhost", &[]).serve(Some(authority), behind.address);
    let base_url = BaseUrl::parse(&format!("https://localhost:{}", front.address.port())).unwrap();
    let tls = authority.identity("client", &[]).presented(authority.trusted());
    let settings = Settings { tls: tls.into(), ..Settings::new(base_url) };
    let client = Client::new(settings, gate(None), None).unwrap();
    let error = client.send(&Request::new(Method::GET, "/x")).await.unwrap_err();
    assert_eq!((error.category(), behind.seen().len()), (Category::Transport, 1), "{error}");
    error.to_string()
}

#[tokio::test]
async fn what_was_asked_for_in_private_is_not_asked_for_in_public() {
    let elsewhere = Recorder::start(|_| json(200, "{}")).await;
    let error = read_over_tls(&Authority::new(), elsewhere.url()).await;
    assert!(error.ends_with("leads from https to http and is not followed"), "{error}");
    assert_eq!(elsewhere.seen().len(), 0);
}

#[tokio::test]
async fn who_is_trusted_and_who_we_are_is_for_the_server_alone() {
    let (authority, behind) = (Authority::new(), Recorder::start(|_| json(200, "{}")).await);
    let elsewhere = authority.identity("localhost", &[]).serve(Some(&authority), behind.address);
    let location = format!("https://localhost:{}/x", elsewhere.address.port());
    let error = read_over_tls(&authority, location).await;
    assert!(error.contains("its certificate is not trusted"), "{error}");
    assert_eq!(behind.seen().len(), 0);
}

#[tokio::test]
async fn a_reference_without_scheme_may_leave_the_origin_too() {
    let elsewhere = Recorder::start(|_| json(200, "{}")).await;
    let location = HeaderValue::try_from(format!("//{}/x", elsewhere.address)).unwrap();
    let server = Recorder::start(move |_| {
        let mut answer = json(307, "");
        answer.headers_mut().insert(LOCATION, location.clone());
        answer
    })
    .await;
    let settings =
        Settings { default_headers: vec![("X-Tenant".to_owned(), "blue".to_owned())], ..server.settings() };
    let client = Client::new(settings, gate(None), None).unwrap();
    client.send(&Request::new(Method::GET, "/x")).await.unwrap();
    assert_eq!((server.seen()[0].header("x-tenant"), elsewhere.seen()[0].header("x-tenant")), ("blue", ""));
    let error = client.send(&Request::new(Method::PUT, "/x")).await.unwrap_err();
    assert!(error.to_string().contains("is not followed for a write"), "{error}");
    assert_eq!(elsewhere.seen().len(), 1);
}

#[tokio::test]
async fn a_redirect_to_an_unreachable_host_is_not_an_outage_of_the_server() {
    let server = Server::start(|_| async {
        let mut answer = status(302);
        answer.headers_mut().insert(LOCATION, HeaderValue::from_static("http://127.0.0.1:1/x"));
        answer
    })
    .await;
    let gate = gate(None);
    let client = server.client(&gate);
    for _ in 0..2 {
        let error = client.send(&Request::new(Method::GET, "/x")).await.unwrap_err();
        assert_eq!(error.category(), Category::Transport, "{error}");
    }
    assert_eq!(server.arrivals().len(), 8, "tried again, as any read");
    assert!(!gate.status().breaker_open);
}

/// Accepts connections, and answers each request with `answer`, which is not complete.
async fn stalling(answer: &'static str) -> std::net::SocketAddr {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let mut open = Vec::new();
        while let Ok((mut stream, _)) = listener.accept().await {
            let _request = stream.read(&mut [0; 1024]).await.unwrap();
            stream.write_all(answer.as_bytes()).await.unwrap();
            open.push(stream);
        }
    });
    address
}

#[rstest]
#[case::silent("")]
#[case::cut("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{")]
#[tokio::test]
async fn a_redirect_to_a_host_that_stalls_is_not_an_outage_of_the_server(#[case] beginning: &'static str) {
    let address = stalling(beginning).await;
    let server = Server::start(move |_| async move {
        let mut answer = status(302);
        let location = HeaderValue::try_from(format!("http://{address}/x")).unwrap();
        answer.headers_mut().insert(LOCATION, location);
        answer
    })
    .await;
    let gate = gate(None);
    let timeout = Duration::from_millis(500);
    let client = server.client(&gate).with_attempt_timeout(timeout);
    let before = client.concurrency();
    for _ in 0..2 {
        let error = client.send(&Request::new(Method::GET, "/x")).await.unwrap_err();
        assert!(error.to_string().ends_with("no complete answer within 0.5 s"), "{error}");
    }
    assert_eq!((gate.status().breaker_open, client.concurrency()), (false, before));
}

#[tokio::test]
async fn requests_per_second_counts_the_requests_after_redirects() {
    let server = chain().await;
    let throttling = Throttling { requests_per_second: Some(10.0), burst: Some(1), ..Throttling::default() };
    let gate = Arc::new(Gate::new(&throttling).unwrap());
    // The waits for the rate are not part of the attempt.
    let client = Client::new(server.settings(), gate, None).unwrap();
    let client = client.with_attempt_timeout(Duration::from_millis(900));
    let began = Instant::now();
    client.send(&Request::new(Method::GET, "/1")).await.unwrap();
    assert_eq!(server.seen().len(), 11);
    assert!(began.elapsed() >= Duration::from_secs(1), "{:?}", began.elapsed());
}
