//! What a ManagedServer fetches beside its API, published by a server that may want to know who asks.

use std::io::Write as _;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::Request;
use axum::response::{IntoResponse as _, Response};
use flate2::Compression;
use flate2::write::GzEncoder;
use http::StatusCode;

/// A request: its path, and the headers `X-Key`, `X-Tenant` and `Authorization`.
pub type Asked = [String; 4];

/// Runs until it is dropped. It has a bundle at `/bundle.tar.gz`, a document at `/openapi.json`, and gives every client a
/// token at `/token`.
pub struct Published {
    pub url: String,
    state: Arc<Mutex<State>>,
    serving: tokio::task::JoinHandle<()>,
}

struct State {
    bundle: Vec<u8>,
    /// The required value of `X-Key` or `Authorization`; without it, every client is accepted.
    key: Option<String>,
    /// The paths that are answered with 500.
    broken: Vec<String>,
    asked: Vec<Asked>,
}

impl Published {
    /// The bundle is called `name`. With `key`, only requests with this key are accepted.
    pub async fn start(name: &str, key: Option<&str>) -> Self {
        let (bundle, key) = (archive(name), key.map(str::to_owned));
        let state = Arc::new(Mutex::new(State { bundle, key, broken: Vec::new(), asked: Vec::new() }));
        let shared = Arc::clone(&state);
        let router = Router::new().fallback(move |request: Request| {
            let answer = shared.lock().unwrap().answer(&request);
            async move { answer }
        });
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let serving = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { url, state, serving }
    }

    /// From now on the bundle is another one, called `name`.
    pub fn publish(&self, name: &str) {
        self.state.lock().unwrap().bundle = archive(name);
    }

    /// From now on the bundle is not an archive.
    pub fn corrupt(&self) {
        self.state.lock().unwrap().bundle = b"<html>Sign in</html>".to_vec();
    }

    /// From now on another key lets in.
    pub fn wants(&self, key: &str) {
        self.state.lock().unwrap().key = Some(key.to_owned());
    }

    /// From now on these paths are answered with 500, and no others.
    pub fn breaks(&self, paths: &[&str]) {
        self.state.lock().unwrap().broken = paths.iter().map(|&path| path.to_owned()).collect();
    }

    /// What was asked since the last call.
    pub fn take_asked(&self) -> Vec<Asked> {
        std::mem::take(&mut self.state.lock().unwrap().asked)
    }
}

impl Drop for Published {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl State {
    fn answer(&mut self, request: &Request) -> Response {
        let header = |name: &str| {
            let value = request.headers().get(name).and_then(|value| value.to_str().ok());
            value.unwrap_or_default().to_owned()
        };
        let path = request.uri().path().to_owned();
        let [key, tenant, authorization] = ["x-key", "x-tenant", "authorization"].map(header);
        let is_in = self.key.as_ref().is_none_or(|wanted| [&key, &authorization].contains(&wanted));
        let is_broken = self.broken.contains(&path);
        self.asked.push([path.clone(), key, tenant, authorization]);
        let json = [("content-type", "application/json")];
        match path.as_str() {
            _ if is_broken => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
            "/token" => (json, "{\"access_token\": \"issued-token\"}").into_response(),
            _ if !is_in => (StatusCode::UNAUTHORIZED, "who are you?").into_response(),
            "/bundle.tar.gz" => self.bundle.clone().into_response(),
            "/openapi.json" => (json, "{\"openapi\": \"3.0.3\", \"paths\": {}}").into_response(),
            _ => StatusCode::NOT_FOUND.into_response(),
        }
    }
}

fn archive(name: &str) -> Vec<u8> {
    let manifest = format!(
        "apiVersion: declarest.io/v1alpha1\nkind: MetadataBundle\nname: {name}\nversion: 1.0.0\n\
         description: Tills.\ndeclarest: {{metadataRoot: metadata}}\n"
    );
    let files =
        [("bundle.yaml", manifest.as_str()), ("metadata/tills/_/metadata.yaml", "resource: {id: /id}")];
    let mut archive = tar::Builder::new(Vec::new());
    for (file, content) in files {
        let mut header = tar::Header::new_ustar();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        archive.append_data(&mut header, file, content.as_bytes()).unwrap();
    }
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(&archive.into_inner().unwrap()).unwrap();
    packed.finish().unwrap()
}
