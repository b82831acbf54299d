//! `declarest init`: a context, a repository and a first import in one command.

mod openapi;

use std::ffi::OsStr;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf, absolute};

use clap::Args;
use declarest_core::bundle::Reference;
use declarest_core::digest::hex;
use declarest_core::path::LogicalPath;
use declarest_core::repository::{Mode, write_atomically};
use declarest_core::secrets::Secret;
use declarest_core::sync::{self, Options, Plan, Stop};
use declarest_core::variable::referred;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Serialize;

use super::resource::{ImportOptions, Imported, Targets, outcome};
use crate::context::{
    Catalogue, CatalogueError, Context, CustomHeader, NewContext, NewSecretStore, SecretText, Stored, Text,
    is_reference,
};
use crate::error::Failure;
use crate::interrupt::block_on;
use crate::invocation::Invocation;
use crate::output::OutputPolicy;
use crate::output::plan::{PlanView, text as plan_text};
use crate::repository::{Authoring, MessageArgument, Push, Repository};
use crate::workspace::Workspace;

/// The directory of secrets, below the home directory.
const SECRETS: &str = ".declarest/secrets";
/// Characters that are encoded in the name of a store.
const NOT_IN_FILE_NAMES: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.');
/// The length of a new key in bytes.
const KEY: usize = 32;

#[derive(Debug, Args)]
pub struct InitArguments {
    /// Directory for the repository, new or empty
    directory: PathBuf,
    /// Base URL of the server
    #[arg(long, value_name = "URL")]
    server: String,
    #[arg(
        long,
        value_name = "LOCATION",
        help = "OpenAPI document: a file, an https URL or a URL of the server; by default usual places are tried"
    )]
    openapi: Option<String>,
    /// Metadata bundle for the server
    #[arg(long, value_name = "REFERENCE")]
    bundle: Option<String>,
    /// Name of the context; by default that of the directory
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Header with a credential; the value may name a variable, such as 'Authorization: Bearer ${TOKEN}'
    #[arg(short = 'H', long, value_name = "HEADER")]
    header: Vec<String>,
    /// File with the certificate authorities of the server, instead of those of the system
    #[arg(long, value_name = "FILE")]
    ca_cert: Option<PathBuf>,
    /// Use a plain directory instead of a Git repository
    #[arg(long)]
    filesystem: bool,
    #[arg(
        long,
        conflicts_with_all = ["exclude", "allow_plaintext", "force", "infer_metadata"],
        help = "Create only the context and the repository; the server needs no OpenAPI document"
    )]
    no_import: bool,
    #[command(flatten)]
    import: ImportOptions,
}

/// What `init` created.
#[derive(Debug, Serialize)]
struct Report<'r> {
    context: &'r str,
    catalogue: String,
    repository: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    openapi: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    import: Option<&'r Imported>,
    #[serde(skip_serializing_if = "Option::is_none")]
    plan: Option<PlanView<'r>>,
}

/// Creates a context and a repository, imports the resources of the server unless `--no-import` is given, and shows the
/// first plan.
///
/// The server is contacted before anything is created. If a later step fails, the same command continues.
pub fn run(arguments: &InitArguments, invocation: &Invocation) -> Result<(), Failure> {
    let output = invocation.output(OutputPolicy::TextDefault)?;
    let mut new = arguments.context(invocation)?;
    // Contact the server.
    let stored = invocation.catalogue()?;
    let document = {
        let probe = with_context(&stored, &new, true)?;
        let probing = invocation.on(&probe, &new.name)?;
        let client = probing.client(probing.context()?, None)?;
        let reached = block_on(async {
            let is_optional = new.bundle.is_some() || arguments.no_import;
            let document = openapi::find(arguments.openapi.as_deref(), is_optional, &client).await?;
            openapi::reach(&client).await?;
            Ok(document)
        });
        reached.map_err(|failure: Failure| failure.with_hint(|failure| arguments.hint(failure)))?
    };
    new.openapi = document.as_ref().map(|document| document.setting(&new.directory));
    // Create what is missing.
    let changed = with_context(&stored, &new, false)?;
    let known = stored.catalogue.context(&new.name);
    let is_new = known.is_none();
    if is_new {
        create_directory(&new.directory)?;
    }
    let adds_store = new.secret_store.is_some() && known.is_some_and(|known| known.secret_store.is_none());
    if is_new || adds_store {
        if let Some(store) = &new.secret_store {
            require_missing(&store.file)?;
            create_key(&store.key_file)?;
        }
        stored.save(&changed.catalogue)?;
    }
    let invocation = &invocation.on(&changed, &new.name)?;
    Repository::init(invocation.context()?)?;
    if let Some(document) = &document {
        document.save(&new.directory)?;
    }
    // Import and compare.
    let (imported, plan) = if arguments.no_import { (None, None) } else { import(arguments, invocation)? };
    let report = Report {
        context: &new.name,
        catalogue: stored.file().display().to_string(),
        repository: new.directory.display().to_string(),
        openapi: new.openapi.clone(),
        import: imported.as_ref(),
        plan: plan.as_ref().map(PlanView::new),
    };
    let text = text(&report, &new, &changed, is_new, plan.as_ref());
    output.show(&report, Some(&text))?;
    if let Some(plan) = &plan {
        outcome::check(&plan.failures, plan.targeted, &invocation.messages)?;
    }
    imported.map_or(Ok(()), |imported| imported.check())
}

impl InitArguments {
    /// Returns a hint for a message that names a setting of the context, which does not exist yet.
    fn hint(&self, failure: &Failure) -> Option<String> {
        let lacks_authority = self.ca_cert.is_none() && failure.message().contains("http.tls");
        lacks_authority.then(|| "--ca-cert FILE names the authority in the new context".to_owned())
    }

    /// Returns the context to create, without the `OpenAPI` document.
    fn context(&self, invocation: &Invocation) -> Result<NewContext, Failure> {
        let directory = absolute(&self.directory).map_err(|error| {
            Failure::invalid(format!("cannot use the directory {}: {error}", self.directory.display()))
        })?;
        let name = invocation.context_name(self.name.as_deref())?;
        let name = name.or_else(|| directory.file_name().and_then(OsStr::to_str).map(str::to_owned));
        let name = name.ok_or_else(|| {
            Failure::invalid(format!("{} has no name for the context; give --name", directory.display()))
        })?;
        let secret_store =
            self.import.secret_attributes.then(|| secret_store(&name, invocation)).transpose()?;
        let ca_cert = self.ca_cert.as_ref().map(|file| {
            absolute(file).map_err(|error| Failure::invalid(format!("cannot use --ca-cert: {error}")))
        });
        Ok(NewContext {
            ca_cert: ca_cert.transpose()?,
            directory,
            git: !self.filesystem,
            server: self.server.trim().to_owned(),
            openapi: None,
            bundle: self.bundle.as_deref().map(placed).transpose()?,
            headers: self.header.iter().map(|text| header(text, invocation)).collect::<Result<_, _>>()?,
            secret_store,
            name,
        })
    }
}

/// Returns the reference to a bundle, with the absolute path of a local one, because commands may run elsewhere.
fn placed(bundle: &str) -> Result<String, Failure> {
    match Reference::parse(bundle)? {
        Reference::Path(path) => {
            let path = absolute(&path);
            let path = path.map_err(|error| Failure::invalid(format!("cannot use --bundle: {error}")))?;
            Ok(path.display().to_string())
        }
        _ => Ok(bundle.to_owned()),
    }
}

fn header(text: &str, invocation: &Invocation) -> Result<CustomHeader, Failure> {
    let parts = text.split_once([':', '=']).map(|(name, value)| (name.trim(), value.trim()));
    let (name, value) = parts
        .filter(|(name, value)| http::HeaderName::from_bytes(name.as_bytes()).is_ok() && !value.is_empty())
        .ok_or_else(|| Failure::invalid("--header is not a header; write it as \"Name: value\""))?;
    // A context replaces only texts that are a reference as a whole.
    let (prefix, value) = match value.split_once(char::is_whitespace) {
        Some((prefix, reference)) if is_reference(reference) => (Some(prefix), reference.trim()),
        _ => (None, value),
    };
    if value.contains("${") && !is_reference(value) {
        let forms = "write \"${NAME}\" as the whole value, or after one word, such as \"Bearer ${NAME}\"";
        return Err(Failure::invalid(format!(
            "--header {name} refers to a variable in another text; {forms}"
        )));
    }
    if let Some(unset) = referred(value).filter(|name| invocation.environment.get(name).is_none()) {
        return Err(Failure::invalid(format!(
            "--header {name} has no value; set the environment variable {unset}"
        )));
    }
    let (header, prefix) = (Text(name.to_owned()), prefix.map(str::to_owned));
    Ok(CustomHeader { header, prefix, value: SecretText(Secret::from(value.to_owned())) })
}

fn secret_store(name: &str, invocation: &Invocation) -> Result<NewSecretStore, Failure> {
    let home = invocation.environment.home().ok_or(CatalogueError::NoHome)?;
    // The name of a context may have any characters, and two contexts must not share a store.
    let stem = utf8_percent_encode(name, NOT_IN_FILE_NAMES);
    let file = |extension: &str| home.join(SECRETS).join(format!("{stem}.{extension}"));
    Ok(NewSecretStore { file: file("json"), key_file: file("key") })
}

/// Returns the catalogue with the new context. An equal context may exist already, from an earlier call. A probe does
/// not know the `OpenAPI` document yet, so it is compared later.
fn with_context(stored: &Stored, new: &NewContext, probe: bool) -> Result<Stored, Failure> {
    let context = new.build()?;
    let mut catalogue: Catalogue = stored.catalogue.clone();
    match catalogue.contexts.iter_mut().find(|known| known.name == context.name) {
        Some(known) if probe => *known = context,
        Some(known) if *known == context => {}
        // An earlier call without a store imports no collection that has secrets.
        Some(known) if *known == (Context { secret_store: None, ..context.clone() }) => *known = context,
        Some(_) => {
            return Err(Failure::invalid(format!(
                "context \"{name}\" already exists with other settings; delete it with \"declarest context delete \
                 {name}\", or choose another name with --name",
                name = new.name
            )));
        }
        None => catalogue.contexts.push(context),
    }
    if catalogue.current().is_none() {
        catalogue.current_context = Some(new.name.clone());
    }
    Ok(stored.with(&catalogue)?)
}

/// Creates the directory. Fails if it has content.
fn create_directory(directory: &Path) -> Result<(), Failure> {
    let shown = directory.display();
    let failed = |action: &str, error: std::io::Error| {
        Failure::invalid(format!("cannot {action} the directory {shown}: {error}"))
    };
    match fs::read_dir(directory).map(Iterator::count) {
        Ok(0) => Ok(()),
        Ok(_) => Err(Failure::invalid(format!("{shown} is not empty; name a new or an empty directory"))),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            fs::create_dir_all(directory).map_err(|error| failed("create", error))
        }
        Err(error) => Err(failed("use", error)),
    }
}

/// Fails if there is a store already: it may have the secrets of another server.
fn require_missing(store: &Path) -> Result<(), Failure> {
    if fs::exists(store).map_err(Failure::io("use", store))? {
        return Err(Failure::invalid(format!(
            "{} exists, and may have the secrets of another server; remove it if they are not needed, or choose another \
             name with --name",
            store.display()
        )));
    }
    Ok(())
}

/// Creates a random key. An existing one is kept.
fn create_key(file: &Path) -> Result<(), Failure> {
    let failed = Failure::io("create", file);
    if fs::exists(file).map_err(&failed)? {
        return Ok(());
    }
    let mut key = [0; KEY];
    let random = rustls::crypto::ring::default_provider().secure_random;
    random.fill(&mut key).map_err(|_| Failure::internal("cannot create a random key"))?;
    if let Some(parent) = file.parent() {
        fs::create_dir_all(parent).map_err(&failed)?;
    }
    write_atomically(file, hex(&key).as_bytes(), Mode::Private).map_err(failed)
}

/// Imports all resources, commits them, and plans all declared resources.
fn import(
    arguments: &InitArguments,
    invocation: &Invocation,
) -> Result<(Option<Imported>, Option<Plan>), Failure> {
    let root = LogicalPath::root();
    arguments.import.check(invocation)?;
    let default = format!("declarest: import resources {root}");
    let authoring = Authoring::begin(invocation, &MessageArgument::default(), default, Push::Configured)?;
    block_on(async {
        let workspace = Workspace::connected(invocation).await?;
        let imported = arguments.import.import(&workspace, &authoring, &root, invocation).await?;
        authoring.finish()?;
        // The import may have written metadata.
        let workspace = Workspace::connected(invocation).await?;
        let plan = match Targets::if_declared(&workspace, &root, true)? {
            Some(targets) => {
                let session = workspace.session()?;
                Some(sync::plan(&session, targets.selection, &Options::default(), &Stop::default()).await)
            }
            None => None,
        };
        Ok((Some(imported), plan))
    })
}

fn text(
    report: &Report<'_>,
    new: &NewContext,
    changed: &Stored,
    is_new: bool,
    plan: Option<&Plan>,
) -> String {
    let state = if is_new { "created" } else { "exists" };
    let kind = if new.git { "Git repository" } else { "directory" };
    let mut lines = vec![
        format!("Context {}: {state} in {}", report.context, report.catalogue),
        format!("Repository: {kind} {}", report.repository),
    ];
    lines.extend(report.openapi.as_ref().map(|place| format!("OpenAPI document: {place}")));
    lines.extend(report.import.map(Imported::text));
    lines.extend(plan.map(|plan| plan_text(plan, false)));
    if changed.catalogue.current_context.as_deref() != Some(report.context) {
        lines.push(format!("Make it the current context with \"declarest context use {}\".", report.context));
    }
    lines.join("\n")
}
