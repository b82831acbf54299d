//! Lists whose pages are linked in an array of links.

use declarest_core::sync::Outcome;
use rstest::rstest;
use serde_json::{Value, json};

use crate::api_server::{Answer, ApiServer, Ids, Request, Store};
use crate::rest_server::Config;
use crate::world::World;

/// The number of entries on a page.
const PAGE: usize = 5;

/// As of OGC APIs and Oracle REST Data Services: the page after the first one has the link of the previous page, too.
fn generic(items: &[Value], skip: usize, next: Option<&str>) -> Value {
    let mut links = vec![json!({"rel": "self", "href": format!("/shops?offset={skip}")})];
    links.extend((skip > 0).then(|| json!({"rel": "prev", "href": "/shops?offset=0"})));
    links.extend(next.map(|next| json!({"rel": "next", "href": next})));
    json!({"items": items, "links": links})
}

/// As of `OpenStack`, without links on the last page.
fn openstack(items: &[Value], _: usize, next: Option<&str>) -> Value {
    match next {
        Some(next) => json!({"shops": items, "shops_links": [{"rel": "next", "href": next}]}),
        None => json!({"shops": items}),
    }
}

fn fhir(items: &[Value], _: usize, next: Option<&str>) -> Value {
    let next = next.map(|next| json!({"relation": "next", "url": next}));
    let links: Vec<Value> = [json!({"relation": "self", "url": "/shops"})].into_iter().chain(next).collect();
    json!({"kind": "Bundle", "link": links, "entry": items})
}

/// Seven shops, of which `s6` is on the second page.
fn shops(answer: fn(&[Value], usize, Option<&str>) -> Value) -> ApiServer {
    let server = ApiServer::start(&["/shops"], move |request: &Request, store: &mut Store| {
        if !request.is("GET", "/shops") {
            return request.rest(store, Ids::Given);
        }
        let skip = request.query.get("offset").and_then(|offset| offset.parse().ok()).unwrap_or_default();
        let members = store.members("/shops");
        let items: Vec<Value> = members.iter().skip(skip).take(PAGE).cloned().collect();
        let more = skip + PAGE < members.len();
        let next = format!("shops?offset={}", skip + PAGE);
        Answer::json(200, &answer(&items, skip, more.then_some(&*next)))
    });
    for index in 0..7 {
        server.put(
            &format!("/shops/n{index}"),
            json!({"id": format!("n{index}"), "name": format!("s{index}")}),
        );
    }
    server
}

#[rstest]
#[case::generic(generic)]
#[case::openstack(openstack)]
#[case::fhir(fhir)]
#[tokio::test]
async fn a_resource_on_a_linked_page_is_not_created_twice(
    #[case] answer: fn(&[Value], usize, Option<&str>) -> Value,
) {
    let server = shops(answer);
    let files = [
        ("shops/_/metadata.yaml", "resource: {id: /id, alias: /name}\n"),
        ("shops/s6/resource.json", r#"{"name":"s6"}"#),
        ("shops/s7/resource.json", r#"{"name":"s7"}"#),
    ];
    let world = World::new(Config::default(), &files);
    let report = world.sync_on(server.url(), &[]).await;
    assert_eq!((report.stats.unchanged, report.stats.created), (1, 1), "{report:?}");
    assert_eq!((report.outcome, server.writes()), (Outcome::Succeeded, vec!["POST /shops 201".to_owned()]));
}
