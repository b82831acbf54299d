//! The HTTP face of the store.

use std::sync::Arc;
use std::time::Instant;

use axum::Json;
use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::State;
use axum::http::header::{ALLOW, CONTENT_TYPE, LOCATION, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use percent_encoding::percent_decode_str;
use serde_json::{Value, json};

use super::faults::{CUT, Moment};
use super::store::Refusal;
use super::{Shared, lock, pattern, versions};

/// Larger bodies are refused: everything is kept in memory.
const BODY_LIMIT: usize = 4 << 20;

pub fn router(shared: Arc<Shared>) -> Router {
    let mut router = Router::new();
    if shared.config.control {
        router = router
            .route("/_control/counts", get(control_counts))
            .route("/_control/log", get(control_log))
            .route("/_control/duplicates", get(control_duplicates))
            .route("/_control/reset", post(control_reset));
    }
    router.fallback(answer).with_state(shared)
}

async fn control_counts(State(shared): State<Arc<Shared>>) -> Json<Value> {
    let journal = lock(&shared.journal);
    let mut counts = journal.counts().to_json();
    counts["peak"] = json!(journal.peak());
    Json(counts)
}

async fn control_log(State(shared): State<Arc<Shared>>) -> Json<Value> {
    let log = lock(&shared.journal).log();
    let lines = log.iter().map(|request| {
        json!({
            "sequence": request.sequence,
            "method": request.method,
            "path": request.path,
            "status": request.status,
        })
    });
    Json(lines.collect())
}

async fn control_duplicates(State(shared): State<Arc<Shared>>) -> Json<Value> {
    let duplicates = lock(&shared.store).duplicates();
    let entries =
        duplicates.iter().map(|d| json!({"collection": d.collection, "name": d.name, "paths": d.paths}));
    Json(entries.collect())
}

async fn control_reset(State(shared): State<Arc<Shared>>) -> StatusCode {
    lock(&shared.journal).reset();
    StatusCode::NO_CONTENT
}

/// Takes the request off the count of open ones, also when the client hangs up.
struct Open(Arc<Shared>);

impl Drop for Open {
    fn drop(&mut self) {
        lock(&self.0.journal).leave();
    }
}

async fn answer(
    State(shared): State<Arc<Shared>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let arrived = Instant::now();
    let path = decode(uri.path());
    let logged = path.clone().unwrap_or_else(|| uri.path().to_owned());
    let sequence = lock(&shared.journal).arrive(method.as_str(), &logged);
    let _open = Open(shared.clone());
    let latency = lock(&shared.rules).latency;
    if !latency.is_zero() {
        shared.pace.wait_until(arrived + latency).await;
    }
    let holds = lock(&shared.rules).holds(method.as_str(), &logged);
    for mut hold in holds {
        // Nothing is ever sent: this waits for the close.
        while hold.changed().await.is_ok() {}
    }
    let response = match (path, to_bytes(body, BODY_LIMIT).await) {
        (Some(path), Ok(body)) => decide(&shared, sequence, &method, &path, &headers, &body),
        (None, _) => refused(400, "the path is not UTF-8 or hides a slash in a segment"),
        (_, Err(_)) => refused(413, "the body is too large"),
    };
    lock(&shared.journal).answer(sequence, response.status().as_u16());
    response
}

/// Credentials first, then the failures asked for, then what the method means.
fn decide(
    shared: &Shared,
    sequence: u64,
    method: &Method,
    path: &str,
    headers: &HeaderMap,
    body: &Bytes,
) -> Response {
    if !lock(&shared.rules).admits(headers) {
        let mut response = refused(401, "credentials are missing or wrong");
        response
            .headers_mut()
            .insert(WWW_AUTHENTICATE, HeaderValue::from_static("Basic realm=\"rest-server\""));
        return response;
    }
    let body = if body.is_empty() { None } else { Some(serde_json::from_slice::<Value>(body)) };
    if let (true, Some(Ok(body))) = (shared.config.log_bodies, &body) {
        lock(&shared.journal).note_body(sequence, body);
    }
    let failure = lock(&shared.rules).strike(method.as_str(), path);
    if let Some((status, Moment::Before)) = failure {
        return failed(status, "injected failure");
    }
    if shared.config.etags && !versions::admits(headers, lock(&shared.store).text(path).as_deref()) {
        return refused(412, "the resource has another version");
    }
    let mut response = match body {
        Some(Err(error)) => refused(400, &format!("the body is not JSON: {error}")),
        None => perform(shared, method, path, Value::Null),
        Some(Ok(body)) => perform(shared, method, path, body),
    };
    if let Some((status, _)) = failure {
        return failed(status, "injected failure after the effect");
    }
    if shared.config.etags && method == Method::GET {
        versions::state(response.headers_mut(), lock(&shared.store).text(path).as_deref());
    }
    response
}

fn perform(shared: &Shared, method: &Method, path: &str, body: Value) -> Response {
    let paginated = lock(&shared.rules).paginated.as_deref() == Some(path);
    let mut store = lock(&shared.store);
    let result = match method.as_str() {
        "GET" if paginated => Ok(Json(json!({"items": [], "hasMore": true})).into_response()),
        "GET" | "HEAD" if path == "/" => Ok(Json(json!({"status": "ok"})).into_response()),
        "GET" | "HEAD" => match store.text(path).or_else(|| store.list(path)) {
            Some(text) => Ok(json_text(StatusCode::OK, text)),
            None => Err(Refusal { status: 404, message: format!("nothing at {path}") }),
        },
        "POST" => store.create(path, body).map(|created| {
            let mut response = json_text(StatusCode::CREATED, created.body);
            if let Ok(location) = HeaderValue::from_str(&encode(&created.path)) {
                response.headers_mut().insert(LOCATION, location);
            }
            response
        }),
        "PUT" => store.replace(path, body).map(|(body, created)| {
            json_text(if created { StatusCode::CREATED } else { StatusCode::OK }, body)
        }),
        "PATCH" => store.patch(path, &body).map(|body| json_text(StatusCode::OK, body)),
        "DELETE" => store.delete(path).map(|()| StatusCode::NO_CONTENT.into_response()),
        _ => {
            let mut response = refused(405, "unknown method");
            response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, POST, PUT, PATCH, DELETE"));
            Ok(response)
        }
    };
    result.unwrap_or_else(|refusal| refused(refusal.status, &refusal.message))
}

fn failed(status: u16, message: &str) -> Response {
    if status == CUT {
        let broken = std::io::Error::from(std::io::ErrorKind::ConnectionReset);
        return Body::from_stream(futures::stream::iter([Err::<Bytes, _>(broken)])).into_response();
    }
    refused(status, message)
}

fn json_text(status: StatusCode, text: Bytes) -> Response {
    (status, [(CONTENT_TYPE, "application/json")], text).into_response()
}

fn refused(status: u16, message: &str) -> Response {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    (status, Json(json!({"error": message}))).into_response()
}

/// The normalised path in plain text. None if a segment is not UTF-8 or holds an encoded slash.
fn decode(path: &str) -> Option<String> {
    let mut decoded = String::new();
    for segment in pattern::segments(path) {
        let segment = percent_decode_str(segment).decode_utf8().ok()?;
        if segment.contains('/') {
            return None;
        }
        decoded.push('/');
        decoded.push_str(&segment);
    }
    Some(if decoded.is_empty() { "/".to_owned() } else { decoded })
}

fn encode(path: &str) -> String {
    let encode = |segment| percent_encoding::utf8_percent_encode(segment, percent_encoding::NON_ALPHANUMERIC);
    pattern::segments(path)
        .into_iter()
        .fold(String::new(), |text, segment| format!("{text}/{}", encode(segment)))
}
