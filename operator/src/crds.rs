//! The command `crds`: prints or writes the custom resource definitions as YAML, and the reference of their fields.

use std::io::Write as _;
use std::process::ExitCode;

use crate::args::CrdsOptions;
use crate::crd;
use crate::crd::generate::{self, GenerateError};
use crate::crd::reference;

/// Writes the definitions and the reference to the places of `options`. Without places, writes the definitions to standard
/// output.
pub fn write(options: &CrdsOptions) -> ExitCode {
    match written(options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // There is no other output if standard error is closed.
            let _ = writeln!(std::io::stderr(), "{error}");
            ExitCode::FAILURE
        }
    }
}

fn written(options: &CrdsOptions) -> Result<(), String> {
    if let Some(dir) = &options.dir {
        generate::write(dir).map_err(|error| error.to_string())?;
    }
    if let Some(file) = &options.reference {
        let page = reference::markdown(&crd::all());
        std::fs::write(file, page).map_err(|error| format!("cannot write {}: {error}", file.display()))?;
    }
    if options.dir.is_none() && options.reference.is_none() { print() } else { Ok(()) }
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
