//! The payload of a command: from a file, standard input, or the argument itself.

mod assignment;
mod error;
mod literal;
mod source;

use clap::{Arg, Args};
use declarest_core::payload::{Class, Descriptor, Object, PayloadType, Value, decode};

pub use error::InputError;
pub use source::expanded;

use literal::Literal;

/// The payload of a command and its type.
#[derive(Clone, Debug, Default, Args)]
pub struct PayloadArguments {
    /// File with the payload, or - for standard input
    #[arg(short = 'f', long, value_name = "FILE")]
    payload: Option<String>,

    /// Type of the payload, such as json, yaml, text, binary or a media type
    #[arg(long, short_alias = 'i', value_name = "TYPE")]
    content_type: Option<String>,
}

/// Describes the flag of commands that also accept assignments: [`Literals::WithAssignments`].
pub fn accepts_assignments(flag: Arg) -> Arg {
    flag.value_name("PAYLOAD")
        .help("Payload: a file, - for standard input, JSON, or assignments such as /id=rio,/owner/name=Ana")
}

/// Describes the flag of commands that also accept inline documents: [`Literals::Inline`].
pub fn accepts_documents(flag: Arg) -> Arg {
    flag.value_name("PAYLOAD")
        .help("Payload: a file, - for standard input, or JSON such as '{\"tier\": \"gold\"}'")
}

/// The bytes of the input and their type.
#[derive(Clone, Debug, PartialEq)]
pub struct Content {
    /// The source, for messages.
    pub origin: String,
    pub bytes: Vec<u8>,
    pub descriptor: Descriptor,
}

/// A decoded payload and its type.
#[derive(Clone, Debug, PartialEq)]
pub struct Payload {
    pub value: Value,
    pub descriptor: Descriptor,
    /// Whether --content-type states the type.
    pub stated: bool,
}

/// The allowed meanings of an argument that is not a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Literals {
    /// Assignments, inline documents and texts.
    WithAssignments,
    /// Inline documents and texts.
    Inline,
    /// None: the argument must be a file.
    Refused,
}

impl PayloadArguments {
    /// Reads a document of DeclaREST: JSON, unless the flag or the file extension is YAML.
    pub fn document(&self) -> Result<Option<Content>, InputError> {
        let declared = self.declared()?;
        if let Some(descriptor) = &declared
            && !matches!(descriptor.payload_type, PayloadType::Json | PayloadType::Yaml)
        {
            return Err(InputError::NotADocumentType(descriptor.payload_type));
        }
        let Some(raw) = self.raw()? else { return Ok(None) };
        let guessed = declared.is_none();
        let descriptor = declared.unwrap_or_else(|| match raw.by_name() {
            Some(by_name) if by_name.payload_type == PayloadType::Yaml => by_name,
            _ => Descriptor::of(PayloadType::Json),
        });
        let content = raw.into_content(descriptor)?;
        let taken_for_json = guessed && content.descriptor.payload_type == PayloadType::Json;
        // A resource that is a secret as a whole is a string.
        if taken_for_json && !matches!(content.bytes.trim_ascii_start(), [b'{' | b'[' | b'"', ..]) {
            return Err(InputError::NotJson(content.origin));
        }
        Ok(Some(content))
    }

    /// Like [`Self::document`], but a missing document is an error.
    pub fn required_document(&self) -> Result<Content, InputError> {
        self.document()?.ok_or(InputError::Required)
    }

    /// Reads the payload of a resource. An argument that is not a file may be the payload itself.
    pub fn payload(&self, literals: Literals) -> Result<Option<Payload>, InputError> {
        let declared = self.declared()?;
        if let Some(text) = self.argument().filter(|text| !source::is_file(text)) {
            let structured = declared.as_ref().is_none_or(|d| d.payload_type.class() == Class::Structured);
            let literal = literal::classify(text, literals, structured, declared.is_some())?;
            if literal != Literal::File {
                refuse_other_input(declared.as_ref())?;
                let stated = declared.is_some();
                let descriptor = declared.unwrap_or_else(|| Descriptor::of(PayloadType::Json));
                if let Literal::Assignments(members) = literal {
                    return Ok(Some(Payload { value: Value::Object(members), descriptor, stated }));
                }
                let (origin, bytes) = ("--payload".to_owned(), text.as_bytes().to_vec());
                let payload = Content { origin, bytes, descriptor }.decode()?;
                return Ok(Some(Payload { stated, ..payload }));
            }
        }
        let Some(raw) = self.raw()? else { return Ok(None) };
        let guessed = declared.is_none();
        let descriptor = declared.unwrap_or_else(|| raw.guess());
        // It may be the rest of a script, or the list that a loop of the shell reads.
        if guessed && !self.names_input() && descriptor.payload_type == PayloadType::OctetStream {
            return Err(InputError::UnnamedStdin);
        }
        let payload = raw.into_content(descriptor)?.decode()?;
        Ok(Some(Payload { stated: !guessed, ..payload }))
    }

    /// Returns the type of the payload if it was given as a media type, such as `application/yaml`.
    pub fn media_type(&self) -> Option<&str> {
        self.content_type.as_deref().map(str::trim).filter(|name| name.contains('/'))
    }

    fn argument(&self) -> Option<&str> {
        self.payload.as_deref().filter(|text| !text.trim().is_empty() && *text != "-")
    }

    fn names_input(&self) -> bool {
        self.payload.as_deref().is_some_and(|text| !text.trim().is_empty())
    }

    fn declared(&self) -> Result<Option<Descriptor>, InputError> {
        let Some(name) = self.content_type.as_deref().map(str::trim).filter(|name| !name.is_empty()) else {
            return Ok(None);
        };
        Descriptor::from_media_type(name).map(Some).ok_or_else(|| InputError::UnknownType(name.to_owned()))
    }

    fn raw(&self) -> Result<Option<source::Raw>, InputError> {
        match (self.argument(), self.payload.as_deref()) {
            (Some(file), _) => source::file(file).map(Some),
            (None, Some("-")) => source::stdin()?.ok_or(InputError::Required).map(Some),
            (None, _) => source::unnamed_stdin(),
        }
    }
}

/// Parses assignments to JSON Pointers, such as `/name=oslo,/tier=gold`.
pub fn overrides(text: &str) -> Result<Object, InputError> {
    assignment::pointers(text).unwrap_or_else(|| Err(InputError::NotAssignments(text.to_owned())))
}

/// Returns an error if there is other input beside a payload on the command line, or if its type is binary.
fn refuse_other_input(declared: Option<&Descriptor>) -> Result<(), InputError> {
    if declared.is_some_and(|descriptor| descriptor.payload_type.class() == Class::Binary) {
        return Err(InputError::BinaryLiteral);
    }
    if source::unnamed_stdin()?.is_some() {
        return Err(InputError::LiteralAndStdin);
    }
    Ok(())
}

impl Content {
    /// Decodes the payload.
    pub fn decode(self) -> Result<Payload, InputError> {
        let Self { origin, bytes, descriptor } = self;
        let value = decode(descriptor.payload_type, &bytes)
            .map_err(|source| InputError::Decode { origin, source })?;
        Ok(Payload { value, descriptor, stated: false })
    }
}
