//! The command line as a user of the operator's API: the in-process one, and a real API server.

use std::path::Path;
use std::process::Command;

use declarest_core::contract::status::Phase;
use declarest_operator::crd::SyncPolicy;
use serde_json::{Value, json};

use super::contracts::{contract, create, deploy_shop, start, verified};
use crate::support::git_remote::GitRemote;
use crate::support::rest_server::{Config, RestServer};
use crate::support::world::World;

/// Runs `declarest` with the access of a user to the namespace; its exit code, and what it printed.
async fn declarest(world: &World, arguments: &[&str]) -> (i32, String) {
    let program = Path::new(env!("CARGO_BIN_EXE_declarest-operator")).with_file_name("declarest");
    assert!(program.is_file(), "{} does not exist; run `make build`", program.display());
    let home = tempfile::tempdir().unwrap();
    let mut command = Command::new(program);
    command.args(arguments).arg("-n").arg(&world.namespace).arg("--kubeconfig").arg(world.user_kubeconfig());
    command.env_clear().env("HOME", home.path()).current_dir(home.path());
    let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    let printed = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    (output.status.code().unwrap(), printed.concat())
}

#[tokio::test]
async fn a_policy_is_shown_suspended_resumed_and_run() {
    let (world, git) = (World::start().await, GitRemote::new());
    let config = Config { collections: vec!["/shops".to_owned()], ..Config::default() };
    let server = RestServer::start(config).unwrap();
    git.write("shops/rio/resource.json", r#"{"id": "rio"}"#);
    let revision = git.commit("shops");
    git.push();
    world.create_repository(&git.file_url(), Value::Null).await;
    world.create_server(json!({"baseURL": server.url()})).await;
    world.create_policy(Value::Null).await;
    world.applied(&revision).await;

    let (code, printed) = declarest(&world, &["operator", "status"]).await;
    assert_eq!(code, 0, "{printed}");
    for text in
        ["syncpolicy/policy", "resourcerepository/repo", "managedserver/server", &revision[..12], "1 applied"]
    {
        assert!(printed.contains(text), "{text} is missing in\n{printed}");
    }

    let (code, printed) = declarest(&world, &["operator", "suspend", "policy"]).await;
    assert_eq!(code, 0, "{printed}");
    assert!(world.api::<SyncPolicy>().get("policy").await.unwrap().spec.suspend);
    let (status, _) = world.policy_reason("Suspended").await;
    assert_eq!(status.next_sync_time, None);
    let (code, printed) = declarest(&world, &["operator", "sync", "policy", "--wait=1m"]).await;
    assert!(code == 2 && printed.contains("is suspended"), "{code}: {printed}");

    assert!(server.delete_by_hand("/shops/rio"));
    let (code, printed) = declarest(&world, &["operator", "resume", "policy"]).await;
    assert_eq!(code, 0, "{printed}");
    let (code, printed) = declarest(&world, &["operator", "sync", "policy", "--wait=1m"]).await;
    assert_eq!(code, 0, "{printed}");
    assert!(server.get("/shops/rio").is_some(), "the run corrected the drift");

    let (code, printed) = declarest(&world, &["operator", "suspend", "none"]).await;
    assert_eq!(code, 3, "{printed}");
}

#[tokio::test]
async fn a_contract_is_verified_as_by_the_operator() {
    let world = start().await;
    deploy_shop(&world, 8080).await;
    let document = contract("1.0.0", 8080, "").replace("  health: {interface: api, path: /health}\n", "");
    let spec =
        json!({"inline": document.replace("r.io/shop:1", "r.io/shop:2"), "target": {"service": "shop"}});
    create(&world, "http://127.0.0.1:1", spec).await;
    let degraded =
        |contract: &declarest_core::contract::status::ContractStatus| contract.phase == Some(Phase::Degraded);
    let status = verified(&world, "the image differs", degraded).await;
    let by_operator = serde_json::to_value(status.contract.unwrap().checks).unwrap();

    let verify = ["contract", "verify", "--server", "server", "-o", "json", "--fail-on", "warning"];
    let (code, printed) = declarest(&world, &verify).await;
    assert_eq!(code, 7, "{printed}");
    let printed: Value = serde_json::from_str(&printed).unwrap();
    let results = |checks: &Value| -> Vec<Vec<Value>> {
        let result =
            |check: &Value| ["type", "status", "reason", "message"].map(|key| check[key].clone()).to_vec();
        checks.as_array().unwrap().iter().map(result).collect()
    };
    assert_eq!(printed["phase"], "Degraded");
    assert_eq!(results(&printed["checks"]), results(&by_operator));
}
