//! `declarest`: authors, diffs and applies desired state by hand.

mod args;
mod command;
#[allow(dead_code, reason = "for the commands on resources")]
mod context;
mod environment;
mod error;
#[allow(dead_code, reason = "for the commands on resources")]
mod input;
#[allow(dead_code, reason = "for the commands on resources")]
mod invocation;
#[allow(dead_code, reason = "for the commands on resources")]
mod output;
#[allow(dead_code, reason = "for the commands on resources")]
mod repository;
mod settings;
#[allow(dead_code, reason = "for the commands on resources")]
mod target;
mod terminal;
#[allow(dead_code, reason = "for the commands on resources")]
mod workspace;

fn main() -> std::process::ExitCode {
    // Fails only if somebody installed one before, which then serves as well.
    let _ = rustls::crypto::ring::default_provider().install_default();
    match args::read() {
        Ok(args::Request::Run(args, invocation)) => command::run(&args, &invocation),
        Ok(args::Request::Done) => std::process::ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
