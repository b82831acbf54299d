//! Commands that change stored metadata.

use clap::Args;
use declarest_core::error::{Categorized as _, Category};
use declarest_core::metadata::document::Document;
use declarest_core::payload::PayloadType;
use declarest_core::repository::DefaultsEdit;

use super::Subject;
use crate::context::{MetadataSource, RepositoryPlace};
use crate::editor::{EditorArgument, EditorError};
use crate::error::Failure;
use crate::input::PayloadArguments;
use crate::interrupt::block_on_local;
use crate::invocation::Invocation;
use crate::lock::Lock;
use crate::repository::{Authoring, MessageArgument, Push, not_git};
use crate::target::PathArguments;
use crate::workspace::Workspace;

#[derive(Clone, Copy, Debug, Args)]
pub struct CommitArgument {
    /// Commit the change to the Git repository, and push it if the context does so
    #[arg(long)]
    pub commit: bool,
}

impl CommitArgument {
    /// Begins a change of metadata that is committed, if the flag requests that. Fails if there are uncommitted changes,
    /// or if the metadata is not in the repository.
    pub fn begin<'i>(
        self,
        subject: &Subject,
        invocation: &'i Invocation,
    ) -> Result<Option<Authoring<'i>>, Failure> {
        if !self.commit {
            return Ok(None);
        }
        let context = invocation.context()?;
        let RepositoryPlace::Git { base_dir, .. } = context.repository()? else {
            return Err(not_git(context, "--commit"));
        };
        if let MetadataSource::Directory(directory) = context.metadata()
            && !directory.starts_with(&base_dir)
        {
            let message =
                format!("--commit needs metadata in the repository, but it is in {}", directory.display());
            return Err(Failure::invalid(message));
        }
        let message = format!("declarest: change metadata of {}", subject.text);
        Authoring::begin(invocation, &MessageArgument::default(), message, Push::Configured).map(Some)
    }
}

/// `resource metadata set`.
pub fn set(
    path: &PathArguments,
    input: &PayloadArguments,
    commit: CommitArgument,
    invocation: &Invocation,
) -> Result<(), Failure> {
    let subject = Subject::new(path, invocation)?;
    let authoring = commit.begin(&subject, invocation)?;
    let content = input.required_document()?;
    let document = checked(&subject, &content.origin, content.descriptor.payload_type, &content.bytes)?;
    let workspace = block_on_local(Workspace::local(invocation))?;
    let _lock = lock(authoring.as_ref(), &workspace)?;
    store(&subject, &workspace, &document)?;
    finish(authoring)
}

/// `resource metadata edit`.
pub fn edit(
    path: &PathArguments,
    editor: &EditorArgument,
    commit: CommitArgument,
    invocation: &Invocation,
) -> Result<(), Failure> {
    let subject = Subject::new(path, invocation)?;
    let authoring = commit.begin(&subject, invocation)?;
    editor.edit(invocation, |editor| {
        let workspace = block_on_local(Workspace::local(invocation))?;
        let before = stored(&subject, &workspace)?;
        let name = format!("the metadata of {}", subject.text);
        let edited = editor.edit(&name, &before, ".yaml")?;
        if edited == before {
            return Ok(());
        }
        let document = checked(&subject, &name, PayloadType::Yaml, &edited)?;
        let _lock = lock(authoring.as_ref(), &workspace)?;
        let workspace = block_on_local(Workspace::local(invocation))?;
        if stored(&subject, &workspace)? != before {
            return Err(EditorError::Changed(name).into());
        }
        store(&subject, &workspace, &document)?;
        finish(authoring)
    })
}

/// Returns the stored document as YAML; empty if there is none.
fn stored(subject: &Subject, workspace: &Workspace<'_>) -> Result<Vec<u8>, Failure> {
    let stored = workspace.metadata.stored(&subject.selector)?;
    Ok(stored.last().map(|document| document.encode_yaml()).transpose()?.unwrap_or_default())
}

/// Locks the repository before a change of metadata. A change that is committed keeps its lock until then.
pub fn lock(authoring: Option<&Authoring<'_>>, workspace: &Workspace<'_>) -> Result<Option<Lock>, Failure> {
    match authoring {
        Some(authoring) => authoring.lock().map(|()| None),
        None => workspace.lock_repository(),
    }
}

/// Commits a change of metadata, if that was requested.
pub fn finish(authoring: Option<Authoring<'_>>) -> Result<(), Failure> {
    authoring.map_or(Ok(()), |authoring| authoring.finish().map(|_| ()))
}

/// Decodes and checks the document in `content`, which is from `origin`.
fn checked(
    subject: &Subject,
    origin: &str,
    format: PayloadType,
    content: &[u8],
) -> Result<Document, Failure> {
    let document = Document::decode(format, content).and_then(|document| {
        document.validate(subject.selector.is_collection())?;
        Ok(document)
    });
    document.map_err(|error| Failure::invalid(format!("{origin}: {error}")))
}

/// Writes the document of a path.
pub fn store(subject: &Subject, workspace: &Workspace<'_>, document: &Document) -> Result<(), Failure> {
    let store = workspace.metadata_store()?;
    store.write_metadata(&subject.selector, &document.encode_yaml()?, &DefaultsEdit::default())?;
    Ok(())
}

/// `resource metadata unset`. Keeps the files that the document includes, because they are content of the user.
pub fn unset(path: &PathArguments, commit: CommitArgument, invocation: &Invocation) -> Result<(), Failure> {
    let subject = Subject::new(path, invocation)?;
    let authoring = commit.begin(&subject, invocation)?;
    let workspace = block_on_local(Workspace::local(invocation))?;
    let _lock = lock(authoring.as_ref(), &workspace)?;
    match workspace.metadata_store()?.delete_metadata(&subject.selector, &[]) {
        // As in version 0.3.8, so that scripts may repeat the command.
        Err(error) if error.category() == Category::NotFound => {}
        removed => removed?,
    }
    finish(authoring)
}
