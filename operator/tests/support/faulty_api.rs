//! A proxy between an operator and its API server, which can fail as an API server in trouble does.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::{FutureExt as _, StreamExt as _};
use kube::config::Kubeconfig;
use reqwest::Certificate;
use serde_json::json;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio_util::sync::{CancellationToken, DropGuard};

/// What the API server does instead of its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// It works.
    None,
    /// It answers about every third request with this status, and not always the same one of a series.
    Status(u16),
    /// It accepts requests and does not answer them.
    Silence,
    /// It closes connections without an answer.
    Restart,
    /// It forbids paths with this text.
    Forbidden(&'static str),
}

pub struct FaultyApi {
    /// Leads an operator here, with the credentials of the kubeconfig that it replaces.
    pub kubeconfig: PathBuf,
    shared: Arc<Shared>,
    _directory: TempDir,
    _stop: DropGuard,
}

struct Shared {
    upstream: String,
    client: reqwest::Client,
    trouble: Mutex<Trouble>,
    /// Ends the answers that are being sent.
    cut: Mutex<CancellationToken>,
    requests: Mutex<Vec<String>>,
    failed: AtomicUsize,
}

impl FaultyApi {
    /// Serves in a task of the test's runtime until dropped.
    pub async fn start(kubeconfig: &Path) -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut config = Kubeconfig::read_from(kubeconfig).unwrap();
        let cluster = config.clusters[0].cluster.as_mut().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let upstream = cluster.server.replace(format!("http://{}", listener.local_addr().unwrap())).unwrap();
        let mut client = reqwest::Client::builder().no_proxy();
        if let Some(authority) = cluster.certificate_authority_data.take() {
            let authority = STANDARD.decode(authority).unwrap();
            client = client.tls_certs_only([Certificate::from_pem(&authority).unwrap()]);
        }
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("kubeconfig");
        fs::write(&path, serde_json::to_vec(&config).unwrap()).unwrap();
        let shared = Arc::new(Shared {
            upstream,
            client: client.build().unwrap(),
            trouble: Mutex::new(Trouble::None),
            cut: Mutex::default(),
            requests: Mutex::default(),
            failed: AtomicUsize::new(0),
        });
        let stop = CancellationToken::new();
        let app = axum::Router::new().fallback(answer).with_state(Arc::clone(&shared));
        let ended = stop.clone().cancelled_owned();
        tokio::spawn(async move {
            tokio::select! {
                served = axum::serve(listener, app) => served.unwrap(),
                () = ended => {}
            }
        });
        Self { kubeconfig: path, shared, _directory: directory, _stop: stop.drop_guard() }
    }

    /// Starts or ends trouble. All answers that are being sent end, watches included.
    pub fn set(&self, trouble: Trouble) {
        *self.shared.trouble.lock().unwrap() = trouble;
        std::mem::take(&mut *self.shared.cut.lock().unwrap()).cancel();
    }

    /// The requests so far, such as `GET /api/v1/namespaces/team/pods?limit=100`.
    pub fn requests(&self) -> Vec<String> {
        self.shared.requests.lock().unwrap().clone()
    }

    /// The number of requests that failed because of trouble.
    pub fn failed(&self) -> usize {
        self.shared.failed.load(Ordering::Relaxed)
    }
}

async fn answer(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let trouble = *shared.trouble.lock().unwrap();
    let cut = shared.cut.lock().unwrap().clone();
    let nth = {
        let mut requests = shared.requests.lock().unwrap();
        requests.push(format!("{} {}", request.method(), request.uri()));
        requests.len() - 1
    };
    match trouble {
        Trouble::None => forward(&shared, request, cut).await,
        Trouble::Forbidden(path) if !request.uri().path().contains(path) => {
            forward(&shared, request, cut).await
        }
        Trouble::Forbidden(_) => refused(&shared, 403),
        Trouble::Status(_) if nth % 13 % 3 != 2 => forward(&shared, request, cut).await,
        Trouble::Status(code) => refused(&shared, code),
        Trouble::Silence => {
            shared.failed.fetch_add(1, Ordering::Relaxed);
            cut.cancelled().await;
            closed()
        }
        Trouble::Restart => {
            shared.failed.fetch_add(1, Ordering::Relaxed);
            closed()
        }
    }
}

fn refused(shared: &Shared, code: u16) -> Response {
    shared.failed.fetch_add(1, Ordering::Relaxed);
    let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code});
    (StatusCode::from_u16(code).unwrap(), status.to_string()).into_response()
}

/// An answer that ends before its body, so that the connection is closed.
fn closed() -> Response {
    let broken = futures::stream::once(async { Err::<&[u8], _>(std::io::Error::other("closed")) });
    Body::from_stream(broken).into_response()
}

async fn forward(shared: &Shared, request: Request, cut: CancellationToken) -> Response {
    let (head, body) = request.into_parts();
    let body = to_bytes(body, usize::MAX).await.unwrap();
    let mut headers = head.headers;
    headers.remove("host");
    let url = format!("{}{}", shared.upstream, head.uri);
    let sent = shared.client.request(head.method, url).headers(headers).body(body).send().await;
    let Ok(answer) = sent else { return closed() };
    let mut response = Response::builder().status(answer.status());
    response.headers_mut().unwrap().extend(answer.headers().clone());
    let parts = answer.bytes_stream().map(|part| part.map_err(std::io::Error::other));
    let end = cut.cancelled_owned().map(|()| Err(std::io::Error::other("cut"))).into_stream();
    let body = futures::stream::select(parts.map(Some).chain(futures::stream::iter([None])), end.map(Some));
    // The end of the answer, and a cut, whichever comes first.
    let body = body.take_while(|part| std::future::ready(part.is_some())).filter_map(std::future::ready);
    response.body(Body::from_stream(body)).unwrap()
}
