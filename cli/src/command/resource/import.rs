//! `import`: saves all resources of a server.

use std::collections::{BTreeMap, BTreeSet};

use clap::Args;
use declarest_core::authoring::{Attributes, Batch, SecretOptions, check_names, check_saved_texts};
use declarest_core::error::Category;
use declarest_core::path::LogicalPath;
use declarest_core::repository::{self, Store, metadata_place};
use declarest_core::sync::{self, Members, Stop};
use serde::Serialize;

use super::super::metadata::{name_by_id, store_inferred};
use super::change::Change;
use super::crawl::{Crawl, Listed, Place, Unlisted, crawl as list_all};
use super::item::{Exclusions, Item};
use super::read::note_if_as_listed;
use crate::error::Failure;
use crate::interrupt::{self, block_on};
use crate::invocation::Invocation;
use crate::output::{self, OutputPolicy, counted};
use crate::repository::{Authoring, MessageArgument, Push};
use crate::target::PathArguments;
use crate::workspace::Workspace;

#[derive(Debug, Default, Args)]
pub struct ImportArguments {
    #[command(flatten)]
    path: PathArguments,
    #[command(flatten)]
    pub options: ImportOptions,
    #[command(flatten)]
    message: MessageArgument,
}

/// The resources to import, and how they are saved.
#[derive(Clone, Debug, Default, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own on the command line")]
pub struct ImportOptions {
    #[command(flatten)]
    exclusions: Exclusions,
    /// Save likely secrets to the secret store, and declare them in metadata
    #[arg(long, conflicts_with = "allow_plaintext")]
    pub secret_attributes: bool,
    /// Save values that look like secrets as plaintext
    #[arg(long)]
    allow_plaintext: bool,
    /// Overwrite existing resources
    #[arg(long)]
    force: bool,
    #[arg(
        long,
        help = "First store the metadata that the OpenAPI document implies for collections without metadata"
    )]
    infer_metadata: bool,
}

/// What an import did.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Imported {
    /// The patterns of collections whose inferred metadata was stored.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    inferred: Vec<String>,
    collections: Vec<Collection>,
    /// The patterns of collections that metadata or the document of the API describes and the server does not have.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    absent: BTreeSet<String>,
    /// The patterns of collections that no request can change.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    read_only: BTreeSet<String>,
    failures: Vec<NotImported>,
}

/// The collections with one pattern.
#[derive(Debug, Default, Serialize)]
struct Collection {
    path: String,
    saved: usize,
    existing: usize,
}

/// The changes of an import, each with its place and its number of resources, and the numbers by pattern.
#[derive(Default)]
struct Checked<'w> {
    collections: BTreeMap<String, Collection>,
    changes: Vec<(Place, usize, Change<'w>)>,
}

impl<'w> Checked<'w> {
    /// Adds a change that saves resources of `at`, unless its files cannot be committed.
    fn add(
        &mut self,
        authoring: &Authoring<'_>,
        at: &Place,
        change: Option<Change<'w>>,
        (saved, existing): (usize, usize),
    ) -> Result<(), Failure> {
        if let Some(change) = change {
            authoring.require_committable(&change.files()?)?;
            self.changes.push((at.clone(), saved, change));
        }
        let sum = self.collections.entry(at.pattern.clone()).or_default();
        sum.saved += saved;
        sum.existing += existing;
        Ok(())
    }

    /// Carries the changes out. A change that fails does not stop the others, and its resources are not counted.
    async fn carry_out(self, crawl: &mut Crawl) -> BTreeMap<String, Collection> {
        let Self { mut collections, changes } = self;
        for (at, saved, change) in changes {
            let Err(failure) = change.carry_out().await else { continue };
            if let Some(sum) = collections.get_mut(&at.pattern) {
                sum.saved -= saved;
            }
            collections.retain(|pattern, sum| *pattern != at.pattern || sum.saved + sum.existing > 0);
            crawl.fail(&at, failure);
        }
        collections
    }
}

/// The collections with one pattern that were not imported as a whole.
#[derive(Debug, Serialize)]
struct NotImported {
    path: String,
    collections: usize,
    #[serde(skip)]
    category: Category,
    reason: &'static str,
    message: String,
}

/// Saves all resources that the server lists.
pub fn import(arguments: &ImportArguments, invocation: &Invocation) -> Result<(), Failure> {
    let output = invocation.output(OutputPolicy::TextDefault)?;
    let target = arguments.path.optional_target()?;
    let path = target.map_or_else(LogicalPath::root, |target| target.path);
    arguments.options.check(invocation)?;
    let default = format!("declarest: import resources {path}");
    let authoring = Authoring::begin(invocation, &arguments.message, default, Push::Configured)?;
    let imported = block_on(async {
        let workspace = Workspace::connected(invocation).await?;
        let imported = arguments.options.import(&workspace, &authoring, &path, invocation).await?;
        authoring.finish()?;
        Ok(imported)
    })?;
    output.show(&imported, Some(&imported.text()))?;
    imported.check()
}

impl ImportOptions {
    /// Returns an error for flags that cannot be used.
    pub fn check(&self, invocation: &Invocation) -> Result<(), Failure> {
        self.exclusions.check()?;
        if self.secret_attributes {
            invocation.context()?.secret_store()?;
        }
        Ok(())
    }

    /// Saves the resources of all collections below `path`. A collection that cannot be listed or saved does not stop
    /// the others.
    pub async fn import(
        &self,
        workspace: &Workspace<'_>,
        authoring: &Authoring<'_>,
        path: &LogicalPath,
        invocation: &Invocation,
    ) -> Result<Imported, Failure> {
        let store = authoring.store()?;
        // Infer.
        let inferred = if self.infer_metadata { store_inferred(workspace, path)? } else { Vec::new() };
        let written = authoring.written()?;
        // Read.
        let (reopened, mut crawl) = self.read(workspace, path, &inferred, invocation).await?;
        let workspace = reopened.as_ref().unwrap_or(workspace);
        if crawl.listed.is_empty() && crawl.unlisted.is_empty() && crawl.singletons.is_empty() {
            return Err(Failure::invalid(format!(
                "there is no known collection below {path}: name an OpenAPI document in managedServer.http.openapi of \
                 the context, or declare collections in metadata, such as shops/_/metadata.yaml for /shops"
            )));
        }
        let read_only = crawl.take_read_only(workspace, path)?;
        // Run all checks, so that nothing is written before the last one.
        let checked = self.checked(workspace, authoring, &store, &mut crawl, invocation).await;
        // Write.
        authoring.require_no_others(&written)?;
        // Ctrl-C does not stop it, because the files would stay uncommitted.
        let collections = interrupt::finish(&Stop::default(), checked.carry_out(&mut crawl)).await;
        Ok(Imported { inferred, read_only, ..Imported::new(collections, crawl, invocation) })
    }

    /// Returns what saves the members of all collections, and the singletons that the server has.
    async fn checked<'w>(
        &self,
        workspace: &'w Workspace<'w>,
        authoring: &Authoring<'_>,
        store: &'w Store,
        crawl: &mut Crawl,
        invocation: &Invocation,
    ) -> Checked<'w> {
        let mut checked = Checked::default();
        for mut listed in std::mem::take(&mut crawl.listed) {
            let at = listed.at.clone();
            if listed.members.partial {
                crawl.fail(&at, further_pages(&at.path));
            }
            listed.unplaced.note(&at.path, invocation);
            let change = match self.select(workspace, store, &at.path, &mut listed.members).await {
                Ok(existing) => {
                    crawl.fail_unread(&at, &mut listed.members);
                    note_if_as_listed(&at.path, &listed.members, invocation);
                    self.change(workspace, store, listed, crawl)
                        .map(|(change, saved)| (change, (saved, existing)))
                }
                Err(failure) => Err(failure),
            };
            let added = change.and_then(|(change, counts)| checked.add(authoring, &at, Some(change), counts));
            if let Err(failure) = added {
                crawl.fail(&at, failure);
            }
        }
        for at in std::mem::take(&mut crawl.singletons) {
            let change = self.singleton(workspace, store, &at.path).await;
            let added = change.and_then(|change| {
                let counts = if change.is_some() { (1, 0) } else { (0, 1) };
                checked.add(authoring, &at, change, counts)
            });
            match added {
                Err(failure) if failure.category() == Category::NotFound => {}
                Err(failure) => crawl.fail(&at, failure),
                Ok(()) => {}
            }
        }
        if let Some(first) = crawl.gone.first() {
            let more = if crawl.gone.len() > 1 {
                format!(" (and {} more)", crawl.gone.len() - 1)
            } else {
                String::new()
            };
            invocation.messages.note(&format!(
                "{first}{more}: a list shows it, but the server answers that it does not exist; if it does, correct \
                 operations.list.transforms or operations.get.path"
            ));
        }
        checked
    }

    /// Lists the collections below `path`, with the `inferred` metadata: then it also returns the workspace that has it.
    async fn read<'i>(
        &self,
        workspace: &Workspace<'_>,
        path: &LogicalPath,
        inferred: &[String],
        invocation: &'i Invocation,
    ) -> Result<(Option<Workspace<'i>>, Crawl), Failure> {
        if inferred.is_empty() {
            return Ok((None, list_all(workspace, path, &self.exclusions).await?));
        }
        let reopened = Workspace::connected(invocation).await?;
        let crawl = list_all(&reopened, path, &self.exclusions).await?;
        let unnamed = inferred.iter().filter(|pattern| crawl.unnamed.contains(*pattern));
        let by_id = name_by_id(&reopened, unnamed)?;
        if by_id.is_empty() {
            return Ok((Some(reopened), crawl));
        }
        for pattern in by_id {
            let note = "not all members have a name of their own, so the directories are named by the ids";
            invocation.messages.note(&format!("{pattern}: {note}"));
        }
        let renamed = Workspace::connected(invocation).await?;
        let crawl = list_all(&renamed, path, &self.exclusions).await?;
        Ok((Some(renamed), crawl))
    }

    /// Removes the members that exist in the repository, and returns their number. `--force` overwrites them, except those
    /// at another path. The others get the payloads that reads of them show.
    async fn select(
        &self,
        workspace: &Workspace<'_>,
        store: &Store,
        collection: &LogicalPath,
        members: &mut Members,
    ) -> Result<usize, Failure> {
        let total = members.entries.len();
        let (mut existing, mut others) = (BTreeMap::new(), BTreeMap::new());
        for (path, entry) in std::mem::take(&mut members.entries) {
            let is_declared = repository::resource_file(store.tree(), &path)?.is_some();
            if is_declared { &mut existing } else { &mut others }.insert(path, entry);
        }
        let remote = workspace.remote()?;
        members.entries = sync::undeclared(&remote, others).await?;
        if self.force {
            members.entries.append(&mut existing);
        }
        let left_out = total - members.entries.len();
        *members = remote.as_reads_show(collection, std::mem::take(members), &existing).await?;
        Ok(left_out)
    }

    /// Returns the change that saves the members of a collection, and their number.
    fn change<'w>(
        &self,
        workspace: &'w Workspace<'w>,
        store: &'w Store,
        listed: Listed,
        crawl: &mut Crawl,
    ) -> Result<(Change<'w>, usize), Failure> {
        let Listed { at, members, .. } = listed;
        if members.nameless > 0 {
            let message = format!(
                "{} entries of the list have no name, so they have no path; set resource.alias in {}",
                members.nameless,
                metadata_place(&at.path)
            );
            crawl.fail(&at, Failure::invalid(message));
        }
        let items = Item::listed(members, &workspace.metadata)?;
        let (mut drafts, mut others) = (Vec::new(), Vec::new());
        for item in items {
            let draft = item.into_draft(workspace)?;
            let checked = check_names(store, &workspace.metadata, &draft);
            match checked.and_then(|()| check_saved_texts(store, &workspace.metadata, &draft, false)) {
                Ok(()) => drafts.push(draft),
                Err(error) => others.push(error),
            }
        }
        if let [first, more @ ..] = &others[..] {
            let more = if more.is_empty() { String::new() } else { format!("; and {} more", more.len()) };
            crawl.fail(&at, Failure::invalid(format!("{first}{more}")));
        }
        let saved = drafts.len();
        let batch = Batch { collection: Some(at.path), drafts, observed: true };
        Ok((Change::new(workspace, store, vec![batch], self.secrets())?, saved))
    }

    /// Returns the change that saves the singleton at `path`; `None` if the repository has it. Fails with
    /// [`Category::NotFound`] if the server does not have it.
    async fn singleton<'w>(
        &self,
        workspace: &'w Workspace<'w>,
        store: &'w Store,
        path: &LogicalPath,
    ) -> Result<Option<Change<'w>>, Failure> {
        if !self.force && repository::resource_file(store.tree(), path)?.is_some() {
            return Ok(None);
        }
        let observed = workspace.remote()?.get(path).await?;
        let draft = Item::observed(path, observed, &workspace.metadata)?.into_draft(workspace)?;
        check_names(store, &workspace.metadata, &draft)?;
        check_saved_texts(store, &workspace.metadata, &draft, false)?;
        let batch = Batch { collection: None, drafts: vec![draft], observed: true };
        Change::new(workspace, store, vec![batch], self.secrets()).map(Some)
    }

    fn secrets(&self) -> SecretOptions {
        SecretOptions {
            attributes: if self.secret_attributes { Attributes::Likely } else { Attributes::Declared },
            allow_plaintext: self.allow_plaintext,
            ..SecretOptions::default()
        }
    }
}

/// Returns the failure of a collection that was imported in part.
fn further_pages(collection: &LogicalPath) -> Failure {
    Failure::invalid(format!(
        "further members, because the list has further pages; configure operations.list.pagination in {}",
        metadata_place(collection)
    ))
}

impl Imported {
    fn new(collections: BTreeMap<String, Collection>, crawl: Crawl, invocation: &Invocation) -> Self {
        let Crawl { unlisted, absent, .. } = crawl;
        let collections = collections.into_iter().map(|(path, sum)| Collection { path, ..sum });
        let failures = unlisted.into_iter().map(|(path, Unlisted { paths, failure, .. })| NotImported {
            path,
            collections: paths.len(),
            category: failure.category(),
            reason: failure.category().reason(),
            message: invocation.messages.redacted(failure.message()),
        });
        let (collections, failures) = (collections.collect(), failures.collect());
        Self { collections, absent, failures, ..Self::default() }
    }

    /// Returns a failure with the category of the first collection that was not imported as a whole.
    pub fn check(&self) -> Result<(), Failure> {
        let Some(first) = self.failures.first() else { return Ok(()) };
        Err(Failure::new(first.category, self.failed()))
    }

    /// Returns the summary: a line per collection, the failures, and the sums.
    pub fn text(&self) -> String {
        let paths = self.collections.iter().map(|one| &one.path).chain(&self.absent);
        let paths = paths.chain(&self.read_only);
        let paths = paths.chain(self.failures.iter().map(|failure| &failure.path));
        let width = paths.map(|path| path.chars().count()).max().unwrap_or_default();
        let mut lines: Vec<String> = Vec::new();
        if !self.inferred.is_empty() {
            lines.push(format!("Metadata: inferred for {}", counted(self.inferred.len(), "collection")));
        }
        for Collection { path, saved, existing } in &self.collections {
            let kept = if *existing > 0 { format!(", {existing} existing") } else { String::new() };
            lines.push(format!("{path:width$}  {saved} saved{kept}"));
        }
        for path in &self.absent {
            lines.push(format!("{path:width$}  the server does not have this collection"));
        }
        for path in &self.read_only {
            lines.push(format!(
                "{path:width$}  read-only: the OpenAPI document describes no request that changes it"
            ));
        }
        for NotImported { path, collections, message, .. } in &self.failures {
            let several =
                if *collections > 1 { format!(" ({collections} collections)") } else { String::new() };
            let done = if self.is_partial(path) { "not complete" } else { "not imported" };
            lines.push(format!("{path:width$}  {done}{several}: {message}"));
        }
        let sum = |of: fn(&Collection) -> usize| self.collections.iter().map(of).sum::<usize>();
        lines.push(format!(
            "Import: {} saved, {} existing, {}.",
            counted(sum(|one| one.saved), "resource"),
            sum(|one| one.existing),
            self.failed(),
        ));
        output::lines(lines)
    }

    /// Returns the numbers of collections that were imported in part or not at all.
    fn failed(&self) -> String {
        let sum = |partial| {
            let failures = self.failures.iter().filter(|failure| self.is_partial(&failure.path) == partial);
            failures.map(|failure| failure.collections).sum()
        };
        match (sum(true), sum(false)) {
            (0, not) => format!("{} not imported", counted(not, "collection")),
            (partial, 0) => format!("{} not complete", counted(partial, "collection")),
            (partial, not) => format!("{} not complete, {not} not imported", counted(partial, "collection")),
        }
    }

    /// Whether members of the collections with this pattern were imported.
    fn is_partial(&self, pattern: &str) -> bool {
        self.collections.iter().any(|one| one.path == pattern && one.saved + one.existing > 0)
    }
}
