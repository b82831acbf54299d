//! `declarest resource defaults`.

mod edit;
mod infer;
mod probe;

use std::sync::Arc;

use clap::Subcommand;
use declarest_core::metadata::document::{DefaultsSection, DefaultsSource, Document, ResourceSection};
use declarest_core::path::{LogicalPath, Selector};
use declarest_core::payload::pointer::Pointer;
use declarest_core::payload::{Descriptor, Object, PayloadType, Value, decode};
use declarest_core::repository::{self, DEFAULTS_EXTENSIONS, DefaultsEdit, Store, Tree};

use super::metadata::Subject;
use crate::editor::EditorArgument;
use crate::error::Failure;
use crate::interrupt::block_on_local;
use crate::invocation::Invocation;
use crate::output::OutputPolicy;
use crate::target::{EditArguments, PathArguments};
use crate::workspace::Workspace;

#[derive(Debug, Subcommand)]
pub enum DefaultsCommand {
    /// Print the effective defaults of a path: all documents and selected profiles, merged
    Get(PathArguments),
    /// Edit the defaults that are stored for exactly this path, in a file beside its metadata
    Edit(EditArguments),
    /// Print or edit the field resource.defaults of the metadata of a path
    #[command(subcommand, arg_required_else_help = true)]
    Config(ConfigCommand),
    /// Print, edit or delete a profile of defaults
    #[command(subcommand, arg_required_else_help = true)]
    Profile(ProfileCommand),
    /// Find the values that all resources of a collection share
    Infer(infer::InferArguments),
}

#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Print resource.defaults as it is stored: mode, useProfiles, value and profiles
    Get(PathArguments),
    /// Edit resource.defaults as it is stored
    Edit(EditArguments),
}

#[derive(Debug, Subcommand)]
pub enum ProfileCommand {
    /// Print a profile
    Get(ProfileArguments),
    /// Edit a profile, or create it; an empty text deletes it
    Edit {
        #[command(flatten)]
        profile: ProfileArguments,
        #[command(flatten)]
        editor: EditorArgument,
    },
    /// Delete a profile and its file
    Delete(ProfileArguments),
}

#[derive(Clone, Debug, clap::Args)]
pub struct ProfileArguments {
    #[command(flatten)]
    path: PathArguments,
    /// Name of the profile
    #[arg(value_name = "PROFILE")]
    profile: Option<String>,
}

/// Runs a command of the group.
pub fn run(command: &DefaultsCommand, invocation: &Invocation) -> Result<(), Failure> {
    match command {
        DefaultsCommand::Get(path) => get(path, invocation),
        DefaultsCommand::Edit(arguments) => edit::baseline(arguments, invocation),
        DefaultsCommand::Config(ConfigCommand::Get(path)) => config(path, invocation),
        DefaultsCommand::Config(ConfigCommand::Edit(arguments)) => edit::config(arguments, invocation),
        DefaultsCommand::Profile(ProfileCommand::Get(arguments)) => profile(arguments, invocation),
        DefaultsCommand::Profile(ProfileCommand::Edit { profile, editor }) => {
            edit::profile(profile, editor, invocation)
        }
        DefaultsCommand::Profile(ProfileCommand::Delete(arguments)) => edit::delete(arguments, invocation),
        DefaultsCommand::Infer(arguments) => infer::run(arguments, invocation),
    }
}

impl DefaultsCommand {
    /// Returns whether the last line on standard error reports success or failure.
    pub fn prints_footer(&self) -> bool {
        !matches!(self, Self::Get(_))
    }
}

impl ProfileArguments {
    /// Returns the path and the name of the profile. With `--path`, the first argument is the name.
    fn understood(&self, invocation: &Invocation) -> Result<(Subject, String), Failure> {
        let (path, name) = match (self.path.beside_flag(), &self.profile) {
            (Some(argument), None) if !argument.starts_with('/') => (self.path.flag_only(), Some(argument)),
            (_, name) => (self.path.clone(), name.as_deref()),
        };
        let subject = Subject::new(&path, invocation)?;
        let name = name.map(str::trim).filter(|name| !name.is_empty());
        let name = name.ok_or_else(|| invocation.usage("profile is required: give its name as PROFILE"))?;
        Ok((subject, name.to_owned()))
    }
}

fn get(path: &PathArguments, invocation: &Invocation) -> Result<(), Failure> {
    let output = invocation.output(OutputPolicy::Payload)?;
    let subject = Subject::new(path, invocation)?;
    let workspace = block_on_local(Workspace::local(invocation))?;
    let rules = workspace.metadata.rules(&subject.representative()?)?;
    let defaults = Value::Object(rules.resolved().defaults.clone());
    Ok(output.show_payload(&defaults, &Descriptor::of(PayloadType::Json))?)
}

fn config(path: &PathArguments, invocation: &Invocation) -> Result<(), Failure> {
    let output = invocation.output(OutputPolicy::JsonDefault)?;
    let stored = Stored::open(Subject::new(path, invocation)?, invocation)?;
    Ok(output.show(&stored.section_value(), None)?)
}

fn profile(arguments: &ProfileArguments, invocation: &Invocation) -> Result<(), Failure> {
    let output = invocation.output(OutputPolicy::Payload)?;
    let (subject, name) = arguments.understood(invocation)?;
    let stored = Stored::open(subject, invocation)?;
    let members = stored.members(Some(&name))?.ok_or_else(|| stored.without_profile(&name))?;
    let format = stored.file_format(Some(&name), &members)?;
    Ok(output.show_payload(&Value::Object(members), &format)?)
}

/// The document that is stored for exactly one path.
struct Stored {
    subject: Subject,
    tree: Arc<dyn Tree>,
    store: Store,
    document: Document,
}

impl Stored {
    fn open(subject: Subject, invocation: &Invocation) -> Result<Self, Failure> {
        let workspace = block_on_local(Workspace::local(invocation))?;
        Self::of(subject, &workspace)
    }

    fn of(subject: Subject, workspace: &Workspace<'_>) -> Result<Self, Failure> {
        let store = workspace.metadata_store()?;
        let stored = workspace.metadata.stored(&subject.selector)?;
        let document = stored.last().map(|document| document.as_ref().clone()).unwrap_or_default();
        Ok(Self { subject, tree: Arc::clone(&workspace.tree), store, document })
    }

    fn section(&self) -> DefaultsSection {
        let resource = self.document.resource.as_ref();
        resource.and_then(|resource| resource.defaults.clone()).unwrap_or_default()
    }

    /// Returns resource.defaults as it is stored.
    fn section_value(&self) -> Value {
        let defaults = Some(self.section());
        let resource = Some(ResourceSection { defaults, ..ResourceSection::default() });
        let document = Document { resource, ..Document::default() }.to_value();
        let section = Pointer::parse("/resource/defaults").ok().and_then(|at| at.get(&document).cloned());
        section.unwrap_or_else(|| Value::Object(Object::new()))
    }

    /// Returns the baseline, or a profile, as this document states it.
    fn members(&self, profile: Option<&str>) -> Result<Option<Object>, Failure> {
        let file = match self.document.defaults_source(profile) {
            None => return Ok(None),
            Some(DefaultsSource::Inline(members)) => return Ok(Some(members.clone())),
            Some(DefaultsSource::Include(file)) => file,
        };
        let missing =
            || Failure::invalid(format!("the defaults file {file} of {} is missing", self.subject.text));
        let content = self.store.read_defaults(&self.subject.selector, file)?.ok_or_else(missing)?;
        let extension = file.rsplit('.').next().unwrap_or_default();
        match decode(Descriptor::from_extension(extension).payload_type, &content)? {
            Value::Object(members) => Ok(Some(members)),
            _ => Err(Failure::invalid(format!(
                "the defaults file {file} of {} is not an object",
                self.subject.text
            ))),
        }
    }

    /// Returns the format of the file of the baseline or a profile. A new file has that of the payloads, if defaults
    /// files support it and it can hold the members, otherwise YAML.
    fn file_format(&self, profile: Option<&str>, members: &Object) -> Result<Descriptor, Failure> {
        let source = self.document.defaults_source(profile);
        if let Some(file) = source.and_then(DefaultsSource::file) {
            return Ok(Descriptor::from_extension(file.rsplit('.').next().unwrap_or_default()));
        }
        let are_texts = || members.values().all(|member| member.as_str().is_some());
        let supported = |format: &Descriptor| {
            DEFAULTS_EXTENSIONS.contains(&format.extension.trim_start_matches('.'))
                && (format.payload_type != PayloadType::Properties || are_texts())
        };
        let payloads = payload_format(self.tree.as_ref(), &self.subject.selector)?;
        Ok(payloads.filter(supported).unwrap_or_else(|| Descriptor::of(PayloadType::Yaml)))
    }

    /// Sets the members of the baseline or a profile, and returns the changes of files.
    fn keep(&mut self, profile: Option<&str>, members: Object) -> Result<DefaultsEdit, Failure> {
        let format = self.file_format(profile, &members)?;
        Ok(self.document.keep_defaults(profile, members, &format.extension)?)
    }

    fn without_profile(&self, name: &str) -> Failure {
        use declarest_core::error::Category;
        let message = format!("profile \"{name}\" not found in the metadata of {}", self.subject.text);
        Failure::new(Category::NotFound, message)
    }
}

/// Returns the format of the payloads that a document of `selector` governs, or `None` if they have several or there are
/// none.
fn payload_format(tree: &dyn Tree, selector: &Selector) -> Result<Option<Descriptor>, Failure> {
    let governs = |path: &LogicalPath| match path.parent() {
        Some(parent) if selector.is_collection() => selector.matches(&parent),
        _ => selector.matches(path),
    };
    let declared = repository::resources(tree, &selector.literal_prefix()?, true)?.resources;
    let mut formats = declared.into_iter().filter(|file| governs(&file.path)).map(|file| file.descriptor);
    let first = formats.next();
    Ok(first.filter(|first| formats.all(|other| other.extension == first.extension)))
}
