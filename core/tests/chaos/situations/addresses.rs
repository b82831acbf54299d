//! Where a path of the repository is on the server, now and when it was declared last.

use serde_json::json;

use super::desired::{Desired, Place};
use super::draw::Draw;
use super::world::World;
use crate::api_server::{Answer, ApiServer, Ids};

/// E2. Two collections lead to one address. A resource is declared in one of them, then in both, then in the other
/// one alone, or moves at once; meanwhile the one that stays may be unreadable.
pub async fn shared(mut draw: Draw) -> World {
    let server = ApiServer::start(&["/api/clients"], |request, store| {
        if store.mode == "down" && request.query.contains_key("view") {
            return Answer::empty(500);
        }
        request.rest(store, Ids::Stated("id"))
    });
    let mut world = World::new(server, draw.seed());
    let (old, new) = (draw.plural(), draw.plural());
    let mut git = Desired::default();
    let shared = "resource: {remoteCollectionPath: /api/clients}\n";
    git.rules(&old, shared);
    git.rules(&new, &format!("{shared}operations: {{get: {{query: {{view: full}}}}}}\n"));
    let place = |name: &str| Place::At(format!("/api/clients/{name}"));
    let count = draw.number(2..8);
    let names = draw.names(count);
    for name in &names {
        let body = draw.body(json!({"id": name}));
        git.declare(&format!("/{}/{name}", draw.one_of(&[&old, &new])), place(name), body);
    }
    for name in draw.names(3) {
        world.foreign(&format!("/api/clients/{name}"), draw.body(json!({"id": name})));
    }
    let web = draw.name();
    let body = draw.body(json!({"id": web}));
    git.declare(&format!("/{old}/{web}"), place(&web), body.clone());
    world.push(&git).await;
    world.converges(2).await;
    if draw.chance(60) {
        git.declare(&format!("/{new}/{web}"), place(&web), body.clone());
        world.push(&git).await;
    }
    let down = draw.chance(50);
    if down {
        world.mode("down");
    }
    git.drop(&format!("/{old}/{web}"));
    git.declare(&format!("/{new}/{web}"), place(&web), body);
    world.push(&git).await;
    world.mode("");
    world.converges(2).await;
    // What is right: what neither declares goes.
    git.drop(&format!("/{new}/{web}"));
    world.push(&git).await;
    world.converges(2).await;
    world
}

/// E4. A collection goes with the metadata that says where it is, or its metadata changes with a removal, or cannot be
/// read for a while. Where today's rules lead, others have the same names.
pub async fn old_rules(mut draw: Draw) -> World {
    let (users, items) = (draw.plural(), draw.plural());
    let (admin, plain) = (format!("/admin/{users}"), format!("/{users}"));
    let collections = [admin.clone(), plain.clone(), format!("/{items}")];
    let server = ApiServer::rest(&collections.each_ref().map(String::as_str), Ids::Stated("id"));
    let mut world = World::new(server, draw.seed());
    let mut git = Desired::default();
    git.rules(&users, &format!("resource: {{remoteCollectionPath: {admin}}}\n"));
    let count = draw.number(1..6);
    let names = draw.names(count);
    for name in &names {
        let place = Place::At(format!("{admin}/{name}"));
        git.declare(&format!("/{users}/{name}"), place, draw.body(json!({"id": name})));
        world.foreign(&format!("{plain}/{name}"), draw.body(json!({"id": name, "owner": "another API"})));
    }
    for name in draw.names(2) {
        git.declare(&format!("/{items}/{name}"), Place::At(format!("/{items}/{name}")), json!({"id": name}));
        world.foreign(&format!("{admin}/{name}"), json!({"id": name}));
    }
    world.push(&git).await;
    world.converges(2).await;
    if draw.chance(30) {
        let whole = git.clone();
        git.rules(&users, "resource: {remoteCollectionPath: \"/admin/{{/us\"}\n");
        world.push(&git).await;
        world.expect_failure();
        git = whole;
        // Resources that only a broken commit declared can no longer be addressed.
        world.push(&git).await;
        world.converges(2).await;
    }
    let gone = if draw.chance(50) { names.len() } else { draw.number(1..=names.len()) };
    for name in &names[..gone] {
        git.drop(&format!("/{users}/{name}"));
    }
    if gone == names.len() && draw.chance(70) {
        match draw.one_of(&["nothing", "plain"]) {
            "plain" => git.rules(&users, &format!("resource: {{remoteCollectionPath: {plain}}}\n")),
            _ => drop(git.metadata.remove(&users)),
        }
    }
    world.push(&git).await;
    world.converges(2).await;
    world
}
