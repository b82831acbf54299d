//! Who a resource is, where metadata says it.

use rstest::rstest;
use serde_json::{Value, json};

use super::{Scene, assert_reports};
use crate::support::api_server::{ApiServer, Ids};

const USERS: (&str, &str) = ("users/_/metadata.yaml", "resource: {id: /id, alias: /username}\n");
const KIM: (&str, &str) = ("users/kim/resource.json", r#"{"username": "kim"}"#);

fn users() -> ApiServer {
    ApiServer::rest(&["/users"], Ids::Given)
}

/// A user called ava, who carries `admin` in a member that metadata does not speak of.
fn ava(member: &str) -> Value {
    let mut ava = json!({"id": "u7", "username": "ava"});
    ava[member] = json!("admin");
    ava
}

#[rstest]
#[tokio::test]
async fn a_display_name_never_makes_a_resource_the_target_of_a_deletion(
    #[values("name", "alias", "clientId", "key", "uuid", "uid")] member: &str,
) {
    let admin = ("users/admin/resource.json", r#"{"username": "admin"}"#);
    let scene = Scene::synced(users(), &[USERS, KIM, admin]).await;
    // A run has found what the first one created.
    scene.converges(1).await;
    let created = scene.server.all().into_iter().find(|(_, user)| user["username"] == "admin").unwrap().0;
    scene.server.remove(&created);
    scene.server.put("/users/u7", ava(member));
    scene.git.remove("users/admin");
    scene.push().await;
    scene.deletes_nothing();
    assert_eq!(scene.server.get("/users/u7"), Some(ava(member)));
    scene.converges(1).await;
    scene.deletes_nothing();
}

#[tokio::test]
async fn a_declared_user_whose_display_name_was_declared_once_is_kept() {
    let admin = ("users/admin/resource.json", r#"{"username": "admin"}"#);
    let bob = ("users/bob/resource.json", r#"{"username": "bob", "name": "admin"}"#);
    let scene = Scene::synced(users(), &[USERS, admin, bob]).await;
    // A run has found what the first one created.
    scene.converges(1).await;
    let all = scene.server.all();
    let (admin, _) = all.iter().find(|(_, user)| user["username"] == "admin").unwrap();
    scene.server.remove(admin);
    let before = scene.server.all();
    scene.git.remove("users/admin");
    scene.push().await;
    scene.deletes_nothing();
    assert_eq!(scene.server.all(), before);
    scene.converges(1).await;
    assert_eq!(scene.server.all(), before);
}

#[rstest]
#[tokio::test]
async fn a_display_name_never_makes_a_resource_the_target_of_an_update(
    #[values("name", "alias", "clientId", "key", "uuid", "uid")] member: &str,
) {
    let server = users();
    server.put("/users/u7", ava(member));
    let admin = ("users/admin/resource.json", r#"{"username": "admin"}"#);
    let (scene, _) = Scene::start(server, &[USERS, admin]).await;
    assert_eq!(scene.server.get("/users/u7"), Some(ava(member)), "{:?}", scene.server.writes());
    scene.converges(2).await;
    assert_eq!(scene.server.writes(), ["POST /users 201"]);
    assert_eq!(scene.server.get("/users/n7"), Some(json!({"id": "n7", "username": "admin"})));
}

/// What is right: the same metadata finds what has the name, creates once what is missing, and prunes it.
#[tokio::test]
async fn a_resource_with_an_id_of_the_server_is_created_once_and_pruned_when_it_is_removed() {
    let server = users();
    server.put("/users/u1", json!({"id": "u1", "username": "ava"}));
    let files = [USERS, KIM, ("users/ava/resource.json", r#"{"username": "ava", "mail": "a@example.test"}"#)];
    let scene = Scene::synced(server, &files).await;
    scene.full_run().await;
    scene.converges(1).await;
    let mut writes = scene.server.writes();
    writes.sort();
    assert_eq!(writes, ["POST /users 201", "PUT /users/u1 200"]);
    scene.git.remove("users/kim");
    scene.push().await;
    scene.converges(1).await;
    scene.holds(&["/users/u1"]);
}

const SHOPS: (&str, &str) = ("shops/_/metadata.yaml", "resource: {id: /uid, alias: /name}\n");

fn rio_and_ava() -> ApiServer {
    let server = ApiServer::rest(&["/shops"], Ids::Stated("uid"));
    server.put("/shops/u1", json!({"uid": "u1", "name": "rio"}));
    server.put("/shops/u2", json!({"uid": "u2", "name": "ava"}));
    server
}

#[tokio::test]
async fn an_id_that_belongs_to_another_name_overwrites_and_deletes_nothing() {
    let server = rio_and_ava();
    let before = server.all();
    let stale = ("shops/rio/resource.json", r#"{"name": "rio", "uid": "u2"}"#);
    let other = ("shops/kai/resource.json", r#"{"name": "kai", "uid": "u3"}"#);
    let (scene, status) = Scene::start(server, &[SHOPS, stale, other]).await;
    let untouched = |scene: &Scene| {
        let mut held = scene.server.all();
        held.remove("/shops/u3");
        assert_eq!(held, before, "{:?}", scene.server.writes());
    };
    untouched(&scene);
    assert_reports(&status, "/shops/rio");
    untouched(&scene);
    scene.git.remove("shops/rio");
    scene.push().await;
    untouched(&scene);
    scene.full_run().await;
    untouched(&scene);
    scene.deletes_nothing();
}

/// What is right: an id that fits the name is an address.
#[tokio::test]
async fn an_id_that_belongs_to_the_name_is_written_to() {
    let rio = ("shops/rio/resource.json", r#"{"name": "rio", "uid": "u1", "tier": 1}"#);
    let ava = ("shops/ava/resource.json", r#"{"name": "ava", "uid": "u2"}"#);
    let scene = Scene::synced(rio_and_ava(), &[SHOPS, rio, ava]).await;
    assert_eq!(scene.server.writes(), ["PUT /shops/u1 200"]);
    scene.git.remove("shops/rio");
    scene.push().await;
    scene.converges(1).await;
    scene.holds(&["/shops/u2"]);
}
