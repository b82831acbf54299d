//! Commands that change the catalogue or the session cache.

use declarest_core::path::LogicalPath;
use declarest_core::repository::Store;
use declarest_core::secrets::Secret;

use crate::context::{Catalogue, MetadataSource, Session, Stored, Text};
use crate::error::Failure;
use crate::interrupt::block_on_local;
use crate::invocation::Invocation;
use crate::output::{self, OutputPolicy, to_stderr};
use crate::repository::Repository;
use crate::terminal;
use crate::workspace::Workspace;

/// `context use`.
pub fn use_context(name: Option<&str>, invocation: &Invocation) -> Result<(), Failure> {
    let stored = invocation.catalogue_to_change()?;
    let (name, _) = named_or_picked(name, &stored, "use")?;
    stored.position(&name)?;
    Ok(stored.save(&Catalogue { current_context: Some(name), ..stored.catalogue.clone() })?)
}

/// `context delete`. Asks for confirmation if the context was picked from a list, because mistakes are easy there.
pub fn delete(name: Option<&str>, invocation: &Invocation) -> Result<(), Failure> {
    let stored = invocation.catalogue_to_change()?;
    let (name, picked) = named_or_picked(name, &stored, "delete")?;
    let index = stored.position(&name)?;
    if picked {
        let answer = terminal::ask(&format!("Delete context \"{name}\"? [y/N]"), false)?;
        if !matches!(answer.expose().trim(), "y" | "Y" | "yes") {
            return Ok(output::print(b"delete canceled\n")?);
        }
    }
    let mut catalogue = stored.catalogue.clone();
    catalogue.contexts.remove(index);
    if catalogue.current() == Some(&name) {
        catalogue.current_context = catalogue.contexts.first().map(|context| context.name.0.clone());
    }
    Ok(stored.save(&catalogue)?)
}

/// `context rename`.
pub fn rename(from: Option<&str>, to: Option<&str>, invocation: &Invocation) -> Result<(), Failure> {
    let stored = invocation.catalogue_to_change()?;
    if from.is_none() && !terminal::is_interactive() {
        return Err(Failure::invalid("context names are required: declarest context rename FROM TO"));
    }
    let (from, _) = named_or_picked(from, &stored, "rename")?;
    let index = stored.position(&from)?;
    let to = match to {
        Some(to) => to.trim().to_owned(),
        None if terminal::is_interactive() => answered(&terminal::ask("New name", false)?),
        None => {
            return Err(Failure::invalid("new context name is required: declarest context rename FROM TO"));
        }
    };
    if to.is_empty() {
        return Err(Failure::invalid("the new name is blank; give the context a name"));
    }
    let mut catalogue = stored.catalogue.clone();
    if from != to && catalogue.context(&to).is_some() {
        return Err(crate::context::CatalogueError::Exists(to).into());
    }
    if catalogue.current() == Some(&from) {
        catalogue.current_context = Some(to.clone());
    }
    if let Some(context) = catalogue.contexts.get_mut(index) {
        context.name = Text(to);
    }
    Ok(stored.save(&catalogue)?)
}

/// `context migrate`.
pub fn migrate(invocation: &Invocation) -> Result<(), Failure> {
    let output = invocation.output(OutputPolicy::Text)?;
    let stored = invocation.catalogue_to_change()?;
    stored.rewrite(&stored.catalogue)?;
    Ok(output.show(&(), Some("context catalog migrated"))?)
}

/// `context clean`.
pub fn clean(credentials_in_session: bool, invocation: &Invocation) -> Result<(), Failure> {
    let output = invocation.output(OutputPolicy::Text)?;
    if !credentials_in_session {
        return Err(Failure::invalid("nothing to clean is selected; add --credentials-in-session"));
    }
    let removed = Session::clean(&invocation.environment)?;
    Ok(output.show(&(), Some(&format!("removed {removed} prompt credential session cache files")))?)
}

/// `context init`: creates the repository and the metadata directory, or fetches the metadata bundle.
pub fn init(name: Option<&str>, invocation: &Invocation) -> Result<(), Failure> {
    let context = invocation.context_named(name)?;
    Repository::init(context)?;
    if let MetadataSource::Directory(directory) = context.metadata() {
        Store::init(&directory)?;
    }
    let workspace = block_on_local(Workspace::local(invocation))?;
    // Report invalid metadata now, because otherwise every later command would fail.
    workspace.metadata.rules(&LogicalPath::root())?;
    Ok(())
}

/// Returns the given name, or one picked from a list, and whether it was picked.
fn named_or_picked(name: Option<&str>, stored: &Stored, action: &str) -> Result<(String, bool), Failure> {
    if let Some(name) = name.map(str::trim).filter(|name| !name.is_empty()) {
        return Ok((name.to_owned(), false));
    }
    if !terminal::is_interactive() {
        return Err(Failure::invalid(format!("context name is required: declarest context {action} NAME")));
    }
    let names: Vec<_> = stored.catalogue.contexts.iter().map(|context| context.name.0.as_str()).collect();
    for (index, name) in names.iter().enumerate() {
        to_stderr(&format!("{:>3}  {name}", index + 1));
    }
    let answer = answered(&terminal::ask("Context", false)?);
    let by_number = answer.parse::<usize>().ok().and_then(|number| names.get(number.checked_sub(1)?));
    let picked = by_number.map_or(answer.clone(), |name| (*name).to_owned());
    if picked.is_empty() {
        return Err(Failure::invalid("no context was picked; nothing was changed"));
    }
    Ok((picked, true))
}

fn answered(answer: &Secret) -> String {
    answer.expose().trim().to_owned()
}
