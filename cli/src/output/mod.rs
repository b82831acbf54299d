//! Output of commands: results on standard output, messages on standard error.

pub mod diff;
mod messages;
pub mod plan;
mod policy;
mod render;

use std::io::{ErrorKind, IsTerminal as _, Write as _};

use declarest_core::error::{Categorized, Category};
use declarest_core::payload::{Descriptor, PayloadError, PayloadType, Value};
use serde::Serialize;

pub use messages::{Messages, to_stderr};
pub use policy::{OutputPolicy, check_flag};

use crate::settings::Wish;
use policy::Form;

/// A result could not be printed.
#[derive(Debug, thiserror::Error)]
pub enum OutputError {
    #[error("invalid output format {0:?}; use auto, text, json or yaml")]
    UnknownFormat(String),
    #[error("\"declarest {command}\" prints {only} only; remove --output {format}")]
    Unsupported { command: String, only: &'static str, format: &'static str },
    #[error("the result contains binary payloads, which have no text form; use --output json or yaml")]
    BinaryAsText,
    #[error("cannot write the result as {format}: {reason}")]
    Encode { format: &'static str, reason: String },
    #[error("cannot write the result: {0}")]
    Payload(#[from] PayloadError),
    #[error("cannot write to standard output: {0}")]
    Write(#[from] std::io::Error),
}

impl Categorized for OutputError {
    fn category(&self) -> Category {
        match self {
            Self::UnknownFormat(_) | Self::Unsupported { .. } | Self::BinaryAsText => Category::Validation,
            Self::Encode { .. } | Self::Payload(_) | Self::Write(_) => Category::Internal,
        }
    }
}

/// The standard output of a command in a chosen form.
#[derive(Debug)]
pub struct Output {
    form: Form,
}

impl Output {
    /// Chooses the form of the output of `command`. Commands call this first, so that an unsupported form is an error
    /// before any change.
    pub fn new(command: &str, policy: OutputPolicy, wish: &Wish) -> Result<Self, OutputError> {
        let terminal = std::io::stdout().is_terminal();
        Ok(Self { form: policy.form(command, wish, terminal)? })
    }

    /// Returns whether the form is text, which the command must create itself.
    pub fn is_text(&self) -> bool {
        self.form == Form::Text
    }

    /// Returns whether the form is Markdown, which the command must create itself.
    pub fn is_markdown(&self) -> bool {
        self.form == Form::Markdown
    }

    /// Prints `text`, or `value` if the form is structured or `text` is `None`. Null prints nothing.
    pub fn show<T: Serialize>(&self, value: &T, text: Option<&str>) -> Result<(), OutputError> {
        print(&render::result(self.form, value, text)?)
    }

    /// Prints a payload in its own format, or in the structured form.
    pub fn show_payload(&self, payload: &Value, descriptor: &Descriptor) -> Result<(), OutputError> {
        print(&render::payload(self.form, payload, descriptor)?)
    }

    /// Prints the payloads of a collection: `lines` if the form is text, otherwise the array `payloads`.
    pub fn show_list(&self, payloads: &Value, lines: &str) -> Result<(), OutputError> {
        match self.form {
            Form::Text | Form::Natural { newline: true, .. } => print(&render::line(lines.to_owned())),
            _ => self.show_payload(payloads, &Descriptor::of(PayloadType::Json)),
        }
    }
}

/// Prints bytes without changes. A closed pipe is not an error.
pub fn print(bytes: &[u8]) -> Result<(), OutputError> {
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}
