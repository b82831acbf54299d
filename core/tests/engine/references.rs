//! Templates that need values of other resources: how often these are read, and how current they are.

use declarest_core::sync::{Outcome, Reading};
use serde_json::json;

use crate::rest_server::Config;
use crate::scene::Scene;

/// Members of a group, whose addresses contain the number of the group.
fn members() -> Scene {
    let mut scene = Scene::new(Config {
        collections: vec!["/groups".to_owned(), "/members/1".to_owned(), "/members/2".to_owned()],
        ..Config::default()
    });
    let metadata = r#"resource: {remoteCollectionPath: '/members/{{ref "/groups/staff" "/number"}}'}"#;
    scene.write("members/_/metadata.yaml", metadata);
    // Larger than most resources.
    let notes = "x".repeat(50_000);
    scene.declare("/groups/staff", &json!({"id": "staff", "number": 1, "notes": notes}));
    for name in ["ana", "bob"] {
        scene.declare(&format!("/members/{name}"), &json!({"id": name, "active": true}));
    }
    scene
}

#[tokio::test]
async fn a_resource_is_read_once_for_all_that_refer_to_it() {
    let scene = members();
    let report = scene.run(Reading::Each).await;
    assert_eq!((report.stats.created, report.outcome), (3, Outcome::Succeeded), "{report:?}");
    // It is read again after it was created.
    assert_eq!(scene.server().counts().of("GET", "/groups/staff"), 2);
    assert_eq!(scene.server().get("/members/1/ana").unwrap()["active"], true);

    let report = scene.run(Reading::Each).await;
    assert_eq!((report.stats.unchanged, report.outcome), (3, Outcome::Succeeded), "{report:?}");
    assert_eq!(scene.server().counts().of("GET", "/groups/staff"), 1, "{:?}", scene.asked());

    // The desired payload is needed once more after the create.
    assert!(scene.server().delete_by_hand("/members/1/ana"));
    let report = scene.run(Reading::Each).await;
    assert_eq!((report.stats.created, report.stats.unchanged), (1, 2), "{report:?}");
    assert_eq!(scene.server().counts().of("GET", "/groups/staff"), 1, "{:?}", scene.asked());
}
