//! A day of work: secrets of resources move to a Vault.

use reqwest::Method;
use serde_json::json;

use crate::app_role;
use crate::day::Day;
use crate::git::git;
use crate::vault::Vault;

#[tokio::test]
async fn from_the_guard_against_plain_text_to_vault() {
    let vault = Vault::start().await;
    let mut day = Day::new();
    let store = format!(
        "secretStore: {{vault: {{address: '{}', mount: two, auth: {}}}}}\n",
        vault.url(),
        app_role(&vault).await
    );
    day.context_with("alice", "");
    day.types(&[
        "declarest context add --content-type yaml <alice.yaml",
        "declarest resource save /shops/lima -f '{\"id\": \"lima\", \"password\": \"canary-1\"}'",
        "declarest resource save /shops/lima -f '{\"id\": \"lima\", \"password\": \"canary-1\"}' --secret-attributes",
    ]);
    day.context_with("alice", &store);
    day.types(&[
        "declarest context update --content-type yaml <alice.yaml",
        "declarest context check | grep secretStore",
        "declarest secret init",
        "declarest resource save /shops/lima -f '{\"id\": \"lima\", \"password\": \"canary-1\"}' --secret-attributes",
        "declarest repository commit --message 'Declare the secrets of shops'",
        "cat alice/shops/lima/resource.json",
        "declarest secret list --recursive /",
        "declarest resource apply /shops/lima",
        "declarest resource diff /shops/lima",
        "printf canary-2 | declarest secret set /shops/lima:/password --stdin",
        "declarest plan /shops",
        "declarest resource apply /shops/lima",
        "declarest secret list --unused",
    ]);
    let transcript = day.transcript.replace(vault.url(), "<vault>");
    insta::assert_snapshot!(transcript, @r#"
    $ declarest context add --content-type yaml <alice.yaml

    $ declarest resource save /shops/lima -f '{"id": "lima", "password": "canary-1"}'
    [ERROR] command execution failed: potential plaintext secrets detected in /shops/lima: /password; --secret-attributes keeps them in the secret store, --allow-plaintext saves them in plain text.
    exit 2
    $ declarest resource save /shops/lima -f '{"id": "lima", "password": "canary-1"}' --secret-attributes
    [ERROR] command execution failed: secret provider is not configured in context "alice"; set secretStore.
    exit 2
    $ declarest context update --content-type yaml <alice.yaml

    $ declarest context check | grep secretStore
    [OK] secretStore    Vault accepted the login and has the engine
    $ declarest secret init

    $ declarest resource save /shops/lima -f '{"id": "lima", "password": "canary-1"}' --secret-attributes
    [OK] command executed successfully.
    $ declarest repository commit --message 'Declare the secrets of shops'
    [OK] command executed successfully.
    $ cat alice/shops/lima/resource.json
    {
      "id": "lima",
      "password": "{{secret .}}"
    }
    $ declarest secret list --recursive /
    [
      "/shops/lima:/password"
    ]
    $ declarest resource apply /shops/lima
    + /shops/lima created
    [OK] command executed successfully.
    $ declarest resource diff /shops/lima
    No differences for /shops/lima.
    $ printf canary-2 | declarest secret set /shops/lima:/password --stdin

    $ declarest plan /shops
    ~ /shops/lima
        /password: (secret value changes)
    Plan: 0 to create, 1 to update, 0 to delete, 0 unchanged.
    $ declarest resource apply /shops/lima
    ~ /shops/lima updated
    [OK] command executed successfully.
    $ declarest secret list --unused
    []
    "#);
    assert_eq!(day.server.get("/shops/lima").unwrap()["password"], "canary-2");
    let stored = vault.admin(Method::GET, "two/data/shops/lima:/password", json!(null)).await;
    assert_eq!(stored["data"]["data"]["value"], "canary-2");
    let committed = git(&day.home.path("alice"), &["log", "--patch"]);
    assert!(!committed.contains("canary"), "{committed}");
}
