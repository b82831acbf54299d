//! Strict access to the fields of a located document.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::DocumentError;
use crate::payload::pointer::Pointer;
use crate::payload::{Located, Object, Part, Position, Value};

/// A closed set of words that stand for values.
pub trait Keyword: Copy + 'static {
    /// All words and what they stand for.
    const WORDS: &'static [(&'static str, Self)];

    /// The word for this value.
    fn word(self) -> &'static str
    where
        Self: PartialEq,
    {
        Self::WORDS.iter().find(|(_, value)| *value == self).map_or("", |(word, _)| word)
    }
}

/// A value and the name of its field.
pub struct Field {
    pub name: String,
    node: Located,
}

/// The members of an object whose keys are all known.
pub struct Fields {
    name: String,
    at: Position,
    members: BTreeMap<String, Located>,
}

impl Field {
    pub fn root(node: Located) -> Self {
        Self { name: String::new(), node }
    }

    pub fn fail(&self, reason: impl Into<Cow<'static, str>>) -> DocumentError {
        failure(self.node.at, &self.name, reason)
    }

    pub fn is_null(&self) -> bool {
        self.node.is_null()
    }

    /// Whether this is a scalar, and so may stand for a list of itself.
    pub fn is_scalar(&self) -> bool {
        matches!(self.node.part, Part::Scalar { .. })
    }

    pub fn is_list(&self) -> bool {
        matches!(self.node.part, Part::Sequence(_))
    }

    /// A string: in YAML the source text of any scalar.
    pub fn text(self) -> Result<String, DocumentError> {
        let unwanted = self.fail(format!("expected a string, found {}", self.node.kind()));
        match self.node.part {
            Part::Scalar { text: Some(text), value } if !matches!(value, Ok(Value::Null)) => Ok(text),
            _ => Err(unwanted),
        }
    }

    pub fn boolean(self) -> Result<bool, DocumentError> {
        match self.node.part {
            Part::Scalar { value: Ok(Value::Bool(value)), .. } => Ok(value),
            _ => Err(self.fail(format!("expected true or false, found {}", self.node.kind()))),
        }
    }

    /// Any value of the payload model.
    pub fn value(self) -> Result<Value, DocumentError> {
        let Self { name, node } = self;
        node.into_value().map_err(|(at, reason)| failure(at, &name, reason))
    }

    /// An object of the payload model.
    pub fn object(self) -> Result<Object, DocumentError> {
        let unwanted = self.fail(format!("expected an object, found {}", self.node.kind()));
        match self.value()? {
            Value::Object(members) => Ok(members),
            _ => Err(unwanted),
        }
    }

    pub fn keyword<K: Keyword>(self) -> Result<K, DocumentError> {
        let Self { name, node } = self;
        let at = node.at;
        let text = Self { name: name.clone(), node }.text()?;
        let found = K::WORDS.iter().find(|(word, _)| *word == text.trim());
        found.map(|(_, value)| *value).ok_or_else(|| {
            let known: Vec<_> = K::WORDS.iter().map(|(word, _)| *word).collect();
            failure(at, &name, format!("\"{text}\" is not supported; use {}", known.join(" or ")))
        })
    }

    /// Parses the text of a string; the parser says what is wrong with it.
    pub fn parsed<T>(self, parse: impl FnOnce(&str) -> Result<T, String>) -> Result<T, DocumentError> {
        let (at, name) = (self.node.at, self.name.clone());
        parse(&self.text()?).map_err(|reason| failure(at, &name, reason))
    }

    /// A pointer to a part of a payload, never to the whole of it.
    pub fn pointer(self) -> Result<Pointer, DocumentError> {
        self.parsed(|text| {
            if !text.starts_with('/') {
                return Err(format!("JSON Pointer \"{text}\" must start with \"/\""));
            }
            Pointer::parse(text).map_err(|error| error.to_string())
        })
    }

    pub fn pointers(self) -> Result<Vec<Pointer>, DocumentError> {
        self.items()?.into_iter().map(Self::pointer).collect()
    }

    /// A list of pointers, or one that stands for a list of itself.
    pub fn pointers_or_one(self) -> Result<Vec<Pointer>, DocumentError> {
        if self.is_scalar() { Ok(vec![self.pointer()?]) } else { self.pointers() }
    }

    pub fn items(self) -> Result<Vec<Self>, DocumentError> {
        let Part::Sequence(items) = self.node.part else {
            return Err(self.fail(format!("expected a list, found {}", self.node.kind())));
        };
        let named = |(index, node)| Self { name: format!("{}[{index}]", self.name), node };
        Ok(items.into_iter().enumerate().map(named).collect())
    }

    /// The members of an object with keys of its author's choice, without those that are null. `None` if all
    /// are: null is absent and clears nothing, so such an object is not an empty one.
    pub fn entries(self) -> Result<Option<Vec<(String, Self)>>, DocumentError> {
        let Part::Mapping(members) = self.node.part else {
            return Err(self.fail(format!("expected an object, found {}", self.node.kind())));
        };
        if !members.is_empty() && members.values().all(Located::is_null) {
            return Ok(None);
        }
        let present = members.into_iter().filter(|(_, node)| !node.is_null());
        let named = present.map(|(key, node)| {
            let name = member_name(&self.name, &key);
            (key, Self { name, node })
        });
        Ok(Some(named.collect()))
    }

    /// [`Self::entries`], each as `read` reads it.
    pub fn map<T>(
        self,
        read: impl Fn(&str, Self) -> Result<T, DocumentError>,
    ) -> Result<Option<BTreeMap<String, T>>, DocumentError> {
        let Some(entries) = self.entries()? else { return Ok(None) };
        let read = entries.into_iter().map(|(key, field)| {
            let value = read(&key, field)?;
            Ok((key, value))
        });
        read.collect::<Result<_, _>>().map(Some)
    }

    /// The members of an object that has no keys but `known`.
    pub fn fields(self, known: &'static [&'static str]) -> Result<Fields, DocumentError> {
        let Part::Mapping(members) = self.node.part else {
            return Err(self.fail(format!("expected an object, found {}", self.node.kind())));
        };
        let unknown = members.iter().filter(|(key, _)| !known.contains(&key.as_str()));
        if let Some((key, node)) = unknown.min_by_key(|(_, node)| (node.at.line, node.at.column)) {
            let parent = if self.name.is_empty() { "the document".to_owned() } else { self.name };
            let suggestion = nearest(key, known);
            return Err(DocumentError::UnknownKey {
                position: node.at,
                parent,
                key: key.clone(),
                suggestion,
            });
        }
        Ok(Fields { name: self.name, at: self.node.at, members })
    }
}

impl Fields {
    pub fn fail(&self, reason: impl Into<Cow<'static, str>>) -> DocumentError {
        failure(self.at, &self.name, reason)
    }

    /// The field `key` as `read` reads it; a null one is absent.
    pub fn read<T>(
        &mut self,
        key: &str,
        read: impl FnOnce(Field) -> Result<T, DocumentError>,
    ) -> Result<Option<T>, DocumentError> {
        let node = self.members.remove(key).filter(|node| !node.is_null());
        node.map(|node| read(Field { name: member_name(&self.name, key), node })).transpose()
    }

    /// The field `key`, which must not be absent.
    pub fn require<T>(
        &mut self,
        key: &str,
        read: impl FnOnce(Field) -> Result<T, DocumentError>,
    ) -> Result<T, DocumentError> {
        self.read(key, read)?.ok_or_else(|| self.fail(format!("\"{key}\" is missing")))
    }
}

fn member_name(parent: &str, key: &str) -> String {
    if parent.is_empty() { key.to_owned() } else { format!("{parent}.{key}") }
}

fn failure(position: Position, field: &str, reason: impl Into<Cow<'static, str>>) -> DocumentError {
    let field = if field.is_empty() { "the document" } else { field };
    DocumentError::Field { position, field: field.to_owned(), reason: reason.into() }
}

/// The known key that somebody who wrote `key` probably meant: the same in another case, else one a few
/// edits away.
fn nearest(key: &str, known: &[&'static str]) -> Option<&'static str> {
    let distance = |candidate: &str| {
        strsim::damerau_levenshtein(&key.to_ascii_lowercase(), &candidate.to_ascii_lowercase())
    };
    let (candidate, edits) =
        known.iter().map(|candidate| (*candidate, distance(candidate))).min_by_key(|(_, edits)| *edits)?;
    (edits <= candidate.len().max(key.len()) / 3).then_some(candidate)
}
