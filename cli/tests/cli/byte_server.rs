//! A server with one resource, which it returns as bytes with a given media type.

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse as _, Response};
use std::sync::{Arc, Mutex};

use crate::environment::Home;

/// The media type and the body of a request.
type Written = (String, String);

struct Shown {
    path: &'static str,
    media_type: String,
    body: Vec<u8>,
    written: Mutex<Option<Written>>,
}

/// Answers on a port of its own until it is dropped.
pub struct ByteServer {
    url: String,
    shown: Arc<Shown>,
    _runtime: tokio::runtime::Runtime,
}

impl ByteServer {
    /// The resource `path`, with this content. All other paths are answered with 404.
    pub fn new(path: &'static str, media_type: &str, body: impl AsRef<[u8]>) -> Self {
        let (media_type, body) = (media_type.to_owned(), body.as_ref().to_vec());
        let shown = Arc::new(Shown { path, media_type, body, written: Mutex::default() });
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let router = Router::new().fallback(answer).with_state(Arc::clone(&shown));
        runtime.spawn(async { axum::serve(listener, router).await });
        Self { url, shown, _runtime: runtime }
    }

    /// A home directory whose context is for this server and the repository in `repo`.
    pub fn home(&self) -> Home {
        let home = Home::with_catalogue(&format!(
            "currentContext: dev\ncontexts:\n- name: dev\n  repository: {{filesystem: {{baseDir: '<home>/repo'}}}}\n  \
             managedServer: {{http: {{url: '{}', auth: {{customHeaders: [{{header: K, value: v}}]}}}}}}\n",
            self.url
        ));
        std::fs::create_dir(home.path("repo")).unwrap();
        home
    }

    /// The media type and the body of the last write.
    pub fn written(&self) -> Written {
        self.shown.written.lock().unwrap().clone().unwrap()
    }
}

async fn answer(
    State(shown): State<Arc<Shown>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    if uri.path() != shown.path {
        return StatusCode::NOT_FOUND.into_response();
    }
    if method != Method::GET {
        let media_type = headers.get(header::CONTENT_TYPE).map(|value| value.to_str().unwrap().to_owned());
        *shown.written.lock().unwrap() =
            Some((media_type.unwrap_or_default(), String::from_utf8_lossy(&body).into_owned()));
    }
    ([(header::CONTENT_TYPE, shown.media_type.clone())], shown.body.clone()).into_response()
}
