//! A REST server on loopback that notes what it is asked.
#![allow(dead_code, reason = "no test uses all of it")]

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Body;
use axum::response::{IntoResponse, Response};
use declarest_core::server::{BaseUrl, Settings};
use http::{HeaderMap, Method, StatusCode};
use http_body_util::BodyExt;

/// One request.
#[derive(Clone, Debug)]
pub struct Seen {
    pub method: Method,
    /// As it came, encoded, with its query.
    pub target: String,
    pub headers: HeaderMap,
    pub body: String,
}

impl Seen {
    /// A header's value; empty if there is none.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }
}

/// Runs until it is dropped.
pub struct Recorder {
    pub address: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
    serving: tokio::task::JoinHandle<()>,
}

impl Recorder {
    /// Answers each request with what `answer` says.
    pub async fn start(answer: impl Fn(&Seen) -> Response + Send + Sync + 'static) -> Self {
        // Fails where another test was first, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (noted, answer) = (Arc::clone(&seen), Arc::new(answer));
        let router = Router::new().fallback(move |request: axum::extract::Request| {
            let (noted, answer) = (Arc::clone(&noted), Arc::clone(&answer));
            async move {
                let request = read(request).await;
                let response = answer(&request);
                noted.lock().unwrap().push(request);
                response
            }
        });
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let serving = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { address, seen, serving }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn settings(&self) -> Settings {
        Settings::new(BaseUrl::parse(&self.url()).unwrap())
    }

    pub fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    /// What was asked, such as `GET /x`.
    pub fn lines(&self) -> Vec<String> {
        self.seen().iter().map(|seen| format!("{} {}", seen.method, seen.target)).collect()
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn read(request: axum::extract::Request) -> Seen {
    let (head, body) = request.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    Seen {
        method: head.method,
        target: head.uri.to_string(),
        headers: head.headers,
        body: String::from_utf8(body.to_vec()).unwrap(),
    }
}

pub fn json(status: u16, text: impl Into<String>) -> Response {
    let body = Body::from(text.into());
    (StatusCode::from_u16(status).unwrap(), [("content-type", "application/json")], body).into_response()
}
