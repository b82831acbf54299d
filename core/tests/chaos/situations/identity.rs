//! Who a resource is.

use serde_json::{Value, json};

use super::desired::{Desired, Place};
use super::draw::Draw;
use super::server::{WHOLE, given};
use super::world::World;
use crate::api_server::{ApiServer, Ids};

/// Members that commonly name resources.
const USUAL: [&str; 6] = ["name", "alias", "clientId", "key", "uuid", "uid"];

/// E3. Users are known by `username`. What Git declares, or declared and others removed, is the display name of people
/// who have nothing to do with it, and of some whom Git declares.
pub async fn display_names(mut draw: Draw) -> World {
    let (users, style) = (draw.plural(), draw.ids());
    let collection = format!("/{users}");
    let server = ApiServer::start(&[&collection], move |request, store| given(request, store, style));
    let mut world = World::new(server, draw.seed());
    let mut git = Desired::default();
    git.rules(&users, &format!("resource: {{id: /id, alias: /username}}\n{WHOLE}"));
    let count = draw.number(2..7);
    let names = draw.names(count);
    let early = draw.chance(50);
    let strangers = strangers(&mut draw, &names);
    for (index, name) in names.iter().enumerate() {
        let mut body = draw.body(json!({"username": name}));
        if draw.chance(30) {
            body[draw.one_of(&USUAL)] = json!(names[(index + 1) % names.len()]);
        }
        git.declare(&format!("{collection}/{name}"), Place::named(&collection, "username", name), body);
    }
    if early {
        for (id, body) in &strangers {
            world.foreign(&format!("{collection}/{id}"), body.clone());
        }
    }
    world.push(&git).await;
    world.converges(3).await;
    if !early {
        for (id, body) in &strangers {
            world.foreign(&format!("{collection}/{id}"), body.clone());
        }
    }
    // Removed by others, and then from Git, or only one of them.
    let gone = draw.number(1..names.len());
    for name in &names[..gone] {
        let path = format!("{collection}/{name}");
        if draw.chance(70) {
            world.remove(&git.declared[&path].place);
        }
        git.drop(&path);
    }
    if draw.chance(50) {
        world.remove(&Place::named(&collection, "username", &names[gone]));
    }
    world.push(&git).await;
    world.converges(3).await;
    world
}

/// People with these display names, in members that metadata does not speak of.
fn strangers(draw: &mut Draw, names: &[String]) -> Vec<(String, Value)> {
    let mut strangers = Vec::new();
    for name in names {
        for _ in 0..draw.number(0..3) {
            let id = draw.id();
            let mut body = json!({"id": id, "username": draw.name()});
            body[draw.one_of(&USUAL)] = json!(name);
            strangers.push((id, body));
        }
    }
    strangers
}

/// E24. Roles are addressed by name. The payloads of the server have an `id`, too, which addresses nothing, or is the
/// name of another role. Metadata knows, or does not say, or is wrong.
pub async fn other_ids(mut draw: Draw) -> World {
    let roles = draw.plural();
    let collection = format!("/{roles}");
    let server = ApiServer::rest(&[&collection], Ids::Stated("name"));
    let mut world = World::new(server, draw.seed());
    let mut git = Desired::default();
    let knows = draw.chance(50);
    if knows {
        git.rules(
            &roles,
            "resource: {id: /name, alias: /name}\noperations: {compare: {transforms: [{excludeAttributes: [/id]}]}}\n",
        );
    } else if draw.chance(50) {
        git.rules(&roles, "resource: {id: /id, alias: /name}\n");
    }
    let (count, others) = (draw.number(2..6), draw.number(2..4));
    let (names, strangers) = (draw.names(count), draw.names(others));
    let all: Vec<String> = names.iter().chain(&strangers).cloned().collect();
    let id = |draw: &mut Draw| if draw.chance(60) { draw.one_of(&all) } else { draw.id() };
    for name in &strangers {
        let role = json!({"name": name, "id": id(&mut draw)});
        world.foreign(&format!("{collection}/{name}"), role);
    }
    for name in &names {
        let path = format!("{collection}/{name}");
        let mut role = draw.body(json!({"name": name}));
        git.declare(&path, Place::at(&path), role.clone());
        role["id"] = json!(id(&mut draw));
        if draw.chance(30) {
            role["x0"] = json!("drifted");
        }
        if draw.chance(80) {
            world.existing(&path, role);
        }
    }
    world.push(&git).await;
    if knows {
        world.converges(2).await;
    }
    for name in &names[..draw.number(1..names.len())] {
        git.drop(&format!("{collection}/{name}"));
    }
    world.push(&git).await;
    if knows {
        world.converges(2).await;
    }
    world
}

/// E25. Payloads state ids: the right one, one that nothing has, or that of another resource, which Git declares or
/// does not.
pub async fn stale_ids(mut draw: Draw) -> World {
    let shops = draw.plural();
    let collection = format!("/{shops}");
    let server = ApiServer::rest(&[&collection], Ids::Stated("uid"));
    let mut world = World::new(server, draw.seed());
    let mut git = Desired::default();
    git.rules(&shops, &format!("resource: {{id: /uid, alias: /name}}\n{WHOLE}"));
    let (count, others) = (draw.number(2..6), draw.number(1..4));
    let (names, strangers) = (draw.names(count), draw.names(others));
    let foreign: Vec<String> = strangers.iter().map(|_| draw.id()).collect();
    for (name, id) in strangers.iter().zip(&foreign) {
        world.foreign(&format!("{collection}/{id}"), json!({"uid": id, "name": name}));
    }
    let right: Vec<String> = names.iter().map(|_| draw.id()).collect();
    let wrong = draw.number(0..names.len());
    // The resource exists or does not; its stated id is nothing's, a foreign resource's or that of another declared one,
    // which exists or does not. An id that nothing has is not compared with that of an existing resource.
    let kind = draw.number(0..3);
    let taken = draw.chance(50) && kind != 0;
    let ids = match kind {
        0 => vec![draw.id()],
        1 => foreign.clone(),
        _ => right.clone(),
    };
    for (index, (name, right)) in names.iter().zip(&right).enumerate() {
        let exists = if index == wrong { taken } else { draw.chance(50) };
        if exists {
            world.existing(&format!("{collection}/{right}"), json!({"uid": right, "name": name}));
        }
        let mut body = draw.body(json!({"name": name, "uid": right}));
        if index == wrong {
            let others: Vec<String> = ids.iter().filter(|id| *id != right).cloned().collect();
            body["uid"] = json!(draw.one_of(&others));
        }
        git.declare(&format!("{collection}/{name}"), Place::named(&collection, "name", name), body);
    }
    world.push(&git).await;
    world.again().await;
    // What is right: once the id is, too, nothing is in the way.
    let mut mended = git.clone();
    let path = format!("{collection}/{}", names[wrong]);
    let there = mended.declared[&path].place.find(&world.store());
    let id = there.first().and_then(|path| path.rsplit('/').next()).unwrap_or(&right[wrong]).to_owned();
    mended.declared.get_mut(&path).unwrap().body["uid"] = json!(id);
    if draw.chance(50) {
        world.push(&mended).await;
        world.converges(3).await;
    } else {
        git.drop(&path);
        world.push(&git).await;
        world.again().await;
    }
    world
}
