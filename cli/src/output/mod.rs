//! Output of commands: results on standard output, messages on standard error.

pub mod applied;
mod changed_lines;
pub mod diff;
mod messages;
pub mod plan;
mod policy;
mod progress;
mod query;
mod render;
mod stderr;

use std::io::{ErrorKind, IsTerminal as _, Write as _};

use declarest_core::control::one_line;
use declarest_core::error::categories;
use declarest_core::payload::{Descriptor, PayloadError, PayloadType, Value};
use serde::Serialize;

pub use messages::{Messages, error_record};
pub use policy::{OutputPolicy, check_flag};
pub use progress::Progress;
pub use stderr::to_stderr;

use crate::settings::Wish;
use policy::Form;
use query::Query;

/// A result could not be printed.
#[derive(Debug, thiserror::Error)]
pub enum OutputError {
    #[error(
        "invalid output format {0:?}; use auto, text, json, yaml, wide, name, ndjson, jq=EXPRESSION or jsonpath=TEMPLATE"
    )]
    UnknownFormat(String),
    #[error("\"declarest {command}\" prints {only} only; remove --output {format}")]
    Unsupported { command: String, only: &'static str, format: &'static str },
    #[error("the result contains binary payloads, which have no text form; use --output json or yaml")]
    BinaryAsText,
    #[error("--output {kind}: {reason}")]
    Query { kind: &'static str, reason: String },
    #[error("the result has no resources to name; remove --output name")]
    NoNames,
    #[error("cannot write the result as {format}: {reason}")]
    Encode { format: &'static str, reason: String },
    #[error("cannot write the result: {0}")]
    Payload(#[from] PayloadError),
    #[error("cannot write to standard output: {0}")]
    Write(#[from] std::io::Error),
}

categories!(OutputError {
    Validation: UnknownFormat, Unsupported, BinaryAsText, Query, NoNames;
    Internal: Encode, Payload, Write;
});

/// The standard output of a command in a chosen form.
#[derive(Debug)]
pub struct Output {
    form: Form,
    /// The query, if the form is that of its outputs.
    query: Option<Query>,
}

impl Output {
    /// Chooses the form of the output of `command`. Commands call this first, so that an unsupported form is an error
    /// before any change.
    pub fn new(command: &str, policy: OutputPolicy, wish: &Wish) -> Result<Self, OutputError> {
        let terminal = std::io::stdout().is_terminal();
        let form = policy.form(command, wish, terminal)?;
        let query = if form == Form::Query { policy::query(wish)? } else { None };
        Ok(Self { form, query })
    }

    /// Returns whether the form is text, which the command must create itself.
    pub fn is_text(&self) -> bool {
        matches!(self.form, Form::Text | Form::Wide)
    }

    /// Returns whether the form is text with more columns.
    pub fn is_wide(&self) -> bool {
        self.form == Form::Wide
    }

    /// Returns whether the form is Markdown, which the command must create itself.
    pub fn is_markdown(&self) -> bool {
        self.form == Form::Markdown
    }

    /// Prints `text`, or `value` if the form is structured or `text` is `None`. Null prints nothing.
    pub fn show<T: Serialize>(&self, value: &T, text: Option<&str>) -> Result<(), OutputError> {
        print(&self.encoded(value, text)?)
    }

    /// Returns the bytes that [`Self::show`] prints.
    pub fn encoded<T: Serialize>(&self, value: &T, text: Option<&str>) -> Result<Vec<u8>, OutputError> {
        match &self.query {
            Some(query) => Ok(query.run(&render::as_value(value)?)?.into_bytes()),
            None => render::result(self.form, value, text),
        }
    }

    /// Like [`Self::show`], for a result about resources with these paths, which is all that `--output name` prints.
    pub fn show_about<T: Serialize>(
        &self,
        paths: &[&str],
        value: &T,
        text: Option<&str>,
    ) -> Result<(), OutputError> {
        print(&self.encoded_about(paths, value, text)?)
    }

    /// Returns the bytes that [`Self::show_about`] prints.
    pub fn encoded_about<T: Serialize>(
        &self,
        paths: &[&str],
        value: &T,
        text: Option<&str>,
    ) -> Result<Vec<u8>, OutputError> {
        if self.is_names() { Ok(names(paths)) } else { self.encoded(value, text) }
    }

    /// Returns whether only the paths of resources are printed.
    pub fn is_names(&self) -> bool {
        self.form == Form::Name
    }

    /// Prints a payload in its own format, or in the structured form.
    pub fn show_payload(&self, payload: &Value, descriptor: &Descriptor) -> Result<(), OutputError> {
        match &self.query {
            Some(query) => print(query.run(&render::without_bytes(payload))?.as_bytes()),
            None => print(&render::payload(self.form, payload, descriptor)?),
        }
    }

    /// Prints the payloads of a collection: `lines` if the form is text, `paths` if it is names, otherwise the array
    /// `payloads`.
    pub fn show_list(&self, payloads: &Value, lines: &str, paths: &str) -> Result<(), OutputError> {
        match self.form {
            Form::Name => print(&render::line(paths.to_owned())),
            Form::Text | Form::Wide | Form::Natural { newline: true, .. } => {
                print(&render::line(lines.to_owned()))
            }
            _ => self.show_payload(payloads, &Descriptor::of(PayloadType::Json)),
        }
    }
}

/// Returns texts, such as names that a server states, as one line each.
pub fn lines<T: AsRef<str>>(texts: impl IntoIterator<Item = T>) -> String {
    let lines = texts.into_iter().map(|text| one_line(text.as_ref()).into_owned());
    lines.collect::<Vec<_>>().join("\n")
}

/// Prints paths of resources, as `--output name` does.
pub fn show_names(paths: &[&str]) -> Result<(), OutputError> {
    print(&names(paths))
}

fn names(paths: &[&str]) -> Vec<u8> {
    render::line(lines(paths))
}

/// Returns a number of things, such as `1 commit` and `2 commits`.
pub fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// Prints bytes without changes. A closed pipe is not an error.
pub fn print(bytes: &[u8]) -> Result<(), OutputError> {
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}

/// Returns whether standard output is a pipe whose reader has ended.
#[cfg(unix)]
pub fn is_closed() -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let stdout = std::io::stdout();
    let mut ends = [PollFd::new(&stdout, PollFlags::empty())];
    poll(&mut ends, Some(&Timespec::default())).is_ok()
        && ends[0].revents().intersects(PollFlags::ERR | PollFlags::HUP)
}

/// Returns whether standard output is a pipe whose reader has ended, which is not known on this system.
#[cfg(not(unix))]
pub fn is_closed() -> bool {
    false
}
