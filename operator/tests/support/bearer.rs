//! A token endpoint, and a guard before a REST server that refuses requests without one of its tokens.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use http_body_util::BodyExt as _;

/// Runs until it is dropped.
pub struct Bearer {
    pub url: String,
    state: Arc<Mutex<State>>,
    serving: tokio::task::JoinHandle<()>,
}

#[derive(Default)]
struct State {
    secret: String,
    tokens: Vec<String>,
    /// How many tokens there have been.
    issued: usize,
    /// Requests for tokens with another secret.
    refused_clients: usize,
    /// Requests to the server without a token that counts.
    refused_requests: usize,
}

impl Bearer {
    /// Guards the server at `behind`; a client with this secret gets a token at `/oauth/token`.
    pub async fn start(behind: SocketAddr, secret: &str) -> Self {
        // Other tests may have installed it.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let state = Arc::new(Mutex::new(State { secret: secret.to_owned(), ..State::default() }));
        let (shared, client) = (Arc::clone(&state), reqwest::Client::builder().no_proxy().build().unwrap());
        let router = Router::new().fallback(move |request: Request| {
            let (state, client) = (Arc::clone(&shared), client.clone());
            async move { answer(&state, &client, behind, request).await }
        });
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let serving = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { url, state, serving }
    }

    /// How many tokens were issued, how many requests for one were refused, and how many requests to the server.
    pub fn counts(&self) -> (usize, usize, usize) {
        let state = self.state.lock().unwrap();
        (state.issued, state.refused_clients, state.refused_requests)
    }

    /// Accepts another secret, and no token that was obtained with the old one.
    pub fn rotate(&self, secret: &str) {
        let mut state = self.state.lock().unwrap();
        secret.clone_into(&mut state.secret);
        state.tokens.clear();
    }
}

impl Drop for Bearer {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn answer(
    state: &Mutex<State>,
    client: &reqwest::Client,
    behind: SocketAddr,
    request: Request,
) -> Response {
    let (head, body) = request.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    if head.uri.path() == "/oauth/token" {
        return token(&mut state.lock().unwrap(), &String::from_utf8_lossy(&body));
    }
    let shown = head.headers.get("authorization").and_then(|value| value.to_str().ok());
    let token = shown.and_then(|value| value.strip_prefix("Bearer ")).unwrap_or_default().to_owned();
    {
        let mut state = state.lock().unwrap();
        if !state.tokens.contains(&token) {
            state.refused_requests += 1;
            return (StatusCode::UNAUTHORIZED, "no such token").into_response();
        }
    }
    let target = format!("http://{behind}{}", head.uri.path_and_query().unwrap());
    let asked = client.request(head.method, target).headers(head.headers).body(body).send().await.unwrap();
    http::Response::from(asked).map(axum::body::Body::new).into_response()
}

fn token(state: &mut State, form: &str) -> Response {
    let given = form.split('&').find_map(|pair| pair.strip_prefix("client_secret="));
    if given != Some(state.secret.as_str()) || !form.contains("grant_type=client_credentials") {
        state.refused_clients += 1;
        return (StatusCode::UNAUTHORIZED, "{\"error\": \"invalid_client\"}").into_response();
    }
    state.issued += 1;
    let token = format!("issued-token-{}", state.issued);
    let answer = format!("{{\"access_token\": \"{token}\", \"expires_in\": 3600}}");
    state.tokens.push(token);
    ([("content-type", "application/json")], answer).into_response()
}
