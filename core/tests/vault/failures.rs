//! What Vault says when something is wrong.

use declarest_core::error::{Categorized as _, Category};
use declarest_core::secrets::vault::{KvVersion, VaultSettings, VaultStore};
use declarest_core::transport::TlsSettings;
use reqwest::Method;
use rstest::rstest;
use serde_json::json;

use crate::vault::{Vault, key, secret};

#[tokio::test]
async fn a_sealed_vault_says_so_until_it_is_unsealed() {
    let vault = Vault::start().await;
    let store = vault.store(KvVersion::V2);
    store.set(&key("a:k"), &secret("v")).await.unwrap();
    vault.seal().await;
    for error in
        [store.get(&key("a:k")).await.unwrap_err(), vault.store(KvVersion::V1).init().await.unwrap_err()]
    {
        assert!(error.to_string().ends_with(" is sealed; unseal it"), "{error}");
        assert_eq!(error.category(), Category::Transport);
    }
    vault.unseal().await;
    assert_eq!(vault.store(KvVersion::V2).init().await, Ok(()));
}

#[rstest]
#[case::version_1(KvVersion::V1, "one/a:k", "one/")]
#[case::version_2(KvVersion::V2, "two/data/a:k", "two/metadata/")]
#[tokio::test]
async fn what_is_denied_names_the_policy_that_is_missing(
    #[case] version: KvVersion,
    #[case] path: &str,
    #[case] folder: &str,
) {
    let vault = Vault::start().await;
    let policy = r#"path "one/nothing" { capabilities = ["read"] }"#;
    vault.admin(Method::PUT, "sys/policies/acl/declarest", json!({"policy": policy})).await;
    let store = vault.store(version);
    let expected = |action: &str, capability: &str, path: &str| {
        let grant = format!("a policy of the login must grant {capability} on {path}");
        (format!("cannot {action}: Vault denies it ("), grant)
    };
    let a = key("a:k");
    for (error, (beginning, end)) in [
        (store.get(&a).await.unwrap_err(), expected("read secret a:k", "read", path)),
        (
            store.set(&a, &secret("canary")).await.unwrap_err(),
            expected("write secret a:k", "create and update", path),
        ),
        (store.delete(&a).await.unwrap_err(), expected("delete secret a:k", "delete", path)),
        (store.list().await.unwrap_err(), expected("list secrets", "list", folder)),
    ] {
        let text = error.to_string();
        assert!(text.starts_with(&beginning) && text.ends_with(&end) && !text.contains("canary"), "{text}");
        assert_eq!(error.category(), Category::Auth);
    }
}

#[rstest]
#[case::versions(
    "two",
    KvVersion::V1,
    Category::Validation,
    "vault kvVersion: \"two\" is a version 2 engine; set 2"
)]
#[case::versions_too(
    "one",
    KvVersion::V2,
    Category::Validation,
    "vault kvVersion: \"one\" is a version 1 engine; set 1"
)]
#[case::prefix_in_mount(
    "one/team",
    KvVersion::V1,
    Category::Validation,
    "vault mount: the engine is mounted at \"one\", not at \"one/team\""
)]
#[tokio::test]
async fn init_reports_a_mount_of_another_kind(
    #[case] mount: &str,
    #[case] version: KvVersion,
    #[case] category: Category,
    #[case] message: &str,
) {
    let vault = Vault::start().await;
    let settings = VaultSettings { mount: mount.to_owned(), ..vault.settings(version) };
    let error = VaultStore::new(settings).unwrap().init().await.unwrap_err();
    assert_eq!((error.to_string().as_str(), error.category()), (message, category));
}

#[tokio::test]
async fn a_missing_mount_is_reported_and_lists_nothing_by_mistake() {
    let vault = Vault::start().await;
    let policy = r#"path "*" { capabilities = ["read", "list", "create", "update", "delete"] }"#;
    vault.admin(Method::PUT, "sys/policies/acl/declarest", json!({"policy": policy})).await;
    let settings = VaultSettings { mount: "missing".to_owned(), ..vault.settings(KvVersion::V2) };
    let store = VaultStore::new(settings).unwrap();
    assert_eq!(store.init().await.unwrap_err().category(), Category::Auth);
    for error in [
        store.list().await.unwrap_err(),
        store.get(&key("a:k")).await.unwrap_err(),
        store.delete(&key("a:k")).await.unwrap_err(),
    ] {
        assert!(error.to_string().contains("Vault does not know missing/"), "{error}");
        assert_eq!(error.category(), Category::NotFound);
    }
}

#[tokio::test]
async fn values_of_others_that_are_not_text_are_reported() {
    let vault = Vault::start().await;
    for (name, data) in [("number", json!({"value": 5})), ("other", json!({"password": "canary"}))] {
        vault.admin(Method::POST, &format!("one/{name}"), data).await;
    }
    let store = vault.store(KvVersion::V1);
    let (number, other) = (key("number"), key("other"));
    assert_eq!(store.get(&number).await.unwrap_err().category(), Category::Validation);
    let error = store.get(&other).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "secret other has no field \"value\" in Vault at one/other; store the secret in this field"
    );
    assert_eq!(error.category(), Category::NotFound);
}

#[tokio::test]
async fn tls_is_used_and_an_untrusted_certificate_is_refused() {
    let vault = Vault::start_with_tls().await;
    let store = vault.store(KvVersion::V2);
    store.init().await.unwrap();
    store.set(&key("a:k"), &secret("v")).await.unwrap();

    let untrusted = VaultSettings { tls: TlsSettings::default(), ..vault.settings(KvVersion::V2) };
    let error = VaultStore::new(untrusted).unwrap().get(&key("a:k")).await.unwrap_err();
    assert!(error.to_string().contains("cannot be reached: its certificate is not trusted: "), "{error}");
    assert_eq!(error.category(), Category::Transport);

    let mut plain = vault.settings(KvVersion::V2);
    plain.address = vault.url().replace("https://", "http://");
    let error = VaultStore::new(plain).unwrap().get(&key("a:k")).await.unwrap_err();
    assert_eq!(error.category(), Category::Validation, "{error}");
}
