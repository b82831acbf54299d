//! A directory that is renamed in Git is another path to the same resource.

use serde_json::json;

use super::desired::{Desired, Place};
use super::draw::Draw;
use super::server::WHOLE;
use super::world::World;
use crate::api_server::{ApiServer, Ids};

/// E1. Ids are stated, or the server's; a rename may come with another name in the payload, and with a child that
/// goes. A commit that takes the rename back must converge.
pub async fn parent(mut draw: Draw) -> World {
    let (items, parts) = (draw.plural(), draw.plural());
    let collections = [format!("/{items}"), format!("/{items}/*/{parts}")];
    let given = draw.chance(50);
    let server = ApiServer::start(&collections.each_ref().map(String::as_str), move |request, store| {
        let inner = request.segments().len() > 2;
        request.rest(store, if given && !inner { Ids::Given } else { Ids::Stated("id") })
    });
    let mut world = World::new(server, draw.seed());
    let mut git = Desired::default();
    if given {
        git.rules(&items, &format!("resource: {{id: /id, alias: /name}}\n{WHOLE}"));
    }
    let count = draw.number(2..6);
    let names = draw.names(count);
    let mut homes = Vec::new();
    for name in &names {
        let id = if given { draw.id() } else { name.clone() };
        let mut body = draw.body(json!({"id": id}));
        if given {
            body["name"] = json!(name);
            world.existing(&format!("/{items}/{id}"), body.clone());
        }
        let home = Place::At(format!("/{items}/{id}"));
        git.declare(&format!("/{items}/{name}"), home.clone(), body);
        let children = draw.number(1..5);
        for child in draw.names(children) {
            let body = draw.body(json!({"id": child}));
            git.declare(
                &format!("/{items}/{name}/{parts}/{child}"),
                home.below(&format!("{parts}/{child}")),
                body,
            );
        }
        homes.push((name.clone(), id));
    }
    // The same names elsewhere, and neighbours.
    let stranger = draw.name();
    world.foreign(&format!("/{items}/{stranger}"), json!({"id": stranger, "name": stranger}));
    for path in git.declared.keys().filter_map(|path| path.split(&format!("/{parts}/")).nth(1)) {
        world.foreign(&format!("/{items}/{stranger}/{parts}/{path}"), json!({"id": path, "by": "hand"}));
    }
    let (renamed, id) = homes[0].clone();
    if !given {
        world.existing(&format!("/{items}/{id}"), json!({"id": id}));
    }
    world.foreign(&format!("/{items}/{id}/{parts}/by-hand"), json!({"id": "by-hand"}));
    world.push(&git).await;
    world.converges(3).await;
    let added = rename(&mut draw, &mut world, &git, (&items, &parts), &renamed, given).await;
    world.push(&git).await;
    if let Some(added) = added {
        // Whose child it is now only people know.
        world.again().await;
        world.expect_failure();
        world.remove(&added);
    }
    world.converges(3).await;
    // What is right: what is really gone goes, with its children.
    git.drop(&format!("/{items}/{}", homes[1].0));
    world.push(&git).await;
    world.converges(3).await;
    world
}

/// Renames a parent. Returns where a child is that only this commit declares.
async fn rename(
    draw: &mut Draw,
    world: &mut World,
    before: &Desired,
    (items, parts): (&str, &str),
    old: &str,
    given: bool,
) -> Option<Place> {
    let mut git = before.clone();
    let (from, new) = (format!("/{items}/{old}"), draw.name());
    let to = format!("/{items}/{new}");
    git.rename(&from, &to);
    if given && draw.chance(50) {
        git.declared.get_mut(&to).unwrap().body["name"] = json!(new);
    }
    if draw.chance(30) {
        let below = format!("{to}/{parts}/");
        let child = git.declared.keys().find(|path| path.starts_with(&below)).unwrap().clone();
        git.drop(&child);
    }
    let mut added = None;
    if draw.chance(30) {
        let child = draw.name();
        let place = git.declared[&to].place.below(&format!("{parts}/{child}"));
        git.declare(&format!("{to}/{parts}/{child}"), place.clone(), json!({"id": child}));
        added = Some(place);
    }
    world.push(&git).await;
    world.again().await;
    added.filter(|added| !added.find(&world.store()).is_empty())
}
