//! Keycloak in development mode, with a database in memory.

use std::env;
use std::path::Path;
use std::process::Command;

use reqwest::Method;
use rstest::rstest;
use serde_json::{Value, json};
use tokio::sync::{Mutex, OnceCell};

use crate::command_line;
use crate::process::Process;
use crate::product::{Held, Login, Product, answers};
use crate::scene::{By, Scene};
use crate::support::ports::free_ports;

/// Started once for all tests, which take turns: it takes more processor time to start than to run a test.
static SERVER: OnceCell<(Process, String)> = OnceCell::const_new();
static TURN: Mutex<()> = Mutex::const_new(());

/// A Keycloak that has no realm but `master`, and that no other test uses until the product is dropped.
async fn start() -> Product {
    let turn = TURN.lock().await;
    let (_, origin) = SERVER.get_or_init(start_server).await;
    let product = product(origin.clone(), vec![Box::new(turn)]);
    for realm in product.get("/admin/realms").await.as_array().unwrap() {
        let name = realm["realm"].as_str().unwrap();
        if name != "master" {
            product.change(Method::DELETE, &format!("/admin/realms/{name}"), Value::Null).await;
        }
    }
    product
}

async fn start_server() -> (Process, String) {
    let home = env::var("KEYCLOAK_HOME").unwrap_or_default();
    assert!(Path::new(&home).is_dir(), "KEYCLOAK_HOME={home:?} does not exist; run `make test-products`");
    let [port, management] = free_ports();
    let mut command = Command::new(Path::new(&home).join("bin/kc.sh"));
    command.args(["start-dev", "--db=dev-mem", "--cache=local", "--http-host=127.0.0.1"]);
    command.args([format!("--http-port={port}"), format!("--http-management-port={management}")]);
    command.env("KC_BOOTSTRAP_ADMIN_CLIENT_ID", "declarest").env("KC_BOOTSTRAP_ADMIN_CLIENT_SECRET", "test");
    // It runs for a minute, so the second compiler would take more processor time than it saves.
    command.env("JAVA_OPTS_APPEND", "-XX:TieredStopAtLevel=1");
    let process = Process::start(&command, tempfile::tempdir().unwrap());
    let origin = format!("http://127.0.0.1:{port}");
    let realm = format!("{origin}/realms/master");
    process.wait_until(|| answers(&realm)).await;
    // The first realm takes up to half a minute on a busy machine, as long as a request may take.
    let product = product(origin.clone(), Vec::new());
    let (status, answer) = product.ask(Method::POST, "/admin/realms", json!({"realm": "first"})).await;
    assert_eq!(status, 201, "{answer}");
    (process, origin)
}

fn product(origin: String, held: Held) -> Product {
    Product {
        name: "keycloak",
        origin,
        base: "",
        login: Login::Client {
            path: "/realms/master/protocol/openid-connect/token",
            id: "declarest",
            secret: "test",
        },
        concurrency: None,
        secrets: &[
            ("realms/acme:/smtpServer/password", "mail"),
            ("realms/acme/clients/shop:/secret", "4f1c9c4e2b"),
            ("realms/acme/identity-providers/corporate:/config/clientSecret", "broker"),
            ("realms/acme/users/ana:/credentials/0/value", "correct horse"),
        ],
        singletons: 2,
        further: Vec::new(),
        _held: held,
    }
}

const REALM: &str = "/admin/realms/acme";

/// The id of an entry of a list.
async fn id_of(product: &Product, list: &str, key: &str, name: &str) -> String {
    let entries = product.get(&format!("{REALM}{list}")).await;
    let mut entries = entries.as_array().unwrap().iter();
    let entry = entries.find(|entry| entry[key] == name).unwrap_or_else(|| panic!("{list} lacks {name}"));
    entry["id"].as_str().unwrap().to_owned()
}

/// Whether the user can log in with this password.
async fn logs_in(product: &Product, password: &str) -> bool {
    let password = password.replace(' ', "%20");
    let form = format!("grant_type=password&client_id=login&username=ana&password={password}");
    let answer = product.token("/realms/acme/protocol/openid-connect/token", form).await;
    answer["access_token"].is_string()
}

/// The address of a mapping of a client's role contains the id of the client.
async fn a_mapping_is_repaired(scene: &Scene, client: &str) {
    let product = &scene.product;
    let user = id_of(product, "/users", "username", "ana").await;
    let mappings = format!("{REALM}/users/{user}/role-mappings/clients/{client}");
    let mapped = product.get(&mappings).await;
    product.change(Method::DELETE, &mappings, mapped).await;
    scene.repairs(1, 0).await;
    assert_eq!(product.get(&mappings).await[0]["name"], "clerk");
}

#[rstest]
#[case::operator(By::Operator)]
#[case::command_line(By::CommandLine)]
#[tokio::test(flavor = "multi_thread")]
async fn a_realm_and_what_it_contains_are_kept(#[case] by: By) {
    let scene = Scene::start(start().await, by).await;
    let product = &scene.product;
    let login = json!({"clientId": "login", "publicClient": true, "directAccessGrantsEnabled": true});
    product.change(Method::POST, &format!("{REALM}/clients"), login).await;
    assert!(logs_in(product, "correct horse").await);
    let flow = product.get(&format!("{REALM}/authentication/flows/browser-with-otp/executions")).await;
    let steps: Vec<_> = flow.as_array().unwrap().iter().map(|step| &step["requirement"]).collect();
    assert_eq!(steps, ["ALTERNATIVE", "ALTERNATIVE", "REQUIRED", "REQUIRED"], "{flow}");
    assert_eq!(product.get(REALM).await["browserFlow"], "browser-with-otp");

    product.change(Method::PUT, REALM, json!({"displayName": "Changed"})).await;
    product.change(Method::DELETE, &format!("{REALM}/roles/viewer"), Value::Null).await;
    let client = format!("{REALM}/clients/{}", id_of(product, "/clients", "clientId", "shop").await);
    let mut changed = product.get(&client).await;
    changed["redirectUris"] = json!(["https://other.example.org/*"]);
    product.change(Method::PUT, &client, changed).await;
    // Keycloak deletes the mappings of a role and its memberships in composite roles together with the role.
    scene.repairs(4, 2).await;
    assert_eq!(product.get(REALM).await["displayName"], "Acme");
    assert_eq!(product.get(&client).await["redirectUris"], json!(["https://shop.example.org/*"]));
    product.get(&format!("{REALM}/roles/viewer")).await;

    a_mapping_is_repaired(&scene, client.rsplit('/').next().unwrap()).await;

    scene.git.write("realms/acme/roles/viewer/resource.yaml", "{name: viewer, description: Reads}");
    assert_eq!(scene.push().await.updated, 1);
    assert_eq!(product.get(&format!("{REALM}/roles/viewer")).await["description"], "Reads");

    // A role with another name is another role.
    scene.git.remove("realms/acme/roles/viewer").remove("realms/acme/roles/manager/composites");
    scene.git.remove("realms/acme/users/ana/roles").remove("realms/acme/groups/staff/roles");
    scene.git.write("realms/acme/roles/reader/resource.yaml", "{name: reader, description: Reads}");
    let stats = scene.push().await;
    assert_eq!((stats.created, stats.pruned), (1, 4));
    product.get(&format!("{REALM}/roles/reader")).await;
    product.lacks(&format!("{REALM}/roles/viewer")).await;

    let key = "realms/acme/users/ana:/credentials/0/value";
    scene.rotates(key, "battery staple", || logs_in(product, "battery staple")).await;
    // Keycloak caches credentials, so the cache may have the old ones for a while.
    product.change(Method::POST, &format!("{REALM}/clear-user-cache"), Value::Null).await;
    assert!(!logs_in(product, "correct horse").await);
    assert!(logs_in(product, "battery staple").await);

    scene.git.remove("realms/acme/clients").remove("realms/acme/users");
    scene.git.remove("realms/acme/groups/staff/clients").remove("realms/acme/roles/manager/clients");
    scene.push().await;
    product.lacks(&client).await;
    // A flow that is in use cannot be deleted.
    let realm = json!({"realm": "acme", "enabled": true, "browserFlow": "browser"});
    scene.git.write("realms/acme/resource.yaml", realm.to_string());
    assert_eq!(scene.push().await.updated, 1);
    scene.git.remove("realms");
    scene.push().await;
    product.lacks(REALM).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_command_line_applies_and_saves_a_realm() {
    let product = start().await;
    let below = |name: &str| format!("/realms/acme/{name}");
    let collections = [
        "clients/",
        "clients/shop/roles/",
        "clients/shop/mappers/",
        "client-scopes/",
        "client-scopes/orders/mappers/",
        "roles/",
        "roles/manager/composites/",
        "roles/manager/clients/shop/composites/",
        "groups/",
        "groups/staff/roles/",
        "groups/staff/clients/shop/roles/",
        "groups/staff/children/",
        "users/",
        "users/ana/roles/",
        "users/ana/clients/shop/roles/",
        "users/ana/groups/",
        "identity-providers/",
        "identity-providers/corporate/mappers/",
        "flows/",
        "flows/browser-with-otp/executions/",
        "flows/browser-with-otp/executions/browser-with-otp-forms/executions/",
        "components/",
        "profile",
        "events",
    ];
    let collections: Vec<String> = collections.iter().map(|name| below(name)).collect();
    let mut collections: Vec<&str> = collections.iter().map(String::as_str).collect();
    collections.insert(0, "/realms/acme");
    command_line::applies_saves_and_deletes(&product, &collections, &["/realms/acme"]).await;
    product.lacks(REALM).await;
}

/// How much time it takes, for docs/performance.md. `make test-products-large` runs it.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes"]
async fn five_hundred_clients() {
    let mut product = start().await;
    product.further = (0..500)
        .map(|index| {
            let client = json!({
                "clientId": format!("client-{index:03}"),
                "enabled": true,
                "redirectUris": [format!("https://{index:03}.example.org/*")],
            });
            (format!("realms/acme/clients/client-{index:03}/resource.json"), client.to_string())
        })
        .collect();
    Scene::start(product, By::Operator).await;
}
