//! A service that probes reach, and the web server of hostile bundles.

use std::io::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Redirect};
use axum::routing::get;

/// The address of the metadata service of clouds.
const METADATA: &str = "http://169.254.169.254/latest";

/// A server for the rows of the table.
pub struct ProbedServer {
    pub address: SocketAddr,
    /// The number of requests to the host that probes must not be redirected to.
    pub elsewhere: Arc<AtomicUsize>,
}

impl ProbedServer {
    pub async fn start() -> Self {
        let elsewhere = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&elsewhere);
        let other = serve(Router::new().fallback(async move || {
            counted.fetch_add(1, Ordering::Relaxed);
        }))
        .await;
        let away = format!("http://{other}/ok");
        let router = Router::new()
            .route("/ok", get(async || "ok"))
            .route("/no-content", get(async || StatusCode::NO_CONTENT))
            .route("/unauthorized", get(async || (StatusCode::UNAUTHORIZED, "canary of the body")))
            .route("/unavailable", get(async || StatusCode::SERVICE_UNAVAILABLE))
            .route("/empty", get(async || ""))
            .route("/slow", get(async || tokio::time::sleep(Duration::from_mins(1)).await))
            .route("/same-origin", get(async || Redirect::temporary("/ok?token=canary")))
            .route("/other-origin", get(async move || Redirect::temporary(&away)))
            .route("/to-metadata", get(async || Redirect::temporary(METADATA)))
            .route("/missing.tar.gz", get(async || bundle(&Hostile::MissingFile)))
            .route("/climbs.tar.gz", get(async || bundle(&Hostile::Climbs)))
            .route("/link.tar.gz", get(async || bundle(&Hostile::Link)));
        Self { address: serve(router).await, elsewhere }
    }
}

/// Serves on a port of its own.
pub async fn serve(router: Router) -> SocketAddr {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router.into_make_service()).await });
    address
}

/// What is wrong with a bundle.
enum Hostile {
    MissingFile,
    Climbs,
    Link,
}

fn bundle(hostile: &Hostile) -> axum::response::Response {
    let document = b"pactoVersion: '1.0'\nservice: {name: a, version: 1.0.0}\ninterfaces: [{name: e, type: event, contract: e.yaml}]\n";
    let mut archive = tar::Builder::new(Vec::new());
    let mut add = |name: &str, kind: tar::EntryType, content: &[u8]| {
        let mut header = tar::Header::new_gnu();
        // The library refuses such names, so the bytes are written.
        header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
        header.set_entry_type(kind);
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        header.set_cksum();
        archive.append(&header, content).unwrap();
    };
    add("pacto.yaml", tar::EntryType::Regular, document);
    match hostile {
        Hostile::MissingFile => {}
        Hostile::Climbs => add("../x", tar::EntryType::Regular, b"x"),
        Hostile::Link => add("e.yaml", tar::EntryType::Symlink, b""),
    }
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&archive.into_inner().unwrap()).unwrap();
    gzip.finish().unwrap().into_response()
}
