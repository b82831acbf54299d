//! Payloads on their way into the repository.

use declarest_core::authoring::{Batch, Concealed, Declaration, Prepared, SecretOptions, conceal};
use declarest_core::repository::Store;

use crate::error::Failure;
use crate::invocation::Invocation;
use crate::workspace::Workspace;

/// What saving payloads comes to, once all guards are passed.
pub struct Change<'w> {
    workspace: &'w Workspace<'w>,
    store: &'w Store,
    prepared: Vec<Prepared>,
    concealed: Concealed,
}

impl<'w> Change<'w> {
    /// Passes all guards, so that afterwards everything can be written.
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

    /// Secrets first, so that no file names one that is not there; metadata last where it says that a file is a
    /// placeholder, and else first.
    pub async fn carry_out(self, invocation: &Invocation) -> Result<(), Failure> {
        let Self { workspace, store, prepared, concealed } = self;
        for (path, at) in &concealed.in_arrays {
            invocation.messages.warn(&format!(
                "{path}: the key of the secret {at} holds a place in an array; if the array is reordered, \
                 name it explicitly, as in {{{{secret \"a key\"}}}}"
            ));
        }
        let stored = concealed.secrets.len();
        if stored > 0 {
            let secrets = workspace.context.open_secret_store(&invocation.messages)?;
            invocation.messages.hide(concealed.secrets.iter().map(|(_, value)| value.clone()));
            secrets.set_all(concealed.secrets).await?;
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

/// Writes metadata. A context without a place for it only needs one if there is something to write.
fn declare(workspace: &Workspace<'_>, declarations: &[Declaration]) -> Result<(), Failure> {
    if declarations.is_empty() {
        return Ok(());
    }
    let store = workspace.metadata_store()?;
    Ok(declarations.iter().try_for_each(|declaration| declaration.write(&store))?)
}
