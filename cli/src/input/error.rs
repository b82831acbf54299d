//! Errors of input.

use declarest_core::error::categories;
use declarest_core::payload::{PayloadError, PayloadType};

/// Input could not be used. Messages never contain the content, because it may be a secret.
#[derive(Debug, thiserror::Error)]
pub enum InputError {
    #[error("input is required: provide --payload <path|-> or stdin")]
    Required,
    #[error("cannot read the payload from {origin}: {reason}")]
    Read { origin: String, reason: String },
    #[error("the payload from {origin} is larger than {limit} MiB")]
    TooLarge { origin: String, limit: usize },
    #[error("the payload from {0} is blank")]
    Blank(String),
    #[error(
        "--content-type \"{0}\" is not supported; use json, yaml, xml, hcl, ini, properties, text, binary \
         or a media type of one of them"
    )]
    UnknownType(String),
    #[error("--content-type {0} is not possible here; use json or yaml")]
    NotADocumentType(PayloadType),
    #[error("{0} is not a JSON object; if it is YAML, add --content-type yaml")]
    NotJson(String),
    #[error("{origin}: {source}; if it has another type, set --content-type")]
    Decode {
        origin: String,
        #[source]
        source: PayloadError,
    },
    #[error("--payload: the assignment of \"{key}\" {reason}")]
    Assignment { key: String, reason: &'static str },
    #[error(
        "--payload \"{0}\" is neither a file nor assignments nor inline JSON; add --content-type to use it as \
         literal content"
    )]
    NotUnderstood(String),
    #[error("\"{0}\" is not a list of assignments; write it like /name=oslo,/tier=gold")]
    NotAssignments(String),
    #[error("--payload contains a payload, and standard input contains another one; remove one of them")]
    LiteralAndStdin,
    #[error(
        "standard input has content that is not JSON; if it is the payload, add --payload - or --content-type, \
         otherwise add --no-input or redirect standard input from /dev/null"
    )]
    UnnamedStdin,
    #[error("a binary payload is not possible on the command line; use a file or standard input")]
    BinaryLiteral,
}

categories!(InputError {
    Validation: Required, TooLarge, Blank, UnknownType, NotADocumentType, NotJson, Decode, Assignment,
        NotUnderstood, NotAssignments, LiteralAndStdin, UnnamedStdin, BinaryLiteral;
    Internal: Read;
});
