//! PowerDNS Authoritative Server with SQLite.

use std::process::Command;

use reqwest::Method;
use rstest::rstest;
use serde_json::json;

use crate::command_line;
use crate::process::Process;
use crate::product::{Login, Product, answers};
use crate::scene::{By, Scene};
use crate::support::ports::free_ports;

const SCHEMA: &str = "/usr/share/pdns-backend-sqlite3/schema/schema.sqlite3.sql";

async fn start() -> Product {
    let directory = tempfile::tempdir().unwrap();
    let database = directory.path().join("zones.db");
    let made = Command::new("sqlite3").arg(&database).arg(format!(".read {SCHEMA}")).status();
    assert!(made.unwrap().success(), "{SCHEMA} cannot be loaded");
    let [dns, api] = free_ports();
    let mut command = Command::new("/usr/sbin/pdns_server");
    command.args(["--daemon=no", "--guardian=no", "--launch=gsqlite3", "--local-address=127.0.0.1"]);
    command.args(["--webserver=yes", "--webserver-address=127.0.0.1", "--api=yes", "--api-key=key"]);
    command.args([format!("--local-port={dns}"), format!("--webserver-port={api}")]);
    for (name, value) in [("gsqlite3-database", &database), ("socket-dir", &directory.path().to_owned())] {
        command.arg(format!("--{name}={}", value.display()));
    }
    command.arg(format!("--config-dir={}", directory.path().display()));
    let process = Process::start(&command, directory);
    let origin = format!("http://127.0.0.1:{api}");
    process.wait_until(|| answers(&origin)).await;
    Product {
        name: "powerdns",
        origin,
        base: "/api/v1/servers/localhost",
        login: Login::Header { name: "X-API-Key", value: "key".to_owned() },
        concurrency: Some(1),
        secrets: &[],
        singletons: 0,
        further: Vec::new(),
        _held: vec![Box::new(process)],
    }
}

const ZONE: &str = "/zones/example.org.";

#[rstest]
#[case::operator(By::Operator)]
#[case::command_line(By::CommandLine)]
#[tokio::test(flavor = "multi_thread")]
async fn zones_record_sets_and_metadata_are_kept(#[case] by: By) {
    let scene = Scene::start(start().await, by).await;
    let product = &scene.product;

    let address = json!({
        "name": "www.example.org.", "type": "A", "ttl": 5, "changetype": "REPLACE",
        "records": [{"content": "203.0.113.1", "disabled": false}],
    });
    product.change(Method::PATCH, ZONE, json!({"rrsets": [address]})).await;
    product.change(Method::DELETE, &format!("{ZONE}/metadata/ALLOW-AXFR-FROM"), json!(null)).await;
    product.change(Method::PUT, ZONE, json!({"kind": "Master"})).await;
    scene.repairs(1, 2).await;
    let zone = product.get(ZONE).await;
    assert_eq!(zone["kind"], "Native");
    assert!(zone.to_string().contains("192.0.2.2") && !zone.to_string().contains("203.0.113.1"), "{zone}");

    let metadata = "zones/example.org./metadata/ALLOW-AXFR-FROM";
    let changed = "{kind: ALLOW-AXFR-FROM, metadata: [192.0.2.54, 192.0.2.55]}";
    scene.git.write(&format!("{metadata}/resource.yaml"), changed);
    assert_eq!(scene.push().await.updated, 1);
    let metadata = product.get(&format!("{ZONE}/metadata/ALLOW-AXFR-FROM")).await;
    assert_eq!(metadata["metadata"], json!(["192.0.2.54", "192.0.2.55"]));

    scene.git.write("zones/example.net./resource.yaml", "{name: example.net., kind: Native}");
    assert_eq!(scene.push().await.created, 1);
    // A zone with another name is another zone.
    scene.git.remove("zones/example.net.");
    scene.git.write("zones/example.com./resource.yaml", "{name: example.com., kind: Native}");
    let stats = scene.push().await;
    assert_eq!((stats.created, stats.pruned), (1, 1));
    product.get("/zones/example.com.").await;
    product.lacks("/zones/example.net.").await;
    let address = "zones/example.org./rrsets/www.example.org.-A";
    scene.git.remove("zones/example.com.").remove("zones/example.org./metadata").remove(address);
    assert_eq!(scene.push().await.pruned, 3);
    product.lacks("/zones/example.com.").await;
    let zone = product.get(ZONE).await.to_string();
    assert!(zone.contains("ns1.example.org.") && !zone.contains("www.example.org."), "{zone}");

    scene.git.remove("zones");
    scene.push().await;
    product.lacks(ZONE).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_command_line_applies_and_saves_zones() {
    let product = start().await;
    let below = |name: &str| format!("{ZONE}/{name}/");
    let collections = ["/zones/", &below("rrsets"), &below("metadata")];
    command_line::applies_saves_and_deletes(&product, &collections, &[ZONE]).await;
    product.lacks(ZONE).await;
}
