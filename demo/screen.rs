//! What the person at the terminal reads.

use serde_json::Value;

use super::rest_server::{Counts, RestServer};

pub fn step(number: usize, title: &str) {
    println!("\n{number}. {title}");
}

/// What was done.
pub fn action(text: &str) {
    println!("   > {text}");
}

/// What came of it.
pub fn result(text: &str) {
    println!("   = {text}");
}

/// What to notice.
pub fn notice(text: &str) {
    println!("     {text}");
}

/// Counts by method, and every write with its answer.
pub fn requests(server: &RestServer) {
    result(&format!("requests to the server: {}", summary(&server.counts())));
    for write in server.writes() {
        let status = write.status.map_or_else(|| "no answer".to_owned(), |status| status.to_string());
        let given = write.body.as_ref().and_then(|body| body["id"].as_str().or(body["name"].as_str()));
        let entry = given.filter(|_| write.method == "POST").map(|id| format!(" ({id})")).unwrap_or_default();
        println!("       {write}{entry} -> {status}");
    }
}

fn summary(counts: &Counts) -> String {
    let methods = ["GET", "POST", "PUT", "PATCH", "DELETE"];
    let asked = methods.map(|method| (method, counts.method(method)));
    let asked: Vec<String> = asked
        .iter()
        .filter(|(_, count)| *count > 0)
        .map(|(method, count)| format!("{count} {method}"))
        .collect();
    if asked.is_empty() { "none".to_owned() } else { asked.join(", ") }
}

/// The `Ready` condition of an object.
pub fn ready(object: &Value) -> Option<&Value> {
    object["status"]["conditions"].as_array()?.iter().find(|condition| condition["type"] == "Ready")
}

/// The policy as `kubectl get` would show it, and the statistics of its last run.
pub fn policy_table(policy: &Value) {
    let (spec, status) = (&policy["spec"], &policy["status"]);
    let condition = ready(policy).cloned().unwrap_or_default();
    table(&[
        ("NAME", text(&policy["metadata"]["name"])),
        ("REPO", text(&spec["resourceRepositoryRef"]["name"])),
        ("SERVER", text(&spec["managedServerRef"]["name"])),
        ("REVISION", text(&status["lastAppliedRepoRevision"]).chars().take(12).collect()),
        ("LAST SYNC", text(&status["lastSuccessfulSyncTime"])),
        ("READY", text(&condition["status"])),
        ("REASON", text(&condition["reason"])),
    ]);
    println!();
    let counts = &status["resourceStats"];
    table(&[
        ("MODE", text(&status["lastSyncMode"])),
        ("TRIGGER", text(&status["lastTrigger"])),
        ("TARGETED", text(&counts["targeted"])),
        ("APPLIED", text(&counts["applied"])),
        ("PRUNED", text(&counts["pruned"])),
        ("FAILED", text(&counts["failed"])),
        ("NEXT SYNC", text(&status["nextSyncTime"])),
    ]);
}

fn table(columns: &[(&str, String)]) {
    let widths: Vec<usize> =
        columns.iter().map(|(head, cell)| head.len().max(cell.chars().count())).collect();
    let line = |cells: Vec<&str>| {
        let padded: Vec<String> =
            cells.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        println!("   {}", padded.join("   ").trim_end());
    };
    line(columns.iter().map(|(head, _)| *head).collect());
    line(columns.iter().map(|(_, cell)| cell.as_str()).collect());
}

/// A scalar as text; a missing one as kubectl prints it.
fn text(value: &Value) -> String {
    match value {
        Value::Null => "<none>".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
