//! What statuses mean, and what is repeated.

use rstest::rstest;

use super::*;
use crate::error::{Categorized as _, Category};

#[rstest]
#[case::denied(
    403,
    r#"{"errors":["permission denied"]}"#,
    Category::Auth,
    "cannot read secret a:k: Vault denies it (permission denied); a policy of the login must grant read on secret/data/a:k"
)]
#[case::unauthorized(
    401,
    "",
    Category::Auth,
    "cannot read secret a:k: Vault denies it (unauthorized); a policy of the login must grant read on secret/data/a:k"
)]
#[case::absent(
    404,
    r#"{"errors":[]}"#,
    Category::NotFound,
    "secret a:k does not exist in Vault at secret/data/a:k"
)]
#[case::absent_behind_a_page(
    404,
    "<html>",
    Category::NotFound,
    "secret a:k does not exist in Vault at secret/data/a:k"
)]
#[case::no_engine(
    404,
    r#"{"errors":["no handler for route \"secret/data/a:k\""]}"#,
    Category::NotFound,
    "cannot read secret a:k: Vault knows no secret/data/a:k: no handler for route \"secret/data/a:k\""
)]
#[case::refused(
    400,
    r#"{"errors":["first","second"]}"#,
    Category::Validation,
    "cannot read secret a:k: Vault answers secret/data/a:k with status 400: first"
)]
#[case::page(
    418,
    "<html>",
    Category::Validation,
    "cannot read secret a:k: Vault answers secret/data/a:k with status 418: i'm a teapot"
)]
#[case::broken(
    500,
    r#"{"errors":["1 error occurred:\n\t* internal error\n\n"]}"#,
    Category::Transport,
    "cannot read secret a:k: Vault answers secret/data/a:k with status 500: 1 error occurred: * internal error"
)]
#[tokio::test]
async fn each_status_has_its_category(
    #[case] status: u16,
    #[case] body: &'static str,
    #[case] category: Category,
    #[case] message: &str,
) {
    let server = Server::start(move |_, _| Reply::text(status, body)).await;
    let error = store(with_token(&server)).get(&key("a:k")).await.unwrap_err();
    assert_eq!((error.to_string().as_str(), error.category()), (message, category));
    assert_eq!(server.lines(), ["GET /v1/secret/data/a:k"]);
}

#[tokio::test]
async fn a_sealed_vault_is_not_asked_again() {
    let server = Server::start(|_, _| Reply::json(503, &json!({"errors": ["Vault is sealed"]}))).await;
    let error = store(with_token(&server)).get(&key("a:k")).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("cannot read secret a:k: Vault at {} is sealed; unseal it", server.url)
    );
    assert_eq!((error.category(), server.log().len()), (Category::Transport, 1));
}

#[rstest]
#[case::a_standby_without_a_leader(503)]
#[case::a_rate_limit(429)]
#[tokio::test]
async fn what_passes_is_tried_again(#[case] status: u16) {
    let server = Server::start(move |seen, before| match before {
        0 | 2 => Reply::text(status, ""),
        _ if seen.line.starts_with("GET") => stored(&json!("v")),
        _ => Reply::json(200, &json!({"data": {"version": 2}})),
    })
    .await;
    let store = store(with_token(&server));
    assert_eq!(store.get(&key("a:k")).await.unwrap().expose(), "v");
    store.set(&key("a:k"), &secret("w")).await.unwrap();
    let writes = server.log().split_off(2);
    assert_eq!(writes.len(), 2);
    assert!(writes.iter().all(|seen| seen.line == "POST /v1/secret/data/a:k"));
    assert!(writes.iter().all(|seen| seen.body == r#"{"data":{"value":"w"}}"#));
}

#[tokio::test]
async fn a_login_that_may_have_arrived_is_not_repeated() {
    let server = Server::start(|_, _| Reply::text(503, "")).await;
    let error = store(with_user(&server)).get(&key("a:k")).await.unwrap_err();
    assert_eq!((error.category(), server.log().len()), (Category::Transport, 1));
}

#[tokio::test]
async fn a_vault_that_is_away_is_named() {
    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let auth = VaultAuth::Token(secret(TOKEN));
    let error = store(VaultSettings::new(format!("http://{gone}"), auth)).get(&key("a:k")).await.unwrap_err();
    let beginning = format!("cannot read secret a:k: Vault at http://{gone} cannot be reached: ");
    assert!(error.to_string().starts_with(&beginning), "{error}");
    assert_eq!(error.category(), Category::Transport);
}

#[tokio::test]
async fn errors_repeat_neither_values_nor_credentials() {
    let server = Server::start(|seen, _| {
        let echo = format!("got {} with {}", seen.body, token(seen));
        Reply::json(400, &json!({"errors": [echo]}))
    })
    .await;
    let error = store(with_token(&server)).set(&key("a:k"), &secret("canary-\"value")).await.unwrap_err();
    assert!(!error.to_string().contains("canary"), "{error}");
    assert!(error.to_string().ends_with(r#"got {"data":{"value":"<redacted>"}} with <redacted>"#), "{error}");
    let error = store(with_user(&server)).get(&key("a:k")).await.unwrap_err();
    assert!(!error.to_string().contains("canary"), "{error}");
}
