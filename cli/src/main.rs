//! `declarest`: authors, diffs and applies desired state by hand.

mod args;
mod command;
mod error;
mod output;

fn main() -> std::process::ExitCode {
    args::read().and_then(command::run).unwrap_or_else(error::Failure::report)
}
