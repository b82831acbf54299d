//! A web server on loopback that responds as a test defines, and records its requests.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::response::Response;
use http::HeaderMap;
use http::header::AUTHORIZATION;
use url::Url;

/// A request.
#[derive(Clone, Debug)]
pub struct Asked {
    /// Method and target, `GET /a?b=c`.
    pub line: String,
    /// The path without the query.
    pub path: String,
    pub authorization: Option<String>,
    pub headers: HeaderMap,
    pub body: String,
}

pub struct Server {
    pub base: Url,
    asked: Arc<Mutex<Vec<Asked>>>,
}

/// Starts a server that runs until the runtime of the test ends.
pub async fn serve(answer: impl Fn(&Asked) -> Response + Send + Sync + 'static) -> Server {
    // One process-wide provider; another test may have installed it.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}/", listener.local_addr().unwrap()).parse().unwrap();
    let (asked, answer) = (Arc::default(), Arc::new(answer));
    let seen: Arc<Mutex<Vec<Asked>>> = Arc::clone(&asked);
    let router = Router::new().fallback(async move |request: Request| {
        let (head, body) = request.into_parts();
        let authorization = head.headers.get(AUTHORIZATION);
        let request = Asked {
            line: format!("{} {}", head.method, head.uri),
            path: head.uri.path().to_owned(),
            headers: head.headers.clone(),
            authorization: authorization.map(|value| value.to_str().unwrap().to_owned()),
            body: String::from_utf8(to_bytes(body, 1 << 20).await.unwrap().to_vec()).unwrap(),
        };
        seen.lock().unwrap().push(request.clone());
        answer(&request)
    });
    tokio::spawn(async move { axum::serve(listener, router).await });
    Server { base, asked }
}

impl Asked {
    /// A header's value; empty if there is none.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }
}

impl Server {
    pub fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    /// The lines of all requests.
    pub fn lines(&self) -> Vec<String> {
        self.asked().into_iter().map(|asked| asked.line).collect()
    }

    /// The number of requests whose path contains `part`.
    pub fn count(&self, part: &str) -> usize {
        self.asked().iter().filter(|asked| asked.path.contains(part)).count()
    }

    /// Host and port.
    pub fn host(&self) -> String {
        self.base.authority().to_owned()
    }
}

pub fn ok(body: impl Into<Body>) -> Response {
    Response::new(body.into())
}

pub fn status(code: u16) -> Response {
    Response::builder().status(code).body(Body::empty()).unwrap()
}

pub fn redirect(to: &str) -> Response {
    Response::builder().status(302).header("location", to).body(Body::empty()).unwrap()
}
