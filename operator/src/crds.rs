//! The command `crds`: prints or writes the custom resource definitions as YAML.

use std::io::Write as _;
use std::process::ExitCode;

use crate::args::CrdsOptions;
use crate::crd;
use crate::crd::generate::{self, GenerateError};

/// Writes the definitions to the directory of `options`, or to standard output.
pub fn write(options: &CrdsOptions) -> ExitCode {
    let written = match &options.dir {
        Some(dir) => generate::write(dir).map_err(|error| error.to_string()),
        None => print(),
    };
    match written {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // There is no other output if standard error is closed.
            let _ = writeln!(std::io::stderr(), "{error}");
            ExitCode::FAILURE
        }
    }
}

fn print() -> Result<(), String> {
    let documents: Vec<String> = crd::all()
        .iter()
        .map(generate::render)
        .collect::<Result<_, GenerateError>>()
        .map_err(|error| error.to_string())?;
    std::io::stdout()
        .write_all(documents.join("---\n").as_bytes())
        .map_err(|error| format!("cannot write to standard output: {error}"))
}
