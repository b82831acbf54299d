//! Servers of remote procedures that answer 200 to everything: `operations.defaults.failed` states which answers are
//! failures.

use rstest::rstest;
use serde_json::json;

use crate::api_server::{Answer, ApiServer, Ids};
use crate::safety::Place;

const LEASES: &str = r"
resource: {id: /address, alias: /address}
operations:
  defaults: {failed: {jq: '.[0].result == 1'}}
  get: {absent: {jq: '.[0].result == 3'}, transforms: [{jqExpression: '.[0].lease'}]}
  list: {transforms: [{jqExpression: '.[0].leases'}]}
";

/// The server refuses all requests with `refused` methods.
fn place(refused: &'static [&'static str]) -> Place {
    let server = ApiServer::start(&["/leases"], |request, store| {
        if refused.contains(&request.method.as_str()) {
            return Answer::json(200, &json!([{"result": 1, "text": "no such subnet"}]));
        }
        let shown = match request.method.as_str() {
            "GET" if request.path == "/leases" => json!({"result": 0, "leases": store.members("/leases")}),
            "GET" => match store.get(&request.path) {
                Some(lease) => json!({"result": 0, "lease": lease}),
                None => json!({"result": 3}),
            },
            _ => {
                request.rest(store, Ids::Stated("address"));
                json!({"result": 0, "text": "done"})
            }
        };
        Answer::json(200, &json!([shown]))
    });
    let one = |name: &str| format!(r#"{{"address": "{name}", "host": "new"}}"#);
    server.put("/leases/b", json!({"address": "b", "host": "old"}));
    let files = [
        ("leases/_/metadata.yaml", LEASES),
        ("leases/a/resource.json", &one("a")),
        ("leases/b/resource.json", &one("b")),
    ];
    Place::new(server, &files)
}

const REASON: &str = r#"remote request failed with status 200: [{"result":1,"text":"no such subnet"}]"#;

#[rstest]
#[case::create("apply", "/leases/a", "POST", "POST /leases: ")]
#[case::requested_create("create", "/leases/a", "POST", "POST /leases: ")]
#[case::update("apply", "/leases/b", "PUT", "PUT /leases/b: ")]
#[case::requested_update("update", "/leases/b", "PUT", "PUT /leases/b: ")]
#[case::read("apply", "/leases/b", "GET", "GET /leases/b: ")]
fn an_answer_that_states_a_failure_is_one(
    #[case] command: &str,
    #[case] path: &str,
    #[case] method: &str,
    #[case] request: &str,
) {
    let refused: &[&str] = match method {
        "POST" => &["POST"],
        "PUT" => &["PUT"],
        _ => &["GET"],
    };
    let place = place(refused);
    let run = place.run(&["resource", command, path]);
    assert!(run.code == 2 && run.stderr.contains(&format!("{request}{REASON}")), "{run}");
    assert_eq!(place.server.writes().len(), usize::from(method != "GET"));
}

#[test]
fn a_file_stays_if_the_deletion_failed() {
    let place = place(&["DELETE"]);
    let run = place.run(&["resource", "delete", "/leases/b", "--yes", "--source", "both"]);
    assert!(run.code == 2 && run.stderr.contains(REASON), "{run}");
    assert!(place.has("leases/b/resource.json"));
}

/// The answers to reads do not show whether a resource exists.
#[test]
fn a_failed_read_is_not_absence() {
    let place = place(&["GET"]);
    let run = place.run(&["plan", "/", "-r"]);
    assert!(run.code == 2 && run.stdout.contains("No plan: 2 resources failed."), "{run}");
    assert!(run.stderr.contains(REASON), "{run}");
}

#[test]
fn other_answers_are_not_failures() {
    let place = place(&[]);
    let run = place.run(&["resource", "apply", "/", "-r"]);
    assert_eq!(run.code, 0, "{run}");
    let run = place.run(&["plan", "/", "--exit-code"]);
    assert_eq!(run.code, 0, "{run}");
    let run = place.run(&["resource", "delete", "/leases/a", "--yes"]);
    assert_eq!((run.code, place.server.paths()), (0, vec!["/leases/b".to_owned()]), "{run}");
}

/// The expression is true for a value without `code`.
#[rstest]
#[case::empty(Answer::empty(204))]
#[case::large(Answer::json(200, &json!({"code": 0, "text": "x".repeat(5 << 20)})))]
#[case::not_decoded(Answer::text(200, "text/plain", "done"))]
fn an_answer_without_a_statement_is_not_a_failure(#[case] answer: Answer) {
    let server = ApiServer::start(&["/leases"], move |request, store| {
        let done = request.rest(store, Ids::Stated("address"));
        if request.method == "PUT" { answer.clone() } else { done }
    });
    server.put("/leases/b", json!({"address": "b", "host": "old"}));
    let metadata = "resource: {id: /address}\noperations: {update: {failed: {jq: .code != 0}}}\n";
    let files = [
        ("leases/_/metadata.yaml", metadata),
        ("leases/b/resource.json", r#"{"address": "b", "host": "new"}"#),
    ];
    let place = Place::new(server, &files);
    let run = place.run(&["resource", "apply", "/leases/b"]);
    assert_eq!(run.code, 0, "{run}");
    assert_eq!(place.server.get("/leases/b").unwrap()["host"], "new");
}

/// The second resource is accepted only after the first one exists.
#[test]
fn a_later_pass_sends_what_another_resource_lacked() {
    let server = ApiServer::start(&["/a", "/b"], |request, store| {
        if request.is("POST", "/a") && store.get("/b/two").is_none() {
            return Answer::json(200, &json!({"code": 7}));
        }
        request.rest(store, Ids::Stated("id"))
    });
    let files = [
        ("_/metadata.yaml", "resource: {id: /id}\noperations: {defaults: {failed: {jq: .code == 7}}}\n"),
        ("a/one/resource.json", r#"{"id": "one"}"#),
        ("b/two/resource.json", r#"{"id": "two"}"#),
    ];
    let place = Place::new(server, &files);
    let run = place.run(&["resource", "apply", "/", "-r"]);
    assert_eq!(
        (run.code, place.server.paths()),
        (0, vec!["/a/one".to_owned(), "/b/two".to_owned()]),
        "{run}"
    );
}

#[test]
fn the_reason_shows_no_secret() {
    let server = ApiServer::start(&["/leases"], |request, store| match request.method.as_str() {
        "POST" => Answer::json(200, &json!({"code": 7, "pin": "canary-of-the-server"})),
        _ => request.rest(store, Ids::Stated("id")),
    });
    let metadata =
        "resource: {id: /id, secretAttributes: [/pin]}\noperations: {create: {failed: {jq: .code == 7}}}\n";
    let files = [("leases/_/metadata.yaml", metadata), ("leases/a/resource.json", r#"{"id": "a"}"#)];
    let place = Place::new(server, &files);
    let run = place.run(&["resource", "apply", "/leases/a", "-vvv"]);
    assert!(run.code == 2 && run.stderr.contains("status 200"), "{run}");
    assert!(!format!("{run}").contains("canary"), "{run}");
}

#[rstest]
#[case::read("get", "/leases/b", "GET", "GET /leases/b: ")]
#[case::create("post", "/leases/", "POST", "POST /leases: ")]
fn a_request_with_such_an_answer_fails(
    #[case] method: &str,
    #[case] path: &str,
    #[case] refused: &'static str,
    #[case] request: &str,
) {
    let place = place(std::slice::from_ref(match refused {
        "GET" => &"GET",
        _ => &"POST",
    }));
    let run = place.run(&["resource", "request", method, path]);
    assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{run}");
    assert!(run.stderr.contains(&format!("{request}{REASON}")), "{run}");
}

/// Without a payload, only a body that metadata states is sent.
#[rstest]
#[case::stated("body: {id: run, jobs: 2}", json!({"id": "run", "jobs": 2}))]
#[case::nothing("validate: {requiredAttributes: [/jobs]}", json!(""))]
fn a_request_without_a_payload_sends_the_stated_body(#[case] create: &str, #[case] body: serde_json::Value) {
    let metadata = format!("operations: {{create: {{{create}}}}}\n");
    let server = ApiServer::start(&["/runs"], |_, _| Answer::json(201, &json!({"id": "7"})));
    let place = Place::new(server, &[("runs/_/metadata.yaml", &metadata)]);
    let run = place.run(&["resource", "request", "post", "/runs/"]);
    let sent: Vec<_> = place.server.log().into_iter().map(|request| request.body).collect();
    assert_eq!(sent, [body], "{run}");
}
