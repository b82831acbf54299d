//! `declarest-operator`: keeps REST servers equal to what Git declares.

use std::process::ExitCode;

use declarest_operator::args::{Args, Command};
use declarest_operator::{crds, runtime};

#[tokio::main]
async fn main() -> ExitCode {
    match Args::read().into_command() {
        Command::Run(options) => runtime::cluster(options).await,
        Command::Crds(options) => crds::write(&options),
    }
}
