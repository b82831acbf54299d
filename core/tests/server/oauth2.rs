//! Tokens: requested once, shared, replaced when they are refused, and never shown.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::response::Response;
use declarest_core::error::{Categorized, Category};
use declarest_core::secrets::Secret;
use declarest_core::server::{
    Auth, Client, Gate, Grant, OAuth2, Request, RequestObserver, ServerError, Settings, TokenNeed,
};
use futures::future::join_all;
use http::{Method, StatusCode};
use rstest::rstest;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::recorder::{Recorder, Seen, json as answer};
use crate::server::gate;

const SECRET: &str = "s3cret&client";

/// The tokens that the server accepts and issues.
struct State {
    secret: &'static str,
    issued: usize,
    /// The token that the server accepts.
    valid: Option<String>,
    expires_in: Value,
    /// Answers that the token endpoint returns first, in order, instead of a token.
    instead: Vec<(u16, String)>,
    /// How many tokens were issued when the realm `new` was created; they get 403 below it. Later ones do not.
    too_old: usize,
}

/// A REST server that is its own token endpoint.
struct Scene {
    server: Recorder,
    state: Arc<Mutex<State>>,
    observer: Arc<Ear>,
}

#[derive(Default)]
struct Ear(Mutex<Vec<(TokenNeed, bool)>>);

impl RequestObserver for Ear {
    fn completed(&self, _: &Method, _: Option<StatusCode>, _: Duration) {}

    fn throttled(&self, _: bool) {}

    fn token_asked(&self, need: TokenNeed, had: bool) {
        self.0.lock().unwrap().push((need, had));
    }
}

impl State {
    fn answer(&mut self, seen: &Seen) -> Response {
        if seen.target == "/token" {
            return self.token(seen);
        }
        let expected = self.valid.as_ref().map(|token| format!("Bearer {token}"));
        if expected.as_deref() == Some(seen.header("authorization")) {
            return match (seen.method.as_str(), seen.target.as_str()) {
                ("POST", "/realms") => {
                    self.too_old = self.issued;
                    answer(201, "{}")
                }
                (_, "/hidden") => answer(401, "{}"),
                (_, target) if target.starts_with("/realms/new/") && self.issued <= self.too_old => answer(
                    403,
                    json!({"error": "forbidden", "got": seen.header("authorization")}).to_string(),
                ),
                _ => answer(200, "{}"),
            };
        }
        answer(401, json!({"error": "invalid_token", "got": seen.header("authorization")}).to_string())
    }

    fn token(&mut self, seen: &Seen) -> Response {
        if !self.instead.is_empty() {
            let (status, text) = self.instead.remove(0);
            return answer(status, text);
        }
        if form(seen).get("client_secret").map(String::as_str) != Some(self.secret) {
            return answer(401, json!({"error": "invalid_client", "got": seen.body}).to_string());
        }
        self.issued += 1;
        let token = format!("token-number-{}", self.issued);
        self.valid = Some(token.clone());
        let (token_type, expires_in) = ("Bearer", &self.expires_in);
        answer(
            200,
            json!({"access_token": token, "token_type": token_type, "expires_in": expires_in}).to_string(),
        )
    }
}

fn form(seen: &Seen) -> BTreeMap<String, String> {
    url::form_urlencoded::parse(seen.body.as_bytes()).into_owned().collect()
}

impl Scene {
    async fn new() -> Self {
        let state = State {
            secret: SECRET,
            issued: 0,
            valid: None,
            expires_in: json!(3600),
            instead: Vec::new(),
            too_old: 0,
        };
        let state = Arc::new(Mutex::new(state));
        let shared = Arc::clone(&state);
        let server = Recorder::start(move |seen| shared.lock().unwrap().answer(seen)).await;
        Self { server, state, observer: Arc::default() }
    }

    fn oauth2(&self, grant: Grant) -> OAuth2 {
        OAuth2 {
            token_url: format!("{}/token", self.server.url()),
            grant,
            client_id: Secret::from("app".to_owned()),
            client_secret: Secret::from(SECRET.to_owned()),
            scope: Some("read write".to_owned()),
            audience: None,
        }
    }

    fn client_at(&self, gate: &Arc<Gate>, grant: Grant) -> Client {
        let settings = Settings {
            auth: Auth::OAuth2(self.oauth2(grant)),
            default_headers: vec![("X-Tenant".to_owned(), "blue".to_owned())],
            ..self.server.settings()
        };
        Client::new(settings, Arc::clone(gate), Some(self.observer.clone())).unwrap()
    }

    fn client(&self) -> Client {
        self.client_at(&gate(None), Grant::ClientCredentials)
    }

    fn observed_by(&self, observer: Arc<dyn RequestObserver>) -> Client {
        let auth = Auth::OAuth2(self.oauth2(Grant::ClientCredentials));
        let settings = Settings { auth, ..self.server.settings() };
        Client::new(settings, gate(None), Some(observer)).unwrap()
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    fn heard(&self) -> Vec<(TokenNeed, bool)> {
        self.observer.0.lock().unwrap().clone()
    }
}

async fn get(client: &Client) -> Result<(), ServerError> {
    client.send(&Request::new(Method::GET, "/items")).await.map(drop)
}

#[tokio::test]
async fn a_token_is_asked_for_once_and_sent_with_every_request() {
    let scene = Scene::new().await;
    let client = scene.client();
    for _ in 0..3 {
        get(&client).await.unwrap();
    }
    assert_eq!(scene.server.lines(), ["POST /token", "GET /items", "GET /items", "GET /items"]);
    let seen = scene.server.seen();
    let expected = [
        ("client_id", "app"),
        ("client_secret", SECRET),
        ("grant_type", "client_credentials"),
        ("scope", "read write"),
    ];
    let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(form(&seen[0]), BTreeMap::from(expected));
    assert_eq!(seen[0].header("accept"), "application/json");
    assert_eq!(seen[0].header("content-type"), "application/x-www-form-urlencoded");
    assert_eq!((seen[0].header("x-tenant"), seen[0].header("authorization")), ("", ""));
    assert_eq!(
        (seen[1].header("x-tenant"), seen[1].header("authorization")),
        ("blue", "Bearer token-number-1")
    );
    assert_eq!(client.access_token().await.unwrap().unwrap().expose(), "token-number-1");
}

#[tokio::test]
async fn a_user_gets_a_token_by_password() {
    let scene = Scene::new().await;
    let (username, password) = (Secret::from("alice".to_owned()), Secret::from("pa ss".to_owned()));
    get(&scene.client_at(&gate(None), Grant::Password { username, password })).await.unwrap();
    let form = form(&scene.server.seen()[0]);
    let named = |name: &str| form.get(name).map(String::as_str);
    assert_eq!(named("grant_type"), Some("password"));
    assert_eq!((named("username"), named("password")), (Some("alice"), Some("pa ss")));
}

#[rstest]
#[case::one_at_once(Some(1))]
#[case::many(None)]
#[tokio::test]
async fn requests_at_once_share_a_token(#[case] at_once: Option<usize>) {
    let scene = Scene::new().await;
    // With one slot, a request that held it while asking for a token would wait for itself.
    let client = scene.client_at(&gate(at_once), Grant::ClientCredentials);
    for sent in join_all((0..20).map(|_| get(&client))).await {
        sent.unwrap();
    }
    assert_eq!(scene.state().issued, 1);
    assert_eq!(scene.heard(), [(TokenNeed::First, true)]);
}

#[tokio::test]
async fn a_refused_token_is_replaced_once_for_all_requests() {
    let scene = Scene::new().await;
    let client = scene.client();
    get(&client).await.unwrap();
    scene.state().valid = None;
    for sent in join_all((0..10).map(|_| get(&client))).await {
        sent.unwrap();
    }
    assert_eq!(scene.state().issued, 2);
    assert_eq!(scene.heard(), [(TokenNeed::First, true), (TokenNeed::Refused, true)]);
}

#[tokio::test]
async fn a_write_is_repeated_with_the_new_token() {
    let scene = Scene::new().await;
    let client = scene.client();
    get(&client).await.unwrap();
    scene.state().valid = None;
    client.send(&Request::new(Method::POST, "/items")).await.unwrap();
    let expected = ["POST /token", "GET /items", "POST /items", "POST /token", "POST /items"];
    assert_eq!(scene.server.lines(), expected);
}

/// A client whose token is older than the realm `new`.
async fn with_a_new_realm(client: Client) -> Client {
    client.send(&Request::new(Method::POST, "/realms")).await.unwrap();
    client
}

async fn below_realm(client: &Client, method: Method, name: &str) -> Result<(), ServerError> {
    client.send(&Request::new(method, format!("/realms/new/{name}"))).await.map(drop)
}

#[rstest]
#[case::alone(false)]
#[case::in_a_run(true)]
#[tokio::test]
async fn a_token_that_is_too_old_is_replaced_at_the_first_403(
    #[case] run: bool,
    #[values(Method::GET, Method::PUT, Method::POST, Method::DELETE)] method: Method,
) {
    let scene = Scene::new().await;
    let client = scene.client();
    let client = if run { client.until(CancellationToken::new()) } else { client };
    let client = with_a_new_realm(client).await;
    below_realm(&client, method.clone(), "roles").await.unwrap();
    below_realm(&client, method.clone(), "users").await.unwrap();
    assert_eq!(
        scene.server.lines(),
        [
            "POST /token".to_owned(),
            "POST /realms".to_owned(),
            format!("{method} /realms/new/roles"),
            "POST /token".to_owned(),
            format!("{method} /realms/new/roles"),
            format!("{method} /realms/new/users"),
        ]
    );
    assert_eq!(scene.heard(), [(TokenNeed::First, true), (TokenNeed::Forbidden, true)]);
}

#[tokio::test]
async fn requests_at_once_share_the_token_that_replaces_one_that_is_too_old() {
    let scene = Scene::new().await;
    let client = with_a_new_realm(scene.client().until(CancellationToken::new())).await;
    let names: Vec<_> = (0..20).map(|number| number.to_string()).collect();
    for sent in join_all(names.iter().map(|name| below_realm(&client, Method::POST, name))).await {
        sent.unwrap();
    }
    assert_eq!(scene.state().issued, 2, "one more token for all of them");
}

#[tokio::test]
async fn a_server_that_always_answers_403_costs_one_token_per_run() {
    let scene = Scene::new().await;
    let client = with_a_new_realm(scene.client()).await;
    scene.state().too_old = usize::MAX;
    // Requests outside of a run are those of the client.
    for (runs, client) in
        [client.clone(), client.until(CancellationToken::new()), client.until(CancellationToken::new())]
            .iter()
            .enumerate()
    {
        let names: Vec<_> = (0..10).map(|number| number.to_string()).collect();
        for sent in join_all(names.iter().map(|name| below_realm(client, Method::POST, name))).await {
            let error = sent.unwrap_err();
            assert_eq!((error.category(), error.status()), (Category::Auth, Some(StatusCode::FORBIDDEN)));
            assert!(error.to_string().contains("Bearer <redacted>"), "{error}");
            assert!(!error.to_string().contains("token-number-"), "{error}");
        }
        below_realm(client, Method::PUT, "last").await.unwrap_err();
        assert_eq!(scene.state().issued, runs + 2);
    }
    let asked = scene.server.lines().iter().filter(|line| *line == "PUT /realms/new/last").count();
    assert_eq!(asked, 3, "what a fresh token may not do is not repeated");
}

#[tokio::test]
async fn a_token_stays_in_use_if_there_is_no_other() {
    let scene = Scene::new().await;
    let client = with_a_new_realm(scene.client()).await;
    scene.state().instead = vec![(400, json!({"error": "invalid_client"}).to_string())];
    let error = below_realm(&client, Method::GET, "roles").await.unwrap_err();
    assert_eq!(error.status(), Some(StatusCode::FORBIDDEN), "{error}");
    get(&client).await.unwrap();
    assert_eq!(scene.heard(), [(TokenNeed::First, true), (TokenNeed::Forbidden, false)]);
    let expected = ["POST /token", "POST /realms", "GET /realms/new/roles", "POST /token", "GET /items"];
    assert_eq!(scene.server.lines(), expected);
}

#[tokio::test]
async fn other_credentials_are_not_repeated_at_a_403() {
    let server = Recorder::start(|_| answer(403, "{}")).await;
    let client = Client::new(server.settings(), gate(None), None).unwrap();
    assert_eq!(get(&client).await.unwrap_err().status(), Some(StatusCode::FORBIDDEN));
    assert_eq!(server.lines(), ["GET /items"]);
}

#[tokio::test]
async fn a_server_that_refuses_every_token_is_asked_twice() {
    let scene = Scene::new().await;
    let client = scene.client();
    scene.state().instead = vec![
        (200, json!({"access_token": "other-1"}).to_string()),
        (200, json!({"access_token": "other-2"}).to_string()),
    ];
    let error = get(&client).await.unwrap_err();
    assert_eq!((error.category(), error.status()), (Category::Auth, Some(StatusCode::UNAUTHORIZED)));
    assert_eq!(scene.server.lines(), ["POST /token", "GET /items", "POST /token", "GET /items"]);
    // It echoes them.
    assert!(error.to_string().contains("Bearer <redacted>"), "{error}");
    assert!(!error.to_string().contains("other-"), "{error}");
}

#[tokio::test]
async fn a_server_that_refuses_one_resource_with_401_costs_one_token() {
    let scene = Scene::new().await;
    let client = scene.client();
    for round in 0..3 {
        let hidden = client.send(&Request::new(Method::GET, "/hidden")).await.unwrap_err();
        assert_eq!(hidden.status(), Some(StatusCode::UNAUTHORIZED), "{round}");
        get(&client).await.unwrap();
    }
    assert_eq!(scene.heard(), [(TokenNeed::First, true), (TokenNeed::Refused, true)]);
}

#[rstest]
#[case::numbers(json!(3600), 1)]
#[case::texts(json!("3600"), 1)]
#[case::absent(json!(null), 1)]
#[case::zero(json!(0), 1)]
#[case::shorter_than_the_margin(json!(30), 1)]
#[case::expired(json!(0.000_001), 3)]
#[tokio::test]
async fn tokens_are_kept_until_shortly_before_they_expire(#[case] expires_in: Value, #[case] issued: usize) {
    let scene = Scene::new().await;
    scene.state().expires_in = expires_in;
    let client = scene.client();
    for _ in 0..3 {
        get(&client).await.unwrap();
    }
    assert_eq!(scene.state().issued, issued);
    let needs: Vec<_> = scene.heard().into_iter().skip(1).map(|(need, _)| need).collect();
    assert!(needs.iter().all(|need| *need == TokenNeed::Expired), "{needs:?}");
}

#[tokio::test]
async fn a_dropped_token_is_not_used_again() {
    let scene = Scene::new().await;
    let client = scene.client();
    get(&client).await.unwrap();
    client.invalidate_token();
    get(&client).await.unwrap();
    assert_eq!(scene.heard(), [(TokenNeed::First, true), (TokenNeed::Dropped, true)]);
}

#[rstest]
#[case::refused(
    401,
    "{\"error\": \"invalid_client\"}",
    Category::Auth,
    "answers with status 401: {\"error\""
)]
#[case::bad_request(400, "{\"error\": \"invalid_grant\"}", Category::Auth, "answers with status 400")]
#[case::not_found(404, "", Category::Auth, "answers with status 404: <empty>")]
#[case::no_json(200, "<html>", Category::Auth, "its answer is not JSON")]
#[case::no_token(200, "{\"token\": \"canary-token\"}", Category::Auth, "its answer has no access_token")]
#[case::no_text(200, "{\"access_token\": 5}", Category::Auth, "its answer has no access_token")]
#[case::line_break(
    200,
    "{\"access_token\": \"canary\\r\\nX: y\"}",
    Category::Auth,
    "cannot be sent in a header"
)]
#[case::broken(500, "oops", Category::Transport, "status 500: oops")]
#[case::timed_out(408, "", Category::Transport, "status 408")]
#[tokio::test]
async fn what_a_token_endpoint_may_say(
    #[case] status: u16,
    #[case] body: &str,
    #[case] category: Category,
    #[case] message: &str,
) {
    let scene = Scene::new().await;
    scene.state().instead = vec![(status, body.to_owned())];
    let client = scene.client();
    let error = get(&client).await.unwrap_err();
    assert_eq!(error.category(), category, "{error}");
    let text = error.to_string();
    assert!(text.starts_with(&format!("no access token from {}/token: ", scene.server.url())), "{text}");
    assert!(text.contains(message) && !text.contains("canary"), "{text}");
    assert_eq!(error.status(), None, "the server itself did not answer");
    assert_eq!(scene.heard(), [(TokenNeed::First, false)]);
    if category == Category::Auth {
        // Its word counts for a while.
        assert_eq!(get(&client).await.unwrap_err().to_string(), text);
        client.invalidate_token();
    }
    get(&client).await.unwrap();
    assert_eq!(scene.state().issued, 1);
}

#[tokio::test]
async fn a_token_endpoint_that_stumbles_is_asked_again() {
    let scene = Scene::new().await;
    scene.state().instead = vec![(503, String::new())];
    get(&scene.client()).await.unwrap();
    assert_eq!(scene.server.lines(), ["POST /token", "POST /token", "GET /items"]);
}

#[tokio::test]
async fn an_answer_that_cannot_be_a_token_is_not_read_to_its_end() {
    let scene = Scene::new().await;
    scene.state().instead = vec![(200, " ".repeat((1 << 20) + 1))];
    let error = get(&scene.client()).await.unwrap_err();
    assert_eq!(error.category(), Category::Transport);
    assert!(error.to_string().ends_with("larger than the limit of 1048576 bytes"), "{error}");
}

#[tokio::test]
async fn what_the_token_endpoint_echoes_is_not_shown() {
    let scene = Scene::new().await;
    scene.state().secret = "another";
    let text = get(&scene.client()).await.unwrap_err().to_string();
    assert!(text.contains("invalid_client") && text.contains("client_secret=<redacted>"), "{text}");
}

#[tokio::test]
async fn an_endpoint_that_cannot_be_reached_is_a_matter_of_transport() {
    let scene = Scene::new().await;
    let token_url = "http://127.0.0.1:1/token?key=canary".to_owned();
    let settings = Settings {
        auth: Auth::OAuth2(OAuth2 { token_url, ..scene.oauth2(Grant::ClientCredentials) }),
        ..scene.server.settings()
    };
    let client = Client::new(settings, gate(None), None).unwrap();
    let error = get(&client).await.unwrap_err();
    assert_eq!(error.category(), Category::Transport);
    assert!(error.to_string().starts_with("no access token from http://127.0.0.1:1/token: "), "{error}");
    assert!(!error.to_string().contains("canary"), "{error}");
}

#[tokio::test]
async fn an_endpoint_that_says_nothing_is_given_as_long_as_any_attempt() {
    let scene = Scene::new().await;
    // The system makes the connections; no bytes are sent over them.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let token_url = format!("http://{}/token", silent.local_addr().unwrap());
    let settings = Settings {
        auth: Auth::OAuth2(OAuth2 { token_url, ..scene.oauth2(Grant::ClientCredentials) }),
        ..scene.server.settings()
    };
    let client = Client::new(settings, gate(None), None).unwrap();
    let error = get(&client.with_attempt_timeout(Duration::from_millis(100))).await.unwrap_err();
    assert_eq!(error.category(), Category::Transport);
    assert!(error.to_string().ends_with("no complete answer within 0.1 s"), "{error}");
    assert_eq!(scene.server.seen().len(), 0);
}

#[rstest]
#[case("ftp://idp.test/token")]
#[case("idp.test/token")]
#[case("https://user:pass@idp.test/token")]
#[case("https://idp.test/token#x")]
#[tokio::test]
async fn token_endpoints_that_cannot_be(#[case] token_url: &str) {
    let scene = Scene::new().await;
    let settings = Settings {
        auth: Auth::OAuth2(OAuth2 {
            token_url: token_url.to_owned(),
            ..scene.oauth2(Grant::ClientCredentials)
        }),
        ..scene.server.settings()
    };
    let error = Client::new(settings, gate(None), None).unwrap_err();
    assert_eq!(error.category(), Category::Validation);
    assert!(
        error.to_string().starts_with("http.auth.oauth2.tokenURL: ") && !error.to_string().contains("pass@")
    );
}

#[tokio::test]
async fn a_request_that_stops_waiting_for_a_token_delays_no_other() {
    let scene = Scene::new().await;
    let gate = gate(Some(1));
    let client = scene.client_at(&gate, Grant::ClientCredentials);
    {
        let request = get(&client);
        // Given up as soon as it waits for the first time, which is for the token.
        assert!(futures::FutureExt::now_or_never(request).is_none());
    }
    let other = Client::new(scene.server.settings(), gate, None).unwrap();
    assert_eq!(get(&other).await.unwrap_err().status(), Some(StatusCode::UNAUTHORIZED));
    get(&client).await.unwrap();
    assert_eq!(scene.state().issued, 1);
}

/// Fails when a token was requested.
struct Failing;

impl RequestObserver for Failing {
    fn completed(&self, _: &Method, _: Option<StatusCode>, _: Duration) {}

    fn throttled(&self, _: bool) {}

    fn token_asked(&self, _: TokenNeed, _: bool) {
        panic!("expected by this test");
    }
}

#[tokio::test]
async fn an_interrupted_request_for_a_token_does_not_count_as_rejected_credentials() {
    let scene = Scene::new().await;
    let client = scene.observed_by(Arc::new(Failing));
    for requests in 1..=2 {
        let error = client.send(&Request::new(Method::GET, "/items")).await.unwrap_err();
        assert!(matches!(error, ServerError::TokenUnavailable { .. }), "{error}");
        assert_eq!(error.category(), Category::Transport);
        let asked = scene.server.seen().iter().filter(|seen| seen.target == "/token").count();
        assert_eq!(asked, requests, "the next request tries again");
    }
}
