//! `resource defaults infer`.

use std::time::Duration;

use clap::{Args, ValueEnum};
use declarest_core::metadata::document::infer_defaults;
use declarest_core::path::LogicalPath;
use declarest_core::payload::{Descriptor, Object, PayloadType, Value};
use declarest_core::repository;
use declarest_core::sync::Resource;

use super::super::metadata::Subject;
use super::{Stored, edit, payload_format, probe};
use crate::error::Failure;
use crate::interrupt::{block_on, block_on_local};
use crate::invocation::Invocation;
use crate::output::OutputPolicy;
use crate::settings::parse_interval;
use crate::target::PathArguments;
use crate::workspace::Workspace;

#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own on the command line")]
pub struct InferArguments {
    #[command(flatten)]
    path: PathArguments,
    /// Store the result as the defaults of the collection, and print nothing
    #[arg(long)]
    save: bool,
    /// Exit with 2 if the stored defaults differ from the result
    #[arg(long)]
    check: bool,
    /// Compare only the resources with these aliases
    #[arg(long, value_name = "ALIAS,...", value_delimiter = ',')]
    items: Vec<String>,
    /// Compare declared resources, or two temporary resources that are created on the server and deleted
    #[arg(long, value_enum, value_name = "SOURCE,...", default_value = "repository", value_delimiter = ',')]
    from: Vec<Origin>,
    /// Same as --from managed-server
    #[arg(long, hide = true, conflicts_with = "from")]
    managed_server: bool,
    /// Time between the creation and the read of temporary resources, such as 2s
    #[arg(long, value_name = "TIME", value_parser = parse_interval)]
    wait: Option<Duration>,
    /// Confirm the creation of temporary resources
    #[arg(short, long)]
    yes: bool,
}

/// Where the compared resources are from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Origin {
    Repository,
    ManagedServer,
}

/// Prints the values that the resources of a collection share, or stores them.
pub fn run(arguments: &InferArguments, invocation: &Invocation) -> Result<(), Failure> {
    let output = invocation.output(OutputPolicy::Payload)?;
    if arguments.save && arguments.check {
        return Err(Failure::invalid("--save and --check exclude each other"));
    }
    let asks_server = arguments.compares(Origin::ManagedServer);
    if arguments.wait.is_some() && !asks_server {
        return Err(Failure::invalid("--wait needs --from managed-server"));
    }
    let workspace = if asks_server {
        block_on(Workspace::connected(invocation))?
    } else {
        block_on_local(Workspace::local(invocation))?
    };
    let collection = arguments.collection(&workspace, invocation)?;
    let declared = samples(arguments, &workspace, &collection)?;
    let mut compared = if arguments.compares(Origin::Repository) { declared.clone() } else { Vec::new() };
    if asks_server {
        probe::confirm(arguments.yes, &collection)?;
        let wait = arguments.wait.unwrap_or_default();
        compared.extend(block_on(probe::added_by_server(&workspace, &collection, &declared, wait))?);
    }
    let shared = infer_defaults(&compared);
    let subject = Subject::of(&format!("{}/", collection.as_str().trim_end_matches('/')))?;
    if arguments.save {
        return edit::save(subject, shared, invocation);
    }
    let text = subject.text.clone();
    let format = payload_format(workspace.tree.as_ref(), &subject.selector)?;
    let format = format.unwrap_or_else(|| Descriptor::of(PayloadType::Json));
    if arguments.check && Stored::of(subject, &workspace)?.members(None)?.unwrap_or_default() != shared {
        output.show_payload(&Value::Object(shared), &format)?;
        return Err(Failure::invalid(format!(
            "the defaults of {text} differ from the values that its resources share; store them with --save"
        )));
    }
    Ok(output.show_payload(&Value::Object(shared), &format)?)
}

impl InferArguments {
    /// Returns whether resources of this origin are compared.
    fn compares(&self, origin: Origin) -> bool {
        if self.managed_server { origin == Origin::ManagedServer } else { self.from.contains(&origin) }
    }

    /// Returns the collection: the path, or the parent of a declared resource.
    fn collection(&self, workspace: &Workspace<'_>, invocation: &Invocation) -> Result<LogicalPath, Failure> {
        let target = self.path.target(invocation)?;
        let is_member = !target.explicit_collection
            && repository::resource_file(workspace.tree.as_ref(), &target.path)?.is_some();
        let parent = target.path.parent().filter(|_| is_member);
        Ok(parent.unwrap_or(target.path))
    }
}

/// Returns the payloads of the members of `collection`, with the defaults that apply to them.
fn samples(
    arguments: &InferArguments,
    workspace: &Workspace<'_>,
    collection: &LogicalPath,
) -> Result<Vec<Object>, Failure> {
    let (mut samples, mut named) = (Vec::new(), Vec::new());
    for file in repository::members(workspace.tree.as_ref(), collection)?.resources {
        let resource = Resource::declared(workspace.tree.as_ref(), &workspace.metadata, file)?;
        let alias = resource.identity.alias.clone();
        if !arguments.items.is_empty() && !arguments.items.iter().any(|item| item.trim() == alias) {
            continue;
        }
        named.push(alias);
        samples.extend(resource.payload.as_object().cloned());
    }
    if let Some(unknown) = arguments.items.iter().find(|item| !named.iter().any(|name| name == item.trim())) {
        return Err(Failure::invalid(format!(
            "--items: \"{unknown}\" is not the alias of a resource in {collection}"
        )));
    }
    Ok(samples)
}
