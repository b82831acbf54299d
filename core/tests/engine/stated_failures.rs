//! Answers with a status of success that state a failure, and redirects of writes.

use std::sync::Arc;

use declarest_core::sync::{Intent, Options, Recurrences};
use rstest::rstest;
use serde_json::json;

use crate::api_server::{Answer, ApiServer, Ids, Request};
use crate::rest_server::Config;
use crate::world::World;
use crate::world::failure;

const REFUSAL: &str = r#"{"success": false, "message": "quota exceeded", "key": "c4nary"}"#;

fn declaring(metadata: &str, ana: &str) -> World {
    World::new(Config::default(), &[("users/_/metadata.yaml", metadata), ("users/ana/resource.json", ana)])
}

/// A server that refuses writes with this method, and answers 200.
fn refusing(method: &'static str, ids: Ids) -> ApiServer {
    ApiServer::start(&["/users"], move |request: &Request, store| {
        if request.method == method {
            return Answer::text(200, "application/json", REFUSAL);
        }
        request.rest(store, ids)
    })
}

/// With recurrences, like in the operator, and without, like in a command.
fn options(watched: bool) -> Options {
    let recurrences = watched.then(|| Arc::new(Recurrences::default()));
    Options { recurrences, ..Options::default() }
}

#[rstest]
#[tokio::test]
async fn a_refused_create_is_not_done(
    #[values(true, false)] watched: bool,
    #[values(
        "resource: {id: /name, alias: /name}",
        "resource: {id: /id, alias: /name}",
        "resource: {secret: true}",
        "resource: {id: /uid, alias: /name}\noperations: {compare: {mode: declared}}"
    )]
    metadata: &str,
) {
    let server = refusing("POST", Ids::Given);
    let world = declaring(metadata, r#"{"name": "ana"}"#);
    for _ in 0..2 {
        let report = world.sync_with(server.url(), &[], &options(watched)).await;
        let (reason, message) = failure(&report);
        assert_eq!((report.stats.created, reason), (0, "ValidationError"), "{report:?}");
        assert!(
            message.contains("failed with status 200: ") && message.contains("quota exceeded"),
            "{message}"
        );
        assert!(!message.contains("c4nary"), "{message}");
    }
}

/// In this mode, attributes that an answer lacks are not differences. The answer shows nothing of the user.
#[tokio::test]
async fn an_answer_without_any_attribute_of_the_payload_does_not_confirm_a_create() {
    let server = ApiServer::start(&["/users"], |request: &Request, store| match request.method.as_str() {
        "POST" => Answer::json(200, &json!({"message": "accepted"})),
        _ => request.rest(store, Ids::Given),
    });
    let rule = "resource: {id: /uid, alias: /name, writeOnlyAttributes: [/pin]}\noperations: {compare: {mode: declared}}";
    let world = declaring(rule, r#"{"name": "ana", "pin": "4711"}"#);
    let report = world.sync_on(server.url(), &[]).await;
    let (reason, message) = failure(&report);
    assert_eq!((report.stats.created, reason), (0, "ValidationError"), "{report:?}");
    assert!(message.contains("but does not show the resource"), "{message}");
}

/// The server has the user after the create, with another age, and refuses to update it.
#[rstest]
#[case::conflict(409)]
#[case::lost(502)]
#[tokio::test]
async fn a_refused_update_of_a_resource_found_instead_of_created_is_not_done(#[case] status: u16) {
    let server =
        ApiServer::start(&["/users"], move |request: &Request, store| match request.method.as_str() {
            "POST" => {
                store.put("/users/ana", json!({"name": "ana", "age": 3}));
                Answer::json(status, &json!({}))
            }
            "PUT" => Answer::text(200, "application/json", REFUSAL),
            _ => request.rest(store, Ids::Stated("name")),
        });
    let world = declaring("resource: {id: /name, alias: /name}", r#"{"name": "ana", "age": 7}"#);
    let report = world.sync_with(server.url(), &[], &options(true)).await;
    let (reason, message) = failure(&report);
    assert_eq!((report.stats.applied, reason), (0, "ValidationError"), "{report:?}");
    assert!(message.contains("quota exceeded"), "{message}");
}

/// The server refuses a user until it has the other one, which the run creates later.
#[tokio::test]
async fn a_refused_create_is_sent_again_after_other_writes() {
    let server = ApiServer::start(&["/users"], |request: &Request, store| {
        let is_early = request.body["name"] == "ana" && store.get("/users/zoe").is_none();
        if request.method == "POST" && is_early {
            return Answer::json(200, &json!({"success": false, "message": "zoe is missing"}));
        }
        request.rest(store, Ids::Stated("name"))
    });
    let world = declaring("resource: {id: /name, alias: /name}", r#"{"name": "ana"}"#);
    world.declare("users/zoe/resource.json", r#"{"name": "zoe"}"#);
    let report = world.sync_with(server.url(), &[], &options(true)).await;
    assert_eq!((report.stats.created, report.failures.len()), (2, 0), "{report:?}");
}

/// The answer shows the resource, which has an attribute for errors, without its password.
#[tokio::test]
async fn an_answer_without_write_only_attributes_is_the_resource() {
    let server = ApiServer::start(&["/users"], |request: &Request, store| {
        let mut answer = request.rest(store, Ids::Stated("name"));
        if request.method == "PUT" {
            answer = Answer::json(200, &json!({"name": "ana", "age": 7, "error": "the mail was not sent"}));
        }
        answer
    });
    server.put("/users/ana", json!({"name": "ana", "age": 3}));
    let metadata = "resource: {id: /name, alias: /name, writeOnlyAttributes: [/pin]}";
    let world = declaring(metadata, r#"{"name": "ana", "age": 7, "pin": 42}"#);
    let report = world.sync_with(server.url(), &[], &options(true)).await;
    assert_eq!((report.stats.updated, report.failures.len()), (1, 0), "{report:?}");
}

#[tokio::test]
async fn a_refused_create_that_was_requested_is_not_done() {
    let server = refusing("POST", Ids::Given);
    let world = declaring("resource: {id: /id, alias: /name}", r#"{"name": "ana"}"#);
    let options = Options { intent: Intent::Create, ..Options::default() };
    let (_, message) = failure(&world.sync_with(server.url(), &[], &options).await);
    assert!(message.contains("quota exceeded") && !message.contains("c4nary"), "{message}");
}

/// A server that has created the resource, with an attribute for errors.
#[rstest]
#[case::whole(json!({"name": "ana", "error": "the mail was not sent"}), Ids::Stated("name"))]
#[case::id(json!({"id": "n7", "error": "the mail was not sent"}), Ids::Given)]
#[tokio::test]
async fn an_answer_that_shows_the_created_resource_states_no_refusal(
    #[case] answer: serde_json::Value,
    #[case] ids: Ids,
) {
    let server = ApiServer::start(&["/users"], move |request: &Request, store| {
        let answered = request.rest(store, ids);
        if request.method == "POST" { Answer::json(201, &answer) } else { answered }
    });
    let world = declaring("resource: {id: /id, alias: /name}", r#"{"name": "ana"}"#);
    let report = world.sync_with(server.url(), &[], &options(true)).await;
    assert_eq!((report.stats.created, report.failures.len()), (1, 0), "{report:?}");
}

#[rstest]
#[case::visible(r#"{"name": "ana", "age": 7}"#, "")]
#[case::write_only(r#"{"name": "ana", "age": 3, "pin": 42}"#, ", writeOnlyAttributes: [/pin]")]
#[tokio::test]
async fn a_refused_update_is_not_done(
    #[case] payload: &str,
    #[case] rule: &str,
    #[values(true, false)] watched: bool,
) {
    let server = refusing("PUT", Ids::Stated("name"));
    server.put("/users/ana", json!({"name": "ana", "age": 3}));
    let world = declaring(&format!("resource: {{id: /name, alias: /name{rule}}}"), payload);
    let options = Options { force: !rule.is_empty(), ..options(watched) };
    let report = world.sync_with(server.url(), &[], &options).await;
    let (_, message) = failure(&report);
    assert_eq!(report.stats.updated, 0, "{report:?}");
    assert!(message.contains("failed with status 200: ") && message.contains("quota exceeded"), "{message}");
    assert!(!message.contains("c4nary"), "{message}");
}

/// A server that carries out an update and states a failure of something else, and one that answers with the resource.
#[rstest]
#[case::done(json!({"error": "the mail was not sent"}))]
#[case::whole(json!({"name": "ana", "age": 7, "error": "the mail was not sent"}))]
#[tokio::test]
async fn an_update_that_has_its_effect_is_done(
    #[case] answer: serde_json::Value,
    #[values(true, false)] watched: bool,
) {
    let server = ApiServer::start(&["/users"], move |request: &Request, store| {
        let answered = request.rest(store, Ids::Stated("name"));
        if request.method == "PUT" { Answer::json(200, &answer) } else { answered }
    });
    server.put("/users/ana", json!({"name": "ana", "age": 3}));
    let world = declaring("resource: {id: /name, alias: /name}", r#"{"name": "ana", "age": 7}"#);
    let report = world.sync_with(server.url(), &[], &options(watched)).await;
    assert_eq!((report.stats.updated, report.failures.len()), (1, 0), "{report:?}");
}

/// A sign-in page of a proxy, and servers that state failures in bodies.
#[rstest]
#[case::page("text/html", "<!DOCTYPE html><html><body>Sign in</body></html>", "Sign in")]
#[case::success("application/json", r#"{"success": false, "message": "locked", "key": "c4nary"}"#, "locked")]
#[case::error("application/json", r#"{"error": {"code": 7}}"#, "7")]
#[tokio::test]
async fn an_answer_that_states_a_failure_does_not_confirm_a_deletion(
    #[case] content_type: &'static str,
    #[case] body: &'static str,
    #[case] part: &str,
    #[values(true, false)] reads_work: bool,
) {
    let server = ApiServer::start(&["/users"], move |request, store| {
        let is_signed_out = store.mode == "signed out";
        if request.method == "DELETE" || is_signed_out && !reads_work {
            "signed out".clone_into(&mut store.mode);
            return Answer::text(200, content_type, body);
        }
        request.rest(store, Ids::Stated("name"))
    });
    let world =
        World::new(Config::default(), &[("users/_/metadata.yaml", "resource: {id: /name, alias: /name}")]);
    server.put("/users/ana", json!({"name": "ana"}));
    let options = Options { allow_empty: true, ..Options::default() };
    let report = world.sync_with(server.url(), &[("/users/ana", r#"{"name":"ana"}"#)], &options).await;
    let (_, message) = failure(&report);
    assert!(message.contains("failed with status 200: ") && message.contains(part), "{message}");
    assert!(message.contains("the server shows no effect of the request"), "{message}");
    assert!(!message.contains("c4nary"), "{message}");
    assert_eq!((report.stats.pruned, server.paths().len()), (0, 1));
}

/// A server that answers a deletion with the resource, which has an attribute for errors.
#[tokio::test]
async fn an_answer_that_shows_the_deleted_resource_confirms_the_deletion() {
    let server = ApiServer::start(&["/users"], |request, store| {
        if request.method == "DELETE" {
            store.remove(&request.path);
            return Answer::json(200, &json!({"name": "ana", "error": "disk full"}));
        }
        request.rest(store, Ids::Stated("name"))
    });
    let world =
        World::new(Config::default(), &[("users/_/metadata.yaml", "resource: {id: /name, alias: /name}")]);
    server.put("/users/ana", json!({"name": "ana", "error": "disk full"}));
    let options = Options { allow_empty: true, ..Options::default() };
    let report = world.sync_with(server.url(), &[("/users/ana", r#"{"name":"ana"}"#)], &options).await;
    assert_eq!((report.stats.pruned, report.failures.len()), (1, 0), "{report:?}");
}

/// A server whose collections have a slash at the end. Reads follow its redirects.
#[tokio::test]
async fn a_redirect_of_a_write_names_its_target() {
    let server = ApiServer::start(&["/users"], |request: &Request, store| {
        if request.method == "POST" {
            return Answer::empty(301).header("location", "/users/?session=c4nary");
        }
        request.rest(store, Ids::Given)
    });
    let world = declaring("resource: {id: /id, alias: /name}", r#"{"name": "ana"}"#);
    let report = world.sync_with(server.url(), &[], &options(true)).await;
    let (reason, message) = failure(&report);
    assert_eq!((reason, server.count("POST")), ("ValidationError", 1), "{message}");
    assert!(
        message.starts_with("POST /users: redirect with status 301 leads to /users/, and is not followed"),
        "{message}"
    );
    assert!(!message.contains("c4nary"), "{message}");
}

/// The server of remote procedures rejects an old token.
#[tokio::test]
async fn the_failure_that_the_answer_to_a_list_states_is_reported() {
    let server = ApiServer::start(&["/users"], |request: &Request, _| match request.path.as_str() {
        "/users" => Answer::json(200, &json!({"error": {"message": "Session terminated", "key": "c4nary"}})),
        _ => Answer::missing(),
    });
    for transforms in ["[{jqExpression: .result}]", "[{jqExpression: '.result[]'}]", "[]"] {
        let rule = format!(
            "resource: {{id: /id, alias: /name}}\noperations: {{list: {{transforms: {transforms}}}}}"
        );
        let (_, message) = failure(&declaring(&rule, r#"{"name": "ana"}"#).sync_on(server.url(), &[]).await);
        assert!(
            message.contains("failed with status 200: ") && message.contains("Session terminated"),
            "{message}"
        );
    }
}

/// The server stores what it receives and answers 500 for some. Later writes of the run are the reason for a second look.
#[tokio::test]
async fn writes_with_an_effect_count_although_their_answer_is_an_error() {
    let server = ApiServer::start(&["/users"], |request: &Request, store| {
        let answer = request.rest(store, Ids::Stated("name"));
        let fails = request.is_write() && ["eva", "leo"].iter().any(|name| request.body["name"] == *name);
        if fails { Answer::json(500, &json!({"error": "the mail was not sent"})) } else { answer }
    });
    for name in ["ana", "eva"] {
        server.put(&format!("/users/{name}"), json!({"name": name, "age": 1}));
    }
    let world = declaring("resource: {id: /name, alias: /name}", r#"{"name": "ana", "age": 2}"#);
    for name in ["ben", "eva", "leo"] {
        world.declare(&format!("users/{name}/resource.json"), &json!({"name": name, "age": 2}).to_string());
    }
    let stats = world.sync_on(server.url(), &[]).await.stats;
    assert_eq!((stats.created, stats.updated, stats.unchanged, stats.failed), (2, 2, 0, 0), "{stats:?}");
}

/// Groups that a procedure creates. Its answer repeats the id of the request, which is that of another group.
#[rstest]
#[case::done(false)]
#[case::refused(true)]
#[tokio::test]
async fn the_id_of_a_remote_procedure_call_is_not_that_of_a_resource(#[case] refuses: bool) {
    let server = ApiServer::start(&["/groups"], move |request, store| {
        if !request.is("POST", "/rpc") {
            return request.rest(store, Ids::Given);
        }
        if refuses {
            return Answer::json(200, &json!({"id": request.body["id"], "error": ["no quota", ""]}));
        }
        let id = store.next_id();
        store.put(&format!("/groups/{id}"), json!({"id": id, "name": request.body["params"][0]["name"]}));
        Answer::json(200, &json!({"id": request.body["id"], "result": [id]}))
    });
    server.put("/groups/1", json!({"id": "1", "name": "ops"}));
    let metadata = r#"
resource: {id: /id, alias: /name}
operations: {create: {path: /rpc, transforms: [{jqExpression: '{id: "1", method: "create", params: [.]}'}]}}
"#;
    let files = [("groups/_/metadata.yaml", metadata), ("groups/dev/resource.json", r#"{"name": "dev"}"#)];
    let world = World::new(Config::default(), &files);
    let report = world.sync_on(server.url(), &[]).await;
    if refuses {
        let (_, message) = failure(&report);
        assert!(message.contains("failed with status 200: ") && message.contains("no quota"), "{message}");
        return;
    }
    assert_eq!((report.stats.created, report.stats.failed), (1, 0), "{report:?}");
    assert_eq!(server.writes(), ["POST /rpc 200"]);
}
