//! `secret list`.

use std::collections::BTreeSet;

use clap::Args;
use declarest_core::error::{Categorized as _, Category};
use declarest_core::path::LogicalPath;
use declarest_core::repository::resources;
use declarest_core::secrets::{Scope, SecretKey, SecretStore, secret_placeholders};
use declarest_core::sync::Resource;
use futures::{StreamExt as _, TryStreamExt as _, stream};

use super::{open, reading};
use crate::error::Failure;
use crate::invocation::Invocation;
use crate::output::{self, OutputPolicy};
use crate::target::PathArguments;
use crate::workspace::Workspace;

/// How many secrets are read at once.
const READS: usize = 16;

#[derive(Debug, Args)]
pub struct ListArguments {
    #[command(flatten)]
    path: PathArguments,
    /// Include the keys of all resources below the path
    #[arg(short, long)]
    recursive: bool,
    /// Print the keys that resources of the repository refer to and that the store does not have
    #[arg(long, conflicts_with = "unused")]
    missing: bool,
    /// Print the keys of the store that no resource of the repository refers to
    #[arg(long)]
    unused: bool,
}

/// Prints keys without values.
pub fn run(arguments: &ListArguments, invocation: &Invocation) -> Result<(), Failure> {
    let output = invocation.output(OutputPolicy::Adaptive)?;
    let path = arguments.path.optional_target()?.map(|target| target.path);
    if arguments.missing || arguments.unused {
        let shown = reading(invocation, arguments.beside_the_repository(path.as_ref(), invocation))?;
        return Ok(output.show(&shown, Some(&output::lines(&shown)))?);
    }
    let keys = reading(invocation, async { Ok(open(invocation)?.list().await?) })?;
    let mut shown = match &path {
        None => keys.iter().map(|key| absolute(key.as_str())).collect(),
        Some(path) => of_path(&keys, path, arguments.recursive),
    };
    shown.sort();
    if let (true, Some(path)) = (shown.is_empty(), path) {
        let message = format!("no secret of {path} found; \"declarest secret list\" shows all");
        return Err(Failure::new(Category::NotFound, message));
    }
    Ok(output.show(&shown, Some(&output::lines(&shown)))?)
}

impl ListArguments {
    /// Returns the keys that only the repository or only the store has, sorted. If a path is given, those of resources
    /// below it.
    async fn beside_the_repository(
        &self,
        path: Option<&LogicalPath>,
        invocation: &Invocation,
    ) -> Result<Vec<String>, Failure> {
        let root = LogicalPath::root();
        let scope = path.unwrap_or(&root);
        let of_scope = |key: &SecretKey| {
            scope.is_root()
                || key
                    .as_str()
                    .strip_prefix(scope.relative())
                    .is_some_and(|rest| rest.starts_with(':') || (self.recursive && rest.starts_with('/')))
        };
        let store = open(invocation)?;
        let mut listed: BTreeSet<SecretKey> = store.list().await?.into_iter().collect();
        // Without a path, also keys that do not belong to a resource.
        listed.retain(of_scope);
        let mut referred: BTreeSet<SecretKey> =
            referred(&Workspace::local(invocation).await?)?.into_iter().collect();
        referred.retain(of_scope);
        // Vault also lists deleted secrets, and secrets of other programs.
        if matches!(store, SecretStore::Vault(_)) {
            let is_relevant = |key: &&SecretKey| referred.contains(*key) == self.missing;
            for key in without_value(&store, listed.iter().filter(is_relevant), self.missing).await? {
                listed.remove(&key);
            }
        }
        let differing =
            if self.missing { referred.difference(&listed) } else { listed.difference(&referred) };
        let mut shown: Vec<String> = differing.map(|key| absolute(key.as_str())).collect();
        shown.sort();
        Ok(shown)
    }
}

/// Returns those of `keys` that have no value. A key that cannot be read has one, unless the failure is `reported`.
async fn without_value(
    store: &SecretStore,
    keys: impl Iterator<Item = &SecretKey>,
    reported: bool,
) -> Result<Vec<SecretKey>, Failure> {
    let read = |key: SecretKey| async move {
        match store.get(&key).await {
            Err(error) if error.category() == Category::NotFound => Ok(Some(key)),
            Err(error) if reported => Err(error),
            Ok(_) | Err(_) => Ok(None),
        }
    };
    let keys: Vec<SecretKey> = keys.cloned().collect();
    let reads = stream::iter(keys).map(read).buffer_unordered(READS);
    Ok(reads.try_filter_map(|absent| async { Ok(absent) }).try_collect().await?)
}

/// Returns the keys of all placeholders in the repository.
fn referred(workspace: &Workspace<'_>) -> Result<Vec<SecretKey>, Failure> {
    let mut keys = Vec::new();
    for file in resources(workspace.tree.as_ref(), &LogicalPath::root(), true)?.whole()? {
        let resource = Resource::declared(workspace.tree.as_ref(), &workspace.metadata, file)?;
        let scope = Scope::Resource(resource.path.clone());
        let placeholders = secret_placeholders(&resource.payload)
            .map_err(|error| Failure::invalid(error.to_string()).at(resource.path.as_str()))?;
        for (at, placeholder) in placeholders {
            keys.push(scope.key(&at, &placeholder)?);
        }
    }
    Ok(keys)
}

/// Returns a key in the form for other commands: with a slash if it belongs to a resource.
fn absolute(key: &str) -> String {
    if key.contains(':') { format!("/{key}") } else { key.to_owned() }
}

/// Returns the keys of the resource at `path`, and those of its descendants with their relative path.
fn of_path(keys: &[SecretKey], path: &LogicalPath, recursive: bool) -> Vec<String> {
    let keys = keys.iter().map(SecretKey::as_str);
    if path.is_root() {
        return keys.filter(|key| key.contains(':')).map(absolute).collect();
    }
    // A path may contain colons, so the first colon is not always its end.
    let rest = keys.filter_map(|key| key.strip_prefix(path.relative()));
    let shown = rest.filter_map(|rest| match rest.strip_prefix(':') {
        Some(own) => Some(own.to_owned()),
        None if recursive && rest.starts_with('/') && rest.contains(':') => Some(rest.to_owned()),
        None => None,
    });
    shown.collect()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("/shops", false, &["/pin", "ci"])]
    #[case("/shops", true, &["/pin", "ci", "/rio:/apiToken", "/rio/tills/t:1:/pin"])]
    #[case("/shops/rio", false, &["/apiToken"])]
    #[case("/shops/rio/tills/t:1", false, &["/pin"])]
    #[case("/shop", true, &[])]
    #[case("/users", true, &[])]
    #[case("/", false, &["/shops:/pin", "/shops:ci", "/shops/rio:/apiToken", "/shops/rio/tills/t:1:/pin"])]
    fn keys_of_paths(#[case] path: &str, #[case] recursive: bool, #[case] expected: &[&str]) {
        let keys = [
            "shops:/pin",
            "shops:ci",
            "shops/rio:/apiToken",
            "shops/rio/tills/t:1:/pin",
            "users/0/password",
            "token",
        ];
        let keys = keys.map(|key| SecretKey::parse(key).unwrap());
        assert_eq!(of_path(&keys, &LogicalPath::parse(path).unwrap(), recursive), expected);
    }
}
