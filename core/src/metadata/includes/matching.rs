//! Matches externalized attributes with a payload, and determines their files.

use std::collections::HashMap;

use super::IncludeError;
use crate::metadata::document::ExternalizedAttribute;
use crate::payload::Value;
use crate::payload::pointer::{Pointer, array_index};
use crate::repository::sidecar_file;

/// An attribute of a payload that is kept in a file.
#[derive(Debug)]
pub(super) struct Match {
    /// The attribute.
    pub at: Pointer,
    /// The file relative to the payload.
    pub file: String,
    /// The placeholder in the stored payload.
    pub placeholder: String,
}

/// Returns the matches of all enabled entries. Two matches of the same attribute or file are an error.
pub(super) fn matches(
    payload: &Value,
    attributes: &[ExternalizedAttribute],
) -> Result<Vec<Match>, IncludeError> {
    let mut all = Vec::new();
    let mut entries: HashMap<Pointer, &Pointer> = HashMap::new();
    let mut files: HashMap<String, Pointer> = HashMap::new();
    for attribute in attributes.iter().filter(|attribute| attribute.is_enabled()) {
        for found in matches_of(payload, attribute)? {
            let Match { at, file, .. } = &found;
            if let Some(first) = entries.insert(at.clone(), &attribute.path) {
                let (first, second) = (first.clone(), attribute.path.clone());
                return Err(IncludeError::SamePlace { first, second, at: at.clone() });
            }
            if let Some(first) = files.insert(file.clone(), at.clone()) {
                return Err(IncludeError::SameFile { first, second: at.clone(), file: file.clone() });
            }
            all.push(found);
        }
    }
    Ok(all)
}

/// Returns the matches of one entry, in the order of the payload.
pub(super) fn matches_of(
    payload: &Value,
    attribute: &ExternalizedAttribute,
) -> Result<Vec<Match>, IncludeError> {
    let file = sidecar_file(&attribute.file).map_err(|reason| IncludeError::FileName {
        attribute: attribute.path.clone(),
        file: attribute.file.clone(),
        reason,
    })?;
    let mut walk = Walk { attribute, file, at: Vec::new(), indexes: Vec::new(), found: Vec::new() };
    walk.step(payload, attribute.path.tokens())?;
    Ok(walk.found)
}

struct Walk<'a> {
    attribute: &'a ExternalizedAttribute,
    /// The normalized file of the entry.
    file: String,
    /// The tokens of the current pointer.
    at: Vec<String>,
    /// The indexes that the wildcards in it match.
    indexes: Vec<usize>,
    found: Vec<Match>,
}

impl Walk<'_> {
    fn step(&mut self, value: &Value, tokens: &[String]) -> Result<(), IncludeError> {
        let Some((token, rest)) = tokens.split_first() else {
            let file = concrete_file(&self.file, &self.indexes);
            let placeholder = self.attribute.placeholder(&file);
            self.found.push(Match { at: self.place(), file, placeholder });
            return Ok(());
        };
        match value {
            Value::Object(members) => match members.get(token) {
                Some(member) => self.below(token.clone(), member, rest),
                None => Ok(()),
            },
            Value::Array(items) if token == "*" => {
                for (index, item) in items.iter().enumerate() {
                    self.indexes.push(index);
                    self.below(index.to_string(), item, rest)?;
                    self.indexes.pop();
                }
                Ok(())
            }
            Value::Array(items) => match array_index(token) {
                Some(index) => items.get(index).map_or(Ok(()), |item| self.below(token.clone(), item, rest)),
                None => Err(IncludeError::NotAnIndex {
                    attribute: self.attribute.path.clone(),
                    at: self.place(),
                    token: token.clone(),
                }),
            },
            other => Err(IncludeError::NoMembers {
                attribute: self.attribute.path.clone(),
                at: self.place(),
                kind: other.kind(),
            }),
        }
    }

    fn below(&mut self, token: String, value: &Value, rest: &[String]) -> Result<(), IncludeError> {
        self.at.push(token);
        self.step(value, rest)?;
        self.at.pop();
        Ok(())
    }

    fn place(&self) -> Pointer {
        self.at.iter().cloned().collect()
    }
}

/// Returns the file of one match: the indexes of wildcards are inserted before the last extension of the file name. A
/// leading dot does not start an extension.
pub(super) fn concrete_file(file: &str, indexes: &[usize]) -> String {
    let name_at = file.rfind('/').map_or(0, |slash| slash + 1);
    let extension_at =
        file[name_at..].rfind('.').filter(|dot| *dot > 0).map_or(file.len(), |dot| name_at + dot);
    let (stem, extension) = file.split_at(extension_at);
    let suffix: String = indexes.iter().flat_map(|index| ["-".to_owned(), index.to_string()]).collect();
    format!("{stem}{suffix}{extension}")
}
