//! Saves payloads to the repository.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};

use declarest_core::authoring::{Batch, Concealed, Prepared, SecretOptions, check_absent, conceal};
use declarest_core::error::{Categorized as _, Category};
use declarest_core::repository::{RepositoryError, Store};
use declarest_core::secrets::{SecretKey, SecretStore};
use declarest_core::sync::Stop;

use crate::error::Failure;
use crate::interrupt::finish;
use crate::repository::Authoring;
use crate::workspace::Workspace;

/// How many files are written at once.
const WRITERS: usize = 16;

/// A save that has passed all checks.
pub struct Change<'w> {
    workspace: &'w Workspace<'w>,
    store: &'w Store,
    prepared: Vec<Prepared>,
    concealed: Concealed,
}

impl<'w> Change<'w> {
    /// Runs all checks, so that nothing is written if one fails.
    pub fn new(
        workspace: &'w Workspace<'w>,
        store: &'w Store,
        batches: Vec<Batch>,
        secrets: SecretOptions,
    ) -> Result<Self, Failure> {
        let metadata = &workspace.metadata;
        let has_store = workspace.context.secret_store().is_ok();
        let secrets = SecretOptions { has_store, credentials: workspace.messages.hidden(), ..secrets };
        let mut concealed = conceal(store, metadata, batches, &secrets)?;
        let drafts = std::mem::take(&mut concealed.drafts).into_iter();
        let prepared = drafts.map(|draft| Prepared::new(store, metadata, draft));
        let prepared = prepared.collect::<Result<_, _>>()?;
        let change = Self { workspace, store, prepared, concealed };
        change.check_keys()?;
        Ok(change)
    }

    /// Fails if the secret store cannot have one of the keys, which the names of resources can cause.
    fn check_keys(&self) -> Result<(), Failure> {
        let Concealed { secrets, masks, .. } = &self.concealed;
        let mut keys = secrets.iter().chain(masks).map(|(key, _)| key).peekable();
        // A file can have all keys.
        if keys.peek().is_none() || self.workspace.context.secret_store()?.vault.is_none() {
            return Ok(());
        }
        let store = self.workspace.context.open_secret_store()?;
        Ok(keys.try_for_each(|key| store.check(key))?)
    }

    /// Saves batches and commits them. Without `overwrite`, an existing resource is an error.
    pub async fn commit(
        workspace: &'w Workspace<'w>,
        authoring: Authoring<'_>,
        batches: Vec<Batch>,
        secrets: SecretOptions,
        overwrite: bool,
    ) -> Result<(), Failure> {
        let store = authoring.store()?;
        if !overwrite {
            check_absent(&store, batches.iter().flat_map(|batch| &batch.drafts).map(|draft| &draft.path))?;
        }
        let change = Change::new(workspace, &store, batches, secrets)?;
        authoring.require_committable(&change.files()?)?;
        change.carry_out().await?;
        authoring.finish()?;
        Ok(())
    }

    /// Returns the files of resources that the change writes, relative to the repository.
    pub fn files(&self) -> Result<Vec<String>, RepositoryError> {
        let files = self.prepared.iter().map(|prepared| prepared.files(self.store));
        Ok(files.collect::<Result<Vec<_>, _>>()?.concat())
    }

    /// Writes secrets first, so that no placeholder refers to a missing secret. Metadata of secret attributes is
    /// written before the files, metadata that declares whole resources as secret after them.
    pub async fn carry_out(self) -> Result<(), Failure> {
        let Self { workspace, store, prepared, mut concealed } = self;
        let messages = workspace.messages;
        for (path, at) in &concealed.in_arrays {
            messages.warn(&format!(
                "{path}: the key of the secret {at} contains an array index; if the array is reordered, \
                 name it explicitly, as in {{{{secret \"a key\"}}}}"
            ));
        }
        for (at, paths) in &concealed.masked {
            let more =
                if let [_] = paths[..] { String::new() } else { format!(" and {} more", paths.len() - 1) };
            messages.warn(&format!(
                "{}{more}: the server masks {at} or a part of it, and an update may overwrite the value with the mask; \
                 state {at} in resource.writeOnlyAttributes",
                paths[0]
            ));
        }
        if !concealed.secrets.is_empty() || !concealed.masks.is_empty() {
            let secrets = workspace.context.open_secret_store()?;
            for (key, mask) in concealed.masks {
                if !has(&secrets, &key).await? {
                    concealed.secrets.push((key, mask));
                }
            }
            let stored = concealed.secrets.len();
            messages.hide(concealed.secrets.iter().map(|(_, value)| value.clone()));
            finish(&Stop::default(), secrets.set_all(concealed.secrets)).await?;
            messages.verbose(1, &format!("stored secrets: {stored}"));
        }
        workspace.declare(&concealed.attributes)?;
        write(&prepared, store)?;
        for prepared in prepared {
            messages.verbose(1, &format!("saved {}", prepared.path()));
        }
        workspace.declare(&concealed.whole)
    }
}

/// Whether the store has a value, which a mask must not replace.
async fn has(secrets: &SecretStore, key: &SecretKey) -> Result<bool, Failure> {
    match secrets.get(key).await {
        Err(error) if error.category() == Category::NotFound => Ok(false),
        found => Ok(found.map(|_| true)?),
    }
}

/// Writes the files. Each writer waits until its file is on the disk, which flushes several files at once.
fn write(prepared: &[Prepared], store: &Store) -> Result<(), RepositoryError> {
    let next = AtomicUsize::new(0);
    let write = || {
        while let Some(one) = prepared.get(next.fetch_add(1, Ordering::Relaxed)) {
            if let Err(error) = one.write(store) {
                // The other writers end after their current file.
                next.store(prepared.len(), Ordering::Relaxed);
                return Err(error);
            }
        }
        Ok(())
    };
    if prepared.len() == 1 {
        return write();
    }
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS.min(prepared.len())).map(|_| scope.spawn(write)).collect();
        let ends =
            writers.into_iter().map(|writer| writer.join().unwrap_or_else(|panic| resume_unwind(panic)));
        // All writers are joined before the first error is returned.
        ends.collect::<Vec<_>>().into_iter().collect()
    })
}
