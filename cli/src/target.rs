//! The path argument of a command.

use clap::Args;
use declarest_core::path::{LogicalPath, RawPath};

use crate::editor::EditorArgument;
use crate::error::Failure;
use crate::invocation::Invocation;

/// The path of a command, as an argument or as a flag.
#[derive(Clone, Debug, Default, Args)]
pub struct PathArguments {
    /// Path of a resource or collection
    #[arg(value_name = "PATH")]
    positional: Option<String>,

    /// Same as PATH
    #[arg(short = 'p', long = "path", value_name = "PATH")]
    flag: Option<String>,
}

/// The path and the editor of a command that edits.
#[derive(Debug, Args)]
pub struct EditArguments {
    #[command(flatten)]
    pub path: PathArguments,
    #[command(flatten)]
    pub editor: EditorArgument,
}

/// A path, and whether it has a trailing slash, which marks a collection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    pub path: LogicalPath,
    pub explicit_collection: bool,
}

impl PathArguments {
    /// Returns the path, which is required and must name a resource or collection.
    pub fn target(&self, invocation: &Invocation) -> Result<Target, Failure> {
        self.optional_target()?.ok_or_else(|| missing(invocation))
    }

    /// Like [`Self::target`], for commands with a default.
    pub fn optional_target(&self) -> Result<Option<Target>, Failure> {
        let Some(text) = self.text()? else { return Ok(None) };
        let path = LogicalPath::parse(text)?;
        let explicit_collection = !path.is_root() && text.ends_with(['/', '\\']);
        Ok(Some(Target { path, explicit_collection }))
    }

    /// Returns the path, which is required and may have `_` for any segment.
    pub fn selector(&self, invocation: &Invocation) -> Result<RawPath, Failure> {
        let text = self.text()?.ok_or_else(|| missing(invocation))?;
        // A selector has no white space around it, and a name may end with it.
        if text.ends_with(char::is_whitespace) {
            return Err(Failure::invalid(format!("the path \"{text}\" ends with white space; remove it")));
        }
        Ok(RawPath::parse(text)?)
    }

    /// Returns the argument, if the flag is also given.
    pub fn beside_flag(&self) -> Option<&str> {
        self.flag.as_ref().and(self.positional.as_deref())
    }

    /// Returns the path arguments with the flag only.
    pub fn flag_only(&self) -> Self {
        Self { positional: None, flag: self.flag.clone() }
    }

    /// Returns the path as [`trimmed`]. The argument and the flag must be the same text.
    fn text(&self) -> Result<Option<&str>, Failure> {
        let given = |text: &&str| !text.trim().is_empty();
        let positional = self.positional.as_deref().map(trimmed).filter(given);
        let flag = self.flag.as_deref().map(trimmed).filter(given);
        match (positional, flag) {
            (Some(positional), Some(flag)) if positional != flag => Err(Failure::invalid(format!(
                "path mismatch between positional argument and --path: \"{positional}\" and \"{flag}\"; \
                 give one of them"
            ))),
            (positional, flag) => Ok(positional.or(flag)),
        }
    }
}

/// Returns a path without white space before it, and without the end of a line after it. A name may end with a space.
pub fn trimmed(path: &str) -> &str {
    path.trim_start().trim_end_matches(['\r', '\n'])
}

fn missing(invocation: &Invocation) -> Failure {
    invocation.usage("path is required: give it as PATH or with --path")
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::environment::Environment;
    use crate::settings::GlobalFlags;

    fn arguments(positional: &str, flag: &str) -> PathArguments {
        let given = |text: &str| (text != "-").then(|| text.to_owned());
        PathArguments { positional: given(positional), flag: given(flag) }
    }

    #[rstest]
    #[case("/a", "-", "/a", false)]
    #[case("-", "/a/", "/a", true)]
    #[case("/a", "/a", "/a", false)]
    #[case("\\a\\b\\", "-", "/a/b", true)]
    #[case("//a///b//", "-", "/a/b", true)]
    #[case("/", "-", "/", false)]
    #[case("/my shop", "-", "/my shop", false)]
    #[case(" /a\r", "-", "/a", false)]
    #[case("", "/a", "/a", false)]
    fn targets(
        #[case] positional: &str,
        #[case] flag: &str,
        #[case] path: &str,
        #[case] explicit_collection: bool,
    ) {
        let target = arguments(positional, flag).optional_target().unwrap().unwrap();
        assert_eq!((target.path.as_str(), target.explicit_collection), (path, explicit_collection));
    }

    #[rstest]
    #[case(
        "/a",
        "/a/",
        "path mismatch between positional argument and --path: \"/a\" and \"/a/\"; give one of them"
    )]
    #[case(
        "/a/../b",
        "-",
        "logical path \"/a/../b\": logical path must not contain traversal segments (\"..\")"
    )]
    #[case("a", "-", "logical path \"a\" must start with \"/\"")]
    #[case("/a/_", "-", "logical path \"/a/_\" must not contain the reserved segment \"_\"")]
    fn invalid_paths_are_rejected(#[case] positional: &str, #[case] flag: &str, #[case] message: &str) {
        let failure = arguments(positional, flag).optional_target().unwrap_err();
        assert_eq!((failure.message(), failure.category().exit_code()), (message, 2));
    }

    #[test]
    fn a_missing_path_is_reported_with_the_usage() {
        let parser = clap::Command::new("declarest").subcommand(clap::Command::new("version"));
        let names = vec!["version".to_owned()];
        let invocation = Invocation::new(parser, names, &GlobalFlags::default(), Environment::default());
        assert_eq!(arguments("-", "-").optional_target().unwrap(), None);
        let failure = arguments("-", " ").target(&invocation).unwrap_err();
        assert!(failure.message().starts_with("path is required"), "{}", failure.message());
        assert!(failure.usage().unwrap().starts_with("Usage: declarest version"));
        assert!(arguments("/a/_/", "-").selector(&invocation).unwrap().explicit_collection);
    }
}
