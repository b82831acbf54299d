//! The three logins, and tokens that end in the middle of work.

use std::time::Duration;

use declarest_core::error::{Categorized as _, Category};
use declarest_core::secrets::vault::{KvVersion, VaultAuth, VaultSettings, VaultStore};
use reqwest::Method;
use serde_json::json;

use crate::vault::{Vault, key, secret, userpass};

fn with(vault: &Vault, auth: VaultAuth) -> VaultStore {
    VaultStore::new(VaultSettings { auth, ..vault.settings(KvVersion::V2) }).unwrap()
}

#[tokio::test]
async fn each_login_works_and_is_looked_up() {
    let vault = Vault::start().await;
    let token = vault.token(json!({"policies": ["declarest"], "ttl": "1h"})).await;
    for auth in [VaultAuth::Token(secret(&token)), userpass(crate::vault::PASSWORD), vault.app_role().await] {
        let store = with(&vault, auth);
        store.init().await.unwrap();
        store.set(&key("a:k"), &secret("v")).await.unwrap();
        assert_eq!(store.get(&key("a:k")).await.unwrap().expose(), "v");
        let token = store.lookup_self().await.unwrap();
        assert!(token.policies.contains(&"declarest".to_owned()), "{token:?}");
        assert!(token.renewable && token.ttl.is_some_and(|ttl| ttl > Duration::from_mins(59)), "{token:?}");
    }
}

#[tokio::test]
async fn wrong_credentials_are_refused() {
    let vault = Vault::start().await;
    let role_id = match vault.app_role().await {
        VaultAuth::AppRole { role_id, .. } => role_id,
        other => panic!("{other:?}"),
    };
    let mount = "approle".to_owned();
    for (auth, method) in [
        (VaultAuth::Token(secret("hvs.canary")), "token"),
        (userpass("canary"), "userpass"),
        (VaultAuth::AppRole { mount, role_id, secret_id: secret("canary") }, "AppRole"),
    ] {
        let error = with(&vault, auth).init().await.unwrap_err();
        assert!(error.to_string().contains(&format!("refuses the {method} login: ")), "{error}");
        assert!(!error.to_string().contains("canary"), "{error}");
        assert_eq!(error.category(), Category::Auth);
    }
    let mount = "nowhere".to_owned();
    let auth = VaultAuth::Userpass { mount, username: "ops".to_owned(), password: secret("p") };
    let error = with(&vault, auth).init().await.unwrap_err();
    assert_eq!(error.category(), Category::Auth, "Vault does not show mounts without a login: {error}");
}

#[tokio::test]
async fn a_short_lived_token_is_renewed_while_it_is_used() {
    let vault = Vault::start().await;
    vault.admin(Method::POST, "auth/userpass/users/ops", json!({"token_ttl": "8s"})).await;
    let store = vault.store(KvVersion::V2);
    store.set(&key("a:k"), &secret("v")).await.unwrap();
    let tokens = vault.tokens().await;
    let until = tokio::time::Instant::now() + Duration::from_secs(18);
    // More than two lives of the token, in which it is needed all the time.
    while tokio::time::Instant::now() < until {
        assert_eq!(store.get(&key("a:k")).await.unwrap().expose(), "v");
        assert_eq!(vault.tokens().await, tokens, "it logged in again instead");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

#[tokio::test]
async fn a_token_that_cannot_live_longer_is_replaced_in_the_middle_of_a_run() {
    let vault = Vault::start().await;
    let limits = json!({"token_ttl": "1s", "token_max_ttl": "1s"});
    vault.admin(Method::POST, "auth/userpass/users/ops", limits).await;
    let store = vault.store(KvVersion::V1);
    store.set(&key("a:k"), &secret("v")).await.unwrap();
    let until = tokio::time::Instant::now() + Duration::from_secs(4);
    while tokio::time::Instant::now() < until {
        let (first, second) = (key("a:k"), key("a:k"));
        let (first, second) = tokio::join!(store.get(&first), store.get(&second));
        assert_eq!((first.unwrap().expose(), second.unwrap().expose()), ("v", "v"));
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test]
async fn a_revoked_token_is_replaced_by_a_login_and_a_given_one_is_not() {
    let vault = Vault::start().await;
    let token = vault.token(json!({"policies": ["declarest"]})).await;
    let (given, user) = (with(&vault, VaultAuth::Token(secret(&token))), vault.store(KvVersion::V2));
    given.set(&key("a:k"), &secret("v")).await.unwrap();
    user.get(&key("a:k")).await.unwrap();
    vault.revoke("userpass").await;
    vault.admin(Method::POST, "auth/token/revoke", json!({"token": token})).await;
    assert_eq!(user.get(&key("a:k")).await.unwrap().expose(), "v");
    let error = given.get(&key("a:k")).await.unwrap_err();
    assert_eq!(error.category(), Category::Auth);
    // No policy helps.
    assert!(
        error.to_string().contains("the token is not valid, and may have expired; replace it"),
        "{error}"
    );
    assert!(!error.to_string().contains(&token), "{error}");
}

#[tokio::test]
async fn a_changed_password_is_reported_after_the_old_token_expires() {
    let vault = Vault::start().await;
    let store = vault.store(KvVersion::V2);
    store.set(&key("a:k"), &secret("v")).await.unwrap();
    vault.admin(Method::POST, "auth/userpass/users/ops/password", json!({"password": "another"})).await;
    store.get(&key("a:k")).await.unwrap();
    vault.revoke("userpass").await;
    let error = store.get(&key("a:k")).await.unwrap_err();
    assert!(
        error.to_string().ends_with("refuses the userpass login: invalid username or password"),
        "{error}"
    );
    with(&vault, userpass("another")).get(&key("a:k")).await.unwrap();
}
