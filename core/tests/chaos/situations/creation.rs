//! What is created once, and as it was declared.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::desired::{Desired, Place};
use super::draw::Draw;
use super::server::{WHOLE, given};
use super::world::World;
use crate::api_server::{Answer, ApiServer};

const NAMES: &str = "resource: {id: /id, alias: /name}\n";

/// How long the client waits for an answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// Resources that a server is still at work on, and when they are there.
type Late = Arc<Mutex<Vec<(Instant, String, Value)>>>;

/// E11. A create takes effect after its answer is given up: by the client, or by a gateway that answers 504. In the end
/// each resource exists once.
pub async fn slow(mut draw: Draw) -> World {
    let (issues, style) = (draw.plural(), draw.ids());
    let collection = format!("/{issues}");
    let late = Late::default();
    let (gateway, percent) = (draw.chance(50), draw.one_of(&[30, 100]));
    // Another such time after an answer was given up a server is done.
    let delay = PATIENCE
        * u32::try_from(if gateway { draw.number(0..60) } else { draw.number(110..160) }).unwrap()
        / 100;
    let seed = draw.seed();
    let server = ApiServer::start(&[&collection], move |request, store| {
        settle(&late, store);
        let unlucky =
            fastrand::Rng::with_seed(seed ^ request.body.to_string().len() as u64).u32(..100) < percent;
        if request.method != "POST" || store.mode != "slow" || !unlucky {
            return given(request, store, style);
        }
        let (id, shown) = style.id(store.next_id().trim_start_matches('n').parse().unwrap());
        let mut body = request.body.clone();
        body["id"] = shown;
        let path = format!("{}/{id}", request.path);
        let answered = Answer::json(201, &body);
        late.lock().unwrap().push((Instant::now() + delay, path, body));
        if gateway { Answer::empty(504) } else { answered.after(delay) }
    });
    let mut world = World::new(server, draw.seed());
    world.patience(PATIENCE);
    let mut git = Desired::default();
    git.rules(&issues, &format!("{NAMES}{WHOLE}"));
    let count = draw.number(1..5);
    for name in draw.names(count) {
        let body = draw.body(json!({"name": name}));
        git.declare(&format!("{collection}/{name}"), Place::named(&collection, "name", &name), body);
    }
    for name in draw.names(2) {
        let id = draw.id();
        world.foreign(&format!("{collection}/{id}"), json!({"id": id, "name": name}));
    }
    world.mode("slow");
    world.push(&git).await;
    world.again().await;
    if draw.chance(50) {
        world.mode("");
    }
    for _ in 0..4 {
        tokio::time::sleep(PATIENCE).await;
        world.again().await;
    }
    world.mode("");
    world.converges(2).await;
    world
}

/// What is due is there.
fn settle(late: &Late, store: &mut crate::api_server::Store) {
    let mut late = late.lock().unwrap();
    let now = Instant::now();
    for (_, path, body) in late.extract_if(.., |(due, ..)| *due <= now) {
        store.put(&path, body);
    }
}

/// P3. A create ignores some members of what it is sent; an update does not. The answer shows what was made, or where
/// it is, or nothing.
pub async fn ignored(mut draw: Draw) -> World {
    let (executions, style) = (draw.plural(), draw.ids());
    let collection = format!("/{executions}");
    let ignored = draw.one_of(&[vec!["requirement"], vec!["requirement", "priority"], vec!["x0"]]);
    let server = ApiServer::start(&[&collection], move |request, store| {
        if request.method != "POST" {
            return given(request, store, style);
        }
        let mut ignoring = request.clone();
        for member in &ignored {
            ignoring.body[*member] = json!("DEFAULT");
        }
        let answer = given(&ignoring, store, style);
        match store.mode.as_str() {
            "location" => answer.without_body(),
            "nothing" => Answer::empty(201),
            _ => answer,
        }
    });
    let mut world = World::new(server, draw.seed());
    world.mode(draw.one_of(&["shown", "location", "nothing"]));
    let mut git = Desired::default();
    git.rules(&executions, "resource: {id: /id, alias: /provider}\noperations: {list: {pagination: {style: none}}, compare: {transforms: [{selectAttributes: [/provider, /requirement, /priority]}]}}\n");
    let count = draw.number(1..9);
    for name in draw.names(count) {
        let body = json!({"provider": name, "requirement": draw.one_of(&["REQUIRED", "ALTERNATIVE"]), "priority": draw.number(..50)});
        git.declare(&format!("{collection}/{name}"), Place::named(&collection, "provider", &name), body);
    }
    for name in draw.names(2) {
        let id = draw.id();
        world.foreign(
            &format!("{collection}/{id}"),
            json!({"id": id, "provider": name, "requirement": "DISABLED"}),
        );
    }
    world.push(&git).await;
    world.converges(1).await;
    world
}
