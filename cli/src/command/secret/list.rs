//! `secret list`.

use clap::Args;
use declarest_core::error::Category;
use declarest_core::path::LogicalPath;
use declarest_core::secrets::SecretKey;

use super::open;
use crate::error::Failure;
use crate::interrupt::block_on;
use crate::invocation::Invocation;
use crate::output::OutputPolicy;
use crate::target::PathArguments;

#[derive(Debug, Args)]
pub struct ListArguments {
    #[command(flatten)]
    path: PathArguments,
    /// Include the keys of all resources below the path
    #[arg(short, long)]
    recursive: bool,
}

/// Prints keys without values.
pub fn run(arguments: &ListArguments, invocation: &Invocation) -> Result<(), Failure> {
    let output = invocation.output(OutputPolicy::Adaptive)?;
    let path = arguments.path.optional_target()?.map(|target| target.path);
    let keys = block_on(async { Ok(open(invocation)?.list().await?) })?;
    let mut shown = match &path {
        None => keys.iter().map(|key| absolute(key.as_str())).collect(),
        Some(path) => of_path(&keys, path, arguments.recursive),
    };
    shown.sort();
    if let (true, Some(path)) = (shown.is_empty(), path) {
        let message = format!("no secret of {path} found; \"declarest secret list\" shows all");
        return Err(Failure::new(Category::NotFound, message));
    }
    Ok(output.show(&shown, Some(&shown.join("\n")))?)
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
