//! A REST server that each test scripts: a closure answers requests over a store, and the store is the judge.
#![allow(dead_code, reason = "each binary that includes this module uses a part of it")]
#![allow(clippy::allow_attributes, clippy::unwrap_used, reason = "a fixture fails its test")]

use std::collections::BTreeMap;
use std::fmt;
use std::net::TcpListener;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Method, Uri};
use axum::response::Response;
use percent_encoding::percent_decode_str;
use serde_json::{Value, json};
use tokio::sync::oneshot;

const BODY_LIMIT: usize = 4 << 20;

/// A request as it arrived.
#[derive(Clone, Debug)]
pub struct Request {
    pub method: String,
    /// In plain text.
    pub path: String,
    pub query: BTreeMap<String, String>,
    pub headers: HeaderMap,
    pub body: Value,
    /// Whether no other write to the same path was open when this one arrived.
    pub alone: bool,
    /// Of the answer, once there is one.
    pub status: u16,
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.method, self.path)
    }
}

impl Request {
    pub fn is(&self, method: &str, path: &str) -> bool {
        self.method == method && self.path == path
    }

    pub fn is_write(&self) -> bool {
        !matches!(self.method.as_str(), "GET" | "HEAD" | "OPTIONS")
    }

    pub fn segments(&self) -> Vec<&str> {
        self.path.split('/').filter(|segment| !segment.is_empty()).collect()
    }

    /// The answer of a plain REST API.
    pub fn rest(&self, store: &mut Store, ids: Ids) -> Answer {
        match self.method.as_str() {
            "GET" => match store.get(&self.path) {
                Some(resource) => Answer::json(200, resource),
                None if store.is_collection(&self.path) => {
                    Answer::json(200, &Value::Array(store.members(&self.path)))
                }
                None => Answer::missing(),
            },
            "POST" => self.create(store, ids),
            "PUT" | "PATCH" => self.change(store, ids),
            "DELETE" if store.remove(&self.path) => Answer::empty(204),
            "DELETE" => Answer::missing(),
            _ => Answer::json(405, &json!({"error": "unknown method"})),
        }
    }

    /// Adds a member to the collection at the request's path.
    pub fn create(&self, store: &mut Store, ids: Ids) -> Answer {
        if !store.is_collection(&self.path) {
            return Answer::missing();
        }
        let mut body = self.body.clone();
        let id = match ids {
            Ids::Stated(member) => match body[member].as_str() {
                Some(id) => id.to_owned(),
                None => return Answer::json(422, &json!({"error": format!("no {member}")})),
            },
            Ids::Given => {
                let id = store.next_id();
                body["id"] = json!(id);
                id
            }
        };
        let path = format!("{}/{id}", self.path);
        if store.get(&path).is_some() {
            return Answer::json(409, &json!({"error": "it exists"}));
        }
        store.put(&path, body.clone());
        Answer::json(201, &body).header("location", &path)
    }

    /// Replaces the resource at the request's path, which keeps its id.
    pub fn change(&self, store: &mut Store, ids: Ids) -> Answer {
        let Some(old) = store.get(&self.path).cloned() else { return Answer::missing() };
        let mut new = if self.method == "PATCH" { old.clone() } else { json!({}) };
        for (member, value) in self.body.as_object().into_iter().flatten() {
            new[member] = value.clone();
        }
        let id = match ids {
            Ids::Stated(member) => member,
            Ids::Given => "id",
        };
        if let Some(kept) = old.get(id) {
            new[id] = kept.clone();
        }
        store.put(&self.path, new.clone());
        Answer::json(200, &new)
    }
}

/// Who gives the ids of a collection.
#[derive(Clone, Copy, Debug)]
pub enum Ids {
    /// The body states it in this member.
    Stated(&'static str),
    /// The server gives it and shows it as `id`.
    Given,
}

/// What the server answers.
#[derive(Clone, Debug)]
pub struct Answer {
    status: u16,
    headers: Vec<(String, String)>,
    body: String,
    delay: Duration,
}

impl Answer {
    pub fn text(status: u16, content_type: &str, body: &str) -> Self {
        let headers = vec![("content-type".to_owned(), content_type.to_owned())];
        Self { status, headers, body: body.to_owned(), delay: Duration::ZERO }
    }

    pub fn json(status: u16, body: &Value) -> Self {
        Self::text(status, "application/json", &body.to_string())
    }

    pub fn html(status: u16) -> Self {
        Self::text(status, "text/html; charset=utf-8", "<!doctype html><title>Console</title><p>Welcome.")
    }

    pub fn empty(status: u16) -> Self {
        Self { status, headers: Vec::new(), body: String::new(), delay: Duration::ZERO }
    }

    pub fn missing() -> Self {
        Self::json(404, &json!({"error": "not found"}))
    }

    pub fn redirect(location: &str) -> Self {
        Self::empty(302).header("location", location)
    }

    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The same status and headers, and nothing else to read.
    pub fn without_body(mut self) -> Self {
        self.headers.retain(|(name, _)| name != "content-type");
        Self { body: String::new(), ..self }
    }

    pub fn without_headers(self) -> Self {
        Self { headers: Vec::new(), ..self }
    }

    /// The request takes effect at once, its answer comes later.
    pub fn after(self, delay: Duration) -> Self {
        Self { delay, ..self }
    }
}

/// What the server holds.
#[derive(Debug, Default)]
pub struct Store {
    resources: BTreeMap<String, Value>,
    collections: Vec<String>,
    ids: u32,
    /// How the closure is to answer from now on, as the test and the closure agree.
    pub mode: String,
}

impl Store {
    /// Paths that are collections even without members; `*` stands for one segment of a resource that exists.
    pub fn with_collections(collections: &[&str]) -> Self {
        Self {
            collections: collections.iter().map(|&path| path.to_owned()).collect(),
            ids: 6,
            ..Self::default()
        }
    }

    /// `n7`, `n8` and so on.
    pub fn next_id(&mut self) -> String {
        self.ids += 1;
        format!("n{}", self.ids)
    }

    pub fn get(&self, path: &str) -> Option<&Value> {
        self.resources.get(path)
    }

    /// The paths of all resources.
    pub fn paths(&self) -> impl Iterator<Item = &String> {
        self.resources.keys()
    }

    pub fn put(&mut self, path: &str, resource: Value) {
        self.resources.insert(path.to_owned(), resource);
    }

    /// Removes a resource with what is below it. Says whether it was there.
    pub fn remove(&mut self, path: &str) -> bool {
        let below = format!("{path}/");
        let removed = self.resources.remove(path).is_some();
        self.resources.retain(|other, _| !other.starts_with(&below));
        removed
    }

    pub fn members(&self, collection: &str) -> Vec<Value> {
        let below = format!("{collection}/");
        let direct = |path: &str| {
            path.strip_prefix(&below).is_some_and(|name| !name.is_empty() && !name.contains('/'))
        };
        self.resources.iter().filter(|(path, _)| direct(path)).map(|(_, resource)| resource.clone()).collect()
    }

    pub fn is_collection(&self, path: &str) -> bool {
        self.collections.iter().any(|pattern| self.matches(pattern, path))
    }

    fn matches(&self, pattern: &str, path: &str) -> bool {
        let (pattern, segments): (Vec<&str>, Vec<&str>) =
            (pattern.split('/').collect(), path.split('/').collect());
        let fits = |index: usize| {
            pattern[index] == segments[index]
                || pattern[index] == "*" && self.get(&segments[..=index].join("/")).is_some()
        };
        pattern.len() == segments.len() && (0..pattern.len()).all(fits)
    }
}

type Handler = dyn Fn(&Request, &mut Store) -> Answer + Send + Sync;

struct Shared {
    handler: Box<Handler>,
    store: Mutex<Store>,
    log: Mutex<Vec<Request>>,
    /// Paths of the writes that are open.
    open: Mutex<Vec<String>>,
}

/// A running server; dropping it ends it.
pub struct ApiServer {
    shared: Arc<Shared>,
    url: String,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ApiServer {
    /// Serves what `handler` answers, over a store with these collections.
    pub fn start(
        collections: &[&str],
        handler: impl Fn(&Request, &mut Store) -> Answer + Send + Sync + 'static,
    ) -> Self {
        let shared = Arc::new(Shared {
            handler: Box::new(handler),
            store: Mutex::new(Store::with_collections(collections)),
            log: Mutex::default(),
            open: Mutex::default(),
        });
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (stop, stopped) = oneshot::channel();
        let thread = serve(listener, Arc::clone(&shared), stopped);
        Self { shared, url, stop: Some(stop), thread: Some(thread) }
    }

    /// A plain REST API.
    pub fn rest(collections: &[&str], ids: Ids) -> Self {
        Self::start(collections, move |request, store| request.rest(store, ids))
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    pub fn get(&self, path: &str) -> Option<Value> {
        lock(&self.shared.store).get(path).cloned()
    }

    /// All that is stored, by path.
    pub fn all(&self) -> BTreeMap<String, Value> {
        lock(&self.shared.store).resources.clone()
    }

    /// The paths of all that is stored.
    pub fn paths(&self) -> Vec<String> {
        lock(&self.shared.store).resources.keys().cloned().collect()
    }

    /// Changes the store as another user of the server does; not a request.
    pub fn put(&self, path: &str, resource: Value) {
        lock(&self.shared.store).put(path, resource);
    }

    /// Removes from the store as another user of the server does; not a request.
    pub fn remove(&self, path: &str) {
        assert!(lock(&self.shared.store).remove(path), "{path} is not there");
    }

    /// What the closure finds in [`Store::mode`] from now on.
    pub fn mode(&self, mode: &str) {
        mode.clone_into(&mut lock(&self.shared.store).mode);
    }

    /// Every request since the start, or since the log was cleared.
    pub fn log(&self) -> Vec<Request> {
        lock(&self.shared.log).clone()
    }

    pub fn clear_log(&self) {
        lock(&self.shared.log).clear();
    }

    /// The requests that change something or tried to, such as `PUT /shops/rio 200`.
    pub fn writes(&self) -> Vec<String> {
        let log = self.log();
        let writes = log.iter().filter(|request| request.is_write());
        writes.map(|request| format!("{request} {}", request.status)).collect()
    }

    /// How many requests with this method there were.
    pub fn count(&self, method: &str) -> usize {
        self.log().iter().filter(|request| request.method == method).count()
    }
}

impl Drop for ApiServer {
    fn drop(&mut self) {
        if let (Some(stop), Some(thread)) = (self.stop.take(), self.thread.take()) {
            let _ = stop.send(());
            let _ = thread.join();
        }
    }
}

fn serve(listener: TcpListener, shared: Arc<Shared>, stopped: oneshot::Receiver<()>) -> JoinHandle<()> {
    listener.set_nonblocking(true).unwrap();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            let router = Router::new().fallback(answer).with_state(shared);
            tokio::select! {
                _ = axum::serve(listener, router) => {}
                _ = stopped => {}
            }
        });
    })
}

async fn answer(
    State(shared): State<Arc<Shared>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let body = to_bytes(body, BODY_LIMIT).await.unwrap();
    let text = String::from_utf8_lossy(&body).into_owned();
    let mut request = Request {
        method: method.to_string(),
        path: percent_decode_str(uri.path()).decode_utf8_lossy().into_owned(),
        query: query(uri.query().unwrap_or_default()),
        headers,
        body: serde_json::from_slice(&body).unwrap_or(Value::String(text)),
        alone: true,
        status: 0,
    };
    let open = request.is_write().then(|| Open::new(&shared, &request.path));
    request.alone = open.as_ref().is_none_or(|open| open.alone);
    let number = {
        let mut log = lock(&shared.log);
        log.push(request.clone());
        log.len() - 1
    };
    let answer = (shared.handler)(&request, &mut lock(&shared.store));
    tokio::time::sleep(answer.delay).await;
    drop(open);
    if let Some(logged) = lock(&shared.log).get_mut(number) {
        logged.status = answer.status;
    }
    let mut response = Response::builder().status(answer.status);
    for (name, value) in &answer.headers {
        response = response.header(name, value);
    }
    response.body(Body::from(answer.body)).unwrap()
}

/// A write as long as it is open.
struct Open {
    shared: Arc<Shared>,
    path: String,
    alone: bool,
}

impl Open {
    fn new(shared: &Arc<Shared>, path: &str) -> Self {
        let mut open = lock(&shared.open);
        let alone = !open.iter().any(|other| other == path);
        open.push(path.to_owned());
        Self { shared: Arc::clone(shared), path: path.to_owned(), alone }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        let mut open = lock(&self.shared.open);
        if let Some(index) = open.iter().position(|other| *other == self.path) {
            open.swap_remove(index);
        }
    }
}

fn query(text: &str) -> BTreeMap<String, String> {
    let plain = |text: &str| percent_decode_str(&text.replace('+', " ")).decode_utf8_lossy().into_owned();
    let pairs = text.split('&').filter(|pair| !pair.is_empty());
    let split = pairs.map(|pair| pair.split_once('=').unwrap_or((pair, "")));
    split.map(|(name, value)| (plain(name), plain(value))).collect()
}
