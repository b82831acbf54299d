//! Attributes that the server accepts and never shows.

use rstest::rstest;
use serde_json::{Value, json};

use crate::api_server::{Answer, ApiServer, Ids, Request, Store};
use crate::safety::Place;

/// A server with users, which it shows in this form.
fn showing(request: &Request, store: &mut Store, shown: fn(&Value) -> Value) -> Answer {
    let answer = request.rest(store, Ids::Stated("name"));
    match (request.method.as_str(), store.get(&request.path)) {
        ("GET", Some(user)) => Answer::json(200, &shown(user)),
        ("GET", None) if request.path == "/users" => {
            Answer::json(200, &store.members("/users").iter().map(shown).collect())
        }
        _ => answer,
    }
}

/// Never shows the password, the key and the login.
fn hiding(request: &Request, store: &mut Store) -> Answer {
    showing(request, store, |user| match user.get("size") {
        Some(size) => json!({"name": user["name"], "size": size}),
        None => json!({"name": user["name"]}),
    })
}

/// Shows asterisks in place of secrets.
fn masking(request: &Request, store: &mut Store) -> Answer {
    showing(request, store, |user| user.to_string().replace("canary", "***").parse().unwrap())
}

fn users(resource: &str, ana: &Value) -> Place {
    let metadata = format!("resource: {{id: /name, alias: /name, {resource}}}\n");
    let files = [("users/_/metadata.yaml", &*metadata), ("users/ana/resource.json", &ana.to_string())];
    Place::new(ApiServer::start(&["/users"], hiding), &files)
}

impl Place {
    fn apply(&self) -> Vec<String> {
        let before = self.server.writes().len();
        let run = self.run(&["resource", "apply", "/", "-r"]);
        assert_eq!(run.code, 0, "{run}");
        self.server.writes().split_off(before)
    }

    fn declare_ana(&self, ana: &Value) {
        self.home.write("repo/users/ana/resource.json", &ana.to_string());
    }

    fn ana(&self) -> Value {
        serde_json::from_str(&self.home.read("repo/users/ana/resource.json")).unwrap()
    }
}

const FIXED: &str = "writeOnlyAttributes: [/password, /key], replaceOn: [/key]";

/// The record of another machine does not exist here, and a resource that another client created has none.
#[test]
fn nothing_is_replaced_without_a_record() {
    let ana = json!({"name": "ana", "password": "1", "key": "1"});
    let place = users(FIXED, &ana);
    place.server.put("/users/ana", ana.clone());
    assert_eq!(place.apply(), ["PUT /users/ana 200"]);
    assert_eq!(place.apply(), [""; 0]);
    place.declare_ana(&json!({"name": "ana", "password": "1", "key": "2"}));
    assert_eq!(place.apply(), ["DELETE /users/ana 204", "POST /users 201"]);
    assert_eq!(place.apply(), [""; 0]);
}

#[test]
fn another_attribute_replaces_nothing() {
    let place = users(FIXED, &json!({"name": "ana", "password": "1", "key": "1"}));
    assert_eq!(place.apply(), ["POST /users 201"]);
    place.declare_ana(&json!({"name": "ana", "password": "2", "key": "1"}));
    let plan = place.run(&["plan", "/", "-r"]);
    assert!(plan.stdout.contains("/password") && !plan.stdout.contains("/key"), "{plan}");
    assert_eq!(place.apply(), ["PUT /users/ana 200"]);
    assert_eq!(place.apply(), [""; 0]);
}

/// The second one belongs to another client.
#[test]
fn a_record_ends_with_its_resource() {
    let ana = json!({"name": "ana", "password": "1", "key": "1"});
    let place = users(FIXED, &ana);
    assert_eq!(place.apply(), ["POST /users 201"]);
    let run = place.run(&["resource", "delete", "/users/ana", "-y"]);
    assert_eq!((run.code, place.server.get("/users/ana")), (0, None), "{run}");
    place.server.put("/users/ana", ana);
    place.declare_ana(&json!({"name": "ana", "password": "1", "key": "2"}));
    assert_eq!(place.apply(), ["PUT /users/ana 200"]);
}

/// The server does not show the object of the attribute either.
#[test]
fn an_object_with_nothing_else_is_not_a_difference() {
    let resource = "writeOnlyAttributes: [/login/password], replaceOn: [/login/password]";
    let place = users(resource, &json!({"name": "ana", "login": {"password": "1"}}));
    assert_eq!(place.apply(), ["POST /users 201"]);
    assert_eq!(place.apply(), [""; 0]);
}

/// The file holds a placeholder, or the value itself.
#[rstest]
#[case::save(&["resource", "save", "/users/ana", "--force"])]
#[case::save_a_collection(&["resource", "save", "/users/", "--force"])]
#[case::import(&["import", "/users", "--force"])]
#[case::refresh(&["resource", "apply", "/users/ana", "--refresh"])]
fn the_file_keeps_them(#[case] args: &[&str], #[values("{{secret .}}", "1")] password: &str) {
    let ana = json!({"name": "ana", "size": 1, "login": {"password": password}});
    let place = users("writeOnlyAttributes: [/login/password]", &ana);
    let stored = place.run(&["secret", "set", "users/ana:/login/password", "1"]);
    assert_eq!(stored.code, 0, "{stored}");
    place.server.put("/users/ana", json!({"name": "ana", "size": 2}));
    let run = place.run(args);
    assert_eq!(run.code, 0, "{run}");
    let size = if args.contains(&"--refresh") { 1 } else { 2 };
    assert_eq!(place.ana(), json!({"name": "ana", "size": size, "login": {"password": password}}));
}

/// The secret of the file stays in the store, and a mask without a value in the file is named.
#[rstest]
#[case::save(&["resource", "save", "/users/ana", "--force"])]
#[case::secrets(&["resource", "save", "/users/", "--force", "--secret-attributes"])]
#[case::import(&["import", "/users", "--force"])]
fn the_file_keeps_what_the_server_masks(#[case] args: &[&str]) {
    let ana = json!({"name": "ana", "size": 1, "password": "{{secret .}}", "value": "***"});
    let files = [
        ("users/_/metadata.yaml", "resource: {id: /name, alias: /name}\n"),
        ("users/ana/resource.json", &*ana.to_string()),
    ];
    let place = Place::new(ApiServer::start(&["/users"], masking), &files);
    let stored = place.run(&["secret", "set", "users/ana:/password", "canary"]);
    assert_eq!(stored.code, 0, "{stored}");
    let live = json!({"name": "ana", "size": 2, "password": "canary", "value": "canary", "list": ["canary"]});
    place.server.put("/users/ana", live);
    place.server.put("/users/bo", json!({"name": "bo", "value": "canary"}));
    let run = place.home.run(args);
    assert_eq!(run.code, 0, "{run}");
    assert!(run.stderr.contains("the server masks /password or a part of it, and an update"), "{run}");
    assert!(run.stderr.contains("state /value in resource.writeOnlyAttributes"), "{run}");
    let kept = json!({"name": "ana", "size": 2, "password": "{{secret .}}", "value": "***", "list": ["***"]});
    assert_eq!(place.ana(), kept);
    assert_eq!(place.run(&["secret", "get", "users/ana:/password"]).stdout.trim_end(), "canary");
}

/// The server creates the user together with the database, with a password of its own.
#[test]
fn a_new_parent_has_not_got_the_values() {
    let answer = |request: &Request, store: &mut Store| {
        let answer = showing(request, store, |it| json!({"name": it["name"], "kind": it["kind"]}));
        let is_created = store.get("/dbs/main").is_some();
        if request.is_write() && request.path.starts_with("/dbs/main") || request.is("POST", "/dbs") {
            let has_user = store.get("/dbs/main/users/admin").is_some();
            if is_created && !has_user {
                store.put("/dbs/main/users/admin", json!({"name": "admin", "password": "default"}));
            } else if !is_created {
                store.remove("/dbs/main/users/admin");
            }
        }
        answer
    };
    let database = |kind: u8| json!({"name": "main", "kind": kind}).to_string();
    let files = [
        ("dbs/_/metadata.yaml", "resource: {id: /name, alias: /name, replaceOn: [/kind]}\n"),
        ("dbs/main/resource.json", &*database(1)),
        (
            "dbs/_/users/_/metadata.yaml",
            "resource: {id: /name, alias: /name, writeOnlyAttributes: [/password]}\n\
             operations: {compare: {transforms: [{excludeAttributes: [/kind]}]}}\n",
        ),
        ("dbs/main/users/admin/resource.json", r#"{"name": "admin", "password": "p1"}"#),
    ];
    let place = Place::new(ApiServer::start(&["/dbs", "/dbs/main/users"], answer), &files);
    place.apply();
    let password = || place.server.get("/dbs/main/users/admin").unwrap()["password"].clone();
    assert_eq!(password(), "p1");
    place.home.write("repo/dbs/main/resource.json", &database(2));
    let run = place.run(&["resource", "apply", "/dbs/main"]);
    assert_eq!((run.code, password()), (0, json!("default")), "{run}");
    place.apply();
    assert_eq!(password(), "p1");
}

/// Only the password is masked, in a URL or in a text that is JSON.
#[rstest]
#[case::url("db://ana:***@x", "db://ana:canary@x", "db://ana:canary@x")]
#[case::json(
    r#"{"password":"***","size":1}"#,
    r#"{"password":"canary","size":1}"#,
    r#"{"password":"canary","size":1}"#
)]
#[case::other_text("db://ana:***@y", "db://ana:canary@x", "db://ana:***@y")]
fn the_file_keeps_texts_of_which_the_server_masks_a_part(
    #[case] shown: &str,
    #[case] declared: &str,
    #[case] kept: &str,
) {
    let ana = json!({"name": "ana", "at": declared}).to_string();
    let files = [
        ("users/_/metadata.yaml", "resource: {id: /name, alias: /name}\n"),
        ("users/ana/resource.json", &*ana),
    ];
    let answer = |request: &Request, store: &mut Store| request.rest(store, Ids::Stated("name"));
    let place = Place::new(ApiServer::start(&["/users"], answer), &files);
    place.server.put("/users/ana", json!({"name": "ana", "at": shown}));
    let run = place.home.run(&["resource", "save", "/users/ana", "--force", "--allow-plaintext"]);
    assert_eq!((run.code, place.ana()), (0, json!({"name": "ana", "at": kept})), "{run}");
    assert!(run.stderr.contains("state /at in resource.writeOnlyAttributes"), "{run}");
}

#[test]
fn a_payload_of_the_user_is_saved_as_it_is() {
    let place = users("writeOnlyAttributes: [/key]", &json!({"name": "ana", "key": "1"}));
    let run =
        place.run(&["resource", "save", "/users/ana", "--force", "-f", r#"{"name": "ana", "size": 3}"#]);
    assert_eq!((run.code, place.ana()), (0, json!({"name": "ana", "size": 3})), "{run}");
}

/// Like [`hiding`], with entity tags. In the mode `outdated`, the next guarded update finds another version.
fn tagged(request: &Request, store: &mut Store) -> Answer {
    if request.headers.contains_key("if-match") && store.mode == "outdated" {
        store.mode.clear();
        return Answer::empty(412);
    }
    hiding(request, store).header("etag", "\"1\"")
}

#[test]
fn a_value_is_sent_again_after_another_client_changed_the_resource() {
    let ana = |password: &str| json!({"name": "ana", "password": password});
    let files = [
        ("users/_/metadata.yaml", "resource: {id: /name, alias: /name, writeOnlyAttributes: [/password]}\n"),
        ("users/ana/resource.json", &*ana("1").to_string()),
    ];
    let place = Place::new(ApiServer::start(&["/users"], tagged), &files);
    place.server.put("/users/ana", ana("0"));
    assert_eq!(place.apply(), ["PUT /users/ana 200"]);
    place.declare_ana(&ana("2"));
    place.server.mode("outdated");
    assert_eq!(place.apply(), ["PUT /users/ana 412", "PUT /users/ana 200"]);
    assert_eq!(place.server.get("/users/ana"), Some(ana("2")));
    assert_eq!(place.apply(), [""; 0]);
}

#[test]
fn a_deferred_value_is_sent_after_the_create() {
    let ana = json!({"name": "ana", "password": "1"});
    let place = users("writeOnlyAttributes: [/password], deferredAttributes: [/password]", &ana);
    assert_eq!(place.apply(), ["POST /users 201", "PUT /users/ana 200"]);
    assert_eq!(place.server.get("/users/ana"), Some(ana));
    assert_eq!(place.apply(), [""; 0]);
}
