//! Tests of bundles in OCI registries, with a server that implements the distribution protocol.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use axum::body::Body;
use axum::response::Response;
use rstest::rstest;
use serde_json::json;
use sha2::{Digest, Sha256};

use super::super::{Bundle, BundleError, BundleSource, BundleWarning, Options, Reference, RegistryLogin};
use super::fixtures::{FILES, SHORT, archive, entries_of};
use super::server::{Asked, Server, ok, redirect, serve, status};
use crate::digest::hex;
use crate::error::{Categorized, Category};

const OCI_MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const BUNDLE_LAYER: &str = "application/vnd.declarest.bundle.v1.tar+gzip";

fn digest(bytes: &[u8]) -> String {
    format!("sha256:{}", hex(&Sha256::digest(bytes)))
}

/// The content of the registry, the same for every tag and digest.
#[derive(Clone)]
struct Held {
    manifest: Vec<u8>,
    manifest_type: &'static str,
    /// The digest of the manifest that the registry announces.
    announced: Option<String>,
    blob: Vec<u8>,
    /// The status to respond with instead.
    refusal: Option<u16>,
}

impl Held {
    fn new(blob: Vec<u8>) -> Self {
        let layer = json!({"mediaType": BUNDLE_LAYER, "digest": digest(&blob), "size": blob.len()});
        Self::with_layers(blob, &json!([layer]))
    }

    fn with_layers(blob: Vec<u8>, layers: &serde_json::Value) -> Self {
        let manifest = json!({"schemaVersion": 2, "mediaType": OCI_MANIFEST, "layers": layers});
        let manifest = serde_json::to_vec(&manifest).unwrap();
        Self { manifest, manifest_type: OCI_MANIFEST, announced: None, blob, refusal: None }
    }

    fn answer(&self, asked: &Asked) -> Response {
        if let Some(code) = self.refusal {
            return status(code);
        }
        if asked.path.starts_with("/v2/a/till-bundle/manifests/") {
            let announced = self.announced.clone().unwrap_or_else(|| digest(&self.manifest));
            return Response::builder()
                .header("content-type", self.manifest_type)
                .header("docker-content-digest", announced)
                .body(Body::from(self.manifest.clone()))
                .unwrap();
        }
        if asked.path.starts_with("/v2/a/till-bundle/blobs/") { ok(self.blob.clone()) } else { status(404) }
    }
}

/// A registry whose content a test can change.
async fn registry(held: Held) -> (Server, Arc<Mutex<Held>>) {
    let held = Arc::new(Mutex::new(held));
    let shared = Arc::clone(&held);
    (serve(move |asked| shared.lock().unwrap().answer(asked)).await, held)
}

async fn open_with(options: Options, server: &Server, version: &str) -> Result<Bundle, BundleError> {
    let reference = Reference::parse(&format!("oci://{}/a/till-bundle{version}", server.host()))?;
    BundleSource::new(options).open(&reference).await
}

async fn open(cache: &Path, server: &Server, version: &str) -> Result<Bundle, BundleError> {
    open_with(Options::new(cache), server, version).await
}

#[tokio::test]
async fn an_unchanged_tag_is_not_downloaded_again() {
    let cache = tempfile::tempdir().unwrap();
    let held = Held::new(archive(&FILES));
    let (server, _held) = registry(held.clone()).await;
    let bundle = open(cache.path(), &server, ":1.2.0").await.unwrap();
    assert_eq!(bundle.digest, digest(&held.manifest));
    let blob = format!("GET /v2/a/till-bundle/blobs/{}", digest(&held.blob));
    assert_eq!(server.lines(), ["GET /v2/a/till-bundle/manifests/1.2.0".to_owned(), blob]);

    let bundle = open(cache.path(), &server, ":1.2.0").await.unwrap();
    assert_eq!((server.count("/manifests/"), server.count("/blobs/")), (2, 1));
    assert_eq!(bundle.warnings, []);
    assert_eq!(entries_of(cache.path()), [bundle.root.file_name().unwrap().to_str().unwrap()]);
}

#[tokio::test]
async fn a_moved_tag_is_another_bundle() {
    let cache = tempfile::tempdir().unwrap();
    let (server, held) = registry(Held::new(archive(&FILES))).await;
    let first = open(cache.path(), &server, ":latest").await.unwrap();
    *held.lock().unwrap() = Held::new(archive(&[("bundle.yaml", SHORT), FILES[2]]));
    let second = open(cache.path(), &server, ":latest").await.unwrap();
    assert_ne!(second.digest, first.digest);
    assert_eq!((second.openapi, second.root), (None, first.root));
}

#[rstest]
#[case::down(|held: &mut Held| held.refusal = Some(503), "answered with status 503 Service Unavailable")]
#[case::locked(|held: &mut Held| held.refusal = Some(403), "answered with status 403 Forbidden")]
#[case::gone(|held: &mut Held| held.refusal = Some(404), "answered with status 404 Not Found")]
#[case::broken(|held: &mut Held| *held = Held::new(b"x".to_vec()), "it is not a complete gzip tar archive")]
#[case::forged(|held: &mut Held| {
    *held = Held::new(archive(&FILES[1..]));
    held.blob.push(0);
}, "the response is larger than")]
#[tokio::test]
async fn the_cached_copy_is_used_with_a_warning_if_the_refresh_fails(
    #[case] happens: fn(&mut Held),
    #[case] expected: &str,
) {
    let cache = tempfile::tempdir().unwrap();
    let (server, held) = registry(Held::new(archive(&FILES))).await;
    let good = open(cache.path(), &server, ":latest").await.unwrap();
    happens(&mut held.lock().unwrap());
    let bundle = open(cache.path(), &server, ":latest").await.unwrap();
    assert_eq!((&bundle.root, &bundle.digest), (&good.root, &good.digest));
    assert!(bundle.documents(u64::MAX).is_ok());
    let [warning @ BundleWarning::Stale { reason, .. }] = bundle.warnings.as_slice() else {
        panic!("{:?}", bundle.warnings)
    };
    assert!(reason.contains(expected), "{reason}");
    let start =
        format!("metadata bundle oci://{}/a/till-bundle:latest could not be refreshed", server.host());
    assert!(warning.to_string().starts_with(&start), "{warning}");

    // After a successful refresh there is no warning.
    *held.lock().unwrap() = Held::new(archive(&FILES));
    assert_eq!(open(cache.path(), &server, ":latest").await.unwrap().warnings, []);
}

#[tokio::test]
async fn a_digest_is_requested_once() {
    let cache = tempfile::tempdir().unwrap();
    let held = Held::new(archive(&FILES));
    let (server, shared) = registry(held.clone()).await;
    let version = format!("@{}", digest(&held.manifest));
    open(cache.path(), &server, &version).await.unwrap();
    shared.lock().unwrap().refusal = Some(500);
    assert_eq!(open(cache.path(), &server, &version).await.unwrap().warnings, []);
    assert_eq!(server.lines().len(), 2);
}

#[rstest]
#[case(401, Category::Auth)]
#[case(403, Category::Auth)]
#[case(404, Category::NotFound)]
#[case(500, Category::Transport)]
#[tokio::test]
async fn statuses(#[case] code: u16, #[case] category: Category) {
    let cache = tempfile::tempdir().unwrap();
    let (server, held) = registry(Held::new(archive(&FILES))).await;
    held.lock().unwrap().refusal = Some(code);
    assert_eq!(open(cache.path(), &server, ":1").await.unwrap_err().category(), category);
    assert_eq!(entries_of(cache.path()), Vec::<String>::new());
}

#[rstest]
#[case("application/vnd.declarest.bundle.v1.tar+gzip")]
#[case("application/vnd.oci.image.layer.v1.tar+gzip")]
#[case("application/vnd.docker.image.rootfs.diff.tar.gzip")]
#[case("application/gzip")]
#[case("application/x-gzip")]
#[case("application/x-tar+gzip")]
#[tokio::test]
async fn types_of_layers(#[case] layer_type: &str) {
    let cache = tempfile::tempdir().unwrap();
    let blob = archive(&FILES);
    let layers = json!([
        {"mediaType": "text/plain", "digest": digest(b"readme"), "size": 6},
        {"mediaType": layer_type, "digest": digest(&blob), "size": blob.len()},
        {"mediaType": "application/gzip", "digest": digest(b"later"), "size": 5},
    ]);
    let (server, _held) = registry(Held::with_layers(blob, &layers)).await;
    open(cache.path(), &server, ":1").await.unwrap();
}

#[rstest]
#[case::no_layer(
    json!({"schemaVersion": 2, "layers": []}),
    "none of its layers is a bundle: they are []; push the archive as application/vnd.declarest.bundle.v1.tar+gzip"
)]
#[case::other_layers(
    json!({"schemaVersion": 2, "layers": [{"mediaType": "a/b", "digest": "sha256:0", "size": 1}]}),
    "none of its layers is a bundle: they are [a/b]; push the archive as application/vnd.declarest.bundle.v1.tar+gzip"
)]
#[case::index(
    json!({"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": []}),
    "its manifest is of type \"application/vnd.oci.image.index.v1+json\"; only image manifests are supported, not indexes"
)]
#[case::schema_1(
    json!({"schemaVersion": 1, "layers": []}),
    "its manifest is of type \"application/vnd.oci.image.manifest.v1+json\"; only image manifests are supported, not indexes"
)]
#[case::odd_digest(
    json!({"schemaVersion": 2, "layers": [{"mediaType": "application/gzip", "digest": "md5:1", "size": 1}]}),
    "the digest \"md5:1\" of its layer is not SHA-256"
)]
#[case::large(
    json!({"schemaVersion": 2, "layers": [
        {"mediaType": "application/gzip", "digest": digest(b""), "size": (256 << 20) + 1}
    ]}),
    "its layer has 268435457 bytes, more than 268435456"
)]
#[case::no_manifest(json!([]), "its manifest is not an image manifest: ")]
#[tokio::test]
async fn other_artifacts_are_rejected(#[case] manifest: serde_json::Value, #[case] reason: &str) {
    let cache = tempfile::tempdir().unwrap();
    let mut held = Held::new(archive(&FILES));
    held.manifest = serde_json::to_vec(&manifest).unwrap();
    let (server, _held) = registry(held).await;
    let error = open(cache.path(), &server, ":1").await.unwrap_err();
    assert_eq!(error.category(), Category::Validation);
    let start = format!("bundle oci://{}/a/till-bundle:1: {reason}", server.host());
    assert!(error.to_string().starts_with(&start), "{error}");
}

#[tokio::test]
async fn a_manifest_of_docker() {
    let cache = tempfile::tempdir().unwrap();
    let mut held = Held::new(archive(&FILES));
    let docker = "application/vnd.docker.distribution.manifest.v2+json";
    held.manifest = String::from_utf8(held.manifest).unwrap().replace(OCI_MANIFEST, docker).into_bytes();
    held.manifest_type = "application/json";
    let (server, _held) = registry(held).await;
    open(cache.path(), &server, ":1").await.unwrap();
}

#[tokio::test]
async fn a_manifest_that_is_too_large() {
    let cache = tempfile::tempdir().unwrap();
    let mut held = Held::new(archive(&FILES));
    held.manifest.resize((4 << 20) + 1, b' ');
    let (server, _held) = registry(held).await;
    let error = open(cache.path(), &server, ":1").await.unwrap_err();
    assert!(error.to_string().ends_with("the response is larger than 4194304 bytes"), "{error}");
}

#[rstest]
#[case::layer(|held: &mut Held| held.blob[20] ^= 1, "/blobs/")]
#[case::announced(|held: &mut Held| held.announced = Some(digest(b"other")), "/manifests/")]
#[tokio::test]
async fn content_that_does_not_match_its_digest(#[case] forge: fn(&mut Held), #[case] place: &str) {
    let cache = tempfile::tempdir().unwrap();
    let mut held = Held::new(archive(&FILES));
    forge(&mut held);
    let (server, _held) = registry(held).await;
    let error = open(cache.path(), &server, ":1").await.unwrap_err();
    assert_eq!(error.category(), Category::Transport);
    let BundleError::Digest { url, .. } = &error else { panic!("{error:?}") };
    assert!(url.contains(place), "{error}");
    assert_eq!(entries_of(cache.path()), Vec::<String>::new());
}

#[tokio::test]
async fn a_manifest_that_does_not_match_the_requested_digest() {
    let cache = tempfile::tempdir().unwrap();
    let (server, _held) = registry(Held::new(archive(&FILES))).await;
    let wanted = digest(b"other");
    let error = open(cache.path(), &server, &format!("@{wanted}")).await.unwrap_err();
    assert!(matches!(&error, BundleError::Digest { expected, .. } if *expected == wanted), "{error:?}");
}

#[tokio::test]
async fn credentials_do_not_follow_a_layer_to_another_host() {
    let cache = tempfile::tempdir().unwrap();
    let held = Held::new(archive(&FILES));
    let blob = held.blob.clone();
    let storage = serve(move |_| ok(blob.clone())).await;
    let location = storage.base.join("storage").unwrap();
    let server = serve(move |asked| match () {
        () if asked.authorization.is_none() => challenge("Basic realm=\"r\""),
        () if asked.path.contains("/blobs/") => redirect(location.as_str()),
        () => held.answer(asked),
    })
    .await;
    open_with(logged_in(cache.path(), &server, r#"{"auth": "b3BzOnB3"}"#), &server, ":1").await.unwrap();
    let [asked] = storage.asked().try_into().unwrap();
    assert_eq!((asked.line.as_str(), asked.authorization), ("GET /storage", None));
}

fn challenge(text: &str) -> Response {
    Response::builder().status(401).header("www-authenticate", text).body(Body::empty()).unwrap()
}

/// Returns options with this login for the registry.
fn logged_in(cache: &Path, server: &Server, login: &str) -> Options {
    let file: PathBuf = cache.join("config.json");
    std::fs::write(&file, format!(r#"{{"auths": {{"{}": {login}}}}}"#, server.host())).unwrap();
    Options { login: RegistryLogin::File(file), ..Options::new(cache.join("cache")) }
}

/// A registry that requires `wanted` as authorization, and issues tokens itself.
async fn guarded(wanted: &'static str, service: &'static str) -> Server {
    let held = Held::new(archive(&FILES));
    serve(move |asked| match &asked.authorization {
        _ if asked.path == "/token" => ok(r#"{"access_token": "t0k", "expires_in": 60}"#),
        Some(authorization) if authorization == wanted => held.answer(asked),
        _ => challenge(service),
    })
    .await
}

/// The realm is on the server itself, whose port is not known before it runs.
async fn token_server(wanted: &'static str) -> Server {
    let held = Held::new(archive(&FILES));
    let realm: Arc<Mutex<String>> = Arc::default();
    let known = Arc::clone(&realm);
    let server = serve(move |asked| match &asked.authorization {
        _ if asked.path == "/token" => ok(r#"{"access_token": "t0k", "expires_in": 60}"#),
        Some(authorization) if authorization == wanted => held.answer(asked),
        _ => challenge(&format!("Bearer realm=\"{}token\",service=\"till\"", known.lock().unwrap())),
    })
    .await;
    *realm.lock().unwrap() = server.base.to_string();
    server
}

#[tokio::test]
async fn an_anonymous_token() {
    let cache = tempfile::tempdir().unwrap();
    let server = token_server("Bearer t0k").await;
    open(cache.path(), &server, ":1").await.unwrap();
    let token: Vec<_> = server.asked().into_iter().filter(|asked| asked.path == "/token").collect();
    let [token] = token.as_slice() else { panic!("{token:?}") };
    assert_eq!(token.line, "GET /token?scope=repository%3Aa%2Ftill-bundle%3Apull&service=till");
    assert_eq!(token.authorization, None);
}

#[tokio::test]
async fn a_token_for_a_password() {
    let cache = tempfile::tempdir().unwrap();
    let server = token_server("Bearer t0k").await;
    let options = logged_in(cache.path(), &server, r#"{"auth": "b3BzOnB3"}"#);
    open_with(options, &server, ":1").await.unwrap();
    let token = server.asked().into_iter().find(|asked| asked.path == "/token").unwrap();
    assert_eq!(token.authorization.as_deref(), Some("Basic b3BzOnB3"));
}

#[tokio::test]
async fn a_token_for_a_refresh_token() {
    let cache = tempfile::tempdir().unwrap();
    let server = token_server("Bearer t0k").await;
    let options = logged_in(cache.path(), &server, r#"{"identitytoken": "r&t"}"#);
    open_with(options, &server, ":1").await.unwrap();
    let token = server.asked().into_iter().find(|asked| asked.path == "/token").unwrap();
    assert_eq!(token.line, "POST /token");
    assert_eq!(
        token.body,
        "scope=repository%3Aa%2Ftill-bundle%3Apull&service=till&grant_type=refresh_token\
         &client_id=declarest&refresh_token=r%26t"
    );
}

/// A registry whose token service redirects to `elsewhere`.
async fn redirecting_tokens(status: u16, elsewhere: &Server) -> Server {
    let (held, location) = (Held::new(archive(&FILES)), elsewhere.base.join("token").unwrap());
    serve(move |asked| match &asked.authorization {
        _ if asked.path == "/service" => {
            let answer = Response::builder().status(status).header("location", location.as_str());
            answer.body(Body::empty()).unwrap()
        }
        Some(authorization) if authorization == "Bearer t0k" => held.answer(asked),
        _ => challenge(&format!("Bearer realm=\"http://{}/service\"", asked.header("host"))),
    })
    .await
}

#[rstest]
#[tokio::test]
async fn credentials_do_not_follow_a_token_request_to_another_host(
    #[values(301, 302, 303, 307, 308)] code: u16,
) {
    let elsewhere = serve(|_| ok(r#"{"token": "t0k"}"#)).await;
    let server = redirecting_tokens(code, &elsewhere).await;
    // A refresh token is in the body, so the request is not sent to another host.
    let cache = tempfile::tempdir().unwrap();
    let options = logged_in(cache.path(), &server, r#"{"identitytoken": "r3fresh"}"#);
    let error = open_with(options, &server, ":1").await.unwrap_err().to_string();
    let reason = format!("redirect with status {code} is not followed for a write");
    assert_eq!(error, format!("GET {}service: {reason}", server.base));
    assert_eq!(elsewhere.lines(), Vec::<String>::new());
    // A password is in a header, which only the first host gets.
    let cache = tempfile::tempdir().unwrap();
    let options = logged_in(cache.path(), &server, r#"{"auth": "b3BzOnB3"}"#);
    open_with(options, &server, ":1").await.unwrap();
    let [token] = elsewhere.asked().try_into().unwrap();
    assert_eq!((token.line.as_str(), token.authorization), ("GET /token", None));
}

#[tokio::test]
async fn a_password_without_token() {
    let cache = tempfile::tempdir().unwrap();
    let server = guarded("Basic b3BzOnB3", "Basic realm=\"r\"").await;
    let options = logged_in(cache.path(), &server, r#"{"auth": "b3BzOnB3"}"#);
    open_with(options, &server, ":1").await.unwrap();
    // There is only one challenge: the request of the layer has the password.
    assert_eq!(server.lines().len(), 3);
}

#[rstest]
#[case::no_password("Basic realm=\"r\"", None)]
#[case::wrong_password("Basic realm=\"r\"", Some(r#"{"auth": "b3BzOng="}"#))]
#[case::not_understood("Negotiate", Some(r#"{"auth": "b3BzOnB3"}"#))]
#[tokio::test]
async fn without_the_right_credentials(#[case] service: &'static str, #[case] login: Option<&str>) {
    let cache = tempfile::tempdir().unwrap();
    let server = guarded("Basic b3BzOnB3", service).await;
    let options = match login {
        Some(login) => logged_in(cache.path(), &server, login),
        None => Options::new(cache.path()),
    };
    let error = open_with(options, &server, ":1").await.unwrap_err();
    assert_eq!(error.category(), Category::Auth);
    let host = server.base.as_str();
    let expected = format!(
        "GET {host}v2/a/till-bundle/manifests/1 answered with status 401 Unauthorized; \
         check the credentials for this host"
    );
    assert_eq!(error.to_string(), expected);
}

#[tokio::test]
async fn tokens_are_requested_from_web_addresses_only() {
    let cache = tempfile::tempdir().unwrap();
    let server = guarded("Bearer t0k", "Bearer realm=\"file:///etc/passwd\"").await;
    let error = open(cache.path(), &server, ":1").await.unwrap_err();
    assert!(error.to_string().ends_with("the token URL of its registry is not https"), "{error}");
}
