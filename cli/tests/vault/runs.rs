//! Resources whose secrets are in a Vault.

use std::time::Duration;

use reqwest::Method;
use serde_json::json;

use crate::environment::Run;
use crate::rest_server::Matcher;
use crate::vault::Vault;
use crate::world::World;
use crate::{USERPASS, app_role};

const RESOURCES: usize = 4;

/// A server that is asked for one resource at a time, and a context with secrets in `vault`.
fn world(vault: &Vault, auth: &str) -> World {
    let world = World::new(&["/apps"], &[]);
    let catalogue = world.home.catalogue();
    let catalogue =
        catalogue.replace("auth: {custom", "requestThrottling: {maxConcurrentRequests: 1}, auth: {custom");
    let credentials =
        format!("credentials: [{{name: ops, username: ops, password: {}}}]\n", crate::vault::PASSWORD);
    let store =
        format!("  secretStore: {{vault: {{address: '{}', mount: two, auth: {auth}}}}}\n", vault.url());
    world.home.write(".declarest/configs/contexts.yaml", &format!("{credentials}{catalogue}{store}"));
    world
}

/// Resources that have a secret each.
fn declare(world: &World) {
    for number in 0..RESOURCES {
        let payload = json!({"id": format!("a{number}"), "pw": "{{secret .}}"});
        world.declare(&format!("apps/a{number}/resource.json"), &payload.to_string());
        world.store_secret(&format!("/apps/a{number}:/pw"), &format!("s3cret-{number}"));
    }
}

/// Applies them, and lets `end` end the tokens while the server has answered nothing yet: by then the secret of one
/// resource has been read.
fn apply_while(world: &World, end: impl Future<Output = ()>) -> Run {
    let held = world.server.hold(Matcher::method("GET"));
    std::thread::scope(|scope| {
        let applied = scope.spawn(|| world.run(&["resource", "apply", "/apps"]));
        tokio::task::block_in_place(|| {
            tokio::runtime::Handle::current().block_on(async {
                until(async || world.server.open() > 0).await;
                end.await;
            });
        });
        drop(held);
        applied.join().unwrap()
    })
}

async fn until(mut done: impl AsyncFnMut() -> bool) {
    while !done().await {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_expires_in_the_middle_of_a_run_is_replaced() {
    let vault = Vault::start().await;
    let world = world(&vault, USERPASS);
    declare(&world);
    let life = json!({"token_ttl": "1s", "token_max_ttl": "1s"});
    vault.admin(Method::POST, "auth/userpass/users/ops", life).await;
    vault.revoke("userpass").await;
    let before = vault.tokens().await;
    // Vault drops a token a moment after its end.
    let run = apply_while(&world, until(async || vault.tokens().await == before));
    assert_eq!(run.code, 0, "{run}");
    for number in 0..RESOURCES {
        let expected = json!({"id": format!("a{number}"), "pw": format!("s3cret-{number}")});
        assert_eq!(world.observed(&format!("/apps/a{number}")), Some(expected));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_given_token_that_expires_during_a_run_is_reported() {
    let vault = Vault::start().await;
    let token = vault.token(json!({"policies": ["declarest"]})).await;
    let world = world(&vault, &format!("{{token: {token}}}"));
    declare(&world);
    let revoked = async {
        vault.admin(Method::POST, "auth/token/revoke", json!({"token": token})).await;
    };
    let run = apply_while(&world, revoked);
    assert_eq!(run.code, 4, "{run}");
    // Resources that were read before are written, and the rest is reported.
    let written = world.writes().len();
    assert!((1..RESOURCES).contains(&written), "{run}");
    let reported = run.stderr.matches("the token is not valid, and may have expired").count();
    assert!(reported >= RESOURCES - written, "{run}");
    assert!(!run.to_string().contains(&token) && !run.to_string().contains("s3cret"), "{run}");
}

#[tokio::test]
async fn secrets_are_saved_in_vault_and_sent_from_there() {
    let vault = Vault::start().await;
    let world = world(&vault, &app_role(&vault).await);
    world.live("/apps/a", r#"{"id": "a", "apiKey": "k1"}"#);
    let check = world.run(&["context", "check"]);
    assert!(check.stdout.contains("[OK] secretStore"), "{check}");
    let refused = world.run(&["resource", "save", "/apps/a"]);
    assert_eq!(refused.code, 2, "{refused}");
    assert_eq!(world.run(&["secret", "list"]).stdout, "[]\n");
    let saved = world.run(&["resource", "save", "/apps/a", "--secret-attributes"]);
    assert_eq!(saved.code, 0, "{saved}");
    assert!(world.declared("apps/a/resource.json").unwrap().contains(r#""apiKey": "{{secret .}}""#));
    let stored = vault.admin(Method::GET, "two/data/apps/a:/apiKey", json!(null)).await;
    assert_eq!(stored["data"]["data"]["value"], "k1");

    world.store_secret("/apps/a:/apiKey", "k2");
    assert_eq!(world.run(&["resource", "apply", "/apps/a"]).code, 0);
    assert_eq!(world.observed("/apps/a"), Some(json!({"id": "a", "apiKey": "k2"})));
    let shown = world.run(&["resource", "get", "/apps/a", "--source", "repository", "--show-secrets"]);
    assert!(shown.stdout.contains("k2"), "{shown}");

    vault.seal().await;
    world.live("/apps/a", r#"{"id": "a", "apiKey": "k3"}"#);
    let sealed = world.run(&["resource", "apply", "/apps/a"]);
    assert_eq!(sealed.code, 6, "{sealed}");
    assert!(sealed.stderr.contains("is sealed; unseal it"), "{sealed}");
    let failed = world.run(&["context", "check"]);
    assert!(failed.stdout.contains("[FAIL] secretStore") && failed.stdout.contains("is sealed"), "{failed}");
}
