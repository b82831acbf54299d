//! Servers that redirect from the former name of what was renamed, or moved to another owner, as Gitea does. A new
//! resource may have the former name, so the resource behind the redirect is not the declared one.

use rstest::rstest;
use serde_json::{Value, json};

use crate::api_server::{Answer, ApiServer, Ids};
use crate::safety::Place;

const ROOT: &str = "operations: {compare: {mode: declared}, list: {pagination: {style: none}}}\n";
const BY_LOGIN: &str = "resource: {id: /login, alias: /login}\n";
const OF_OWNER: &str = "resource: {id: /name, alias: /name}\n\
    operations:\n  get: {path: '/repos/{{/org}}/{{/name}}'}\n  update: {path: '/repos/{{/org}}/{{/name}}'}\n  \
    delete: {path: '/repos/{{/org}}/{{/name}}'}\n";
const MEMBERS: &str =
    "resource: {id: /login, alias: /login}\noperations: {create: {method: PUT, path: './{{/login}}'}}\n";

/// A server that redirects from paths below the keys of `former`, unless there is a resource. It has the resources at
/// `paths`, each of which shows its name as `id`, `login` and `name`.
fn redirecting(former: &'static [(&str, &str)], paths: &[&str]) -> ApiServer {
    let collections = ["/users", "/orgs", "/orgs/*/members", "/orgs/*/teams"];
    let server = ApiServer::start(&collections, move |request, store| {
        for (from, to) in former {
            let rest =
                request.path.strip_prefix(from).filter(|rest| rest.is_empty() || rest.starts_with('/'));
            if let Some(rest) = rest.filter(|_| store.get(from).is_none()) {
                return Answer::empty(307).header("location", &format!("{to}{rest}"));
            }
        }
        match request.segments()[..] {
            ["orgs", owner, "repos"] if request.method == "GET" => {
                Answer::json(200, &Value::Array(store.members(&format!("/repos/{owner}"))))
            }
            ["orgs", _, "members", _] if request.method == "PUT" => {
                store.put(&request.path, request.body.clone());
                Answer::json(201, &request.body)
            }
            _ => request.rest(store, Ids::Stated("login")),
        }
    });
    for path in paths {
        let name = path.rsplit('/').next();
        server.put(path, json!({"id": name, "login": name, "name": name}));
    }
    server
}

#[rstest]
#[case::renamed(&[("/users/ana", "/users/bob")], &["/users/bob"], "/users/ana", "redirects to /users/bob")]
#[case::moved(
    &[("/repos/acme/site", "/repos/other/site")],
    &["/orgs/acme", "/repos/other/site"],
    "/orgs/acme/repos/site",
    "redirects to /repos/other/site"
)]
#[case::parent_renamed(
    &[("/repos/acme", "/repos/other"), ("/orgs/acme", "/orgs/other")],
    &["/orgs/other", "/repos/other/site"],
    "/orgs/acme/repos/site",
    "redirects to /repos/other/site"
)]
fn the_resource_behind_a_redirect_is_another_one(
    #[case] former: &'static [(&str, &str)],
    #[case] paths: &[&str],
    #[case] declared: &str,
    #[case] reason: &str,
) {
    let name = declared.rsplit('/').next();
    let file = format!("{}/resource.json", declared.trim_start_matches('/'));
    let payload = json!({"login": name, "name": name, "tier": "gold"}).to_string();
    let files = [
        ("_/metadata.yaml", ROOT),
        ("users/_/metadata.yaml", BY_LOGIN),
        ("orgs/_/metadata.yaml", BY_LOGIN),
        ("orgs/_/repos/_/metadata.yaml", OF_OWNER),
        (&file, &payload),
    ];
    let place = Place::new(redirecting(former, paths), &files);
    for command in [
        &["resource", "apply", "/", "-r"][..],
        &["resource", "delete", declared, "--yes"],
        &["resource", "diff", "/", "-r"],
    ] {
        let run = place.run(command);
        assert_eq!(run.code, 5, "{run}");
        assert!(run.stderr.contains(reason), "{run}");
        assert_eq!(place.server.writes(), Vec::<String>::new());
    }
}

#[test]
fn a_request_is_not_sent_to_another_name() {
    let place = Place::new(
        redirecting(&[("/users/ana", "/users/bob")], &["/users/bob"]),
        &[("_/metadata.yaml", ROOT)],
    );
    for method in ["put", "patch"] {
        let run = place.run(&["resource", "request", method, "/users/ana", "-f", r#"{"tier": "gold"}"#]);
        assert!(run.code != 0 && run.stderr.contains("which replaces \"ana\""), "{run}");
    }
    assert!(place.server.writes().iter().all(|write| write.ends_with("/users/ana 307")));
    assert_eq!(place.run(&["resource", "request", "get", "/users/ana"]).code, 0);
}

/// The id of a team is in the list of its organisation, which was renamed.
#[test]
fn the_id_of_a_parent_is_not_taken_from_another_list() {
    let files = [
        ("_/metadata.yaml", ROOT),
        ("orgs/_/metadata.yaml", BY_LOGIN),
        ("orgs/_/teams/_/metadata.yaml", "resource: {id: /id, alias: /name}\n"),
        (
            "orgs/_/teams/_/members/_/metadata.yaml",
            "resource: {remoteCollectionPath: '/teams/{{/ids/team}}/members'}\n\
             operations: {create: {method: PUT, path: './{{/id}}'}}\n",
        ),
        ("orgs/acme/teams/devs/members/ana/resource.json", r#"{"id": "ana"}"#),
    ];
    let server = redirecting(&[("/orgs/acme", "/orgs/other")], &["/orgs/other", "/orgs/other/teams/devs"]);
    let place = Place::new(server, &files);
    let run = place.run(&["resource", "apply", "/", "-r"]);
    assert_eq!(run.code, 5, "{run}");
    assert!(run.stderr.contains("redirects to /orgs/other/teams"), "{run}");
    assert_eq!(place.server.writes(), Vec::<String>::new());
}

/// A create below a parent that was renamed must not create a member of the other one.
#[test]
fn no_write_is_redirected_to_another_name() {
    let files = [
        ("_/metadata.yaml", ROOT),
        ("orgs/_/metadata.yaml", BY_LOGIN),
        ("orgs/_/members/_/metadata.yaml", MEMBERS),
        ("orgs/acme/members/ana/resource.json", r#"{"login": "ana"}"#),
    ];
    let place = Place::new(redirecting(&[("/orgs/acme", "/orgs/other")], &["/orgs/other"]), &files);
    let run = place.run(&["resource", "apply", "/", "-r"]);
    assert_ne!(run.code, 0, "{run}");
    assert!(run.stderr.contains("which replaces \"acme\", and is not followed for a write"), "{run}");
    assert_eq!(place.server.get("/orgs/other/members/ana"), None);
}

#[rstest]
#[case::to_an_id("/users/ana", "/users/17")]
#[case::to_another_version("/users", "/v2/users")]
fn other_redirects_are_followed(#[case] from: &'static str, #[case] to: &'static str) {
    let server = ApiServer::start(&["/users", "/v2/users"], move |request, store| {
        match request.path.strip_prefix(from) {
            Some(rest) => Answer::empty(308).header("location", &format!("{to}{rest}")),
            None => request.rest(store, Ids::Stated("login")),
        }
    });
    let path = if to == "/users/17" { to } else { "/v2/users/17" };
    server.put(path, json!({"id": 17, "login": "ana"}));
    let files = [
        ("_/metadata.yaml", ROOT),
        (
            "users/_/metadata.yaml",
            "resource: {id: /id, alias: /login}\noperations: {update: {path: './{{/id}}'}}\n",
        ),
        ("users/ana/resource.json", r#"{"login": "ana", "tier": "gold"}"#),
    ];
    let place = Place::new(server, &files);
    let run = place.run(&["resource", "apply", "/", "-r"]);
    assert_eq!(run.code, 0, "{run}");
    assert_eq!(place.server.get(path), Some(json!({"login": "ana", "tier": "gold"})));
}
