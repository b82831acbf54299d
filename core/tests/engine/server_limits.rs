//! Servers with a smaller limit for pages than metadata states, which they do not state.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use declarest_core::sync::Outcome;
use rstest::rstest;
use serde_json::{Value, json};

use crate::api_server::{Answer, ApiServer, Ids, Request, Store};
use crate::rest_server::Config;
use crate::world::{World, failure};

const LIMIT: usize = 100;
const OFFSET: &str = "{style: offset, parameter: offset, sizeParameter: limit, size: 1000}";
const PAGE: &str = "{style: page, parameter: page, sizeParameter: limit, size: 1000}";

/// The members that the request skips.
fn skipped(request: &Request, size: usize) -> usize {
    let number = |name: &str| request.query.get(name).and_then(|text| text.parse::<usize>().ok());
    number("offset").unwrap_or_else(|| (number("page").unwrap_or(1) - 1) * size)
}

fn asked(request: &Request) -> usize {
    request.query.get("limit").and_then(|text| text.parse().ok()).unwrap_or(LIMIT)
}

fn page(members: &[Value], skip: usize, size: usize) -> Answer {
    let shown: Vec<&Value> = members.iter().skip(skip).take(size.min(LIMIT)).collect();
    Answer::json(200, &json!(shown))
}

fn capped(request: &Request, members: &[Value]) -> Answer {
    let size = asked(request).min(LIMIT);
    page(members, skipped(request, size), size)
}

/// Pages begin at multiples of the size that the client asks for.
fn capped_late(request: &Request, members: &[Value]) -> Answer {
    page(members, skipped(request, asked(request)), LIMIT)
}

/// No page after the last one exists.
fn strict(request: &Request, members: &[Value]) -> Answer {
    let size = asked(request).min(LIMIT);
    match skipped(request, size) {
        skip if skip >= members.len() && skip > 0 => Answer::missing(),
        skip => page(members, skip, size),
    }
}

fn only_first(_: &Request, members: &[Value]) -> Answer {
    page(members, 0, LIMIT)
}

fn rejecting(request: &Request, members: &[Value]) -> Answer {
    match skipped(request, LIMIT) {
        0 => page(members, 0, LIMIT),
        _ => Answer::json(400, &json!({"error": "unknown parameter"})),
    }
}

/// A server with `others` labels, and perhaps `zeta` after them.
fn labels(others: usize, exists: bool, list: fn(&Request, &[Value]) -> Answer) -> ApiServer {
    let server = ApiServer::start(&["/labels"], move |request: &Request, store: &mut Store| {
        if request.is("GET", "/labels") {
            return list(request, &store.members("/labels"));
        }
        request.rest(store, Ids::Given)
    });
    for index in 0..others {
        let id = format!("a{index:04}");
        server.put(&format!("/labels/{id}"), json!({"id": id, "name": format!("label {index}")}));
    }
    if exists {
        server.put("/labels/z1", json!({"id": "z1", "name": "zeta"}));
    }
    server
}

fn world(pagination: &str) -> World {
    let metadata =
        format!("resource: {{id: /id, alias: /name}}\noperations: {{list: {{pagination: {pagination}}}}}\n");
    World::new(
        Config::default(),
        &[("labels/_/metadata.yaml", &metadata), ("labels/zeta/resource.json", r#"{"name":"zeta"}"#)],
    )
}

#[rstest]
#[case::second_page(100, capped)]
#[case::third_page(250, capped)]
#[case::full_pages(199, capped)]
#[case::late(130, capped_late)]
#[case::strict(199, strict)]
#[tokio::test]
async fn a_page_of_the_servers_size_is_not_the_last_one(
    #[values(OFFSET, PAGE)] pagination: &str,
    #[case] others: usize,
    #[case] list: fn(&Request, &[Value]) -> Answer,
) {
    let server = labels(others, true, list);
    let report = world(pagination).sync_on(server.url(), &[]).await;
    assert_eq!((report.outcome, report.stats.unchanged), (Outcome::Succeeded, 1), "{report:?}");
    assert_eq!(server.writes(), Vec::<String>::new());
}

/// One of several servers behind a gateway does not have the list yet.
#[rstest]
#[case::last(199, 100)]
#[case::middle(299, 100)]
#[tokio::test]
async fn a_page_that_is_missing_once_does_not_end_a_list(
    #[values(OFFSET, PAGE)] pagination: &str,
    #[case] others: usize,
    #[case] missing: usize,
) {
    let is_missed = Arc::new(AtomicBool::new(false));
    let server = ApiServer::start(&["/labels"], move |request: &Request, store: &mut Store| {
        if !request.is("GET", "/labels") {
            return request.rest(store, Ids::Given);
        }
        if skipped(request, LIMIT) == missing && !is_missed.swap(true, Ordering::Relaxed) {
            return Answer::missing();
        }
        strict(request, &store.members("/labels"))
    });
    for index in 0..others {
        let id = format!("a{index:04}");
        server.put(&format!("/labels/{id}"), json!({"id": id, "name": format!("label {index}")}));
    }
    server.put("/labels/z1", json!({"id": "z1", "name": "zeta"}));
    let report = world(pagination).sync_on(server.url(), &[]).await;
    assert_eq!((report.outcome, report.stats.unchanged), (Outcome::Succeeded, 1), "{report:?}");
    assert_eq!(server.writes(), Vec::<String>::new());
}

/// What is right: a list that ends there proves absence.
#[rstest]
#[case::empty(100, capped, 2)]
#[case::late(100, capped_late, 2)]
#[case::missing(100, strict, 4)]
#[case::third_page(200, strict, 5)]
#[case::another_length(37, only_first, 1)]
#[tokio::test]
async fn a_list_of_that_length_may_be_whole(
    #[values(OFFSET, PAGE)] pagination: &str,
    #[case] others: usize,
    #[case] list: fn(&Request, &[Value]) -> Answer,
    #[case] pages: usize,
) {
    let server = labels(others, false, list);
    let report = world(pagination).sync_on(server.url(), &[]).await;
    assert_eq!((report.outcome, report.stats.created), (Outcome::Succeeded, 1), "{report:?}");
    // After the create, the list must show the label.
    let log = server.log();
    let before = log.iter().take_while(|request| !request.is_write());
    assert_eq!(before.filter(|request| request.is("GET", "/labels")).count(), pages);
}

/// Metadata states the size of the pages.
#[rstest]
#[case::one_page(LIMIT, 4)]
#[case::two_pages(2 * LIMIT, 5)]
#[tokio::test]
async fn a_full_page_may_be_the_last_one(
    #[values("offset", "page")] style: &str,
    #[case] others: usize,
    #[case] requests: usize,
) {
    let server = labels(others, false, strict);
    let pagination = format!("{{style: {style}, parameter: {style}, sizeParameter: limit, size: {LIMIT}}}");
    let report = world(&pagination).sync_on(server.url(), &[]).await;
    assert_eq!((report.outcome, report.stats.created), (Outcome::Succeeded, 1), "{report:?}");
    let log = server.log();
    let before = log.iter().take_while(|request| !request.is_write());
    // The last page and the missing one are requested again after the answer 404.
    assert_eq!(before.filter(|request| request.is("GET", "/labels")).count(), requests);
}

/// A gateway answers 404 while it has no server.
#[rstest]
#[case::stated(&LIMIT.to_string())]
#[case::larger("1000")]
#[tokio::test]
async fn a_gateway_without_a_server_does_not_end_a_list(
    #[values("offset", "page")] style: &str,
    #[case] size: &str,
) {
    let answered = Arc::new(AtomicBool::default());
    let seen = Arc::clone(&answered);
    let server = ApiServer::start(&["/labels"], move |request, store| {
        if !request.is("GET", "/labels") {
            return request.rest(store, Ids::Given);
        }
        if seen.swap(true, Ordering::Relaxed) {
            return Answer::missing();
        }
        page(&store.members("/labels"), 0, LIMIT)
    });
    for index in 0..LIMIT {
        server.put(&format!("/labels/a{index:04}"), json!({"id": format!("a{index:04}"), "name": index}));
    }
    server.put("/labels/z1", json!({"id": "z1", "name": "zeta"}));
    let pagination = format!("{{style: {style}, parameter: {style}, sizeParameter: limit, size: {size}}}");
    // 404 as the answer to a list does not make the last page exist.
    let stated = format!("{pagination}, absent: {{status: [404]}}");
    for pagination in [pagination, stated] {
        answered.store(false, Ordering::Relaxed);
        let (_, message) = failure(&world(&pagination).sync_on(server.url(), &[]).await);
        assert!(message.contains("HTTP 404") || message.contains("status 404"), "{message}");
    }
    assert_eq!(server.writes(), Vec::<String>::new());
}

/// The server ignores the parameters of the next page, or does not know them.
#[rstest]
#[case::ignored(only_first)]
#[case::rejected(rejecting)]
#[tokio::test]
async fn a_list_without_further_pages_proves_no_absence(
    #[values(OFFSET, PAGE)] pagination: &str,
    #[values(true, false)] exists: bool,
    #[case] list: fn(&Request, &[Value]) -> Answer,
) {
    let server = labels(100, exists, list);
    let world = world(pagination);
    let (_, message) = failure(&world.sync_on(server.url(), &[]).await);
    assert!(message.contains("has 100 entries, which is a usual page size"), "{message}");
    // What the list shows is there.
    world.declare("labels/zeta/resource.json", r#"{"name":"label 7"}"#);
    assert_eq!(world.sync_on(server.url(), &[]).await.stats.unchanged, 1);
    assert_eq!(server.writes(), Vec::<String>::new());
}

/// A page that states a further one is not the last one.
#[rstest]
#[case::total(|members: &[Value]| json!({"total": 2 * LIMIT, "results": members}))]
#[case::sign(|members: &[Value]| json!({"hasMore": true, "results": members}))]
#[tokio::test]
async fn a_missing_page_that_was_stated_does_not_end_a_list(#[case] first: fn(&[Value]) -> Value) {
    let server = ApiServer::start(&["/labels"], move |request, store| match request.is("GET", "/labels") {
        true if skipped(request, LIMIT) > 0 => Answer::missing(),
        true => Answer::json(200, &first(&store.members("/labels"))),
        false => request.rest(store, Ids::Given),
    });
    for index in 0..LIMIT {
        server.put(&format!("/labels/a{index:04}"), json!({"id": format!("a{index:04}"), "name": index}));
    }
    let pagination = format!("{{style: page, parameter: page, size: {LIMIT}}}");
    let (_, message) = failure(&world(&pagination).sync_on(server.url(), &[]).await);
    assert!(message.contains("404"), "{message}");
    assert_eq!(server.writes(), Vec::<String>::new());
}

/// Django REST framework states the end by null, and `count` counts all entries. It answers 404 to a further page.
#[tokio::test]
async fn a_full_page_of_django_may_be_the_last_one() {
    let server = labels(LIMIT, false, |request, members| match skipped(request, LIMIT) {
        0 => Answer::json(200, &json!({"count": members.len(), "next": null, "results": members})),
        _ => Answer::missing(),
    });
    let pagination = format!("{{style: page, parameter: page, size: {LIMIT}}}");
    let report = world(&pagination).sync_on(server.url(), &[]).await;
    assert_eq!(report.stats.created, 1, "{report:?}");
}

/// Without metadata about pages: Django REST framework states the end by null, and `count` counts all entries.
#[rstest]
#[case::end(json!({"count": 20, "next": null}), true)]
#[case::only_a_count(json!({"count": 20}), false)]
#[case::another_count(json!({"count": 7, "next": null}), false)]
#[tokio::test]
async fn a_list_that_states_its_end_is_whole(#[case] members: Value, #[case] is_whole: bool) {
    let server = ApiServer::start(&["/labels"], move |request, store| {
        if request.is("GET", "/labels") && store.members("/labels").len() == 20 {
            let mut list = members.clone();
            list["results"] = Value::Array(store.members("/labels"));
            return Answer::json(200, &list);
        }
        request.rest(store, Ids::Given)
    });
    for number in 0..20 {
        server.put(&format!("/labels/{number}"), json!({"id": number, "name": format!("label {number}")}));
    }
    let files = [
        ("labels/_/metadata.yaml", "resource: {id: /id, alias: /name}"),
        ("labels/zeta/resource.json", r#"{"name":"zeta"}"#),
    ];
    let report = World::new(Config::default(), &files).sync_on(server.url(), &[]).await;
    assert_eq!(report.stats.created, usize::from(is_whole), "{report:?}");
}
