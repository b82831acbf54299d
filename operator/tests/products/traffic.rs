//! A proxy in front of a product that records each request.

use std::fmt;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::Request;
use axum::response::Response;
use tokio::net::TcpListener;

use crate::product::client;

#[derive(Clone, PartialEq)]
pub struct Sent {
    pub method: String,
    /// Path and query.
    pub target: String,
    body: Bytes,
    pub status: u16,
}

impl fmt::Debug for Sent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.method, self.target, self.status)
    }
}

impl Sent {
    fn is_token(&self) -> bool {
        self.target.ends_with("/token")
    }

    pub fn is_write(&self) -> bool {
        !matches!(self.method.as_str(), "GET" | "LIST") && !self.is_token()
    }

    /// Whether this deletes a resource that `run` creates again, because an attribute cannot be changed.
    fn replaces(&self, run: &[Self]) -> bool {
        let creates = |other: &Self| {
            let place = if other.method == "POST" { parent(self.path()) } else { self.path() };
            matches!(other.method.as_str(), "POST" | "PUT") && other.path() == place
        };
        self.method == "DELETE" && run.iter().any(creates)
    }

    /// Whether a write changes what the read `other` shows: the same resource, its collection or a member. A create also
    /// changes what is below the new resource, because servers create members together with it.
    fn concerns(&self, other: &Self) -> bool {
        let (written, read) = (self.path(), other.path());
        let is_below = read.strip_prefix(written).is_some_and(|rest| rest.starts_with('/'));
        written == read
            || parent(written) == read
            || parent(read) == written
            || self.method == "POST" && is_below
    }

    /// Whether the read `other` is that of a resource in a collection with the name of this one's, or of its list.
    fn is_beside(&self, other: &Self) -> bool {
        let collection = parent(self.path()).rsplit('/').next();
        let read = other.path();
        [read, parent(read)].iter().any(|place| place.rsplit('/').next() == collection)
    }

    fn path(&self) -> &str {
        self.target.split('?').next().unwrap_or_default()
    }
}

fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(parent, _)| parent)
}

pub struct Traffic {
    pub origin: String,
    sent: Arc<Mutex<Vec<Sent>>>,
}

impl Traffic {
    /// Forwards to the product at `upstream`.
    pub async fn start(upstream: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let origin = format!("http://{}", listener.local_addr().unwrap());
        let sent = Arc::new(Mutex::new(Vec::new()));
        let (client, upstream, log) = (client(), upstream.to_owned(), Arc::clone(&sent));
        let app = Router::new().fallback(move |request: Request| {
            forward(client.clone(), upstream.clone(), Arc::clone(&log), request)
        });
        tokio::spawn(async move { axum::serve(listener, app).await });
        Self { origin, sent }
    }

    /// The requests since the last call.
    pub fn take(&self) -> Vec<Sent> {
        std::mem::take(&mut self.sent.lock().unwrap())
    }
}

async fn forward(
    client: reqwest::Client,
    upstream: String,
    log: Arc<Mutex<Vec<Sent>>>,
    request: Request,
) -> Response {
    let (parts, body) = request.into_parts();
    let body = to_bytes(body, 1 << 24).await.unwrap();
    let target = parts.uri.path_and_query().unwrap().to_string();
    // `Host` is forwarded, so that the URLs in answers are those of this proxy.
    let sent = client.request(parts.method.clone(), format!("{upstream}{target}")).headers(parts.headers);
    let answer = sent.body(body.clone()).send().await.unwrap();
    let status = answer.status();
    let mut response = Response::builder().status(status);
    for (name, value) in answer.headers().iter().filter(|(name, _)| *name != "transfer-encoding") {
        response = response.header(name, value);
    }
    let response = response.body(Body::from(answer.bytes().await.unwrap())).unwrap();
    let (method, status) = (parts.method.to_string(), status.as_u16());
    log.lock().unwrap().push(Sent { method, target, body, status });
    response
}

/// The requests of a run that were sent twice. A read may follow a write to the same resource, its collection or a
/// member, or the create of a resource above it: each write explains one read, because a create is complete only if a
/// read that began after it shows it. The list of a collection is read again before one of its members is deleted, and
/// a request that a token does not allow is repeated with a new one. After a replacement, resources that the server may
/// have deleted together with the replaced one are read again. Before and after a deletion, a declared resource of another
/// collection with the same name is read, because the server may delete both.
pub fn repeated(run: &[Sent]) -> Vec<&Sent> {
    let twice = |(index, sent): &(usize, &Sent)| {
        let (earlier, later) = run.split_at(*index);
        let same = |other: &&Sent| {
            other.method == sent.method && other.target == sent.target && other.body == sent.body
        };
        let Some(place) = earlier.iter().rposition(|other| same(&other)) else { return false };
        let (before, since) = (&earlier[place], &earlier[place..]);
        let concerns = |other: &&Sent| other.is_write() && other.concerns(sent);
        let follows_a_write = earlier.iter().filter(concerns).count() >= earlier.iter().filter(same).count();
        let deletes = |other: &Sent| concerns(&other) && matches!(other.method.as_str(), "DELETE" | "PATCH");
        let follows_a_replacement = since.iter().any(|other| other.replaces(run));
        let checks_a_deletion =
            since.iter().chain(later).any(|other| other.method == "DELETE" && other.is_beside(sent));
        let explained =
            follows_a_write || follows_a_replacement || checks_a_deletion || later.iter().any(deletes);
        let is_refused = matches!(before.status, 401 | 403);
        !sent.is_token() && !is_refused && (sent.is_write() || !explained)
    };
    run.iter().enumerate().filter(twice).map(|(_, sent)| sent).collect()
}
