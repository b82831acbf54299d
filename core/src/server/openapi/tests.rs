//! Tests of loading `OpenAPI` documents.

use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::http::HeaderMap;
use axum::routing::get;
use rstest::rstest;

use super::*;
use crate::error::Categorized;
use crate::secrets::Secret;
use crate::server::{Auth, BaseUrl, Gate, HeaderCredential, Settings, Throttling};

const DOCUMENT: &str = "{\"openapi\": \"3.1.0\", \"paths\": {\"/shops\": {\"get\": {}}}}";

/// Serves `router` on loopback and returns its origin.
async fn serve(router: Router) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let origin = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    origin
}

fn client(base_url: &str) -> Client {
    // The error means that another test was first, which has the same effect.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let settings = Settings {
        auth: Auth::Headers(vec![HeaderCredential {
            header: "X-Key".to_owned(),
            prefix: String::new(),
            value: Secret::from("s3cret".to_owned()),
        }]),
        default_headers: vec![("X-Tenant".to_owned(), "blue".to_owned())],
        ..Settings::new(BaseUrl::parse(base_url).unwrap())
    };
    Client::new(settings, Arc::new(Gate::new(&Throttling::default()).unwrap()), None).unwrap()
}

/// Returns a loader for a URL that may be http.
fn loader(base_url: &str, url: &str) -> OpenApiLoader {
    OpenApiLoader::new(client(base_url), OpenApiSource(Place::Url(Url::parse(url).unwrap())))
}

fn file_loader(file: &Path) -> OpenApiLoader {
    OpenApiLoader::new(client("https://h.test"), OpenApiSource::parse(file.to_str().unwrap()).unwrap())
}

#[rstest]
#[case::file("/srv/openapi.yaml", "/srv/openapi.yaml")]
#[case::relative_file(" openapi.json ", "openapi.json")]
#[case::file_with_colon("api:v1.yaml", "api:v1.yaml")]
#[case::https("https://h.test/openapi.json?key=s3cret#x", "https://h.test/openapi.json")]
#[case::case_of_the_scheme("HTTPS://h.test/a", "https://h.test/a")]
fn sources(#[case] text: &str, #[case] expected: &str) {
    let source = OpenApiSource::parse(text).unwrap();
    assert_eq!(source.to_string(), expected);
    assert_eq!(format!("{source:?}"), format!("OpenApiSource({expected})"));
}

#[rstest]
#[case::http("http://h.test/a", "scheme \"http\" is not supported")]
#[case::http_on_loopback("http://127.0.0.1/a", "scheme \"http\" is not supported")]
#[case::http_without_slashes("http:a", "scheme \"http\" is not supported")]
#[case::other("ftp://h.test/a", "scheme \"ftp\" is not supported")]
#[case::file_url("file:///srv/a", "scheme \"file\" is not supported")]
#[case::no_host("https://", "not a URL")]
#[case::user("https://u:s3cret@h.test/a", "must not contain user and password")]
#[case::blank(" ", "is blank")]
fn rejected_sources(#[case] text: &str, #[case] message: &str) {
    let error = OpenApiSource::parse(text).unwrap_err();
    assert_eq!(error.category(), Category::Validation);
    let error = error.to_string();
    assert!(
        error.starts_with("http.openapi: ") && error.contains(message) && !error.contains("s3cret"),
        "{error}"
    );
}

#[rstest]
#[case::present(Some(DOCUMENT), None)]
#[case::absent(None, Some(Category::NotFound))]
#[case::no_document(Some("[]"), Some(Category::Validation))]
#[tokio::test]
async fn files(#[case] content: Option<&str>, #[case] expected: Option<Category>) {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("openapi.json");
    if let Some(content) = content {
        std::fs::write(&file, content).unwrap();
    }
    let outcome = file_loader(&file).load().await;
    assert_eq!(outcome.as_ref().err().map(Categorized::category), expected, "{outcome:?}");
    assert!(outcome.is_ok() || outcome.unwrap_err().to_string().contains("openapi.json"));
}

#[tokio::test]
async fn a_directory_is_not_a_document() {
    let directory = tempfile::tempdir().unwrap();
    assert_eq!(file_loader(directory.path()).load().await.unwrap_err().category(), Category::NotFound);
}

#[tokio::test]
async fn large_files_are_rejected() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("openapi.json");
    std::fs::File::create(&file).unwrap().set_len(BODY_LIMIT as u64 + 1).unwrap();
    let error = file_loader(&file).load().await.unwrap_err();
    assert!(matches!(error, OpenApiLoadError::TooLarge { .. }), "{error}");
}

#[tokio::test]
async fn a_success_is_kept_and_a_failure_is_not() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("openapi.json");
    let loader = file_loader(&file);
    assert!(loader.load().await.is_err());
    std::fs::write(&file, DOCUMENT).unwrap();
    let first = loader.load().await.unwrap();
    std::fs::remove_file(&file).unwrap();
    let second = loader.clone().load().await.unwrap();
    assert!(Arc::ptr_eq(&first, &second));
}

#[tokio::test]
async fn concurrent_callers_share_one_request() {
    let requests = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&requests);
    let origin = serve(Router::new().route(
        "/openapi.json",
        get(move || async move {
            count.fetch_add(1, Ordering::SeqCst);
            DOCUMENT
        }),
    ))
    .await;
    let loader = loader(&origin, &format!("{origin}/openapi.json"));
    let documents = futures::future::join_all((0..8).map(|_| loader.load())).await;
    assert!(documents.iter().all(|document| document.as_ref().unwrap().exact_path("/shops").is_some()));
    assert_eq!(requests.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn the_next_caller_joins_an_abandoned_attempt() {
    let requests = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&requests);
    let origin = serve(Router::new().route(
        "/openapi.json",
        get(move || async move {
            count.fetch_add(1, Ordering::SeqCst);
            DOCUMENT
        }),
    ))
    .await;
    let loader = loader(&origin, &format!("{origin}/openapi.json"));
    {
        let abandoned = loader.load();
        tokio::pin!(abandoned);
        assert!(futures::poll!(&mut abandoned).is_pending());
    }
    assert!(loader.load().await.is_ok());
    assert_eq!(requests.load(Ordering::SeqCst), 1);
}

#[rstest]
#[case(400, Category::Transport)]
#[case(401, Category::Auth)]
#[case(403, Category::Auth)]
#[case(404, Category::NotFound)]
#[case(409, Category::Transport)]
#[case(410, Category::Transport)]
#[case(500, Category::Transport)]
#[tokio::test]
async fn statuses(#[case] status: u16, #[case] expected: Category) {
    let status = axum::http::StatusCode::from_u16(status).unwrap();
    let origin = serve(Router::new().fallback(move || async move { (status, "no") })).await;
    let error = loader(&origin, &format!("{origin}/openapi.json?key=s3cret")).load().await.unwrap_err();
    assert_eq!(error.category(), expected);
    let error = error.to_string();
    assert!(error.contains(&format!("{origin}/openapi.json: ")) && !error.contains("s3cret"), "{error}");
}

/// Answers with paths that hold the credentials and default headers of the request.
async fn headers(headers: HeaderMap) -> String {
    let arrived = |name| headers.get(name).map_or("none", |value| value.to_str().unwrap()).to_owned();
    format!("paths: {{/{}/{}: {{}}}}", arrived("X-Key"), arrived("X-Tenant"))
}

#[rstest]
#[case::own_origin(true, "/s3cret/blue")]
#[case::other_origin(false, "/none/none")]
#[tokio::test]
async fn credentials_stay_within_the_origin(#[case] own: bool, #[case] expected: &str) {
    let origin = serve(Router::new().fallback(headers)).await;
    let other = serve(Router::new()).await;
    let base = if own { format!("{origin}/api") } else { other };
    let document = loader(&base, &format!("{origin}/openapi.json")).load().await.unwrap();
    assert!(document.exact_path(expected).is_some(), "{document:?}");
}

#[tokio::test]
async fn the_query_of_the_url_is_sent() {
    let router =
        Router::new().fallback(|uri: axum::http::Uri| async move { format!("paths: {{{uri}: {{}}}}") });
    let origin = serve(router).await;
    let document = loader(&origin, &format!("{origin}/a?v=3")).load().await.unwrap();
    assert!(document.exact_path("/a?v=3").is_some(), "{document:?}");
}

#[tokio::test]
async fn an_answer_that_is_not_a_document_is_rejected() {
    let origin = serve(Router::new().fallback(|| async { "<html>" })).await;
    let error = loader(&origin, &format!("{origin}/a")).load().await.unwrap_err();
    assert_eq!(error.category(), Category::Validation);
    assert_eq!(error.to_string(), format!("{origin}/a: the OpenAPI document is a string, not an object"));
}
