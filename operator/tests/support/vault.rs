//! What the operator asks a Vault for: a login, a token, a mount, and secrets.
#![allow(dead_code, reason = "each test binary that includes this module uses a part of it")]

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex};

use axum::body::to_bytes;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::{Json, Router};
use serde_json::{Value, json};
use tokio::net::TcpListener;

pub struct FakeVault {
    pub url: String,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    password: String,
    sealed: bool,
    /// How often it was asked while it was sealed.
    refusals: usize,
    /// The passwords that logins were made with.
    logins: Vec<String>,
    secrets: HashMap<String, String>,
    /// The namespaces that it was asked in.
    namespaces: BTreeSet<String>,
}

impl FakeVault {
    /// A version 2 engine at `secret`, and logins with this password by userpass, or with this secret id by `AppRole`.
    pub async fn start(password: &str) -> Self {
        let state = State { password: password.to_owned(), ..State::default() };
        let state = Arc::new(Mutex::new(state));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let shared = Arc::clone(&state);
        let app = Router::new().fallback(move |request: Request| {
            let shared = Arc::clone(&shared);
            async move {
                let path = request.uri().path().to_owned();
                let token = request.headers().get("x-vault-token").cloned();
                let namespace = request.headers().get("x-vault-namespace").cloned();
                let body = to_bytes(request.into_body(), 1 << 20).await.unwrap();
                let namespace = namespace.map(|name| name.to_str().unwrap().to_owned()).unwrap_or_default();
                let mut state = shared.lock().unwrap();
                state.namespaces.insert(namespace);
                let (status, answer) = state.answer(&path, token.is_some(), &body);
                (StatusCode::from_u16(status).unwrap(), Json(answer))
            }
        });
        tokio::spawn(async move { axum::serve(listener, app).await });
        Self { url, state }
    }

    /// Only this password is taken from now on.
    pub fn rotate(&self, password: &str) {
        password.clone_into(&mut self.state.lock().unwrap().password);
    }

    /// Stores a secret.
    pub fn put(&self, key: &str, value: &str) {
        self.state.lock().unwrap().secrets.insert(key.to_owned(), value.to_owned());
    }

    pub fn seal(&self, sealed: bool) {
        self.state.lock().unwrap().sealed = sealed;
    }

    /// How often it was asked while it was sealed.
    pub fn refusals(&self) -> usize {
        self.state.lock().unwrap().refusals
    }

    /// The namespaces that it was asked in; an empty one if none was named.
    pub fn namespaces(&self) -> BTreeSet<String> {
        self.state.lock().unwrap().namespaces.clone()
    }

    /// The number of logins with this password.
    pub fn logins(&self, password: &str) -> usize {
        self.state.lock().unwrap().logins.iter().filter(|used| *used == password).count()
    }
}

impl State {
    fn answer(&mut self, path: &str, token: bool, body: &[u8]) -> (u16, Value) {
        let refuse = |status, why: &str| (status, json!({"errors": [why]}));
        match path {
            _ if self.sealed => {
                self.refusals += 1;
                refuse(503, "Vault is sealed")
            }
            "/v1/auth/userpass/login/ops" | "/v1/auth/approle/login" => {
                let body: Value = serde_json::from_slice(body).unwrap();
                let given = if path.ends_with("/ops") { &body["password"] } else { &body["secret_id"] };
                if given != self.password.as_str() {
                    return refuse(400, "the credentials are not valid");
                }
                self.logins.push(self.password.clone());
                (200, json!({"auth": {"client_token": "t", "lease_duration": 3600, "renewable": true}}))
            }
            _ if !token => refuse(403, "permission denied"),
            "/v1/auth/token/lookup-self" => (200, json!({"data": {"ttl": 3600, "policies": ["default"]}})),
            "/v1/sys/internal/ui/mounts/secret" => {
                (200, json!({"data": {"path": "secret/", "type": "kv", "options": {"version": "2"}}}))
            }
            path => match path.strip_prefix("/v1/secret/data/").and_then(|key| self.secrets.get(key)) {
                Some(value) => (200, json!({"data": {"data": {"value": value}}})),
                None => refuse(404, "no handler for route"),
            },
        }
    }
}
