//! Resources whose id is a secret, such as API tokens: no output shows it.

use rstest::rstest;
use serde_json::{Value, json};

use crate::api_server::{Answer, ApiServer, Ids};
use crate::safety::Place;

const CANARY: &str = "*:*.canary-7f3a91";
const METADATA: &str = "resource: {id: /secret, alias: /tokenName, secretAttributes: [/secret]}\n";

/// Reads accept every id.
fn server(token: &Value) -> ApiServer {
    let shown = token.clone();
    let server = ApiServer::start(&["/tokens"], move |request, store| {
        let is_absent = store.get(&request.path).is_none() && request.path != "/tokens";
        if request.method == "GET" && is_absent {
            return Answer::json(200, &shown);
        }
        request.rest(store, Ids::Given)
    });
    server.put("/tokens/1", token.clone());
    server
}

/// A token, which `admin` declares with this secret.
fn tokens(declared: &str) -> Place {
    let server = server(&json!({"secret": CANARY, "tokenName": "admin"}));
    let admin = json!({"secret": declared, "tokenName": "admin"}).to_string();
    Place::new(server, &[("tokens/_/metadata.yaml", METADATA), ("tokens/admin/resource.json", &admin)])
}

#[rstest]
#[case::plan_json(&["plan", "/", "-o", "json"])]
#[case::plan_markdown(&["plan", "/", "-o", "markdown"])]
#[case::plan_text(&["plan", "/"])]
#[case::dry_run(&["resource", "apply", "/", "-r", "--dry-run", "-o", "json"])]
#[case::apply(&["resource", "apply", "/", "-r"])]
#[case::delete(&["resource", "delete", "/tokens/admin", "-y"])]
fn failures_do_not_show_an_id_that_is_a_secret(#[case] args: &[&str]) {
    let place = tokens("another-canary-20c1");
    let run = place.run(args);
    assert_ne!(run.code, 0, "{run}");
    assert!(run.stderr.contains("the payload states the id <redacted>, but"), "{run}");
    let shown = format!("{}{}", run.stdout, run.stderr);
    assert!(!shown.contains("canary"), "{shown}");
    assert!(place.server.writes().is_empty());
}

/// Two tokens have the name.
#[test]
fn ambiguous_names_do_not_show_ids_that_are_secrets() {
    let server = ApiServer::rest(&["/tokens"], Ids::Given);
    for secret in [CANARY, "canary-2"] {
        server.put(&format!("/tokens/{secret}"), json!({"secret": secret, "tokenName": "admin"}));
    }
    let admin = r#"{"tokenName": "admin"}"#;
    let place =
        Place::new(server, &[("tokens/_/metadata.yaml", METADATA), ("tokens/admin/resource.json", admin)]);
    let run = place.run(&["plan", "/", "-o", "json"]);
    assert!(run.stdout.contains("(ids: <redacted>, <redacted>)"), "{run}");
    assert!(!run.stdout.contains("canary"), "{run}");
}

/// The id is in the addresses of the requests.
#[rstest]
#[case::plan_json(&["plan", "/", "-o", "json"])]
#[case::plan_text(&["plan", "/", "-v"])]
#[case::plan_markdown(&["plan", "/", "-o", "markdown"])]
#[case::diff(&["resource", "diff", "/tokens/admin"])]
#[case::explain(&["resource", "explain", "/tokens/admin"])]
#[case::get(&["resource", "get", "/tokens/admin", "--source", "managed-server", "-v"])]
#[case::apply(&["resource", "apply", "/", "-r", "-vvv"])]
#[case::apply_json(&["resource", "apply", "/", "-r", "-o", "json"])]
#[case::delete(&["resource", "delete", "/tokens/admin", "-y", "-vvv"])]
fn requests_do_not_show_an_id_that_is_a_secret(#[case] args: &[&str]) {
    let server = ApiServer::rest(&["/tokens"], Ids::Given);
    server.put(&format!("/tokens/{CANARY}"), json!({"secret": CANARY, "tokenName": "admin", "note": "old"}));
    let admin = r#"{"tokenName": "admin", "note": "new"}"#;
    let place =
        Place::new(server, &[("tokens/_/metadata.yaml", METADATA), ("tokens/admin/resource.json", admin)]);
    let run = place.run(args);
    assert!([0, 1].contains(&run.code), "{run}");
    let shown = format!("{}{}", run.stdout, run.stderr);
    assert!(!shown.contains("canary"), "{shown}");
}

#[rstest]
#[case::text("text", "admin ({{secret .}})")]
#[case::wide("wide", "admin  {{secret .}}  /tokens/admin")]
fn lists_show_secret_ids_only_on_demand(#[case] format: &str, #[case] expected: &str) {
    let place = tokens(CANARY);
    let args = ["resource", "list", "/tokens", "-o", format];
    let run = place.run(&args);
    assert!(run.stdout.contains(expected) && !run.stdout.contains("canary"), "{run}");
    let run = place.run(&[&args[..], &["--show-secrets"]].concat());
    assert!(run.stdout.contains(CANARY), "{run}");
}

/// A message may contain the credential of the server.
#[test]
fn plans_do_not_show_the_credential_of_the_server() {
    let server = server(&json!({"id": "credential-31", "name": "main"}));
    let files = [
        ("tokens/_/metadata.yaml", "resource: {id: /id, alias: /name}\n"),
        ("tokens/main/resource.json", r#"{"id": "other", "name": "main"}"#),
    ];
    let place = Place::new(server, &files);
    let catalogue = place.home.read(".declarest/configs/contexts.yaml");
    place
        .home
        .write(".declarest/configs/contexts.yaml", &catalogue.replace("value: v", "value: credential-31"));
    for format in ["json", "markdown"] {
        let run = place.run(&["plan", "/", "-o", format]);
        assert!(run.stdout.contains("the payload states the id other"), "{run}");
        assert!(!run.stdout.contains("credential-31"), "{run}");
    }
}

/// Metadata does not declare the attribute, and Git does not state it.
#[rstest]
#[case::text(&["plan", "/", "-r"])]
#[case::json(&["plan", "/", "-r", "-o", "json"])]
#[case::markdown(&["plan", "/", "-r", "-o", "markdown"])]
#[case::diff(&["resource", "diff", "/", "-r"])]
#[case::patch(&["resource", "diff", "/shops/rio"])]
fn differences_do_not_show_what_is_probably_a_secret(#[case] args: &[&str]) {
    let server = ApiServer::rest(&["/shops"], Ids::Given);
    server.put("/shops/rio", json!({"id": "rio", "owner": {"token": CANARY, "name": "ana"}}));
    let place = Place::new(server, &[("shops/rio/resource.json", r#"{"id": "rio"}"#)]);
    let run = place.run(args);
    let shown = format!("{}{}", run.stdout, run.stderr);
    assert!(shown.contains("ana") || shown.contains("members"), "{run}");
    assert!(!shown.contains("canary"), "{run}");
}
