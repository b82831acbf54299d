//! `resource defaults`.

use rstest::rstest;

use crate::api_server::{Answer, ApiServer, Ids, Request};
use crate::environment::{Home, Run};
use crate::terminal::Terminal;
use crate::world::World;

/// Three shops with two common values, and a profile.
fn shops() -> World {
    World::new(
        &["/shops"],
        &[
            (
                "shops/_/metadata.yaml",
                "resource: {defaults: {useProfiles: [big], value: '{{include defaults.yaml}}', profiles: {big: {size: 9}}}}\n",
            ),
            ("shops/_/defaults.yaml", "open: true\n"),
            ("shops/lima/resource.yaml", "id: lima\ntier: gold\nlimits: {cpu: 1, mem: 2}\n"),
            ("shops/oslo/resource.yaml", "id: oslo\ntier: gold\nlimits: {cpu: 1, mem: 3}\n"),
            ("shops/rio/resource.yaml", "id: rio\ntier: free\nlimits: {cpu: 1}\n"),
        ],
    )
}

fn defaults(world: &World, args: &[&str]) -> Run {
    world.run(&[&["resource", "defaults"], args].concat())
}

/// Runs an editing command with this editor at a terminal; returns the exit code.
fn edit(world: &World, args: &[&str], editor: &str) -> i32 {
    let args = [&["resource", "defaults"], args, &["--editor", editor]].concat();
    let variables = [("TERM", "xterm"), ("DECLAREST_IGNORE_WARNINGS", "1"), ("PATH", "/usr/bin:/bin")];
    let (code, shown) = Terminal::start(world.home.command(&args, &variables)).end();
    assert_eq!(code == 0, shown.ends_with("[OK]\u{1b}[0m command executed successfully.\n"), "{shown}");
    code
}

/// An editor that writes this text.
fn writer(world: &World, text: &str) -> String {
    world.home.write("text", text);
    world.home.write("editor.sh", "cat <home>/text > \"$1\"\n");
    format!("sh {}", world.home.path("editor.sh").display())
}

#[rstest]
#[case::effective(&["get", "/shops/rio"], "{\n  \"open\": true,\n  \"size\": 9\n}\n")]
#[case::of_the_collection(&["get", "/shops/", "-o", "yaml"], "open: true\nsize: 9\n")]
#[case::none(&["get", "/staff/ann"], "{}\n")]
#[case::config(&["config", "get", "/shops/", "-o", "jq=keys"], "[\"profiles\",\"useProfiles\",\"value\"]\n")]
#[case::no_config(&["config", "get", "/shops/rio"], "{}\n")]
#[case::inferred_as_the_resources_are_written(&["infer", "/shops/"], "limits:\n    cpu: 1\nopen: true\nsize: 9\n")]
#[case::inferred_as_json(&["infer", "/shops/", "-o", "json", "--items", "lima"], "{}\n")]
#[case::profile(&["profile", "get", "/shops/", "big", "-o", "jq=.size"], "9\n")]
#[case::profile_by_flag(&["profile", "get", "-p", "/shops/", "big", "-o", "jq=.size"], "9\n")]
#[case::inferred(&["infer", "/shops/", "-o", "yaml"], "limits:\n    cpu: 1\nopen: true\nsize: 9\n")]
#[case::inferred_by_a_member(&["infer", "/shops/rio", "-o", "jq=.limits.cpu"], "1\n")]
#[case::inferred_from_items(&["infer", "/shops", "--items", "lima,oslo", "-o", "jq=.tier"], "gold\n")]
#[case::inferred_from_one(&["infer", "/shops", "--items", "lima"], "{}\n")]
fn results(#[case] args: &[&str], #[case] expected: &str) {
    let run = defaults(&shops(), args);
    assert_eq!((run.code, run.stdout.as_str()), (0, expected), "{run}");
    assert_eq!(run.stderr.is_empty(), args[0] == "get", "{run}");
}

#[rstest]
#[case::no_path(&["get"], 2, "path is required")]
#[case::no_profile(&["profile", "get", "/shops/"], 2, "profile is required")]
#[case::unknown_profile(&["profile", "get", "/shops/", "small"], 3, "profile \"small\" not found in the metadata of /shops/")]
#[case::unknown_profile_to_delete(&["profile", "delete", "/shops/", "small"], 3, "profile \"small\" not found")]
#[case::unknown_item(&["infer", "/shops", "--items", "lima,paris"], 2, "--items: \"paris\" is not the alias")]
#[case::check(&["infer", "/shops", "--check"], 2, "the defaults of /shops/ differ")]
#[case::no_terminal(&["edit", "/shops/"], 2, "cannot ask for the defaults of /shops/")]
#[case::both(&["infer", "/shops", "--check", "--save"], 2, "--save and --check exclude each other")]
#[case::wait(&["infer", "/shops", "--wait", "2s"], 2, "--wait needs --from managed-server")]
#[case::consent(&["infer", "/shops", "--from", "managed-server"], 2, "confirm it with --yes")]
#[case::consent_by_the_former_flag(&["infer", "/shops", "--managed-server"], 2, "confirm it with --yes")]
#[case::origin(&["infer", "/shops", "--from", "git"], 2, "git")]
fn failures(#[case] args: &[&str], #[case] code: i32, #[case] message: &str) {
    let run = defaults(&shops(), args);
    assert_eq!(run.code, code, "{run}");
    assert!(run.stderr.contains(message), "{run}");
}

#[test]
fn inferred_defaults_are_saved_and_checked() {
    let world = shops();
    let run = defaults(&world, &["infer", "/shops", "--save"]);
    assert_eq!((run.code, run.stdout.as_str()), (0, ""), "{run}");
    assert_eq!(
        world.declared("shops/_/defaults.yaml").unwrap(),
        "limits:\n    cpu: 1\nopen: true\nsize: 9\n"
    );
    assert!(world.declared("shops/_/metadata.yaml").unwrap().contains("{{include defaults.yaml}}"));
    assert_eq!(defaults(&world, &["infer", "/shops", "--check"]).code, 0);
}

#[test]
fn a_baseline_is_edited_and_cleared() {
    let world = shops();
    assert_eq!(edit(&world, &["edit", "/shops/"], "sed -i s/true/false/"), 0);
    assert_eq!(world.declared("shops/_/defaults.yaml").unwrap(), "open: false\n");
    assert_eq!(edit(&world, &["edit", "/shops/"], &writer(&world, "[]")), 2);
    assert_eq!(edit(&world, &["edit", "/shops/"], &writer(&world, "")), 0);
    assert_eq!(world.declared("shops/_/defaults.yaml"), None);
    assert!(!world.declared("shops/_/metadata.yaml").unwrap().contains("include"));
}

#[test]
fn a_profile_is_created_edited_and_deleted() {
    let world = shops();
    assert_eq!(edit(&world, &["profile", "edit", "/shops/", "small"], &writer(&world, "size: 1\n")), 0);
    assert_eq!(world.declared("shops/_/defaults-small.yaml").unwrap(), "size: 1\n");
    assert_eq!(defaults(&world, &["profile", "get", "/shops/", "small"]).stdout, "size: 1\n");
    assert_eq!(edit(&world, &["profile", "edit", "/shops/", "big/er"], &writer(&world, "size: 1\n")), 2);
    let run = defaults(&world, &["profile", "delete", "/shops/", "small"]);
    assert_eq!(run.code, 0, "{run}");
    assert_eq!(world.declared("shops/_/defaults-small.yaml"), None);
}

#[rstest]
#[case::json("json", r#"{"id": "a"}"#, "{\"q\": 1}\n", "{\n  \"q\": 1\n}")]
#[case::properties("properties", "id=a\n", "q=1\n", "q=1\n")]
#[case::yml("yml", "id: a\n", "q: 1\n", "q: 1\n")]
#[case::not_supported("ini", "id = a\n", "q: 1\n", "q: 1\n")]
fn new_files_have_the_format_of_the_payloads(
    #[case] extension: &str,
    #[case] payload: &str,
    #[case] written: &str,
    #[case] kept: &str,
) {
    let files = ["c/a", "c/b"].map(|path| (format!("{path}/resource.{extension}"), payload));
    let world = World::new(&["/c"], &files.each_ref().map(|(file, payload)| (file.as_str(), *payload)));
    let file = if extension == "ini" { "yaml" } else { extension };
    assert_eq!(edit(&world, &["edit", "/c/a"], &writer(&world, written)), 0);
    assert_eq!(world.declared(&format!("c/a/defaults.{file}")).as_deref(), Some(kept));
    assert_eq!(edit(&world, &["profile", "edit", "/c/", "big"], &writer(&world, written)), 0);
    assert_eq!(world.declared(&format!("c/_/defaults-big.{file}")).as_deref(), Some(kept));
    let run = defaults(&world, &["infer", "/c/", "--save"]);
    assert_eq!(run.code, 0, "{run}");
    assert!(world.declared(&format!("c/_/defaults.{file}")).is_some());
    // The file that is already included is used again.
    world.declare("c/b/resource.yaml", "id: b\n");
    std::fs::remove_file(world.home.path(&format!("repo/c/b/resource.{extension}"))).unwrap();
    assert_eq!(edit(&world, &["profile", "edit", "/c/", "big"], "sed -i s/1/2/"), 0);
    assert_eq!(world.declared(&format!("c/_/defaults-big.{file}")).unwrap(), kept.replace('1', "2"));
    assert_eq!(edit(&world, &["profile", "edit", "/c/", "new"], &writer(&world, "q: 1\n")), 0);
    assert_eq!(world.declared("c/_/defaults-new.yaml").as_deref(), Some("q: 1\n"));
}

#[test]
fn the_configuration_is_edited() {
    let world = shops();
    assert_eq!(
        edit(
            &world,
            &["config", "edit", "/shops/"],
            &writer(&world, "mode: replace\nvalue: {open: false}\n")
        ),
        0
    );
    assert_eq!(defaults(&world, &["get", "/shops/rio", "-o", "jq=."]).stdout, "{\"open\":false}\n");
    assert_eq!(world.declared("shops/_/defaults.yaml"), None, "no document includes it");
    assert_eq!(edit(&world, &["config", "edit", "/shops/"], &writer(&world, "mode: other\n")), 2);
}

#[rstest]
#[case::of_the_document(
    "shops/_",
    "{id: /id, defaults: {useProfiles: [prod], profiles: {prod: {z: 1}}}}",
    "/shops"
)]
#[case::of_a_resource("shops/lima", "{defaults: {useProfiles: [prod]}}", "/shops/lima")]
fn a_selected_profile_is_not_removed(#[case] selects: &str, #[case] resource: &str, #[case] path: &str) {
    let world = shops();
    world.declare("shops/_/metadata.yaml", "resource: {defaults: {profiles: {prod: {z: 1}}}}\n");
    world.declare(&format!("{selects}/metadata.yaml"), &format!("resource: {resource}\n"));
    let before = world.declared("shops/_/metadata.yaml");
    let run = defaults(&world, &["profile", "delete", "/shops/", "prod"]);
    let message = format!(
        "[ERROR] command execution failed: the change would select a profile that does not exist: the metadata \
         documents of {path} conflict: resource.defaults.useProfiles: unknown profile \"prod\"; no document defines a \
         profile.\n"
    );
    assert_eq!((run.code, run.stderr), (2, message));
    assert_eq!(edit(&world, &["profile", "edit", "/shops/", "prod"], &writer(&world, "")), 2);
    let without = writer(&world, "useProfiles: [prod]\n");
    assert_eq!(edit(&world, &["config", "edit", "/shops/"], &without), 2);
    assert_eq!(world.declared("shops/_/metadata.yaml"), before);
    // An inherited profile can be selected.
    world.declare("_/metadata.yaml", "resource: {defaults: {profiles: {prod: {z: 1}}}}\n");
    assert_eq!(defaults(&world, &["profile", "delete", "/shops/", "prod"]).code, 0);
}

#[rstest]
#[case::inherited("/shops/", "useProfiles: [big]\n", 2)]
#[case::new("/staff/", "useProfiles: [nope]\n", 2)]
#[case::own("/staff/", "useProfiles: [nope]\nprofiles: {nope: {z: 1}}\n", 0)]
#[case::none("/shops/", "useProfiles: []\n", 0)]
fn only_known_profiles_are_selected(#[case] path: &str, #[case] config: &str, #[case] code: i32) {
    let world = shops();
    assert_eq!(edit(&world, &["config", "edit", path], &writer(&world, config)), code);
    assert_eq!(world.declared("staff/_/metadata.yaml").is_some(), code == 0 && path == "/staff/");
}

#[test]
fn a_broken_selection_is_corrected() {
    let world = shops();
    world.declare("shops/_/metadata.yaml", "resource: {defaults: {useProfiles: [a, b]}}\n");
    assert_eq!(edit(&world, &["config", "edit", "/shops/"], &writer(&world, "useProfiles: [b]\n")), 0);
    assert_eq!(edit(&world, &["profile", "edit", "/shops/", "b"], &writer(&world, "z: 1\n")), 0);
    assert_eq!(defaults(&world, &["get", "/shops/rio", "-o", "jq=.z"]).stdout, "1\n");
}

#[test]
fn a_checkout_gets_a_commit() {
    let world = World::with_repository(
        "git: {local: {baseDir: <home>/repo}}",
        &["/shops"],
        &[("shops/a/resource.yaml", "id: a\nopen: 1\n"), ("shops/b/resource.yaml", "id: b\nopen: 1\n")],
    );
    assert_eq!(world.run(&["repository", "commit", "-m", "All"]).code, 0);
    let run = defaults(&world, &["infer", "/shops/", "--save"]);
    assert_eq!(run.code, 0, "{run}");
    let history = world.run(&["repository", "history", "--max-count", "1", "-o", "jq=.[].subject"]);
    assert_eq!(history.stdout, "declarest: infer resource defaults /shops/\n");
}

/// A server that adds values to what it creates, and requires an owner.
fn generous(ids: Ids) -> (ApiServer, Home) {
    let server = ApiServer::start(&["/shops"], move |request, store| {
        if request.method != "POST" {
            return request.rest(store, ids);
        }
        let mut body = request.body.clone();
        if body["owner"].is_null() {
            return Answer::json(422, &serde_json::json!({"error": "owner is missing"}));
        }
        body["open"] = true.into();
        body["limits"] = serde_json::json!({"cpu": 1, "serial": body["id"]});
        Request { body, ..request.clone() }.rest(store, ids)
    });
    let home = Home::with_catalogue(&format!(
        "currentContext: dev\ncontexts:\n- name: dev\n  repository: {{filesystem: {{baseDir: <home>/repo}}}}\n  \
         managedServer: {{http: {{url: '{}'}}}}\n",
        server.url()
    ));
    home.write("repo/shops/_/metadata.yaml", "resource: {requiredAttributes: [/owner]}\n");
    (server, home)
}

#[test]
fn defaults_that_the_server_adds_are_inferred() {
    let (server, home) = generous(Ids::Stated("id"));
    let infer = |args: &[&str]| {
        let args =
            [&["resource", "defaults", "infer", "/shops", "--from", "managed-server", "-y"], args].concat();
        home.run_with(&args, &[("DECLAREST_IGNORE_WARNINGS", "1")], "")
    };
    let run = infer(&[]);
    assert_eq!(run.code, 2, "{run}");
    assert!(run.stderr.contains("/owner is required, and no declared resource"), "{run}");
    home.write("repo/shops/rio/resource.json", r#"{"id": "rio", "owner": "ops", "tier": "gold"}"#);
    let run = infer(&["--wait", "1"]);
    assert_eq!(
        (run.code, run.stdout.as_str()),
        (0, "{\n  \"limits\": {\n    \"cpu\": 1\n  },\n  \"open\": true\n}\n"),
        "{run}"
    );
    assert_eq!(server.paths(), [] as [&str; 0]);
    let alias = ["resource", "defaults", "infer", "/shops", "--managed-server", "-y", "-o", "jq=.open"];
    let run = home.run_with(&alias, &[("DECLAREST_IGNORE_WARNINGS", "1")], "");
    assert_eq!((run.code, run.stdout.as_str()), (0, "true\n"), "{run}");
    // As `--infer-metadata` states the names.
    let metadata = "resource: {id: '{{/id}}', alias: '{{/id}}', requiredAttributes: [/owner]}\n";
    home.write("repo/shops/_/metadata.yaml", metadata);
    let run = infer(&["--wait", "1"]);
    assert!(run.code == 0 && run.stdout.contains("\"open\": true"), "{run}");
    // With the repository, only what declared resources share, too.
    let both = home.run_with(
        &["resource", "defaults", "infer", "/shops", "--from", "repository,managed-server", "-y"],
        &[("DECLAREST_IGNORE_WARNINGS", "1")],
        "",
    );
    assert_eq!((both.code, both.stdout.as_str()), (0, "{}\n"), "{both}");
}

#[test]
fn a_temporary_resource_that_cannot_be_found_is_reported() {
    let (server, home) = generous(Ids::Given);
    home.write("repo/shops/rio/resource.json", r#"{"id": "rio", "owner": "ops"}"#);
    let args = ["resource", "defaults", "infer", "/shops", "--from", "managed-server", "-y"];
    let run = home.run_with(&args, &[("DECLAREST_IGNORE_WARNINGS", "1")], "");
    assert_eq!(run.code, 5, "{run}");
    assert!(
        run.stderr
            .contains("created, but could not be deleted; delete it by hand: /shops/declarest-defaults-"),
        "{run}"
    );
    assert_eq!(server.paths().len(), 2, "what may belong to others is not deleted");
}

#[test]
fn an_address_that_does_not_depend_on_the_name_is_refused() {
    let (server, home) = generous(Ids::Stated("id"));
    server.put("/shops/R1", serde_json::json!({"id": "R1", "owner": "ops"}));
    home.write("repo/shops/rio/resource.json", r#"{"id": "rio", "owner": "ops", "code": "R1"}"#);
    let metadata = "resource: {requiredAttributes: [/owner, /code]}\noperations:\n  get: {path: './{{/code}}'}\n  delete: {path: './{{/code}}'}\n";
    home.write("repo/shops/_/metadata.yaml", metadata);
    let args = ["resource", "defaults", "infer", "/shops", "--from", "managed-server", "-y"];
    let run = home.run_with(&args, &[("DECLAREST_IGNORE_WARNINGS", "1")], "");
    assert_eq!(run.code, 2, "{run}");
    assert!(run.stderr.contains("that depend on the id or the alias"), "{run}");
    assert_eq!((server.paths(), server.writes()), (vec!["/shops/R1".to_owned()], vec![]));
}
