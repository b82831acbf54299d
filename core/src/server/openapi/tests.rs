//! Tests of loading `OpenAPI` documents.

use axum::Router;
use axum::http::HeaderMap;
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

/// Loads the document at a URL that may be http.
async fn load(base_url: &str, url: &str) -> Result<Arc<OpenApi>, OpenApiLoadError> {
    let source = OpenApiSource(Place::Url(Url::parse(url).unwrap()));
    FetchedOpenApi::fetch(&client(base_url), source, None, None).await.map(|fetched| fetched.document)
}

async fn load_file(file: &Path) -> Result<Arc<OpenApi>, OpenApiLoadError> {
    let source = OpenApiSource::parse(file.to_str().unwrap()).unwrap();
    FetchedOpenApi::fetch(&client("https://h.test"), source, None, None).await.map(|fetched| fetched.document)
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
    let outcome = load_file(&file).await;
    assert_eq!(outcome.as_ref().err().map(Categorized::category), expected, "{outcome:?}");
    assert!(outcome.is_ok() || outcome.unwrap_err().to_string().contains("openapi.json"));
}

#[tokio::test]
async fn a_directory_is_not_a_document() {
    let directory = tempfile::tempdir().unwrap();
    assert_eq!(load_file(directory.path()).await.unwrap_err().category(), Category::NotFound);
}

#[tokio::test]
async fn large_files_are_rejected() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("openapi.json");
    std::fs::File::create(&file).unwrap().set_len(BODY_LIMIT as u64 + 1).unwrap();
    let error = load_file(&file).await.unwrap_err();
    assert!(matches!(error, OpenApiLoadError::TooLarge { .. }), "{error}");
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
    let error = load(&origin, &format!("{origin}/openapi.json?key=s3cret")).await.unwrap_err();
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
    let document = load(&base, &format!("{origin}/openapi.json")).await.unwrap();
    assert!(document.exact_path(expected).is_some(), "{document:?}");
}

#[tokio::test]
async fn the_query_of_the_url_is_sent() {
    let router =
        Router::new().fallback(|uri: axum::http::Uri| async move { format!("paths: {{{uri}: {{}}}}") });
    let origin = serve(router).await;
    let document = load(&origin, &format!("{origin}/a?v=3")).await.unwrap();
    assert!(document.exact_path("/a?v=3").is_some(), "{document:?}");
}

#[tokio::test]
async fn an_answer_that_is_not_a_document_is_rejected() {
    let origin = serve(Router::new().fallback(|| async { "<html>" })).await;
    let error = load(&origin, &format!("{origin}/a")).await.unwrap_err();
    assert_eq!(error.category(), Category::Validation);
    assert_eq!(error.to_string(), format!("{origin}/a: the OpenAPI document is a string, not an object"));
}
