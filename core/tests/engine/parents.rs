//! Addresses with the ids of parents, which the server assigns.

use declarest_core::sync::{Outcome, Reading};
use serde_json::json;

use crate::rest_server::Config;
use crate::scene::Scene;

/// A shop with an id of the server, and the tills of shops in a collection that is named after this id.
fn shop() -> Scene {
    let mut scene = Scene::new(Config {
        collections: vec!["/shops".to_owned(), "/tills-of/w-1".to_owned()],
        server_ids: vec!["/shops".to_owned()],
        ..Config::default()
    });
    scene.write("shops/_/metadata.yaml", "resource: {id: /id, alias: /name}");
    scene.write(
        "shops/_/tills/_/metadata.yaml",
        "resource: {remoteCollectionPath: '/tills-of/{{/ids/shop}}'}",
    );
    scene.declare("/shops/rio", &json!({"name": "rio"}));
    scene
}

fn paths(scene: &Scene) -> Vec<String> {
    scene.server().resources().into_iter().map(|(path, _)| path).collect()
}

#[tokio::test]
async fn children_are_created_with_their_parent() {
    let mut scene = shop();
    scene.declare("/shops/rio/tills/t1", &json!({"id": "t1"}));
    let report = scene.run(Reading::Each).await;
    assert_eq!((report.stats.created, report.outcome), (2, Outcome::Succeeded), "{report:?}");
    assert_eq!(paths(&scene), ["/shops/w-1", "/tills-of/w-1/t1"]);
}

/// The name of the shop would address the tills of another shop, or be an error other than 404.
#[tokio::test]
async fn a_name_is_never_sent_in_the_place_of_an_id() {
    let mut scene = shop();
    assert_eq!(scene.run(Reading::Each).await.stats.created, 1);
    for till in 0..4 {
        scene.declare(&format!("/shops/rio/tills/t{till}"), &json!({"id": format!("t{till}"), "open": true}));
    }
    for (reading, created) in [(Reading::Each, 4), (Reading::Each, 0), (Reading::Bulk, 0)] {
        let report = scene.run(reading).await;
        assert_eq!((report.stats.created, report.outcome), (created, Outcome::Succeeded), "{report:?}");
        let asked = scene.asked();
        assert!(!asked.iter().any(|asked| asked.contains("/tills-of/rio")), "{asked:?}");
    }
    scene.server().put_by_hand("/tills-of/w-1/t2", json!({"id": "t2", "open": false}));
    assert_eq!(scene.run(Reading::Bulk).await.stats.updated, 1);
    assert_eq!(scene.server().get("/tills-of/w-1/t2").unwrap()["open"], true);
}
