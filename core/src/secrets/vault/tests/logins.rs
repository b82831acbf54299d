//! The shared login, and its replacement when Vault rejects the token.

use std::time::Duration;

use futures::future::join_all;

use super::*;
use crate::error::{Categorized as _, Category};

/// Starts a Vault whose logins return the tokens t0, t1 and so on for an hour. `read` answers the other requests.
async fn logging_in(read: impl Fn(&Seen, usize) -> Reply + Send + Sync + 'static) -> Server {
    let logins = std::sync::atomic::AtomicUsize::new(0);
    Server::start(move |seen, before| {
        if seen.is_login() {
            let number = logins.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            granted(&format!("t{number}"), 3600)
        } else {
            read(seen, before)
        }
    })
    .await
}

fn is(seen: &Seen, path: &str) -> bool {
    seen.line.ends_with(path)
}

/// Advances the clock without waiting.
async fn pass(time: Duration) {
    tokio::time::pause();
    tokio::time::advance(time).await;
    tokio::time::resume();
}

#[tokio::test]
async fn concurrent_calls_share_one_login() {
    let server = logging_in(|_, _| stored(&json!("v"))).await;
    let store = store(with_user(&server));
    assert_eq!(server.log().len(), 0, "nothing is contacted before it is needed");
    let keys: Vec<SecretKey> = (0..20).map(|number| key(&format!("a:k{number}"))).collect();
    for read in join_all(keys.iter().map(|key| store.get(key))).await {
        assert_eq!(read.unwrap().expose(), "v");
    }
    assert_eq!((server.logins(), server.log().len()), (1, 21));
    assert_eq!(server.log()[0].line, "POST /v1/auth/userpass/login/ops");
}

#[tokio::test]
async fn concurrent_calls_share_one_refused_login_and_it_counts_for_some_seconds() {
    let server =
        Server::start(|_, _| Reply::json(400, &json!({"errors": ["invalid username or password"]}))).await;
    let store = store(with_user(&server));
    let keys: Vec<SecretKey> = (0..20).map(|number| key(&format!("a:k{number}"))).collect();
    for read in join_all(keys.iter().map(|key| store.get(key))).await {
        assert_eq!(read.unwrap_err().category(), Category::Auth);
    }
    pass(Duration::from_secs(2)).await;
    store.get(&keys[0]).await.unwrap_err();
    assert_eq!(server.logins(), 1, "Vault locks users out after repeated refusals");
    pass(Duration::from_secs(2)).await;
    store.get(&keys[0]).await.unwrap_err();
    assert_eq!(server.logins(), 2, "the credentials may have been corrected in Vault");
}

#[tokio::test(start_paused = true)]
async fn concurrent_calls_wait_for_one_login_if_vault_does_not_answer() {
    // Connections are made, but nothing is accepted.
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (mount, username) = ("userpass".to_owned(), "ops".to_owned());
    let auth = VaultAuth::Userpass { mount, username, password: secret(PASSWORD) };
    let store = store(VaultSettings { proxy: Proxy::default(), ..VaultSettings::new(&url, auth) });
    let keys: Vec<SecretKey> = (0..20).map(|number| key(&format!("a:k{number}"))).collect();
    let began = tokio::time::Instant::now();
    for read in join_all(keys.iter().map(|key| store.get(key))).await {
        assert_eq!(read.unwrap_err().category(), Category::Transport);
    }
    let waited = began.elapsed();
    assert!(waited < Duration::from_mins(1), "{waited:?} is more than the time of one login");
}

#[tokio::test]
async fn an_app_role_logs_in_with_both_its_ids() {
    let server = logging_in(|_, _| stored(&json!("v"))).await;
    let (role_id, secret_id) = (secret("role"), secret("id\n"));
    let auth = VaultAuth::AppRole { mount: "/team/approle/".to_owned(), role_id, secret_id };
    store(VaultSettings { auth, ..with_token(&server) }).get(&key("a:k")).await.unwrap();
    let login = &server.log()[0];
    assert_eq!(login.line, "POST /v1/auth/team/approle/login");
    assert_eq!(login.body, r#"{"role_id":"role","secret_id":"id"}"#);
}

#[tokio::test]
async fn after_a_denial_a_new_login_repeats_the_call_once() {
    // The permissions of t0 end after its first read, as after a revocation.
    let server = logging_in(
        |seen, before| if token(seen) == "t0" && before > 1 { denied() } else { stored(&json!("v")) },
    )
    .await;
    let store = store(with_user(&server));
    store.get(&key("a:k")).await.unwrap();
    let keys = [key("a:1"), key("a:2"), key("a:3")];
    for read in join_all(keys.iter().map(|key| store.get(key))).await {
        read.unwrap();
    }
    assert_eq!(server.logins(), 2, "{:?}", server.lines());
}

#[tokio::test]
async fn a_denial_despite_a_new_login_causes_no_further_login() {
    let server = logging_in(|seen, _| {
        if is(seen, "lookup-self") {
            Reply::json(200, &json!({"data": {"ttl": 3600, "policies": ["default"]}}))
        } else {
            denied()
        }
    })
    .await;
    let store = store(with_user(&server));
    for number in 0..5 {
        let error = store.get(&key(&format!("a:k{number}"))).await.unwrap_err();
        assert_eq!(error.category(), Category::Auth);
        assert!(error.to_string().contains("must grant read on secret/data/a:k"), "{error}");
    }
    assert_eq!(server.logins(), 2, "{:?}", server.lines());
}

#[tokio::test]
async fn a_token_that_vault_no_longer_knows_is_replaced_even_after_denials() {
    let server = logging_in(|seen, _| match token(seen) {
        "t2" => stored(&json!("v")),
        _ => denied(),
    })
    .await;
    let store = store(with_user(&server));
    store.get(&key("a:denied")).await.unwrap_err();
    assert_eq!(store.get(&key("a:k")).await.unwrap().expose(), "v");
    assert_eq!(server.logins(), 3);
}

#[tokio::test]
async fn a_given_token_is_used_once_and_not_replaced() {
    let server = Server::start(|_, _| denied()).await;
    store(with_token(&server)).get(&key("a:k")).await.unwrap_err();
    assert_eq!(server.lines(), ["GET /v1/secret/data/a:k"]);
}

#[tokio::test]
async fn a_token_is_renewed_after_two_thirds_of_its_life() {
    let server =
        logging_in(|seen, _| if is(seen, "renew-self") { granted("t0", 1800) } else { stored(&json!("v")) })
            .await;
    let store = store(with_user(&server));
    store.get(&key("a:k")).await.unwrap();
    pass(Duration::from_secs(2390)).await;
    store.get(&key("a:k")).await.unwrap();
    assert_eq!(server.log().len(), 3, "too early");
    pass(Duration::from_secs(20)).await;
    join_all([store.get(&key("a:k")), store.get(&key("a:k"))]).await;
    pass(Duration::from_secs(1210)).await;
    store.get(&key("a:k")).await.unwrap();
    let renewals: Vec<Seen> = server.log().into_iter().filter(|seen| is(seen, "renew-self")).collect();
    assert_eq!(renewals.len(), 2);
    assert_eq!((renewals[0].line.as_str(), token(&renewals[0])), ("POST /v1/auth/token/renew-self", "t0"));
    assert_eq!(server.logins(), 1);
}

#[tokio::test]
async fn a_renewal_that_fails_ends_in_a_login() {
    let server =
        logging_in(|seen, _| if is(seen, "renew-self") { denied() } else { stored(&json!("v")) }).await;
    let store = store(with_user(&server));
    store.get(&key("a:k")).await.unwrap();
    pass(Duration::from_secs(2410)).await;
    store.get(&key("a:k")).await.unwrap();
    assert_eq!(server.log().iter().map(token).collect::<Vec<_>>(), ["", "t0", "t0", "", "t1"]);
}

#[tokio::test]
async fn wrong_credentials_are_a_login_error() {
    let server =
        Server::start(|_, _| Reply::json(400, &json!({"errors": ["invalid username or password"]}))).await;
    let error = store(with_user(&server)).get(&key("a:k")).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("Vault at {} refuses the userpass login: invalid username or password", server.url)
    );
    assert_eq!((error.category(), server.log().len()), (Category::Auth, 1));
}

#[tokio::test]
async fn a_login_without_a_token_is_an_error() {
    let answer = json!({"auth": {"mfa_requirement": {"mfa_request_id": "1"}, "client_token": ""}});
    let server = Server::start(move |_, _| Reply::json(200, &answer)).await;
    let error = store(with_user(&server)).init().await.unwrap_err();
    assert!(error.to_string().ends_with("it returned no token; a second factor is not supported"), "{error}");
    assert_eq!(error.category(), Category::Auth);
}
