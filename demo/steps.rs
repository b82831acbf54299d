//! The acts of the show. Each does something, waits for what must follow, and checks the rest.

use serde_json::{Value, json};

use super::Failure;
use super::screen::{self, action, notice, ready, result, step};
use super::stage::Stage;

/// How many resources `desired/` declares.
const DECLARED: usize = 12;
/// Made by hand on the server, never declared in Git.
const BY_HAND: &str = "/shops/rio/tills/popup";

pub async fn first_sync(stage: &mut Stage) -> Result<(), Failure> {
    step(1, "The first sync creates everything that Git declares");
    action(&format!("an empty REST server at {}", stage.server.url()));
    action(&format!("{DECLARED} resources in {}", stage.remote.file_url()));
    stage.connect().await?;
    action(&format!("the operator, for kubectl --kubeconfig {}", stage.operator.kubeconfig().display()));
    let commit = stage.remote.head();
    let (_, took) = stage
        .wait_for("the first sync succeeds", |policy, _| is_ready(policy) && applied(policy, &commit))
        .await?;
    let held = stage.server.resources();
    expect(held.len() == DECLARED, || format!("the server holds {} resources, not {DECLARED}", held.len()))?;
    expect(stage.server.duplicates().is_empty(), || "a route was created twice".to_owned())?;
    let rio = stage.server.get("/shops/rio").unwrap_or_default();
    expect(rio["receipts"]["language"] == "en", || "rio lacks the defaults of all shops".to_owned())?;
    let till = stage.server.get("/shops/rio/tills/t1").unwrap_or_default();
    expect(till["onOpen"].as_str().is_some_and(|script| script.starts_with("#!/bin/sh")), || {
        "the till lacks its script".to_owned()
    })?;
    result(&format!("{DECLARED} resources after {:.1} s", took.as_secs_f64()));
    screen::requests(&stage.server);
    notice(
        "Parents come before children. The server chose the ids of the order routes; Git knows their names. \
         Shops inherit defaults, and a till includes its script from a file of its own.",
    );
    Ok(())
}

pub async fn change_two_files(stage: &mut Stage) -> Result<(), Failure> {
    step(2, "A push that changes two files touches two resources");
    stage.server.reset_counts();
    edit(stage, "shops/rio/resource.yaml", "sunday: closed", "sunday: 10:00-14:00")?;
    edit(stage, "order-routes/express/resource.yaml", "maximumWeightKg: 5", "maximumWeightKg: 8")?;
    let commit = stage.publish("Open rio on Sundays, allow heavier express orders").await?;
    let (policy, took) = stage
        .wait_for("the push is applied", |policy, _| applied(policy, &commit) && is_ready(policy))
        .await?;
    let writes = stage.server.writes();
    expect(writes.len() == 2 && writes.iter().all(|write| write.method == "PUT"), || {
        let writes: Vec<String> = writes.iter().map(ToString::to_string).collect();
        format!("expected two PUT requests, the server saw {writes:?}")
    })?;
    let sunday = stage.server.get("/shops/rio").unwrap_or_default()["opening"]["sunday"].clone();
    expect(sunday == "10:00-14:00", || format!("rio's Sunday is {sunday}"))?;
    result(&format!("applied {:.1} s after the push", took.as_secs_f64()));
    screen::requests(&stage.server);
    notice(&format!(
        "The run was {}; an incremental one only looks at what the diff of the commits affects.",
        policy["status"]["lastSyncMode"].as_str().unwrap_or("unknown")
    ));
    Ok(())
}

pub async fn correct_drift(stage: &mut Stage) -> Result<(), Failure> {
    step(3, "An edit by hand is put back, although Git did not change");
    let path = "/price-lists/summer";
    let Some(declared) = stage.server.get(path) else {
        return Err(Failure::new(format!("the server has no {path}")));
    };
    let mut edited = declared.clone();
    edited["discounts"] = json!([{"category": "everything", "percent": 100}]);
    stage.server.reset_counts();
    stage.server.put_by_hand(path, edited);
    action(&format!("a user edits {path} on the server: 100 % off"));
    let (_, took) = stage
        .wait_for("the edit is put back", |_, server| server.get(path).as_ref() == Some(&declared))
        .await?;
    result(&format!("put back after {:.1} s; the policy's syncInterval is 10 s", took.as_secs_f64()));
    screen::requests(&stage.server);
    notice("Every syncInterval each resource is compared with the server; only what differs is written.");
    Ok(())
}

pub async fn prune(stage: &mut Stage) -> Result<(), Failure> {
    step(4, "A file removed from Git is removed from the server; what Git never declared stays");
    let pruned = "/shops/rio/tills/t2";
    stage.server.put_by_hand(BY_HAND, json!({"id": "popup", "printer": "borrowed"}));
    action(&format!("a user creates {BY_HAND} on the server"));
    stage.server.reset_counts();
    stage.remote.remove("shops/rio/tills/t2");
    let commit = stage.publish("Retire till t2 of rio").await?;
    stage
        .wait_for("the removal is applied", |policy, _| applied(policy, &commit) && is_ready(policy))
        .await?;
    expect(stage.server.get(pruned).is_none(), || format!("{pruned} is still on the server"))?;
    expect(stage.server.get(BY_HAND).is_some(), || format!("{BY_HAND} is gone from the server"))?;
    result(&format!("{pruned} is gone, {BY_HAND} is still there"));
    screen::requests(&stage.server);
    notice("What the policy may remove is what it once saw declared: Git's history is the inventory.");
    Ok(())
}

pub async fn survive_a_bad_resource(stage: &mut Stage) -> Result<(), Failure> {
    step(5, "One resource that the server rejects fails alone");
    let bad = "/shops/lisbon/tills/t2";
    let file = "shops/lisbon/tills/t2/resource.json";
    stage.server.reset_counts();
    stage.remote.write(file, "{\n  \"id\": \"t2\",\n  \"accepts\": [\"card\"]\n}\n");
    edit(stage, "shops/nairobi/resource.yaml", "weekdays: 08:30-18:00", "weekdays: 08:00-18:00")?;
    let commit = stage.publish("Add a till to lisbon without its printer, open nairobi earlier").await?;
    let (policy, _) = stage
        .wait_for("the policy reports a partial failure", |policy, _| {
            policy["status"]["lastAttemptedRepoRevision"] == commit.as_str()
                && ready(policy).is_some_and(|condition| condition["reason"] == "PartialFailure")
        })
        .await?;
    let weekdays = stage.server.get("/shops/nairobi").unwrap_or_default()["opening"]["weekdays"].clone();
    expect(weekdays == "08:00-18:00", || format!("nairobi was not applied, it opens {weekdays}"))?;
    let failed = policy["status"]["failedResources"].as_array().cloned().unwrap_or_default();
    let paths: Vec<&Value> = failed.iter().map(|resource| &resource["path"]).collect();
    expect(paths == [bad], || format!("failedResources names {paths:?}, not just {bad}"))?;
    result("nairobi is applied; the policy is PartialFailure because of");
    notice(&format!("{bad}: {}", failed[0]["message"].as_str().unwrap_or("no message")));
    screen::requests(&stage.server);

    stage.server.reset_counts();
    stage
        .remote
        .write(file, "{\n  \"id\": \"t2\",\n  \"printer\": \"star-58\",\n  \"accepts\": [\"card\"]\n}\n");
    let commit = stage.publish("Give the till its printer").await?;
    stage.wait_for("the policy recovers", |policy, _| applied(policy, &commit) && is_ready(policy)).await?;
    expect(stage.server.get(bad).is_some(), || format!("{bad} is not on the server"))?;
    result("the policy is Ready again");
    screen::requests(&stage.server);
    Ok(())
}

pub async fn compare_with_the_contract(stage: &mut Stage) -> Result<(), Failure> {
    step(6, "The running service is compared with the contract of its developers");
    let contract = "pactoVersion: '1.0'\n\
                    service: {name: shop-api, version: 2.1.0, image: {ref: 'r.example/shop-api:2.1.0'}}\n";
    stage.operator.deploy("r.example/shop-api:2.1.0").await?;
    stage
        .operator
        .set_contract(&json!({"inline": contract, "target": {"workload": {"name": "shop-api"}}}))
        .await?;
    action("the contract says: a Deployment with the image r.example/shop-api:2.1.0");
    let (_, took) = stage.wait_for_phase("Healthy").await?;
    result(&format!("Healthy after {:.1} s", took.as_secs_f64()));
    stage.operator.deploy("r.example/shop-api:2.0.0").await?;
    action("a user deploys the image r.example/shop-api:2.0.0");
    let (status, took) = stage.wait_for_phase("Degraded").await?;
    let checks = status["checks"].as_array().cloned().unwrap_or_default();
    let wrong: Vec<&Value> = checks.iter().filter(|check| check["status"] == "False").collect();
    expect(wrong.len() == 1 && wrong[0]["type"] == "ImageMatches", || {
        format!("the failed checks are {wrong:?}")
    })?;
    result(&format!("Degraded after {:.1} s", took.as_secs_f64()));
    notice(wrong[0]["message"].as_str().unwrap_or("no message"));
    notice("The operator only observes: it changes neither the Deployment nor the contract.");
    Ok(())
}

pub async fn final_status(stage: &mut Stage) -> Result<(), Failure> {
    step(7, "What kubectl shows in the end");
    let (policy, _) = stage.wait_for("the policy is Ready", |policy, _| is_ready(policy)).await?;
    expect(stage.server.get(BY_HAND).is_some(), || format!("{BY_HAND} is gone from the server"))?;
    expect(stage.server.duplicates().is_empty(), || "a route was created twice".to_owned())?;
    screen::policy_table(&policy);
    Ok(())
}

fn expect(holds: bool, otherwise: impl FnOnce() -> String) -> Result<(), Failure> {
    if holds { Ok(()) } else { Err(Failure::new(otherwise())) }
}

/// Whether the last run ended well with this commit.
fn applied(policy: &Value, commit: &str) -> bool {
    policy["status"]["lastAppliedRepoRevision"] == commit
}

fn is_ready(policy: &Value) -> bool {
    ready(policy).is_some_and(|condition| condition["status"] == "True")
}

/// Replaces a text in a file of the work tree; the text must be there.
fn edit(stage: &Stage, path: &str, from: &str, to: &str) -> Result<(), Failure> {
    let file = stage.remote.work_tree().join(path);
    let text = std::fs::read_to_string(&file)
        .map_err(|error| Failure::new(format!("cannot read {}: {error}", file.display())))?;
    expect(text.contains(from), || format!("{path} does not contain {from:?}"))?;
    stage.remote.write(path, text.replace(from, to));
    Ok(())
}
