//! Lists that show other payloads than reads of their members.

use rstest::rstest;
use serde_json::{Value, json};

use crate::api_server::{Answer, ApiServer, Ids, Request, Store};
use crate::safety::Place;

const OPENAPI: &str = "openapi: 3.0.3
paths:
  /shops: {get: {}, post: {}}
  /shops/{id}: {get: {}, put: {}, delete: {}}
";

/// A server that answers reads of members with the output of `read`, and whose list lacks `hours`.
fn shops(read: fn(&Value) -> Answer) -> ApiServer {
    let answer = move |request: &Request, store: &mut Store| {
        let shown = store.get(&request.path).cloned();
        match (request.method.as_str(), shown) {
            ("GET", Some(shop)) => read(&shop),
            ("GET", None) if request.path == "/shops" => {
                let mut shops = store.members("/shops");
                shops.iter_mut().filter_map(Value::as_object_mut).for_each(|shop| drop(shop.remove("hours")));
                Answer::json(200, &json!(shops))
            }
            _ => request.rest(store, Ids::Stated("id")),
        }
    };
    let server = ApiServer::start(&["/shops"], answer);
    server.put("/shops/lima", json!({"id": "lima", "hours": "9-12"}));
    server.put("/shops/rio", json!({"id": "rio", "hours": "8-20", "tier": "gold"}));
    server
}

fn whole(shop: &Value) -> Answer {
    Answer::json(200, shop)
}

fn without_hours(shop: &Value) -> Answer {
    let mut shop = shop.clone();
    shop.as_object_mut().unwrap().remove("hours");
    Answer::json(200, &shop)
}

fn enveloped(shop: &Value) -> Answer {
    Answer::json(200, &json!({"version": 1, "shop": shop}))
}

fn forbidden(_: &Value) -> Answer {
    Answer::empty(403)
}

fn missing(_: &Value) -> Answer {
    Answer::missing()
}

fn not_allowed(_: &Value) -> Answer {
    Answer::empty(405)
}

fn failing(_: &Value) -> Answer {
    Answer::empty(500)
}

fn not_implemented(_: &Value) -> Answer {
    Answer::empty(501)
}

fn reads(place: &Place) -> usize {
    place.server.log().iter().filter(|request| request.method == "GET" && request.path != "/shops").count()
}

#[rstest]
#[case::import(&["import"])]
#[case::save(&["resource", "save", "/shops/"])]
#[case::save_without_a_slash(&["resource", "save", "/shops"])]
fn files_have_the_payloads_of_reads(#[case] command: &[&str]) {
    let place = Place::with_openapi(shops(whole), OPENAPI, &[("README.md", "shops")]);
    let run = place.run(command);
    assert_eq!(run.code, 0, "{run}");
    assert_eq!(
        place.home.read("repo/shops/rio/resource.json"),
        "{\n  \"hours\": \"8-20\",\n  \"id\": \"rio\",\n  \"tier\": \"gold\"\n}"
    );
    let run = place.run(&["plan", "/", "--exit-code"]);
    assert_eq!(run.code, 0, "{run}");
}

/// The largest member shows the same in the list and in a read.
#[rstest]
#[case::shortens_texts(json!({"id": "rio", "notes": "opens late on Sundays"}))]
#[case::shortens_arrays(json!({"id": "rio", "days": ["mon", "tue", "wed"]}))]
#[case::leaves_out_an_attribute_of_some(json!({"id": "rio", "owner": null}))]
fn files_have_the_payloads_of_reads_if_a_list_shortens_some(#[case] rio: Value) {
    let answer = |request: &Request, store: &mut Store| {
        if request.method != "GET" || request.path != "/shops" {
            return request.rest(store, Ids::Stated("id"));
        }
        let mut shops = store.members("/shops");
        for shop in shops.iter_mut().filter_map(Value::as_object_mut) {
            shop.remove("owner");
            if let Some(Value::String(notes)) = shop.get_mut("notes") {
                notes.truncate(8);
            }
            if let Some(Value::Array(days)) = shop.get_mut("days") {
                days.truncate(2);
            }
        }
        Answer::json(200, &json!(shops))
    };
    let server = ApiServer::start(&["/shops"], answer);
    for shop in ["lima", "oslo", "bern"] {
        let address = "a street with a long name, behind the market, second floor";
        server
            .put(&format!("/shops/{shop}"), json!({"id": shop, "address": address, "notes": "", "days": []}));
    }
    server.put("/shops/rio", rio.clone());
    let place = Place::with_openapi(server, OPENAPI, &[("README.md", "shops")]);
    let run = place.run(&["import"]);
    assert_eq!(run.code, 0, "{run}");
    let saved: Value = serde_json::from_str(&place.home.read("repo/shops/rio/resource.json")).unwrap();
    assert_eq!(saved, rio);
}

/// The largest member can be read.
#[test]
fn one_small_member_that_cannot_be_read_does_not_stop_the_others() {
    let answer = |request: &Request, store: &mut Store| match request.path.as_str() {
        "/shops/rio" if request.method == "GET" => Answer::json(200, &json!({"id": "another"})),
        _ => request.rest(store, Ids::Stated("id")),
    };
    let server = ApiServer::start(&["/shops"], answer);
    server.put("/shops/lima", json!({"id": "lima", "address": "a street with a long name"}));
    server.put("/shops/rio", json!({"id": "rio", "tier": "gold"}));
    let place = Place::with_openapi(server, OPENAPI, &[("shops/_/metadata.yaml", "resource: {id: /id}\n")]);
    let run = place.run(&["import"]);
    assert!(run.code != 0 && run.to_string().contains("/shops/rio"), "{run}");
    assert!(place.has("shops/lima") && !place.has("shops/rio"), "{run}");
}

/// The path of a member does not show the parts of such an alias.
#[rstest]
#[case::entries("")]
#[case::names("operations: {list: {mode: names}}\n")]
fn files_have_the_payloads_of_reads_with_composed_aliases(#[case] list: &str) {
    let metadata = format!("resource: {{id: /id, alias: '{{{{/id}}}}.{{{{/tier}}}}'}}\n{list}");
    let server = shops(whole);
    server.put("/shops/lima", json!({"id": "lima", "hours": "9-12", "tier": "free"}));
    let place = Place::new(server, &[("shops/_/metadata.yaml", &metadata)]);
    for command in [&["import"][..], &["resource", "save", "/shops/", "--force"]] {
        let run = place.run(command);
        assert_eq!(run.code, 0, "{run}");
        let rio = place.home.read("repo/shops/rio.gold/resource.json");
        assert!(rio.contains("\"hours\": \"8-20\""), "{rio}");
    }
    let run = place.run(&["plan", "/", "--exit-code"]);
    assert_eq!(run.code, 0, "{run}");
}

/// Files with the entries of the list would lack attributes.
#[test]
fn members_whose_read_cannot_be_evaluated_are_not_saved() {
    let get = "operations: {get: {transforms: [{jqExpression: 'error(\"no\")'}]}}\n";
    let place = Place::new(shops(whole), &[("shops/_/metadata.yaml", get)]);
    let run = place.run(&["import"]);
    assert!(run.code == 2 && run.stdout.contains("/shops  not imported"), "{run}");
    assert!(!place.has("shops/rio"), "{run}");
}

#[rstest]
// Each of the two has attributes that the other lacks.
#[case::confirmed(without_hours, 2, "")]
#[case::forbidden(forbidden, 2, "remote request failed with status 403")]
#[case::failing(failing, 2, "remote request failed with status 500")]
#[case::not_implemented(not_implemented, 2, "remote request failed with status 501")]
#[case::not_allowed(not_allowed, 2, "remote request failed with status 405")]
fn reads_confirm_a_list_and_two_failures_accept_it(
    #[case] read: fn(&Value) -> Answer,
    #[case] count: usize,
    #[case] failure: &str,
) {
    let place = Place::with_openapi(shops(read), OPENAPI, &[("README.md", "shops")]);
    let run = place.run(&["import"]);
    assert_eq!((run.code, reads(&place)), (0, count), "{run}");
    assert!(run.stdout.contains("/shops  2 saved"), "{run}");
    assert_eq!(
        run.stderr.contains("/shops: the files have the payloads of the list and may lack attributes"),
        !failure.is_empty(),
        "{run}"
    );
    assert!(run.stderr.contains(failure), "{run}");
}

/// The largest member cannot be read, and the others show more than the list.
#[test]
fn another_member_is_read_if_the_largest_cannot_be() {
    let place = Place::with_openapi(
        shops(|shop| if shop["id"] == "rio" { Answer::empty(403) } else { Answer::json(200, shop) }),
        OPENAPI,
        &[("README.md", "shops")],
    );
    let run = place.run(&["import"]);
    let failure = "/shops  not complete: /shops/rio could not be read: GET /shops/rio: ";
    assert!(run.code == 4 && run.stdout.contains(failure), "{run}");
    assert!(place.home.read("repo/shops/lima/resource.json").contains("9-12"), "{run}");
    assert!(!place.has("shops/rio/resource.json"), "{run}");
}

/// Like an environment of Mistral, each shop has a member `id` that is not in its address.
#[rstest]
#[case::import(&["import"])]
#[case::save(&["resource", "save", "/shops/"])]
fn members_are_read_at_their_names_if_nothing_is_at_their_ids(#[case] command: &[&str]) {
    let server = ApiServer::start(&["/shops"], |request, store| match request.path.as_str() {
        "/shops" => {
            let mut shops = store.members("/shops");
            shops.iter_mut().filter_map(Value::as_object_mut).for_each(|shop| drop(shop.remove("hours")));
            Answer::json(200, &json!(shops))
        }
        _ => request.rest(store, Ids::Stated("name")),
    });
    server.put("/shops/rio", json!({"id": 77, "name": "rio", "hours": "8-20"}));
    server.put("/shops/lima", json!({"id": 78, "name": "lima", "hours": "9-12"}));
    let metadata = "resource: {id: /name, alias: /name}\n";
    let place = Place::new(server, &[("shops/_/metadata.yaml", metadata)]);
    let run = place.run(command);
    assert!(run.code == 0 && !run.stderr.contains("payloads of the list"), "{run}");
    for (name, hours) in [("rio", "8-20"), ("lima", "9-12")] {
        let saved = place.home.read(&format!("repo/shops/{name}/resource.json"));
        assert!(saved.contains(hours), "{saved}");
    }
    let run = place.run(&["plan", "/", "--exit-code"]);
    assert_eq!(run.code, 0, "{run}");
}

/// A file with the envelope would be sent to the server.
#[test]
fn an_envelope_is_not_saved() {
    let place = Place::with_openapi(shops(enveloped), OPENAPI, &[("README.md", "shops")]);
    let run = place.run(&["import"]);
    assert_eq!(run.code, 2, "{run}");
    insta::assert_snapshot!(run.stdout, @r"
    /shops  not imported: /shops: the answers to reads have an envelope around the resource; add the step {jqExpression: '.shop'} to operations.get.transforms in shops/_/metadata.yaml
    Import: 0 resources saved, 0 existing, 1 collection not imported.
    ");
    let step = "operations: {get: {transforms: [{jqExpression: '.shop'}]}}\n";
    place.home.write("repo/shops/_/metadata.yaml", step);
    let run = place.run(&["import"]);
    assert_eq!(run.code, 0, "{run}");
    let run = place.run(&["plan", "/", "--exit-code"]);
    assert_eq!(run.code, 0, "{run}");
}

/// Attributes that `get` removes are neither saved nor compared, also if members have no address.
#[rstest]
#[case::missing(missing)]
#[case::not_allowed(not_allowed)]
fn entries_of_lists_are_compared_as_reads_would_show_them(#[case] read: fn(&Value) -> Answer) {
    let get = "operations: {get: {transforms: [{excludeAttributes: [/tier]}]}}\n";
    let place = Place::with_openapi(shops(read), OPENAPI, &[("shops/_/metadata.yaml", get)]);
    let run = place.run(&["import"]);
    assert_eq!(run.code, 0, "{run}");
    assert_eq!(place.home.read("repo/shops/rio/resource.json"), "{\n  \"id\": \"rio\"\n}");
    for command in [&["plan", "/"][..], &["resource", "diff", "/shops/rio"]] {
        let run = place.run(&[command, &["--exit-code"]].concat());
        assert_eq!(run.code, 0, "{run}");
    }
    let run = place.run(&["resource", "get", "/shops/rio"]);
    assert!(!run.stdout.contains("tier"), "{run}");
}
