//! Saves payloads to the repository.

use declarest_core::authoring::{Batch, Concealed, Declaration, Prepared, SecretOptions, conceal};
use declarest_core::repository::Store;
use declarest_core::sync::Stop;

use crate::error::Failure;
use crate::interrupt::finish;
use crate::invocation::Invocation;
use crate::workspace::Workspace;

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
        secrets: &SecretOptions,
    ) -> Result<Self, Failure> {
        let metadata = &workspace.metadata;
        let mut concealed = conceal(store, metadata, batches, secrets)?;
        let drafts = std::mem::take(&mut concealed.drafts).into_iter();
        let prepared = drafts.map(|draft| Prepared::new(store, metadata, draft));
        let prepared = prepared.collect::<Result<_, _>>()?;
        Ok(Self { workspace, store, prepared, concealed })
    }

    /// Writes secrets first, so that no placeholder refers to a missing secret. Metadata of secret attributes is
    /// written before the files, metadata that declares whole resources as secret after them.
    pub async fn carry_out(self, invocation: &Invocation) -> Result<(), Failure> {
        let Self { workspace, store, prepared, concealed } = self;
        for (path, at) in &concealed.in_arrays {
            invocation.messages.warn(&format!(
                "{path}: the key of the secret {at} contains an array index; if the array is reordered, \
                 name it explicitly, as in {{{{secret \"a key\"}}}}"
            ));
        }
        let stored = concealed.secrets.len();
        if stored > 0 {
            let secrets = workspace.context.open_secret_store(&invocation.messages)?;
            invocation.messages.hide(concealed.secrets.iter().map(|(_, value)| value.clone()));
            finish(&Stop::default(), secrets.set_all(concealed.secrets)).await?;
            invocation.messages.verbose(1, &format!("stored secrets: {stored}"));
        }
        declare(workspace, &concealed.attributes)?;
        for prepared in prepared {
            prepared.write(store)?;
            invocation.messages.verbose(1, &format!("saved {}", prepared.path()));
        }
        declare(workspace, &concealed.whole)
    }
}

/// Writes metadata. The context needs a place for metadata only if there are declarations.
fn declare(workspace: &Workspace<'_>, declarations: &[Declaration]) -> Result<(), Failure> {
    if declarations.is_empty() {
        return Ok(());
    }
    let store = workspace.metadata_store()?;
    Ok(declarations.iter().try_for_each(|declaration| declaration.write(&store))?)
}
