//! `declarest contract validate`.

use clap::Args;
use declarest_core::contract::{Document, Finding};
use serde::Serialize;

use super::source;
use crate::error::Failure;
use crate::interrupt::block_on;
use crate::invocation::Invocation;
use crate::output::{OutputPolicy, counted};

#[derive(Debug, Args)]
pub struct ValidateArguments {
    /// File, directory, archive (tar.gz), or URL with the scheme http, https or oci
    #[arg(value_name = "CONTRACT")]
    contract: String,
    /// Treat warnings as errors
    #[arg(long)]
    strict: bool,
}

/// The result of a validation.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Validated {
    valid: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    service_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    source: String,
    hash: String,
    errors: Vec<Finding>,
    warnings: Vec<Finding>,
}

/// Validates a document, and prints its findings.
pub fn run(arguments: &ValidateArguments, invocation: &Invocation) -> Result<(), Failure> {
    let output = invocation.output(OutputPolicy::TextDefault)?;
    let loaded = block_on(source::load(&arguments.contract, invocation))?;
    let Document { name, version, hash, mut errors, mut warnings, .. } = loaded.document();
    if arguments.strict {
        errors.append(&mut warnings);
    }
    let (valid, source) = (errors.is_empty(), loaded.source);
    let validated = Validated { valid, service_name: name, version, source, hash, errors, warnings };
    output.show(&validated, Some(&text(&validated)))?;
    if valid { Ok(()) } else { Err(invalid(validated.errors.len())) }
}

/// Returns the failure of a document with errors.
pub fn invalid(errors: usize) -> Failure {
    Failure::invalid(format!("the contract is not valid: {}", counted(errors, "error")))
}

fn text(validated: &Validated) -> String {
    let Validated { service_name, version, source, hash, .. } = validated;
    // A document with errors may not state them.
    let service: Vec<&str> = [service_name, version].into_iter().flatten().map(String::as_str).collect();
    let service = if service.is_empty() { String::new() } else { format!("{} from ", service.join(" ")) };
    let state = if validated.valid { "valid" } else { "invalid" };
    let head = format!("{state}: {service}{source}, {hash}");
    let line = |severity: &str, finding: &Finding| {
        let Finding { code, path, message } = finding;
        let place = if path.is_empty() { String::new() } else { format!(" {path}") };
        format!("{severity} {code}{place}: {message}")
    };
    let errors = validated.errors.iter().map(|finding| line("error", finding));
    let warnings = validated.warnings.iter().map(|finding| line("warning", finding));
    [head].into_iter().chain(errors).chain(warnings).collect::<Vec<_>>().join("\n")
}
