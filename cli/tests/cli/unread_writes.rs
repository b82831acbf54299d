//! `resource create`, `update` and `delete` write nothing if the answers to reads do not show which resource the server
//! has, for example because a gateway answers.

use rstest::rstest;
use serde_json::json;

use crate::api_server::{Answer, ApiServer, Ids};
use crate::safety::Place;

/// An answer to all reads of single issues, or of their list; `None` if the server answers itself.
type Reading = Option<fn() -> Answer>;

fn place(address: Reading, list: Reading) -> Place {
    let server = ApiServer::start(&["/issues"], move |request, store| {
        let reading = if request.path == "/issues" { list } else { address };
        match reading.filter(|_| request.method == "GET") {
            Some(answer) => answer(),
            None => request.rest(store, Ids::Given),
        }
    });
    server.put("/issues/7", json!({"id": "7", "subject": "T1", "state": "old"}));
    let files = [
        ("issues/_/metadata.yaml", "resource: {id: /id, alias: /subject}\n"),
        ("issues/T1/resource.json", r#"{"subject": "T1", "state": "new"}"#),
    ];
    Place::new(server, &files)
}

fn html() -> Answer {
    Answer::html(200)
}

fn rejected() -> Answer {
    Answer::json(400, &json!({"error": "bad request"}))
}

fn another() -> Answer {
    Answer::json(200, &json!({"id": "9", "subject": "T9"}))
}

fn two_arrays() -> Answer {
    Answer::json(200, &json!({"issues": [], "others": []}))
}

fn not_implemented() -> Answer {
    Answer::json(501, &json!({"error": "not implemented"}))
}

fn not_allowed() -> Answer {
    Answer::json(405, &json!({"error": "method not allowed"}))
}

#[rstest]
#[case::page(Some(html as fn() -> Answer), None)]
#[case::page_instead_of_the_list(None, Some(html as fn() -> Answer))]
#[case::rejected(Some(rejected as fn() -> Answer), Some(rejected as fn() -> Answer))]
#[case::rejected_list(None, Some(rejected as fn() -> Answer))]
#[case::not_a_list(None, Some(two_arrays as fn() -> Answer))]
#[case::another(Some(another as fn() -> Answer), Some(not_implemented as fn() -> Answer))]
fn nothing_is_written(
    #[case] address: Reading,
    #[case] list: Reading,
    #[values("create", "update", "delete")] command: &str,
) {
    let place = place(address, list);
    let yes: &[&str] = if command == "delete" { &["--yes"] } else { &[] };
    let run = place.run(&[&["resource", command, "/issues/T1"], yes].concat());
    assert_ne!(run.code, 0, "{run}");
    assert_eq!(place.server.writes(), [""; 0], "{run}");
}

/// The server has no requests that read issues.
#[rstest]
#[case::create("create", "POST /issues 201")]
#[case::delete("delete", "DELETE /issues/T1 404")]
fn a_server_without_reads_gets_the_write(
    #[case] command: &str,
    #[case] write: &str,
    #[values(not_allowed, not_implemented)] reading: fn() -> Answer,
) {
    let place = place(Some(reading), Some(reading));
    let yes: &[&str] = if command == "delete" { &["--yes"] } else { &[] };
    let run = place.run(&[&["resource", command, "/issues/T1"], yes].concat());
    assert_eq!(place.server.writes(), [write], "{run}");
}

/// The server reads issues by id only, and does not list them.
#[test]
fn a_server_without_lists_gets_the_create() {
    let place = place(None, Some(not_allowed));
    let run = place.run(&["resource", "create", "/issues/T1"]);
    assert_eq!((run.code, place.server.writes()), (0, vec!["POST /issues 201".to_owned()]), "{run}");
}

/// The list hides drafts, and the server shows the title in another form. A second create gets another name.
#[test]
fn a_created_resource_that_its_list_hides_is_not_created_again() {
    let server = ApiServer::start(&["/pages"], |request, store| {
        if request.is("GET", "/pages") {
            let published = store.members("/pages").into_iter().filter(|page| page["status"] != "draft");
            return Answer::json(200, &published.collect::<serde_json::Value>());
        }
        if request.method != "POST" {
            return request.rest(store, Ids::Given);
        }
        let id = store.next_id();
        let mut page = request.body.clone();
        page["title"]["rendered"] = json!("<p>Zoo</p>");
        page["id"] = json!(id);
        store.put(&format!("/pages/{id}"), page.clone());
        Answer::json(201, &page)
    });
    let payload = r#"{"slug": "zoo", "title": {"raw": "Zoo"}, "status": "draft"}"#;
    let metadata = "resource: {id: /id, alias: /slug}\noperations: {compare: {mode: declared}}\n";
    let files = [("pages/_/metadata.yaml", metadata), ("pages/zoo/resource.json", payload)];
    let place = Place::new(server, &files);
    for title in ["Zoo", "Zoo", "Animals"] {
        place.home.write("repo/pages/zoo/resource.json", &payload.replace("Zoo", title));
        let run = place.run(&["resource", "apply", "/", "-r"]);
        assert!(run.code != 0 && run.stderr.contains("created with the id n7, but "), "{run}");
    }
    assert_eq!(place.server.count("POST"), 1);
    // Another name declares another resource.
    place.home.write("repo/pages/zoo/resource.json", &payload.replace("zoo", "farm"));
    let run = place.run(&["resource", "apply", "/", "-r"]);
    assert_eq!(place.server.count("POST"), 2, "{run}");
}

/// Records must not contain secret ids.
#[test]
fn created_resources_with_secret_ids_that_their_list_hides_are_not_created_again() {
    let server = ApiServer::start(&["/keys"], |request, store| {
        if request.is("GET", "/keys") {
            Answer::json(200, &json!([]))
        } else {
            request.rest(store, Ids::Given)
        }
    });
    let mut files = vec![(
        "keys/_/metadata.yaml".to_owned(),
        "resource: {id: /id, alias: /name, secretAttributes: [/id]}".to_owned(),
    )];
    files.extend(
        ["a", "b", "c"]
            .map(|name| (format!("keys/{name}/resource.json"), format!(r#"{{"name": "{name}"}}"#))),
    );
    let files: Vec<_> = files.iter().map(|(file, text)| (file.as_str(), text.as_str())).collect();
    let place = Place::new(server, &files);
    for _ in 0..3 {
        let run = place.run(&["resource", "apply", "/", "-r"]);
        assert!(run.code != 0 && run.stderr.contains("3 of 3 resources failed"), "{run}");
    }
    assert_eq!(place.server.count("POST"), 3);
    // Only the user knows whether one was deleted on the server.
    let run = place.run(&["resource", "create", "/keys/a"]);
    assert_eq!((run.code, place.server.count("POST")), (0, 4), "{run}");
}

/// The server only accepts a create, and processes it later.
#[test]
fn an_accepted_create_may_still_be_processed() {
    let server = ApiServer::start(&["/pages"], |request, store| {
        if request.is("POST", "/pages") {
            Answer::json(202, &json!({"task": "t1"}))
        } else {
            request.rest(store, Ids::Given)
        }
    });
    let place = Place::new(server, &[("pages/zoo/resource.json", r#"{"name": "zoo"}"#)]);
    let run = place.run(&["resource", "apply", "/", "-r"]);
    let advice = "it may still process the create, so wait until its task has ended before the next run";
    assert!(run.code != 0 && run.stderr.contains(advice), "{run}");
}
