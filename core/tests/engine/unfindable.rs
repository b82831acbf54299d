//! Resources whose names no run finds after the server has assigned an id. Each run would create another one.

use std::sync::Arc;
use std::time::Duration;

use declarest_core::path::LogicalPath;
use declarest_core::sync::{
    self, Knowledge, Options, Reading, Report, Selection, Session, Stop, WrittenValues,
};
use rstest::rstest;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::api_server::{Answer, ApiServer, Ids};
use crate::client::client;
use crate::rest_server::Config;
use crate::scene::Scene;
use crate::world::{World, failure};

/// A server that assigns ids and ignores names. Labels have the name `bug` in Git.
fn scene(metadata: &str, payload: &Value) -> Scene {
    let labels = || vec!["/labels".to_owned()];
    let config = Config { collections: labels(), server_ids: labels(), ..Config::default() };
    let mut scene = Scene::new(config);
    scene.write("labels/_/metadata.yaml", metadata);
    scene.declare("/labels/bug", payload);
    scene
}

/// The result of a run of a new process, which knows what is in `record`.
async fn run_of_a_process(world: &World, server: &ApiServer, record: &TempDir) -> Report {
    let written = Some(Arc::new(WrittenValues::open(record.path(), server.url().to_string())));
    let session = Session { client: client(server.url()), written, ..world.session() };
    let selection = Selection::full(session.tree.as_ref(), &LogicalPath::root(), true).unwrap();
    sync::run(&session, selection, &Options::default(), &Stop::default()).await
}

#[rstest]
#[case::only_an_id("resource: {id: /id}", json!({"name": "bug"}))]
#[case::no_usual_name("{}", json!({"color": "red"}))]
#[tokio::test]
async fn what_no_run_finds_is_created_once(#[case] metadata: &str, #[case] payload: Value) {
    let scene = scene(metadata, &payload);
    for _ in 0..2 {
        let report = scene.run(Reading::Each).await;
        assert_eq!((report.failures.len(), report.stats.created), (1, 0), "{report:?}");
        let message = &report.failures[0].message;
        assert!(message.contains("/labels/bug: created with the id"), "{message}");
        assert!(message.contains("resource.alias in labels/_/metadata.yaml"), "{message}");
    }
    assert_eq!(scene.server().resources().len(), 1);
}

/// Each run is one of a new process. After the resource is deleted on the server, it is created again.
#[rstest]
#[case::only_an_id("resource: {id: /id}", json!({"name": "bug"}))]
#[case::no_usual_name("{}", json!({"color": "red"}))]
#[case::another_id("{}", json!({"id": 900, "color": "red"}))]
#[tokio::test]
async fn later_processes_do_not_create_it_again(#[case] metadata: &str, #[case] payload: Value) {
    let server = ApiServer::rest(&["/labels"], Ids::Given);
    let world = World::new(Config::default(), &[("labels/_/metadata.yaml", metadata)]);
    world.declare("labels/bug/resource.json", &payload.to_string());
    let record = tempfile::tempdir().unwrap();
    let run = async || failure(&run_of_a_process(&world, &server, &record).await);
    let created = || server.paths();
    run().await;
    let [first] = &created()[..] else { panic!("{:?}", created()) };
    for _ in 0..2 {
        let (_, message) = run().await;
        assert!(message.contains("/labels/bug: created with the id"), "{message}");
        assert_eq!(created(), std::slice::from_ref(first));
    }
    server.remove(first);
    run().await;
    let again = created();
    assert_eq!(again.len(), 1, "{again:?}");
    assert_ne!(&again[0], first);
    // Another payload is another resource.
    world.declare("labels/bug/resource.json", r#"{"color": "blue"}"#);
    run().await;
    assert_eq!(created().len(), 2);
}

/// The server changes names that are in use, and adds attributes. Each run is one of a new process.
#[tokio::test]
async fn a_resource_that_the_server_renames_is_created_once() {
    let server = ApiServer::start(&["/posts"], |request, store| {
        let mut request = request.clone();
        if request.method == "POST" {
            let count = store.members("/posts").len() + 2;
            request.body["slug"] = json!(format!("{}-{count}", request.body["slug"].as_str().unwrap()));
            request.body["title"] = json!({"rendered": request.body["title"]});
        }
        request.rest(store, Ids::Given)
    });
    let world =
        World::new(Config::default(), &[("posts/_/metadata.yaml", "resource: {id: /id, alias: /slug}")]);
    world.declare("posts/embed/resource.json", r#"{"slug": "embed", "title": "E"}"#);
    let record = tempfile::tempdir().unwrap();
    let messages = [r#"answered 201 to the create, but shows the name "embed-2""#, "created with the id n"];
    for expected in messages {
        let report = run_of_a_process(&world, &server, &record).await;
        let (_, message) = failure(&report);
        assert!(message.contains(expected), "{message}");
        assert_eq!(server.paths().len(), 1);
    }
    // The correction that the message names.
    world.declare("posts/embed/resource.json", r#"{"slug": "embed-2", "title": {"rendered": "E"}}"#);
    let report = world.sync_on(server.url(), &[]).await;
    assert_eq!((report.stats.unchanged, server.paths().len()), (1, 1), "{report:?}");
}

/// Like Jupyter, the server chooses the name, and reads show more than the answer to the create. Each run is one of a new
/// process.
#[rstest]
#[case::location(true)]
#[case::body(false)]
#[tokio::test]
async fn a_resource_with_another_name_and_content_is_created_once(#[case] by_location: bool) {
    let server = ApiServer::start(&["/contents"], move |request, store| {
        if request.method != "POST" {
            return request.rest(store, Ids::Stated("name"));
        }
        let name = format!("untitled{}", store.members("/contents").len());
        let (file, content) =
            (json!({"name": name, "type": "file"}), json!({"content": "", "format": "text"}));
        let mut shown = file.clone();
        shown.as_object_mut().unwrap().extend(content.as_object().unwrap().clone());
        store.put(&format!("/contents/{name}"), shown);
        if by_location {
            return Answer::json(201, &json!({"name": name, "content": null, "format": null}))
                .header("location", &format!("/contents/{name}"));
        }
        Answer::json(201, &json!({"id": name, "name": name, "type": "file"}))
    });
    let world = World::new(Config::default(), &[]);
    let payload = r#"{"name": "hello.txt", "type": "file", "format": "text", "content": "hi"}"#;
    world.declare("contents/hello.txt/resource.json", payload);
    let record = tempfile::tempdir().unwrap();
    for expected in
        ["does not show the resource", "created with the id untitled0", "created with the id untitled0"]
    {
        let report = run_of_a_process(&world, &server, &record).await;
        let (_, message) = failure(&report);
        assert!(message.contains(expected), "{message}");
        assert_eq!(server.paths(), ["/contents/untitled0"]);
    }
}

/// The file has the name of the resource, and its payload another one, which the server changes in the update.
#[tokio::test]
async fn a_resource_that_an_update_renames_is_not_created() {
    let server = ApiServer::start(&["/posts"], |request, store| {
        let mut request = request.clone();
        if request.is_write() {
            let slug = request.body["slug"].as_str().unwrap().to_lowercase().replace(' ', "-");
            request.body["slug"] = json!(slug);
        }
        request.rest(store, Ids::Given)
    });
    server.put("/posts/7", json!({"id": "7", "slug": "match", "title": "M"}));
    let world =
        World::new(Config::default(), &[("posts/_/metadata.yaml", "resource: {id: /id, alias: /slug}")]);
    world.declare("posts/match/resource.json", r#"{"slug": "The Match", "title": "M"}"#);
    let record = tempfile::tempdir().unwrap();
    let run = async || run_of_a_process(&world, &server, &record).await;
    for expected in ["does not show the resource afterwards", "created with the id 7"] {
        let (_, message) = failure(&run().await);
        assert!(message.contains(expected), "{message}");
        assert_eq!(server.paths(), ["/posts/7"]);
    }
}

#[tokio::test]
async fn it_is_found_after_a_correction_of_metadata() {
    let mut scene = scene("resource: {id: /id}", &json!({"name": "bug"}));
    assert_eq!(scene.run(Reading::Each).await.failures.len(), 1);
    scene.write("labels/_/metadata.yaml", "resource: {id: /id, alias: /name}");
    let report = scene.run(Reading::Each).await;
    assert_eq!((report.failures.len(), report.stats.unchanged), (0, 1), "{report:?}");
}

/// The server shows the token once, in the answer to the create.
#[tokio::test]
async fn later_runs_do_not_show_an_id_that_is_a_secret() {
    let server = ApiServer::start(&["/tokens"], |request, store| match request.method.as_str() {
        "POST" => Answer::json(201, &json!({"id": "c4nary-7f3a91"})),
        _ => request.rest(store, Ids::Given),
    });
    let metadata = "resource: {id: /id, alias: /name, secretAttributes: [/id]}";
    let world = World::new(Config::default(), &[("tokens/_/metadata.yaml", metadata)]);
    world.declare("tokens/admin/resource.json", r#"{"name": "admin"}"#);
    // No run looks for the result of a create before this time has passed.
    let wait = Duration::from_secs(2);
    let session = Session { client: client(server.url()).with_attempt_timeout(wait), ..world.session() };
    for expected in ["does not show the resource", "/tokens/admin: created, but"] {
        let session = Session { secrets: world.session().secrets, ..session.clone() };
        let selection = Selection::full(session.tree.as_ref(), &LogicalPath::root(), true).unwrap();
        let report = sync::run(&session, selection, &Options::default(), &Stop::default()).await;
        let (_, message) = failure(&report);
        assert!(message.contains(expected) && !message.contains("c4nary"), "{message}");
        tokio::time::sleep(wait).await;
    }
}

/// The answer to the create is about a job, whose id is that of a thing of another client.
#[tokio::test]
async fn the_id_of_a_job_is_not_that_of_the_resource() {
    let server = ApiServer::start(&["/things"], |request, store| {
        if !request.is("POST", "/things") {
            return request.rest(store, Ids::Given);
        }
        store.put("/things/6", json!({"id": 6, "name": "ours"}));
        Answer::json(201, &json!({"job": "queued"})).header("location", "/jobs/5")
    });
    server.put("/things/5", json!({"id": 5, "name": "theirs", "tier": "free"}));
    let world = World::new(Config::default(), &[]);
    world.declare("things/ours/resource.json", r#"{"name":"ours","tier":"gold"}"#);
    let report = world.sync_on(server.url(), &[]).await;
    assert_eq!(server.get("/things/5").unwrap()["name"], "theirs", "{report:?}");
    assert_eq!((report.stats.created, report.stats.failed), (1, 0), "{report:?}");
    assert_eq!(server.get("/things/6").unwrap()["tier"], "gold", "{report:?}");
}

/// Nothing proves that the create has made the thing with this id, so a later process may repeat the create.
#[rstest]
#[case::job(201, "/jobs/5", json!({"job": "queued"}))]
#[case::other_id(201, "/things/web", json!({"id": 5}))]
#[case::accepted(202, "/things/5", json!({"name": "theirs", "tier": "free"}))]
#[case::one_member(201, "", json!({"id": 5, "tier": "free"}))]
#[case::another_value(201, "", json!({"id": 5, "name": "queued", "tier": "free"}))]
#[tokio::test]
async fn a_thing_of_another_client_is_not_recorded(
    #[case] status: u16,
    #[case] location: &'static str,
    #[case] body: Value,
) {
    let server = ApiServer::start(&["/things"], move |request, store| {
        if !request.is("POST", "/things") {
            return request.rest(store, Ids::Given);
        }
        let answer = Answer::json(status, &body);
        if location.is_empty() { answer } else { answer.header("location", location) }
    });
    server.put("/things/5", json!({"id": 5, "name": "theirs", "tier": "free"}));
    let world =
        World::new(Config::default(), &[("things/_/metadata.yaml", "resource: {id: /id, alias: /name}")]);
    world.declare("things/ours/resource.json", r#"{"name": "ours", "tier": "gold"}"#);
    let record = tempfile::tempdir().unwrap();
    for _ in 0..2 {
        let report = run_of_a_process(&world, &server, &record).await;
        assert!(!failure(&report).1.contains("created with the id"), "{report:?}");
    }
    assert_eq!(server.count("POST"), 2);
}

/// Nothing that the thing shows has the name of the file.
#[tokio::test]
async fn what_only_an_id_connects_with_a_create_is_not_updated() {
    let server = ApiServer::start(&["/things"], |request, store| {
        if request.is("POST", "/things") {
            return Answer::json(201, &json!({"job": "queued"})).header("location", "/jobs/5");
        }
        request.rest(store, Ids::Given)
    });
    server.put("/things/5", json!({"id": 5, "color": "red"}));
    let world = World::new(Config::default(), &[]);
    world.declare("things/ours/resource.json", r#"{"color":"blue"}"#);
    let (_, message) = failure(&world.sync_on(server.url(), &[]).await);
    assert!(message.contains("/things/ours"), "{message}");
    assert_eq!(server.get("/things/5"), Some(json!({"id": 5, "color": "red"})));
}

/// A server that creates labels and never shows them, such as a list with a wrong filter. A Secret is rotated between the
/// runs, or the policy gets another server.
#[rstest]
#[case::secret(true, 1)]
#[case::server(false, 2)]
#[tokio::test]
async fn what_no_read_shows_is_not_created_again_on_the_same_server(
    #[case] same_server: bool,
    #[case] creates: usize,
) {
    let server = ApiServer::start(&["/labels"], |request, store| match request.method.as_str() {
        "POST" => {
            request.create(store, Ids::Given);
            Answer::empty(201)
        }
        _ if request.path == "/labels" => Answer::json(200, &json!([])),
        _ => Answer::missing(),
    });
    let world =
        World::new(Config::default(), &[("labels/_/metadata.yaml", "resource: {id: /id, alias: /name}")]);
    world.declare("labels/bug/resource.json", r#"{"name": "bug"}"#);
    let mut knowledge = Arc::new(Knowledge::default());
    for _ in 0..2 {
        let client = client(server.url()).with_attempt_timeout(Duration::from_millis(500));
        let session = Session {
            client,
            knowledge: Arc::clone(&knowledge),
            list_delay: Duration::ZERO,
            ..world.session()
        };
        let selection = Selection::full(session.tree.as_ref(), &LogicalPath::root(), true).unwrap();
        failure(&sync::run(&session, selection, &Options::default(), &Stop::default()).await);
        tokio::time::sleep(session.client.attempt_timeout()).await;
        knowledge = Arc::new(knowledge.of_creates(same_server));
    }
    assert_eq!(server.count("POST"), creates);
}
