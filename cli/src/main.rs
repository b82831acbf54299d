//! `declarest`: writes, compares and applies desired state from the command line.
//!
//! A module uses only the modules before it, in this order: `error` → `environment` → `cluster` → `settings` → `output` → `terminal`
//! → `interrupt` → `lock` → `context` → `invocation` → `report` → `pager` → `hint` → `editor` → `input` → `target` → `repository` → `workspace` → `command` → `examples` → `args`.
#![forbid(unsafe_code)]

mod args;
mod cluster;
mod command;
mod context;
mod editor;
mod environment;
mod error;
mod examples;
mod hint;
mod input;
mod interrupt;
mod invocation;
mod lock;
mod output;
mod pager;
mod report;
mod repository;
mod settings;
mod target;
mod terminal;
mod workspace;

use std::process::ExitCode;

fn main() -> ExitCode {
    // Fails only if a provider is already installed, which is then used.
    let _ = rustls::crypto::ring::default_provider().install_default();
    #[cfg(unix)]
    forbid_core_dumps();
    match args::read() {
        Ok(args::Request::Run(args, invocation)) => args.run(&invocation),
        Ok(args::Request::Complete(words, describe, invocation)) => {
            match command::complete::run(&words, describe, &invocation) {
                Ok(()) => ExitCode::SUCCESS,
                Err(failure) => failure.exit_code(),
            }
        }
        Ok(args::Request::Done) => ExitCode::SUCCESS,
        Err(failure) => {
            args::report(&failure);
            failure.exit_code()
        }
    }
}

/// Prevents core dumps of this process (`setrlimit(2)`), because its memory holds secrets. A failure has no other effect.
#[cfg(unix)]
fn forbid_core_dumps() {
    use rustix::process::{Resource, Rlimit, setrlimit};
    let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
}
