//! `declarest resource metadata`.

mod change;
mod infer;
mod render;
mod show;

use clap::Subcommand;
use declarest_core::path::{LogicalPath, Selector};

use self::change::CommitArgument;
pub use self::infer::{name_by_id, store_inferred};
use crate::editor::EditorArgument;
use crate::error::Failure;
use crate::input::PayloadArguments;
use crate::invocation::Invocation;
use crate::target::PathArguments;

#[derive(Debug, Subcommand)]
pub enum MetadataCommand {
    /// Print the metadata that applies to this path, with all inherited documents, merged over the conventions
    Get {
        #[command(flatten)]
        path: PathArguments,
        /// Print only the metadata that is stored for exactly this path
        #[arg(long)]
        overrides_only: bool,
    },
    /// Print the merged metadata of all documents that apply to a path
    Resolve(PathArguments),
    /// Print the request of an operation
    Render(render::RenderArguments),
    /// Print metadata that is inferred from conventions and the API description of the server
    Infer(infer::InferArguments),
    /// Store metadata for exactly this path; replaces existing metadata
    Set {
        #[command(flatten)]
        path: PathArguments,
        #[command(flatten)]
        input: PayloadArguments,
        #[command(flatten)]
        commit: CommitArgument,
    },
    /// Remove the metadata of exactly this path
    Unset {
        #[command(flatten)]
        path: PathArguments,
        #[command(flatten)]
        commit: CommitArgument,
    },
    /// Edit the metadata of exactly this path
    Edit {
        #[command(flatten)]
        path: PathArguments,
        #[command(flatten)]
        editor: EditorArgument,
        #[command(flatten)]
        commit: CommitArgument,
    },
}

/// Runs a command of the group.
pub fn run(command: &MetadataCommand, invocation: &Invocation) -> Result<(), Failure> {
    match command {
        MetadataCommand::Get { path, overrides_only } => show::get(path, *overrides_only, invocation),
        MetadataCommand::Resolve(path) => show::resolve(path, invocation),
        MetadataCommand::Render(arguments) => render::run(arguments, invocation),
        MetadataCommand::Infer(arguments) => infer::run(arguments, invocation),
        MetadataCommand::Set { path, input, commit } => change::set(path, input, *commit, invocation),
        MetadataCommand::Unset { path, commit } => change::unset(path, *commit, invocation),
        MetadataCommand::Edit { path, editor, commit } => change::edit(path, editor, *commit, invocation),
    }
}

/// The subject of a command on metadata: a path or selector.
pub struct Subject {
    pub text: String,
    pub selector: Selector,
}

impl Subject {
    pub fn new(path: &PathArguments, invocation: &Invocation) -> Result<Self, Failure> {
        let raw = path.selector(invocation)?;
        let slash = if raw.explicit_collection { "/" } else { "" };
        Self::of(&format!("{}{slash}", raw.as_str()))
    }

    /// Returns the subject of this text.
    pub fn of(text: &str) -> Result<Self, Failure> {
        Ok(Self { text: text.to_owned(), selector: Selector::parse(text)? })
    }

    /// Returns a path that the subject matches. Its segments for `_` match wildcards only.
    pub fn representative(&self) -> Result<LogicalPath, Failure> {
        // Names in repositories and on servers do not have braces.
        let segments = self.text.split('/').filter(|segment| !segment.is_empty());
        let mut segments: Vec<&str> =
            segments.map(|segment| if segment == "_" { "{any}" } else { segment }).collect();
        if self.text.trim_end_matches('/').ends_with("/_") {
            segments.pop();
        }
        Ok(LogicalPath::parse(&format!("/{}", segments.join("/")))?)
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("/shops/rio", "/shops/rio")]
    #[case("/shops/", "/shops")]
    #[case("/shops/_", "/shops")]
    #[case("/shops/_/", "/shops")]
    #[case("/shops/_/tills/_", "/shops/{any}/tills")]
    #[case("/shops/r*/tills/", "/shops/r*/tills")]
    #[case("/", "/")]
    fn a_selector_has_a_representative_path(#[case] text: &str, #[case] expected: &str) {
        let subject = Subject { text: text.to_owned(), selector: Selector::parse(text).unwrap() };
        assert_eq!(subject.representative().unwrap().as_str(), expected);
    }
}
