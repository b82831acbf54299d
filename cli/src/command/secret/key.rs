//! The arguments that name a secret.

use clap::Args;
use declarest_core::path::LogicalPath;
use declarest_core::secrets::SecretKey;

use crate::error::Failure;
use crate::invocation::Invocation;

/// A secret as `KEY`, `PATH KEY`, `PATH:KEY`, or with flags.
#[derive(Clone, Debug, Default, Args)]
pub struct KeyArguments {
    /// KEY, PATH KEY or PATH:KEY
    #[arg(value_name = "KEY", num_args = 0..=2)]
    positional: Vec<String>,

    #[command(flatten)]
    flags: KeyFlags,
}

#[derive(Clone, Debug, Default, Args)]
pub struct KeyFlags {
    /// Path of the resource that has the secret
    #[arg(short, long, value_name = "PATH")]
    path: Option<String>,

    /// Key of the secret in the resource; needs --path
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
}

impl KeyArguments {
    /// Returns the key in the form of stores.
    pub fn key(&self, invocation: &Invocation) -> Result<SecretKey, Failure> {
        let positional: Vec<&str> = self.positional.iter().map(String::as_str).collect();
        self.flags.key(&positional, invocation)
    }
}

impl KeyFlags {
    /// Returns whether the flags alone name a secret.
    pub fn are_complete(&self) -> bool {
        self.path.is_some() && self.key.is_some()
    }

    /// Returns an error if there is only the key of a secret in a resource.
    pub fn check(&self) -> Result<(), Failure> {
        if self.path.is_none() && self.key.is_some() {
            return Err(Failure::invalid("--key needs --path; write a key without a resource as KEY"));
        }
        Ok(())
    }

    /// Returns the key from the flags and `positional`, which must agree.
    pub fn key(&self, positional: &[&str], invocation: &Invocation) -> Result<SecretKey, Failure> {
        self.check()?;
        let (path, key) = (self.path.as_deref(), self.key.as_deref());
        match (positional, path, key) {
            ([], None, _) => Err(invocation.usage("secret key is required: give it as KEY or PATH KEY")),
            ([], Some(path), Some(key)) => of_resource(path, key),
            ([], Some(path), None) => Err(no_key(path)),
            ([both], None, _) => parse(both),
            ([same], Some(path), None) if *same == path => Err(no_key(path)),
            ([key], Some(path), None) => of_resource(path, key),
            ([same], Some(path), Some(key)) if *same == path || *same == key => of_resource(path, key),
            ([both], Some(path), Some(key)) if **both == format!("{path}:{key}") => of_resource(path, key),
            ([path, key], None, _) => of_resource(path, key),
            ([same, key], Some(path), None) if *same == path => of_resource(path, key),
            ([same, also], Some(path), Some(key)) if *same == path && *also == key => of_resource(path, key),
            _ => Err(Failure::invalid(
                "the arguments and --path or --key name different secrets; give path and key once",
            )),
        }
    }
}

/// Parses a single argument. A key of a resource begins with a slash.
fn parse(text: &str) -> Result<SecretKey, Failure> {
    if !text.trim_start().starts_with('/') {
        return Ok(SecretKey::parse(text)?);
    }
    match text.split_once(':') {
        Some((path, key)) => of_resource(path, key),
        None => Err(no_key(text)),
    }
}

fn of_resource(path: &str, key: &str) -> Result<SecretKey, Failure> {
    if key.trim().is_empty() {
        return Err(no_key(path));
    }
    Ok(SecretKey::of_resource(&LogicalPath::parse(path)?, key.trim())?)
}

fn no_key(path: &str) -> Failure {
    Failure::invalid(format!(
        "{path} is the path of a resource, and no key is given; \"declarest secret list {path}\" shows its keys"
    ))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::environment::Environment;
    use crate::settings::GlobalFlags;

    fn key(positional: &[&str], path: &str, key: &str) -> Result<SecretKey, Failure> {
        let given = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let flags = KeyFlags { path: given(path), key: given(key) };
        let parser = clap::Command::new("declarest");
        let invocation = Invocation::new(parser, Vec::new(), &GlobalFlags::default(), Environment::default());
        flags.key(positional, &invocation)
    }

    #[rstest]
    #[case::bare(&["token"], "", "", "token")]
    #[case::bare_with_slashes(&["a/b"], "", "", "a/b")]
    #[case::bare_with_colon(&["ci:token"], "", "", "ci:token")]
    #[case::both(&["/p", "k"], "", "", "p:k")]
    #[case::pointer(&["/p", "/apiToken"], "", "", "p:/apiToken")]
    #[case::whole(&["/p", "."], "", "", "p:.")]
    #[case::joined(&["/p:k"], "", "", "p:k")]
    #[case::joined_at_the_first_colon(&["/p:/a:b"], "", "", "p:/a:b")]
    #[case::flags(&[], "/p", "k", "p:k")]
    #[case::flag_and_key(&["k"], "/p", "", "p:k")]
    #[case::flag_and_pointer(&["/k"], "/p", "", "p:/k")]
    #[case::same_path(&["/p"], "/p", "k", "p:k")]
    #[case::same_key(&["k"], "/p", "k", "p:k")]
    #[case::same_joined(&["/p:k"], "/p", "k", "p:k")]
    #[case::same_path_and_key(&["/p", "k"], "/p", "", "p:k")]
    #[case::all_the_same(&["/p", "k"], "/p", "k", "p:k")]
    #[case::normalised(&["//a//b/", "k"], "", "", "a/b:k")]
    fn keys(#[case] positional: &[&str], #[case] path: &str, #[case] name: &str, #[case] expected: &str) {
        assert_eq!(key(positional, path, name).unwrap().as_str(), expected);
    }

    #[rstest]
    #[case::nothing(&[], "", "", "secret key is required")]
    #[case::path_alone(&["/p"], "", "", "\"declarest secret list /p\"")]
    #[case::flag_alone(&[], "/p", "", "\"declarest secret list /p\"")]
    #[case::path_twice(&["/p"], "/p", "", "\"declarest secret list /p\"")]
    #[case::no_key_after_colon(&["/p:"], "", "", "no key is given")]
    #[case::blank_key(&["/p", " "], "", "", "no key is given")]
    #[case::key_alone(&[], "", "k", "--key needs --path")]
    #[case::other_path(&["/q", "k"], "/p", "", "different secrets")]
    #[case::other_key(&["x"], "/p", "k", "different secrets")]
    #[case::others(&["/p", "x"], "/p", "k", "different secrets")]
    #[case::no_path(&["p", "k"], "", "", "must start with \"/\"")]
    #[case::traversal(&["a/../b"], "", "", "empty, . or .. segment")]
    #[case::blank(&[" "], "", "", "must not be empty")]
    fn incomplete_and_contradictory_keys_are_rejected(
        #[case] positional: &[&str],
        #[case] path: &str,
        #[case] name: &str,
        #[case] message: &str,
    ) {
        let failure = key(positional, path, name).unwrap_err();
        assert_eq!(failure.category().exit_code(), 2);
        assert!(failure.message().contains(message), "{}", failure.message());
    }
}
