//! `resource list`.

use std::collections::BTreeMap;

use clap::Args;
use declarest_core::metadata::OperationName;
use declarest_core::path::LogicalPath;
use declarest_core::sync::{self, Members};

use super::crawl::{Unlisted, crawl};
use super::item::{self, Exclusions, Item, Secrets};
use super::read::{self, Unplaced};
use super::source::{Source, SourceArguments};
use crate::error::{Cause, Failure};
use crate::invocation::Invocation;
use crate::output::OutputPolicy;
use crate::target::PathArguments;
use crate::workspace::Workspace;

#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own on the command line")]
pub struct ListArguments {
    #[command(flatten)]
    path: PathArguments,
    #[command(flatten)]
    source: SourceArguments,
    #[command(flatten)]
    exclusions: Exclusions,
    /// Include all resources below the members
    #[arg(short, long)]
    recursive: bool,
    #[arg(
        long,
        help = "Include all collections below the path that metadata or the OpenAPI document describes"
    )]
    crawl: bool,
    /// Print secrets instead of placeholders
    #[arg(long)]
    show_secrets: bool,
    /// Print only resources that the repository does not declare
    #[arg(long)]
    undeclared: bool,
}

/// Prints the resources of a collection.
pub fn run(arguments: &ListArguments, invocation: &Invocation) -> Result<(), Failure> {
    let output = invocation.output_about_resources(OutputPolicy::Adaptive)?;
    let path = arguments.path.target(invocation)?.path;
    let source = arguments.source.source()?;
    arguments.exclusions.check()?;
    let overrides = arguments.source.method.overrides(&[OperationName::List])?;
    if source == Source::Repository && (arguments.crawl || arguments.undeclared) {
        return Err(Failure::invalid("--crawl and --undeclared need --source managed-server"));
    }
    let secrets = Secrets::new(arguments.show_secrets, invocation)?;
    let (items, failed) = source.block_on(async {
        let (mut items, failed) = match source {
            Source::ManagedServer => {
                let workspace = Workspace::connected_with(invocation, overrides, None).await?;
                arguments.of_server(&workspace, &path, invocation).await?
            }
            Source::Repository => {
                let workspace = Workspace::of_repository(invocation).await?;
                (read::local_list(&workspace, &path, arguments.recursive)?, None)
            }
        };
        arguments.exclusions.apply(&mut items);
        for item in &mut items {
            secrets.apply(item).await?;
        }
        Ok((items, failed))
    })?;
    // An alias alone does not identify a resource of several collections, or one to save.
    let by_path = arguments.crawl || arguments.undeclared;
    let paths = item::paths(&items);
    let lines = if by_path {
        paths.clone()
    } else if output.is_wide() {
        item::wide_lines(&items)
    } else {
        item::lines(&items)
    };
    output.show_list(&item::payloads(items), &lines, &paths)?;
    failed.map_or(Ok(()), Err)
}

impl ListArguments {
    /// Lists the server. Also returns the failure of the first collection that could not be listed, after printing all.
    async fn of_server(
        &self,
        workspace: &Workspace<'_>,
        path: &LogicalPath,
        invocation: &Invocation,
    ) -> Result<(Vec<Item>, Option<Failure>), Failure> {
        let remote = workspace.remote()?;
        let (mut members, mut failed) = (Members::default(), None);
        if self.crawl {
            let crawl = crawl(workspace, path, &self.exclusions).await?;
            for listed in crawl.listed {
                read::note_if_partial(&listed.at.path, &listed.members, invocation);
                listed.unplaced.note(&listed.at.path, invocation);
                members.entries.extend(listed.members.entries);
            }
            for pattern in crawl.absent {
                invocation.messages.note(&format!("{pattern}: the server does not have this collection"));
            }
            failed = unlisted(crawl.unlisted, invocation);
        } else {
            members = remote.list(path).await?;
            read::note_if_partial(path, &members, invocation);
            Unplaced::of(std::mem::take(&mut members.pathless)).note(path, invocation);
            members.entries.retain(|member, _| self.recursive || path.child_of(member).is_some());
        }
        if self.undeclared {
            members.entries = sync::undeclared(&remote, members.entries).await?;
        }
        Ok((Item::listed(members, &workspace.metadata)?, failed))
    }
}

/// Prints the failures of collections. Returns a failure with the category of the first one.
fn unlisted(unlisted: BTreeMap<String, Unlisted>, invocation: &Invocation) -> Option<Failure> {
    let category = unlisted.values().next()?.failure.category();
    let failed: usize = unlisted.values().map(|unlisted| unlisted.paths.len()).sum();
    for (pattern, Unlisted { paths, failure, .. }) in unlisted {
        let count = paths.len();
        let several = if count > 1 { format!(" ({count} collections)") } else { String::new() };
        let message = format!("{pattern}{several}: {}", failure.message());
        invocation.messages.problem(&Cause::new(failure.category(), message));
    }
    let message = format!("collections that could not be listed: {failed}");
    Some(Failure::new(category, message))
}
