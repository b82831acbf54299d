//! `declarest-operator`: keeps REST servers in sync with Git.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use declarest_operator::args::{Args, Command};
use declarest_operator::{crds, runtime};

fn main() -> ExitCode {
    match Args::read().into_command() {
        Command::Run(options) => runtime::cluster(options),
        Command::Standalone(options) => runtime::standalone(options),
        Command::Crds(options) => crds::write(&options),
    }
}
