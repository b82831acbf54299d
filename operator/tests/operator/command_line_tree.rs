//! A tree that the command line saves, edits and applies, and that the operator runs afterwards.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::support::git_remote::{GitRemote, git};
use crate::support::rest_server::{Config, RestServer};
use crate::support::world::{World, declarest};

/// A user with a checkout of the repository, and a context for the server.
struct User {
    home: tempfile::TempDir,
}

impl User {
    fn new(git: &GitRemote, server: &RestServer, openapi: Option<&Value>) -> Self {
        let home = tempfile::tempdir().unwrap();
        let at = |name: &str| home.path().join(name).display().to_string();
        let mut http = json!({"url": server.url()});
        if let Some(document) = openapi {
            std::fs::write(at("openapi.json"), document.to_string()).unwrap();
            http["openapi"] = json!(at("openapi.json"));
        }
        let catalogue = json!({"currentContext": "dev", "contexts": [{
            "name": "dev",
            "repository": {"git": {"local": {"baseDir": at("work")}, "remote": {"url": git.file_url()}}},
            "managedServer": {"http": http},
        }]});
        std::fs::write(at("contexts.yaml"), catalogue.to_string()).unwrap();
        Self { home }
    }

    /// Runs `declarest`; its exit code and what it printed.
    fn run(&self, arguments: &[&str]) -> (i32, String) {
        let program = Path::new(env!("CARGO_BIN_EXE_declarest-operator")).with_file_name("declarest");
        assert!(program.is_file(), "{} does not exist; run `make build`", program.display());
        let mut command = Command::new(program);
        command.args(arguments).env_clear().env("HOME", self.home.path()).current_dir(self.home.path());
        command.env("DECLAREST_CONTEXTS_FILE", self.home.path().join("contexts.yaml"));
        let output = command.output().unwrap();
        let printed = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
        (output.status.code().unwrap(), printed.concat())
    }

    fn expect(&self, code: i32, arguments: &[&str]) -> String {
        let (ended, printed) = self.run(arguments);
        assert_eq!(ended, code, "{arguments:?}: {printed}");
        printed
    }
}

/// The `OpenAPI` document of the server.
fn description() -> Value {
    let shop = json!({"type": "object", "required": ["id"], "properties": {"id": {"type": "string"}}});
    let body = json!({"content": {"application/json": {"schema": shop}}});
    json!({
        "openapi": "3.0.3",
        "info": {"title": "shops", "version": "1"},
        "paths": {
            "/shops": {"get": {}, "post": {"requestBody": body}},
            "/shops/{id}": {"get": {}, "put": {"requestBody": body}, "delete": {}},
        },
    })
}

async fn ends_without_differences(described: bool) {
    let (world, git_remote) = (World::start().await, GitRemote::new());
    let config = Config { collections: vec!["/shops".to_owned()], ..Config::default() };
    let server = RestServer::start(config).unwrap();
    for name in ["ava", "oslo", "rio"] {
        server.put_by_hand(&format!("/shops/{name}"), json!({"id": name, "tier": "free"}));
    }
    let document = described.then(description);
    if let Some(document) = &document {
        server.put_by_hand("/openapi.json", document.clone());
    }
    let user = User::new(&git_remote, &server, document.as_ref());

    // A user saves what the server has, edits one resource, adds another one and deletes one.
    user.expect(0, &["resource", "save", "/shops/"]);
    user.expect(0, &["resource", "diff", "/", "-r", "--exit-code"]);
    let gold = r#"{"id": "rio", "tier": "gold"}"#;
    user.expect(0, &["resource", "save", "/shops/rio", "-f", gold, "--force"]);
    user.expect(0, &["resource", "save", "/shops/new", "-f", r#"{"id": "new"}"#]);
    user.expect(7, &["resource", "diff", "/", "-r", "--exit-code"]);
    user.expect(0, &["resource", "apply", "/", "-r"]);
    assert!(user.expect(0, &["resource", "get", "/shops/rio"]).contains("\"gold\""));
    user.expect(0, &["resource", "delete", "/shops/ava", "--yes", "--source", "both", "--push"]);
    user.expect(0, &["resource", "diff", "/", "-r", "--exit-code"]);
    assert_eq!(server.get("/shops/rio").unwrap()["tier"], "gold");
    assert!(server.get("/shops/new").is_some() && server.get("/shops/ava").is_none());

    // The operator finds nothing to do.
    let written = server.writes().len();
    world.create_repository(&git_remote.file_url(), Value::Null).await;
    let mut spec = json!({"http": {"baseURL": server.url()}});
    if described {
        spec["openapi"] = json!({"url": format!("{}/openapi.json", server.url())});
    }
    world.create(declarest("ManagedServer", "server", &spec)).await;
    world.create_policy(Value::Null).await;
    world.applied(&git(&git_remote.bare(), &["rev-parse", "main"])).await;
    assert_eq!(server.writes().len(), written, "{:?}", server.writes());
    user.expect(0, &["resource", "diff", "/", "-r", "--exit-code"]);
    user.expect(0, &["plan", "/", "--prune", "--exit-code"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tree_of_the_command_line_needs_no_changes_by_the_operator() {
    ends_without_differences(false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn so_does_one_for_a_server_with_an_openapi_document() {
    ends_without_differences(true).await;
}
