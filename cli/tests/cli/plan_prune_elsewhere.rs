//! `plan --prune` and `resource apply --prune`: resources that Git declares at another path, or that a declared one refers to.

use std::fs;

use rstest::rstest;
use serde_json::json;

use crate::api_server::{Answer, ApiServer, Ids, Request, Store};
use crate::plan_prune::{checkout, commit};

/// Groups that the server shows, changes and deletes under their ids and their names.
fn answer(request: &Request, store: &mut Store) -> Answer {
    let segments: Vec<_> = request.segments().iter().map(|segment| (*segment).to_owned()).collect();
    let [_, name] = segments.as_slice() else { return request.rest(store, Ids::Stated("id")) };
    let groups = store.members("/groups").into_iter();
    let group = groups.into_iter().find(|group| group["id"] == **name || group["name"] == **name);
    let Some(group) = group else { return Answer::empty(404) };
    let path = format!("/groups/{}", group["id"].as_str().unwrap());
    match request.method.as_str() {
        "GET" => Answer::json(200, &group),
        "DELETE" => {
            store.remove(&path);
            Answer::empty(204)
        }
        _ => {
            store.put(&path, request.body.clone());
            Answer::json(200, &request.body)
        }
    }
}

/// A commit names the files of groups by their names instead of their ids.
#[rstest]
#[case::by_name("resource: {id: /name, alias: /name}", true)]
#[case::by_name_without_id(
    "{resource: {id: /name, alias: /name}, operations: {get: {transforms: [{excludeAttributes: /id}]}}}",
    false
)]
#[case::by_id_and_name("resource: {id: /id, alias: /name}", false)]
#[case::without_metadata("", false)]
fn a_resource_that_git_declares_by_its_name_is_kept(#[case] metadata: &str, #[case] states_id: bool) {
    let server = ApiServer::start(&["/groups"], answer);
    let home = checkout(&server, "");
    for (id, name) in [("1", "ops"), ("2", "dev")] {
        let group = json!({"id": id, "name": name});
        server.put(&format!("/groups/{id}"), group.clone());
        home.write(&format!("repo/groups/{id}/resource.json"), &group.to_string());
    }
    commit(&home);
    for (id, name) in [("1", "ops"), ("2", "dev")] {
        fs::remove_dir_all(home.path(&format!("repo/groups/{id}"))).unwrap();
        let group = if states_id { json!({"id": id, "name": name}) } else { json!({"name": name}) };
        home.write(&format!("repo/groups/{name}/resource.json"), &group.to_string());
    }
    if !metadata.is_empty() {
        home.write("repo/groups/_/metadata.yaml", metadata);
    }
    commit(&home);
    let run = home.run(&["resource", "apply", "/", "-r", "--prune", "--yes"]);
    let deleted = server.writes().into_iter().filter(|write| write.starts_with("DELETE")).count();
    assert_eq!(deleted, 0, "{run}");
    assert!(!run.stderr.contains("deleted\n"), "{run}");
}

/// Labels that the server shows below the present name of their repository, which it does not let clients change.
fn labels(request: &Request, store: &mut Store) -> Answer {
    match request.method.as_str() {
        "PUT" if request.path.starts_with("/repos/") && !request.path.contains("/labels/") => {
            Answer::json(422, &json!({"error": "name"}))
        }
        _ => request.rest(store, Ids::Stated("name")),
    }
}

/// One commit moves a label, and renames its repository in the payload.
#[test]
fn a_moved_child_of_a_renamed_parent_is_kept() {
    let server = ApiServer::start(&["/repos", "/repos/web/labels"], labels);
    server.put("/repos/web", json!({"name": "web", "size": 1}));
    server.put("/repos/web/labels/alpha", json!({"name": "alpha"}));
    let home = checkout(&server, "");
    let names = "resource: {id: /name, alias: /name}";
    home.write("repo/repos/_/metadata.yaml", names);
    home.write(
        "repo/repos/_/labels/_/metadata.yaml",
        "resource: {id: /name, alias: /name, remoteCollectionPath: '/repos/{{/repo}}/labels'}",
    );
    home.write("repo/repos/web/resource.json", r#"{"name": "web", "size": 1}"#);
    home.write("repo/repos/web/labels/alpha/resource.json", r#"{"name": "alpha"}"#);
    commit(&home);
    fs::remove_dir_all(home.path("repo/repos/web/labels/alpha")).unwrap();
    home.write("repo/repos/web/labels/first/resource.json", r#"{"name": "alpha"}"#);
    home.write("repo/repos/web/resource.json", r#"{"name": "web9", "size": 1}"#);
    commit(&home);
    let run = home.run(&["resource", "apply", "/", "-r", "--prune", "--yes"]);
    let deleted = server.writes().into_iter().filter(|write| write.starts_with("DELETE")).count();
    assert_eq!((deleted, server.get("/repos/web/labels/alpha").is_some()), (0, true), "{run}");
}

/// The renamed resource refers to a new one, so it is read again before it is written.
#[test]
fn a_renamed_resource_is_updated_by_the_run_that_the_plan_shows() {
    let server = ApiServer::rest(&["/teams"], Ids::Given);
    let home = checkout(&server, "");
    home.write("repo/teams/_/metadata.yaml", "resource: {id: /id, alias: /name}");
    for (id, name) in [("t1", "red"), ("t2", "blue"), ("t3", "old")] {
        server.put(&format!("/teams/{id}"), json!({"id": id, "name": name}));
        let payload = json!({"id": id, "name": name}).to_string();
        home.write(&format!("repo/teams/{name}/resource.json"), &payload);
    }
    commit(&home);
    for gone in ["red", "old"] {
        fs::remove_dir_all(home.path(&format!("repo/teams/{gone}"))).unwrap();
    }
    let rouge = json!({"id": "t1", "name": "rouge", "peer": r#"{{ref "/teams/new" "/id"}}"#});
    home.write("repo/teams/rouge/resource.json", &rouge.to_string());
    home.write("repo/teams/new/resource.json", r#"{"name": "new"}"#);
    commit(&home);
    let plan = home.run(&["plan", "/", "--prune"]);
    assert!(plan.stdout.contains("~ /teams/rouge"), "{plan}");
    let run = home.run(&["resource", "apply", "/", "-r", "--prune", "--yes"]);
    assert_eq!(run.code, 0, "{run}");
    assert_eq!(server.get("/teams/t1").unwrap()["name"], "rouge", "{run}");
    assert!(server.get("/teams/t3").is_none(), "{run}");
}

/// Plan and apply agree: a team is kept to which a declared one refers, and what is above it.
#[test]
fn a_plan_keeps_what_a_declared_resource_refers_to() {
    let server = ApiServer::rest(&["/orgs", "/orgs/*/teams", "/users"], Ids::Stated("name"));
    let home = checkout(&server, "");
    home.write("repo/_/metadata.yaml", "resource: {id: /name, alias: /name}");
    for (path, name) in [("orgs/acme", "acme"), ("orgs/acme/teams/red", "red"), ("orgs/old", "old")] {
        server.put(&format!("/{path}"), json!({ "name": name }));
        home.write(&format!("repo/{path}/resource.json"), &json!({ "name": name }).to_string());
    }
    let ana = json!({"name": "ana", "team": r#"{{ref "/orgs/acme/teams/red" "/name"}}"#});
    server.put("/users/ana", json!({"name": "ana", "team": "red"}));
    home.write("repo/users/ana/resource.json", &ana.to_string());
    commit(&home);
    fs::remove_dir_all(home.path("repo/orgs")).unwrap();
    commit(&home);
    let plan = home.run(&["plan", "/", "--prune"]);
    assert!(plan.stdout.contains("- /orgs/old") && plan.stdout.contains("1 to delete"), "{plan}");
    let run = home.run(&["resource", "apply", "/", "-r", "--prune", "--yes"]);
    let kept = "/users/ana refers to it; remove the reference first";
    for run in [&plan, &run] {
        assert!(run.code == 5 && run.stderr.contains(kept), "{run}");
    }
    assert_eq!(server.writes(), ["DELETE /orgs/old 204"]);
}

/// The server deletes a cabinet with those below it, and rejects or ignores the update that moves one out.
#[rstest]
#[case::rejected(400)]
#[case::ignored(200)]
fn what_a_failed_resource_referred_to_is_kept(#[case] status: u16, #[values("sub", "moved")] to: &str) {
    let server = ApiServer::start(&["/cabinets"], move |request, store| {
        if request.method == "PUT" && request.body["parent"] == 9999 {
            return Answer::json(status, store.get(&request.path).unwrap());
        }
        let answer = request.rest(store, Ids::Given);
        if request.method == "DELETE" {
            let parent = json!(request.segments()[1]);
            let below: Vec<_> =
                store.paths().filter(|path| store.get(path).unwrap()["parent"] == parent).cloned().collect();
            for path in &below {
                store.remove(path);
            }
        }
        answer
    });
    let home = checkout(&server, "");
    home.write("repo/cabinets/_/metadata.yaml", "resource: {id: /id, alias: /name}");
    home.write("repo/cabinets/top/resource.json", r#"{"name": "top", "parent": ""}"#);
    home.write("repo/cabinets/old/resource.json", r#"{"name": "old", "parent": ""}"#);
    let sub = |parent: serde_json::Value| json!({"name": "sub", "parent": parent}).to_string();
    home.write("repo/cabinets/sub/resource.json", &sub(json!("{{ref \"/cabinets/top\" \"/id\"}}")));
    commit(&home);
    assert_eq!(home.run(&["resource", "apply", "/", "-r"]).code, 0);
    for gone in ["top", "old", "sub"] {
        fs::remove_dir_all(home.path(&format!("repo/cabinets/{gone}"))).unwrap();
    }
    home.write(&format!("repo/cabinets/{to}/resource.json"), &sub(json!(9999)));
    commit(&home);
    let apply = || home.run(&["resource", "apply", "/", "-r", "--prune", "--yes"]);
    let run = apply();
    let kept = format!("/cabinets/{to}, which referred to it, was not updated");
    assert!(run.code != 0 && run.stderr.contains(&kept), "{run}");
    assert_eq!(server.paths().len(), 2, "{run}");
    home.write(&format!("repo/cabinets/{to}/resource.json"), &sub(json!("")));
    commit(&home);
    let run = apply();
    assert_eq!((run.code, server.paths().len()), (0, 1), "{run}");
}

/// The update that detaches the declared cabinet succeeds in a further pass, after a resource that it needs.
#[test]
fn what_a_resource_referred_to_is_deleted_after_its_late_update() {
    let server = ApiServer::start(&["/cabinets", "/groups"], |request, store| {
        if request.method == "PUT" && request.body["owner"] == "g" && store.get("/groups/g").is_none() {
            return Answer::json(400, &json!({"owner": "unknown"}));
        }
        request.rest(store, Ids::Stated("name"))
    });
    let home = checkout(&server, "");
    home.write("repo/_/metadata.yaml", "resource: {id: /name, alias: /name}");
    home.write("repo/cabinets/top/resource.json", r#"{"name": "top"}"#);
    let sub = json!({"name": "sub", "parent": r#"{{ref "/cabinets/top" "/name"}}"#});
    home.write("repo/cabinets/sub/resource.json", &sub.to_string());
    commit(&home);
    assert_eq!(home.run(&["resource", "apply", "/", "-r"]).code, 0);
    fs::remove_dir_all(home.path("repo/cabinets/top")).unwrap();
    home.write("repo/cabinets/sub/resource.json", r#"{"name": "sub", "parent": "", "owner": "g"}"#);
    home.write("repo/groups/g/resource.json", r#"{"name": "g"}"#);
    commit(&home);
    let run = home.run(&["resource", "apply", "/", "-r", "--prune", "--yes"]);
    assert_eq!(
        (run.code, server.paths()),
        (0, vec!["/cabinets/sub".to_owned(), "/groups/g".to_owned()]),
        "{run}"
    );
}

/// A document may have a DELETE of members, and no GET: only their list shows them.
#[test]
fn a_declared_member_that_only_a_list_shows_does_not_keep_others() {
    let server = ApiServer::rest(&["/members", "/shops"], Ids::Stated("name"));
    server.put("/members/ana", json!({"name": "ana"}));
    server.put("/shops/rio", json!({"name": "rio"}));
    let home = checkout(&server, "openapi: <home>/openapi.json,");
    let done = json!({"responses": {"200": {"description": "done"}}});
    let (collection, shop) = (json!({"get": done, "post": done}), json!({"get": done, "delete": done}));
    let paths = json!({
        "/members": collection, "/members/{id}": {"delete": done}, "/shops": collection, "/shops/{id}": shop
    });
    home.write("openapi.json", &json!({"openapi": "3.0.3", "paths": paths}).to_string());
    let names = "resource: {id: /name, alias: /name}";
    home.write("repo/shops/_/metadata.yaml", names);
    let members = format!("{names}\noperations: {{get: {{from: list}}, delete: {{path: './{{{{/id}}}}'}}}}");
    home.write("repo/members/_/metadata.yaml", &members);
    for path in ["members/ana", "shops/rio"] {
        let (_, name) = path.split_once('/').unwrap();
        home.write(&format!("repo/{path}/resource.json"), &json!({ "name": name }).to_string());
    }
    commit(&home);
    fs::remove_dir_all(home.path("repo/shops/rio")).unwrap();
    commit(&home);
    let run = home.run(&["resource", "apply", "/", "-r", "--prune", "--yes"]);
    assert_eq!((run.code, server.writes()), (0, vec!["DELETE /shops/rio 204".to_owned()]), "{run}");
}
