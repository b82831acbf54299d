//! Metadata whose alias is a text instead of a pointer.

use serde_json::json;

use crate::api_server::{ApiServer, Ids};
use crate::safety::Place;

fn shops(alias: &str) -> Place {
    let server = ApiServer::rest(&["/shops"], Ids::Given);
    for number in 10..80 {
        server.put(&format!("/shops/s{number}"), json!({"id": format!("s{number}"), "name": "rio"}));
    }
    let metadata = format!("resource: {{id: /id, alias: {alias}}}\n");
    let files = [("shops/_/metadata.yaml", &*metadata), ("shops/rio/resource.json", r#"{"name": "rio"}"#)];
    Place::new(server, &files)
}

#[test]
fn the_message_names_a_constant_alias() {
    let run = shops("name").run(&["plan", "/"]);
    assert_ne!(run.code, 0, "{run}");
    let message = "cannot determine whether /shops/rio exists: resource.alias is the constant \"name\", so all \
                   resources of the collection have the same alias; state an attribute, such as /name";
    assert!(run.stderr.contains(message), "{run}");
    assert!(run.stderr.contains("shops/_/metadata.yaml"), "{run}");
}

#[test]
fn a_long_list_of_ids_is_cut() {
    let run = shops("/name").run(&["plan", "/"]);
    assert!(run.stderr.contains("(ids: s10, s11, s12, s13, s14 and 65 more)"), "{run}");
}
