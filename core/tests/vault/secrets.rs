//! What a store is for.

use declarest_core::error::{Categorized as _, Category};
use declarest_core::secrets::vault::{KvVersion, VaultSettings, VaultStore};
use rstest::rstest;
use serde_json::Value;

use crate::vault::{Vault, key, listed, secret};

#[rstest]
#[case::version_1(KvVersion::V1)]
#[case::version_2(KvVersion::V2)]
#[tokio::test]
async fn secrets_are_set_read_listed_and_deleted(#[case] version: KvVersion) {
    let vault = Vault::start().await;
    let store = vault.store(version);
    store.init().await.unwrap();
    assert_eq!(listed(&store).await, [""; 0]);
    let values = [
        ("db/main:/users/0/pw", "first"),
        ("db/main:ci", "two\nlines \"and\" \\ more"),
        ("db", "käse ✓"),
        ("certs/a:.", "\u{1}"),
        ("odd/a b:/c~1d%2F?e#f+g=h", ""),
        ("käse:/π", "x"),
    ];
    for (name, value) in values {
        store.set(&key(name), &secret("old")).await.unwrap();
        store.set(&key(name), &secret(value)).await.unwrap();
    }
    for (name, value) in values {
        assert_eq!(store.get(&key(name)).await.unwrap().expose(), value, "{name}");
    }
    let mut expected: Vec<&str> = values.iter().map(|(name, _)| *name).collect();
    expected.sort_unstable();
    assert_eq!(listed(&store).await, expected);

    let gone = key("db/main:ci");
    store.delete(&gone).await.unwrap();
    store.delete(&gone).await.unwrap();
    let error = store.get(&gone).await.unwrap_err();
    assert_eq!(error.category(), Category::NotFound, "{error}");
    assert!(error.to_string().starts_with("secret db/main:ci does not exist in Vault at "), "{error}");
    // Version 2 keeps its metadata, so that it can be undeleted.
    assert_eq!(listed(&store).await.contains(&gone.to_string()), version == KvVersion::V2);
    store.delete(&key("never/was:k")).await.unwrap();
}

#[rstest]
#[case::version_1(KvVersion::V1, "one/team/x/db/main:/pw")]
#[case::version_2(KvVersion::V2, "two/data/team/x/db/main:/pw")]
#[tokio::test]
async fn a_prefix_keeps_stores_apart(#[case] version: KvVersion, #[case] path: &str) {
    let vault = Vault::start().await;
    let below = |prefix: &str| {
        let path_prefix = prefix.to_owned();
        VaultStore::new(VaultSettings { path_prefix, ..vault.settings(version) }).unwrap()
    };
    let (x, y) = (below("team/x"), below("/team/y/"));
    x.set(&key("/db/main:/pw"), &secret("of x")).await.unwrap();
    y.set(&key("/db/main:/pw"), &secret("of y")).await.unwrap();
    assert_eq!(x.get(&key("/db/main:/pw")).await.unwrap().expose(), "of x");
    assert_eq!(listed(&x).await, ["db/main:/pw"]);
    assert_eq!(listed(&vault.store(version)).await, ["team/x/db/main:/pw", "team/y/db/main:/pw"]);
    let stored = vault.admin(reqwest::Method::GET, path, Value::Null).await;
    let stored = if version == KvVersion::V2 { &stored["data"]["data"] } else { &stored["data"] };
    assert_eq!(stored["value"], "of x");
}

#[tokio::test]
async fn a_thousand_secrets_in_folders_are_listed() {
    let vault = Vault::start().await;
    let store = vault.store(KvVersion::V1);
    let name = |number: usize| format!("f{}/g{}/r{number}:/pw", number % 7, number % 20);
    for number in 0..1000 {
        store.set(&key(&name(number)), &secret("v")).await.unwrap();
    }
    let mut expected: Vec<String> = (0..1000).map(name).collect();
    expected.sort();
    assert_eq!(listed(&store).await, expected);
}

#[tokio::test]
async fn many_reads_at_once_use_one_login() {
    let vault = Vault::start().await;
    let writer = vault.store(KvVersion::V2);
    writer.set(&key("a:k"), &secret("v")).await.unwrap();
    let before = vault.tokens().await;
    let (store, name) = (vault.store(KvVersion::V2), key("a:k"));
    let reads = futures::future::join_all((0..100).map(|_| store.get(&name))).await;
    assert!(reads.into_iter().all(|value| value.unwrap().expose() == "v"));
    assert_eq!(vault.tokens().await, before + 1);
}
