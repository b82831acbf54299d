//! A server that follows a script, and records requests that are not in it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::response::Response;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use declarest_core::payload::Value;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, Method, StatusCode};
use serde_json::Value as Json;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::table::{Case, Exchange, MediaTypes, Table};

pub struct Server {
    pub base_url: String,
    script: Arc<Mutex<Script>>,
    task: JoinHandle<()>,
}

struct Script {
    base_url: String,
    base_path: String,
    defaults: MediaTypes,
    expected: VecDeque<Exchange>,
    reads: BTreeMap<String, Json>,
    /// Whether a read that is not in the script is an error. Otherwise resources of the case are not found, and all
    /// lists are empty.
    strict: bool,
    /// The last segments of the addresses of these resources.
    names: Vec<String>,
    /// Whether a write was answered.
    wrote: bool,
    problems: Vec<String>,
}

/// A received request.
struct Received {
    method: Method,
    /// As in [`Exchange::send`].
    line: String,
    /// Without the query.
    path: String,
    headers: HeaderMap,
    body: Bytes,
}

impl Server {
    pub async fn start(table: &Table, case: &Case) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base_path = table.base_path.trim_end_matches('/');
        let base_url = format!("http://{}{base_path}", listener.local_addr().unwrap());
        let script = Arc::new(Mutex::new(Script {
            base_url: base_url.clone(),
            base_path: base_path.to_owned(),
            defaults: table.defaults.clone(),
            expected: case.requests.iter().cloned().collect(),
            reads: case.server.clone(),
            strict: case.operation.is_conversation(),
            names: case.names(),
            wrote: false,
            problems: Vec::new(),
        }));
        let router = Router::new().fallback(answer).with_state(Arc::clone(&script));
        let task = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { base_url, script, task }
    }

    /// Returns the problems of the requests, including missing requests.
    pub fn finish(self) -> Vec<String> {
        let mut script = self.script.lock().unwrap();
        let mut problems = std::mem::take(&mut script.problems);
        let missing = script.expected.iter().filter(|exchange| !exchange.optional);
        problems.extend(missing.map(|exchange| format!("{}: was not sent", exchange.send)));
        problems
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn answer(State(script): State<Arc<Mutex<Script>>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body = to_bytes(body, usize::MAX).await.unwrap();
    let mut script = script.lock().unwrap();
    let Some(path) = parts.uri.path().strip_prefix(script.base_path.as_str()) else {
        script.problems.push(format!("{} {}: is not below the base URL", parts.method, parts.uri));
        return response(StatusCode::INTERNAL_SERVER_ERROR, None);
    };
    let path = if path.is_empty() { "/" } else { path };
    let query = parts.uri.query().map(|query| format!("?{query}")).unwrap_or_default();
    let received = Received {
        line: format!("{} {path}{query}", parts.method),
        path: path.to_owned(),
        method: parts.method,
        headers: parts.headers,
        body,
    };
    script.answer(&received)
}

impl Script {
    fn answer(&mut self, received: &Received) -> Response {
        let place = self.expected.iter().position(|exchange| exchange.send == received.line);
        let skipped = |place: &usize| self.expected.iter().take(*place).all(|exchange| exchange.optional);
        if let Some(place) = place.filter(skipped) {
            let exchange = self.expected.remove(place).unwrap();
            self.expected.drain(..place);
            self.wrote |= received.method != Method::GET;
            let problems = self.compare(&exchange, received);
            self.problems.extend(problems.into_iter().map(|problem| format!("{}: {problem}", received.line)));
            return self.follow(&exchange);
        }
        let read = self.reads.get(&received.path).filter(|_| received.method == Method::GET);
        match read {
            Some(Json::Number(status)) => {
                let status = status.as_u64().and_then(|status| u16::try_from(status).ok()).unwrap();
                response(StatusCode::from_u16(status).unwrap(), None)
            }
            Some(body) => response(StatusCode::OK, Some(body)),
            None if received.method == Method::GET && !self.strict => {
                let name = received.path.rsplit('/').next().unwrap_or_default();
                if self.names.iter().any(|known| known == name) {
                    // The scripts do not store created resources.
                    let status = if self.wrote { StatusCode::FORBIDDEN } else { StatusCode::NOT_FOUND };
                    response(status, None)
                } else {
                    response(StatusCode::OK, Some(&Json::Array(Vec::new())))
                }
            }
            None => {
                let awaited = self.expected.front().map_or("nothing", |exchange| exchange.send.as_str());
                self.problems.push(format!("{}: was sent, expected was {awaited}", received.line));
                response(StatusCode::INTERNAL_SERVER_ERROR, None)
            }
        }
    }

    fn follow(&self, exchange: &Exchange) -> Response {
        let default = if exchange.json.is_some() { 200 } else { 204 };
        let status = StatusCode::from_u16(exchange.status.unwrap_or(default)).unwrap();
        let mut response = response(status, exchange.json.as_ref());
        for (name, value) in &exchange.headers {
            let value = value.replace("{{server}}", &self.base_url);
            response.headers_mut().insert(name.parse::<http::HeaderName>().unwrap(), value.parse().unwrap());
        }
        response
    }

    fn compare(&self, exchange: &Exchange, received: &Received) -> Vec<String> {
        let mut problems = Vec::new();
        let expects_body = exchange.body.is_some() || exchange.text.is_some() || exchange.base64.is_some();
        let content_type = exchange.content_type.as_ref().unwrap_or(&self.defaults.content_type);
        let headers = [
            (ACCEPT, Some(exchange.accept.as_ref().unwrap_or(&self.defaults.accept))),
            (CONTENT_TYPE, expects_body.then_some(content_type)),
        ];
        for (name, expected) in headers {
            let value = received.headers.get(&name).map(|value| value.to_str().unwrap());
            if value != expected.map(String::as_str) {
                problems.push(format!("{name} is {value:?}, expected was {expected:?}"));
            }
        }
        problems.extend(body_problem(exchange, &received.body));
        problems
    }
}

fn body_problem(exchange: &Exchange, body: &Bytes) -> Option<String> {
    if let Some(expected) = &exchange.body {
        let received: Option<Json> = serde_json::from_slice(body).ok();
        let same = received.is_some_and(|received| value(&received) == value(expected));
        let shown = String::from_utf8_lossy(body);
        return (!same).then(|| format!("the body is {shown}, expected was {expected}"));
    }
    let expected = match (&exchange.text, &exchange.base64) {
        (Some(text), _) => text.clone().into_bytes(),
        (None, Some(base64)) => STANDARD.decode(base64).unwrap(),
        (None, None) => Vec::new(),
    };
    (expected != body[..])
        .then(|| format!("the body is {:?}, expected was {:?}", body, Bytes::from(expected)))
}

/// Converts a value, so that comparisons do not depend on its spelling.
pub fn value(json: &Json) -> Value {
    Value::from_json(json)
}

fn response(status: StatusCode, body: Option<&Json>) -> Response {
    let mut response = Response::builder().status(status);
    if body.is_some() {
        response = response.header(CONTENT_TYPE, "application/json");
    }
    response.body(body.map_or_else(Body::empty, |body| Body::from(body.to_string()))).unwrap()
}
