//! Templates that need values of other resources: how often these are read, and how current they are.

use std::sync::Arc;

use declarest_core::metadata::Metadata;
use declarest_core::path::LogicalPath;
use declarest_core::payload::{PayloadType, decode};
use declarest_core::sync::{self, Candidate, Options, Outcome, Reading, Scope, Selection, Session, Stop};
use rstest::rstest;
use serde_json::json;

use crate::commit::Commit;
use crate::rest_server::Config;
use crate::scene::Scene;
use crate::world::World;

/// Members of a group, whose addresses contain the number of the group.
fn members() -> Scene {
    let mut scene = Scene::new(Config {
        collections: vec!["/groups".to_owned(), "/members/1".to_owned(), "/members/2".to_owned()],
        ..Config::default()
    });
    let metadata = r#"resource: {remoteCollectionPath: '/members/{{ref "/groups/staff" "/number"}}'}"#;
    scene.write("members/_/metadata.yaml", metadata);
    // Larger than most resources.
    let notes = "x".repeat(50_000);
    scene.declare("/groups/staff", &json!({"id": "staff", "number": 1, "notes": notes}));
    for name in ["ana", "bob"] {
        scene.declare(&format!("/members/{name}"), &json!({"id": name, "active": true}));
    }
    scene
}

#[tokio::test]
async fn a_resource_is_read_once_for_all_that_refer_to_it() {
    let scene = members();
    let report = scene.run(Reading::Each).await;
    assert_eq!((report.stats.created, report.outcome), (3, Outcome::Succeeded), "{report:?}");
    // It is read again after it was created.
    assert_eq!(scene.server().counts().of("GET", "/groups/staff"), 2);
    assert_eq!(scene.server().get("/members/1/ana").unwrap()["active"], true);

    let report = scene.run(Reading::Each).await;
    assert_eq!((report.stats.unchanged, report.outcome), (3, Outcome::Succeeded), "{report:?}");
    assert_eq!(scene.server().counts().of("GET", "/groups/staff"), 1, "{:?}", scene.asked());

    // The desired payload is needed once more after the create.
    assert!(scene.server().delete_by_hand("/members/1/ana"));
    let report = scene.run(Reading::Each).await;
    assert_eq!((report.stats.created, report.stats.unchanged), (1, 2), "{report:?}");
    assert_eq!(scene.server().counts().of("GET", "/groups/staff"), 1, "{:?}", scene.asked());
}

/// The addresses of all candidates contain the number of a group whose id is on the server only. Each revision has its
/// own rules, and thus its own reads.
#[rstest]
#[case::the_group_exists(true, 3)]
#[case::the_group_was_deleted(false, 0)]
#[tokio::test]
async fn candidates_of_several_revisions_read_nothing_twice(#[case] exists: bool, #[case] pruned: usize) {
    let collections = vec!["/groups".to_owned(), "/members/1".to_owned()];
    let members = r#"resource: {remoteCollectionPath: '/members/{{ref "/groups/staff" "/number"}}'}"#;
    let files = [
        ("members/_/metadata.yaml", members),
        ("groups/_/metadata.yaml", "resource: {id: /id, alias: /name}"),
    ];
    let world = World::new(Config { collections, ..Config::default() }, &files);
    if exists {
        world.server.put_by_hand("/groups/g1", json!({"id": "g1", "name": "staff", "number": 1}));
        for name in ["ana", "bob"] {
            world.server.put_by_hand(&format!("/members/1/{name}"), json!({"id": name}));
        }
    }
    let revision = |number| Commit::numbered(world.session().tree, number, Arc::default());
    let candidate = |(path, payload, declared_in): (&str, &str, u32)| Candidate {
        path: LogicalPath::parse(path).unwrap(),
        payload: decode(PayloadType::Json, payload.as_bytes()).unwrap(),
        declared_in: Some(revision(declared_in)),
    };
    let candidates = [
        ("/groups/staff", r#"{"name":"staff"}"#, 2),
        ("/members/ana", r#"{"id":"ana"}"#, 1),
        ("/members/bob", r#"{"id":"bob"}"#, 2),
    ];
    let tree = revision(3);
    let session = Session { metadata: Arc::new(Metadata::new(Arc::clone(&tree))), tree, ..world.session() };
    let prune = candidates.into_iter().map(candidate).collect();
    let scope = Some(Scope { path: LogicalPath::root(), recursive: true });
    let selection = Selection { prune, scope, ..Selection::default() };
    let options = Options { allow_empty: true, ..Options::default() };
    let report = sync::run(&session, selection, &options, &Stop::default()).await;
    assert_eq!((report.stats.pruned, report.outcome), (pruned, Outcome::Succeeded), "{report:?}");
    let counts = world.server.counts();
    let twice: Vec<_> = counts.iter().filter(|(_, _, count)| *count > 1).collect();
    assert!(twice.is_empty(), "{twice:?} in {:?}", world.server.log());
}

/// The first run of a policy makes most creates when it sends them.
#[tokio::test]
async fn resources_may_refer_to_each_other_if_one_attribute_is_deferred() {
    let collections = ["/teams", "/users"].map(str::to_owned).to_vec();
    let mut scene = Scene::new(Config { server_ids: collections.clone(), collections, ..Config::default() });
    scene.write("_/metadata.yaml", "resource: {id: /id, alias: /name, deferredAttributes: [/owner]}");
    let reference = |path: &str| format!(r#"{{{{ref "{path}" "/id"}}}}"#);
    scene.declare("/teams/core", &json!({"name": "core", "owner": reference("/users/ana")}));
    scene.declare("/users/ana", &json!({"name": "ana", "team": reference("/teams/core")}));
    let report = scene.first().await;
    assert_eq!((report.stats.created, report.outcome), (2, Outcome::Succeeded), "{report:?}");
    let report = scene.run(Reading::Each).await;
    assert_eq!((report.stats.unchanged, report.outcome), (2, Outcome::Succeeded), "{report:?}");
}

/// A directory without a resource is a collection or a resource that Git does not declare.
#[rstest]
#[case::a_collection("/groups", Ok(2))]
#[case::a_missing_resource("/groups/staff", Err("/groups/staff not found on the server"))]
#[tokio::test]
async fn transforms_read_what_git_does_not_declare(#[case] path: &str, #[case] size: Result<usize, &str>) {
    let collections = ["/groups", "/items"].map(str::to_owned).to_vec();
    let mut scene = Scene::new(Config { collections, ..Config::default() });
    for name in ["guests", "owners"] {
        scene.server().put_by_hand(&format!("/groups/{name}"), json!({"id": name}));
    }
    let sized = format!("'. + {{size: (resource(\"{path}\") | length)}}'");
    let create = format!("create: {{transforms: [{{jqExpression: {sized}}}]}}");
    let metadata = format!("operations: {{compare: {{mode: declared}}, {create}}}");
    scene.write("items/_/metadata.yaml", &metadata);
    scene.write("groups/staff/members/_/metadata.yaml", "resource: {id: /id}");
    scene.declare("/items/a", &json!({"id": "a"}));
    let report = scene.run(Reading::Each).await;
    let created = scene.server().get("/items/a").map(|item| item["size"].clone());
    assert_eq!(created, size.ok().map(|size| json!(size)), "{report:?}");
    let failures = report.failures.iter().map(|failure| failure.message.as_str());
    let causes: Vec<_> = failures.filter_map(|message| message.split(" failed: ").last()).collect();
    assert_eq!(causes, size.err().into_iter().collect::<Vec<_>>(), "{report:?}");
}

/// A user, a group with the mail of the user, and one with the mail of the group.
fn mails(mail: &str) -> Scene {
    let collections = ["/users", "/groups"].map(str::to_owned).to_vec();
    let mut scene = Scene::new(Config { collections, ..Config::default() });
    scene.declare("/users/ana", &json!({"id": "ana", "mail": mail}));
    scene.declare("/groups/staff", &json!({"id": "staff", "mail": r#"{{ref "/users/ana" "/mail"}}"#}));
    scene.declare("/groups/lead", &json!({"id": "lead", "mail": r#"{{ref "/groups/staff" "/mail"}}"#}));
    scene
}

/// The plan compares the groups with the values before the update of the user.
#[rstest]
#[case::each(Some(Reading::Each))]
#[case::by_lists(Some(Reading::Bulk))]
#[case::incremental(None)]
#[tokio::test]
async fn an_update_reaches_the_resources_that_refer_to_it(#[case] reading: Option<Reading>) {
    let mut scene = mails("ana@a.test");
    let report = scene.run(Reading::Each).await;
    assert_eq!((report.stats.created, report.outcome), (3, Outcome::Succeeded), "{report:?}");
    assert_eq!(report.stats.retried, 0, "{report:?}");

    scene.declare("/users/ana", &json!({"id": "ana", "mail": "ana@b.test"}));
    let report = match reading {
        Some(reading) => scene.run(reading).await,
        None => scene.run_over(&["/users/ana"]).await,
    };
    assert_eq!((report.stats.updated, report.outcome), (3, Outcome::Succeeded), "{report:?}");
    for path in ["/groups/staff", "/groups/lead"] {
        assert_eq!(scene.server().get(path).unwrap()["mail"], "ana@b.test", "{path}");
    }
    assert_eq!((report.stats.unchanged, report.stats.targeted), (0, 3), "{report:?}");
}

/// The body of its update has the value before the update of the user.
#[tokio::test]
async fn an_updated_resource_gets_the_new_values_of_others() {
    let mut scene = mails("ana@a.test");
    scene.run(Reading::Each).await;
    scene.declare("/users/ana", &json!({"id": "ana", "mail": "ana@b.test"}));
    let reference = r#"{{ref "/users/ana" "/mail"}}"#;
    scene.declare("/groups/staff", &json!({"id": "staff", "mail": reference, "size": 2}));
    scene.remove("/groups/lead");
    let report = scene.run_over(&["/users/ana", "/groups/staff"]).await;
    assert_eq!((report.stats.updated, report.outcome), (2, Outcome::Succeeded), "{report:?}");
    assert_eq!(scene.server().get("/groups/staff").unwrap()["mail"], "ana@b.test");
    assert_eq!((report.stats.unchanged, report.stats.targeted), (0, 2), "{report:?}");
}

/// Each pass of a run reaches one more resource.
#[tokio::test]
async fn a_chain_of_references_that_is_too_long_is_a_failure() {
    let mut scene = mails("ana@a.test");
    for number in 0..4 {
        let other = if number == 0 { "/groups/lead".to_owned() } else { format!("/groups/g{}", number - 1) };
        let mail = format!(r#"{{{{ref "{other}" "/mail"}}}}"#);
        scene.declare(&format!("/groups/g{number}"), &json!({"id": format!("g{number}"), "mail": mail}));
    }
    scene.run(Reading::Each).await;
    scene.declare("/users/ana", &json!({"id": "ana", "mail": "ana@b.test"}));
    let report = scene.run_over(&["/users/ana"]).await;
    assert_eq!(report.outcome, Outcome::PartiallyFailed, "{report:?}");
    let failed: Vec<_> = report.failures.iter().map(|failure| failure.path.to_string()).collect();
    assert_eq!(failed.len(), 1, "{report:?}");
    let report = scene.run_over(&[&failed[0]]).await;
    assert_eq!(report.outcome, Outcome::Succeeded, "{report:?}");
    assert_eq!(scene.server().get("/groups/g3").unwrap()["mail"], "ana@b.test");
}

/// Transforms of another resource read it.
#[tokio::test]
async fn an_update_reaches_the_resources_whose_transforms_read_it() {
    let collections = ["/users", "/groups"].map(str::to_owned).to_vec();
    let mut scene = Scene::new(Config { collections, ..Config::default() });
    let sets = r#"{transforms: [{jqExpression: '.mail = resource("/users/ana").mail'}]}"#;
    let equal = r#"{transforms: [{jqExpression: 'if .mail == resource("/users/ana").mail then del(.mail) else . end'}]}"#;
    let metadata = format!("operations: {{create: {sets}, update: {sets}, compare: {equal}}}");
    scene.write("groups/_/metadata.yaml", &metadata);
    scene.declare("/users/ana", &json!({"id": "ana", "mail": "ana@a.test"}));
    scene.declare("/groups/staff", &json!({"id": "staff"}));
    scene.run(Reading::Each).await;
    scene.declare("/users/ana", &json!({"id": "ana", "mail": "ana@b.test"}));
    scene.run_over(&["/users/ana"]).await;
    assert_eq!(scene.server().get("/groups/staff").unwrap()["mail"], "ana@b.test");
}

/// The value of one reference decides whether another one is needed, and which.
#[rstest]
#[case::condition(
    r#"{{if eq (ref "/users/ana" "/kind") "lead"}}{{ref "/users/bob" "/id"}}{{end}}"#,
    Ok("bob")
)]
#[case::path(r#"{{ref (printf "/users/%s" (ref "/users/ana" "/peer")) "/kind"}}"#, Ok("dev"))]
#[case::not_needed(
    r#"{{if eq (ref "/users/ana" "/kind") "ref"}}{{ref "/users/none" "/id"}}{{end}}x"#,
    Ok("x")
)]
#[case::missing(
    r#"{{ref (printf "/users/%s" (ref "/users/ana" "/id")) "/none"}}"#,
    Err("the resource has no value there")
)]
#[tokio::test]
async fn a_reference_may_depend_on_another(#[case] template: &str, #[case] expected: Result<&str, &str>) {
    let collections = ["/users", "/groups/bob", "/groups/dev", "/groups/x"].map(str::to_owned).to_vec();
    let mut scene = Scene::new(Config { collections, ..Config::default() });
    let metadata = format!("resource: {{remoteCollectionPath: '/groups/{template}'}}");
    scene.write("groups/_/metadata.yaml", &metadata);
    scene.declare("/users/ana", &json!({"id": "ana", "kind": "lead", "peer": "bob"}));
    scene.declare("/users/bob", &json!({"id": "bob", "kind": "dev"}));
    scene.run_over(&["/users/ana", "/users/bob"]).await;
    scene.declare("/groups/staff", &json!({"id": "staff"}));
    let report = scene.run_over(&["/groups/staff"]).await;
    match expected {
        Ok(value) => {
            assert_eq!(report.outcome, Outcome::Succeeded, "{report:?}");
            assert!(scene.server().get(&format!("/groups/{value}/staff")).is_some());
        }
        Err(reason) => assert!(report.failures[0].message.contains(reason), "{report:?}"),
    }
}

/// A resource that has the id of another one, which the server assigned.
#[tokio::test]
async fn an_id_may_be_that_of_another_resource() {
    let mut scene = Scene::new(Config {
        collections: vec!["/users".to_owned(), "/profiles".to_owned()],
        server_ids: vec!["/users".to_owned()],
        ..Config::default()
    });
    scene.write("users/_/metadata.yaml", "resource: {id: /id, alias: /name}");
    scene.write("profiles/_/metadata.yaml", "resource: {id: /id}");
    scene.declare("/users/ana", &json!({"name": "ana"}));
    scene.declare("/profiles/ana", &json!({"id": r#"{{ref "/users/ana" "/id"}}"#, "text": "Ana"}));
    for created in [2, 0, 0] {
        let report = scene.run(Reading::Each).await;
        assert_eq!((report.stats.created, report.stats.failed), (created, 0), "{report:?}");
    }
}

/// The plan cannot look for a resource whose name is that of another one, which the run creates first.
#[tokio::test]
async fn a_name_that_becomes_known_in_the_run_may_exist() {
    let mut scene = Scene::new(Config {
        collections: vec!["/groups".to_owned(), "/members".to_owned()],
        server_ids: vec!["/groups".to_owned(), "/members".to_owned()],
        ..Config::default()
    });
    scene.write("groups/_/metadata.yaml", "resource: {id: /id, alias: /name}");
    scene.write("members/_/metadata.yaml", "resource: {id: /id, alias: /group}");
    scene.declare("/groups/dev", &json!({"name": "dev"}));
    scene.declare("/members/m", &json!({"group": r#"{{ref "/groups/dev" "/name"}}"#, "size": 2}));
    scene.server().put_by_hand("/members/77", json!({"id": "77", "group": "dev", "size": 1}));
    let report = scene.run(Reading::Each).await;
    assert_eq!((report.stats.created, report.stats.updated), (1, 1), "{report:?}\n{:?}", scene.asked());
    assert_eq!(scene.server().get("/members/77").unwrap()["size"], 2);
    assert_eq!(scene.run(Reading::Each).await.stats.unchanged, 2);
}

/// The account and the mailbox refer to each other, and the name of the account is that of the user.
#[tokio::test]
async fn a_name_that_becomes_known_does_not_need_deferred_attributes() {
    let collections = ["/users", "/accounts", "/boxes"].map(str::to_owned).to_vec();
    let mut scene = Scene::new(Config { server_ids: collections.clone(), collections, ..Config::default() });
    scene.write("_/metadata.yaml", "resource: {id: /id, alias: /name}");
    scene.write("accounts/_/metadata.yaml", "resource: {deferredAttributes: [/box]}");
    scene.declare("/users/ana", &json!({"name": "ana"}));
    let (user, box_id) = (r#"{{ref "/users/ana" "/name"}}"#, r#"{{ref "/boxes/b" "/id"}}"#);
    scene.declare("/accounts/ana", &json!({"name": user, "box": box_id}));
    scene.declare("/boxes/b", &json!({"name": "b", "account": r#"{{ref "/accounts/ana" "/id"}}"#}));
    let report = scene.run(Reading::Each).await;
    assert_eq!((report.stats.created, report.stats.failed), (3, 0), "{report:?}\n{:?}", scene.asked());
    assert_eq!(scene.run(Reading::Each).await.stats.unchanged, 3);
}

/// A domain with a group, whose members and their roles have addresses with the ids of the group and of the user.
fn domain() -> Scene {
    let mut scene = Scene::new(Config {
        collections: ["/domains", "/groups", "/users", "/groups/*/users", "/roles-w-2-w-3"]
            .map(str::to_owned)
            .to_vec(),
        server_ids: ["/domains", "/groups", "/users"].map(str::to_owned).to_vec(),
        upsert: true,
        ..Config::default()
    });
    let named = "id: /id, alias: /name";
    scene.write("domains/_/metadata.yaml", &format!("resource: {{{named}}}"));
    for kind in ["groups", "users"] {
        let rules = format!("resource: {{{named}, remoteCollectionPath: /{kind}}}");
        scene.write(&format!("domains/_/{kind}/_/metadata.yaml"), &rules);
    }
    scene.declare("/domains/acme", &json!({"name": "acme"}));
    scene.declare("/domains/acme/groups/staff", &json!({"name": "staff"}));
    scene
}

/// The create of the user shows the id of the domain, but not that of the group.
#[rstest]
#[case::reference(r#"./{{ref (printf "/domains/%s/users/%s" .aliases.domain .name) "/id"}}"#)]
#[case::name("./{{/name}}")]
#[tokio::test]
async fn a_parent_that_the_run_does_not_create_keeps_its_id(#[case] path: &str) {
    let mut scene = domain();
    let member = "resource: {remoteCollectionPath: '/groups/{{/ids/group}}/users', id: /name, alias: /name}";
    let create =
        format!("operations: {{get: {{from: list}}, create: {{method: PUT, path: {}}}}}", json!(path));
    scene.write("domains/_/groups/_/members/_/metadata.yaml", &format!("{member}\n{create}"));
    assert_eq!(scene.run(Reading::Each).await.stats.created, 2);

    scene.declare("/domains/acme/users/carl", &json!({"name": "carl"}));
    scene.declare("/domains/acme/groups/staff/members/carl", &json!({"name": "carl"}));
    // Members are sent after users.
    scene.declare("/domains/acme/a/one", &json!({"id": "one"}));
    let report = scene.run(Reading::Each).await;
    let asked = scene.asked();
    assert!(!asked.iter().any(|request| request.contains("/groups/staff/users")), "{asked:?}");
    assert_eq!((report.stats.created, report.stats.failed), (3, 0), "{report:?}\n{asked:?}");
}

/// The role is below the group to which the user refers.
#[tokio::test]
async fn a_reference_needs_one_resource_and_names_parents_as_the_repository_does() {
    let mut scene = domain();
    scene.write(
        "domains/_/groups/_/users/_/roles/_/metadata.yaml",
        r#"resource:
  id: /name
  alias: /name
  remoteCollectionPath: '/roles-{{/ids/group}}-{{ref (printf "/domains/%s/users/%s" .aliases.domain .aliases.user) "/id"}}'
operations: {create: {method: PUT, path: './{{/name}}'}}"#,
    );
    let group = r#"{{ref "/domains/acme/groups/staff" "/id"}}"#;
    scene.declare("/domains/acme/users/carl", &json!({"name": "carl", "group": group}));
    scene.declare("/domains/acme/groups/staff/users/carl/roles/lead", &json!({"name": "lead"}));
    let report = scene.run(Reading::Each).await;
    assert_eq!((report.stats.created, report.stats.failed), (4, 0), "{report:?}\n{:?}", scene.asked());
    assert_eq!(scene.run(Reading::Each).await.stats.unchanged, 4);
}

/// Later runs could not resolve the reference.
#[rstest]
#[case::still_refers(r#"{{ref "/users/ana" "/mail"}}"#, 0)]
#[case::no_longer_refers("list@example.test", 1)]
#[tokio::test]
async fn a_resource_that_others_refer_to_is_not_deleted(#[case] mail: &str, #[case] pruned: usize) {
    let mut scene = Scene::new(Config {
        collections: vec!["/users".to_owned(), "/groups".to_owned()],
        ..Config::default()
    });
    let ana = json!({"id": "ana", "mail": "ana@example.test"});
    scene.declare("/users/ana", &ana);
    scene.declare("/groups/staff", &json!({"id": "staff", "mail": r#"{{ref "/users/ana" "/mail"}}"#}));
    assert_eq!(scene.run(Reading::Each).await.stats.created, 2);

    scene.remove("/users/ana");
    scene.declare("/groups/staff", &json!({"id": "staff", "mail": mail}));
    let report = scene.run_pruning("/users/ana", &ana.to_string()).await;
    assert_eq!((report.stats.pruned, report.stats.failed), (pruned, 1 - pruned), "{report:?}");
    let texts: Vec<_> = report.failures.iter().map(|failure| failure.message.as_str()).collect();
    let refused = ["not deleted: /users/ana: /groups/staff refers to it; remove the reference first"];
    assert_eq!(texts, refused[..1 - pruned]);
}

/// The directory has another name than the resource: only its payload names it on the server.
#[rstest]
#[tokio::test]
async fn a_reference_leads_to_the_declared_names_of_the_other_resource(#[values(true, false)] exists: bool) {
    let collections = ["/teams", "/users"].map(str::to_owned).to_vec();
    let mut scene = Scene::new(Config { server_ids: collections.clone(), collections, ..Config::default() });
    scene.write("_/metadata.yaml", "resource: {id: /id, alias: /name}");
    scene.declare("/teams/core", &json!({"name": "Core team"}));
    scene.declare("/users/ana", &json!({"name": "ana", "team": r#"{{ref "/teams/core" "/id"}}"#}));
    if exists {
        scene.server().put_by_hand("/teams/t9", json!({"id": "t9", "name": "Core team"}));
    }
    for created in [2 - usize::from(exists), 0] {
        let report = scene.run(Reading::Each).await;
        assert_eq!((report.stats.created, report.outcome), (created, Outcome::Succeeded), "{report:?}");
    }
}

/// What the server has is not known when the references are found.
#[rstest]
#[case::header(
    "query: {rev: '{{$observed.size}}'}, headers: {X-Group: '{{ref \"/groups/staff\" \"/number\"}}'}"
)]
#[case::one_text("query: {rev: '{{$observed.size}}-{{ref \"/groups/staff\" \"/number\"}}'}")]
#[tokio::test]
async fn references_beside_present_values_are_read(#[case] update: &str) {
    let collections = vec!["/groups".to_owned(), "/items".to_owned()];
    let mut scene = Scene::new(Config { collections, ..Config::default() });
    scene.write("items/_/metadata.yaml", &format!("operations: {{update: {{{update}}}}}"));
    scene.declare("/groups/staff", &json!({"id": "staff", "number": 7}));
    scene.declare("/items/a", &json!({"id": "a", "size": 2}));
    for item in ["/groups/staff", "/items/a"] {
        let id = item.rsplit('/').next();
        scene.server().put_by_hand(item, json!({"id": id, "number": 7, "size": 1}));
    }
    scene.declare("/groups/staff", &json!({"id": "staff", "number": 7, "size": 1}));
    let report = scene.run(Reading::Each).await;
    assert_eq!((report.outcome, report.stats.updated), (Outcome::Succeeded, 1), "{report:?}");
}
