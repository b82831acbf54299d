//! `declarest version`.

use serde::Serialize;

use crate::error::Failure;
use crate::invocation::Invocation;
use crate::output::OutputPolicy;

/// The identity of a build. Commit and date are read from the environment at build time.
#[derive(Debug, Serialize)]
struct Identity {
    version: &'static str,
    commit: &'static str,
    build_date: &'static str,
}

/// Prints the version, commit and date of this build.
pub fn run(invocation: &Invocation) -> Result<(), Failure> {
    let output = invocation.output(OutputPolicy::Adaptive)?;
    let build = Identity {
        version: env!("CARGO_PKG_VERSION"),
        commit: option_env!("DECLAREST_BUILD_COMMIT").unwrap_or("unknown"),
        build_date: option_env!("DECLAREST_BUILD_DATE").unwrap_or("unknown"),
    };
    let text = format!("{} ({}) {}", build.version, build.commit, build.build_date);
    Ok(output.show(&build, Some(&text))?)
}
