//! The meaning of statuses, and retries.

use rstest::rstest;

use super::*;
use crate::error::{Categorized as _, Category};

#[rstest]
#[case::just_too_long(500, (1 << 20) + 1, Some("500"))]
#[case::too_long_for_anything(413, 10, Some("413"))]
#[case::bad_request(400, (1 << 20) + 1, Some("400"))]
#[case::an_error_of_its_own(500, 1 << 20, None)]
#[case::denied(403, (1 << 20) + 1, None)]
#[tokio::test]
async fn a_too_long_value_is_a_validation_error(
    #[case] status: u16,
    #[case] length: usize,
    #[case] shown: Option<&str>,
) {
    let server = Server::start(move |_, _| {
        Reply::json(status, &json!({"errors": ["failed to parse JSON input: string exceeds the limit"]}))
    })
    .await;
    let store = store(with_token(&server));
    let error = store.set(&key("a:k"), &secret(&"v".repeat(length))).await.unwrap_err();
    let expected = shown.map(|status| {
        format!(
            "cannot write secret a:k: its value has {length} bytes, and Vault answers with status {status} (failed to \
             parse JSON input: string exceeds the limit); by default the limit is 1 MiB \
             (max_json_string_value_length of its listener)"
        )
    });
    assert_eq!(expected.is_some(), error.to_string().contains("by default"), "{error}");
    if let Some(expected) = expected {
        assert_eq!((error.to_string(), error.category()), (expected, Category::Validation));
    }
    assert_eq!(server.log().len(), 1, "a value does not get shorter");
}

#[rstest]
#[case::dots("a:/b..c", "two dots in a row", "a:/b..c")]
#[case::three_dots("a:/.../c", "two dots in a row", "a:/.../c")]
#[case::tab("a:/b\tc", "control or invisible characters", "a:/b\\tc")]
#[case::line_break("a:b\nc", "control or invisible characters", "a:b\\nc")]
#[case::nul("a:b\0c", "control or invisible characters", "a:b\\0c")]
#[case::delete("a:b\u{7f}c", "control or invisible characters", "a:b\\u{7f}c")]
#[case::zero_width_space("a:b\u{200b}c", "control or invisible characters", "a:b\\u{200b}c")]
#[case::no_break_space("a:b\u{a0}c", "control or invisible characters", "a:b\\u{a0}c")]
#[case::direction("a:b\u{202e}c", "control or invisible characters", "a:b\\u{202e}c")]
#[case::soft_hyphen("a:b\u{ad}c", "control or invisible characters", "a:b\\u{ad}c")]
#[tokio::test]
async fn keys_that_vault_cannot_store_are_not_sent(
    #[case] text: &str,
    #[case] obstacle: &str,
    #[case] shown: &str,
) {
    let server = Server::start(|_, _| stored(&json!("v"))).await;
    let (store, key) = (store(with_token(&server)), key(text));
    let errors = [
        store.set(&key, &secret("v")).await.unwrap_err(),
        store.get(&key).await.unwrap_err(),
        store.delete(&key).await.unwrap_err(),
    ];
    for error in errors {
        assert_eq!(error.category(), Category::Validation);
        assert_eq!(
            error.to_string(),
            format!(
                "secret key \"{shown}\" cannot be stored in Vault, whose paths must not contain {obstacle}; choose another key"
            )
        );
    }
    assert_eq!(server.log().len(), 0);
}

#[rstest]
#[case("a:db pass")]
#[case("a:/é/e\u{301}/日本/😀")]
#[case("a:\"quoted\"/it's/back\\slash")]
#[case("a:/b.c/.d/e.")]
#[tokio::test]
async fn keys_that_vault_can_store(#[case] text: &str) {
    let server = Server::start(|_, _| stored(&json!("v"))).await;
    assert_eq!(store(with_token(&server)).get(&key(text)).await.unwrap().expose(), "v");
}

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
    "cannot read secret a:k: Vault does not know secret/data/a:k: no handler for route \"secret/data/a:k\""
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
async fn calls_of_a_sealed_vault_are_not_repeated() {
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
async fn temporary_failures_are_retried(#[case] status: u16) {
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
async fn the_error_names_the_address_of_an_unreachable_vault() {
    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let auth = VaultAuth::Token(secret(TOKEN));
    let error = store(VaultSettings::new(format!("http://{gone}"), auth)).get(&key("a:k")).await.unwrap_err();
    let beginning = format!("cannot read secret a:k: Vault at http://{gone} cannot be reached: ");
    assert!(error.to_string().starts_with(&beginning), "{error}");
    assert_eq!(error.category(), Category::Transport);
}

#[tokio::test]
async fn errors_contain_neither_values_nor_credentials() {
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
