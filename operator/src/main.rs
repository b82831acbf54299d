//! The DeclaREST operator.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use declarest_operator::crd;

/// Keeps REST servers equal to what Git declares.
#[derive(Parser)]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Write the CustomResourceDefinitions as YAML files.
    Crds {
        /// Directory to write them to.
        #[arg(long)]
        dir: PathBuf,
    },
}

fn main() -> ExitCode {
    let Args { command: Command::Crds { dir } } = Args::parse();
    match crd::generate::write(&dir) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!(%error);
            ExitCode::FAILURE
        }
    }
}
