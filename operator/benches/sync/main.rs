//! How fast syncs are, beside what is possible and beside other sizes, and how much memory they take. Prints
//! one table; run by `make bench`, or `make bench ROWS="a b"` for some of its rows. `docs/performance.md`
//! explains each row.
//!
//! The REST server is a process of its own, and so is the operator. Figures that are compared are measured
//! in turns in the same run, so that whatever else the machine does hits both.

#![allow(clippy::print_stdout, reason = "the table is the product")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a benchmark that cannot go on has no result")]

mod desired;
mod engine;
mod operator;
mod rest;
mod table;
mod webhook;

#[path = "../../../core/tests/vault/process.rs"]
mod process;
#[path = "../../../demo/rest_server/program.rs"]
mod program;
#[path = "../../tests/support/mod.rs"]
mod support;
#[path = "../../../core/tests/vault/vault.rs"]
#[allow(dead_code, reason = "a fixture of tests, which use all of it")]
mod vault;

use std::time::Instant;

use clap::Parser as _;
use operator::Settled;
use support::rest_server;
use support::world::on_cluster;
use table::{Table, machine};

/// The argument that makes this program the REST server of another one.
const SERVE: &str = "serve";

fn main() {
    // Cargo adds `--bench`.
    let arguments: Vec<String> = std::env::args().skip(1).filter(|text| text != "--bench").collect();
    if arguments.first().is_some_and(|first| first == SERVE) {
        return program::run(program::Args::parse_from(arguments)).unwrap();
    }
    let rows = Rows(arguments);
    // Without a provider of cryptography even a plain http client refuses to be built.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(measure(&rows));
}

/// The rows asked for, by their letters; none means all.
struct Rows(Vec<String>);

impl Rows {
    fn want(&self, row: &str) -> bool {
        self.0.is_empty() || self.0.iter().any(|wanted| wanted == row)
    }
}

async fn measure(rows: &Rows) {
    let started = Instant::now();
    println!("{}", machine());
    let mut table = Table::begin();
    if rows.want("a") {
        table.add(engine::one_by_one().await);
    }
    if rows.want("b") {
        engine::in_bulk().await.into_iter().for_each(|figure| table.add(figure));
    }
    if rows.want("c") {
        table.add(engine::create().await);
    }
    // Where every object is read and written over TLS, as in production.
    if rows.want("i") && on_cluster() {
        table.add(operator::life(256.0).await);
    }
    if rows.want("d") || rows.want("e") {
        // Both rows need a scope this large, which takes a while to make.
        let mut many = Settled::new(100_000, 100, &[]).await;
        if rows.want("d") {
            let mut few = Settled::new(1_000, 100, &[]).await;
            operator::ten_files(&mut few, &mut many).await.into_iter().for_each(|figure| table.add(figure));
        }
        if rows.want("e") {
            table.add(operator::memory(&Settled::new(10_000, 1_000, &[]).await, 64.0));
            table.add(operator::memory(&many, 256.0));
        }
    }
    if rows.want("f") && on_cluster() {
        for repositories in [1, 20] {
            for figure in operator::policies_on_cluster(repositories).await {
                table.add(figure);
            }
        }
    } else if rows.want("f") {
        table.add(operator::policies().await);
    }
    if rows.want("g") {
        table.add(operator::settled_check().await);
    }
    if rows.want("h") {
        Box::pin(engine::with_secrets()).await.into_iter().for_each(|figure| table.add(figure));
    }
    if rows.want("j") {
        table.add(webhook::push_to_request(100.0).await);
    }
    println!("\n{:.0} s in all; {} missed", started.elapsed().as_secs_f64(), table.missed());
}
