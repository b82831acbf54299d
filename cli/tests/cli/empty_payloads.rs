//! Payload files without a value.

use rstest::rstest;

use crate::api_server::{Answer, ApiServer, Ids};
use crate::safety::Place;

fn shops(metadata: &str, payload: &str) -> Place {
    let server = ApiServer::start(&["/shops"], |request, store| match request.method.as_str() {
        "POST" => Answer::empty(201),
        _ => request.rest(store, Ids::Given),
    });
    Place::new(server, &[("shops/_/metadata.yaml", metadata), ("shops/rio/resource.yaml", payload)])
}

#[rstest]
#[case::alias("resource: {alias: /name}", "create requires /name in the payload")]
#[case::required("resource: {requiredAttributes: [/size]}", "create requires /size in the payload")]
#[case::validate(
    "operations: {create: {validate: {requiredAttributes: [/size]}}}",
    "the request body lacks required attributes: /size"
)]
fn an_empty_payload_is_checked(
    #[case] metadata: &str,
    #[case] message: &str,
    #[values("", "null\n", "# later\n")] payload: &str,
) {
    let place = shops(metadata, payload);
    let run = place.run(&["resource", "apply", "/", "-r"]);
    assert_ne!(run.code, 0, "{run}");
    assert!(run.stderr.contains(message), "{run}");
    assert!(place.server.writes().is_empty());
    let run = place.run(&["validate"]);
    assert_ne!(run.code, 0, "{run}");
    assert!(format!("{}{}", run.stdout, run.stderr).contains(message), "{run}");
}

#[test]
fn an_empty_payload_is_sent_without_a_body_if_nothing_is_required() {
    let place = shops("resource: {id: /id}", "");
    let run = place.run(&["resource", "create", "/shops/rio"]);
    assert_eq!((run.code, place.server.writes()), (0, vec!["POST /shops 201".to_owned()]), "{run}");
}

/// The server answers 204 to the read of a resource that it does not have.
#[rstest]
#[case::update("")]
#[case::without_id("resource: {id: /id, alias: /name}\n")]
fn an_answer_without_content_may_mean_absence(#[case] metadata: &str) {
    let server = ApiServer::start(&["/users"], |request, store| {
        let is_missing =
            request.method == "GET" && request.path != "/users" && store.get(&request.path).is_none();
        if is_missing { Answer::empty(204) } else { request.rest(store, Ids::Given) }
    });
    let files = [("users/_/metadata.yaml", metadata), ("users/bob/resource.json", r#"{"name": "bob"}"#)];
    let place = Place::new(server, &files);
    let run = place.run(&["resource", "apply", "/users/bob"]);
    let advice = "if this means that it does not exist, state operations.get.absent: {jq: '. == null'} in users/_/metadata.yaml";
    assert!(run.code != 0 && run.stderr.contains(advice), "{run}");
    let corrected = format!("{metadata}operations: {{get: {{absent: {{jq: '. == null'}}}}}}\n");
    place.home.write("repo/users/_/metadata.yaml", &corrected);
    let run = place.run(&["resource", "apply", "/users/bob"]);
    assert_eq!((run.code, place.server.count("POST")), (0, 1), "{run}");
}

/// A file of null would be removed, and the next prune would delete the resource.
#[rstest]
#[case("yaml", "# later\n")]
#[case("yaml", "---\n")]
#[case("json", "null")]
fn an_empty_payload_is_not_saved(#[case] format: &str, #[case] payload: &str) {
    let place = shops("resource: {id: /id}", "id: rio\n");
    place.home.write("given", payload);
    let given = place.home.path("given").display().to_string();
    let args = ["resource", "save", "/shops/rio", "--force", "--content-type", format, "-f", &given];
    let run = place.run(&args);
    let message = "the payload for /shops/rio has no content, so there is nothing to save; \
                   \"declarest resource delete /shops/rio --source repository\" removes the file";
    assert!(run.code == 2 && run.stderr.contains(message), "{run}");
    assert_eq!(place.home.read("repo/shops/rio/resource.yaml"), "id: rio\n");
}
