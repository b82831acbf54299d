//! What a list proves, and what it does not.

use serde_json::{Value, json};

use super::desired::{Desired, Place};
use super::draw::{Draw, IdStyle};
use super::server::{WHOLE, given, trouble};
use super::world::World;
use crate::api_server::{Answer, ApiServer, Ids};

const NAMES: &str = "resource: {id: /id, alias: /name}\n";

/// E8. The list that a removal needs is refused for a while. Parents have ids of the server.
pub async fn refused_to_removals(mut draw: Draw) -> World {
    let (shops, tills) = (draw.plural(), draw.plural());
    let outer = format!("/{shops}");
    let (listed, inner) = (outer.clone(), format!("{outer}/*/{tills}"));
    let server = ApiServer::start(&[&outer, &inner], move |request, store| {
        let answer = trouble(&store.mode).filter(|_| request.is("GET", &listed));
        answer.unwrap_or_else(|| {
            request.rest(store, if request.segments().len() > 2 { Ids::Stated("id") } else { Ids::Given })
        })
    });
    let mut world = World::new(server, draw.seed());
    let mut git = Desired::default();
    git.rules(&shops, &format!("{NAMES}{WHOLE}"));
    let count = draw.number(1..4);
    let mut children = Vec::new();
    for name in draw.names(count) {
        let id = draw.id();
        world.existing(&format!("{outer}/{id}"), json!({"id": id, "name": name}));
        let place = Place::named(&outer, "name", &name);
        git.declare(&format!("{outer}/{name}"), place.clone(), json!({"name": name}));
        let count = draw.number(1..4);
        for child in draw.names(count) {
            let path = format!("{outer}/{name}/{tills}/{child}");
            git.declare(&path, place.below(&format!("{tills}/{child}")), draw.body(json!({"id": child})));
            children.push(path);
        }
        world.foreign(&format!("{outer}/{id}/{tills}/by-hand"), json!({"id": "by-hand"}));
    }
    world.push(&git).await;
    world.converges(3).await;
    world.mode(draw.one_of(&["unauthorized", "forbidden", "refused", "failing", "html", "missing", "away"]));
    draw.shuffle(&mut children);
    for child in &children[..draw.number(1..=children.len())] {
        git.drop(child);
    }
    world.push(&git).await;
    world.expect_failure();
    world.mode("");
    world.converges(3).await;
    world
}

/// How a server says that its list goes on.
type Page = fn(&[Value], usize) -> Answer;

const CUT: [Page; 14] = [
    |page, all| list(&json!({"total": all, "issues": page})),
    |page, all| list(&json!({"items": page, "total": all})),
    |page, all| list(&json!({"count": all, "results": page})),
    |page, all| list(&json!({"content": page, "totalElements": all})),
    |page, _| list(&json!({"content": page, "last": false, "totalPages": 9})),
    |page, _| list(&json!({"values": page, "isLast": false})),
    |page, _| list(&json!({"data": page, "has_more": true})),
    |page, _| list(&json!({"data": page, "hasMore": true})),
    |page, _| list(&json!({"content": page, "page": 1, "totalPages": 3})),
    |page, _| list(&json!({"data": page, "meta": {"current_page": 1, "last_page": 2}})),
    |page, all| list(&json!(page)).header("x-total-count", &all.to_string()),
    |page, all| list(&json!(page)).header("x-total", &all.to_string()),
    |page, _| list(&json!(page)).header("x-next-page", "2"),
    |page, all| {
        let range = format!("items 0-{}/{all}", page.len().saturating_sub(1));
        Answer::json(206, &json!(page)).header("content-range", &range)
    },
];

/// Sizes at which servers cut lists without a word.
const USUAL_PAGES: [usize; 7] = [10, 20, 25, 30, 50, 100, 200];

fn list(body: &Value) -> Answer {
    Answer::json(200, body)
}

/// A server whose list shows so many entries at most, unless its mode is `whole`.
fn cutting(collection: &str, style: IdStyle, size: usize, silent: bool, page: Page) -> ApiServer {
    let listed = collection.to_owned();
    ApiServer::start(&[collection], move |request, store| {
        if !request.is("GET", &listed) {
            return given(request, store, style);
        }
        let all = store.members(&listed);
        match store.mode.as_str() {
            "whole" => list(&json!({"items": all, "total": all.len()})),
            _ if all.len() > size => page(&all[..size], all.len()),
            _ if silent => list(&json!(all)),
            _ => list(&json!({"items": all, "total": all.len()})),
        }
    })
}

/// E9. The list shows its first entries only and says so in one of many ways, or not at all but at a usual size.
pub async fn cut(mut draw: Draw) -> World {
    let (issues, style) = (draw.plural(), draw.ids());
    let collection = format!("/{issues}");
    let silent = draw.chance(40);
    let size = if silent { draw.one_of(&USUAL_PAGES) } else { draw.number(1..40) };
    let page: Page = if silent { |page, _| list(&json!(page)) } else { draw.one_of(&CUT) };
    let server = cutting(&collection, style, size, silent, page);
    let mut world = World::new(server, draw.seed());
    // What is behind the cut exists, too.
    for (number, name) in draw.names(size).into_iter().enumerate() {
        let id = format!("0{number:05}");
        world.foreign(&format!("{collection}/{id}"), json!({"id": id, "name": name}));
    }
    let mut git = Desired::default();
    git.rules(&issues, NAMES);
    let count = draw.number(1..6);
    for (number, name) in draw.names(count).into_iter().enumerate() {
        let exists = number == 0 || draw.chance(50);
        let body = draw.body(json!({"name": name}));
        if exists {
            let (id, mut held) = (format!("z{number}"), body.clone());
            held["id"] = json!(id);
            world.existing(&format!("{collection}/{id}"), held);
        }
        git.declare(&format!("{collection}/{name}"), Place::named(&collection, "name", &name), body);
    }
    world.push(&git).await;
    world.expect_failure();
    world.again().await;
    world.expect_failure();
    // Nothing behind the cut may be pruned on its account, either.
    let gone = git.declared.keys().next().unwrap().clone();
    git.drop(&gone);
    let name = draw.name();
    git.declare(
        &format!("{collection}/{name}"),
        Place::named(&collection, "name", &name),
        json!({"name": name}),
    );
    world.push(&git).await;
    // What is right: a whole list is enough.
    world.mode("whole");
    world.converges(3).await;
    world
}

/// E10. What answers for the list is not one, a while after the resources were made or from the beginning.
pub async fn not_a_list(mut draw: Draw) -> World {
    let (issues, style) = (draw.plural(), draw.ids());
    let collection = format!("/{issues}");
    let listed = collection.clone();
    let server = ApiServer::start(&[&collection], move |request, store| {
        let answer = trouble(&store.mode).filter(|_| request.is("GET", &listed));
        answer.unwrap_or_else(|| given(request, store, style))
    });
    let mut world = World::new(server, draw.seed());
    let mut git = Desired::default();
    git.rules(&issues, &format!("{NAMES}{WHOLE}"));
    let count = draw.number(1..7);
    let names = draw.names(count);
    for name in &names {
        let body = draw.body(json!({"name": name}));
        git.declare(&format!("{collection}/{name}"), Place::named(&collection, "name", name), body);
    }
    for name in draw.names(2) {
        let (id, _) = IdStyle::Uuid.id(draw.number(1..9_999_999));
        world.foreign(&format!("{collection}/{id}"), json!({"id": id, "name": name}));
    }
    let modes =
        ["missing", "busy", "html", "text", "unnamed", "nothing", "null", "forbidden", "refused", "away"];
    if draw.chance(60) {
        world.push(&git).await;
        world.converges(2).await;
        let more = draw.name();
        let body = draw.body(json!({"name": more}));
        git.declare(&format!("{collection}/{more}"), Place::named(&collection, "name", &more), body);
        git.drop(&format!("{collection}/{}", names[0]));
    } else {
        let body = git.declared.values().next().unwrap().body.clone();
        let (id, shown) = style.id(4);
        let mut held = body;
        held["id"] = shown;
        world.existing(&format!("{collection}/{id}"), held);
    }
    let before = world.server.writes().len();
    world.commit(&git);
    for _ in 0..draw.number(1..4) {
        world.mode(draw.one_of(&modes));
        world.again().await;
        world.expect_failure();
    }
    let written = world.server.writes().len() - before;
    world.expect(written == 0, "something was written without a list");
    world.mode("");
    world.converges(3).await;
    world
}

/// E12. The list is refused, and payloads state their ids: what is missing at its own address is created.
pub async fn refused_to_creates(mut draw: Draw) -> World {
    let issues = draw.plural();
    let collection = format!("/{issues}");
    let listed = collection.clone();
    let mode = draw.one_of(&["forbidden", "refused"]);
    let server = ApiServer::start(&[&collection], move |request, store| {
        let answer = trouble(mode).filter(|_| request.is("GET", &listed));
        answer.unwrap_or_else(|| request.rest(store, Ids::Stated("id")))
    });
    let mut world = World::new(server, draw.seed());
    let mut git = Desired::default();
    let rules = draw.one_of(&["", "resource: {id: /id, alias: /id}\n", NAMES]);
    if !rules.is_empty() {
        git.rules(&issues, rules);
    }
    let count = draw.number(2..8);
    let names = draw.names(count);
    for name in &names {
        let id = if rules == NAMES { draw.id() } else { name.clone() };
        let path = format!("{collection}/{id}");
        let body = draw.body(json!({"id": id, "name": name}));
        if draw.chance(40) {
            world.existing(&path, json!({"id": id, "name": name, "x0": "drifted"}));
        }
        git.declare(&format!("{collection}/{name}"), Place::At(path), body);
    }
    for name in draw.names(3) {
        world.foreign(&format!("{collection}/{name}"), json!({"id": name, "name": draw.one_of(&names)}));
    }
    world.push(&git).await;
    world.converges(2).await;
    git.drop(&format!("{collection}/{}", names[0]));
    world.push(&git).await;
    world.converges(2).await;
    world
}
