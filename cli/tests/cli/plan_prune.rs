//! `plan --prune` and `resource apply --prune`: resources that Git no longer declares.

use std::fs;

use rstest::rstest;
use serde_json::json;

use crate::api_server::{Answer, ApiServer, Ids, Request, Store};
use crate::environment::Home;
use crate::git::{git, git_at};
use crate::world::World;

/// A checkout without files, and the server of its context. `http` are further settings of the server.
pub fn checkout(server: &ApiServer, http: &str) -> Home {
    Home::with_catalogue(&format!(
        "currentContext: dev\ncontexts:\n- name: dev\n  repository: {{git: {{local: {{baseDir: <home>/repo}}}}}}\n  \
         managedServer: {{http: {{url: '{}', {http} auth: {{customHeaders: [{{header: K, value: v}}]}}}}}}\n",
        server.url()
    ))
}

pub fn commit(home: &Home) {
    let run = home.run(&["repository", "commit", "-m", "Change"]);
    assert_eq!(run.code, 0, "{run}");
}

/// A checkout that declared `rio`, `oslo` and `lima`, of which only `rio` is left. `zoe` was never declared.
fn shops() -> World {
    let world = World::with_repository("git: {local: {baseDir: <home>/repo}}", &["/shops"], &[]);
    for shop in ["lima", "oslo", "rio"] {
        world.declare(&format!("shops/{shop}/resource.yaml"), &format!("id: {shop}\n"));
        world.live(&format!("/shops/{shop}"), &format!(r#"{{"id": "{shop}"}}"#));
    }
    world.live("/shops/zoe", r#"{"id": "zoe"}"#);
    commit(&world.home);
    for shop in ["lima", "oslo"] {
        fs::remove_dir_all(world.home.path(&format!("repo/shops/{shop}"))).unwrap();
        commit(&world.home);
    }
    world
}

#[rstest]
#[case::shallow("--depth=1", "shop is a shallow clone", "git fetch --unshallow")]
#[case::partial("--filter=blob:none", "shop is a partial clone", "clone it without --filter")]
fn a_clone_without_the_whole_history_is_refused(
    #[case] kind: &str,
    #[case] name: &str,
    #[case] correction: &str,
) {
    let world = shops();
    let repository = world.home.path("repo");
    git(&repository, &["config", "uploadpack.allowFilter", "true"]);
    let url = format!("file://{}", repository.display());
    git(&world.home.path("."), &["clone", "--quiet", kind, &url, "shop"]);
    let base = format!("repository.git.local.baseDir={}", world.home.path("shop").display());
    for command in [&["plan", "/", "--prune"][..], &["resource", "apply", "/", "-r", "--prune", "--yes"]] {
        let run = world.run(&[command, &["--set", &base]].concat());
        assert_eq!(run.code, 2, "{run}");
        assert!(run.stderr.contains(name) && run.stderr.contains(correction), "{run}");
    }
    assert!(world.writes().is_empty());
    let run = world.run(&["plan", "/", "--set", &base]);
    assert_eq!(run.code, 0, "{run}");
}

#[test]
fn resources_that_were_declared_once_are_deleted() {
    let world = shops();
    insta::assert_snapshot!(world.run(&["plan", "/", "--prune"]), @r"
    exit 0
    --- stdout
    - /shops/lima
    - /shops/oslo
    Plan: 0 to create, 0 to update, 2 to delete, 1 unchanged.
    --- stderr
    ");
    assert_eq!(world.run(&["plan", "/", "--exit-code"]).code, 0);
    assert_eq!(world.run(&["plan", "/", "--prune", "--exit-code"]).code, 7);
    let run = world.run(&["resource", "apply", "/", "-r", "--prune", "--yes"]);
    insta::assert_snapshot!(run, @r"
    exit 0
    --- stdout
    --- stderr
    - /shops/lima deleted
    - /shops/oslo deleted
    Applied: 0 created, 0 updated, 2 deleted, 1 unchanged, 0 failed.
    [OK] command executed successfully.
    ");
    let mut writes = world.writes();
    writes.sort();
    assert_eq!(writes, ["DELETE /shops/lima", "DELETE /shops/oslo"]);
    assert_eq!(world.run(&["plan", "/", "--prune", "--exit-code"]).code, 0);
    assert!(world.observed("/shops/zoe").is_some());
}

#[test]
fn a_saved_plan_prunes() {
    let world = shops();
    let file = world.home.path("plan.json").display().to_string();
    assert_eq!(world.run(&["plan", "/", "--prune", "--out", &file]).code, 0);
    let run = world.run(&["resource", "apply", "--plan", &file]);
    assert_eq!(run.code, 0, "{run}");
    let mut writes = world.writes();
    writes.sort();
    assert_eq!(writes, ["DELETE /shops/lima", "DELETE /shops/oslo"]);
    assert_eq!(world.run(&["resource", "apply", "--plan", &file]).code, 5);
}

/// A job that runs for each push prunes what the push removed. What is made by hand at an earlier path stays.
#[test]
fn only_what_was_removed_after_the_base_is_pruned() {
    let world = shops();
    let run = world.run(&["resource", "apply", "/", "-r", "--prune", "--prune-base", "HEAD~1", "--yes"]);
    assert_eq!(run.code, 0, "{run}");
    assert_eq!(world.writes(), ["DELETE /shops/oslo"]);
    // Nothing is left below this path.
    let run = world.run(&["plan", "/shops/oslo", "--prune", "--prune-base", "HEAD"]);
    assert!(run.stdout.starts_with("Plan: 0 to create, 0 to update, 0 to delete"), "{run}");
    // The whole history is not necessary.
    let url = format!("file://{}", world.home.path("repo").display());
    git(&world.home.path("."), &["clone", "--quiet", "--depth=2", &url, "shop"]);
    world.live("/shops/oslo", r#"{"id": "oslo"}"#);
    let set = format!("repository.git.local.baseDir={}", world.home.path("shop").display());
    let run = world.run(&["plan", "/", "--prune", "--prune-base", "HEAD~1", "--set", &set]);
    assert!(run.stdout.starts_with("- /shops/oslo\nPlan: "), "{run}");
}

#[test]
fn what_a_merged_branch_removed_is_pruned() {
    let world = shops();
    let repository = world.home.path("repo");
    let git = |args: &[&str]| git(&repository, args);
    git(&["checkout", "--quiet", "-b", "side"]);
    git(&["rm", "--quiet", "-r", "shops/rio"]);
    git(&["commit", "--quiet", "-m", "Without rio"]);
    git(&["checkout", "--quiet", "-"]);
    git(&["commit", "--quiet", "--allow-empty", "-m", "More"]);
    git(&["merge", "--quiet", "--no-ff", "side"]);
    let run = world.run(&["plan", "/", "--prune", "--prune-base", "HEAD^1"]);
    assert!(run.stdout.starts_with("- /shops/rio\nPlan: "), "{run}");
}

/// A branch from before the base still declares what the history of the base removed.
#[test]
fn what_the_base_does_not_declare_is_not_pruned_after_a_merge() {
    let world = shops();
    let repository = world.home.path("repo");
    let git = |args: &[&str]| git_at(&repository, "2036-01-31T12:00:00+01:00", args);
    git(&["branch", "trunk"]);
    git(&["checkout", "--quiet", "-b", "side", "HEAD~1"]);
    git(&["commit", "--quiet", "--allow-empty", "-m", "More"]);
    git(&["merge", "--quiet", "--no-ff", "trunk"]);
    let run = world.run(&["plan", "/", "--prune", "--prune-base", "trunk"]);
    assert!(run.stdout.starts_with("Plan: 0 to create, 0 to update, 0 to delete"), "{run}");
}

#[test]
fn a_saved_plan_keeps_its_base() {
    let world = shops();
    let file = world.home.path("plan.json").display().to_string();
    let run = world.run(&["plan", "/", "--prune", "--prune-base", "HEAD~1", "--out", &file]);
    assert_eq!(run.code, 0, "{run}");
    assert_eq!(world.run(&["resource", "apply", "--plan", &file]).code, 0);
    assert_eq!(world.writes(), ["DELETE /shops/oslo"]);
}

#[rstest]
#[case::unknown("4242424242424242424242424242424242424242")]
#[case::of_another_branch("other")]
fn a_base_that_is_not_in_the_history_is_refused(#[case] base: &str) {
    let world = shops();
    let repository = world.home.path("repo");
    let other = git(&repository, &["commit-tree", "HEAD^{tree}", "-m", "Other"]);
    git(&repository, &["branch", "other", &other]);
    let run = world.run(&["resource", "apply", "/", "-r", "--prune", "--prune-base", base, "--yes"]);
    assert_eq!(run.code, 2, "{run}");
    assert!(run.stderr.contains(&format!("does not contain the commit \"{base}\"")), "{run}");
    assert!(world.writes().is_empty());
}

#[test]
fn the_last_resource_can_be_pruned() {
    let world = shops();
    fs::remove_dir_all(world.home.path("repo/shops/rio")).unwrap();
    assert_eq!(world.run(&["repository", "commit", "-m", "None"]).code, 0);
    let run = world.run(&["plan", "/", "--prune"]);
    assert!(run.stdout.ends_with("Plan: 0 to create, 0 to update, 3 to delete, 0 unchanged.\n"), "{run}");
}

/// Candidates for deletion are among the resources that a failure counts.
#[rstest]
#[case::plan(&["plan", "/", "--prune"])]
#[case::apply(&["resource", "apply", "/", "-r", "--prune", "--yes"])]
fn failures_are_a_part_of_all_resources(#[case] args: &[&str]) {
    let world = shops();
    let url = world.server.url();
    let catalogue = world.home.catalogue().replace(&url, "http://127.0.0.1:1");
    world.home.write(".declarest/configs/contexts.yaml", &catalogue);
    let run = world.run(args);
    assert!(run.stderr.contains("3 of 3 resources failed"), "{run}");
}

#[rstest]
#[case::without_consent(&["resource", "apply", "/", "-r", "--prune"], "confirm it with --yes")]
#[case::not_recursive(&["resource", "apply", "/", "--prune", "--yes"], "--prune needs --recursive")]
#[case::plan_not_recursive(&["plan", "/", "--prune", "--recursive=false"], "--prune needs --recursive")]
fn what_is_not_clear_is_refused(#[case] args: &[&str], #[case] message: &str) {
    let world = shops();
    let run = world.run(args);
    assert_eq!(run.code, 2, "{run}");
    assert!(run.stderr.contains(message), "{run}");
    assert!(world.writes().is_empty());
}

#[test]
fn a_dry_run_needs_no_consent() {
    let run = shops().run(&["resource", "apply", "/", "-r", "--prune", "--dry-run"]);
    assert_eq!(run.code, 0, "{run}");
    assert!(run.stdout.contains("- /shops/lima\n"), "{run}");
}

#[test]
fn uncommitted_changes_are_refused() {
    let world = shops();
    world.declare("shops/other/resource.yaml", "id: lima\n");
    let run = world.run(&["plan", "/", "--prune"]);
    assert_eq!(run.code, 2, "{run}");
    assert!(run.stderr.contains("clean git worktree"), "{run}");
}

#[test]
fn a_plain_directory_has_no_history() {
    let world = World::new(&["/shops"], &[("shops/rio/resource.yaml", "id: rio\n")]);
    let run = world.run(&["plan", "/", "--prune"]);
    assert_eq!(run.code, 2, "{run}");
    assert!(run.stderr.contains("--prune needs a Git repository"), "{run}");
}

/// A former revision cannot be corrected, so its faults must not fail each later command.
#[test]
fn a_former_name_that_decides_nothing_is_kept() {
    let world = shops();
    world.declare("_/metadata.yaml", "{}\n");
    world.declare("shops/_/metadata.yaml", "resource: {id: /id, alias: /name}\n");
    world.declare("shops/bad/resource.yaml", "name: x/y\n");
    assert_eq!(world.run(&["repository", "commit", "-m", "Bad"]).code, 0);
    fs::remove_dir_all(world.home.path("repo/shops/bad")).unwrap();
    assert_eq!(world.run(&["repository", "commit", "-m", "No bad"]).code, 0);
    let run = world.run(&["plan", "/shops", "--prune"]);
    assert!(run.stdout.contains("= /shops/bad kept: ") && run.stdout.contains("x/y"), "{run}");
    assert_eq!(run.code, 0, "{run}");
}

const FROM_LIST: &str = "operations: {get: {from: list}}\n";

/// The page of a gateway decides nothing, and the next attempt may get another answer. A name that the server rejects is a
/// fault of the former revision.
#[rstest]
#[case::page_of_a_gateway(
    "{}",
    Answer::text(200, "text/html", "<p>Log in</p>"),
    2,
    "cannot decode the answer"
)]
#[case::page_instead_of_a_list(
    FROM_LIST,
    Answer::text(200, "text/html", "<p>Log in</p>"),
    2,
    "is not a list (an HTML page"
)]
#[case::another_shape(FROM_LIST, Answer::json(200, &json!({"a": [], "b": []})), 0, "= /shops/oslo kept: ")]
#[case::rejected_name("{}", Answer::json(400, &json!({"error": "name"})), 0, "= /shops/oslo kept: ")]
fn a_former_resource_is_not_kept_because_of_an_unusable_answer(
    #[case] metadata: &str,
    #[case] answer: Answer,
    #[case] code: i32,
    #[case] text: &str,
) {
    let server = ApiServer::start(&["/shops"], move |request, store| match request.path.as_str() {
        "/shops" | "/shops/oslo" => answer.clone(),
        _ => request.rest(store, Ids::Stated("id")),
    });
    let home = checkout(&server, "");
    home.write("repo/shops/_/metadata.yaml", metadata);
    home.write("repo/shops/oslo/resource.json", r#"{"id": "oslo"}"#);
    commit(&home);
    fs::remove_dir_all(home.path("repo/shops/oslo")).unwrap();
    commit(&home);
    let run = home.run(&["plan", "/", "--prune"]);
    assert_eq!(run.code, code, "{run}");
    assert!(run.stdout.contains(text) || run.stderr.contains(text), "{run}");
    assert_eq!(run.stderr.contains("state --prune-base REVISION"), code != 0, "{run}");
}

/// Users state it when a plan shows the deletion.
#[rstest]
#[case::with_the_removal("keep", true, "metadata states resource.onRemove: keep")]
#[case::later("keep", false, "metadata states resource.onRemove: keep")]
#[case::reset("{reset: {tier: free}}", false, "the present metadata states a reset in resource.onRemove")]
fn metadata_after_the_last_declaration_can_keep(
    #[case] on_remove: &str,
    #[case] at_once: bool,
    #[case] reason: &str,
) {
    let world = World::with_repository("git: {local: {baseDir: <home>/repo}}", &["/shops"], &[]);
    world.live("/shops/oslo", r#"{"id": "oslo"}"#);
    world.declare("shops/oslo/resource.yaml", "id: oslo\n");
    commit(&world.home);
    fs::remove_dir_all(world.home.path("repo/shops/oslo")).unwrap();
    world.declare("tags/a/resource.yaml", "id: a\n");
    if !at_once {
        commit(&world.home);
        let run = world.run(&["plan", "/shops", "--prune"]);
        assert!(run.stdout.contains("- /shops/oslo"), "{run}");
    }
    world.declare("shops/_/metadata.yaml", &format!("resource: {{onRemove: {on_remove}}}\n"));
    commit(&world.home);
    let run = world.run(&["resource", "apply", "/shops", "-r", "--prune", "--yes"]);
    assert!(run.code == 0 && run.stderr.contains(&format!("= /shops/oslo kept: {reason}")), "{run}");
    assert_eq!(world.writes(), [""; 0]);
}

/// The server deletes the profile together with its realm. Formerly, it was a singleton, which is kept by default.
#[test]
fn the_parent_of_what_present_metadata_keeps_is_kept() {
    let world =
        World::with_repository("git: {local: {baseDir: <home>/repo}}", &["/realms", "/realms/*/parts"], &[]);
    world.live("/realms/rio", r#"{"id": "rio"}"#);
    world.live("/realms/rio/parts/profile", r#"{"id": "profile"}"#);
    world.declare("realms/rio/resource.yaml", "id: rio\n");
    world.declare("realms/rio/parts/profile/resource.yaml", "id: profile\n");
    world.declare("realms/_/parts/_/metadata.yaml", "resource: {singleton: true}\n");
    commit(&world.home);
    fs::remove_dir_all(world.home.path("repo/realms/rio")).unwrap();
    world.declare("realms/_/parts/_/metadata.yaml", "resource: {onRemove: keep}\n");
    commit(&world.home);
    let run = world.run(&["resource", "apply", "/realms", "-r", "--prune", "--yes"]);
    assert!(run.stderr.contains("= /realms/rio/parts/profile kept: "), "{run}");
    assert_eq!(world.writes(), [""; 0], "{run}");
}

/// After `git mv`, both paths mean one resource.
#[test]
fn what_is_kept_is_printed_with_its_reason() {
    let world = shops();
    let (old, new) = (world.home.path("repo/shops/rio"), world.home.path("repo/shops/hq"));
    fs::rename(old, new).unwrap();
    assert_eq!(world.run(&["repository", "commit", "-m", "Rio is hq"]).code, 0);
    let kept = "= /shops/rio kept: Git declares the same resource at /shops/hq\n";
    let run = world.run(&["plan", "/", "--prune"]);
    assert!(run.stdout.contains(kept) && !run.stdout.contains("- /shops/rio"), "{run}");
    let run = world.run(&["plan", "/", "--prune", "-o", "markdown"]);
    assert!(run.stdout.contains("- **kept** `/shops/rio`: Git declares the same"), "{run}");
    let run = world.run(&["resource", "apply", "/", "-r", "--prune", "--yes"]);
    assert!(run.code == 0 && run.stderr.contains(kept), "{run}");
    assert!(world.observed("/shops/rio").is_some());
}

/// The API is one of remote procedures, whose deletions have no effect. Without its metadata, the server seems to have no
/// shops.
#[rstest]
#[case::without_metadata(&["shops"])]
#[case::with_metadata(&["shops/rio"])]
fn a_deletion_is_confirmed_with_the_metadata_that_declared_the_resource(#[case] removed: &[&str]) {
    let server =
        ApiServer::start(&["/shops"], |request: &Request, _: &mut Store| match request.path.as_str() {
            "/api/list" => Answer::json(200, &json!({"rio": {"name": "rio"}})),
            _ => Answer::missing(),
        });
    let home = checkout(&server, "");
    let metadata = "resource: {id: /name, alias: /name}\noperations:\n  list: {method: POST, path: /api/list, transforms: \
                    [{jqExpression: '[.[]]'}]}\n  get: {from: list}\n  delete: {method: POST, path: /api/del, body: \
                    {name: '{{/name}}'}}\n";
    home.write("repo/shops/_/metadata.yaml", metadata);
    home.write("repo/shops/rio/resource.yaml", "name: rio\n");
    home.write("repo/README.md", "shops\n");
    commit(&home);
    for directory in removed {
        fs::remove_dir_all(home.path(&format!("repo/{directory}"))).unwrap();
    }
    commit(&home);
    let run = home.run(&["resource", "apply", "/", "-r", "--prune", "--yes"]);
    assert_eq!(run.code, 5, "{run}");
    assert!(run.stderr.contains("found nothing, but the resource still exists"), "{run}");
}
