//! Commands that change stored metadata.

use declarest_core::metadata;
use declarest_core::metadata::document::Document;
use declarest_core::payload::PayloadType;
use declarest_core::repository::DefaultsEdit;

use super::Subject;
use crate::editor::EditorArgument;
use crate::error::Failure;
use crate::input::PayloadArguments;
use crate::interrupt::block_on_local;
use crate::invocation::Invocation;
use crate::target::PathArguments;
use crate::workspace::Workspace;

/// `resource metadata set`.
pub fn set(path: &PathArguments, input: &PayloadArguments, invocation: &Invocation) -> Result<(), Failure> {
    let subject = Subject::new(path, invocation)?;
    let content = input.required_document()?;
    let document = checked(&subject, &content.origin, content.descriptor.payload_type, &content.bytes)?;
    let workspace = block_on_local(Workspace::local(invocation))?;
    store(&subject, &workspace, &document)
}

/// `resource metadata edit`.
pub fn edit(path: &PathArguments, editor: &EditorArgument, invocation: &Invocation) -> Result<(), Failure> {
    let subject = Subject::new(path, invocation)?;
    let editor = editor.editor(invocation)?;
    let workspace = block_on_local(Workspace::local(invocation))?;
    let before = match workspace.metadata.stored(&subject.selector)?.last() {
        Some(document) => document.encode_yaml()?,
        None => Vec::new(),
    };
    let name = format!("the metadata of {}", subject.text);
    let edited = editor.edit(&name, &before, ".yaml")?;
    if edited == before {
        return Ok(());
    }
    let document = checked(&subject, &name, PayloadType::Yaml, &edited)?;
    store(&subject, &workspace, &document)
}

/// Decodes and checks the document in `content`, which is from `origin`.
fn checked(
    subject: &Subject,
    origin: &str,
    format: PayloadType,
    content: &[u8],
) -> Result<Document, Failure> {
    let document = Document::decode(format, content).and_then(|document| {
        metadata::check(&document, subject.selector.is_collection())?;
        Ok(document)
    });
    document.map_err(|error| Failure::invalid(format!("{origin}: {error}")))
}

fn store(subject: &Subject, workspace: &Workspace<'_>, document: &Document) -> Result<(), Failure> {
    let store = workspace.metadata_store()?;
    store.write_metadata(&subject.selector, &document.encode_yaml()?, &DefaultsEdit::default())?;
    Ok(())
}

/// `resource metadata unset`. Keeps the files that the document includes, because they are content of the user.
pub fn unset(path: &PathArguments, invocation: &Invocation) -> Result<(), Failure> {
    let subject = Subject::new(path, invocation)?;
    let workspace = block_on_local(Workspace::local(invocation))?;
    Ok(workspace.metadata_store()?.delete_metadata(&subject.selector, &[])?)
}
