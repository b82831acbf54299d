//! `init`: from nothing to a saved tree and a first plan.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use rstest::rstest;
use serde_json::json;

use crate::api_server::{Answer, ApiServer};
use crate::environment::{Home, Run};
use crate::git::git;
use crate::network::{self, Authority};
use crate::rest_server::{Config, Matcher, RestServer};
use crate::server::Server;

const DOCUMENT: &str = r#"{"openapi": "3.0.3", "paths": {
    "/shops": {"get": {}, "post": {}},
    "/shops/{id}": {"get": {}, "put": {}}
}}"#;

/// A server with shops, and an empty home with a document.
struct Fresh {
    server: RestServer,
    home: Home,
}

impl Fresh {
    fn new() -> Self {
        let config = Config { collections: vec!["/shops".to_owned()], ..Config::default() };
        let fresh = Self { server: RestServer::start(config).unwrap(), home: Home::new() };
        fresh.home.write("openapi.json", DOCUMENT);
        fresh.live("/shops/rio", r#"{"id": "rio", "tier": "gold"}"#);
        fresh
    }

    fn live(&self, path: &str, body: &str) {
        self.server.put_by_hand(path, serde_json::from_str(body).unwrap());
    }

    /// Runs `declarest init shop` for the server.
    fn init(&self, args: &[&str]) -> Run {
        let url = self.server.url();
        let all = [&["init", "shop", "--server", &url, "--openapi", "openapi.json"], args].concat();
        self.run(&all)
    }

    fn run(&self, args: &[&str]) -> Run {
        let mut run = self.home.run_with(args, &[("DECLAREST_IGNORE_WARNINGS", "1")], "");
        let url = self.server.url();
        (run.stdout, run.stderr) =
            (run.stdout.replace(&url, "<server>"), run.stderr.replace(&url, "<server>"));
        run
    }

    /// Serves the server also at `https://localhost`.
    fn behind_tls(&self, authority: &Authority) -> network::Server {
        let address = self.server.url().trim_start_matches("http://").parse().unwrap();
        authority.serve("localhost", address)
    }
}

#[test]
fn one_command_leads_to_a_saved_tree() {
    let fresh = Fresh::new();
    insta::assert_snapshot!(fresh.init(&[]), @r"
    exit 0
    --- stdout
    Context shop: created in <home>/.declarest/configs/contexts.yaml
    Repository: Git repository <home>/shop
    OpenAPI document: <home>/openapi.json
    /shops  1 saved
    Import: 1 resource saved, 0 existing, 0 collections not imported.
    Plan: 0 to create, 0 to update, 0 to delete, 1 unchanged.
    --- stderr
    ");
    insta::assert_snapshot!(fresh.home.catalogue().replace(&fresh.server.url(), "<server>"), @r"
    currentContext: shop
    contexts:
      - name: shop
        managedServer:
            http:
                openapi: <home>/openapi.json
                url: <server>
        repository:
            git:
                local:
                    baseDir: <home>/shop
    ");
    assert_eq!(
        fresh.home.read("shop/shops/rio/resource.json"),
        "{\n  \"id\": \"rio\",\n  \"tier\": \"gold\"\n}"
    );
    assert_eq!(git(&fresh.home.path("shop"), &["log", "--format=%s"]), "declarest: import resources /");
    assert_eq!(git(&fresh.home.path("shop"), &["status", "--porcelain"]), "");
    // The context works.
    assert_eq!(fresh.run(&["resource", "diff", "/", "-r"]).stdout, "No differences under /.\n");
}

#[test]
fn the_same_command_continues() {
    let fresh = Fresh::new();
    assert_eq!(fresh.init(&[]).code, 0);
    fresh.live("/shops/lima", r#"{"id": "lima"}"#);
    fresh.live("/shops/rio", r#"{"id": "rio", "tier": "free"}"#);
    insta::assert_snapshot!(fresh.init(&[]), @r#"
    exit 0
    --- stdout
    Context shop: exists in <home>/.declarest/configs/contexts.yaml
    Repository: Git repository <home>/shop
    OpenAPI document: <home>/openapi.json
    /shops  1 saved, 1 existing
    Import: 1 resource saved, 1 existing, 0 collections not imported.
    ~ /shops/rio
        /tier: "free" -> "gold"
    Plan: 0 to create, 1 to update, 0 to delete, 1 unchanged.
    --- stderr
    "#);
    assert!(fresh.home.read("shop/shops/rio/resource.json").contains("gold"), "existing files are kept");
}

#[test]
fn for_programs() {
    insta::assert_snapshot!(Fresh::new().init(&["--filesystem", "--name", "dev", "-o", "json"]), @r#"
    exit 0
    --- stdout
    {
      "context": "dev",
      "catalogue": "<home>/.declarest/configs/contexts.yaml",
      "repository": "<home>/shop",
      "openapi": "<home>/openapi.json",
      "import": {
        "collections": [
          {
            "path": "/shops",
            "saved": 1,
            "existing": 0
          }
        ],
        "failures": []
      },
      "plan": {
        "revision": null,
        "summary": {
          "create": 0,
          "update": 0,
          "delete": 0,
          "unchanged": 1
        },
        "actions": [],
        "unchanged": 1,
        "targeted": 1,
        "failures": [],
        "pruneRefused": null
      }
    }
    --- stderr
    "#);
}

#[test]
fn secrets_are_kept_in_a_new_store() {
    let fresh = Fresh::new();
    fresh.live("/shops/rio", r#"{"id": "rio", "password": "canary"}"#);
    let refused = fresh.init(&["--name", "plain", "--filesystem"]);
    assert_eq!(refused.code, 2, "{refused}");
    assert!(refused.stdout.contains("potential plaintext secrets detected"), "{refused}");
    assert!(!fresh.home.path("shop/shops/rio").exists());
    fs::remove_dir_all(fresh.home.path("shop")).unwrap();
    let run = fresh.init(&["--secret-attributes"]);
    assert_eq!(run.code, 0, "{run}");
    assert!(fresh.home.read("shop/shops/rio/resource.json").contains("{{secret .}}"));
    assert!(!fresh.home.read(".declarest/secrets/shop.json").contains("canary"));
    assert_eq!(fresh.run(&["secret", "get", "/shops/rio:/password"]).code, 2, "another context is current");
    let run = fresh.run(&["-c", "shop", "secret", "get", "/shops/rio:/password"]);
    assert_eq!(run.stdout, "canary\n", "{run}");
    let mode = fs::metadata(fresh.home.path(".declarest/secrets/shop.key")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn a_store_of_another_context_is_not_used() {
    let fresh = Fresh::new();
    fresh.live("/shops/rio", r#"{"id": "rio", "password": "canary"}"#);
    for (name, file) in [("team a", "team%20a.json"), ("team_a", "team_a.json")] {
        let run = fresh.init(&["--name", name, "--secret-attributes"]);
        assert_eq!(run.code, 0, "{run}");
        assert!(fresh.home.path(".declarest/secrets").join(file).exists());
        fs::remove_dir_all(fresh.home.path("shop")).unwrap();
    }
    assert_eq!(fresh.run(&["context", "delete", "team_a", "--no-input"]).code, 0);
    let before = fresh.home.read(".declarest/secrets/team_a.json");
    let run = fresh.init(&["--name", "team_a", "--secret-attributes"]);
    assert_eq!(run.code, 2, "{run}");
    assert!(run.stderr.contains("team_a.json exists, and may have the secrets of another server"), "{run}");
    assert_eq!(fresh.home.read(".declarest/secrets/team_a.json"), before);
}

/// The first call finds the secrets.
#[test]
fn a_later_call_adds_the_store() {
    let fresh = Fresh::new();
    fresh.live("/shops/rio", r#"{"id": "rio", "password": "canary"}"#);
    let refused = fresh.init(&[]);
    assert!(refused.code == 2 && refused.stdout.contains("--secret-attributes keeps them"), "{refused}");
    for _ in 0..2 {
        let run = fresh.init(&["--secret-attributes"]);
        assert_eq!(run.code, 0, "{run}");
        let read = fresh.run(&["secret", "get", "/shops/rio:/password"]);
        assert_eq!(read.stdout, "canary\n", "{read}");
    }
    let run = fresh.init(&["--filesystem"]);
    assert!(run.code == 2 && run.stderr.contains("already exists with other settings"), "{run}");
}

#[test]
fn the_document_is_found_at_a_usual_place() {
    let server = Server::new(&[
        (
            "GET /openapi.yaml",
            200,
            "openapi: 3.0.3\npaths: {/shops: {get: {}, post: {}}, '/shops/{id}': {get: {}}}",
        ),
        ("GET /shops", 200, r#"[{"id":"rio"}]"#),
        ("GET /shops/rio", 200, r#"{"id":"rio"}"#),
    ]);
    let home = Home::new();
    let run = home.run(&["init", "shop", "--server", server.url(), "--ignore-warnings"]);
    assert_eq!(run.code, 0, "{run}");
    assert!(home.read("shop/openapi.yaml").starts_with("openapi: 3.0.3"));
    assert!(home.catalogue().contains("openapi: <home>/shop/openapi.yaml"), "{}", home.catalogue());
    let given = format!("{}/openapi.yaml", server.url());
    let run = home.run(&["init", "b", "--server", server.url(), "--openapi", &given, "--ignore-warnings"]);
    assert_eq!(run.code, 0, "{run}");
}

#[rstest]
#[case::whole("X-Key: ${KEY}", "x-key", "canary")]
#[case::scheme("Authorization: Bearer ${KEY}", "authorization", "Bearer canary")]
fn credentials_come_from_the_environment(#[case] header: &str, #[case] name: &str, #[case] sent: &str) {
    let fresh = Fresh::new();
    fresh.server.require_header(name, sent);
    let url = fresh.server.url();
    let all = ["init", "shop", "--server", &url, "--openapi", "openapi.json", "-vvv", "-H", header];
    let run = fresh.home.run_with(&all, &[("KEY", "canary")], "");
    assert_eq!(run.code, 0, "{run}");
    assert!(fresh.home.catalogue().contains("${KEY}"), "{}", fresh.home.catalogue());
    assert!(!format!("{run}{}", fresh.home.catalogue()).contains("canary"), "{run}");
    // The same command finds the same context.
    assert_eq!(fresh.home.run_with(&all, &[("KEY", "canary")], "").code, 0);
}

/// Many servers have no resource at their base URL.
#[rstest]
#[case::missing(404)]
#[case::fault(500)]
fn the_answer_at_the_base_url_has_no_meaning(#[case] status: u16) {
    let fresh = Fresh::new();
    fresh.server.fail(Matcher::path("/"), status, 9);
    let run = fresh.init(&[]);
    assert_eq!(run.code, 0, "{run}");
}

/// A failure before the first write leaves neither a context nor a directory.
#[rstest]
#[case::url(&["init", "shop", "--server", "shop.test"], 2, "managedServer.http.url: is not a URL")]
#[case::no_document(&["init", "shop", "--server", "<server>"], 3, "name it with --openapi")]
#[case::document(&["init", "shop", "--server", "<server>", "--openapi", "none.json"], 3, "cannot read the OpenAPI document none.json")]
#[case::plain_http(&["init", "shop", "--server", "<server>", "--openapi", "http://api.test/x"], 2, "use https")]
#[case::not_empty(&["init", ".", "--name", "x", "--server", "<server>", "--openapi", "openapi.json"], 2, "is not empty")]
#[case::file(&["init", "openapi.json", "--server", "<server>", "--openapi", "openapi.json"], 2, "cannot use the directory")]
#[case::header(&["init", "shop", "--server", "<server>", "-H", "canary"], 2, "--header is not a header")]
#[case::header_text(&["init", "shop", "--server", "<server>", "-H", "Cookie: session=${KEY}"], 2, "refers to a variable in another text")]
#[case::header_unset(&["init", "shop", "--server", "<server>", "-H", "A: Bearer ${UNSET}"], 2, "--header A has no value; set the environment variable UNSET")]
#[case::unreachable(&["init", "shop", "--server", "http://127.0.0.1:1"], 6, "cannot fetch the OpenAPI document")]
#[case::no_server(&["init", "shop"], 1, "--server <URL>")]
fn refused(#[case] args: &[&str], #[case] code: i32, #[case] message: &str) {
    let fresh = Fresh::new();
    let url = fresh.server.url();
    let args: Vec<String> = args.iter().map(|arg| arg.replace("<server>", &url)).collect();
    let run = fresh.run(&args.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(run.code, code, "{run}");
    assert!(run.stderr.contains(message), "{run}");
    assert!(!run.stderr.contains("canary"), "{run}");
    assert!(!fresh.home.path(".declarest").exists() && !fresh.home.path("shop").exists());
}

#[test]
fn a_directory_that_cannot_be_created_leaves_no_context() {
    let fresh = Fresh::new();
    symlink(fresh.home.path("none/shop"), fresh.home.path("shop")).unwrap();
    let run = fresh.init(&[]);
    assert_eq!(run.code, 2, "{run}");
    assert!(run.stderr.contains("cannot create the directory <home>/shop: "), "{run}");
    assert!(!fresh.home.path(".declarest").exists());
}

#[test]
fn another_context_is_never_overwritten() {
    let fresh = Fresh::new();
    fresh.home.write(
        ".declarest/configs/contexts.yaml",
        "currentContext: shop\ncontexts:\n- name: shop\n  repository: {filesystem: {baseDir: /elsewhere}}\n",
    );
    let before = fresh.home.catalogue();
    insta::assert_snapshot!(fresh.init(&[]), @r#"
    exit 2
    --- stdout
    --- stderr
    context "shop" already exists with other settings; delete it with "declarest context delete shop", or choose another name with --name
    "#);
    assert_eq!(fresh.home.catalogue(), before);
    assert!(!fresh.home.path("shop").exists());
}

#[test]
fn refused_credentials_create_nothing() {
    let fresh = Fresh::new();
    fresh.server.require_header("x-key", "canary");
    let url = fresh.server.url();
    let run = fresh.run(&["init", "shop", "--server", &url]);
    assert_eq!(run.code, 4, "{run}");
    assert!(!fresh.home.path(".declarest").exists());
}

/// The system does not trust the authority of most servers on premises.
#[test]
fn a_private_authority_is_named_in_the_context() {
    let (fresh, authority) = (Fresh::new(), Authority::new());
    let front = fresh.behind_tls(&authority);
    let server = format!("https://localhost:{}", front.address.port());
    let init = |args: &[&str]| {
        fresh.run(&[&["init", "shop", "--server", &server, "--openapi", "openapi.json"], args].concat())
    };
    let run = init(&[]);
    assert!(run.code == 6 && run.stderr.contains("; name its authority in http.tls"), "{run}");
    assert!(run.stderr.contains("hint: --ca-cert FILE names the authority in the new context"), "{run}");
    assert!(!fresh.home.path(".declarest/configs/contexts.yaml").exists());
    fresh.home.write("ca.pem", &authority.pem());
    let run = init(&["--ca-cert", "ca.pem"]);
    assert!(run.code == 0 && run.stdout.contains("1 unchanged"), "{run}");
    let catalogue = fs::read_to_string(fresh.home.path(".declarest/configs/contexts.yaml")).unwrap();
    let file = fresh.home.path("ca.pem");
    assert!(catalogue.contains(&format!("caCertFile: {}", file.display())), "{catalogue}");
}

#[test]
#[cfg(target_os = "linux")]
fn the_authorities_of_the_system_are_trusted() {
    let (fresh, authority) = (Fresh::new(), Authority::new());
    let front = fresh.behind_tls(&authority);
    let server = format!("https://localhost:{}", front.address.port());
    fresh.home.write("ca.pem", &authority.pem());
    let file = fresh.home.path("ca.pem").display().to_string();
    let command = ["init", "shop", "--server", &server, "--openapi", "openapi.json"];
    let run = fresh.home.run_with(&command, &[("SSL_CERT_FILE", &file)], "");
    assert!(run.code == 0 && run.stdout.contains("1 unchanged"), "{run}");
}

/// The metadata of a server without a document is written by hand.
#[test]
fn nothing_is_imported_on_request() {
    let fresh = Fresh::new();
    let url = fresh.server.url();
    let init = ["init", "shop", "--server", &url, "--no-import"];
    insta::assert_snapshot!(fresh.run(&init), @r"
    exit 0
    --- stdout
    Context shop: created in <home>/.declarest/configs/contexts.yaml
    Repository: Git repository <home>/shop
    --- stderr
    ");
    fresh.home.write("shop/shops/_/metadata.yaml", "resource: {alias: /id}");
    assert_eq!(fresh.run(&["repository", "commit", "--context", "shop", "-m", "metadata"]).code, 0);
    insta::assert_snapshot!(fresh.run(&["import", "/shops", "--context", "shop"]), @r"
    exit 0
    --- stdout
    /shops  1 saved
    Import: 1 resource saved, 0 existing, 0 collections not imported.
    --- stderr
    ");
    let run = fresh.init(&["--no-import", "--force"]);
    assert!(run.stderr.contains("the argument '--no-import' cannot be used with '--force'"), "{run}");
}

/// Gateways answer unknown paths with other statuses than 404.
#[rstest]
fn a_document_that_is_not_needed_may_be_refused(#[values(400, 403, 405, 406, 500)] status: u16) {
    let server = ApiServer::start(&[], move |_, _| Answer::json(status, &json!({"error": "unknown path"})));
    let home = Home::new();
    let init = ["init", "shop", "--server", server.url()];
    let run = home.run(&[&init[..], &["--no-import"]].concat());
    assert!(run.code == 0 && run.stdout.contains("Context shop: created"), "{run}");
    let run = home.run(&[&["init", "other"], &init[2..]].concat());
    assert_ne!(run.code, 0, "{run}");
}

/// Later commands may run in another directory.
#[test]
fn a_local_bundle_is_stored_with_its_absolute_path() {
    let fresh = Fresh::new();
    let manifest = "apiVersion: declarest.io/v1alpha1\nkind: MetadataBundle\nname: shop-bundle\nversion: 1.0.0\n\
                    description: Shops.\ndeclarest: {metadataRoot: metadata}\n";
    fresh.home.write("shop-bundle/bundle.yaml", manifest);
    fresh.home.write("shop-bundle/metadata/shops/_/metadata.yaml", "resource: {id: /id, alias: /id}\n");
    let run = fresh.init(&["--bundle", "shop-bundle"]);
    assert_eq!(run.code, 0, "{run}");
    assert!(fresh.home.catalogue().contains("bundle: <home>/shop-bundle\n"), "{}", fresh.home.catalogue());
}
