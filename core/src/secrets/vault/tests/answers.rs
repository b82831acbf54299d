//! Unexpected answers, and redirects.

use rstest::rstest;

use super::*;
use crate::error::{Categorized as _, Category};

#[rstest]
#[case::page("<html>canary</html>", Category::Transport)]
#[case::nothing("", Category::Transport)]
#[case::no_secret("{}", Category::Transport)]
#[case::deleted(r#"{"data":{"data":null,"metadata":{"deletion_time":"2026"}}}"#, Category::NotFound)]
#[case::other_fields(r#"{"data":{"data":{"password":"canary"}}}"#, Category::NotFound)]
#[case::null(r#"{"data":{"data":{"value":null}}}"#, Category::NotFound)]
#[case::number(r#"{"data":{"data":{"value":42}}}"#, Category::Validation)]
#[case::object(r#"{"data":{"data":{"value":{"a":"canary"}}}}"#, Category::Validation)]
#[tokio::test]
async fn a_field_value_that_is_not_a_string_is_rejected(
    #[case] body: &'static str,
    #[case] category: Category,
) {
    let server = Server::start(move |_, _| Reply::text(200, body)).await;
    let error = store(with_token(&server)).get(&key("a:k")).await.unwrap_err();
    assert_eq!(error.category(), category, "{error}");
    assert!(!format!("{error} {error:?}").contains("canary"), "{error:?}");
}

#[tokio::test]
async fn an_html_page_does_not_confirm_a_write() {
    let server = Server::start(|_, _| Reply::text(200, "<html>Please log in</html>")).await;
    let store = store(with_token(&server));
    let error = store.set(&key("a:k"), &secret("v")).await.unwrap_err();
    assert_eq!(error.category(), Category::Transport);
    assert_eq!(store.delete(&key("a:k")).await.unwrap_err().category(), Category::Transport);
}

#[tokio::test]
async fn an_answer_is_read_up_to_four_mebibytes() {
    let server =
        Server::start(|_, before| stored(&json!("v".repeat((4 << 20) - 64 - 1024 + 2048 * before)))).await;
    let store = store(with_token(&server));
    assert!(store.get(&key("a:k")).await.unwrap().expose().len() > 4_000_000);
    let error = store.get(&key("a:k")).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot read secret a:k: the answer for secret/data/a:k is unusable: it is larger than the limit of \
         4194304 bytes"
    );
    assert_eq!(error.category(), Category::Validation);
}

#[tokio::test]
async fn redirects_of_a_standby_are_followed() {
    let active = Server::start(|seen, _| match seen.line.as_str() {
        "POST /v1/auth/userpass/login/ops" => granted("hvs.one", 3600),
        "GET /v1/secret/data/a:k" => stored(&json!("v")),
        _ => Reply::json(200, &json!({"data": {"version": 1}})),
    })
    .await;
    let to = active.url.clone();
    let standby = Server::start(move |seen, before| {
        let (_, path) = seen.line.split_once(' ').unwrap();
        Reply::redirect(if before % 2 == 0 { 307 } else { 308 }, format!("{to}{path}"))
    })
    .await;
    let settings = VaultSettings { namespace: Some("/team/a/".to_owned()), ..with_user(&standby) };
    let store = store(settings);
    assert_eq!(store.get(&key("a:k")).await.unwrap().expose(), "v");
    store.set(&key("a:k"), &secret("w")).await.unwrap();
    let log = active.log();
    assert_eq!(log[0].body, format!(r#"{{"password":"{PASSWORD}"}}"#));
    assert_eq!(log[2].body, r#"{"data":{"value":"w"}}"#);
    assert_eq!(log.iter().map(token).collect::<Vec<_>>(), ["", "hvs.one", "hvs.one"]);
    for seen in log.iter().chain(&standby.log()) {
        assert_eq!(seen.header("x-vault-namespace"), "team/a");
        assert_eq!(seen.header("x-vault-request"), "true");
    }
}

#[rstest]
#[case::in_circles(307, "/v1/secret/data/a:k", "more than 3 redirects", 4)]
#[case::for_browsers(
    302,
    "/login",
    "a redirect with status 302 is not followed; configure its target as the address",
    1
)]
#[case::nowhere(308, "", "a redirect with status 308 has no usable Location header", 1)]
#[case::elsewhere(307, "file:///etc/passwd", "a redirect with status 307 has no usable Location header", 1)]
#[tokio::test]
async fn some_redirects_are_not_followed(
    #[case] status: u16,
    #[case] location: &'static str,
    #[case] reason: &str,
    #[case] requests: usize,
) {
    // The address may be correct if redirects form a circle, as while a standby becomes active.
    let category = if requests > 1 { Category::Transport } else { Category::Validation };
    let server = Server::start(move |_, _| match location {
        "" => Reply::text(status, ""),
        location => Reply::redirect(status, location),
    })
    .await;
    let error = store(with_token(&server)).get(&key("a:k")).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("cannot read secret a:k: the answer for secret/data/a:k is unusable: {reason}")
    );
    assert_eq!((error.category(), server.log().len()), (category, requests));
}

#[tokio::test]
async fn a_redirect_to_another_host_is_not_followed() {
    let other = Server::start(|_, _| stored(&json!("v"))).await;
    let elsewhere = other.url.replace("127.0.0.1", "localhost");
    let server =
        Server::start(move |_, _| Reply::redirect(307, format!("{elsewhere}/v1/secret/data/a:k"))).await;
    let error = store(with_token(&server)).get(&key("a:k")).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot read secret a:k: the answer for secret/data/a:k is unusable: a redirect with status 307 leads to \
         another host, localhost, and is not followed; configure it as the address"
    );
    assert_eq!((error.category(), other.log().len()), (Category::Validation, 0));
}

#[test]
fn redirects_from_https_to_http_are_not_followed() {
    let from = "https://vault.example.test/v1/a".parse().unwrap();
    let answer = http::Response::builder().status(307).header("location", "http://vault.example.test/v1/a");
    let followed = crate::secrets::vault::call::redirect_target(&from, &answer.body("").unwrap().into());
    assert_eq!(
        followed.unwrap_err(),
        "a redirect with status 307 leads from https to http and is not followed"
    );
}
