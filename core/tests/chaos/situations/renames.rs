//! A directory that is renamed in Git is another path to the same resource.

use serde_json::json;

use super::desired::{Desired, Place};
use super::draw::Draw;
use super::server::WHOLE;
use super::world::World;
use crate::api_server::{ApiServer, Ids};

/// Parents with children, and how they are declared.
struct Family {
    items: String,
    parts: String,
    /// Whether the server gives the ids of parents.
    given: bool,
    git: Desired,
    /// The parents' names and ids.
    parents: Vec<(String, String)>,
}

impl Family {
    fn new(draw: &mut Draw) -> Self {
        let (items, parts, given) = (draw.plural(), draw.plural(), draw.chance(50));
        let mut family = Self { items, parts, given, git: Desired::default(), parents: Vec::new() };
        if given {
            family.git.rules(&family.items, &format!("resource: {{id: /id, alias: /name}}\n{WHOLE}"));
        }
        let count = draw.number(2..6);
        for name in draw.names(count) {
            family.add(draw, name);
        }
        family
    }

    fn add(&mut self, draw: &mut Draw, name: String) {
        let Self { items, parts, given, git, .. } = self;
        let id = if *given { draw.id() } else { name.clone() };
        let mut body = draw.body(json!({"id": id}));
        if *given {
            body["name"] = json!(name);
        }
        let home = Place::At(format!("/{items}/{id}"));
        git.declare(&format!("/{items}/{name}"), home.clone(), body);
        let children = draw.number(1..5);
        for child in draw.names(children) {
            let place = home.below(&format!("{parts}/{child}"));
            let body = draw.body(json!({"id": child}));
            git.declare(&format!("/{items}/{name}/{parts}/{child}"), place, body);
        }
        self.parents.push((name, id));
    }

    fn server(&self) -> ApiServer {
        let collections = [format!("/{}", self.items), format!("/{}/*/{}", self.items, self.parts)];
        let given = self.given;
        ApiServer::start(&collections.each_ref().map(String::as_str), move |request, store| {
            let inner = request.segments().len() > 2;
            request.rest(store, if given && !inner { Ids::Given } else { Ids::Stated("id") })
        })
    }

    /// What the server has before: the parents whose ids it gave, or the first one, neighbours, and the same names
    /// elsewhere.
    fn populate(&self, draw: &mut Draw, world: &mut World) {
        let Self { items, parts, .. } = self;
        let exist = if self.given { self.parents.len() } else { 1 };
        for (name, id) in &self.parents[..exist] {
            let body = self.git.declared[&format!("/{items}/{name}")].body.clone();
            world.existing(&format!("/{items}/{id}"), body);
        }
        let stranger = draw.name();
        world.foreign(&format!("/{items}/{stranger}"), json!({"id": stranger, "name": stranger}));
        for child in self.git.declared.keys().filter_map(|path| path.split(&format!("/{parts}/")).nth(1)) {
            world
                .foreign(&format!("/{items}/{stranger}/{parts}/{child}"), json!({"id": child, "by": "hand"}));
        }
        let by_hand = format!("/{items}/{}/{parts}/by-hand", self.parents[0].1);
        world.foreign(&by_hand, json!({"id": "by-hand"}));
    }
}

/// E1. Ids are stated, or the server's; a rename may come with another name in the payload, and with a child that
/// goes. A commit that takes the rename back must converge.
pub async fn parent(mut draw: Draw) -> World {
    let family = Family::new(&mut draw);
    let mut world = World::new(family.server(), draw.seed());
    family.populate(&mut draw, &mut world);
    let mut git = family.git.clone();
    world.push(&git).await;
    world.converges(3).await;
    let added = rename(&mut draw, &mut world, &family).await;
    world.push(&git).await;
    if let Some(added) = added {
        // Whose child it is now only people know.
        world.again().await;
        world.expect_failure();
        world.remove(&added);
    }
    world.converges(3).await;
    // What is right: what is really gone goes, with its children.
    git.drop(&format!("/{}/{}", family.items, family.parents[1].0));
    world.push(&git).await;
    world.converges(3).await;
    world
}

/// Renames a parent. Returns where a child is that only this commit declares.
async fn rename(draw: &mut Draw, world: &mut World, family: &Family) -> Option<Place> {
    let Family { items, parts, given, .. } = family;
    let mut git = family.git.clone();
    let (from, new) = (format!("/{items}/{}", family.parents[0].0), draw.name());
    let to = format!("/{items}/{new}");
    git.rename(&from, &to);
    if *given && draw.chance(50) {
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
