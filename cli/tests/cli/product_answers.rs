//! Answers of real products: numbers, names, failures and attributes that are unusual.

use rstest::rstest;
use serde_json::{Value, json};

use crate::api_server::{Answer, ApiServer, Ids, Request};
use crate::safety::Place;

/// A hash of 64 bits may be beyond the signed integers.
#[test]
fn unsigned_integers_are_kept() {
    let server = ApiServer::rest(&["/entries"], Ids::Stated("name"));
    server.put("/entries/web", json!({"name": "web", "hash": u64::MAX, "port": 80}));
    let place = Place::new(server, &[("entries/_/metadata.yaml", "resource: {id: /name, alias: /name}\n")]);
    let run = place.run(&["resource", "save", "/entries/web"]);
    assert_eq!(run.code, 0, "{run}");
    let saved = place.home.read("repo/entries/web/resource.json");
    assert!(saved.contains("\"hash\": 18446744073709551615"), "{saved}");
    let run = place.run(&["plan", "/", "-r", "--exit-code"]);
    assert_eq!(run.code, 0, "{run}");
    place.home.write("repo/entries/web/resource.json", &saved.replace("80", "81"));
    let run = place.run(&["resource", "apply", "/", "-r"]);
    let changed = json!({"name": "web", "hash": u64::MAX, "port": 81});
    assert_eq!(place.server.get("/entries/web"), Some(changed), "{run}");
}

/// The request was done, so a failure would invite the user to repeat it.
#[test]
fn an_answer_of_another_format_than_stated_is_no_failure() {
    let server = ApiServer::start(&["/jobs"], |_, _| Answer::text(200, "application/json", "OK"));
    let place = Place::new(server, &[("jobs/_/metadata.yaml", "resource: {id: /id}\n")]);
    let run = place.run(&["resource", "request", "post", "/jobs", "-f", "{}"]);
    assert_eq!(run.code, 0, "{run}");
    let run = place.run(&["resource", "request", "get", "/jobs/1"]);
    assert_eq!((run.code, run.stdout.trim_end()), (0, "OK"), "{run}");
}

#[test]
fn names_with_slashes_are_reported() {
    let server = ApiServer::rest(&["/policies"], Ids::Given);
    for name in ["ops", "built/in", "built/all"] {
        server.put(&format!("/policies/{}", name.len()), json!({"id": name.len().to_string(), "name": name}));
    }
    let metadata = "resource: {id: /id, alias: /name}\n";
    let place = Place::new(server, &[("policies/_/metadata.yaml", metadata)]);
    let note = "/policies: built/all and 1 more names have a slash; to include such resources, state \
                resource.pathNames: percentEncoded in _/metadata.yaml";
    for command in [&["import"][..], &["resource", "save", "/policies/", "--force"]] {
        let run = place.run(command);
        assert!(run.code == 0 && run.stderr.contains(note), "{run}");
    }
    place.home.write("repo/_/metadata.yaml", "resource: {pathNames: percentEncoded}\n");
    let run = place.run(&["import"]);
    assert!(run.stdout.contains("/policies  2 saved, 1 existing") && run.stderr.is_empty(), "{run}");
    let run = place.run(&["plan", "/", "-r", "--exit-code"]);
    assert_eq!(run.code, 0, "{run}");
}

/// A path does not show a slash at an end of a name, or two in sequence.
#[test]
fn names_with_slashes_are_not_other_names() {
    let server = ApiServer::rest(&["/services"], Ids::Given);
    for (id, name) in ["http", "http/", "/http", "disk /", "a//b"].iter().enumerate() {
        server.put(&format!("/services/{id}"), json!({"id": id.to_string(), "name": name}));
    }
    let place = Place::new(server, &[("services/_/metadata.yaml", "resource: {id: /id, alias: /name}\n")]);
    for command in [&["import"][..], &["resource", "list", "/services"]] {
        let run = place.run(command);
        assert!(
            run.code == 0 && run.stderr.contains("/services: http/ and 3 more names have a slash"),
            "{run}"
        );
    }
    assert!(place.has("services/http/resource.json"));
    place.home.write("repo/_/metadata.yaml", "resource: {pathNames: percentEncoded}\n");
    let run = place.run(&["import"]);
    assert!(run.stdout.contains("/services  4 saved, 1 existing"), "{run}");
}

/// The directory of such a name could not be created.
#[test]
fn names_that_are_too_long_for_a_directory_are_reported() {
    let server = ApiServer::rest(&["/tags"], Ids::Given);
    server.put("/tags/1", json!({"id": "1", "name": "ops"}));
    server.put("/tags/2", json!({"id": "2", "name": "ü".repeat(130)}));
    let place = Place::new(server, &[("tags/_/metadata.yaml", "resource: {id: /id, alias: /name}\n")]);
    let long =
        "… is longer than 255 bytes; to include such resources, state another attribute in resource.alias";
    for command in [&["import"][..], &["resource", "save", "/tags/", "--force"]] {
        let run = place.run(command);
        assert!(run.code == 0 && run.stderr.contains(long), "{run}");
        assert!(place.has("tags/ops") && !run.stderr.contains(&"ü".repeat(41)), "{run}");
    }
}

#[test]
fn names_that_no_path_can_have_are_reported() {
    let server = ApiServer::rest(&["/tags"], Ids::Given);
    for (id, name) in ["ops", "..", "_", ".git"].iter().enumerate() {
        server.put(&format!("/tags/{id}"), json!({"id": id.to_string(), "name": name}));
    }
    let place = Place::new(server, &[("tags/_/metadata.yaml", "resource: {id: /id, alias: /name}\n")]);
    let impossible = "/tags: the name .. cannot be part of a path\n";
    let reserved = "/tags: _ and 1 more names cannot be those of directories; to include such resources, state \
                    resource.pathNames: percentEncoded in _/metadata.yaml";
    for command in
        [&["import"][..], &["resource", "list", "/tags"], &["resource", "save", "/tags/", "--force"]]
    {
        let run = place.run(command);
        assert!(run.code == 0 && run.stderr.contains(impossible) && run.stderr.contains(reserved), "{run}");
    }
    assert!(place.has("tags/ops"));
    place.home.write("repo/_/metadata.yaml", "resource: {pathNames: percentEncoded}\n");
    let run = place.run(&["import"]);
    assert!(run.stdout.contains("/tags  2 saved, 1 existing") && run.stderr.contains(impossible), "{run}");
    assert!(!run.stderr.contains("directories"), "{run}");
    let run = place.run(&["plan", "/", "-r", "--exit-code"]);
    assert_eq!(run.code, 0, "{run}");
}

/// It writes one resource, and fails to write others at the same time.
#[test]
fn a_server_that_fails_many_requests_may_be_overloaded() {
    let server = ApiServer::start(&["/items"], |request, store| {
        if request.is("POST", "/items") && !store.members("/items").is_empty() {
            return Answer::json(500, &json!({"error": "database is locked"}));
        }
        request.rest(store, Ids::Stated("id"))
    });
    let items: Vec<_> = (0..6).map(|item| format!("items/i{item}/resource.json")).collect();
    let contents: Vec<_> = (0..6).map(|item| format!(r#"{{"id": "i{item}"}}"#)).collect();
    let files: Vec<_> =
        items.iter().zip(&contents).map(|(file, text)| (file.as_str(), text.as_str())).collect();
    let run = Place::new(server, &files).run(&["resource", "apply", "/", "-r"]);
    let hint = "hint: the server fails some of the requests; if it cannot answer many at once, use --parallel 2, or set \
                managedServer.http.requestThrottling.maxConcurrentRequests";
    assert!(run.code == 6 && run.stderr.contains(hint), "{run}");
}

/// The server assigns ids, and nothing in the file names the resource.
#[test]
fn what_no_command_finds_is_created_once() {
    let server = ApiServer::rest(&["/labels"], Ids::Given);
    let place = Place::new(server, &[("labels/bug/resource.json", r#"{"color": "red"}"#)]);
    for _ in 0..3 {
        let run = place.run(&["resource", "apply", "/", "-r"]);
        assert!(run.code == 2 && run.stderr.contains("/labels/bug: created with the id n7, but"), "{run}");
        assert_eq!(place.server.paths(), ["/labels/n7"]);
    }
    place.server.remove("/labels/n7");
    let run = place.run(&["resource", "apply", "/", "-r"]);
    assert_eq!(place.server.paths(), ["/labels/n8"], "{run}");
}

/// The binding is sent first, and once more after the policy.
#[test]
fn a_server_may_answer_500_if_another_resource_is_missing() {
    let server = ApiServer::start(&["/bindings", "/policies"], |request, store| {
        if request.is("POST", "/bindings") && store.get("/policies/ops").is_none() {
            return Answer::json(500, &json!({"error": "no such policy"}));
        }
        request.rest(store, Ids::Stated("id"))
    });
    let files = [
        ("policies/ops/resource.json", r#"{"id": "ops"}"#),
        ("bindings/admin/resource.json", r#"{"id": "admin", "policies": ["ops"]}"#),
    ];
    let place = Place::new(server, &files);
    let run = place.run(&["resource", "apply", "/", "-r"]);
    assert_eq!(run.code, 0, "{run}");
    assert_eq!(place.server.paths(), ["/bindings/admin", "/policies/ops"]);
}

#[test]
fn attributes_that_the_server_adds_are_reported_after_an_update() {
    let server = ApiServer::start(&["/queues"], |request, store| {
        let answer = request.rest(store, Ids::Stated("id"));
        if request.method == "PUT" {
            let mut queue = store.get(&request.path).cloned().unwrap_or_default();
            queue["zone"] = json!("eu");
            store.put(&request.path, queue.clone());
            return Answer::json(200, &queue);
        }
        answer
    });
    let mut files = Vec::new();
    for name in ["a", "b"] {
        server.put(&format!("/queues/{name}"), json!({"id": name, "max": 1}));
        files.push((format!("queues/{name}/resource.json"), json!({"id": name, "max": 2}).to_string()));
    }
    let files: Vec<_> = files.iter().map(|(path, content)| (path.as_str(), content.as_str())).collect();
    let place = Place::new(server, &files);
    insta::assert_snapshot!(place.run(&["resource", "apply", "/", "-r"]), @"
    exit 0
    --- stdout
    --- stderr
    ~ /queues/a updated
    ~ /queues/b updated
    2 resources (/queues/a, /queues/b): the server answered 200 to the update, but still shows /zone, which the file does not state; if the server sets such attributes, state operations.compare.mode: declared; the option -vvv shows the answer
    Applied: 0 created, 2 updated, 0 deleted, 0 unchanged, 0 failed.
    [OK] command executed successfully.
    ");
    place.home.write("repo/_/metadata.yaml", "operations: {compare: {mode: declared}}\n");
    let run = place.run(&["plan", "/", "-r", "--exit-code"]);
    assert_eq!(run.code, 0, "{run}");
}

/// The list states ids, and the content of an artifact may have a member `id` of its own, such as that of a schema.
#[test]
fn a_content_with_the_names_of_another_resource_is_not_saved() {
    let server = ApiServer::start(&["/artifacts"], |request, store| match request.path.as_str() {
        "/artifacts" if request.method == "GET" => Answer::json(200, &json!([{"id": "mail"}, {"id": "sms"}])),
        _ => request.rest(store, Ids::Stated("id")),
    });
    server.put("/artifacts/mail", json!({"id": "sms", "text": "mail"}));
    server.put("/artifacts/sms", json!({"text": "sms"}));
    let metadata = ("artifacts/_/metadata.yaml", "resource: {id: /id, alias: /id}\n");
    let place = Place::new(server, &[metadata]);
    let member = "by resource.id and resource.alias, the content of /artifacts/mail has the names of another resource, \
                  which the file would declare; correct both in artifacts/_/metadata.yaml";
    let entry = "another resource at the address with the id mail; correct resource.id, or state \
                 operations.get.path or operations.get.from: list; the place is artifacts/_/metadata.yaml";
    for (command, code, reason) in [
        (&["import"][..], 5, entry),
        (&["resource", "save", "/artifacts/mail"], 2, member),
        (&["resource", "save", "/artifacts/"], 5, entry),
    ] {
        let run = place.run(command);
        assert!(run.code == code && format!("{run}").contains(reason), "{run}");
        assert!(!place.home.path("repo/artifacts/mail/resource.json").exists(), "{run}");
    }
    assert_eq!(place.server.get("/artifacts/sms"), Some(json!({"text": "sms"})));
}

/// `resource request` sends the name of a path as the other commands do.
#[test]
fn names_with_slashes_are_sent_by_requests() {
    let server = ApiServer::rest(&["/policies"], Ids::Stated("name"));
    let files = [
        ("_/metadata.yaml", "resource: {pathNames: percentEncoded}\n"),
        ("policies/_/metadata.yaml", "resource: {id: /name, alias: /name}\n"),
    ];
    let place = Place::new(server, &files);
    for command in [&["request", "get"][..], &["get"]] {
        let run = place.run(&[&["resource"], command, &["/policies/built%2Fin"]].concat());
        assert_eq!(run.code, 3, "{run}");
    }
    let sent: Vec<_> = place.server.log().into_iter().map(|request| request.path).collect();
    assert_eq!(sent[0], sent[1], "{sent:?}");
}

/// The message names the method, and the hint the metadata.
#[test]
fn a_method_that_the_server_does_not_support_is_named() {
    let server = ApiServer::start(&["/proxies"], |request, store| match request.method.as_str() {
        "PUT" => Answer::empty(405),
        _ => request.rest(store, Ids::Stated("id")),
    });
    let place = Place::new(server, &[]);
    for id in ["a", "b"] {
        place.server.put(&format!("/proxies/{id}"), json!({"id": id, "size": 1}));
        place
            .home
            .write(&format!("repo/proxies/{id}/resource.json"), &json!({"id": id, "size": 2}).to_string());
    }
    let hint =
        "hint: the server does not support PUT /proxies/a; state another method or path in operations.update";
    let run = place.run(&["resource", "apply", "/proxies/a"]);
    assert!(run.code == 2 && run.stderr.contains(hint), "{run}");
    let run = place.run(&["resource", "apply", "/proxies"]);
    let line = "2 resources (/proxies/a, /proxies/b): PUT: remote request failed with status 405";
    assert!(run.stderr.contains(line) && run.stderr.contains(hint), "{run}");
}

/// Like Swift, the server holds files of any format, and its list has their names.
#[test]
fn members_are_saved_in_the_formats_of_their_answers() {
    let files = [("nginx.conf", "text/plain", "server { }"), ("app.yaml", "application/yaml", "a: 1\n")];
    let server = ApiServer::start(&["/objects"], move |request, store| {
        let file = files.iter().find(|(name, ..)| request.path == format!("/objects/{name}"));
        match (request.method.as_str(), file) {
            ("GET", Some((_, media_type, content))) => Answer::text(200, media_type, content),
            ("GET", _) => Answer::json(200, &files.iter().map(|(name, ..)| json!(name)).collect()),
            _ => request.rest(store, Ids::Given),
        }
    });
    let metadata = "operations: {list: {mode: names, pagination: {style: none}}}\n";
    let place = Place::new(server, &[("objects/_/metadata.yaml", metadata)]);
    for command in [&["import"][..], &["resource", "save", "/objects/", "--force"]] {
        let run = place.run(command);
        assert_eq!(run.code, 0, "{run}");
        assert_eq!(place.home.read("repo/objects/nginx.conf/resource.txt"), "server { }");
        assert_eq!(place.home.read("repo/objects/app.yaml/resource.yaml"), "a: 1\n");
        assert!(!place.has("objects/nginx.conf/resource.json"), "{run}");
    }
    let run = place.run(&["plan", "/", "-r", "--exit-code"]);
    assert_eq!(run.code, 0, "{run}");
}

const NAMES: &str = r#"["a", "page", "z"]"#;
const ENTRIES: &str = r#"[{"id": "a", "name": "the first"}, {"id": "page"}, {"id": "z"}]"#;

/// The others are saved, whether the list shows names or entries with fewer attributes.
#[rstest]
#[case::page_of_names(NAMES, "{mode: names, pagination: {style: none}}", || Answer::html(200), 2)]
#[case::page_of_entries(ENTRIES, "{pagination: {style: none}}", || Answer::html(200), 2)]
#[case::outage_of_names(NAMES, "{mode: names, pagination: {style: none}}", || Answer::empty(503), 6)]
#[case::outage_of_entries(ENTRIES, "{pagination: {style: none}}", || Answer::empty(503), 6)]
fn a_member_that_cannot_be_read_does_not_prevent_the_import(
    #[case] list: &str,
    #[case] operation: &str,
    #[case] page: fn() -> Answer,
    #[case] code: i32,
) {
    let metadata = &format!("operations: {{list: {operation}}}\n");
    let list: Value = serde_json::from_str(list).unwrap();
    let server = ApiServer::start(&["/objects"], move |request, store| match request.path.as_str() {
        "/objects" => Answer::json(200, &list),
        "/objects/page" => page(),
        _ => request.rest(store, Ids::Stated("id")),
    });
    server.put("/objects/a", json!({"id": "a", "name": "the first", "size": 1}));
    server.put("/objects/z", json!({"id": "z", "size": 2}));
    let place = Place::new(server, &[("objects/_/metadata.yaml", metadata)]);
    let run = place.run(&["import"]);
    let failure = "/objects  not complete: /objects/page could not be read: ";
    assert!(run.code == code && run.stdout.contains("/objects  2 saved\n"), "{run}");
    assert!(
        run.stdout.contains(failure)
            && run.stdout.contains("2 resources saved, 0 existing, 1 collection not complete"),
        "{run}"
    );
    assert!(place.has("objects/a/resource.json") && place.has("objects/z/resource.json"));
    // A second import does not take the entry of the list for the member.
    let run = place.run(&["import"]);
    assert!(run.code == code && run.stdout.contains("/objects  not complete: "), "{run}");
    assert!(!place.has("objects/page/resource.json"), "{run}");
    // All members of a collection are saved, or none.
    let save = ["resource", "save", "/objects/", "--force"];
    let run = place.run(&save);
    assert_eq!(run.code, code, "{run}");
    place.server.clear_log();
    let run = place.run(&["import", "--exclude", "page"]);
    assert!(run.code == 0 && run.stdout.contains("/objects  0 saved, 2 existing"), "{run}");
    let run = place.run(&[&save[..], &["--exclude", "page"]].concat());
    assert_eq!(run.code, 0, "{run}");
    assert!(place.server.log().iter().all(|request| request.path != "/objects/page"), "{run}");
}

/// Like Aodh, the server answers with an alarm where it is asked for a list of its settings.
#[test]
fn the_parent_of_singletons_is_not_listed() {
    let server = ApiServer::start(&["/alarms"], |request, store| {
        let alarm = request.path.trim_end_matches("/settings").to_owned();
        Request { path: alarm, ..request.clone() }.rest(store, Ids::Given)
    });
    server.put("/alarms/1", json!({"id": "1", "actions": [], "rules": []}));
    let settings = "resource: {singleton: true, remoteCollectionPath: '/alarms/{{/alarm}}'}\n";
    let files = [
        ("alarms/_/metadata.yaml", "resource: {id: /id, alias: /id}\n"),
        ("alarms/_/settings/_/metadata.yaml", settings),
    ];
    let place = Place::new(server, &files);
    let run = place.run(&["import"]);
    assert!(run.code == 0 && run.stdout.contains("1 resource saved, 0 existing, 0 collections"), "{run}");
    assert!(place.server.log().iter().all(|request| !request.path.ends_with("settings")), "{run}");
}

/// Metadata names one for the whole server, and one for each of two realms, of which one does not have it.
#[test]
fn singletons_that_metadata_names_are_imported() {
    let server = ApiServer::start(&["/realms"], |request, store| match request.path.as_str() {
        "/settings" => Answer::empty(405),
        _ => request.rest(store, Ids::Stated("id")),
    });
    server.put("/settings/preferences", json!({"locale": "en"}));
    for realm in ["rio", "lima"] {
        server.put(&format!("/realms/{realm}"), json!({"id": realm}));
    }
    server.put("/realms/rio/profile", json!({"policy": "strict"}));
    let files = [
        ("realms/_/metadata.yaml", "resource: {id: /id, alias: /id}\n"),
        ("realms/rio/profile/metadata.yaml", "resource: {singleton: true}\n"),
        ("realms/lima/profile/metadata.yaml", "resource: {singleton: true}\n"),
        ("settings/preferences/metadata.yaml", "resource: {singleton: true}\n"),
    ];
    let place = Place::new(server, &files);
    for (lines, last) in [
        (
            "/realms                2 saved\n/realms/_/profile      1 saved\n/settings/preferences  1 saved\n",
            "4 resources saved",
        ),
        ("/settings/preferences  0 saved, 1 existing\n", "0 resources saved, 4 existing"),
    ] {
        let run = place.run(&["import"]);
        assert!(run.code == 0 && run.stdout.contains(lines) && run.stdout.contains(last), "{run}");
    }
    assert!(place.home.read("repo/realms/rio/profile/resource.json").contains("strict"));
    assert!(!place.has("realms/lima/profile/resource.json"));
    let run = place.run(&["plan", "/", "-r", "--exit-code"]);
    assert_eq!(run.code, 0, "{run}");
}

#[test]
fn indented_json_in_a_failure_is_shown_in_one_line() {
    let server = ApiServer::start(&["/tags"], |request, store| match request.method.as_str() {
        "POST" => Answer::text(
            422,
            "application/json",
            "{\n    \"error\": \"no\",\n    \"codes\": [\n        7\n    ]\n}\n",
        ),
        _ => request.rest(store, Ids::Stated("id")),
    });
    let place = Place::new(server, &[("tags/ops/resource.yaml", "id: ops\n")]);
    let run = place.run(&["resource", "apply", "/tags/ops"]);
    assert!(run.stderr.contains(r#"status 422: { "error": "no", "codes": [ 7 ] }"#), "{run}");
}
