//! `resource copy` and `resource edit`: change files of the repository.

use std::sync::Arc;

use clap::Args;
use declarest_core::authoring::{Batch, Draft, SecretOptions, check_texts};
use declarest_core::metadata::document::merge;
use declarest_core::metadata::includes::referenced;
use declarest_core::path::LogicalPath;
use declarest_core::payload::{Class, Descriptor, PayloadType, Value};
use declarest_core::repository::{MAX_PAYLOAD, RepositoryError, declares_at_least, resource_file};
use declarest_core::secrets::{decode_file, encode_file, is_placeholder};

use super::change::Change;
use super::item::{Declared, Item};
use super::read::{self, View};
use super::targets::{mismatch, other_name};
use crate::editor::{Editor, EditorError};
use crate::error::Failure;
use crate::input::overrides;
use crate::interrupt::block_on;
use crate::invocation::Invocation;
use crate::output::{OutputPolicy, lines};
use crate::repository::{Authoring, MessageArgument, Push};
use crate::target::{EditArguments, PathArguments, Target, trimmed};
use crate::workspace::Workspace;

#[derive(Debug, Args)]
pub struct CopyArguments {
    #[command(flatten)]
    path: PathArguments,
    /// Path of the copy
    #[arg(value_name = "TARGET-PATH")]
    target: Option<String>,
    /// Same as TARGET-PATH
    #[arg(long, value_name = "PATH")]
    target_path: Option<String>,
    /// Attributes of the copy, such as /name=oslo,/tier=gold
    #[arg(long, value_name = "ASSIGNMENTS")]
    override_attributes: Option<String>,
    /// Overwrite an existing resource
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    message: MessageArgument,
}

/// The payload of a resource, and the format of its file if it is known.
struct Source {
    path: LogicalPath,
    payload: Value,
    descriptor: Option<Descriptor>,
    /// The secrets that metadata declares, if it was read from the server.
    observed: Option<Declared>,
}

/// Copies a resource to another path of the repository.
pub fn copy(arguments: &CopyArguments, invocation: &Invocation) -> Result<(), Failure> {
    let (path, target) = arguments.paths(invocation)?;
    let assigned = arguments.override_attributes.as_deref().map(overrides).transpose()?;
    let default = format!("declarest: copy resource {} to {target}", path.path);
    let authoring = Authoring::begin(invocation, &arguments.message, default, Push::Configured)?;
    block_on(async {
        let workspace = workspace(invocation, &path).await?;
        let mut source = source(&workspace, &path.path).await?;
        let given = assigned.clone().map(Value::Object).unwrap_or_default();
        if let Some(assigned) = assigned {
            if source.payload.as_object().is_none() {
                return Err(Failure::invalid(format!(
                    "{} is not an object; remove --override-attributes",
                    path.path
                )));
            }
            source.payload = merge(source.payload, Value::Object(assigned));
        }
        let (tree, metadata) = (workspace.tree.as_ref(), &workspace.metadata);
        if let Some(name) = other_name(tree, metadata, &target, &source.payload)? {
            return Err(mismatch(&name, &target, "change it with --override-attributes"));
        }
        let Source { payload, descriptor, observed, .. } = source;
        let draft = Draft { descriptor, ..Draft::new(target, payload) };
        if let Some(declared) = &observed {
            check_texts(&draft.path, &draft.payload, &given)?;
            declared.check(&workspace, &draft)?;
        }
        save(&workspace, authoring, draft, observed.is_some(), arguments.force).await
    })
}

/// Opens a resource in the editor, and saves it with the checks of every save. With `--verbose`, prints its path.
pub fn edit(arguments: &EditArguments, invocation: &Invocation) -> Result<(), Failure> {
    let output = invocation.output_about_resources(OutputPolicy::TextDefault)?;
    let target = arguments.path.target(invocation)?;
    let default = format!("declarest: edit resource {}", target.path);
    let authoring = Authoring::begin(invocation, &MessageArgument::default(), default, Push::Configured)?;
    let saved = arguments
        .editor
        .edit(invocation, |editor| block_on(edit_in(editor, target, authoring, invocation)))?;
    match saved {
        Some(path) if invocation.settings.verbosity > 0 => {
            let path = path.as_str();
            Ok(output.show_about(&[path], &path, Some(&lines([path])))?)
        }
        _ => Ok(()),
    }
}

/// Returns the path of the resource, or `None` if it was not changed.
async fn edit_in(
    editor: &Editor,
    target: Target,
    authoring: Authoring<'_>,
    invocation: &Invocation,
) -> Result<Option<LogicalPath>, Failure> {
    let workspace = workspace(invocation, &target).await?;
    let Source { path, payload, descriptor, observed } = source(&workspace, &target.path).await?;
    let format = descriptor.clone().unwrap_or_else(|| Descriptor::of(PayloadType::Json));
    if format.payload_type.class() == Class::Binary {
        return Err(Failure::invalid(format!("{path} is binary; save a file with \"resource save -f\"")));
    }
    let stored = match &observed {
        Some(declared) => {
            check_texts(&path, &payload, &Value::Null)?;
            declared.check_shown(&path, &payload)?;
            None
        }
        None => text(&workspace, &path)?,
    };
    let before = stored.clone().map_or_else(|| encode_file(format.payload_type, &payload), Ok)?;
    let name = format!("the resource {path}");
    let edited = match format.payload_type.class() {
        // An empty text is a payload, but not a reference to the secret store.
        Class::Text if !payload.as_str().is_some_and(is_placeholder) => {
            editor.edit_text(&name, &before, &format.extension)
        }
        Class::Text | Class::Structured | Class::Binary => editor.edit(&name, &before, &format.extension),
    }?;
    if edited == before {
        return Ok(None);
    }
    authoring.lock()?;
    let is_same =
        workspace.declared(&path)?.map(|now| now.payload) == observed.is_none().then(|| payload.into());
    if !is_same || stored.is_some() && text(&workspace, &path)? != stored {
        return Err(EditorError::Changed(name).into());
    }
    let payload = decode_file(format.payload_type, &edited)
        .map_err(|error| Failure::invalid(format!("the edited resource {path}: {error}")))?;
    // For example, all lines became comments. Saving it would remove the file.
    if payload.is_null() {
        return Err(EditorError::Blank(name).into());
    }
    let draft = Draft { descriptor, text: Some(edited), ..Draft::new(path.clone(), payload) };
    save(&workspace, authoring, draft, false, true).await?;
    Ok(Some(path))
}

impl CopyArguments {
    /// Returns the source and the target. With `--path`, the first argument is the target.
    fn paths(&self, invocation: &Invocation) -> Result<(Target, LogicalPath), Failure> {
        let (path, target) = match (self.path.beside_flag(), &self.target) {
            (Some(argument), None) if self.target_path.is_none() => {
                (self.path.flag_only(), Some(argument.to_owned()))
            }
            (_, target) => (self.path.clone(), target.clone()),
        };
        let source = path.target(invocation)?;
        let target = match (target, &self.target_path) {
            (Some(argument), Some(flag)) if argument != *flag => {
                return Err(Failure::invalid(format!(
                    "path mismatch between positional argument and --target-path: \"{argument}\" and \"{flag}\"; \
                     give one of them"
                )));
            }
            (argument, flag) => argument.or(flag.clone()),
        };
        let target = target.ok_or_else(|| {
            invocation.usage("target path is required: give it as TARGET-PATH or with --target-path")
        })?;
        Ok((source, LogicalPath::parse(trimmed(&target))?))
    }
}

/// Opens the workspace. Connects to the server only if the repository does not declare the resource.
async fn workspace<'i>(invocation: &'i Invocation, target: &Target) -> Result<Workspace<'i>, Failure> {
    let local = Workspace::local(invocation).await?;
    let missing = local.declared(&target.path).is_ok_and(|found| found.is_none());
    if missing && invocation.context()?.context.managed_server.is_some() {
        return Workspace::connected(invocation).await;
    }
    Ok(local)
}

/// Reads the declared resource with its placeholders, otherwise the resource of the server.
async fn source(workspace: &Workspace<'_>, path: &LogicalPath) -> Result<Source, Failure> {
    if let Some(resource) = workspace.declared(path)? {
        let payload = Arc::unwrap_or_clone(resource.payload);
        let (path, descriptor) = (resource.path, resource.descriptor);
        return Ok(Source { path, payload, descriptor, observed: None });
    }
    let is_collection = || {
        Failure::invalid(format!(
            "{path} is a collection; give the path of a resource in it, or save it as one resource with \"resource save \
             --mode single\""
        ))
    };
    if !workspace.is_connected() {
        let has_members = declares_at_least(workspace.tree.as_ref(), path, 1)?;
        let missing = || RepositoryError::ResourceMissing(path.clone()).into();
        return Err(if has_members { is_collection() } else { missing() });
    }
    let observed = workspace.remote()?.get(path).await?;
    let is_array = observed.payload.as_ref().is_some_and(|payload| payload.as_array().is_some());
    let may_be_list = is_array || workspace.metadata.has_wildcard_child(path)?;
    if may_be_list && read::members_of(workspace, &observed, path, View::Listed).await?.is_some() {
        return Err(is_collection());
    }
    let item = Item::observed(path, observed, &workspace.metadata)?;
    let descriptor = item.format().cloned();
    let observed = Some(Declared::of(&item));
    Ok(Source { path: path.clone(), payload: item.payload, descriptor, observed })
}

/// Returns the text of the resource's file, so that its comments are kept; `None` if the file includes others.
fn text(workspace: &Workspace<'_>, path: &LogicalPath) -> Result<Option<Vec<u8>>, Failure> {
    let tree = workspace.tree.as_ref();
    let Some(file) = resource_file(tree, path)? else { return Ok(None) };
    let Some(text) = tree.read_within(&file.file, MAX_PAYLOAD)? else { return Ok(None) };
    let stored = decode_file(file.descriptor.payload_type, &text)?;
    let rules = workspace.metadata.rules(path)?;
    let included = referenced(&stored, &rules.resolved().externalized_attributes);
    Ok(included.is_empty().then_some(text))
}

async fn save(
    workspace: &Workspace<'_>,
    authoring: Authoring<'_>,
    draft: Draft,
    observed: bool,
    overwrite: bool,
) -> Result<(), Failure> {
    let batch = Batch { collection: None, drafts: vec![draft], observed };
    Change::commit(workspace, authoring, vec![batch], SecretOptions::default(), overwrite).await
}
