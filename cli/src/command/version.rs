//! `declarest version`.

use serde::Serialize;

use crate::error::Failure;
use crate::invocation::Invocation;
use crate::output::OutputPolicy;

/// The version, commit and date of this build. `build.rs` determines commit and date.
pub const TEXT: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    " (",
    env!("DECLAREST_BUILD_COMMIT"),
    ") ",
    env!("DECLAREST_BUILD_DATE")
);

/// The identity of a build.
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
        commit: env!("DECLAREST_BUILD_COMMIT"),
        build_date: env!("DECLAREST_BUILD_DATE"),
    };
    Ok(output.show(&build, Some(TEXT))?)
}
