//! `context edit`.

use std::path::Path;

use declarest_core::payload::{PayloadType, Value, decode, encode};

use super::show::select;
use crate::context::{Catalogue, Setting as _, Stored, decode_catalogue};
use crate::editor::{Editor, EditorArgument};
use crate::error::Failure;
use crate::invocation::Invocation;

/// Opens the catalogue, or one context with its credentials, in the editor. It is saved only if it is valid.
pub fn edit(name: Option<&str>, editor: &EditorArgument, invocation: &Invocation) -> Result<(), Failure> {
    let name = name.map(|name| invocation.context_name(Some(name))).transpose()?.flatten();
    let stored = match &name {
        Some(_) => invocation.catalogue()?,
        None => invocation.catalogue_text()?,
    };
    // The text has credentials, which must not stay elsewhere if the process is killed.
    let beside = stored.file().parent().filter(|directory| directory.is_dir());
    let directory = beside.map_or_else(std::env::temp_dir, Path::to_owned);
    editor.edit_in(&directory, invocation, |editor| match &name {
        Some(name) => single(name, &stored, editor),
        None => whole(&stored, editor),
    })
}

/// Edits the text of the file, so that its comments are kept and its faults can be corrected.
fn whole(stored: &Stored, editor: &Editor) -> Result<(), Failure> {
    let before = stored.text()?;
    let edited = editor.edit("the catalogue of contexts", &before, ".yaml")?;
    if edited == before { Ok(()) } else { Ok(stored.replace(&edited)?) }
}

/// Edits the members `defaultEditor`, `credentials` and `context`.
fn single(name: &str, stored: &Stored, editor: &Editor) -> Result<(), Failure> {
    let title = format!("context \"{name}\"");
    let before = encode(PayloadType::Yaml, &document(&select(stored, Some(name))?))?;
    let edited = editor.edit(&title, &before, ".yaml")?;
    if edited == before {
        return Ok(());
    }
    let given = catalogue(&title, &edited)?;
    let mut changed = stored.catalogue.clone();
    changed.default_editor = given.default_editor;
    for credential in given.credentials {
        changed.put_credential(credential);
    }
    for context in given.contexts {
        if changed.current_context.as_deref() == Some(name) {
            changed.current_context = Some(context.name.0.clone());
        }
        if let Some(known) = changed.contexts.iter_mut().find(|known| known.name.0 == name) {
            *known = context;
        }
    }
    Ok(stored.save(&changed)?)
}

/// Returns the document to edit for a catalogue with one context.
fn document(catalogue: &Catalogue) -> Value {
    let Some(Value::Object(mut members)) = catalogue.write() else { return Value::Null };
    members.remove("currentContext");
    members.remove("contexts");
    let credentials = catalogue.stored_credentials();
    if !credentials.is_empty() {
        members.insert("credentials".to_owned(), Value::Array(credentials));
    }
    members.extend(catalogue.contexts.iter().map(|context| ("context".to_owned(), context.stored())));
    Value::Object(members)
}

/// Returns the catalogue with the context of an edited document.
fn catalogue(title: &str, edited: &[u8]) -> Result<Catalogue, Failure> {
    let refused = |reason: String| Failure::invalid(format!("{title}: {reason}"));
    let edited = decode(PayloadType::Yaml, edited).map_err(|error| refused(error.to_string()))?;
    let Value::Object(mut members) = edited else {
        return Err(refused("expected the members defaultEditor, credentials and context".to_owned()));
    };
    let context =
        members.remove("context").ok_or_else(|| refused("the member context is missing".to_owned()))?;
    members.insert("currentContext".to_owned(), context.get("name").cloned().unwrap_or_default());
    members.insert("contexts".to_owned(), Value::Array(vec![context]));
    let bytes = encode(PayloadType::Yaml, &Value::Object(members))?;
    Ok(decode_catalogue(title, PayloadType::Yaml, &bytes)?)
}
