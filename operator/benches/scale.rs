//! How long a first sync and a settled check of many resources take, how much memory the operator needs
//! for them, and what ten changed files cost. Prints a table; run by `make bench`.
//!
//! The numbers are of whole processes on one machine: operator, Git remote and REST server together.

#![allow(clippy::print_stdout, reason = "the table is the product")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a benchmark that cannot go on has no result")]

#[path = "../tests/support/mod.rs"]
mod support;

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use support::git_remote::GitRemote;
use support::rest_server::{Config, RestServer};
use support::world::World;

struct Row {
    resources: usize,
    first_sync: Duration,
    ten_files: Duration,
    requests_of_ten: usize,
    full_check: Duration,
    peak_memory: u64,
}

fn repository(resources: usize) -> GitRemote {
    let git = GitRemote::new();
    for index in 0..resources {
        let body = json!({
            "id": format!("i{index}"), "size": 1, "enabled": true,
            "labels": {"team": "bench", "tier": "gold"},
            "limits": [{"name": "cpu", "value": 4}, {"name": "memory", "value": 512}],
            "description": "a resource of the size that people write by hand, with a sentence in it",
        });
        git.write(&format!("c{}/i{index}/resource.json", index % 10), body.to_string());
    }
    git.commit("all");
    git.push();
    git
}

async fn measure(resources: usize) -> Row {
    let git = repository(resources);
    let collections = (0..10).map(|collection| format!("/c{collection}")).collect();
    let server = RestServer::start(Config { collections, ..Config::default() }).unwrap();
    let world = World::start_with(&["--log-level", "info"]).await;
    world.create_repository(&git.file_url(), Value::Null).await;
    world.create_server(json!({"baseURL": server.url()})).await;
    let started = Instant::now();
    world.create_policy(json!({})).await;
    world.applied(&git.head()).await;
    let first_sync = started.elapsed();

    for index in 0..10 {
        let body = json!({"id": format!("i{index}"), "size": 2});
        git.write(&format!("c{index}/i{index}/resource.json"), body.to_string());
    }
    let revision = git.commit("ten files");
    git.push();
    server.reset_counts();
    let started = Instant::now();
    world.notify().await;
    world.applied(&revision).await;
    let ten_files = started.elapsed();
    let requests_of_ten = server.counts().total();

    let started = Instant::now();
    world.request_sync().await;
    world.finished("ManualRequest").await;
    let full_check = started.elapsed();
    Row { resources, first_sync, ten_files, requests_of_ten, full_check, peak_memory: world.peak_memory() }
}

#[tokio::main]
async fn main() {
    println!(
        "{:>10} {:>12} {:>12} {:>10} {:>12} {:>10}",
        "resources", "first sync", "ten files", "requests", "full check", "peak RSS"
    );
    for resources in [1_000, 10_000] {
        let row = measure(resources).await;
        println!(
            "{:>10} {:>10.2} s {:>10.3} s {:>10} {:>10.2} s {:>6} MiB",
            row.resources,
            row.first_sync.as_secs_f64(),
            row.ten_files.as_secs_f64(),
            row.requests_of_ten,
            row.full_check.as_secs_f64(),
            row.peak_memory,
        );
    }
}
