//! `declarest`: writes, compares and applies desired state from the command line.
#![forbid(unsafe_code)]

mod args;
mod command;
mod context;
mod editor;
mod environment;
mod error;
mod input;
mod invocation;
mod output;
mod repository;
mod settings;
mod target;
mod terminal;
mod workspace;

fn main() -> std::process::ExitCode {
    // Fails only if a provider is already installed, which is then used.
    let _ = rustls::crypto::ring::default_provider().install_default();
    match args::read() {
        Ok(args::Request::Run(args, invocation)) => command::run(&args, &invocation),
        Ok(args::Request::Done) => std::process::ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
