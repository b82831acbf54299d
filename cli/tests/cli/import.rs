//! `import`.

use rstest::rstest;

use crate::rest_server::Matcher;
use crate::server::Server;
use crate::world::World;

const DOCUMENT: &str = r#"{"openapi": "3.0.3", "paths": {
    "/health": {"get": {}},
    "/shops": {"get": {}, "post": {}},
    "/shops/{id}": {"get": {}, "put": {}},
    "/shops/{id}/tills": {"get": {}, "post": {}},
    "/shops/{id}/tills/{till}": {"get": {}},
    "/v2/users": {"get": {}, "post": {}},
    "/v2/users/{id}": {"get": {}}
}}"#;

/// A server with a document.
fn described(world: World) -> World {
    let catalogue = world.home.catalogue();
    let named = catalogue.replace("auth: {custom", "openapi: '<home>/openapi.json', auth: {custom");
    assert_ne!(named, catalogue);
    world.home.write(".declarest/configs/contexts.yaml", &named);
    world.home.write("openapi.json", DOCUMENT);
    world
}

/// Two shops, one of them with tills, and a user, on a server with a document.
fn shops(world: World) -> World {
    let world = described(world);
    world.live("/shops/rio", r#"{"id": "rio", "tier": "gold"}"#);
    world.live("/shops/lima", r#"{"id": "lima"}"#);
    world.live("/shops/rio/tills/t1", r#"{"id": "t1"}"#);
    world.live("/v2/users/ana", r#"{"id": "ana"}"#);
    world
}

fn plain() -> World {
    shops(World::new(&["/shops", "/shops/*/tills", "/v2/users"], &[]))
}

#[test]
fn everything_that_the_document_describes() {
    let world = plain();
    insta::assert_snapshot!(world.run(&["import"]), @r"
    exit 0
    --- stdout
    /shops          2 saved
    /shops/_/tills  1 saved
    /v2/users       1 saved
    Import: 4 resources saved, 0 existing, 0 collections not imported.
    --- stderr
    ");
    assert_eq!(world.declared("shops/rio/tills/t1/resource.json").unwrap(), "{\n  \"id\": \"t1\"\n}");
    assert_eq!(world.declared("v2/users/ana/resource.json").unwrap(), "{\n  \"id\": \"ana\"\n}");
    assert!(world.writes().is_empty(), "nothing is written to the server");
    assert_eq!(world.run(&["resource", "diff", "/", "-r"]).stdout, "No differences under /.\n");
}

#[test]
fn for_programs() {
    insta::assert_snapshot!(plain().run(&["import", "/shops", "-o", "json"]), @r#"
    exit 0
    --- stdout
    {
      "collections": [
        {
          "path": "/shops",
          "saved": 2,
          "existing": 0
        },
        {
          "path": "/shops/_/tills",
          "saved": 1,
          "existing": 0
        }
      ],
      "failures": []
    }
    --- stderr
    "#);
}

#[test]
fn what_metadata_declares() {
    let world = World::new(&["/shops", "/shops/*/tills"], &[("shops/_/tills/_/metadata.yaml", "{}")]);
    world.live("/shops/rio", r#"{"id": "rio"}"#);
    world.live("/shops/rio/tills/t1", r#"{"id": "t1"}"#);
    insta::assert_snapshot!(world.run(&["import"]), @r"
    exit 0
    --- stdout
    /shops          1 saved
    /shops/_/tills  1 saved
    Import: 2 resources saved, 0 existing, 0 collections not imported.
    --- stderr
    ");
}

/// Another command may replace or remove a bundle in the cache.
#[test]
fn a_bundle_is_read_before_the_first_request() {
    let world = World::new(&["/shops", "/shops/*/tills"], &[]);
    world.live("/shops/rio", r#"{"id": "rio"}"#);
    world.live("/shops/rio/tills/t1", r#"{"id": "t1", "number": "7"}"#);
    let manifest = "apiVersion: declarest.io/v1alpha1\nkind: MetadataBundle\nname: shop\nversion: 1.0.0\n\
                    description: Shops.\ndeclarest: {metadataRoot: metadata}\n";
    world.home.write("bundle/bundle.yaml", manifest);
    world.home.write("bundle/metadata/shops/_/metadata.yaml", "resource: {id: /id}\n");
    let tills = "resource: {id: /id, alias: /number}\n";
    world.home.write("bundle/metadata/shops/_/tills/_/metadata.yaml", tills);
    let catalogue = world.home.catalogue();
    let bundled =
        catalogue.replace("managedServer:", "metadata: {bundleFile: <home>/bundle}\n  managedServer:");
    assert_ne!(bundled, catalogue);
    world.home.write(".declarest/configs/contexts.yaml", &bundled);
    let held = world.server.hold(Matcher::method("GET"));
    let run = std::thread::scope(|scope| {
        let running = scope.spawn(|| world.run(&["import", "/"]));
        while world.server.open() == 0 {
            std::thread::yield_now();
        }
        std::fs::remove_dir_all(world.home.path("bundle")).unwrap();
        drop(held);
        running.join().unwrap()
    });
    assert_eq!(run.code, 0, "{run}");
    assert!(world.declared("shops/rio/tills/7/resource.json").is_some(), "{run}");
}

#[test]
fn existing_resources_are_kept() {
    let world = plain();
    world.declare("shops/rio/resource.yaml", "id: rio\ntier: mine\n");
    insta::assert_snapshot!(world.run(&["import", "/shops"]), @r"
    exit 0
    --- stdout
    /shops          1 saved, 1 existing
    /shops/_/tills  1 saved
    Import: 2 resources saved, 1 existing, 0 collections not imported.
    --- stderr
    ");
    assert_eq!(world.declared("shops/rio/resource.yaml").unwrap(), "id: rio\ntier: mine\n");
    let run = world.run(&["import", "/shops", "--force", "--exclude", "/shops/rio/tills,lima"]);
    insta::assert_snapshot!(run, @r"
    exit 0
    --- stdout
    /shops  1 saved
    Import: 1 resource saved, 0 existing, 0 collections not imported.
    --- stderr
    ");
    assert_eq!(world.declared("shops/rio/resource.yaml").unwrap(), "id: rio\ntier: gold\n");
}

/// Git declares the resource with its id under another name, such as before a rename on the server.
#[test]
fn a_resource_at_another_path_is_not_saved_again() {
    let world = World::new(&["/shops"], &[("shops/_/metadata.yaml", "resource: {id: /id, alias: /name}\n")]);
    world.live("/shops/n1", r#"{"id": "n1", "name": "rio"}"#);
    world.declare("shops/lima/resource.json", r#"{"id": "n1", "name": "lima"}"#);
    for args in [&["import", "/shops"][..], &["import", "/shops", "--force"]] {
        let run = world.run(args);
        assert_eq!(run.code, 0, "{run}");
        assert!(run.stdout.contains("Import: 0 resources saved, 1 existing"), "{run}");
        assert_eq!(world.declared("shops/rio/resource.json"), None);
    }
}

#[test]
fn a_collection_that_cannot_be_listed_is_reported() {
    let world = plain();
    world.server.fail(Matcher::path("/shops/rio/tills"), 403, 9);
    world.server.fail(Matcher::path("/v2/users"), 405, 9);
    insta::assert_snapshot!(world.run(&["import"]), @r#"
    exit 4
    --- stdout
    /shops          2 saved
    /shops/_/tills  0 saved
    /shops/_/tills  not imported: GET /shops/rio/tills: remote request failed with status 403: {"error":"injected failure"}
    /v2/users       not imported: GET /v2/users: remote request failed with status 405: {"error":"injected failure"}
    Import: 2 resources saved, 0 existing, 2 collections not imported.
    --- stderr
    2 collections not imported
    hint: the server accepted other requests of context "dev"; its credentials may lack a right for this one
    "#);
    assert!(world.declared("shops/lima/resource.json").is_some(), "the others are saved");
}

#[test]
fn a_list_with_pages_that_cannot_be_requested_is_reported() {
    let server = Server::new(&[
        ("GET /more", 200, r#"{"items":[{"id":"m1"}],"total":7,"hasMore":true}"#),
        ("GET /more/m1", 200, r#"{"id":"m1"}"#),
    ]);
    let home = server.home();
    home.write("repo/more/_/metadata.yaml", "resource: {id: /id}\n");
    insta::assert_snapshot!(home.run(&["import", "/more"]), @r"
    exit 2
    --- stdout
    /more  1 saved
    /more  not complete: further members, because the list has further pages; configure operations.list.pagination in more/_/metadata.yaml
    Import: 1 resource saved, 0 existing, 1 collection not complete.
    --- stderr
    1 collection not complete
    ");
}

#[test]
fn a_collection_that_no_request_can_change_is_saved_only_by_its_path() {
    let world = shops(World::new(&["/shops", "/shops/*/tills", "/v2/users", "/logs", "/levels"], &[]));
    let logs = r#""paths": {"/logs": {"get": {}}, "/logs/{id}": {"get": {}}, "/levels": {"get": {}}, "/levels/{id}": {"get": {}}, "#;
    world.home.write("openapi.json", &DOCUMENT.replacen(r#""paths": {"#, logs, 1));
    world.declare("levels/_/metadata.yaml", "resource: {id: /id}\n");
    world.live("/logs/l1", r#"{"id": "l1"}"#);
    world.live("/levels/debug", r#"{"id": "debug"}"#);
    insta::assert_snapshot!(world.run(&["import"]), @r"
    exit 0
    --- stdout
    /levels         1 saved
    /shops          2 saved
    /shops/_/tills  1 saved
    /v2/users       1 saved
    /logs           read-only: the OpenAPI document describes no request that changes it
    Import: 5 resources saved, 0 existing, 0 collections not imported.
    --- stderr
    ");
    assert!(world.declared("logs/l1/resource.json").is_none());
    let run = world.run(&["import", "/logs"]);
    assert!(run.stdout.contains("/logs  1 saved"), "{run}");
}

#[rstest]
#[case::own("operations: {get: {transforms: [{excludeAttributes: [/seen]}]}}")]
#[case::shared("operations: {defaults: {transforms: [{excludeAttributes: [/seen]}]}}")]
fn attributes_that_reads_exclude_are_not_saved(#[case] metadata: &str) {
    let world = plain();
    world.declare("shops/_/metadata.yaml", metadata);
    world.live("/shops/rio", r#"{"id": "rio", "tier": "gold", "seen": 7}"#);
    assert_eq!(world.run(&["import", "/shops"]).code, 0);
    assert_eq!(world.declared("shops/rio/resource.json").unwrap().matches("seen").count(), 0);
    let plan = world.run(&["plan", "/shops/rio"]);
    assert!(plan.stdout.contains("0 to update, 0 to delete, 2 unchanged"), "{plan}");
    let listed = world.run(&["resource", "list", "/shops", "-o", "json"]);
    assert!(!listed.stdout.contains("seen"), "{listed}");
}

#[test]
fn a_wrong_base_url_is_suspected_if_the_server_has_no_collection() {
    let world = described(World::new(&[], &[]));
    let groups = r#""paths": {"/groups": {"get": {}, "post": {}}, "/groups/{id}": {"get": {}}, "#;
    world.home.write("openapi.json", &DOCUMENT.replacen(r#""paths": {"#, groups, 1));
    insta::assert_snapshot!(world.run(&["import"]), @r#"
    exit 3
    --- stdout
    /groups    not imported: GET /groups: remote request failed with status 404: {"error":"nothing at /groups"}
    /shops     not imported: GET /shops: remote request failed with status 404: {"error":"nothing at /shops"}
    /v2/users  not imported: GET /v2/users: remote request failed with status 404: {"error":"nothing at /v2/users"}
    Import: 0 resources saved, 0 existing, 3 collections not imported.
    --- stderr
    3 collections not imported
    hint: the server answered 404 to each request; if its base URL is wrong, correct managedServer.http.url
    "#);
}

/// The document describes more than this version of the server has.
#[test]
fn a_collection_that_the_server_does_not_have_is_named() {
    let world = described(World::new(&["/shops"], &[("shops/_/desks/_/metadata.yaml", "{}")]));
    world.live("/shops/rio", r#"{"id": "rio"}"#);
    insta::assert_snapshot!(world.run(&["import"]), @r"
    exit 0
    --- stdout
    /shops          1 saved
    /shops/_/desks  the server does not have this collection
    /v2/users       the server does not have this collection
    Import: 1 resource saved, 0 existing, 0 collections not imported.
    --- stderr
    ");
    let run = world.run(&["import", "-o", "json"]);
    assert!(run.stdout.contains("\"absent\": [\n    \"/shops/_/desks\",\n    \"/v2/users\"\n  ]"), "{run}");
    insta::assert_snapshot!(world.run(&["resource", "list", "/", "--crawl", "-o", "text"]), @r"
    exit 0
    --- stdout
    /shops/rio
    --- stderr
    /shops/_/desks: the server does not have this collection
    /v2/users: the server does not have this collection
    ");
    let run = world.run(&["import", "/v2"]);
    assert_eq!(run.code, 3, "{run}");
    assert!(run.stdout.contains("/v2/users  not imported: "), "{run}");
}

#[test]
fn secrets_are_not_written_as_plaintext() {
    let world = plain();
    world.live("/v2/users/bob", r#"{"id": "bob", "password": "canary"}"#);
    insta::assert_snapshot!(world.run(&["import"]), @r"
    exit 2
    --- stdout
    /shops          2 saved
    /shops/_/tills  1 saved
    /v2/users       not imported: potential plaintext secrets detected in /v2/users/bob: /password; --secret-attributes keeps them in the secret store, --allow-plaintext saves them in plain text
    Import: 3 resources saved, 0 existing, 1 collection not imported.
    --- stderr
    1 collection not imported
    ");
    assert_eq!(world.declared("v2/users/bob/resource.json"), None);
    assert!(world.declared("shops/rio/resource.json").is_some(), "the others are saved");
    let run = world.run(&["import", "/v2", "--allow-plaintext"]);
    assert_eq!(run.code, 0, "{run}");
    assert!(world.declared("v2/users/bob/resource.json").unwrap().contains("canary"));
}

#[test]
fn secrets_are_kept_in_the_store() {
    let world = shops(World::with_store(&["/shops", "/shops/*/tills", "/v2/users"], &[]));
    world.live("/v2/users/bob", r#"{"id": "bob", "password": "canary"}"#);
    let run = world.run(&["import", "--secret-attributes"]);
    assert_eq!(run.code, 0, "{run}");
    let saved = world.declared("v2/users/bob/resource.json").unwrap();
    assert!(saved.contains("{{secret .}}") && !saved.contains("canary"), "{saved}");
    assert_eq!(world.run(&["resource", "diff", "/", "-r"]).stdout, "No differences under /.\n");
}

#[rstest]
#[case::no_store(&["import", "--secret-attributes"], 2, "secret provider is not configured")]
#[case::both(&["import", "--secret-attributes", "--allow-plaintext"], 1, "cannot be used with")]
#[case::nothing_known(&["import", "/none"], 2, "there is no known collection below /none")]
#[case::exclude(&["import", "--exclude", "a,,b"], 2, "--exclude contains an empty name")]
#[case::path(&["import", "/a/../b"], 2, "logical path must not contain traversal segments")]
#[case::message(&["import", "-m", " "], 2, "--message is blank")]
#[case::context(&["import", "-c", "none"], 3, "context \"none\" not found")]
fn refused(#[case] args: &[&str], #[case] code: i32, #[case] message: &str) {
    let run = plain().run(args);
    assert_eq!(run.code, code, "{run}");
    assert!(run.stderr.contains(message), "{run}");
}

#[test]
fn a_server_that_cannot_be_reached() {
    let mut world = plain();
    world.server.stop();
    let run = world.run(&["import"]);
    assert_eq!(run.code, 6, "{run}");
    assert_eq!(world.declared("shops/rio/resource.json"), None);
}

#[test]
fn credentials_that_are_refused() {
    let world = plain();
    world.server.require_header("K", "other");
    assert_eq!(world.run(&["import"]).code, 4);
}

/// The secrets of one collection cannot be stored.
#[test]
fn a_collection_that_cannot_be_written_does_not_stop_the_others() {
    let metadata = [("apps/_/metadata.yaml", "{}"), ("shops/_/metadata.yaml", "{}")];
    let world = World::with_store(&["/apps", "/shops"], &metadata);
    world.store_secret("other", "value");
    let other_key = world.home.catalogue().replace("0123456789abcdef0", "fedcba98765432100");
    world.home.write(".declarest/configs/contexts.yaml", &other_key);
    world.live("/apps/a", r#"{"id": "a", "password": "s3cr3t"}"#);
    world.live("/shops/rio", r#"{"id": "rio"}"#);
    let run = world.run(&["import", "--secret-attributes"]);
    assert!(run.code == 4 && run.stdout.starts_with("/shops  1 saved\n"), "{run}");
    assert!(run.stdout.contains("/apps   not imported: cannot decrypt secret file"), "{run}");
    assert_eq!(world.declared("apps/a/resource.json"), None);
    assert!(world.declared("shops/rio/resource.json").is_some());
}
