//! Vault: the program that `make vault` builds, or any that `VAULT_BIN` names.

use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;

use reqwest::Method;
use rstest::rstest;
use serde_json::{Value, json};

use crate::command_line::{self, CommandLine};
use crate::process::Process;
use crate::product::{Login, Product, answers};
use crate::scene::{By, Scene};
use crate::support::ports::free_ports;

async fn start() -> Product {
    let program = env::var("VAULT_BIN").unwrap_or_default();
    assert!(Path::new(&program).is_file(), "VAULT_BIN={program:?} does not exist; run `make test-products`");
    let directory = tempfile::tempdir().unwrap();
    let [port] = free_ports();
    let listener = json!({"tcp": {"address": format!("127.0.0.1:{port}"), "tls_disable": true}});
    let config = json!({"storage": {"inmem": {}}, "listener": listener, "disable_mlock": true});
    let file = directory.path().join("config.json");
    fs::write(&file, config.to_string()).unwrap();
    let mut command = Command::new(program);
    command.arg("server").arg(format!("-config={}", file.display()));
    // A test waits for a new password. Five attempts before it is written would lock the user out.
    command.env("VAULT_DISABLE_USER_LOCKOUT", "true");
    let process = Process::start(&command, directory);
    let origin = format!("http://127.0.0.1:{port}");
    let status = format!("{origin}/v1/sys/init");
    process.wait_until(|| answers(&status)).await;
    let mut product = Product {
        name: "vault",
        origin,
        base: "/v1",
        login: Login::Header { name: "X-Vault-Token", value: String::new() },
        concurrency: None,
        secrets: &[
            ("auth/userpass/users/ana:/password", "correct horse"),
            ("mounts/shop/secrets/tills/main:.", r#"{"pin": "1234"}"#),
        ],
        singletons: 0,
        further: Vec::new(),
        _held: vec![Box::new(process)],
    };
    let shares = json!({"secret_shares": 1, "secret_threshold": 1});
    let (_, created) = product.ask(Method::PUT, "/sys/init", shares).await;
    product.change(Method::PUT, "/sys/unseal", json!({"key": created["keys"][0]})).await;
    let value = created["root_token"].as_str().unwrap().to_owned();
    product.login = Login::Header { name: "X-Vault-Token", value };
    product
}

/// Whether a user can log in with this password.
async fn logs_in(product: &Product, password: &str) -> bool {
    product.ask(Method::PUT, "/auth/userpass/login/ana", json!({"password": password})).await.0 == 200
}

#[rstest]
#[case::operator(By::Operator)]
#[case::command_line(By::CommandLine)]
#[tokio::test(flavor = "multi_thread")]
async fn policies_methods_engines_and_identities_are_kept(#[case] by: By) {
    let scene = Scene::start(start().await, by).await;
    let product = &scene.product;
    assert!(logs_in(product, "correct horse").await);

    let policy = json!({"policy": "path \"*\" { capabilities = [\"sudo\"] }"});
    product.change(Method::PUT, "/sys/policies/acl/till", policy).await;
    product.change(Method::PUT, "/sys/auth/userpass/tune", json!({"default_lease_ttl": 5})).await;
    product.change(Method::DELETE, "/auth/approle/role/ci", Value::Null).await;
    product.change(Method::PUT, "/shop/data/tills/main", json!({"data": {"pin": "0000", "more": 1}})).await;
    scene.repairs(1, 3).await;
    let policy = product.get("/sys/policies/acl/till").await;
    assert!(policy["data"]["policy"].as_str().unwrap().contains("read"), "{policy}");
    assert_eq!(product.get("/sys/auth/userpass").await["data"]["config"]["default_lease_ttl"], 3600);
    assert_eq!(product.get("/shop/data/tills/main").await["data"]["data"], json!({"pin": "1234"}));

    scene.git.write("auth/approle/role/ci/resource.yaml", "{token_policies: [till], token_ttl: 900}");
    scene.git.write("mounts/shop/resource.yaml", "{type: kv, description: Tills, options: {version: '2'}}");
    assert_eq!(scene.push().await.updated, 2);
    assert_eq!(product.get("/auth/approle/role/ci").await["data"]["token_ttl"], 900);
    assert_eq!(product.get("/sys/mounts/shop").await["data"]["description"], "Tills");

    // Vault does not show passwords.
    let key = "auth/userpass/users/ana:/password";
    scene.rotates(key, "battery staple", || logs_in(product, "battery staple")).await;
    assert!(!logs_in(product, "correct horse").await);

    // A role with another name is another role.
    scene.git.remove("auth/approle/role/ci");
    scene.git.write("auth/approle/role/build/resource.yaml", "{token_policies: [till], token_ttl: 900}");
    let stats = scene.push().await;
    assert_eq!((stats.created, stats.pruned), (1, 1));
    product.get("/auth/approle/role/build").await;
    product.lacks("/auth/approle/role/ci").await;

    for directory in ["auth", "mounts", "policies", "entities", "groups"] {
        scene.git.remove(directory);
    }
    scene.push().await;
    for path in ["/sys/policies/acl/till", "/identity/entity/name/ana", "/identity/group/name/operators"] {
        product.lacks(path).await;
    }
    for path in ["/sys/auth/userpass", "/sys/mounts/shop"] {
        assert_eq!(product.ask(Method::GET, path, Value::Null).await.0, 400, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_command_line_applies_and_saves_policies_methods_engines_and_identities() {
    let product = start().await;
    let collections = [
        "/policies/",
        "/auth/",
        "/auth/userpass/users/",
        "/auth/approle/role/",
        "/mounts/",
        "/mounts/shop/secrets/tills/",
        "/entities/",
        "/groups/",
    ];
    let roots = ["/auth/userpass", "/auth/approle", "/mounts/shop", "/policies/till", "/entities/ana"];
    command_line::applies_saves_and_deletes(&product, &collections, &roots).await;
    product.lacks("/sys/policies/acl/till").await;
}

/// Resources of the bundle, and their paths on the server.
const PATHS: [(&str, &str); 8] = [
    ("/policies/till", "/sys/policies/acl/till"),
    ("/auth/userpass", "/sys/auth/userpass"),
    ("/auth/userpass/users/ana", "/auth/userpass/users/ana"),
    ("/auth/approle/role/ci", "/auth/approle/role/ci"),
    ("/mounts/shop", "/sys/mounts/shop"),
    ("/mounts/shop/secrets/main", "/shop/data/main"),
    ("/entities/ana", "/identity/entity/name/ana"),
    ("/groups/operators", "/identity/group/name/operators"),
];

/// Vault documents POST where the bundle creates with PUT, and a slash at the end of most lists. It accepts both.
#[tokio::test(flavor = "multi_thread")]
async fn most_requests_are_inferred_from_the_document_of_vault() {
    let product = start().await;
    let shell = CommandLine::new(&product, &product.origin);
    tokio::task::block_in_place(|| shell.run(&["resource", "apply", "/", "-r"]));
    let document = product.get("/sys/internal/specs/openapi").await;
    tokio::task::block_in_place(|| {
        let requests = |path: &str| {
            let collection = format!("{}/", path.rsplit_once('/').unwrap().0);
            let of =
                |operation| shell.request(if operation == "list" { &collection } else { path }, operation);
            ["get", "create", "update", "delete", "list"].map(of)
        };
        let stated = PATHS.map(|(path, _)| requests(path));
        shell.use_document(&document);
        let inferred = PATHS.map(|(_, path)| {
            let collection = format!("{}/", path.rsplit_once('/').unwrap().0);
            shell.run(&["resource", "metadata", "infer", &collection, "--apply"]);
            requests(path)
        });
        let parts = |requests: &[[[String; 2]; 5]]| {
            let parts = requests.as_flattened().as_flattened().iter();
            parts.map(|part| if part.ends_with('/') { "." } else { part }.to_owned()).collect::<Vec<_>>()
        };
        let (stated, inferred) = (parts(&stated), parts(&inferred));
        let found = stated.iter().zip(&inferred).filter(|(stated, inferred)| stated == inferred).count();
        println!("vault: {found} of {} paths and methods are inferred", stated.len());
        assert!(found * 100 >= stated.len() * 80, "{found} of {}:\n{stated:?}\n{inferred:?}", stated.len());
    });
}
