//! What is printed: results on standard output, all else on standard error.

pub mod diff;
mod messages;
mod policy;
mod render;

use std::io::{ErrorKind, IsTerminal as _, Write as _};

use declarest_core::error::{Categorized, Category};
use declarest_core::payload::{Descriptor, PayloadError, PayloadType, Value};
use serde::Serialize;

pub use messages::{Messages, tell};
pub use policy::{OutputPolicy, Wish};

use policy::Form;

/// Why a result could not be shown.
#[derive(Debug, thiserror::Error)]
pub enum OutputError {
    #[error("invalid output format {0:?}; use auto, text, json or yaml")]
    UnknownFormat(String),
    #[error("\"declarest {command}\" prints {only} only; remove --output {format}")]
    Unsupported { command: String, only: &'static str, format: &'static str },
    #[error("the result holds binary payloads, which have no text form; use --output json or yaml")]
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

/// The standard output of a command whose form is settled.
#[derive(Debug)]
pub struct Output {
    form: Form,
}

impl Output {
    /// Settles the form of what `command` prints. Commands do this first: a form that they do not have is
    /// an error before anything happens.
    pub fn new(command: &str, policy: OutputPolicy, wish: &Wish) -> Result<Self, OutputError> {
        let terminal = std::io::stdout().is_terminal();
        Ok(Self { form: policy.form(command, wish, terminal)? })
    }

    /// Whether text is printed that a command must make itself.
    pub fn is_text(&self) -> bool {
        self.form == Form::Text
    }

    /// Prints `text`, or `value` where a structured form is wanted or `text` is `None`. Null prints nothing.
    pub fn show<T: Serialize>(&self, value: &T, text: Option<&str>) -> Result<(), OutputError> {
        print(&render::result(self.form, value, text)?)
    }

    /// Prints a payload as what it is, or structured if that is wanted.
    pub fn show_payload(&self, payload: &Value, descriptor: &Descriptor) -> Result<(), OutputError> {
        print(&render::payload(self.form, payload, descriptor)?)
    }

    /// Prints the payloads of a collection: `lines` where text is asked for, else `payloads`, an array.
    pub fn show_list(&self, payloads: &Value, lines: &str) -> Result<(), OutputError> {
        match self.form {
            Form::Text | Form::Natural { newline: true, .. } => print(&render::line(lines.to_owned())),
            _ => self.show_payload(payloads, &Descriptor::of(PayloadType::Json)),
        }
    }
}

/// Prints bytes as they are. A reader that has seen enough and went away is no failure.
pub fn print(bytes: &[u8]) -> Result<(), OutputError> {
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}
