//! Editing in the user's editor.

use std::cell::RefCell;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

use clap::Args;
use declarest_core::error::categories;
use tempfile::NamedTempFile;

use crate::error::Failure;
use crate::interrupt;
use crate::invocation::Invocation;
use crate::terminal::{self, TerminalError};

/// The variables with the editor of the user, by the convention of POSIX systems.
const VARIABLES: [&str; 2] = ["VISUAL", "EDITOR"];
/// The default editor.
const DEFAULT: &str = "vi";

/// SIGINT, the signal of Ctrl-C.
#[cfg(unix)]
const INTERRUPT: i32 = 2;

/// The edit failed.
#[derive(Debug, thiserror::Error)]
pub enum EditorError {
    #[error(transparent)]
    Terminal(#[from] TerminalError),
    #[error("cannot use a temporary file for editing: {0}")]
    File(std::io::Error),
    #[error("cannot start the editor \"{command}\": {reason}; choose another with --editor")]
    Start { command: String, reason: std::io::Error },
    #[error("the editor \"{command}\" failed ({status}); nothing was changed")]
    Failed { command: String, status: ExitStatus },
    #[error("{0} is empty after editing; nothing was changed")]
    Blank(String),
    #[error("{0} was changed by another command while it was edited; edit it again")]
    Changed(String),
}

categories!(EditorError {
    .0: Terminal;
    Validation: Blank;
    Conflict: Changed;
    Internal: File, Start, Failed;
});

#[derive(Clone, Debug, Default, Args)]
pub struct EditorArgument {
    /// Editor command; by default defaultEditor of the catalogue, otherwise $VISUAL, $EDITOR or vi
    #[arg(long, value_name = "COMMAND")]
    editor: Option<String>,
}

/// A command that edits the file in its last argument.
#[derive(Debug)]
pub struct Editor {
    command: String,
    /// The directory of temporary files.
    directory: PathBuf,
    /// The file of the last edit that changed something.
    edited: RefCell<Option<NamedTempFile>>,
}

impl EditorArgument {
    /// Runs a command that uses the editor. If the command fails after an edit, the temporary file with the edited text
    /// is kept, and the failure names it.
    pub fn edit<T>(
        &self,
        invocation: &Invocation,
        command: impl FnOnce(&Editor) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        self.edit_in(&std::env::temp_dir(), invocation, command)
    }

    /// Like [`Self::edit`], with temporary files in `directory`.
    pub fn edit_in<T>(
        &self,
        directory: &Path,
        invocation: &Invocation,
        command: impl FnOnce(&Editor) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let editor = Editor {
            command: self.command(invocation)?,
            directory: directory.to_owned(),
            edited: RefCell::default(),
        };
        command(&editor).map_err(|failure| editor.keep(failure))
    }

    /// Returns the command of the editor to use.
    fn command(&self, invocation: &Invocation) -> Result<String, Failure> {
        let given = |command: &String| !command.trim().is_empty();
        if let Some(command) = self.editor.clone().filter(given) {
            return Ok(command);
        }
        let configured =
            invocation.catalogue_text()?.catalogue.default_editor.map(|text| text.0).filter(given);
        let of_user =
            || VARIABLES.iter().find_map(|name| invocation.environment.get(name)).map(str::to_owned);
        Ok(configured.or_else(of_user).unwrap_or_else(|| DEFAULT.to_owned()))
    }
}

impl Editor {
    /// Opens `content` in the editor, in a private temporary file with this extension, and returns the edited content.
    /// `name` is its name in messages. A blank result is an error.
    pub fn edit(&self, name: &str, content: &[u8], extension: &str) -> Result<Vec<u8>, EditorError> {
        let edited = self.edit_or_clear(name, content, extension)?;
        edited.ok_or_else(|| EditorError::Blank(name.to_owned()))
    }

    /// Like [`Self::edit`]; returns `None` if the edited content is blank.
    pub fn edit_or_clear(
        &self,
        name: &str,
        content: &[u8],
        extension: &str,
    ) -> Result<Option<Vec<u8>>, EditorError> {
        let edited = self.edit_text(name, content, extension)?;
        Ok(Some(edited).filter(|edited| !is_blank(edited)))
    }

    /// Like [`Self::edit`], but a blank result is a result like any other.
    pub fn edit_text(&self, name: &str, content: &[u8], extension: &str) -> Result<Vec<u8>, EditorError> {
        if !terminal::is_interactive() {
            return Err(terminal::cannot_ask(name).into());
        }
        self.run(content, extension)
    }

    fn run(&self, content: &[u8], extension: &str) -> Result<Vec<u8>, EditorError> {
        let mut file = tempfile::Builder::new()
            .prefix("declarest-")
            .suffix(extension)
            .tempfile_in(&self.directory)
            .map_err(EditorError::File)?;
        file.write_all(content).and_then(|()| file.flush()).map_err(EditorError::File)?;
        let mut words = self.command.split_whitespace();
        let command = || self.command.clone();
        let mut editor = Command::new(words.next().unwrap_or(DEFAULT));
        editor.args(words).arg(file.path());
        let status = interrupt::ignored(|| editor.status());
        let status = status.map_err(|reason| EditorError::Start { command: command(), reason })?;
        #[cfg(unix)]
        if std::os::unix::process::ExitStatusExt::signal(&status) == Some(INTERRUPT) {
            return Err(TerminalError::Interrupted.into());
        }
        if !status.success() {
            return Err(EditorError::Failed { command: command(), status });
        }
        // Read the file by its name, because editors may replace it with a new file.
        let edited = std::fs::read(file.path()).map_err(EditorError::File)?;
        if edited != content && !is_blank(&edited) {
            self.edited.replace(Some(file));
        }
        Ok(edited)
    }

    /// Keeps the file of the edit, so that the user can correct it, and adds its name to `failure`.
    fn keep(&self, failure: Failure) -> Failure {
        match self.edited.take().map(NamedTempFile::keep) {
            Some(Ok((_, file))) => failure.with_note(&format!("{} has the edited text", file.display())),
            Some(Err(_)) | None => failure,
        }
    }
}

fn is_blank(content: &[u8]) -> bool {
    content.trim_ascii().is_empty()
}

#[cfg(test)]
mod tests {
    use declarest_core::error::Categorized;

    use super::*;

    fn edit(command: &str, content: &str) -> Result<Vec<u8>, EditorError> {
        let (command, directory) = (command.to_owned(), std::env::temp_dir());
        Editor { command, directory, edited: RefCell::default() }.run(content.as_bytes(), ".yaml")
    }

    #[test]
    fn the_command_is_split_into_words() {
        assert_eq!(edit("sed -i s/a/b/", "a: 1\n").unwrap(), b"b: 1\n");
    }

    #[test]
    fn failures_name_the_command() {
        let error = edit("false --now", "a").unwrap_err();
        assert_eq!(
            error.to_string(),
            "the editor \"false --now\" failed (exit status: 1); nothing was changed"
        );
        assert_eq!(error.category().exit_code(), 1);
        let error = edit("/no/such/editor", "a").unwrap_err();
        assert!(error.to_string().starts_with("cannot start the editor \"/no/such/editor\": "), "{error}");
    }
}
