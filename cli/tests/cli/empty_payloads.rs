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
