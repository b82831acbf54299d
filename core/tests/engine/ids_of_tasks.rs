//! Answers to creates whose id is not that of the created resource.

use std::sync::atomic::{AtomicUsize, Ordering};

use rstest::rstest;
use serde_json::json;

use crate::api_server::{Answer, ApiServer, Ids};
use crate::rest_server::Config;
use crate::world::World;

const METADATA: &str = "
resource: {id: /id, alias: /name}
operations: {compare: {mode: declared}}
";

/// An organisation and a team in it, on a server that gives the organisation the id `n7`, and has another one with the id 9.
async fn teams(status: u16, id: &'static str) -> ApiServer {
    let server = ApiServer::start(&["/orgs"], move |request, store| {
        if !request.is("POST", "/orgs") {
            if request.method == "POST" && !store.is_collection(&request.path) {
                return Answer::missing();
            }
            return request.rest(store, Ids::Given);
        }
        let name = &request.body["name"];
        store.put("/orgs/n7", json!({"id": "n7", "name": name}));
        Answer::json(status, &json!({"id": id, "name": name, "task": "create"}))
    });
    server.put("/orgs/9", json!({"id": "9", "name": "foreign"}));
    let world = World::new(Config::default(), &[]);
    world.declare("orgs/_/metadata.yaml", METADATA);
    world.declare("orgs/acme/resource.json", r#"{"name": "acme"}"#);
    world.declare("orgs/acme/teams/_/metadata.yaml", METADATA);
    world.declare("orgs/acme/teams/t/resource.json", r#"{"name": "t"}"#);
    world.sync_on(server.url(), &[]).await;
    server
}

/// 202 with the id of a task (RFC 9110, section 15.3.3), which is also that of another organisation. 201 with the id that
/// some languages give to objects that are not stored.
#[rstest]
#[case::task(202, "9")]
#[case::zero(201, "0")]
#[case::nil(201, "00000000-0000-0000-0000-000000000000")]
#[tokio::test]
async fn children_are_created_below_the_id_that_the_server_shows(
    #[case] status: u16,
    #[case] id: &'static str,
) {
    let server = teams(status, id).await;
    let creates: Vec<_> = server.writes().into_iter().filter(|write| write.contains("/teams")).collect();
    assert!(
        creates.iter().all(|create| create.starts_with("POST /orgs/n7/teams")) && !creates.is_empty(),
        "{creates:?}"
    );
    assert_eq!(server.count("POST"), 1 + creates.len());
}

/// The create is accepted, and done a moment later.
#[tokio::test]
async fn an_accepted_resource_is_waited_for() {
    let looks = AtomicUsize::new(0);
    let server = ApiServer::start(&["/orgs"], move |request, store| {
        if request.is("POST", "/orgs") {
            store.put("/orgs/n7", json!({"id": "n7", "name": request.body["name"]}));
            return Answer::json(202, &request.body);
        }
        let is_late = request.is("GET", "/orgs") && !store.members("/orgs").is_empty();
        if is_late && looks.fetch_add(1, Ordering::Relaxed) == 0 {
            return Answer::json(200, &json!([]));
        }
        request.rest(store, Ids::Given)
    });
    let world = World::new(Config::default(), &[]);
    world.declare("orgs/_/metadata.yaml", METADATA);
    world.declare("orgs/acme/resource.json", r#"{"name": "acme"}"#);
    let report = world.sync_on(server.url(), &[]).await;
    assert_eq!((report.stats.created, report.stats.failed), (1, 0), "{report:?}");
}
