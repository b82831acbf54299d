//! Tests of archives on web servers.

use std::path::Path;
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use futures::{StreamExt, stream};
use rstest::rstest;
use sha2::{Digest, Sha256};

use super::super::fetch::Limits;
use super::super::{Bundle, BundleError, BundleSource, Options, Reference};
use super::fixtures::{FILES, SHORT, archive, entries_of};
use super::server::{Server, ok, redirect, serve, status};
use crate::digest::hex;
use crate::error::{Categorized, Category};
use crate::proxy::{Proxy, ProxyFields};

async fn open(cache: &Path, server: &Server, path: &str) -> Result<Bundle, BundleError> {
    let reference = Reference::Url(server.base.join(path).unwrap());
    BundleSource::new(Options::new(cache)).open(&reference).await
}

#[tokio::test]
async fn an_archive_is_downloaded_once() {
    let cache = tempfile::tempdir().unwrap();
    let bytes = archive(&FILES);
    let digest = format!("sha256:{}", hex(&Sha256::digest(&bytes)));
    let server = serve(move |_| ok(bytes.clone())).await;
    for _ in 0..2 {
        let bundle = open(cache.path(), &server, "a/till.tar.gz?key=1").await.unwrap();
        assert_eq!(bundle.digest, digest);
        assert!(bundle.openapi.is_some());
    }
    assert_eq!(server.lines(), ["GET /a/till.tar.gz?key=1"]);
    assert_eq!(server.asked()[0].authorization, None);
    let [entry] = entries_of(cache.path()).try_into().unwrap();
    assert!(entry.starts_with("till-") && entry.len() == "till-".len() + 12, "{entry}");
}

#[tokio::test]
async fn an_invalid_entry_is_downloaded_again() {
    let cache = tempfile::tempdir().unwrap();
    let server = serve(|_| ok(archive(&FILES))).await;
    let bundle = open(cache.path(), &server, "till.tar.gz").await.unwrap();
    std::fs::write(bundle.root.join("bundle.yaml"), "kind: x").unwrap();
    open(cache.path(), &server, "till.tar.gz").await.unwrap();
    assert_eq!(server.lines().len(), 2);
}

#[tokio::test]
async fn many_openers_download_once() {
    let cache = tempfile::tempdir().unwrap();
    let server = serve(|_| ok(archive(&FILES))).await;
    // Each source opens the lock file itself, like another process.
    let openers = (0..8).map(|_| open(cache.path(), &server, "till.tar.gz"));
    let opened = futures::future::join_all(openers).await;
    assert!(opened.iter().all(Result::is_ok));
    assert_eq!(server.lines().len(), 1);
}

#[tokio::test]
async fn the_next_opener_continues_after_an_error() {
    let cache = tempfile::tempdir().unwrap();
    let failures = std::sync::atomic::AtomicUsize::new(2);
    let left = move || {
        failures.fetch_update(
            std::sync::atomic::Ordering::SeqCst,
            std::sync::atomic::Ordering::SeqCst,
            |left| left.checked_sub(1),
        )
    };
    let server = serve(move |_| if left().is_ok() { status(503) } else { ok(archive(&FILES)) }).await;
    let openers = (0..5).map(|_| open(cache.path(), &server, "till.tar.gz"));
    let opened = futures::future::join_all(openers).await;
    assert_eq!(opened.iter().filter(|bundle| bundle.is_err()).count(), 2);
    assert_eq!(server.lines().len(), 3);
}

#[tokio::test]
async fn a_cancelled_opener_does_not_block_the_next() {
    let cache = tempfile::tempdir().unwrap();
    let (asked, seen) = tokio::sync::oneshot::channel();
    let asked = std::sync::Mutex::new(Some(asked));
    let server = serve(move |_| match asked.lock().unwrap().take() {
        Some(asked) => {
            asked.send(()).unwrap();
            let part = stream::iter([Ok::<_, std::io::Error>("part")]);
            ok(Body::from_stream(part.chain(stream::pending())))
        }
        None => ok(archive(&FILES)),
    })
    .await;
    tokio::select! {
        opened = open(cache.path(), &server, "till.tar.gz") => panic!("{opened:?}"),
        seen = seen => seen.unwrap(),
    }
    open(cache.path(), &server, "till.tar.gz").await.unwrap();
    assert_eq!(entries_of(cache.path()).len(), 1);
}

fn mirrored(cache: &Path, server: &Server) -> BundleSource {
    BundleSource::new(Options { releases: server.base.to_string(), ..Options::new(cache) })
}

#[tokio::test]
async fn a_release_is_found_by_name_and_version() {
    let cache = tempfile::tempdir().unwrap();
    let server = serve(|_| ok(archive(&FILES))).await;
    let source = mirrored(cache.path(), &server);
    let bundle = source.open(&Reference::parse("till-bundle:v1.2.0").unwrap()).await.unwrap();
    let expected = "GET /declarest-bundle-till/releases/download/v1.2.0/till-bundle-1.2.0.tar.gz";
    assert_eq!(server.lines(), [expected]);
    assert_eq!(bundle.root, cache.path().join("till-bundle-1.2.0"));
}

#[rstest]
#[case("till-bundle:1.3.0", "bundle till-bundle:1.3.0: its manifest states till-bundle 1.2.0")]
#[case("till:1.2.0", "bundle till:1.2.0: its manifest states till-bundle 1.2.0")]
#[tokio::test]
async fn the_manifest_of_a_release_must_match_its_reference(#[case] reference: &str, #[case] message: &str) {
    let cache = tempfile::tempdir().unwrap();
    let server = serve(|_| ok(archive(&FILES))).await;
    let opened = mirrored(cache.path(), &server).open(&Reference::parse(reference).unwrap()).await;
    let error = opened.unwrap_err();
    assert_eq!((error.to_string().as_str(), error.category()), (message, Category::Validation));
    assert_eq!(entries_of(cache.path()), Vec::<String>::new());
}

#[rstest]
#[case(404, Category::NotFound, "404 Not Found; check the name and the version")]
#[case(401, Category::Auth, "401 Unauthorized; check the credentials for this host")]
#[case(403, Category::Auth, "403 Forbidden; check the credentials for this host")]
#[case(304, Category::Transport, "304 Not Modified")]
#[case(410, Category::Transport, "410 Gone")]
#[case(429, Category::Transport, "429 Too Many Requests")]
#[case(500, Category::Transport, "500 Internal Server Error")]
#[tokio::test]
async fn statuses(#[case] code: u16, #[case] category: Category, #[case] shown: &str) {
    let cache = tempfile::tempdir().unwrap();
    let server = serve(move |_| status(code)).await;
    let error = open(cache.path(), &server, "till.tar.gz?key=canary").await.unwrap_err();
    assert_eq!(error.category(), category);
    assert_eq!(error.to_string(), format!("GET {}till.tar.gz answered with status {shown}", server.base));
    assert_eq!(entries_of(cache.path()), Vec::<String>::new());
}

#[tokio::test]
async fn an_unreachable_server() {
    let cache = tempfile::tempdir().unwrap();
    // Installs the crypto provider.
    serve(|_| status(500)).await;
    // Nothing listens on this port, and no other test can get it.
    let url = "http://ops:canary@127.0.0.1:1/till.tar.gz?canary";
    let source = BundleSource::new(Options::new(cache.path()));
    let error = source.open(&Reference::parse(url).unwrap()).await.unwrap_err();
    assert_eq!(error.category(), Category::Transport);
    assert!(!crate::error::with_causes(&error).contains("canary"), "{error}");
}

#[tokio::test]
async fn an_incomplete_response() {
    let cache = tempfile::tempdir().unwrap();
    let server = serve(|_| {
        let parts = vec![Ok("part"), Err(std::io::Error::other("gone"))];
        ok(Body::from_stream(stream::iter(parts)))
    });
    let error = open(cache.path(), &server.await, "till.tar.gz").await.unwrap_err();
    assert_eq!(error.category(), Category::Transport);
    assert!(matches!(error, BundleError::Request { .. }), "{error:?}");
    assert_eq!(entries_of(cache.path()), Vec::<String>::new());
}

#[test]
fn the_documented_time_limits() {
    let limits = Limits::default();
    assert_eq!((limits.http, limits.registry), (Duration::from_mins(1), Duration::from_mins(2)));
}

fn limited(cache: &Path, limits: Limits) -> BundleSource {
    BundleSource::with_limits(Options::new(cache), limits)
}

#[tokio::test]
async fn an_endless_response_times_out() {
    let cache = tempfile::tempdir().unwrap();
    let server = serve(|_| {
        let first = stream::iter([Ok::<_, std::io::Error>("part")]);
        ok(Body::from_stream(first.chain(stream::pending())))
    })
    .await;
    let source = limited(cache.path(), Limits { http: Duration::from_millis(200), ..Limits::default() });
    let error = source.open(&Reference::Url(server.base.clone())).await.unwrap_err();
    assert_eq!(error.category(), Category::Transport);
    assert_eq!(error.to_string(), format!("GET {}: no complete response within 200ms", server.base));
}

#[tokio::test]
async fn a_server_that_does_not_respond_times_out() {
    let cache = tempfile::tempdir().unwrap();
    serve(|_| status(500)).await;
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/till.tar.gz", silent.local_addr().unwrap());
    let source = limited(cache.path(), Limits { http: Duration::from_millis(50), ..Limits::default() });
    let error = source.open(&Reference::parse(&url).unwrap()).await.unwrap_err();
    assert_eq!(error.to_string(), format!("GET {url}: no complete response within 50ms"));
}

#[tokio::test]
async fn a_response_that_is_too_large_is_not_read_to_its_end() {
    let cache = tempfile::tempdir().unwrap();
    let server = serve(|_| {
        let endless = stream::repeat_with(|| Ok::<_, std::io::Error>(vec![0; 4096]));
        ok(Body::from_stream(endless))
    })
    .await;
    let source = limited(cache.path(), Limits { archive: 1 << 20, ..Limits::default() });
    let error = source.open(&Reference::Url(server.base.clone())).await.unwrap_err();
    assert_eq!(error.category(), Category::Validation);
    assert!(error.to_string().ends_with("the response is larger than 1048576 bytes"), "{error}");
    assert_eq!(entries_of(cache.path()), Vec::<String>::new());
}

#[tokio::test]
async fn redirects_are_followed() {
    let cache = tempfile::tempdir().unwrap();
    let server = serve(|asked| match asked.path.as_str() {
        "/till.tar.gz" => redirect("/elsewhere"),
        _ => ok(archive(&FILES)),
    })
    .await;
    open(cache.path(), &server, "till.tar.gz?key=s3cret").await.unwrap();
    assert_eq!(server.lines(), ["GET /till.tar.gz?key=s3cret", "GET /elsewhere"]);
    // The query may be a key, so no header names the first URL.
    assert_eq!(server.asked()[1].header("referer"), "");
}

#[tokio::test]
async fn redirects_in_a_circle_end() {
    let cache = tempfile::tempdir().unwrap();
    let server = serve(|_| redirect("/till.tar.gz")).await;
    let error = open(cache.path(), &server, "till.tar.gz").await.unwrap_err();
    assert_eq!(error.category(), Category::Transport);
    assert!(error.to_string().contains("more than 10 redirects"), "{error}");
}

#[tokio::test]
async fn gzip_is_not_a_content_encoding_of_the_archive() {
    let cache = tempfile::tempdir().unwrap();
    let bytes = archive(&FILES);
    let encoded = move |_: &_| {
        Response::builder().header("content-encoding", "gzip").body(Body::from(bytes.clone())).unwrap()
    };
    let server = serve(encoded).await;
    open(cache.path(), &server, "till.tar.gz").await.unwrap();
}

#[tokio::test]
async fn downloads_go_through_the_proxy() {
    let cache = tempfile::tempdir().unwrap();
    let proxy = serve(|_| ok(archive(&FILES))).await;
    let fields = ProxyFields { http: Some(proxy.base.as_str()), ..ProxyFields::default() };
    let through = Proxy::parse("metadata.proxy", fields, None).unwrap();
    let source = BundleSource::new(Options::new(cache.path()).through(through));
    source.open(&Reference::parse("http://bundles.test/till.tar.gz").unwrap()).await.unwrap();
    assert_eq!(proxy.lines(), ["GET http://bundles.test/till.tar.gz"]);
}

#[tokio::test]
async fn a_web_page_is_not_a_bundle() {
    let cache = tempfile::tempdir().unwrap();
    let server = serve(|_| ok("<html>")).await;
    let error = open(cache.path(), &server, "till.tar.gz").await.unwrap_err();
    assert_eq!(error.category(), Category::Validation);
    assert!(error.to_string().contains("it is not a complete gzip tar archive: "), "{error}");
    assert_eq!(entries_of(cache.path()), Vec::<String>::new());
}

#[tokio::test]
async fn the_tree_of_a_downloaded_bundle() {
    use crate::repository::Tree;
    let cache = tempfile::tempdir().unwrap();
    let server = serve(|_| ok(archive(&[("bundle.yaml", SHORT), FILES[2]]))).await;
    let bundle = open(cache.path(), &server, "till.tar.gz").await.unwrap();
    assert!(bundle.documents(u64::MAX).unwrap().read("tills/_/metadata.yaml").unwrap().is_some());
}

fn revalidating(cache: &Path) -> Options {
    Options { revalidates: true, ..Options::new(cache) }
}

#[rstest]
#[case::tag("etag", "if-none-match", "\"v1\"")]
#[case::weak_tag("etag", "if-none-match", "W/\"v1\"")]
#[case::time("last-modified", "if-modified-since", "Sat, 21 Nov 2026 20:00:00 GMT")]
#[tokio::test]
async fn an_archive_that_has_not_changed_is_not_sent_again(
    #[case] stated: &'static str,
    #[case] condition: &'static str,
    #[case] value: &'static str,
) {
    let cache = tempfile::tempdir().unwrap();
    let server = serve(move |asked| {
        let mut answer = if asked.header(condition) == value { status(304) } else { ok(archive(&FILES)) };
        answer.headers_mut().insert(stated, value.parse().unwrap());
        answer
    })
    .await;
    let reference = Reference::Url(server.base.join("till.tar.gz").unwrap());
    let mut digests = Vec::new();
    for _ in 0..2 {
        // Another process sends the same condition.
        let bundle = BundleSource::new(revalidating(cache.path())).open(&reference).await.unwrap();
        assert_eq!(bundle.warnings, []);
        digests.push(bundle.digest);
    }
    assert_eq!(digests[0], digests[1]);
    let conditions: Vec<_> = server.asked().iter().map(|asked| asked.header(condition).to_owned()).collect();
    assert_eq!(conditions, ["", value]);
}

#[tokio::test]
async fn a_replaced_archive_is_downloaded_and_an_error_keeps_the_old_one() {
    let cache = tempfile::tempdir().unwrap();
    let answers = std::sync::Mutex::new(vec![
        status(503),
        ok("no archive"),
        ok(archive(&[FILES.as_slice(), &[("metadata/more/_/metadata.yaml", "")]].concat())),
        ok(archive(&FILES)),
    ]);
    let server = serve(move |_| answers.lock().unwrap().pop().unwrap()).await;
    let reference = Reference::Url(server.base.join("till.tar.gz?key=s3cret").unwrap());
    let open = async || BundleSource::new(revalidating(cache.path())).open(&reference).await.unwrap();
    let (first, second) = (open().await, open().await);
    assert_ne!(first.digest, second.digest);
    for reason in ["archive of bundle", "answered with status 503"] {
        let third = open().await;
        assert_eq!(third.digest, second.digest);
        let [warning] = third.warnings.try_into().unwrap();
        let warning = warning.to_string();
        assert!(warning.contains(reason) && !warning.contains("s3cret"), "{warning}");
        assert!(third.metadata_root.join("more/_/metadata.yaml").exists());
    }
}

#[tokio::test]
async fn the_cached_copy_is_available_without_requests() {
    let cache = tempfile::tempdir().unwrap();
    let server = serve(|_| ok(archive(&FILES))).await;
    let reference = Reference::Url(server.base.join("till.tar.gz?key=s3cret").unwrap());
    let source = || BundleSource::new(revalidating(cache.path()));
    assert!(source().kept(&reference, "no token").await.unwrap().is_none());
    let first = source().open(&reference).await.unwrap();
    let kept = source().kept(&reference, "no token").await.unwrap().unwrap();
    assert_eq!((kept.digest, kept.metadata_root), (first.digest, first.metadata_root));
    let [warning] = kept.warnings.try_into().unwrap();
    let warning = warning.to_string();
    assert!(warning.contains("no token") && !warning.contains("s3cret"), "{warning}");
    assert_eq!(server.asked().len(), 1);
    let directory = Reference::Path(cache.path().to_owned());
    assert!(source().kept(&directory, "no token").await.unwrap().is_none());
}

async fn access_to(base: &url::Url) -> crate::transport::Access {
    use crate::server::{Auth, BaseUrl, Client, Gate, HeaderCredential, Settings, Throttling};
    let key = HeaderCredential {
        header: "X-Key".to_owned(),
        prefix: String::new(),
        value: "s3cret".to_owned().into(),
    };
    let settings = Settings {
        auth: Auth::Headers(vec![key]),
        default_headers: vec![("X-Tenant".to_owned(), "blue".to_owned())],
        ..Settings::new(BaseUrl::parse(base.join("api/?k=1").unwrap().as_str()).unwrap())
    };
    let gate = std::sync::Arc::new(Gate::new(&Throttling::default()).unwrap());
    Client::new(settings, gate, None).unwrap().access().await.unwrap()
}

#[tokio::test]
async fn credentials_are_sent_to_the_managed_server_only() {
    let elsewhere = serve(|_| ok(archive(&FILES))).await;
    let leads = elsewhere.base.join("moved.tar.gz").unwrap();
    let server = serve(move |asked| match asked.path.as_str() {
        "/leads.tar.gz" => redirect("/on.tar.gz"),
        "/on.tar.gz" => redirect(leads.as_str()),
        _ => ok(archive(&FILES)),
    })
    .await;
    let cache = tempfile::tempdir().unwrap();
    let options = Options { access: Some(access_to(&server.base).await), ..Options::new(cache.path()) };
    assert!(!format!("{options:?}").contains("s3cret"));
    for url in [
        server.base.join("till.tar.gz").unwrap(),
        server.base.join("leads.tar.gz").unwrap(),
        elsewhere.base.join("till.tar.gz").unwrap(),
    ] {
        BundleSource::new(options.clone()).open(&Reference::Url(url)).await.unwrap();
    }
    let headers = |server: &Server| -> Vec<String> {
        let asked = server.asked().into_iter();
        asked
            .map(|asked| format!("{} {} {}", asked.path, asked.header("x-key"), asked.header("x-tenant")))
            .collect()
    };
    assert_eq!(
        headers(&server),
        ["/till.tar.gz s3cret blue", "/leads.tar.gz s3cret blue", "/on.tar.gz s3cret blue"]
    );
    assert_eq!(headers(&elsewhere), ["/moved.tar.gz  ", "/till.tar.gz  "]);
}
