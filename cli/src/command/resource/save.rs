//! `resource save`.

use clap::{Args, ValueEnum};
use declarest_core::authoring::{Draft, Prepared, check_absent, check_secrets, drafts_of, is_list};
use declarest_core::metadata::Metadata;
use declarest_core::path::{LogicalPath, RawPath};
use declarest_core::payload::{Descriptor, PayloadType, Value};
use declarest_core::repository::Store;

use super::fetch::fetch;
use super::item::{self, Exclusions, Item};
use super::read::Read;
use crate::error::Failure;
use crate::input::{Literals, Payload, PayloadArguments};
use crate::invocation::{Invocation, block_on};
use crate::repository::{Authoring, MessageArgument, Push};
use crate::target::PathArguments;
use crate::workspace::Workspace;

#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own on the command line")]
pub struct SaveArguments {
    #[command(flatten)]
    path: PathArguments,
    #[command(flatten)]
    input: PayloadArguments,
    #[command(flatten)]
    exclusions: Exclusions,
    /// Whether a list is saved as its items or as a single resource
    #[arg(long, value_enum, default_value = "auto", value_name = "MODE")]
    mode: Mode,
    /// Keep the whole resource in the secret store
    #[arg(long)]
    secret: bool,
    /// Keep these attributes in the secret store, all likely ones if none is named
    #[arg(long, value_name = "POINTERS", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    secret_attributes: Option<String>,
    /// Save what looks like a secret as it is
    #[arg(long)]
    allow_plaintext: bool,
    /// Leave out what the defaults of the resource say anyway before looking for secrets
    #[arg(long)]
    prune_defaults: bool,
    /// Overwrite resources that exist
    #[arg(long)]
    force: bool,
    /// Push the commit, whatever the context says
    #[arg(long)]
    push: bool,
    #[command(flatten)]
    message: MessageArgument,
}

/// What becomes of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Mode {
    /// Its items, if it is one
    Auto,
    /// Its items; what is no list is refused
    Items,
    /// One resource
    Single,
}

/// Saves what the server has, or what is given, in the repository.
pub fn run(arguments: &SaveArguments, invocation: &Invocation) -> Result<(), Failure> {
    let target = arguments.path.selector(invocation)?;
    arguments.check()?;
    let input = arguments.input.payload(Literals::WithAssignments)?;
    if input.is_some() && has_wildcard(&target) {
        return Err(Failure::invalid(format!(
            "{} has a \"_\", which stands for what the server has; name one path for the payload",
            target.as_str()
        )));
    }
    let default = format!("declarest: save resource {}", target.as_str());
    let push = if arguments.push { Push::Always } else { Push::Configured };
    let authoring = Authoring::begin(invocation, &arguments.message, default, push)?;
    block_on(async {
        let workspace = match &input {
            Some(_) => Workspace::local(invocation).await?,
            None => Workspace::connected(invocation).await?,
        };
        let drafts = match input {
            Some(input) => arguments.given(&workspace.metadata, &target, input)?,
            None => arguments.fetched(&workspace, &target, invocation).await?,
        };
        let drafts = arguments.without_excluded(&workspace.metadata, drafts)?;
        let store = authoring.store()?;
        for prepared in arguments.prepare(&workspace.metadata, &store, drafts)? {
            prepared.write(&store)?;
            invocation.messages.verbose(1, &format!("saved {}", prepared.path()));
        }
        authoring.finish()?;
        Ok(())
    })
}

impl SaveArguments {
    /// Refuses flags that cannot be meant together.
    fn check(&self) -> Result<(), Failure> {
        let with_secret = [
            ("--mode items", self.mode == Mode::Items),
            ("--exclude", !self.exclusions.is_empty()),
            ("--secret-attributes", self.secret_attributes.is_some()),
            ("--allow-plaintext", self.allow_plaintext),
        ];
        if self.secret
            && let Some((flag, _)) = with_secret.into_iter().find(|(_, given)| *given)
        {
            return Err(Failure::invalid(format!(
                "--secret saves one resource as one secret; remove {flag}"
            )));
        }
        if self.mode == Mode::Single && !self.exclusions.is_empty() {
            return Err(Failure::invalid("--exclude leaves out items; remove it or --mode single"));
        }
        if self.secret || self.secret_attributes.is_some() {
            return Err(Failure::invalid("secret provider is not configured"));
        }
        Ok(())
    }

    /// The drafts of a payload that somebody gave.
    fn given(&self, metadata: &Metadata, target: &RawPath, input: Payload) -> Result<Vec<Draft>, Failure> {
        let path = LogicalPath::parse(target.as_str())?;
        let Payload { value, descriptor } = input;
        // JSON is also what input is taken for that nobody said anything about.
        let descriptor = Some(descriptor).filter(|descriptor| descriptor.payload_type != PayloadType::Json);
        self.drafts(metadata, path, value, descriptor.as_ref())
    }

    /// The drafts of what the server has.
    async fn fetched(
        &self,
        workspace: &Workspace<'_>,
        target: &RawPath,
        invocation: &Invocation,
    ) -> Result<Vec<Draft>, Failure> {
        let mut drafts = Vec::new();
        for (path, found) in fetch(workspace, target, invocation).await? {
            match found {
                Read::Collection(items) if self.mode == Mode::Single => {
                    drafts.push(Draft { path, payload: item::payloads(items), descriptor: None });
                }
                Read::Collection(items) => drafts.extend(items.into_iter().map(|item| {
                    let Item { path, payload, .. } = item;
                    Draft { path, payload, descriptor: None }
                })),
                Read::Resource(item) => {
                    drafts.extend(self.drafts(&workspace.metadata, path, item.payload, None)?);
                }
            }
        }
        Ok(drafts)
    }

    /// The drafts that a payload for `path` becomes.
    fn drafts(
        &self,
        metadata: &Metadata,
        path: LogicalPath,
        payload: Value,
        descriptor: Option<&Descriptor>,
    ) -> Result<Vec<Draft>, Failure> {
        let as_items = match self.mode {
            Mode::Auto => is_list(&payload),
            Mode::Items => true,
            Mode::Single => false,
        };
        if !as_items {
            return Ok(vec![Draft { path, payload, descriptor: descriptor.cloned() }]);
        }
        let drafts = drafts_of(metadata, &path, &payload)?.into_iter();
        Ok(drafts.map(|draft| Draft { descriptor: descriptor.cloned(), ..draft }).collect())
    }

    fn without_excluded(&self, metadata: &Metadata, drafts: Vec<Draft>) -> Result<Vec<Draft>, Failure> {
        if self.exclusions.is_empty() {
            return Ok(drafts);
        }
        let mut kept = Vec::with_capacity(drafts.len());
        for draft in drafts {
            let named = metadata.rules(&draft.path)?.identify(&draft.path, &draft.payload);
            let (alias, id) = named.map(|names| (names.alias, names.remote_id)).unwrap_or_default();
            if !self.exclusions.cover(&draft.path, &alias, &id) {
                kept.push(draft);
            }
        }
        Ok(kept)
    }

    /// Passes all guards, so that afterwards everything can be written.
    fn prepare(
        &self,
        metadata: &Metadata,
        store: &Store,
        mut drafts: Vec<Draft>,
    ) -> Result<Vec<Prepared>, Failure> {
        if self.prune_defaults {
            let pruned = drafts.into_iter().map(|draft| draft.without_defaults(metadata));
            drafts = pruned.collect::<Result<_, _>>()?;
        }
        if !self.force {
            check_absent(store, drafts.iter().map(|draft| &draft.path))?;
        }
        check_secrets(metadata, &drafts, self.allow_plaintext)?;
        let prepared = drafts.into_iter().map(|draft| Prepared::new(store, metadata, draft));
        Ok(prepared.collect::<Result<_, _>>()?)
    }
}

fn has_wildcard(target: &RawPath) -> bool {
    target.as_str().split('/').any(|segment| segment == "_")
}
