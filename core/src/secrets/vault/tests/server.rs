//! A server whose answers a test determines.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::to_bytes;
use axum::extract::Request;
use axum::response::Response;
use http::HeaderMap;
use serde_json::Value;
use tokio::net::TcpListener;

pub struct Server {
    pub url: String,
    log: Arc<Mutex<Vec<Seen>>>,
}

/// A request that arrived.
#[derive(Clone, Debug)]
pub struct Seen {
    /// Method, and path as it was encoded: `GET /v1/secret/data/a`.
    pub line: String,
    headers: HeaderMap,
    pub body: String,
}

impl Seen {
    /// Returns the text of a header; empty if it is absent.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    pub fn is_login(&self) -> bool {
        self.line.contains("/login")
    }
}

pub struct Reply {
    status: u16,
    headers: Vec<(&'static str, String)>,
    body: Vec<u8>,
}

impl Reply {
    pub fn json(status: u16, body: &Value) -> Self {
        Self::text(status, body.to_string())
    }

    pub fn text(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self { status, headers: Vec::new(), body: body.into() }
    }

    pub fn with(mut self, header: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((header, value.into()));
        self
    }

    pub fn redirect(status: u16, location: impl Into<String>) -> Self {
        Self::text(status, "").with("location", location)
    }
}

impl Server {
    /// Starts a server. `answer` gets the request and the number of earlier requests.
    pub async fn start(answer: impl Fn(&Seen, usize) -> Reply + Send + Sync + 'static) -> Self {
        let log: Arc<Mutex<Vec<Seen>>> = Arc::default();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (seen_by, answer) = (Arc::clone(&log), Arc::new(answer));
        let app = Router::new().fallback(move |request: Request| {
            let (log, answer) = (Arc::clone(&seen_by), Arc::clone(&answer));
            async move {
                let (head, body) = request.into_parts();
                let body = to_bytes(body, 2 << 20).await.unwrap();
                let seen = Seen {
                    line: format!("{} {}", head.method, head.uri),
                    headers: head.headers,
                    body: String::from_utf8(body.to_vec()).unwrap(),
                };
                let before = {
                    let mut log = log.lock().unwrap();
                    log.push(seen.clone());
                    log.len() - 1
                };
                let Reply { status, headers, body } = answer(&seen, before);
                let mut response = Response::builder().status(status);
                for (name, value) in headers {
                    response = response.header(name, value);
                }
                response.body(axum::body::Body::from(body)).unwrap()
            }
        });
        tokio::spawn(async move { axum::serve(listener, app).await });
        Self { url, log }
    }

    /// Returns the requests that have arrived.
    pub fn log(&self) -> Vec<Seen> {
        self.log.lock().unwrap().clone()
    }

    pub fn lines(&self) -> Vec<String> {
        self.log().into_iter().map(|seen| seen.line).collect()
    }

    pub fn logins(&self) -> usize {
        self.log().iter().filter(|seen| seen.is_login()).count()
    }
}
