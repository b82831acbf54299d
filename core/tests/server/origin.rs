//! A request never leaves the origin of its server, whatever is in its path, its headers and its answers.

use declarest_core::error::{Categorized, Category};
use declarest_core::secrets::Secret;
use declarest_core::server::{Auth, BaseUrl, Client, HeaderCredential, Request, Settings};
use http::header::LOCATION;
use http::{HeaderValue, Method};
use rstest::rstest;

use crate::recorder::{Recorder, json};
use crate::server::gate;

/// A client with a credential and a default header.
fn client(settings: Settings) -> Client {
    let credential = HeaderCredential {
        header: "X-Key".to_owned(),
        prefix: String::new(),
        value: Secret::from("canary-key".to_owned()),
    };
    let settings = Settings {
        auth: Auth::Headers(vec![credential]),
        default_headers: vec![("X-Tenant".to_owned(), "blue".to_owned())],
        ..settings
    };
    Client::new(settings, gate(None), None).unwrap()
}

#[rstest]
#[case::double_slash("//evil.test/x", "/api/evil.test/x")]
#[case::userinfo("/@evil.test/x", "/api/@evil.test/x")]
#[case::userinfo_of_a_template("/:secret@evil.test", "/api/:secret@evil.test")]
#[case::port("/x:8443", "/api/x:8443")]
#[case::query("/x?admin=true", "/api/x%3Fadmin=true")]
#[case::fragment("/x#y", "/api/x%23y")]
#[case::backslashes("/\\\\evil.test\\x", "/api/%5C%5Cevil.test%5Cx")]
#[case::encoded_dots("/%2e%2e/x", "/api/%252e%252e/x")]
#[case::encoded_slash("/a%2F..%2Fb", "/api/a%252F..%252Fb")]
#[case::line_break("/x\r\nHost: evil.test\r\n", "/api/x%0D%0AHost:%20evil.test%0D%0A")]
#[case::inner_line_break("/x\r\nX: y/z", "/api/x%0D%0AX:%20y/z")]
#[case::tab("/a\tb", "/api/a%09b")]
#[case::nul("/a\0b", "/api/a%00b")]
#[tokio::test]
async fn paths_stay_below_the_base_url(#[case] path: &str, #[case] expected: &str) {
    let server = Recorder::start(|_| json(200, "{}")).await;
    let base_url = BaseUrl::parse(&format!("{}/api", server.url())).unwrap();
    client(Settings::new(base_url)).send(&Request::new(Method::GET, path)).await.unwrap();
    let seen = server.seen();
    assert_eq!((seen[0].target.as_str(), seen.len()), (expected, 1));
    assert_eq!(seen[0].header("host"), server.address.to_string());
}

#[rstest]
#[case::climbing("/../x")]
#[case::climbing_inside("/a/../../x")]
#[case::climbing_backwards("/..\\..\\x")]
#[case::climbing_with_parameters("/..;a/x")]
#[case::relative("../x")]
#[case::dot("/./x")]
#[case::url("http://evil.test/x")]
#[case::url_below("/x/https://evil.test")]
#[case::other_scheme("file:///etc/passwd")]
#[case::empty(" ")]
#[tokio::test]
async fn paths_that_lead_elsewhere_are_never_sent(#[case] path: &str) {
    let server = Recorder::start(|_| json(200, "{}")).await;
    let error = client(server.settings()).send(&Request::new(Method::GET, path)).await.unwrap_err();
    assert_eq!(error.category(), Category::Validation, "{error}");
    assert_eq!(server.seen().len(), 0);
}

#[rstest]
#[case::accept(Some("application/json\r\nX-Evil: 1"), None)]
#[case::content_type(None, Some("application/json\nX-Evil: 1"))]
#[tokio::test]
async fn line_breaks_in_media_types_are_never_sent(
    #[case] accept: Option<&str>,
    #[case] media_type: Option<&str>,
) {
    let server = Recorder::start(|_| json(200, "{}")).await;
    let mut request = Request::new(Method::PUT, "/x");
    request.accept = accept.map(Into::into);
    request.body = media_type.map(|media_type| declarest_core::server::Body {
        media_type: media_type.to_owned(),
        bytes: "{}".into(),
    });
    let error = client(server.settings()).send(&request).await.unwrap_err();
    assert_eq!(error.category(), Category::Validation, "{error}");
    assert!(error.to_string().contains("cannot be sent in a header"), "{error}");
    assert_eq!(server.seen().len(), 0);
}

#[tokio::test]
async fn query_values_cannot_end_the_query() {
    let server = Recorder::start(|_| json(200, "{}")).await;
    let mut request = Request::new(Method::GET, "/x");
    request.query = vec![("q".to_owned(), "a&b=c#d\r\nHost: evil.test".to_owned())];
    client(server.settings()).send(&request).await.unwrap();
    assert_eq!(server.lines(), ["GET /x?q=a%26b%3Dc%23d%0D%0AHost%3A%20evil.test"]);
}

/// A server that redirects every request to `location`.
async fn redirecting(status: u16, location: String) -> Recorder {
    Recorder::start(move |_| {
        let mut answer = json(status, "");
        answer.headers_mut().insert(LOCATION, HeaderValue::try_from(&location).unwrap());
        answer
    })
    .await
}

#[tokio::test]
async fn a_redirect_to_another_origin_takes_no_credentials_along() {
    let elsewhere = Recorder::start(|_| json(200, "{}")).await;
    let server = redirecting(302, format!("{}/x", elsewhere.url())).await;
    let mut request = Request::new(Method::GET, "/x");
    request.headers = vec![("x-operation".parse().unwrap(), HeaderValue::from_static("own"))];
    client(server.settings()).send(&request).await.unwrap();
    let (asked, followed) = (&server.seen()[0], &elsewhere.seen()[0]);
    for (name, value) in [("x-key", "canary-key"), ("x-tenant", "blue"), ("x-operation", "own")] {
        assert_eq!((asked.header(name), followed.header(name)), (value, ""), "{name}");
    }
}

#[rstest]
#[case::file("file:///etc/passwd", "leads to neither http nor https")]
#[case::script("javascript:alert(1)", "leads to neither http nor https")]
#[case::credentials("http://user:pass@127.0.0.1:1/", "leads to a URL with credentials")]
#[case::no_url("http://", "has no usable Location header")]
#[tokio::test]
async fn redirects_that_are_not_followed(#[case] location: &str, #[case] reason: &str) {
    let server = redirecting(302, location.to_owned()).await;
    let error = client(server.settings()).send(&Request::new(Method::GET, "/x")).await.unwrap_err();
    assert!(error.to_string().contains(reason) && !error.to_string().contains("pass@"), "{error}");
    assert_eq!((error.category(), server.seen().len()), (Category::Transport, 1));
}

#[rstest]
#[case(Method::PUT, 307, true)]
#[case(Method::DELETE, 308, true)]
#[case(Method::POST, 307, true)]
#[case(Method::POST, 301, false)]
#[case(Method::PUT, 302, false)]
#[case(Method::PATCH, 303, false)]
#[tokio::test]
async fn writes_follow_only_what_keeps_them_whole(
    #[case] method: Method,
    #[case] status: u16,
    #[case] followed: bool,
) {
    let server = Recorder::start(move |seen| {
        let mut answer = json(if seen.target == "/old" { status } else { 200 }, "{}");
        answer.headers_mut().insert(LOCATION, HeaderValue::from_static("/new"));
        answer
    })
    .await;
    let mut request = Request::new(method.clone(), "/old");
    request.body = Some(declarest_core::server::Body {
        media_type: "application/json".to_owned(),
        bytes: "{\"a\":1}".into(),
    });
    let sent = client(server.settings()).send(&request).await;
    assert_eq!(sent.is_ok(), followed);
    let seen = server.seen();
    assert_eq!(seen.len(), 1 + usize::from(followed));
    let last = seen.last().unwrap();
    assert_eq!(
        (&last.method, last.body.as_str(), last.header("x-key")),
        (&method, "{\"a\":1}", "canary-key")
    );
}

#[tokio::test]
async fn redirects_end_somewhere() {
    let server = redirecting(307, "/again".to_owned()).await;
    let error = client(server.settings()).send(&Request::new(Method::POST, "/x")).await.unwrap_err();
    assert!(error.to_string().ends_with("more than 10 redirects"), "{error}");
    assert_eq!(server.seen().len(), 11);
}

/// A server whose base path is `/api`, and that answers `/api/start` with a redirect.
async fn tenant(status: u16, location: &'static str) -> (Recorder, Client) {
    let server = Recorder::start(move |seen| {
        let start = seen.target == "/api/start";
        let mut answer = json(if start { status } else { 200 }, "{}");
        if start {
            answer.headers_mut().insert(LOCATION, HeaderValue::from_static(location));
        }
        answer
    })
    .await;
    let base_url = BaseUrl::parse(&format!("{}/api", server.url())).unwrap();
    let client = client(Settings::new(base_url));
    (server, client)
}

fn with_body(method: Method) -> Request {
    let mut request = Request::new(method, "/start");
    request.body = Some(declarest_core::server::Body {
        media_type: "application/json".to_owned(),
        bytes: "{\"a\":1}".into(),
    });
    request
}

#[rstest]
#[case::trailing_slash("/api/start/")]
#[case::relative("other")]
#[case::deeper("/api/v2/start")]
#[case::base_path_itself("/api")]
#[case::base_path_with_slash("/api/")]
#[case::spelt_otherwise("/%61pi/x")]
#[case::dots_in_a_name("/api/a..b/x")]
#[tokio::test]
async fn below_the_base_path_redirects_are_ours(#[case] location: &'static str) {
    let (server, client) = tenant(307, location).await;
    client.send(&Request::new(Method::GET, "/start")).await.unwrap();
    client.send(&with_body(Method::PUT)).await.unwrap();
    let seen = server.seen();
    assert_eq!(seen.len(), 4);
    assert!(
        seen.iter().all(|seen| seen.header("x-key") == "canary-key" && seen.header("x-tenant") == "blue")
    );
}

#[rstest]
#[case::another_tenant("/othertenant/x", "/othertenant/x")]
#[case::longer_name("/apiary/x", "/apiary/x")]
#[case::root("/", "/")]
#[case::climbing("../x", "/x")]
#[case::climbing_encoded("/api/%2e%2e/x", "/x")]
#[case::climbing_once_decoded("/api/..%2Fx", "/api/..%2Fx")]
#[case::climbing_backwards_once_decoded("/api/..%5Cx", "/api/..%5Cx")]
#[case::climbing_with_parameters("/api/..;a=b/x", "/api/..;a=b/x")]
#[tokio::test]
async fn requests_outside_of_the_base_path_carry_no_credentials(
    #[case] location: &'static str,
    #[case] path: &str,
) {
    let (server, client) = tenant(307, location).await;
    client.send(&Request::new(Method::GET, "/start")).await.unwrap();
    let seen = server.seen();
    assert_eq!((seen[0].header("x-key"), seen[0].header("x-tenant")), ("canary-key", "blue"));
    assert_eq!(
        (seen[1].target.as_str(), seen[1].header("x-key"), seen[1].header("x-tenant")),
        (path, "", "")
    );
    let not_below = format!(
        "redirect with status 307 leads to {path}, which is not below the base path /api, and is not followed"
    );
    for method in [Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
        let error = client.send(&with_body(method)).await.unwrap_err();
        assert!(error.to_string().ends_with(&format!("{not_below} for a write")), "{error}");
        assert_eq!(error.category(), Category::Transport);
    }
    let error = client.send(&with_body(Method::GET)).await.unwrap_err();
    assert!(error.to_string().ends_with(&format!("{not_below} with a body")), "{error}");
    assert_eq!(server.seen().len(), 2 + 5);
}

#[rstest]
#[case(401)]
#[case(404)]
#[tokio::test]
async fn what_fails_outside_of_the_base_path_says_nothing_of_the_resource(#[case] code: u16) {
    let server = Recorder::start(move |seen| {
        let mut answer = json(if seen.target == "/api/x" { 302 } else { code }, "");
        answer.headers_mut().insert(LOCATION, HeaderValue::from_static("/login?canary"));
        answer
    })
    .await;
    let base_url = BaseUrl::parse(&format!("{}/api", server.url())).unwrap();
    let sent = client(Settings::new(base_url)).send(&Request::new(Method::GET, "/x")).await;
    let error = sent.unwrap_err();
    let expected = format!("redirected to /login, which without credentials answers with status {code}");
    assert!(error.to_string().ends_with(&expected), "{error}");
    assert!(!error.is_gone());
}

/// Another server may redirect anywhere, but without our credentials.
#[tokio::test]
async fn credentials_do_not_come_back_with_a_redirect() {
    let back = std::sync::Arc::new(std::sync::OnceLock::<String>::new());
    let to = std::sync::Arc::clone(&back);
    let elsewhere = Recorder::start(move |_| {
        let mut answer = json(302, "");
        let location = HeaderValue::try_from(to.get().unwrap()).unwrap();
        answer.headers_mut().insert(LOCATION, location);
        answer
    })
    .await;
    let away = format!("{}/x", elsewhere.url());
    let server = Recorder::start(move |seen| {
        let mut answer = json(if seen.target == "/x" { 302 } else { 200 }, "{}");
        answer.headers_mut().insert(LOCATION, HeaderValue::try_from(&away).unwrap());
        answer
    })
    .await;
    back.set(format!("{}/admin", server.url())).unwrap();
    let mut request = Request::new(Method::GET, "/x");
    request.headers = vec![("x-operation".parse().unwrap(), HeaderValue::from_static("own"))];
    client(server.settings()).send(&request).await.unwrap();
    let seen = server.seen();
    assert_eq!(server.lines(), ["GET /x", "GET /admin"]);
    for name in ["x-key", "x-tenant", "x-operation"] {
        assert_eq!((seen[0].header(name).is_empty(), seen[1].header(name)), (false, ""), "{name}");
    }
}

#[tokio::test]
async fn no_body_goes_to_another_origin() {
    let elsewhere = Recorder::start(|_| json(200, "{}")).await;
    let server = redirecting(307, format!("{}/x", elsewhere.url())).await;
    let error = client(server.settings()).send(&with_body(Method::GET)).await.unwrap_err();
    let expected = format!(
        "leads to http://{}, which is another origin, and is not followed with a body",
        elsewhere.address
    );
    assert!(error.to_string().ends_with(&expected), "{error}");
    assert_eq!(elsewhere.seen().len(), 0);
}
