//! Lists without the method LIST, and invalid trees.

use rstest::rstest;

use super::*;
use crate::error::{Categorized as _, Category};

fn keys(keys: &[&str]) -> Reply {
    Reply::json(200, &json!({"data": {"keys": keys}}))
}

async fn listed(store: &VaultStore) -> Vec<String> {
    store.list().await.unwrap().iter().map(ToString::to_string).collect()
}

#[rstest]
#[case(400)]
#[case(405)]
#[tokio::test]
async fn if_list_is_rejected_get_is_used(#[case] status: u16) {
    let server = Server::start(move |seen, _| match seen.line.as_str() {
        "GET /v1/secret/metadata/?list=true" => keys(&["b", "a/"]),
        "GET /v1/secret/metadata/a/?list=true" => keys(&["x:.", "x:/"]),
        "GET /v1/secret/metadata/a/x:/?list=true" => keys(&["pw"]),
        _ => Reply::text(status, ""),
    })
    .await;
    let store = store(with_token(&server));
    assert_eq!(listed(&store).await, ["a/x:.", "a/x:/pw", "b"]);
    listed(&store).await;
    let refused = server.lines().iter().filter(|line| line.starts_with("LIST")).count();
    assert_eq!(refused, 1, "{:?}", server.lines());
}

#[tokio::test]
async fn an_empty_path_lists_nothing() {
    let server = Server::start(|_, _| Reply::json(404, &json!({"errors": []}))).await;
    let settings = VaultSettings { path_prefix: "team/x".to_owned(), ..with_token(&server) };
    assert_eq!(listed(&store(settings)).await, [""; 0]);
    assert_eq!(server.lines(), ["LIST /v1/secret/metadata/team/x/"]);
}

#[tokio::test]
async fn entries_that_leave_the_folder_or_are_not_keys_are_left_out() {
    let server = Server::start(|seen, _| match seen.line.as_str() {
        "LIST /v1/secret/metadata/" => keys(&["../", "./", "/", "", " padded", "a/", "a/", "b//", "ok"]),
        "LIST /v1/secret/metadata/a/" => keys(&["..", "../../", "in"]),
        line => panic!("{line}"),
    })
    .await;
    assert_eq!(listed(&store(with_token(&server))).await, ["a/in", "ok"]);
}

#[tokio::test]
async fn a_too_deep_tree_is_rejected() {
    let server = Server::start(|_, _| keys(&["deeper/"])).await;
    let error = store(with_token(&server)).list().await.unwrap_err();
    assert!(error.to_string().ends_with("folders are nested deeper than 128 levels"), "{error}");
    assert_eq!(error.category(), Category::Validation);
}

#[tokio::test]
async fn deleting_an_absent_secret_succeeds() {
    let server = Server::start(|_, _| Reply::json(404, &json!({"errors": []}))).await;
    store(with_token(&server)).delete(&key("a:k")).await.unwrap();
    assert_eq!(server.lines(), ["DELETE /v1/secret/data/a:k"]);
}
