//! `secret detect`.

use std::collections::BTreeSet;

use clap::Args;
use declarest_core::authoring::{AuthoringError, Declaration, Detected, detect_stored};
use declarest_core::error::with_causes;
use declarest_core::path::LogicalPath;
use declarest_core::payload::Value;
use declarest_core::payload::pointer::Pointer;
use declarest_core::secrets;
use serde::Serialize;

use crate::error::Failure;
use crate::input::PayloadArguments;
use crate::interrupt::block_on_local;
use crate::invocation::Invocation;
use crate::output::{Output, OutputPolicy};
use crate::target::PathArguments;
use crate::workspace::Workspace;

#[derive(Debug, Args)]
pub struct DetectArguments {
    #[command(flatten)]
    path: PathArguments,
    #[command(flatten)]
    input: PayloadArguments,
    /// Declare the found attributes as secret in metadata, so that they are no longer saved to files
    #[arg(long)]
    fix: bool,
    /// Detect only this attribute
    #[arg(long, value_name = "POINTER")]
    secret_attribute: Option<String>,
}

/// A resource of the repository with plaintext secrets.
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Hit {
    logical_path: String,
    attributes: Vec<String>,
}

/// Prints the attributes that look like secrets.
pub fn run(arguments: &DetectArguments, invocation: &Invocation) -> Result<(), Failure> {
    let output = invocation.output(OutputPolicy::JsonDefault)?;
    let path = arguments.path.optional_target()?.map(|target| target.path);
    let only = arguments.secret_attribute.as_deref().map(str::trim).map(attribute).transpose()?;
    match arguments.input.document()? {
        Some(content) => {
            let payload = content.decode()?.value;
            arguments.in_payload(&payload, path, only.as_ref(), invocation, &output)
        }
        None => arguments.in_repository(path, only.as_ref(), invocation, &output),
    }
}

impl DetectArguments {
    fn in_payload(
        &self,
        payload: &Value,
        path: Option<LogicalPath>,
        only: Option<&Pointer>,
        invocation: &Invocation,
        output: &Output,
    ) -> Result<(), Failure> {
        match (self.fix, &path) {
            (true, None) => {
                return Err(Failure::invalid(
                    "path is required: --fix needs the path of the payload's resource",
                ));
            }
            (false, Some(path)) => {
                return Err(Failure::invalid(format!(
                    "a payload is searched without a path; remove {path}, or remove the payload to search the \
                     repository, or add --fix"
                )));
            }
            _ => {}
        }
        invocation.context()?;
        let found = secrets::detect(payload).into_iter();
        let found: BTreeSet<Pointer> = found.filter(|at| only.is_none_or(|only| only == at)).collect();
        if let (true, Some(only)) = (found.is_empty(), only) {
            return Err(AuthoringError::NeverDetected(only.clone()).into());
        }
        let pointers: Vec<String> = found.iter().map(ToString::to_string).collect();
        if let Some(path) = path {
            let workspace = block_on_local(Workspace::local(invocation))?;
            fix(&workspace, vec![Detected { path, attributes: found }])?;
        }
        Ok(output.show(&pointers, None)?)
    }

    fn in_repository(
        &self,
        path: Option<LogicalPath>,
        only: Option<&Pointer>,
        invocation: &Invocation,
        output: &Output,
    ) -> Result<(), Failure> {
        let workspace = block_on_local(Workspace::local(invocation))?;
        // A context without a repository is an error.
        workspace.store()?;
        let scope = path.unwrap_or_else(LogicalPath::root);
        let found = detect_stored(workspace.tree.as_ref(), &scope, only)?;
        let hit = |detected: &Detected| Hit {
            logical_path: detected.path.to_string(),
            attributes: detected.attributes.iter().map(ToString::to_string).collect(),
        };
        let hits: Vec<Hit> = found.iter().map(hit).collect();
        if self.fix {
            fix(&workspace, found)?;
        }
        Ok(output.show(&hits, None)?)
    }
}

/// Parses the value of `--secret-attribute`.
fn attribute(text: &str) -> Result<Pointer, Failure> {
    Pointer::parse(text)
        .map_err(|error| Failure::invalid(format!("--secret-attribute \"{text}\": {}", with_causes(&error))))
}

/// Declares the found attributes in the metadata of each resource, unless the inherited metadata declares them.
fn fix(workspace: &Workspace<'_>, found: Vec<Detected>) -> Result<(), Failure> {
    let mut declarations = Vec::new();
    for Detected { path, attributes } in found {
        let rules = workspace.metadata.rules(&path)?;
        if !attributes.iter().all(|attribute| rules.resolved().secret_attributes.contains(attribute)) {
            declarations.push(Declaration::attributes(&workspace.metadata, &path, attributes)?);
        }
    }
    let _lock = workspace.lock_repository()?;
    workspace.declare(&declarations)
}
