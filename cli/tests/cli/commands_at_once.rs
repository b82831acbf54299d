//! Commands that change one server at the same time.

use std::thread;
use std::time::Duration;

use crate::api_server::{ApiServer, Ids};
use crate::safety::Place;

#[test]
fn two_commands_at_once_create_a_resource_once() {
    let server = ApiServer::start(&["/shops"], |request, store| {
        let answer = request.rest(store, Ids::Given);
        if request.is_write() { answer } else { answer.after(Duration::from_secs(1)) }
    });
    let metadata = "resource: {id: /id, alias: /name}\n";
    let files = [("shops/_/metadata.yaml", metadata), ("shops/rio/resource.json", r#"{"name": "rio"}"#)];
    let place = Place::new(server, &files);
    let apply = || place.run(&["resource", "apply", "/", "-r"]);
    let runs = thread::scope(|scope| {
        let first = scope.spawn(apply);
        while place.server.log().is_empty() {
            thread::sleep(Duration::from_millis(10));
        }
        [first, scope.spawn(apply)].map(|command| command.join().unwrap())
    });
    assert!(runs.iter().all(|run| run.code == 0), "{} {}", runs[0], runs[1]);
    assert_eq!(place.server.writes(), ["POST /shops 201"]);
    let waits = format!("waiting for another command that changes {}", place.server.url());
    assert_eq!(runs.iter().filter(|run| run.stderr.contains(&waits)).count(), 1, "{} {}", runs[0], runs[1]);
}
