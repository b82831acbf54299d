//! The first five minutes: a REST server, a Git repository and the operator on one machine, no cluster.
//!
//! `cargo build -p declarest-operator && cargo run -p declarest-operator --example demo`
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "it is a show for the terminal")]

#[path = "../operator/tests/support/git_remote.rs"]
mod git_remote;
mod operator;
mod rest_server;
mod screen;
mod stage;
mod steps;

use std::fmt;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use clap::Parser;
use stage::Stage;

/// Shows in under a minute what the operator does, step by step, and checks that it does.
#[derive(Parser)]
#[command(name = "demo")]
struct Args {
    /// The operator's binary; default: the one this workspace built
    #[arg(long, value_name = "FILE")]
    operator: Option<PathBuf>,
    /// Keep everything running afterwards, to play with, until Ctrl-C
    #[arg(long)]
    keep: bool,
}

/// Why the show cannot go on.
#[derive(Debug)]
pub struct Failure(String);

impl Failure {
    pub fn new(text: impl Into<String>) -> Failure {
        Failure(text.into())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[tokio::main]
async fn main() -> ExitCode {
    let args = Args::parse();
    // None is installed yet: this is the start of the process.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut stage = match Stage::set_up(args.operator) {
        Ok(stage) => stage,
        Err(failure) => {
            eprintln!("error: {failure}");
            return ExitCode::FAILURE;
        }
    };
    let start = Instant::now();
    match show(&mut stage).await {
        Ok(()) => {
            println!("\nAll of it happened, in {:.0} s.", start.elapsed().as_secs_f64());
            if !args.keep {
                println!("To keep it running and play with it: make demo ARGS=--keep");
            }
        }
        Err(failure) => {
            eprintln!("\nerror: {failure}");
            stage.explain_failure().await;
            // It failed already; how the operator ends adds nothing.
            let _ = stage.close().await;
            return ExitCode::FAILURE;
        }
    }
    match end(stage, args.keep).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("error: {failure}");
            ExitCode::FAILURE
        }
    }
}

async fn show(stage: &mut Stage) -> Result<(), Failure> {
    steps::first_sync(stage).await?;
    steps::change_two_files(stage).await?;
    steps::correct_drift(stage).await?;
    steps::prune(stage).await?;
    steps::survive_a_bad_resource(stage).await?;
    steps::compare_with_the_contract(stage).await?;
    steps::final_status(stage).await
}

async fn end(stage: Stage, keep: bool) -> Result<(), Failure> {
    if keep {
        stage.print_invitation();
        let interrupted = tokio::signal::ctrl_c().await;
        interrupted.map_err(|error| Failure::new(format!("cannot wait for Ctrl-C: {error}")))?;
    }
    stage.close().await
}
