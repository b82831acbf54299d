//! Commands that read contexts from their input: `add`, `update`, `validate`.

use declarest_core::payload::fields::read_document;

use super::{AddArguments, wizard};
use crate::context::{
    Catalogue, CatalogueError, Context, FaultyCredential, Stored, Text, decode_catalogue, decode_context,
};
use crate::error::Failure;
use crate::input::{Content, InputError, PayloadArguments};
use crate::invocation::Invocation;
use crate::terminal;

/// The input: a catalogue or a context.
enum Given {
    Catalogue(Catalogue),
    Context(Box<Context>),
}

/// Reads the input. It is a catalogue if it has a key that only catalogues have.
fn read(content: &Content) -> Result<Given, Failure> {
    let Content { origin, bytes, descriptor } = content;
    let root = read_document(descriptor.payload_type, bytes).map_err(CatalogueError::invalid(origin))?;
    let root = root.ok_or_else(|| InputError::Blank(origin.clone()))?;
    let is_catalogue = ["contexts", "currentContext", "credentials"].iter().any(|key| root.has_member(key));
    if is_catalogue {
        return Ok(Given::Catalogue(decode_catalogue(origin, descriptor.payload_type, bytes)?));
    }
    Ok(Given::Context(Box::new(decode_context(origin, root)?)))
}

/// `context add`.
pub fn add(arguments: &AddArguments, invocation: &Invocation) -> Result<(), Failure> {
    let name = wanted_name(arguments, invocation)?;
    let stored = invocation.catalogue()?;
    let content = match arguments.input.document()? {
        Some(content) => content,
        None if terminal::is_interactive() => {
            if let Some(name) = name.as_ref().filter(|name| stored.catalogue.context(name).is_some()) {
                return Err(CatalogueError::Exists(name.clone()).into());
            }
            wizard::ask(name.as_deref())?
        }
        None => return Err(InputError::Required.into()),
    };
    let stored = invocation.catalogue_to_change()?;
    let mut catalogue = stored.catalogue.clone();
    let mut added = match read(&content)? {
        Given::Context(mut context) => {
            if let Some(name) = name {
                context.name = Text(name);
            }
            Catalogue { contexts: vec![*context], ..Catalogue::default() }
        }
        Given::Catalogue(given) => chosen(given, name.as_deref(), &content.origin)?,
    };
    for context in &added.contexts {
        if catalogue.context(&context.name.0).is_some() {
            return Err(CatalogueError::Exists(context.name.0.clone()).into());
        }
    }
    merge_credentials(&mut catalogue, &mut added)?;
    let first = added.contexts.first().map(|context| context.name.0.clone());
    let current = added.current_context.take().filter(|name| !name.is_empty());
    if arguments.set_current && current.is_none() && added.contexts.len() > 1 {
        return Err(Failure::invalid(format!(
            "{} has several contexts; choose the current one with its currentContext, or one of them with --context-name",
            content.origin
        )));
    }
    catalogue.contexts.append(&mut added.contexts);
    if arguments.set_current || catalogue.current().is_none() {
        catalogue.current_context = current.or(first);
    }
    Ok(stored.save(&catalogue)?)
}

/// Returns the name from the argument or from one of two flags, which must agree.
fn wanted_name(arguments: &AddArguments, invocation: &Invocation) -> Result<Option<String>, Failure> {
    let argument = arguments.new_context_name.as_deref();
    if let Some(name) = argument.filter(|name| name.trim().is_empty()) {
        return Err(Failure::invalid(format!("the name \"{name}\" is blank; give the context a name")));
    }
    match (argument, arguments.context_name.as_deref()) {
        (Some(argument), Some(flag)) if argument.trim() != flag.trim() => {
            let both = format!("\"{argument}\" as an argument, \"{flag}\" by --context-name");
            Err(CatalogueError::NameMismatch(both).into())
        }
        (argument, flag) => invocation.context_name(argument.or(flag)),
    }
}

/// Returns the context `name` of a given catalogue, or all contexts.
fn chosen(mut given: Catalogue, name: Option<&str>, origin: &str) -> Result<Catalogue, Failure> {
    let known: Vec<String> = given.contexts.iter().map(|context| context.name.0.clone()).collect();
    if known.is_empty() {
        return Err(Failure::invalid(format!("{origin} does not contain a context; add one under contexts")));
    }
    if let Some(name) = name {
        given.contexts.retain(|context| context.name.0 == name);
        if given.contexts.is_empty() {
            return Err(CatalogueError::NotFound { name: name.to_owned(), known }.into());
        }
        given.current_context = None;
    }
    Ok(given)
}

/// Moves the credentials of `added` to `catalogue`. An existing credential must be equal.
fn merge_credentials(catalogue: &mut Catalogue, added: &mut Catalogue) -> Result<(), CatalogueError> {
    for credential in added.credentials.drain(..) {
        let is_faulty = |known: &FaultyCredential| known.name.as_deref() == Some(&credential.name.0);
        if catalogue.faulty_credentials.iter().any(is_faulty) {
            return Err(CatalogueError::CredentialExists(credential.name.0));
        }
        match catalogue.credentials.iter().find(|known| known.name == credential.name) {
            None => catalogue.credentials.push(credential),
            Some(known) if *known == credential => {}
            Some(_) => return Err(CatalogueError::CredentialExists(credential.name.0)),
        }
    }
    Ok(())
}

/// `context update`.
pub fn update(input: &PayloadArguments, invocation: &Invocation) -> Result<(), Failure> {
    let content = input.required_document()?;
    let given = match read(&content)? {
        Given::Context(context) => Catalogue { contexts: vec![*context], ..Catalogue::default() },
        Given::Catalogue(catalogue) => catalogue,
    };
    let name = invocation.context_name(None)?;
    let mut given = chosen(given, name.as_deref(), &content.origin)?;
    let stored = invocation.catalogue_to_change()?;
    let mut catalogue = stored.catalogue.clone();
    for credential in given.credentials.drain(..) {
        catalogue.put_credential(credential);
    }
    for context in given.contexts {
        let index = stored.position(&context.name.0)?;
        catalogue.contexts[index] = context;
    }
    Ok(stored.save(&catalogue)?)
}

/// `context validate`.
pub fn validate(input: &PayloadArguments, invocation: &Invocation) -> Result<(), Failure> {
    let Some(content) = input.document()? else {
        return Ok(invocation.catalogue()?.validated()?);
    };
    let Given::Context(context) = read(&content)? else { return Ok(()) };
    // A single context can only refer to credentials of the existing catalogue.
    let stored = invocation.catalogue()?;
    let catalogue = Catalogue { contexts: vec![*context], ..stored.catalogue.clone() };
    Ok(Stored::check(&catalogue, &content.origin)?)
}
