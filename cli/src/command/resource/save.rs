//! `resource save`.

use std::collections::{BTreeMap, BTreeSet};

use clap::{Args, ValueEnum};
use declarest_core::authoring::{
    Attributes, AuthoringError, Batch, Draft, SecretOptions, check_names, check_saved_texts, drafts_of,
    is_list,
};
use declarest_core::metadata::Metadata;
use declarest_core::path::{LogicalPath, RawPath};
use declarest_core::payload::pointer::Pointer;
use declarest_core::payload::{Descriptor, PayloadType, Value};
use declarest_core::repository::{self, Store};
use declarest_core::secrets::detect;
use declarest_core::sync::{self, SyncError};

use super::change::Change;
use super::fetch::{fetch, has_wildcard};
use super::item::{self, Declared, Exclusions};
use super::read::{Read, View};
use crate::error::Failure;
use crate::input::{Literals, Payload, PayloadArguments};
use crate::interrupt::block_on;
use crate::invocation::Invocation;
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
    /// How a list is saved: as its items, as one resource (single), or as its items if the payload is a list (auto)
    #[arg(long, value_enum, default_value = "auto", value_name = "MODE")]
    mode: Mode,
    /// Save the whole resource to the secret store
    #[arg(long)]
    secret: bool,
    /// Save these attributes to the secret store; without a value, all likely secrets
    #[arg(long, value_name = "POINTERS", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    secret_attributes: Option<String>,
    /// Save values that look like secrets as plaintext
    #[arg(long)]
    allow_plaintext: bool,
    /// Omit values that equal the resource's defaults, before secrets are detected
    #[arg(long)]
    prune_defaults: bool,
    /// Overwrite existing resources
    #[arg(long)]
    force: bool,
    /// Push the commit, even if the context does not
    #[arg(long)]
    push: bool,
    #[command(flatten)]
    message: MessageArgument,
}

/// How a list is saved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Mode {
    // Documentation of a value would double the length of the help.
    Auto,
    Items,
    Single,
}

/// Saves resources from the server, or a payload, to the repository.
pub fn run(arguments: &SaveArguments, invocation: &Invocation) -> Result<(), Failure> {
    let target = arguments.path.selector(invocation)?;
    arguments.check()?;
    let secrets = arguments.secret_options(invocation)?;
    let input = arguments.input.payload(Literals::WithAssignments)?;
    if input.is_some() && has_wildcard(&target) {
        return Err(Failure::invalid(format!(
            "{} has a \"_\", which matches resources of the server; write one path for the payload",
            target.as_str()
        )));
    }
    let default = format!("declarest: save resource {}", target.as_str());
    let push = if arguments.push { Push::Always } else { Push::Configured };
    // Read the payloads.
    let authoring = Authoring::begin(invocation, &arguments.message, default, push)?;
    block_on(async {
        let workspace = match &input {
            Some(_) => Workspace::local(invocation).await?,
            None => Workspace::connected(invocation).await?,
        };
        let batches = match input {
            Some(input) => vec![arguments.given(&workspace.metadata, &target, input)?],
            None => arguments.fetched(&workspace, &target, &secrets, invocation).await?,
        };
        let mut batches = arguments.without_excluded(&workspace.metadata, batches)?;
        arguments.check_observed(&workspace, &batches)?;
        if arguments.prune_defaults {
            for draft in batches.iter_mut().flat_map(|batch| &mut batch.drafts) {
                draft.prune_defaults(&workspace.metadata)?;
            }
        }
        // Check, write and commit.
        Change::commit(&workspace, authoring, batches, secrets, arguments.force).await
    })
}

impl SaveArguments {
    /// Returns an error for flags that exclude each other.
    fn check(&self) -> Result<(), Failure> {
        self.exclusions.check()?;
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
                "--secret saves the whole resource as one secret; remove {flag}"
            )));
        }
        if self.mode == Mode::Single && !self.exclusions.is_empty() {
            return Err(Failure::invalid("--exclude omits items; remove it or --mode single"));
        }
        Ok(())
    }

    /// Returns the options for secrets. Flags that store secrets need a secret store.
    fn secret_options(&self, invocation: &Invocation) -> Result<SecretOptions, Failure> {
        if self.secret || self.secret_attributes.is_some() {
            invocation.context()?.secret_store()?;
        }
        let attributes = match self.secret_attributes.as_deref().map(str::trim) {
            None => Attributes::Declared,
            Some("") => Attributes::Likely,
            Some(list) => {
                let pointers = list.split(',').map(|pointer| Pointer::parse(pointer.trim()));
                Attributes::Listed(pointers.collect::<Result<_, _>>()?)
            }
        };
        let (whole, allow_plaintext) = (self.secret, self.allow_plaintext);
        Ok(SecretOptions { whole, attributes, allow_plaintext, ..SecretOptions::default() })
    }

    /// Returns the drafts of a given payload.
    fn given(&self, metadata: &Metadata, target: &RawPath, input: Payload) -> Result<Batch, Failure> {
        let path = LogicalPath::parse(target.as_str())?;
        let Payload { value, descriptor, stated } = input;
        // JSON is also the type of input without a stated type. The file then keeps its own.
        let descriptor =
            Some(descriptor).filter(|descriptor| stated || descriptor.payload_type != PayloadType::Json);
        self.drafts(metadata, path, value, descriptor.as_ref())
    }

    /// Returns the drafts of the server's resources.
    async fn fetched(
        &self,
        workspace: &Workspace<'_>,
        target: &RawPath,
        secrets: &SecretOptions,
        invocation: &Invocation,
    ) -> Result<Vec<Batch>, Failure> {
        let mut batches = Vec::new();
        let view = if self.saves_one() { View::Listed } else { View::Read(&self.exclusions) };
        let store = workspace.store()?;
        for (path, mut found) in fetch(workspace, target, view, invocation).await? {
            // A list that is one resource has all of its entries.
            if !self.saves_one() {
                match leave_declared(workspace, &store, &mut found, invocation).await? {
                    Some(declared) if has_wildcard(target) => {
                        invocation.messages.note(&declared.to_string());
                        continue;
                    }
                    Some(declared) => return Err(declared.into()),
                    None => {}
                }
            }
            let batch = match found {
                Read::Collection(items) if self.saves_one() => single(path, item::payloads(items), None),
                Read::Collection(items) => {
                    let drafts = items.into_iter().map(|item| item.into_draft(workspace));
                    let drafts = drafts.collect::<Result<_, _>>()?;
                    Batch { collection: Some(path), drafts, observed: true }
                }
                Read::Resource(item) => {
                    let descriptor = item.format_of_file(workspace)?;
                    let is_excluded = self.exclusions.cover(&path, &item.alias, &item.remote_id);
                    let declared = match &secrets.attributes {
                        Attributes::Declared => Declared::of(&item),
                        Attributes::Likely => Declared::of(&item).without(&detect(&item.payload)),
                        Attributes::Listed(listed) => Declared::of(&item).without(listed),
                    };
                    let batch =
                        self.drafts(&workspace.metadata, path.clone(), item.payload, descriptor.as_ref())?;
                    // Items of a given payload may state their paths. An answer of the server must not choose them.
                    if let Some(draft) = batch.drafts.iter().find(|draft| !draft.path.is_within(&path)) {
                        return Err(Failure::invalid(format!(
                            "the answer of the server has an item with the path {}, which is not below {path}",
                            draft.path
                        )));
                    }
                    // Its alias may have metadata that this path does not have.
                    let is_unchecked = self.secret || self.allow_plaintext || is_excluded;
                    for draft in batch.drafts.iter().filter(|draft| !is_unchecked && draft.path == path) {
                        declared.check(workspace, draft)?;
                    }
                    batch
                }
            };
            batches.push(Batch { observed: true, ..batch });
        }
        Ok(batches)
    }

    /// Fails if a file with a content of the server would declare another resource, or hold a template.
    fn check_observed(&self, workspace: &Workspace<'_>, batches: &[Batch]) -> Result<(), Failure> {
        let store = workspace.store()?;
        let observed = batches.iter().filter(|batch| batch.observed);
        for draft in observed.flat_map(|batch| &batch.drafts) {
            check_names(&store, &workspace.metadata, draft)?;
            check_saved_texts(&store, &workspace.metadata, draft, self.secret)?;
        }
        Ok(())
    }

    /// Returns whether lists are saved as one resource.
    fn saves_one(&self) -> bool {
        self.secret || self.mode == Mode::Single
    }

    /// Returns the drafts of a payload for `path`.
    fn drafts(
        &self,
        metadata: &Metadata,
        path: LogicalPath,
        payload: Value,
        descriptor: Option<&Descriptor>,
    ) -> Result<Batch, Failure> {
        if self.saves_one() || (self.mode == Mode::Auto && !is_list(metadata, &path, &payload)?) {
            return Ok(single(path, payload, descriptor.cloned()));
        }
        let drafts = drafts_of(metadata, &path, &payload)?.into_iter();
        let drafts = drafts.map(|draft| Draft { descriptor: descriptor.cloned(), ..draft }).collect();
        Ok(Batch { collection: Some(path), drafts, observed: false })
    }

    fn without_excluded(&self, metadata: &Metadata, mut batches: Vec<Batch>) -> Result<Vec<Batch>, Failure> {
        if self.exclusions.is_empty() {
            return Ok(batches);
        }
        for batch in &mut batches {
            let mut kept = Vec::with_capacity(batch.drafts.len());
            for draft in std::mem::take(&mut batch.drafts) {
                let named = metadata.rules(&draft.path)?.identify(&draft.path, &draft.payload);
                let (alias, id) = named.map(|names| (names.alias, names.remote_id)).unwrap_or_default();
                if !self.exclusions.cover(&draft.path, &alias, &id) {
                    kept.push(draft);
                }
            }
            batch.drafts = kept;
        }
        Ok(batches)
    }
}

/// Returns the batch of one payload.
fn single(path: LogicalPath, payload: Value, descriptor: Option<Descriptor>) -> Batch {
    Batch {
        collection: None,
        drafts: vec![Draft { descriptor, ..Draft::new(path, payload) }],
        observed: false,
    }
}

/// Leaves out the items that another file declares, because two files of one resource fail, unless both may be parts of it.
/// Returns the error of the only resource. If another file cannot be compared, it does not count.
async fn leave_declared(
    workspace: &Workspace<'_>,
    store: &Store,
    found: &mut Read,
    invocation: &Invocation,
) -> Result<Option<AuthoringError>, Failure> {
    let remote = workspace.remote()?;
    let items = match found {
        Read::Resource(item) => {
            if item.may_be_part() {
                return Ok(None);
            }
            return match sync::declared_at(&remote, &item.path, &item.entry()).await {
                Ok(Some(other)) if other != item.path => {
                    Ok(Some(AuthoringError::DeclaredElsewhere(item.path.clone(), other)))
                }
                Ok(_) | Err(SyncError::Incomparable(..)) => Ok(None),
                Err(error) => Err(error.into()),
            };
        }
        Read::Collection(items) => items,
    };
    let mut unsaved = BTreeMap::new();
    for item in &*items {
        if !item.may_be_part() && repository::resource_file(store.tree(), &item.path)?.is_none() {
            unsaved.insert(item.path.clone(), item.entry());
        }
    }
    let paths: Vec<LogicalPath> = unsaved.keys().cloned().collect();
    let undeclared = match sync::undeclared(&remote, unsaved).await {
        Err(SyncError::Incomparable(..)) => return Ok(None),
        undeclared => undeclared?,
    };
    let declared: BTreeSet<LogicalPath> =
        paths.into_iter().filter(|path| !undeclared.contains_key(path)).collect();
    for path in &declared {
        invocation.messages.note(&format!("{path} not saved: another file declares this resource"));
    }
    items.retain(|item| !declared.contains(&item.path));
    Ok(None)
}
