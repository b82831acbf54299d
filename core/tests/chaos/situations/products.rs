//! What writes of real products do.

use std::time::Duration;

use serde_json::json;

use super::desired::{Desired, Place};
use super::draw::Draw;
use super::world::World;
use crate::api_server::{Answer, ApiServer, Ids};

/// P1. A DELETE answers 404 for a while, and what it was about stays. Payloads have an id that no address has.
pub async fn missed_deletes(mut draw: Draw) -> World {
    let roles = draw.plural();
    let collection = format!("/{roles}");
    let server = ApiServer::start(&[&collection], |request, store| {
        if request.method == "DELETE" && store.mode == "missing" {
            return Answer::missing();
        }
        if request.method == "POST" {
            let mut named = request.clone();
            let name = request.body["name"].as_str().unwrap_or_default();
            named.body["id"] = json!(format!("55670899-{name}"));
            return named.create(store, Ids::Stated("name"));
        }
        request.rest(store, Ids::Stated("name"))
    });
    let mut world = World::new(server, draw.seed());
    let mut git = Desired::default();
    git.rules(
        &roles,
        "resource: {id: /name, alias: /name}\noperations: {compare: {transforms: [{excludeAttributes: [/id]}]}}\n",
    );
    let count = draw.number(2..8);
    let names = draw.names(count);
    for name in &names {
        let path = format!("{collection}/{name}");
        git.declare(&path, Place::at(&path), json!({"name": name, "tier": draw.number(..9)}));
    }
    for name in draw.names(2) {
        world.foreign(&format!("{collection}/{name}"), json!({"name": name, "id": draw.id()}));
    }
    world.push(&git).await;
    world.converges(2).await;
    let misses = draw.chance(60);
    world.mode(if misses { "missing" } else { "" });
    for name in &names[..draw.number(1..names.len())] {
        git.drop(&format!("{collection}/{name}"));
    }
    world.push(&git).await;
    if misses {
        world.expect_failure();
    }
    world.mode("");
    world.converges(2).await;
    world
}

/// P13. The records of a zone are changed by PATCH of the zone, which takes one at a time.
pub async fn one_address(mut draw: Draw) -> World {
    let zones = draw.plural();
    let collection = format!("/{zones}");
    let zone = collection.clone();
    let delay = Duration::from_millis(draw.number(10..50) as u64);
    let server = ApiServer::start(&[&collection], move |request, store| {
        if !request.is("PATCH", &zone) {
            return request.rest(store, Ids::Stated("name"));
        }
        if !request.alone {
            return Answer::json(500, &json!({"error": "the zone is locked"}));
        }
        let name = request.body["name"].as_str().unwrap_or_default().to_owned();
        store.put(&format!("{zone}/{name}"), request.body.clone());
        Answer::empty(204).after(delay)
    });
    let mut world = World::new(server, draw.seed());
    let mut git = Desired::default();
    git.rules(
        &zones,
        "resource: {id: /name, alias: /name}\noperations: {create: {method: PATCH, path: .}, update: {method: PATCH, path: .}}\n",
    );
    let count = draw.number(3..12);
    for name in draw.names(count) {
        let path = format!("{collection}/{name}");
        if draw.chance(80) {
            world.existing(&path, json!({"name": name, "ttl": draw.number(..60)}));
        }
        git.declare(&path, Place::at(&path), json!({"name": name, "ttl": draw.number(60..900)}));
    }
    for name in draw.names(2) {
        world.foreign(&format!("{collection}/{name}"), json!({"name": name, "ttl": 5}));
    }
    world.push(&git).await;
    world.converges(1).await;
    let refused = world.server.log().iter().filter(|request| request.status == 500).count();
    world.expect(refused == 0, "writes to one address met each other");
    world
}
