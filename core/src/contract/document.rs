//! Reads `pacto.yaml`: its structure first, and if that is valid, the rules between its fields.
//!
//! The document is not trusted. Its size, depth and number of nodes are limited, also after aliases are expanded.

use std::collections::BTreeSet;

use sha2::{Digest as _, Sha256};

use super::finding::{Code, Finding, Findings};
use super::model::Contract;
use super::rules;
use super::structure;
use crate::digest::sha256;
use crate::payload::{PayloadType, Value, decode_within};

/// The maximum size of a document, in bytes.
pub const MAX_DOCUMENT: usize = 1 << 20;
/// The maximum nesting of lists and mappings.
const MAX_DEPTH: usize = 32;
/// The maximum number of values, with aliases expanded.
const MAX_NODES: usize = 10_000;
/// The maximum memory while the document is decoded, in bytes. It limits what aliases expand to.
const MAX_WEIGHT: usize = 16 << 20;

/// A validated document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    /// The contract, if there are no errors.
    pub contract: Option<Contract>,
    /// `service.name`, if it is valid.
    pub name: Option<String>,
    /// `service.version`, if it is valid.
    pub version: Option<String>,
    /// `sha256:` and the digest of the bytes.
    pub hash: String,
    /// What makes the document invalid.
    pub errors: Vec<Finding>,
    /// What its authors should look at.
    pub warnings: Vec<Finding>,
}

impl Document {
    /// Reads and validates a document. `files` are the files of its bundle; `None` if it is not part of a bundle.
    pub fn read(bytes: &[u8], files: Option<&BTreeSet<String>>) -> Self {
        let hash = sha256(Sha256::new_with_prefix(bytes));
        let mut findings = Findings::default();
        let (mut contract, mut name, mut version) = (None, None, None);
        match decode(bytes) {
            Ok(value) => {
                let read = structure::read(&value, &mut findings);
                name.clone_from(&read.name);
                version.clone_from(&read.version);
                if findings.errors.is_empty() {
                    contract = rules::check(read, files, &mut findings);
                }
            }
            Err(reason) => findings.error(Code::ParseError, "", &reason),
        }
        let Findings { errors, warnings } = findings;
        Self { contract: contract.filter(|_| errors.is_empty()), name, version, hash, errors, warnings }
    }
}

/// Decodes the document within all limits.
fn decode(bytes: &[u8]) -> Result<Value, String> {
    if bytes.len() > MAX_DOCUMENT {
        return Err(format!("the document is larger than {} MiB", MAX_DOCUMENT >> 20));
    }
    let value = decode_within(PayloadType::Yaml, bytes, MAX_WEIGHT).map_err(|error| error.to_string())?;
    let mut nodes = 0;
    measure(&value, 0, &mut nodes)?;
    if value.as_object().is_none() {
        return Err(format!("the document is {}; it must be a mapping", value.kind()));
    }
    Ok(value)
}

/// Counts the nodes. Fails beyond the limits. The decoder limits the depth of this recursion.
fn measure(value: &Value, depth: usize, nodes: &mut usize) -> Result<(), String> {
    *nodes += 1;
    if *nodes > MAX_NODES {
        return Err(format!("the document has more than {MAX_NODES} values"));
    }
    if depth >= MAX_DEPTH && matches!(value, Value::Array(_) | Value::Object(_)) {
        return Err(format!("the document is nested deeper than {MAX_DEPTH} levels"));
    }
    value.children().try_for_each(|child| measure(child, depth + 1, nodes))
}

#[cfg(test)]
#[path = "document_tests.rs"]
mod tests;
