//! The shapes of real products, with the metadata that is published for them.

use serde_json::{Value, json};

use super::Scene;
use crate::support::api_server::{Answer, ApiServer, Ids, Request, Store};

/// Keycloak: realms by name, though they have an internal id; clients by an id that only `Location` shows;
/// above the realms is a console for people.
fn keycloak(request: &Request, store: &mut Store) -> Answer {
    let path = request.path.clone();
    match (request.method.as_str(), request.segments().as_slice()) {
        ("GET", [] | ["admin"]) => Answer::redirect("/admin/master/console/"),
        ("GET", ["admin", "master", "console"] | ["admin", "master", "console", ""]) => Answer::html(200),
        ("POST", ["admin", "realms"]) => {
            let name = request.body["realm"].as_str().unwrap_or_default().to_owned();
            let at = format!("{path}/{name}");
            if store.get(&at).is_some() {
                return Answer::empty(409);
            }
            let mut realm = request.body.clone();
            realm["id"] = json!(format!("0000-{name}"));
            store.put(&at, realm);
            Answer::empty(201).header("location", &at)
        }
        ("POST", ["admin", "realms", _, "clients"]) => request.create(store, Ids::Given).without_body(),
        ("PUT", ["admin", "realms", _]) => request.change(store, Ids::Given).without_body(),
        _ => request.rest(store, Ids::Given),
    }
}

const REALMS: &str = "resource: {id: /realm, alias: /realm}
operations: {compare: {transforms: [{excludeAttributes: [/id]}]}}
";
const CLIENTS: &str = "resource: {id: /id, alias: /clientId}\n";

#[tokio::test]
async fn a_realm_with_two_clients_is_created_changed_and_deleted() {
    let server = ApiServer::start(&["/admin/realms", "/admin/realms/*/clients"], keycloak);
    server.put("/admin/realms/master", json!({"id": "0000-master", "realm": "master"}));
    let (scene, _) = Scene::start(
        server,
        &[
            ("admin/realms/_/metadata.yaml", REALMS),
            ("admin/realms/_/clients/_/metadata.yaml", CLIENTS),
            ("admin/realms/acme/resource.json", r#"{"realm": "acme", "enabled": true}"#),
            ("admin/realms/acme/clients/shop/resource.json", r#"{"clientId": "shop", "enabled": true}"#),
            ("admin/realms/acme/clients/till/resource.json", r#"{"clientId": "till", "enabled": true}"#),
            ("admin/realms/beta/resource.json", r#"{"realm": "beta"}"#),
        ],
    )
    .await;
    scene.converges(2).await;
    let clients = |scene: &Scene| -> Vec<Value> {
        let all = scene.server.all();
        all.into_iter().filter(|(path, _)| path.contains("/clients/")).map(|(_, client)| client).collect()
    };
    assert_eq!(clients(&scene).len(), 2, "{:?}", scene.server.writes());
    assert_eq!(scene.server.count("POST"), 4, "{:?}", scene.server.writes());
    assert_eq!(scene.server.get("/admin/realms/acme").unwrap()["enabled"], true);

    scene.git.write("admin/realms/acme/resource.json", r#"{"realm": "acme", "enabled": false}"#);
    scene
        .git
        .write("admin/realms/acme/clients/shop/resource.json", r#"{"clientId": "shop", "enabled": false}"#);
    scene.git.remove("admin/realms/acme/clients/till");
    scene.push().await;
    scene.converges(1).await;
    assert_eq!(scene.server.get("/admin/realms/acme").unwrap()["enabled"], false);
    let left = clients(&scene);
    assert_eq!(left.len(), 1, "{:?}", scene.server.writes());
    assert_eq!((&left[0]["clientId"], &left[0]["enabled"]), (&json!("shop"), &json!(false)));

    scene.git.remove("admin/realms/acme");
    scene.push().await;
    scene.converges(1).await;
    scene.holds(&["/admin/realms/beta", "/admin/realms/master"]);
}

/// `PowerDNS`: the collection is elsewhere than its path says, and the root is a list of something else.
fn power_dns(request: &Request, store: &mut Store) -> Answer {
    match (request.method.as_str(), request.segments().as_slice()) {
        ("GET", []) => Answer::json(200, &json!([{"url": "/api/v1", "version": 1}])),
        ("POST", ["servers", "localhost", "zones"]) => {
            let mut zone = request.clone();
            zone.body["id"] = request.body["name"].clone();
            zone.body["serial"] = json!(0);
            zone.create(store, Ids::Stated("name"))
        }
        _ => request.rest(store, Ids::Given),
    }
}

const ZONES: &str = "resource: {id: /name, alias: /name, remoteCollectionPath: /servers/localhost/zones}
operations: {update: {method: PATCH}, compare: {transforms: [{selectAttributes: [/name, /kind]}]}}
";

#[tokio::test]
async fn a_zone_whose_collection_is_elsewhere_is_created_changed_and_deleted() {
    let server = ApiServer::start(&["/servers/localhost/zones"], power_dns);
    server.put("/servers/localhost/zones/other.test", json!({"id": "other.test", "name": "other.test"}));
    let (scene, _) = Scene::start(
        server,
        &[
            ("zones/_/metadata.yaml", ZONES),
            ("zones/acme.test/resource.json", r#"{"name": "acme.test", "kind": "Native"}"#),
            ("zones/beta.test/resource.json", r#"{"name": "beta.test", "kind": "Native"}"#),
        ],
    )
    .await;
    scene.converges(1).await;
    assert_eq!(scene.server.count("POST"), 2, "{:?}", scene.server.writes());
    scene.git.write("zones/acme.test/resource.json", r#"{"name": "acme.test", "kind": "Master"}"#);
    scene.push().await;
    scene.converges(1).await;
    assert_eq!(scene.server.get("/servers/localhost/zones/acme.test").unwrap()["kind"], "Master");
    scene.git.remove("zones/acme.test");
    scene.push().await;
    scene.converges(1).await;
    scene.holds(&["/servers/localhost/zones/beta.test", "/servers/localhost/zones/other.test"]);
}

/// The settings of a realm have neither POST nor DELETE.
fn settings(request: &Request, store: &mut Store) -> Answer {
    match request.method.as_str() {
        "GET" | "PUT" => request.rest(store, Ids::Stated("none")),
        _ => Answer::json(405, &json!({"error": "method not allowed"})),
    }
}

#[tokio::test]
async fn singletons_are_kept_or_reset_when_git_no_longer_declares_them() {
    let server = ApiServer::start(&[], settings);
    server.put("/realms/events", json!({"days": 1}));
    server.put("/realms/stays", json!({}));
    server.put("/realms/profile", json!({"policy": "free"}));
    let scene = Scene::synced(
        server,
        &[
            ("realms/_/metadata.yaml", "resource: {singleton: true}\n"),
            ("realms/profile/metadata.yaml", "resource: {onRemove: {reset: {policy: free}}}\n"),
            ("realms/profile/resource.json", r#"{"policy": "strict"}"#),
            ("realms/events/resource.json", r#"{"days": 7}"#),
            ("realms/stays/resource.json", "{}"),
        ],
    )
    .await;
    scene.git.remove("realms/profile/resource.json");
    scene.git.remove("realms/events");
    scene.push().await;
    scene.converges(1).await;
    scene.converges(1).await;
    assert_eq!(scene.server.get("/realms/profile"), Some(json!({"policy": "free"})));
    assert_eq!(scene.server.get("/realms/events"), Some(json!({"days": 7})));
    assert_eq!(scene.server.count("DELETE") + scene.server.count("POST"), 0, "{:?}", scene.server.writes());
    let resets =
        scene.server.writes().iter().filter(|write| write.starts_with("PUT /realms/profile")).count();
    assert_eq!(resets, 2, "{:?}", scene.server.writes());
}
