//! First syncs, which find very many resources missing: the requests that create them are made when they are sent.

use declarest_core::error::Category;
use declarest_core::sync::{FailureReason, Outcome};
use serde_json::json;

use crate::rest_server::{Config, Matcher};
use crate::scene::Scene;

fn collection(path: &str) -> Config {
    Config { collections: vec![path.to_owned()], ..Config::default() }
}

/// So many resources, each with a secret of its own, all of which are in the store but for those of `lost`.
async fn vaults(count: usize, lost: &[usize]) -> Scene {
    let mut scene = Scene::new(collection("/vaults"));
    let mut secrets = Vec::new();
    for index in 0..count {
        scene.declare(
            &format!("/vaults/v{index}"),
            &json!({"id": format!("v{index}"), "pin": "{{secret .}}"}),
        );
        if !lost.contains(&index) {
            secrets.push((format!("vaults/v{index}:/pin"), format!("pin of v{index}")));
        }
    }
    let secrets: Vec<(&str, &str)> =
        secrets.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    scene.with_secrets(&secrets).await
}

#[tokio::test]
async fn each_is_created_with_its_own_secret() {
    let scene = vaults(60, &[]).await;
    let (report, secrets) = scene.first_with_secrets().await;
    assert_eq!((report.stats.created, secrets), (60, 60), "{report:?}");
    for index in 0..60 {
        let live = scene.server().get(&format!("/vaults/v{index}")).unwrap();
        assert_eq!(live["pin"], format!("pin of v{index}"));
    }
    assert_eq!(scene.first().await.stats.unchanged, 60);
}

#[tokio::test]
async fn a_secret_that_cannot_be_read_costs_its_own_resource() {
    // One that is looked at while nothing is known of the list, and one that is on none.
    let scene = vaults(60, &[0, 50]).await;
    let report = scene.first().await;
    assert_eq!((report.stats.created, report.stats.failed), (58, 2), "{report:?}");
    let reported: Vec<_> =
        report.failures.iter().map(|failure| (failure.path.as_str(), failure.reason)).collect();
    let reason = FailureReason::SecretUnreadable(Category::NotFound);
    assert_eq!(reported, [("/vaults/v0", reason), ("/vaults/v50", reason)]);
    assert_eq!(scene.server().counts().method("POST"), 58);
}

#[tokio::test]
async fn secrets_are_not_read_long_before_they_are_sent() {
    let scene = vaults(400, &[]).await;
    scene.server().fail(Matcher::method("POST"), 401, usize::MAX);
    let (report, secrets) = scene.first_with_secrets().await;
    assert_eq!((report.outcome, report.aborted_by), (Outcome::Failed, Some(Category::Auth)));
    // As many as may be under way at most, and those that are ready to follow.
    let sent = scene.server().counts().method("POST");
    assert!(sent < 100 && secrets < 150, "{sent} sent, {secrets} read");
}

#[tokio::test]
async fn children_follow_the_ids_that_the_server_gives() {
    let mut scene = Scene::new(Config {
        collections: vec!["/shops".to_owned()],
        server_ids: vec!["/shops".to_owned(), "/shops/*/tills".to_owned()],
        ..Config::default()
    });
    scene.write("shops/_/metadata.yaml", "resource: {id: /id, alias: /name}");
    scene.write("shops/_/tills/_/metadata.yaml", "resource: {id: /id, alias: /name}");
    for shop in 0..40 {
        scene.declare(&format!("/shops/s{shop}"), &json!({"name": format!("s{shop}")}));
        for till in 0..3 {
            let body = json!({"name": format!("t{till}"), "of": format!("s{shop}")});
            scene.declare(&format!("/shops/s{shop}/tills/t{till}"), &body);
        }
    }
    let report = scene.first().await;
    assert_eq!((report.stats.created, report.outcome), (160, Outcome::Succeeded), "{report:?}");
    let resources = scene.server().resources();
    let name_of = |path: &str| scene.server().get(path).unwrap()["name"].clone();
    let tills: Vec<_> = resources.iter().filter(|(_, body)| body.get("of").is_some()).collect();
    assert_eq!(tills.len(), 120);
    for (path, till) in tills {
        let shop = path.split("/tills/").next().unwrap();
        assert_eq!(name_of(shop), till["of"], "{path}");
    }
}

#[tokio::test]
async fn children_follow_ids_below_a_parent_that_exists() {
    let mut scene = Scene::new(Config {
        collections: vec!["/shops".to_owned(), "/shops/*/tills/*/drawers".to_owned()],
        server_ids: vec!["/shops".to_owned(), "/shops/*/tills".to_owned()],
        ..Config::default()
    });
    scene.write("shops/_/metadata.yaml", "resource: {id: /id, alias: /name}");
    scene.write("shops/_/tills/_/metadata.yaml", "resource: {id: /id, alias: /name}");
    scene.declare("/shops/rio", &json!({"name": "rio"}));
    assert_eq!(scene.first().await.stats.created, 1);
    scene.declare("/shops/rio/tills/t1", &json!({"name": "t1"}));
    scene.declare("/shops/rio/tills/t1/drawers/d1", &json!({"id": "d1"}));
    let report = scene.first().await;
    assert_eq!((report.stats.created, report.outcome), (2, Outcome::Succeeded), "{report:?}");
    let paths: Vec<String> = scene.server().resources().into_iter().map(|(path, _)| path).collect();
    assert_eq!(paths, ["/shops/w-1", "/shops/w-1/tills/w-2", "/shops/w-1/tills/w-2/drawers/d1"]);
}

/// Their list is missing too, so each of them depends on whether the shop exists.
#[tokio::test]
async fn the_address_of_a_missing_parent_is_read_once_for_all_below_it() {
    let mut scene = Scene::new(Config {
        collections: vec!["/shops".to_owned()],
        server_ids: vec!["/shops/*/tills".to_owned()],
        ..Config::default()
    });
    scene.write("shops/_/tills/_/metadata.yaml", "resource: {id: /id, alias: /name}");
    scene.declare("/shops/rio", &json!({"id": "rio"}));
    for till in ["t1", "t2"] {
        scene.declare(&format!("/shops/rio/tills/{till}"), &json!({"name": till}));
    }
    let report = scene.first().await;
    assert_eq!((report.stats.created, report.outcome), (3, Outcome::Succeeded), "{report:?}");
    let counts = scene.server().counts();
    assert_eq!(counts.of("GET", "/shops/rio"), 1, "{counts:?}");
}
