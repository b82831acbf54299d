//! Servers that assign ids, and ignore the id in the body of a create. No run finds what it created under the id in Git.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use declarest_core::path::LogicalPath;
use declarest_core::sync::{self, Options, Reading, Recurrences, Selection, Session, Stop, WrittenValues};
use rstest::rstest;
use serde_json::json;

use crate::api_server::{Answer, ApiServer, Ids};
use crate::client::client;
use crate::rest_server::Config;
use crate::world::{World, failure};

/// How long lists may be late.
const WAIT: Duration = Duration::from_secs(3);

/// A server that has this task, and assigns the ids of others.
fn tasks(id: &str, name: &str) -> ApiServer {
    let server = ApiServer::start(&["/tasks"], |request, store| {
        let mut request = request.clone();
        if request.is("POST", "/tasks") {
            request.body["id"] = json!(store.next_id().replace('n', "70"));
        }
        request.rest(store, Ids::Stated("id"))
    });
    server.put(&format!("/tasks/{id}"), json!({"id": id, "name": name}));
    server
}

fn declaring(files: &[(&str, &str)]) -> World {
    let world = World::new(Config::default(), &[]);
    for (name, payload) in files {
        world.declare(&format!("tasks/{name}/resource.json"), payload);
    }
    world
}

fn creates(server: &ApiServer) -> usize {
    server.count("POST")
}

/// The runs have no common knowledge, like commands and like the runs before and after a restart of the operator.
#[rstest]
#[tokio::test]
async fn it_is_created_once(
    #[values(Reading::Each, Reading::Bulk)] reading: Reading,
    #[values("{}", "resource: {id: /id, alias: /id}")] metadata: &str,
) {
    let server = tasks("501", "other");
    let world =
        declaring(&[("501", r#"{"id":"501","name":"other"}"#), ("999", r#"{"id":"999","name":"paint"}"#)]);
    world.declare("tasks/_/metadata.yaml", metadata);
    let options = Options { reading, ..Options::default() };
    let (_, message) = failure(&world.sync_with(server.url(), &[], &options).await);
    assert!(message.contains("it assigned the id 707 instead of that in the file"), "{message}");
    for _ in 0..2 {
        let (_, message) = failure(&world.sync_with(server.url(), &[], &options).await);
        let expected = "the payload states the id 999, and the list of its collection shows an undeclared resource \
                        with the same name and the id 707";
        assert!(message.contains(expected), "{message}");
    }
    assert_eq!(creates(&server), 1);
}

#[rstest]
#[case::another_name("501", "cut", r#"{"id":"999","name":"paint"}"#)]
#[case::an_id_that_a_client_chose("first", "paint", r#"{"id":"999","name":"paint"}"#)]
#[case::a_name_as_id("501", "paint", r#"{"id":"second","name":"paint"}"#)]
#[tokio::test]
async fn a_resource_that_is_another_one_does_not_matter(
    #[case] id: &str,
    #[case] name: &str,
    #[case] payload: &str,
) {
    let server = ApiServer::start(&["/tasks"], |request, store| request.rest(store, Ids::Stated("id")));
    server.put(&format!("/tasks/{id}"), json!({"id": id, "name": name}));
    let report = declaring(&[("new", payload)]).sync_on(server.url(), &[]).await;
    assert_eq!((report.stats.created, report.stats.failed), (1, 0), "{report:?}");
}

#[tokio::test]
async fn two_declared_resources_may_have_one_name() {
    let server = ApiServer::start(&["/tasks"], |request, store| request.rest(store, Ids::Stated("id")));
    server.put("/tasks/501", json!({"id": "501", "name": "paint"}));
    let world =
        declaring(&[("501", r#"{"id":"501","name":"paint"}"#), ("999", r#"{"id":"999","name":"paint"}"#)]);
    let report = world.sync_on(server.url(), &[]).await;
    assert_eq!((report.stats.created, report.stats.failed), (1, 0), "{report:?}");
}

#[rstest]
#[case::number("999")]
#[case::uuid("6f1c2b9e-4d0a-4a7e-9a52-0b6f4f2d8c11")]
#[tokio::test]
async fn a_create_without_the_id_that_names_the_resource_is_not_sent(#[case] id: &str) {
    let server = tasks("501", "other");
    let world = declaring(&[("new", &json!({"id": id, "name": "paint"}).to_string())]);
    let metadata = "resource: {id: /id, alias: '{{/id}}'}\n\
                    operations: {create: {transforms: [{excludeAttributes: [/id]}]}}";
    world.declare("tasks/_/metadata.yaml", metadata);
    let (reason, message) = failure(&world.sync_on(server.url(), &[]).await);
    assert_eq!(reason, "ValidationError");
    assert!(message.contains(&format!("the create does not contain the id {id}")), "{message}");
    assert!(message.contains("state resource.alias in tasks/_/metadata.yaml"), "{message}");
    assert_eq!(creates(&server), 0);
}

/// The server makes the id of the name.
#[tokio::test]
async fn a_create_may_leave_out_an_id_that_is_a_name() {
    let server = ApiServer::start(&["/tasks"], |request, store| match request.method.as_str() {
        "POST" => {
            let mut request = request.clone();
            request.body["id"] = json!(request.body["name"].as_str().unwrap().to_lowercase());
            request.rest(store, Ids::Stated("id"))
        }
        _ => request.rest(store, Ids::Stated("id")),
    });
    let world = declaring(&[("paint", r#"{"id":"paint","name":"Paint"}"#)]);
    let metadata = "resource: {id: /id, alias: '{{/id}}'}\n\
                    operations: {create: {transforms: [{excludeAttributes: [/id]}]}}";
    world.declare("tasks/_/metadata.yaml", metadata);
    let report = world.sync_on(server.url(), &[]).await;
    assert_eq!((report.stats.created, report.stats.failed), (1, 0), "{report:?}");
}

/// A list that shows no tasks, as with a wrong filter in metadata. The server assigns ids.
#[tokio::test]
async fn a_list_that_does_not_show_a_created_resource_proves_nothing() {
    let hides = Arc::new(AtomicBool::new(true));
    let hidden = Arc::clone(&hides);
    let server = ApiServer::start(&["/tasks"], move |request, store| {
        if request.is("GET", "/tasks") && hidden.load(Ordering::Relaxed) {
            return Answer::json(200, &json!([]));
        }
        request.rest(store, Ids::Given)
    });
    let world = declaring(&[("cut", r#"{"name":"cut"}"#)]);
    world.declare("tasks/_/metadata.yaml", "resource: {id: /id, alias: /name}");
    let session = Session { client: client(server.url()), list_delay: WAIT, ..world.session() };
    let run = async |recurrences: Option<Arc<Recurrences>>| {
        let selection = Selection::full(session.tree.as_ref(), &LogicalPath::root(), true).unwrap();
        let options = Options { recurrences, ..Options::default() };
        sync::run(&session, selection, &options, &Stop::default()).await
    };
    // A command.
    let report = run(None).await;
    assert_eq!((report.stats.created, report.stats.failed), (0, 1), "{report:?}");
    let (_, message) = failure(&report);
    assert!(
        message.contains("created with the id n7, but the list of its collection does not show it"),
        "{message}"
    );
    // Runs of the operator.
    tokio::time::sleep(WAIT).await;
    for _ in 0..2 {
        let (_, message) = failure(&run(Some(Arc::default())).await);
        assert!(
            message.contains("does not show /tasks/cut, which an earlier run created with the id n7"),
            "{message}"
        );
    }
    assert_eq!(creates(&server), 1);
    hides.store(false, Ordering::Relaxed);
    assert_eq!(run(Some(Arc::default())).await.stats.unchanged, 1);
}

/// Only the first look at the list after a create does not find the resource.
#[tokio::test]
async fn a_list_may_show_a_created_resource_late() {
    let looks = AtomicUsize::new(0);
    let server = ApiServer::start(&["/tasks"], move |request, store| {
        let is_late = request.is("GET", "/tasks") && !store.members("/tasks").is_empty();
        if is_late && looks.fetch_add(1, Ordering::Relaxed) == 0 {
            return Answer::json(200, &json!([]));
        }
        request.rest(store, Ids::Given)
    });
    let world = declaring(&[("cut", r#"{"name":"cut"}"#)]);
    world.declare("tasks/_/metadata.yaml", "resource: {id: /id, alias: /name}");
    let report = world.sync_on(server.url(), &[]).await;
    assert_eq!((report.stats.created, report.stats.failed), (1, 0), "{report:?}");
}

/// Not at once, because some servers show new resources late.
#[tokio::test]
async fn a_created_resource_that_is_deleted_by_hand_is_created_again() {
    let server = ApiServer::rest(&["/tasks"], Ids::Given);
    let world = declaring(&[("cut", r#"{"name":"cut"}"#)]);
    world.declare("tasks/_/metadata.yaml", "resource: {id: /id, alias: /name}");
    let session = Session { client: client(server.url()), list_delay: WAIT, ..world.session() };
    for created in [1, 0, 1] {
        let selection = Selection::full(session.tree.as_ref(), &LogicalPath::root(), true).unwrap();
        let options = Options { recurrences: Some(Arc::default()), ..Options::default() };
        let report = sync::run(&session, selection, &options, &Stop::default()).await;
        assert_eq!((report.stats.created, report.stats.failed), (created, 1 - created), "{report:?}");
        if created == 1 {
            server.remove(&server.paths()[0]);
        } else {
            tokio::time::sleep(WAIT).await;
        }
    }
}

/// The operator starts again after the runs that noticed that the list does not show the resource.
#[rstest]
#[case::plain("", &[r#"{"name": "cut"}"#])]
#[case::secret("", &[r#"{"name": "cut", "pin": "{{secret .}}"}"#])]
#[case::wholly_secret(", secret: true", &[r#""{{secret .}}""#])]
#[case::secret_ids(", secretAttributes: [/id]", &[r#"{"name": "cut"}"#, r#"{"name": "dig"}"#, r#"{"name": "eat"}"#])]
#[tokio::test]
async fn a_resource_that_its_list_hides_is_not_created_again_after_a_restart(
    #[case] metadata: &str,
    #[case] payloads: &[&str],
) {
    let server = ApiServer::start(&["/tasks"], |request, store| {
        if request.is("GET", "/tasks") {
            Answer::json(200, &json!([]))
        } else {
            request.rest(store, Ids::Given)
        }
    });
    let secrets = [("tasks/cut:/pin", "canary"), ("tasks/cut:.", r#"{"name": "cut", "pin": "canary"}"#)];
    let resources: Vec<_> = ["cut", "dig", "eat"].into_iter().zip(payloads.iter().copied()).collect();
    let world = declaring(&resources).with_secrets(&secrets).await;
    world.declare("tasks/_/metadata.yaml", &format!("resource: {{id: /id, alias: /name{metadata}}}"));
    let pause = Duration::from_millis(200);
    let record = tempfile::tempdir().unwrap();
    for (process, created) in [payloads.len(), 0, 0, 0].into_iter().enumerate() {
        // The server shows that the created resource still exists, unless the record must not contain its id.
        if process == 3 && !metadata.contains("secret") {
            world.declare("tasks/cut/resource.json", r#"{"name": "cut", "color": "red"}"#);
        }
        // A process of its own, which makes two runs.
        let written = Some(Arc::new(WrittenValues::open(record.path(), server.url().to_owned())));
        let client = client(server.url());
        let session = Session { client, written, list_delay: pause, ..world.session() };
        for run in 0..2 {
            let selection = Selection::full(session.tree.as_ref(), &LogicalPath::root(), true).unwrap();
            let options = Options { recurrences: Some(Arc::default()), ..Options::default() };
            let report = sync::run(&session, selection, &options, &Stop::default()).await;
            assert_eq!(report.stats.created, if run == 0 { created } else { 0 }, "{report:?}");
            tokio::time::sleep(pause).await;
        }
    }
    assert_eq!(creates(&server), payloads.len());
    let recorded = std::fs::read_to_string(record.path().join("written.json")).unwrap();
    assert_eq!(recorded.contains(r#""id":"n"#), !metadata.contains("secret"), "{recorded}");
    assert!(!recorded.contains("canary"), "{recorded}");
}

/// The list shows the created resource until it is deleted by hand.
#[rstest]
#[case::no_content("")]
#[case::empty("{}")]
#[tokio::test]
async fn an_answer_without_content_at_a_recorded_id_does_not_prevent_a_create(#[case] missing: &'static str) {
    let is_hidden = Arc::new(AtomicBool::new(true));
    let hidden = Arc::clone(&is_hidden);
    let server = ApiServer::start(&["/tasks"], move |request, store| {
        if request.is("GET", "/tasks") && hidden.load(Ordering::Relaxed) {
            return Answer::json(200, &json!([]));
        }
        let has_none = request.method == "GET" && store.get(&request.path).is_none();
        if has_none && request.path.starts_with("/tasks/n") {
            return if missing.is_empty() { Answer::empty(204) } else { Answer::json(200, &json!({})) };
        }
        request.rest(store, Ids::Given)
    });
    let world = declaring(&[("cut", r#"{"name":"cut"}"#)]);
    world.declare("tasks/_/metadata.yaml", "resource: {id: /id, alias: /name}");
    let record = tempfile::tempdir().unwrap();
    let run = || async {
        let written = Some(Arc::new(WrittenValues::open(record.path(), server.url().to_owned())));
        let session =
            Session { client: client(server.url()), written, list_delay: Duration::ZERO, ..world.session() };
        let selection = Selection::full(session.tree.as_ref(), &LogicalPath::root(), true).unwrap();
        sync::run(&session, selection, &Options::default(), &Stop::default()).await
    };
    run().await;
    assert_eq!((run().await.stats.failed, creates(&server)), (1, 1));
    is_hidden.store(false, Ordering::Relaxed);
    server.remove(&server.paths()[0]);
    let report = run().await;
    assert_eq!((report.stats.created, report.stats.failed), (1, 0), "{report:?}");
}
