//! `resource delete`.

use std::sync::Arc;

use clap::{Args, ValueEnum};
use declarest_core::metadata::document::Document;
use declarest_core::metadata::{OperationName, includes};
use declarest_core::path::LogicalPath;
use declarest_core::repository::Store;
use declarest_core::sync::{Intent, Options, Resource, Selection};

use super::outcome;
use super::source::MethodArgument;
use super::targets::Targets;
use crate::error::Failure;
use crate::interrupt::block_on;
use crate::invocation::Invocation;
use crate::repository::{Authoring, MessageArgument, Push};
use crate::target::PathArguments;
use crate::workspace::Workspace;

#[derive(Debug, Args)]
pub struct DeleteArguments {
    #[command(flatten)]
    path: PathArguments,
    /// Confirm the deletion; required
    #[arg(short, long)]
    yes: bool,
    /// Include all resources below the path
    #[arg(short, long)]
    recursive: bool,
    /// Place to delete from
    #[arg(long, value_enum, default_value = "managed-server", value_name = "SOURCE")]
    source: Place,
    #[command(flatten)]
    method: MethodArgument,
    #[command(flatten)]
    message: MessageArgument,
    /// Push the commit to the remote of the repository
    #[arg(long)]
    push: bool,
}

/// The place where resources are deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Place {
    #[value(alias = "managed-service")]
    ManagedServer,
    Repository,
    Both,
}

/// Deletes resources on the server, in the repository, or both.
pub fn run(arguments: &DeleteArguments, invocation: &Invocation) -> Result<(), Failure> {
    if !arguments.yes {
        return Err(Failure::invalid("resource delete cannot be undone; confirm it with --yes"));
    }
    let target = arguments.path.target(invocation)?;
    let overrides = arguments.method.overrides(&[OperationName::Delete])?;
    if arguments.source == Place::Repository && overrides != Document::default() {
        return Err(Failure::invalid("--http-method needs --source managed-server or both"));
    }
    if arguments.source == Place::ManagedServer && arguments.push {
        return Err(Failure::invalid("--push needs --source repository or both"));
    }
    let push = if arguments.push { Push::Always } else { Push::Never };
    let default = format!("declarest: delete resource {}", target.path);
    let authoring = match arguments.source {
        Place::ManagedServer => None,
        Place::Repository | Place::Both => {
            Some(Authoring::begin(invocation, &arguments.message, default, push)?)
        }
    };
    block_on(async {
        let workspace = match arguments.source {
            Place::Repository => Workspace::local(invocation).await?,
            Place::ManagedServer | Place::Both => {
                Workspace::connected_with(invocation, overrides, None).await?
            }
        };
        let Some(authoring) = authoring else {
            return on_server(&workspace, &target.path, arguments.recursive, invocation).await;
        };
        let store = authoring.store()?;
        if arguments.source == Place::Both {
            on_server(&workspace, &target.path, arguments.recursive, invocation).await?;
            let note = "the server has deleted the resources; delete their files with --source repository";
            authoring.require_no_others(&[]).map_err(|failure| failure.with_note(note))?;
        }
        in_repository(&workspace, &store, &target.path, arguments.recursive)?;
        authoring.finish()?;
        Ok(())
    })
}

/// Deletes the declared resources at `path` on the server. If none is declared, deletes the resource of the server.
pub async fn on_server(
    workspace: &Workspace<'_>,
    path: &LogicalPath,
    recursive: bool,
    invocation: &Invocation,
) -> Result<(), Failure> {
    let _lock = workspace.lock_server()?;
    let session = workspace.session_without_secrets()?;
    let declares = workspace.context.context.repository.is_some();
    if recursive && !declares {
        return Err(Failure::invalid(
            "--recursive deletes resources that the repository declares, but the context has no repository",
        ));
    }
    let declared = if declares { Targets::if_declared(workspace, path, recursive)? } else { None };
    let selection = match declared {
        Some(targets) => targets.selection,
        None => Selection { given: vec![by_path(workspace, path).await?], ..Selection::default() },
    };
    let targeted = selection.targeted();
    let options = Options { intent: Intent::Delete, ..Options::default() };
    let run = outcome::Run::new(invocation, targeted);
    let plan = run.plan(&session, selection, &options).await;
    run.apply(&session, plan).await.check(targeted, &invocation.messages)
}

/// Returns the resource at a path. Reads it from the server if its identity cannot be derived from the path.
async fn by_path(workspace: &Workspace<'_>, path: &LogicalPath) -> Result<Resource, Failure> {
    match Resource::by_path(path.clone(), workspace.metadata.rules(path)?) {
        Ok(resource) => Ok(resource),
        Err(_) => Ok(workspace.remote()?.get(path).await?.at),
    }
}

fn in_repository(
    workspace: &Workspace<'_>,
    store: &Store,
    path: &LogicalPath,
    recursive: bool,
) -> Result<(), Failure> {
    let metadata = Arc::clone(&workspace.metadata);
    let named = Targets::if_declared(workspace, path, recursive)?;
    let named = named.and_then(|targets| targets.selection.given.into_iter().next());
    let path = named.as_ref().map_or(path, |resource| &resource.path);
    store.delete(path, recursive, |path, payload| {
        let rules = metadata.rules(path)?;
        Ok::<_, Failure>(includes::referenced(payload, &rules.resolved().externalized_attributes))
    })?;
    Ok(())
}
