//! `hack/comment-plan`, which the GitHub Action and the template for GitLab run.

use std::process::Command;

use rstest::rstest;
use serde_json::{Value, json};

use crate::api_server::{Answer, ApiServer, Ids, Request, Store};
use crate::world::World;

const GITHUB: &str = "/repos/acme/shop/issues/7/comments";
const GITLAB: &str = "/projects/5/merge_requests/7/notes";
/// The user of the token of GitLab.
const BOT: &str = "project_5_bot";

/// The comments of both hosts. GitHub shows a comment at another path than its collection, and the token of a workflow may
/// not read its user.
fn host() -> ApiServer {
    ApiServer::start(&[GITHUB, GITLAB], |request, store| {
        let expected =
            if request.headers.contains_key("private-token") { "private-token" } else { "authorization" };
        if !request.headers.get(expected).is_some_and(|value| value.to_str().unwrap().contains("canary")) {
            return Answer::json(401, &json!({"message": "Bad credentials"}));
        }
        if request.is("GET", "/user") {
            let (status, user) = if expected == "private-token" { (200, BOT) } else { (403, "") };
            return Answer::json(status, &json!({"username": user}));
        }
        if request.method == "GET" {
            return page(request, store);
        }
        let mut request = request.clone();
        let (member, author) = match expected {
            "private-token" => ("author", json!({"username": BOT})),
            _ => ("user", json!({"type": "Bot"})),
        };
        request.body[member] = author;
        let path = request.path.replace("/issues/comments/", "/issues/7/comments/");
        Request { path, ..request }.rest(store, Ids::Given)
    })
}

/// One page of the list.
fn page(request: &Request, store: &Store) -> Answer {
    let number = |name: &str| request.query[name].parse::<usize>().unwrap();
    let (size, page) = (number("per_page"), number("page"));
    let comments: Vec<Value> = store.members(&request.path);
    Answer::json(200, &comments.into_iter().skip(size * (page - 1)).take(size).collect())
}

/// A repository that differs from the server.
fn shops() -> World {
    let world = World::new(&["/shops"], &[("shops/rio/resource.yaml", "id: rio\ntier: gold\n")]);
    world.live("/shops/rio", r#"{"id": "rio", "tier": "free"}"#);
    world
}

/// Runs the script as a workflow of GitHub or a job of GitLab does.
fn run(world: &World, host: &ApiServer, gitlab: bool) -> (i32, String) {
    world.home.write("event.json", r#"{"pull_request": {"number": 7}}"#);
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../hack/comment-plan");
    let mut command: Command = world.home.shell(&format!("exec '{script}' /"));
    command.envs([("DECLAREST_DIRECTORY", "repo"), ("DECLAREST_IGNORE_WARNINGS", "1")]);
    if gitlab {
        command.env("CI_API_V4_URL", host.url()).env("CI_PROJECT_ID", "5").env("CI_MERGE_REQUEST_IID", "7");
        command.env("DECLAREST_GITLAB_TOKEN", "canary");
    } else {
        command.env("GITHUB_API_URL", host.url()).env("GITHUB_REPOSITORY", "acme/shop");
        command.env("GITHUB_EVENT_PATH", world.home.path("event.json")).env("GITHUB_TOKEN", "canary");
        command.env("GITHUB_STEP_SUMMARY", world.home.path("summary.md"));
    }
    let output = command.output().unwrap();
    let printed = [output.stdout, output.stderr].concat();
    (output.status.code().unwrap(), world.home.shown(&String::from_utf8(printed).unwrap()))
}

#[rstest]
#[case::github(GITHUB, false, "PATCH")]
#[case::gitlab(GITLAB, true, "PUT")]
fn a_later_run_updates_the_comment(#[case] comments: &str, #[case] gitlab: bool, #[case] method: &str) {
    let (world, host) = (shops(), host());
    // Another user can change this comment after the review of the plan.
    let author = if gitlab { json!({"username": "mallory"}) } else { json!({"type": "User"}) };
    let forged = json!({"id": 1, "body": "<!-- declarest-plan -->\nno changes", if gitlab { "author" } else { "user" }: author});
    host.put(&format!("{comments}/1"), forged.clone());
    let (code, printed) = run(&world, &host, gitlab);
    assert_eq!(code, 0, "{printed}");
    assert!(printed.ends_with("created a comment\n") && !printed.contains("canary"), "{printed}");
    let written = host.get(&format!("{comments}/n7")).unwrap();
    let body = written["body"].as_str().unwrap();
    assert!(body.starts_with("<!-- declarest-plan -->\n"), "{body}");
    assert!(body.contains("/shops/rio") && body.contains("gold"), "{body}");
    // The next commit of the request.
    world.declare("shops/rio/resource.yaml", "id: rio\ntier: platinum\n");
    let (code, printed) = run(&world, &host, gitlab);
    assert_eq!(code, 0, "{printed}");
    assert!(printed.ends_with("updated the comment n7\n"), "{printed}");
    assert!(host.get(&format!("{comments}/n7")).unwrap()["body"].as_str().unwrap().contains("platinum"));
    assert_eq!(host.get(&format!("{comments}/1")), Some(forged));
    let writes: Vec<String> =
        host.log().iter().filter(|sent| sent.is_write()).map(|sent| sent.method.clone()).collect();
    assert_eq!(writes, ["POST", method]);
}

#[test]
fn the_comment_is_found_on_a_later_page() {
    let (world, host) = (shops(), host());
    for number in 100..250 {
        host.put(
            &format!("{GITHUB}/{number}"),
            json!({"id": number, "body": "hm", "user": {"type": "User"}}),
        );
    }
    let own = json!({"id": 300, "body": "<!-- declarest-plan -->\nold", "user": {"type": "Bot"}});
    host.put(&format!("{GITHUB}/300"), own);
    let (code, printed) = run(&world, &host, false);
    assert_eq!(code, 0, "{printed}");
    assert!(printed.ends_with("updated the comment 300\n"), "{printed}");
}

#[test]
fn an_invalid_tree_is_commented_and_fails() {
    let (world, host) = (shops(), host());
    world.declare("shops/oslo/resource.json", "{");
    let (code, printed) = run(&world, &host, false);
    assert_eq!(code, 2, "{printed}");
    let body = host.get(&format!("{GITHUB}/n7")).unwrap();
    let body = body["body"].as_str().unwrap();
    assert!(
        body.contains("### The desired state is invalid") && body.contains("oslo/resource.json"),
        "{body}"
    );
    assert_eq!(world.home.read("summary.md"), body);
}

#[test]
fn a_plan_that_fails_is_commented_and_fails() {
    let (mut world, host) = (shops(), host());
    world.server.stop();
    let (code, printed) = run(&world, &host, false);
    assert_eq!(code, 6, "{printed}");
    assert!(host.get(&format!("{GITHUB}/n7")).unwrap()["body"].as_str().unwrap().contains("```text"));
}

#[test]
fn secrets_are_not_commented() {
    let (world, host) = (shops(), host());
    world.declare("shops/_/metadata.yaml", "resource: {secretAttributes: [/pin]}\n");
    world.declare("shops/rio/resource.yaml", "id: rio\ntier: gold\npin: hush-hush\n");
    let (_, printed) = run(&world, &host, false);
    assert!(!printed.contains("hush-hush"), "{printed}");
    assert!(!host.get(&format!("{GITHUB}/n7")).unwrap().to_string().contains("hush-hush"));
}

#[test]
fn a_refused_comment_fails() {
    let (world, host) = (shops(), ApiServer::start(&[], |_, _| Answer::json(403, &json!({}))));
    let (code, printed) = run(&world, &host, false);
    assert_ne!(code, 0, "{printed}");
    assert!(printed.contains("403"), "{printed}");
}
