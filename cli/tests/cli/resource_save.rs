//! `resource save`.

use rstest::rstest;

use crate::rest_server::Matcher;
use crate::world::World;

fn shops() -> World {
    let world = World::new(&["/shops", "/shops/*/tills"], &[]);
    world.live("/shops/rio", r#"{"id": "rio", "tier": "gold"}"#);
    world.live("/shops/lima", r#"{"id": "lima", "tier": "free"}"#);
    world.live("/shops/rio/tills/t1", r#"{"id": "t1"}"#);
    world.live("/shops/lima/tills/t1", r#"{"id": "t1", "old": true}"#);
    world.live("/shops/lima/tills/t2", r#"{"id": "t2"}"#);
    world
}

fn files(world: &World) -> Vec<String> {
    fn walk(directory: &std::path::Path, root: &std::path::Path, found: &mut Vec<String>) {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(&path, root, found);
            } else {
                found.push(path.strip_prefix(root).unwrap().display().to_string());
            }
        }
    }
    let root = world.home.path("repo");
    let mut found = Vec::new();
    walk(&root, &root, &mut found);
    found.sort();
    found
}

#[rstest]
#[case::resource(&["/shops/rio"], &["shops/rio/resource.json"])]
#[case::collection(&["/shops/"], &["shops/lima/resource.json", "shops/rio/resource.json"])]
#[case::items(&["/shops/", "--mode", "items"], &["shops/lima/resource.json", "shops/rio/resource.json"])]
#[case::as_one(&["/shops/", "--mode", "single"], &["shops/resource.json"])]
#[case::excluded(&["/shops/", "--exclude", "lima"], &["shops/rio/resource.json"])]
#[case::excluded_by_path(&["/shops/", "--exclude", "/shops/lima,x", "--exclude", "rio"], &[])]
#[case::resource_with_a_slash(&["/shops/rio/"], &["shops/rio/resource.json"])]
#[case::wildcard(&["/shops/_/tills/t1"], &["shops/lima/tills/t1/resource.json", "shops/rio/tills/t1/resource.json"])]
#[case::wildcard_with_gaps(&["/shops/_/tills/t2"], &["shops/lima/tills/t2/resource.json"])]
#[case::last_wildcard(&["/shops/_"], &["shops/lima/resource.json", "shops/rio/resource.json"])]
fn from_the_server(#[case] args: &[&str], #[case] saved: &[&str]) {
    let world = shops();
    let run = world.run(&[&["resource", "save"], args].concat());
    assert_eq!(run.to_string(), "exit 0\n--- stdout\n--- stderr\n[OK] command executed successfully.\n");
    assert_eq!(files(&world), saved);
    assert!(world.writes().is_empty());
}

#[test]
fn the_content_is_that_of_the_server() {
    let world = shops();
    assert_eq!(world.run(&["resource", "save", "/shops/rio"]).code, 0);
    let saved = world.declared("shops/rio/resource.json").unwrap();
    assert_eq!(saved, "{\n  \"id\": \"rio\",\n  \"tier\": \"gold\"\n}");
    assert_eq!(world.run(&["resource", "diff", "/shops/rio"]).stdout, "No differences for /shops/rio.\n");
}

#[rstest]
#[case::absent(&["/shops/none"], 3, "/shops/none not found")]
#[case::wildcard_for_nothing(&["/shops/_/tills/none"], 3, "/shops/_/tills/none not found")]
#[case::no_list(&["/shops/rio", "--mode", "items"], 2, "is not a list")]
#[case::wildcard_with_input(&["/shops/_", "-f", "a=b"], 2, "\"_\"")]
#[case::single_and_exclude(&["/shops/", "--mode", "single", "--exclude", "a"], 2, "--exclude")]
#[case::secret_and_items(&["/shops/", "--secret", "--mode", "items"], 2, "remove --mode items")]
#[case::secret_and_exclude(&["/shops/", "--secret", "--exclude", "a"], 2, "remove --exclude")]
#[case::secret_and_attributes(&["/shops/", "--secret", "--secret-attributes"], 2, "remove --secret-attributes")]
#[case::secret_and_plaintext(&["/shops/", "--secret", "--allow-plaintext"], 2, "remove --allow-plaintext")]
#[case::secret(&["/shops/rio", "--secret"], 2, "secret provider is not configured")]
#[case::attributes(&["/shops/rio", "--secret-attributes=/pin"], 2, "secret provider is not configured")]
#[case::push_without_git(&["/shops/rio", "--push"], 2, "--push needs a Git repository")]
#[case::traversal(&["/shops/../x"], 2, "logical path must not contain traversal segments")]
fn refused(#[case] args: &[&str], #[case] code: i32, #[case] message: &str) {
    let world = shops();
    let run = world.run(&[&["resource", "save"], args].concat());
    assert_eq!(run.code, code, "{run}");
    assert!(run.stderr.contains(message), "{run}");
    assert!(run.stderr.starts_with("[ERROR] command execution failed: "), "{run}");
    assert_eq!(files(&world), Vec::<String>::new());
}

#[rstest]
#[case::assignments("/shops/ava", &["-f", "id=ava,a.b=c"], "", "shops/ava/resource.json")]
#[case::stdin("/shops/ava", &["-f", "-"], "{\"id\":1}", "shops/ava/resource.json")]
#[case::type_of_input("/shops/ava", &["--content-type", "yaml"], "id: 1", "shops/ava/resource.yaml")]
#[case::text("/shops/ava/note", &["--content-type", "text"], "hello", "shops/ava/note/resource.txt")]
#[case::binary("/shops/ava/key", &["--content-type", "binary"], "\u{1}", "shops/ava/key/resource.bin")]
#[case::list("/shops", &[], "[{\"name\":\"ava\"}]", "shops/ava/resource.json")]
#[case::items("/shops", &[], "{\"items\":[{\"clientId\":\"ava\"}]}", "shops/ava/resource.json")]
#[case::items_with_paths("/shops", &[], "[{\"LogicalPath\":\"/x/y\",\"Payload\":{\"a\":1}}]", "x/y/resource.json")]
fn from_input(#[case] path: &str, #[case] args: &[&str], #[case] stdin: &str, #[case] saved: &str) {
    let world = shops();
    let run = world.run_with(&[&["resource", "save", path], args].concat(), stdin);
    assert_eq!(run.code, 0, "{run}");
    assert_eq!(files(&world), [saved]);
    // No server is needed for that.
    assert!(world.server.log().is_empty());
}

/// The rest of a script, or the list that a loop of the shell reads, is not a payload.
#[rstest]
#[case::save("save", &["--force"])]
#[case::apply("apply", &[])]
#[case::create("create", &[])]
#[case::update("update", &[])]
fn unnamed_input_that_is_not_json_is_refused(#[case] command: &str, #[case] args: &[&str]) {
    let world = shops();
    world.declare("shops/rio/resource.yaml", "id: old\n");
    let args = [&["resource", command, "/shops/rio"], args].concat();
    let run = world.run_with(&args, "/shops/oslo\n/shops/ava\n");
    assert_eq!(run.code, 2, "{run}");
    assert!(run.stderr.contains("standard input has content that is not JSON"), "{run}");
    assert!(run.stderr.contains("add --no-input or redirect standard input from /dev/null"), "{run}");
    assert_eq!(files(&world), ["shops/rio/resource.yaml"]);
    assert!(world.server.log().is_empty());
    // What names the input, or its type, is unchanged.
    if command == "save" {
        let named = world.run_with(&[&args[..], &["-f", "-"]].concat(), "bytes");
        assert_eq!((named.code, files(&world)), (0, vec!["shops/rio/resource.bin".to_owned()]), "{named}");
    }
}

#[test]
fn what_exists_is_overwritten_by_force() {
    let world = shops();
    world.declare("shops/rio/resource.yaml", "id: old\n");
    insta::assert_snapshot!(world.run(&["resource", "save", "/shops/rio"]), @r"
    exit 2
    --- stdout
    --- stderr
    [ERROR] command execution failed: resource /shops/rio already exists; rerun with --force to overwrite it.
    ");
    // Not even the other item is saved.
    assert_eq!(world.run(&["resource", "save", "/shops/"]).code, 2);
    assert_eq!(files(&world), ["shops/rio/resource.yaml"]);
    assert_eq!(world.run(&["resource", "save", "/shops/rio", "--force"]).code, 0);
    assert_eq!(world.declared("shops/rio/resource.yaml").as_deref(), Some("id: rio\ntier: gold\n"));
}

#[test]
fn likely_secrets_are_not_saved() {
    let world = shops();
    world.live("/shops/lima", r#"{"id": "lima", "apiKey": "canary", "retryToken": "canary"}"#);
    insta::assert_snapshot!(world.run(&["resource", "save", "/shops/"]), @r"
    exit 2
    --- stdout
    --- stderr
    [ERROR] command execution failed: potential plaintext secrets detected in /shops/lima: /apiKey, /retryToken; --secret-attributes keeps them in the secret store, --allow-plaintext saves them in plain text.
    ");
    assert_eq!(files(&world), Vec::<String>::new());
    assert_eq!(world.run(&["resource", "save", "/shops/", "--allow-plaintext"]).code, 0);
    assert!(world.declared("shops/lima/resource.json").unwrap().contains("canary"));
}

#[test]
fn declared_secrets_need_a_store() {
    let world = shops();
    world.declare("shops/_/metadata.yaml", "resource: {secretAttributes: [/tier]}");
    let run = world.run(&["resource", "save", "/shops/rio", "--allow-plaintext"]);
    assert_eq!(run.code, 2, "{run}");
    assert!(run.stderr.contains("secret provider is not configured"), "{run}");
    assert!(world.declared("shops/rio/resource.json").is_none());
}

#[test]
fn metadata_shapes_what_is_saved() {
    let world = shops();
    world.declare(
        "shops/_/metadata.yaml",
        "resource: {format: yaml, defaults: {value: {tier: gold}}, externalizedAttributes: [{path: /open, file: open.sh}]}",
    );
    world.live("/shops/rio", r#"{"id": "rio", "tier": "gold", "open": "echo\n"}"#);
    assert_eq!(world.run(&["resource", "save", "/shops/rio"]).code, 0);
    assert_eq!(world.declared("shops/rio/open.sh").as_deref(), Some("echo\n"));
    let saved = world.declared("shops/rio/resource.yaml").unwrap();
    assert_eq!(saved, "id: rio\nopen: '{{include open.sh}}'\n");
}

#[test]
fn pruned_defaults_are_no_secrets() {
    let world = shops();
    world.declare("shops/_/metadata.yaml", "resource: {defaults: {value: {adminPassword: changeme}}}");
    world.live("/shops/rio", r#"{"id": "rio", "adminPassword": "changeme"}"#);
    assert_eq!(world.run(&["resource", "save", "/shops/rio"]).code, 2);
    assert_eq!(world.run(&["resource", "save", "/shops/rio", "--prune-defaults"]).code, 0);
    assert_eq!(world.declared("shops/rio/resource.json").as_deref(), Some("{\n  \"id\": \"rio\"\n}"));
}

#[test]
fn other_failures_of_a_wildcard_count() {
    let world = shops();
    world.server.fail(Matcher::new("GET", "/shops/rio/tills/t1"), 403, 9);
    let run = world.run(&["resource", "save", "/shops/_/tills/t1"]);
    assert_eq!(run.code, 4, "{run}");
    assert_eq!(files(&world), Vec::<String>::new());
}

#[rstest]
#[case(&[], "declarest: save resource /shops/rio")]
#[case(&["-m", "because"], "because")]
fn git(#[case] args: &[&str], #[case] message: &str) {
    let world = World::with_repository("git: {local: {baseDir: <home>/repo}}", &["/shops"], &[]);
    world.live("/shops/rio", r#"{"id": "rio"}"#);
    let run = world.run(&[&["resource", "save", "/shops/rio"], args].concat());
    assert_eq!(run.code, 0, "{run}");
    let log = crate::git::git(&world.home.path("repo"), &["log", "--format=%an %s", "--name-only"]);
    assert_eq!(log, format!("declarest {message}\n\nshops/rio/resource.json"));
    // An uncommitted change of a user stops the next save before anything is written.
    world.declare("stray", "x");
    let run = world.run(&["resource", "save", "/shops/rio", "--force"]);
    assert_eq!(run.code, 2, "{run}");
    assert!(run.stderr.contains("clean git worktree"), "{run}");
    assert!(world.run(&["resource", "save", "/shops/rio", "-m", " "]).stderr.contains("--message is blank"));
}

/// Otherwise a commit would lack the file, and the placeholder of a sidecar would refer to nothing.
#[rstest]
#[case::payload("logs/", "/shops/logs/rio")]
#[case::sidecar(".env", "/shops/oslo")]
fn a_file_that_git_ignores_is_not_saved(#[case] pattern: &str, #[case] path: &str) {
    let metadata = "resource: {id: /id, externalizedAttributes: [{path: /text, file: .env}]}\n";
    let repository = "git: {local: {baseDir: <home>/repo}}";
    let world = World::with_repository(repository, &["/shops"], &[("shops/_/metadata.yaml", metadata)]);
    world.declare(".gitignore", pattern);
    assert_eq!(world.run(&["repository", "commit", "-m", "start"]).code, 0);
    let id = path.rsplit('/').next().unwrap();
    let payload = format!(r#"{{"id": "{id}", "text": "a"}}"#);
    let run = world.run(&["resource", "save", path, "-f", &payload]);
    assert_eq!(run.code, 2, "{run}");
    assert!(run.stderr.contains("Git ignores it; change the pattern in .gitignore that matches it"), "{run}");
    assert_eq!(world.declared(&format!("{}/resource.json", path.trim_start_matches('/'))), None);
    // A file that is tracked in spite of the pattern is committed.
    world.declare(".gitignore", "");
    assert_eq!(world.run(&["repository", "commit", "-m", "no pattern"]).code, 0);
    assert_eq!(world.run(&["resource", "save", path, "-f", &payload]).code, 0);
    world.declare(".gitignore", pattern);
    assert_eq!(world.run(&["repository", "commit", "-m", "pattern"]).code, 0);
    let other = payload.replace("\"a\"", "\"b\"");
    assert_eq!(world.run(&["resource", "save", path, "-f", &other, "--force"]).code, 0);
    assert_eq!(crate::git::git(&world.home.path("repo"), &["status", "--porcelain"]), "");
}

/// A commit contains the revision of a submodule only. The change would stay uncommitted, and block every later save.
#[test]
fn a_file_of_a_nested_repository_is_not_saved() {
    let world = World::with_repository("git: {local: {baseDir: <home>/repo}}", &["/shops"], &[]);
    assert_eq!(world.run(&["resource", "save", "/shops/rio", "-f", "{}"]).code, 0);
    let repository = world.home.path("repo");
    crate::git::git(&repository, &["init", "--quiet", "team"]);
    world.declare("team/a/resource.json", "{}");
    crate::git::git(&repository.join("team"), &["add", "--all"]);
    crate::git::git(&repository.join("team"), &["commit", "--quiet", "--message", "start"]);
    crate::git::git(&repository, &["add", "--all"]);
    crate::git::git(&repository, &["commit", "--quiet", "--message", "team"]);
    let run = world.run(&["resource", "save", "/team/b", "-f", "{}"]);
    assert_eq!((run.code, world.declared("team/b/resource.json")), (2, None), "{run}");
    assert!(run.stderr.contains("team is another Git repository"), "{run}");
    assert_eq!(world.run(&["resource", "save", "/shops/oslo", "-f", "{}"]).code, 0);
}

/// The answer is a list whose item names a resource of another collection.
#[test]
fn an_answer_does_not_choose_the_path_of_its_items() {
    let world = World::new(&["/shops"], &[]);
    world.declare("users/x/resource.json", r#"{"role": "guest"}"#);
    world.live("/shops/rio", r#"{"items": [{"LogicalPath": "/users/x", "Payload": {"role": "admin"}}]}"#);
    let run = world.run(&["resource", "save", "/shops/rio", "--force"]);
    assert_eq!(run.code, 2, "{run}");
    assert!(run.stderr.contains("/users/x, which is not below /shops/rio"), "{run}");
    assert_eq!(world.declared("users/x/resource.json").unwrap(), r#"{"role": "guest"}"#);
}

/// The resource has an attribute `items`, as orders have.
#[rstest]
#[case::name("orders/rio/resource.json", "", r#"{"id": "rio", "items": [{"id": "x"}], "total": 5}"#)]
#[case::members(
    "orders/rio/x/resource.json",
    "orders/rio/_/metadata.yaml",
    r#"{"id": "rio", "items": [{"id": "x"}]}"#
)]
#[case::list("orders/rio/x/resource.json", "", r#"{"items": [{"id": "x"}], "total": 5}"#)]
fn a_resource_with_items_is_one_resource(
    #[case] saved: &str,
    #[case] metadata: &str,
    #[case] payload: &str,
    #[values(true, false)] given: bool,
) {
    let documents = [(metadata, "resource: {id: /id}")];
    let world = World::new(&["/orders"], if metadata.is_empty() { &[] } else { &documents });
    world.live("/orders/rio", payload);
    let args = ["resource", "save", "/orders/rio"];
    let run = if given { world.run_with(&args, payload) } else { world.run(&args) };
    assert_eq!(run.code, 0, "{run}");
    assert!(world.declared(saved).is_some(), "{:?}", files(&world));
}

/// The resource has an array of objects, and metadata describes members directly below it.
#[test]
fn a_resource_with_members_is_one_resource() {
    let world = World::new(&["/config"], &[("config/main/_/metadata.yaml", "resource: {id: /id}")]);
    world.live("/config/main", r#"{"name": "x", "mode": "strict", "sections": [{"id": "s1"}]}"#);
    let run = world.run(&["resource", "save", "/config/main"]);
    assert_eq!(run.code, 0, "{run}");
    assert!(world.declared("config/main/resource.json").unwrap().contains("strict"));
}

/// A name may end with a space, so that it is another resource.
#[rstest]
#[case(&["resource", "save", "/shops/rio "])]
#[case(&["resource", "metadata", "unset", "/shops/rio "])]
#[case(&["resource", "delete", "/shops/rio ", "--yes"])]
fn a_path_with_a_space_at_the_end_is_another_one(#[case] args: &[&str]) {
    let world = shops();
    let run = world.run(args);
    assert!(run.code != 0, "{run}");
    assert!(world.writes().is_empty() && files(&world).is_empty());
    let run = world.run(&["resource", "get", " /shops/rio\r\n"]);
    assert_eq!(run.code, 0, "{run}");
}
