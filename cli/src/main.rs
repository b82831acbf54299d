//! `declarest`: authors, diffs and applies desired state by hand.

mod args;
mod command;
mod environment;
mod error;
#[allow(dead_code, reason = "for the commands on resources")]
mod input;
#[allow(dead_code, reason = "for the commands on resources")]
mod invocation;
#[allow(dead_code, reason = "for the commands on resources")]
mod output;
mod settings;
#[allow(dead_code, reason = "for the commands on resources")]
mod target;

fn main() -> std::process::ExitCode {
    match args::read() {
        Ok(args::Request::Run(args, invocation)) => command::run(&args, &invocation),
        Ok(args::Request::Done) => std::process::ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
