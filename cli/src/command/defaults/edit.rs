//! Commands that change defaults.

use declarest_core::metadata::document::Document;
use declarest_core::payload::{Object, PayloadType, Value, decode, encode};
use declarest_core::repository::{self, DefaultsEdit};

use super::super::metadata::Subject;
use super::{ProfileArguments, Stored};
use crate::editor::{Editor, EditorArgument, EditorError};
use crate::error::Failure;
use crate::interrupt::block_on_local;
use crate::invocation::Invocation;
use crate::repository::{Authoring, MessageArgument, Push};
use crate::target::EditArguments;
use crate::workspace::Workspace;

/// `resource defaults edit`.
pub fn baseline(arguments: &EditArguments, invocation: &Invocation) -> Result<(), Failure> {
    let subject = Subject::new(&arguments.path, invocation)?;
    let message = format!("declarest: edit resource defaults {}", subject.text);
    arguments.editor.edit(invocation, |editor| {
        change(subject, message, invocation, |stored| {
            let name = format!("the defaults of {}", stored.subject.text);
            edited(editor, &name, None, stored)
        })
    })
}

/// `resource defaults config edit`.
pub fn config(arguments: &EditArguments, invocation: &Invocation) -> Result<(), Failure> {
    let subject = Subject::new(&arguments.path, invocation)?;
    let message = format!("declarest: edit resource defaults config {}", subject.text);
    arguments.editor.edit(invocation, |editor| {
        change(subject, message, invocation, |stored| edited_section(editor, stored))
    })
}

fn edited_section(editor: &Editor, stored: &mut Stored) -> Result<Option<DefaultsEdit>, Failure> {
    let name = format!("resource.defaults of {}", stored.subject.text);
    let before = encode(PayloadType::Yaml, &stored.section_value())?;
    let text = editor.edit_or_clear(&name, &before, ".yaml")?.unwrap_or_else(|| b"{}".to_vec());
    if text == before {
        return Ok(None);
    }
    let written = decode(PayloadType::Yaml, &text).map_err(|error| refused(&name, &error))?;
    let resource = Value::Object([("defaults".to_owned(), written)].into());
    let document = Value::Object([("resource".to_owned(), resource)].into());
    let document = encode(PayloadType::Yaml, &document)?;
    let document = Document::decode(PayloadType::Yaml, &document).map_err(|error| refused(&name, &error))?;
    let section = document.resource.and_then(|resource| resource.defaults);
    Ok(Some(stored.document.replace_defaults(section)))
}

/// `resource defaults profile edit`.
pub fn profile(
    arguments: &ProfileArguments,
    editor: &EditorArgument,
    invocation: &Invocation,
) -> Result<(), Failure> {
    let (subject, profile) = arguments.understood(invocation)?;
    let message = format!("declarest: edit resource defaults profile {} {profile}", subject.text);
    editor.edit(invocation, |editor| {
        change(subject, message, invocation, |stored| {
            let name = format!("the profile {profile} of {}", stored.subject.text);
            edited(editor, &name, Some(&profile), stored)
        })
    })
}

/// `resource defaults profile delete`.
pub fn delete(arguments: &ProfileArguments, invocation: &Invocation) -> Result<(), Failure> {
    let (subject, profile) = arguments.understood(invocation)?;
    let message = format!("declarest: delete resource defaults profile {} {profile}", subject.text);
    change(subject, message, invocation, |stored| {
        if stored.section().profiles.is_none_or(|profiles| !profiles.contains_key(&profile)) {
            return Err(stored.without_profile(&profile));
        }
        stored.keep(Some(&profile), Object::new()).map(Some)
    })
}

/// Stores `members` as the baseline of a path.
pub fn save(subject: Subject, members: Object, invocation: &Invocation) -> Result<(), Failure> {
    let message = format!("declarest: infer resource defaults {}", subject.text);
    change(subject, message, invocation, |stored| stored.keep(None, members).map(Some))
}

/// Changes the document of `subject`, and commits it. `edit` returns the changes of defaults files, or `None` if
/// nothing changes.
fn change(
    subject: Subject,
    message: String,
    invocation: &Invocation,
    edit: impl FnOnce(&mut Stored) -> Result<Option<DefaultsEdit>, Failure>,
) -> Result<(), Failure> {
    let authoring = Authoring::begin(invocation, &MessageArgument::default(), message, Push::Configured)?;
    let workspace = block_on_local(Workspace::local(invocation))?;
    let mut stored = Stored::of(subject, &workspace)?;
    let before = stored.document.clone();
    let Some(files) = edit(&mut stored)? else { return Ok(()) };
    let Stored { subject, store, document, .. } = stored;
    document.validate(subject.selector.is_collection())?;
    check_profiles(&workspace, &subject, &document)?;
    authoring.lock()?;
    let Stored { subject, document: now, .. } = Stored::open(subject, invocation)?;
    if now != before {
        return Err(EditorError::Changed(format!("the metadata of {}", subject.text)).into());
    }
    store.write_metadata(&subject.selector, &document.encode_yaml()?, &files)?;
    authoring.finish()?;
    Ok(())
}

/// Checks that the profiles that the subject and declared resources select still exist. Those that failed before the
/// change are not checked, so that one fault can be corrected after another.
fn check_profiles(workspace: &Workspace<'_>, subject: &Subject, document: &Document) -> Result<(), Failure> {
    let (metadata, selector) = (&workspace.metadata, &subject.selector);
    let declared = repository::resources(workspace.tree.as_ref(), &selector.literal_prefix()?, true)?;
    let declared = declared.resources.into_iter().map(|file| file.path);
    for path in std::iter::once(subject.representative()?).chain(declared) {
        if metadata.rules(&path).is_ok() {
            metadata.check_profiles(&path, selector, document).map_err(|error| {
                Failure::invalid(format!("the change would select a profile that does not exist: {error}"))
            })?;
        }
    }
    Ok(())
}

/// Opens the members of the baseline or a profile in the editor, in the format of their file. Returns `None` if they are
/// not changed; a blank text has no members.
fn edited(
    editor: &Editor,
    name: &str,
    profile: Option<&str>,
    stored: &mut Stored,
) -> Result<Option<DefaultsEdit>, Failure> {
    let shown = stored.members(profile)?;
    let format = stored.file_format(profile, shown.as_ref().unwrap_or(&Object::new()))?;
    let before = match shown.clone() {
        Some(members) => encode(format.payload_type, &Value::Object(members))?,
        None => Vec::new(),
    };
    let text = editor.edit_or_clear(name, &before, &format.extension)?;
    if text.as_ref() == Some(&before) {
        return Ok(None);
    }
    if stored.members(profile)? != shown {
        return Err(EditorError::Changed(name.to_owned()).into());
    }
    let Some(text) = text else { return stored.keep(profile, Object::new()).map(Some) };
    match decode(format.payload_type, &text).map_err(|error| refused(name, &error))? {
        Value::Object(members) => stored.keep(profile, members).map(Some),
        other => Err(Failure::invalid(format!("{name}: expected an object, found {}", other.kind()))),
    }
}

fn refused(name: &str, error: &dyn std::fmt::Display) -> Failure {
    Failure::invalid(format!("{name}: {error}"))
}
