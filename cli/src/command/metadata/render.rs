//! `resource metadata render`.

use clap::Args;
use declarest_core::language::referred::Unread;
use declarest_core::metadata::OperationName;
use declarest_core::metadata::document::OperationSection;
use declarest_core::metadata::inference::conventions;
use declarest_core::path::LogicalPath;
use declarest_core::sync::Resource;

use super::Subject;
use crate::error::Failure;
use crate::interrupt::block_on;
use crate::invocation::Invocation;
use crate::output::OutputPolicy;
use crate::target::PathArguments;
use crate::workspace::Workspace;

#[derive(Debug, Args)]
pub struct RenderArguments {
    #[command(flatten)]
    path: PathArguments,

    /// get, create, update, delete, list or compare
    #[arg(value_name = "OPERATION")]
    operation: Option<String>,
}

/// Prints the request of an operation, rendered. For a selector, prints the operation without rendering.
pub fn run(arguments: &RenderArguments, invocation: &Invocation) -> Result<(), Failure> {
    let output = invocation.output(OutputPolicy::JsonDefault)?;
    let (path, operation) = arguments.understood();
    let subject = Subject::new(&path, invocation)?;
    let operation = operation.map(parse).transpose()?;
    let section = block_on(async {
        let workspace = Workspace::connected_if_possible(invocation).await?;
        if subject.selector.is_collection() {
            return as_written(&subject, &workspace, operation.unwrap_or(OperationName::List));
        }
        let path = subject.representative()?;
        match operation {
            Some(OperationName::List) => listed(&workspace, &path),
            Some(operation) => rendered(&resource(&workspace, &path)?, operation),
            None => resource(&workspace, &path)
                .and_then(|resource| rendered(&resource, OperationName::Get))
                .or_else(|failed| listed(&workspace, &path).map_err(|_| failed)),
        }
    })?;
    Ok(output.show(&section.to_value(), None)?)
}

impl RenderArguments {
    /// Returns the path and the operation. With `--path`, the first argument is the operation, unless it repeats the
    /// path.
    fn understood(&self) -> (PathArguments, Option<&str>) {
        match (self.path.beside_flag(), &self.operation) {
            (Some(argument), None) if !argument.starts_with(['/', '\\']) => {
                (self.path.flag_only(), Some(argument))
            }
            (_, operation) => (self.path.clone(), operation.as_deref()),
        }
    }
}

fn parse(name: &str) -> Result<OperationName, Failure> {
    let known = OperationName::ALL.into_iter().find(|operation| operation.key() == name.trim());
    known.ok_or_else(|| {
        Failure::invalid(format!(
            "operation \"{name}\" is not supported; use get, create, update, delete, list or compare"
        ))
    })
}

/// Returns the operation of the documents, merged over the conventions.
fn as_written(
    subject: &Subject,
    workspace: &Workspace<'_>,
    operation: OperationName,
) -> Result<OperationSection, Failure> {
    let rules = workspace.metadata.rules(&subject.representative()?)?;
    let mut section = rules.resolved().operation(operation).section();
    let steps: Vec<_> = rules.resolved().steps(operation).cloned().collect();
    section.transforms = (!steps.is_empty()).then_some(steps);
    let conventions = conventions(&subject.text)?.operations.unwrap_or_default().operations;
    if let Some(convention) = conventions.get(&operation) {
        section.method = section.method.or_else(|| convention.method.clone());
        section.path = section.path.or_else(|| convention.path.clone());
    }
    Ok(section)
}

fn rendered(resource: &Resource, operation: OperationName) -> Result<OperationSection, Failure> {
    Ok(resource.evaluation_with(Some(&Unread))?.section(operation)?)
}

/// Returns the request that lists the path as a collection. Its templates see the path and no payload.
fn listed(workspace: &Workspace<'_>, path: &LogicalPath) -> Result<OperationSection, Failure> {
    let rules = workspace.metadata.rules(path)?;
    Ok(rules.on_collection(path)?.section(OperationName::List)?)
}

/// Returns the declared resource, otherwise a resource that is known by its path only.
fn resource(workspace: &Workspace<'_>, path: &LogicalPath) -> Result<Resource, Failure> {
    let rules = workspace.metadata.rules(path)?;
    let declared = if path.is_root() { None } else { workspace.declared(path)? };
    Ok(declared.map_or_else(|| Resource::by_path(path.clone(), rules), Ok)?)
}
