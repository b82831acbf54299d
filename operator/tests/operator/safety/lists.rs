//! What a list proves, and what it does not.

use rstest::rstest;
use serde_json::{Value, json};

use super::{Scene, assert_reports, reports};
use crate::support::api_server::{Answer, ApiServer, Ids};

const NAMES: &str = "resource: {id: /id, alias: /name}\n";
const METADATA: &str = "issues/_/metadata.yaml";
const ZETA: (&str, &str) = ("issues/zeta/resource.json", r#"{"name": "zeta"}"#);

/// A server with `others` issues besides zeta, whose list shows as many as `page` makes of them.
fn issues(others: usize, exists: bool, page: fn(&[Value]) -> Answer) -> ApiServer {
    let server = ApiServer::start(&["/issues"], move |request, store| {
        if request.is("GET", "/issues") {
            return page(&store.members("/issues"));
        }
        request.rest(store, Ids::Given)
    });
    for index in 0..others {
        let id = format!("a{index:04}");
        server.put(&format!("/issues/{id}"), json!({"id": id, "name": format!("issue {index}")}));
    }
    if exists {
        server.put("/issues/z1", json!({"id": "z1", "name": "zeta"}));
    }
    server
}

#[allow(clippy::needless_pass_by_value, reason = "callers make the body in place")]
fn list(body: Value) -> Answer {
    Answer::json(200, &body)
}

/// What the list shows of all that there are, without a word about the rest.
fn first<const N: usize>(all: &[Value]) -> Answer {
    list(json!(all[..N]))
}

#[rstest]
#[case::total(50, |all: &[Value]| list(json!({"total": 51, "issues": all[..50]})))]
#[case::total_beside_items(7, |all: &[Value]| list(json!({"items": all[..7], "total": 8})))]
#[case::count(7, |all: &[Value]| list(json!({"count": 8, "results": all[..7]})))]
#[case::total_elements(7, |all: &[Value]| list(json!({"content": all[..7], "totalElements": 8})))]
#[case::spring(7, |all: &[Value]| list(json!({"content": all[..7], "last": false, "totalPages": 3})))]
#[case::last(7, |all: &[Value]| list(json!({"content": all[..7], "last": false})))]
#[case::is_last(7, |all: &[Value]| list(json!({"values": all[..7], "isLast": false})))]
#[case::has_more(7, |all: &[Value]| list(json!({"data": all[..7], "has_more": true})))]
#[case::total_pages(7, |all: &[Value]| list(json!({"content": all[..7], "page": 1, "totalPages": 3})))]
#[case::last_page(7, |all: &[Value]| list(json!({"data": all[..7], "meta": {"current_page": 1, "last_page": 2}})))]
#[case::total_count(7, |all: &[Value]| list(json!(all[..7])).header("x-total-count", "8"))]
#[case::x_total(7, |all: &[Value]| list(json!(all[..7])).header("x-total", "8"))]
#[case::next_page(7, |all: &[Value]| list(json!(all[..7])).header("x-next-page", "2"))]
#[case::content_range(7, |all: &[Value]| list(json!(all[..7])).header("content-range", "items 0-6/8"))]
#[case::partial_content(7, |all: &[Value]| {
    Answer::json(206, &json!(all[..7])).header("content-range", "items 0-6/*")
})]
#[case::ten(10, first::<10>)]
#[case::twenty(20, first::<20>)]
#[case::twenty_five(25, first::<25>)]
#[case::thirty(30, first::<30>)]
#[case::fifty(50, first::<50>)]
#[case::hundred(100, first::<100>)]
#[case::thousand(1000, first::<1000>)]
#[tokio::test]
async fn what_a_cut_list_does_not_show_is_never_created_again(
    #[case] others: usize,
    #[case] page: fn(&[Value]) -> Answer,
) {
    let server = issues(others, true, page);
    let before = server.all();
    let (scene, mut status) = Scene::start(server, &[(METADATA, NAMES), ZETA]).await;
    for _ in 0..3 {
        assert_eq!(scene.server.writes(), Vec::<String>::new());
        assert_reports(&status, "/issues/zeta");
        status = scene.full_run().await;
    }
    assert_eq!(scene.server.all(), before);
}

/// What is right: a list that is whole proves that what it does not show is missing.
#[rstest]
#[case::array(7, "", |all: &[Value]| list(json!(all)))]
#[case::total(7, "", |all: &[Value]| list(json!({"total": all.len(), "items": all})))]
#[case::last(7, "", |all: &[Value]| list(json!({"content": all, "last": true, "totalPages": 1})))]
#[case::is_last(7, "", |all: &[Value]| list(json!({"values": all, "isLast": true})))]
#[case::has_more(7, "", |all: &[Value]| list(json!({"data": all, "has_more": false})))]
#[case::last_page(7, "", |all: &[Value]| list(json!({"data": all, "meta": {"current_page": 1, "last_page": 1}})))]
#[case::total_count(7, "", |all: &[Value]| list(json!(all)).header("x-total-count", &all.len().to_string()))]
#[case::not_cut_by_its_own_word(20, "operations: {list: {pagination: {style: none}}}\n", |all: &[Value]| list(json!(all)))]
#[tokio::test]
async fn what_a_whole_list_does_not_show_is_created_once(
    #[case] others: usize,
    #[case] pagination: &str,
    #[case] page: fn(&[Value]) -> Answer,
) {
    let server = issues(others, false, page);
    let metadata = format!("{NAMES}{pagination}");
    let scene = Scene::synced(server, &[(METADATA, &metadata), ZETA]).await;
    scene.full_run().await;
    scene.converges(1).await;
    assert_eq!(scene.server.writes(), ["POST /issues 201"]);
}

/// What is right: pages that metadata states are read to their end.
#[tokio::test]
async fn what_a_later_page_shows_is_not_created_again() {
    let server = ApiServer::start(&["/issues"], |request, store| {
        if request.is("GET", "/issues") {
            let page: usize = request.query.get("page").and_then(|page| page.parse().ok()).unwrap_or(1);
            let members = store.members("/issues");
            let shown: Vec<&Value> = members.iter().skip((page - 1) * 20).take(20).collect();
            return list(json!(shown));
        }
        request.rest(store, Ids::Given)
    });
    for index in 0..20 {
        let id = format!("a{index:04}");
        server.put(&format!("/issues/{id}"), json!({"id": id, "name": format!("issue {index}")}));
    }
    server.put("/issues/z1", json!({"id": "z1", "name": "zeta"}));
    let metadata =
        format!("{NAMES}operations: {{list: {{pagination: {{style: page, parameter: page, size: 20}}}}}}\n");
    let scene = Scene::synced(server, &[(METADATA, &metadata), ZETA]).await;
    scene.converges(1).await;
    assert_eq!(scene.server.writes(), Vec::<String>::new());
}

/// A server whose list answers as the mode says.
fn moody() -> ApiServer {
    ApiServer::start(&["/issues"], |request, store| {
        let mode = store.mode.clone();
        match mode.as_str() {
            _ if !request.is("GET", "/issues") => request.rest(store, Ids::Given),
            "missing" => Answer::missing(),
            "busy" => list(json!({"error": "busy"})),
            "html" => Answer::html(200),
            "text" => Answer::text(200, "text/plain", "<html>down for maintenance</html>"),
            "unnamed" => Answer::html(200).without_headers(),
            "nothing" => Answer::empty(204),
            "null" => list(Value::Null),
            "forbidden" => Answer::empty(403),
            "refused" => Answer::empty(405),
            _ => request.rest(store, Ids::Given),
        }
    })
}

#[rstest]
#[tokio::test]
async fn an_answer_that_is_not_a_list_proves_no_absence(
    #[values("missing", "busy", "html", "text", "unnamed", "nothing", "null", "forbidden", "refused")]
    mode: &str,
) {
    let eta = ("issues/eta/resource.json", r#"{"name": "eta"}"#);
    let scene = Scene::synced(moody(), &[(METADATA, NAMES), ZETA, eta]).await;
    let before = scene.server.all();
    scene.server.clear_log();
    scene.server.mode(mode);
    for _ in 0..2 {
        let status = scene.full_run().await;
        assert_eq!(scene.server.writes(), Vec::<String>::new());
        let auth = mode == "forbidden";
        assert!(auth || reports(&status, "/issues/zeta") && reports(&status, "/issues/eta"), "{status:#?}");
        assert!(!super::succeeded(&status));
    }
    scene.server.mode("");
    scene.converges(2).await;
    assert_eq!(scene.server.all(), before);
    assert_eq!(scene.server.writes(), Vec::<String>::new());
}

/// What is right: where the payload states the id, its own address says enough.
#[rstest]
#[case::forbidden("", r#"{"id": "zeta"}"#, "forbidden")]
#[case::refused("", r#"{"id": "zeta"}"#, "refused")]
#[case::missing("", r#"{"id": "zeta"}"#, "missing")]
#[case::html("", r#"{"id": "zeta"}"#, "html")]
#[case::busy("", r#"{"id": "zeta"}"#, "busy")]
#[case::same_names("resource: {id: /name, alias: /name}\n", r#"{"id": "zeta", "name": "zeta"}"#, "forbidden")]
#[case::two_names(NAMES, r#"{"id": "z9", "name": "zeta"}"#, "forbidden")]
#[case::two_names_refused(NAMES, r#"{"id": "z9", "name": "zeta"}"#, "refused")]
#[tokio::test]
async fn a_list_that_cannot_be_had_does_not_hinder_a_creation_that_states_its_id(
    #[case] metadata: &str,
    #[case] payload: &str,
    #[case] mode: &str,
) {
    let mode = mode.to_owned();
    let server = ApiServer::start(&["/issues"], move |request, store| match mode.as_str() {
        _ if !request.is("GET", "/issues") => request.rest(store, Ids::Stated("id")),
        "missing" => Answer::missing(),
        "busy" => list(json!({"error": "busy"})),
        "html" => Answer::html(200),
        "forbidden" => Answer::empty(403),
        _ => Answer::empty(405),
    });
    let (scene, _) = Scene::start(server, &[(METADATA, metadata), (ZETA.0, payload)]).await;
    scene.converges(1).await;
    scene.full_run().await;
    assert_eq!(scene.server.writes(), ["POST /issues 201"]);
}

#[rstest]
#[tokio::test]
async fn without_a_list_nothing_is_created_whose_id_only_the_server_knows(
    #[values("forbidden", "refused", "html", "busy")] mode: &str,
) {
    let server = moody();
    server.put("/issues/u1", json!({"id": "u1", "name": "zeta"}));
    server.mode(mode);
    let (scene, status) = Scene::start(server, &[(METADATA, NAMES), ZETA]).await;
    assert_eq!(scene.server.writes(), Vec::<String>::new());
    assert!(!super::succeeded(&status));
    scene.server.mode("");
    scene.converges(2).await;
    assert_eq!(scene.server.writes(), Vec::<String>::new());
}
