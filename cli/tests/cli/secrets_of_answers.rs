//! Declared secrets in answers of the server, on their way into files.

use rstest::rstest;
use serde_json::json;

use crate::api_server::{Answer, ApiServer, Ids, Request, Store};
use crate::safety::Place;
use crate::terminal::Terminal;
use crate::world::World;

const PIN: &str = "resource: {secretAttributes: [/pin]}";

/// A server whose answers have this media type, and whose lists are in an envelope if it `wraps` them.
fn apps(media_type: &'static str, wraps: bool) -> ApiServer {
    let answer = move |request: &Request, store: &mut Store| {
        let shown = match store.get(&request.path) {
            Some(app) => Some(app.clone()),
            None if store.is_collection(&request.path) => {
                let apps = store.members(&request.path);
                Some(if wraps { json!({"items": apps, "total": apps.len()}) } else { json!(apps) })
            }
            None => None,
        };
        match shown {
            Some(shown) if request.method == "GET" => Answer::text(200, media_type, &shown.to_string()),
            _ => request.rest(store, Ids::Stated("id")),
        }
    };
    let server = ApiServer::start(&["/apps"], answer);
    server.put("/apps/a", json!({"id": "a", "pin": "canary-7"}));
    server.put("/apps/b", json!({"id": "b", "pin": "canary-8"}));
    server
}

#[rstest]
#[case::single(&["save", "/apps", "--mode", "single"], "/apps is a list, and metadata declares secrets in its items")]
#[case::copy(&["copy", "/apps", "/others"], "/apps is a collection; give the path of a resource in it")]
#[case::copy_of_one(&["copy", "/apps/a", "/others/a"], "state /pin in resource.secretAttributes in others/_/metadata.yaml")]
#[case::edit(&["edit", "/apps", "--editor", "true"], "/apps is a collection")]
fn are_not_written_to_files_of_other_resources(
    #[case] args: &[&str],
    #[case] message: &str,
    #[values(true, false)] wraps: bool,
) {
    let place = Place::new(apps("application/json", wraps), &[("apps/_/metadata.yaml", PIN)]);
    let run = place.run(&[&["resource"], args].concat());
    assert_eq!(run.code, 2, "{run}");
    assert!(run.stderr.contains(message) && !run.stderr.contains("canary"), "{run}");
    assert!(!place.has("apps/resource.json") && !place.has("others"), "{run}");
}

/// No format has this media type.
#[rstest]
#[case("text/json")]
#[case("application/vnd.acme.v1")]
fn are_masked_whatever_the_media_type_is(#[case] media_type: &'static str) {
    let place = Place::new(apps(media_type, false), &[("apps/_/metadata.yaml", PIN)]);
    for args in [&["resource", "get", "/apps/a"][..], &["resource", "get", "/apps/"]] {
        let run = place.run(args);
        assert!(run.code == 0 && !run.to_string().contains("canary"), "{run}");
        assert!(run.stdout.contains("{{secret .}}"), "{run}");
    }
    let saved = place.run(&["resource", "save", "/apps/a"]);
    assert_eq!(saved.code, 0, "{saved}");
    let file = std::fs::read_to_string(place.home.path("repo/apps/a/resource.json")).unwrap();
    assert!(file.contains("{{secret .}}") && !file.contains("canary"), "{file}");
}

/// Metadata declares an attribute, or the whole resource.
#[rstest]
#[case::attribute(PIN)]
#[case::whole("resource: {secret: true}")]
fn are_not_in_the_file_of_an_editor(#[case] metadata: &str) {
    let world = World::with_store(&["/apps"], &[("apps/_/metadata.yaml", metadata)]);
    world.live("/apps/a", r#"{"id": "a", "pin": "canary-7", "tier": "free"}"#);
    world.home.write("editor.sh", "cp \"$1\" \"$HOME/seen\"; sed -i s/free/gold/ \"$1\"\n");
    let editor = format!("sh {}", world.home.path("editor.sh").display());
    let path = std::env::var("PATH").unwrap();
    let args = ["resource", "edit", "/apps/a", "--editor", &editor];
    let edit = || Terminal::start(world.home.command(&args, &[("PATH", &path)])).end();
    let (code, shown) = edit();
    assert!(code == 2 && shown.contains("save it with \"resource save\", then edit it"), "{shown}");
    assert!(!world.home.path("seen").exists());
    let saved = world.run(&["resource", "save", "/apps/a"]);
    assert_eq!(saved.code, 0, "{saved}");
    let (code, shown) = edit();
    assert_eq!(code, 0, "{shown}");
    let seen = std::fs::read_to_string(world.home.path("seen")).unwrap();
    assert!(seen.contains("{{secret .}}") && !seen.contains("canary"), "{seen}");
}

/// The file of a text that is a secret as a whole holds only a placeholder.
#[test]
fn are_not_emptied_by_an_editor() {
    let files = [
        ("apps/_/metadata.yaml", "resource: {secret: true, format: text}"),
        ("apps/a/resource.txt", "{{secret .}}"),
    ];
    let world = World::with_store(&["/apps"], &files);
    assert_eq!(world.run(&["secret", "set", "/apps/a", ".", "canary-7"]).code, 0);
    world.home.write("editor.sh", ": > \"$1\"\n");
    let editor = format!("sh {}", world.home.path("editor.sh").display());
    let path = std::env::var("PATH").unwrap();
    let args = ["resource", "edit", "/apps/a", "--editor", &editor];
    let (code, shown) = Terminal::start(world.home.command(&args, &[("PATH", &path)])).end();
    assert!(code == 2 && shown.contains("is empty after editing"), "{shown}");
    assert_eq!(world.run(&["secret", "get", "/apps/a", "."]).stdout.trim(), "canary-7");
}

/// The list is in an object without a member `items`.
#[rstest]
#[case::single(&["save", "/apps", "--mode", "single"])]
#[case::auto(&["save", "/apps"])]
#[case::copy(&["copy", "/apps", "/others"])]
#[case::edit(&["edit", "/apps", "--editor", "true"])]
fn are_not_written_from_another_envelope(#[case] args: &[&str]) {
    let server = ApiServer::start(&["/apps"], |request, store| {
        if request.is("GET", "/apps") {
            Answer::json(200, &json!({"data": store.members("/apps"), "total": 1}))
        } else {
            request.rest(store, Ids::Stated("id"))
        }
    });
    server.put("/apps/a", json!({"id": "a", "pin": "canary-7"}));
    let place = Place::new(server, &[("apps/_/metadata.yaml", PIN)]);
    let run = place.run(&[&["resource"], args].concat());
    assert_eq!(run.code, 2, "{run}");
    assert!(!place.has("apps/resource.json") && !place.has("others"), "{run}");
    let saved = place.run(&["resource", "save", "/apps/"]);
    let file = std::fs::read_to_string(place.home.path("repo/apps/a/resource.json")).unwrap();
    assert!(saved.code == 0 && file.contains("{{secret .}}"), "{saved}\n{file}");
}

/// The resource has a list of its own, whose items metadata of all collections describes.
#[test]
fn of_a_part_do_not_make_a_resource_a_list() {
    let files = [("_/metadata.yaml", "resource: {secretAttributes: [/token]}")];
    let world = World::with_store(&["/orders"], &files);
    world.live("/orders/7", r#"{"id": "7", "items": [{"name": "a", "token": "plain-1"}]}"#);
    let run = world.run(&["resource", "save", "/orders/7", "--allow-plaintext"]);
    assert!(run.code == 0 && world.declared("orders/7/resource.json").is_some(), "{run}");
    let run = world.run(&["resource", "save", "/orders/7", "--force"]);
    assert!(!run.stderr.contains("is a list"), "{run}");
}

/// Only metadata of its name declares the secret, and the path has its id.
#[rstest]
#[case::copy(&["copy", "/apps/7", "/others/7"])]
#[case::edit(&["edit", "/apps/7", "--editor", "true"])]
#[case::save(&["save", "/apps/7"])]
fn of_a_name_count_at_the_id(#[case] args: &[&str]) {
    let names = ("apps/_/metadata.yaml", "resource: {id: /id, alias: /name}");
    let world = World::with_store(&["/apps"], &[names, ("apps/acme/metadata.yaml", PIN)]);
    world.live("/apps/7", r#"{"id": "7", "name": "acme", "pin": "canary-7"}"#);
    let run = world.run(&[&["resource"], args].concat());
    assert!(run.code == 2 && run.stderr.contains("secrets") && !run.stderr.contains("canary"), "{run}");
    assert_eq!(world.declared("apps/7/resource.json"), None);
    assert_eq!(world.declared("others/7/resource.json"), None);
}

#[test]
fn of_a_name_may_be_stored_by_the_id() {
    let names = ("apps/_/metadata.yaml", "resource: {id: /id, alias: /name}");
    let password = ("apps/acme/metadata.yaml", "resource: {secretAttributes: [/password]}");
    let world = World::with_store(&["/apps"], &[names, password]);
    world.live("/apps/7", r#"{"id": "7", "name": "acme", "password": "canary-7"}"#);
    let run = world.run(&["resource", "save", "/apps/7", "--secret-attributes=/password"]);
    let file = world.declared("apps/7/resource.json").unwrap_or_default();
    assert!(run.code == 0 && file.contains("{{secret .}}") && !file.contains("canary"), "{run}\n{file}");
}

#[test]
fn of_a_name_do_not_matter_if_it_is_excluded() {
    let names = ("apps/_/metadata.yaml", "resource: {id: /id, alias: /name}");
    let world = World::with_store(&["/apps"], &[names, ("apps/acme/metadata.yaml", PIN)]);
    world.live("/apps/7", r#"{"id": "7", "name": "acme", "pin": "canary-7"}"#);
    let run = world.run(&["resource", "save", "/apps/7", "--exclude", "acme"]);
    assert_eq!((run.code, world.declared("apps/7/resource.json")), (0, None), "{run}");
}

/// The path of a singleton is its name, whatever names it inherits.
#[test]
fn of_a_name_do_not_count_for_a_singleton() {
    let names = ("apps/_/metadata.yaml", "resource: {id: /id, alias: /name}");
    let settings = ("apps/settings/metadata.yaml", "resource: {singleton: true}");
    let world = World::with_store(&["/apps"], &[names, settings, ("apps/acme/metadata.yaml", PIN)]);
    world.live("/apps/settings", r#"{"name": "acme", "pin": "open"}"#);
    let run = world.run(&["resource", "save", "/apps/settings"]);
    assert!(run.code == 0 && world.declared("apps/settings/resource.json").is_some(), "{run}");
}

/// An attribute of the resource has the name of a secret of the members below it.
#[test]
fn of_members_are_not_searched_in_their_parent() {
    let files = [("orgs/_/_/metadata.yaml", PIN), ("orgs/_/metadata.yaml", PIN)];
    let world = World::with_store(&["/orgs"], &files);
    world.live("/orgs/acme", r#"{"id": "acme", "pin": "canary-7", "smtp": {"pin": "public"}}"#);
    let run = world.run(&["resource", "save", "/orgs/acme"]);
    let file = world.declared("orgs/acme/resource.json").unwrap_or_default();
    assert!(run.code == 0 && file.contains("{{secret .}}") && file.contains("public"), "{run}\n{file}");
}

/// The name of the attribute does not look like that of a secret, and metadata does not declare it.
#[test]
fn a_placeholder_in_the_file_is_not_replaced_by_the_text_of_the_server() {
    let files = [("apps/x/resource.json", r#"{"id": "x", "value": "{{secret a}}"}"#)];
    let world = World::with_store(&["/apps"], &files);
    world.live("/apps/x", r#"{"id": "x", "value": "s3cret/one"}"#);
    for command in [&["resource", "save", "/apps/x", "--force"][..], &["import", "/apps", "--force"]] {
        let run = world.run(command);
        assert!(run.code != 0 && run.to_string().contains("/apps/x: /value"), "{run}");
        assert!(!world.declared("apps/x/resource.json").unwrap().contains("s3cret"), "{run}");
    }
    let run = world.run(&["resource", "save", "/apps/x", "--force", "--secret-attributes"]);
    assert_eq!(run.code, 0, "{run}");
    assert!(world.declared("apps/x/resource.json").unwrap().contains(r#""value": "{{secret .}}""#), "{run}");
}
