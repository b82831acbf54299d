//! Collects rendered text. It limits the length, and rejects values that would change the meaning of the text around.

use std::borrow::Cow;
use std::ops::Range;

use super::error::Fault;
use super::escape;
use super::jq::JqLexer;
use super::{Kind, MAX_OUTPUT};
use crate::path::{PathNames, url_segment};

/// The rendered text.
pub(super) struct Sink {
    kind: Kind,
    names: PathNames,
    text: String,
    /// The parts of a path that are values, and the action of each.
    values: Vec<(Range<usize>, Range<usize>)>,
    jq: JqLexer,
}

/// The exceptions that apply to a value in a path.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Latitude {
    /// No exceptions.
    None,
    /// The value is a path and may be `/`.
    Path,
    /// The value is a path and may be `/` or empty.
    Empty,
}

impl Sink {
    pub(super) fn new(kind: Kind, names: PathNames) -> Self {
        Self { kind, names, text: String::new(), values: Vec::new(), jq: JqLexer::default() }
    }

    /// Adds text of the template.
    pub(super) fn push_text(&mut self, text: &str) -> Result<(), Fault> {
        if self.kind == Kind::Jq {
            self.jq.feed(text);
        }
        self.append(text)
    }

    /// Adds the value of the action that spans `action`.
    pub(super) fn push_value(
        &mut self,
        value: &str,
        action: &Range<usize>,
        latitude: Latitude,
    ) -> Result<(), Fault> {
        match self.kind {
            Kind::Path | Kind::RemoteCollectionPath | Kind::ResourcePath => {
                let value = self.segment(value, latitude);
                check_path_value(&value, latitude)?;
                let start = self.text.len();
                self.append(&value)?;
                self.values.push((start..self.text.len(), action.clone()));
                Ok(())
            }
            Kind::Header if value.contains(['\r', '\n']) => {
                Err(Fault::Unsafe("a line break in it would start another header".into()))
            }
            Kind::Jq if self.jq.is_after_backslash() => {
                Err(Fault::Unsafe("the backslash before it would change its first character".into()))
            }
            Kind::Jq if self.jq.is_in_string() => self.append(&escape::json(value)),
            Kind::Jq => {
                self.jq.feed(value);
                self.append(value)
            }
            Kind::Header | Kind::Method | Kind::Query => self.append(value),
        }
    }

    /// Returns a value as it is written in a path. If names are percent-encoded, a value is one segment, unless it is a
    /// path itself.
    fn segment<'v>(&self, value: &'v str, latitude: Latitude) -> Cow<'v, str> {
        match (self.names, latitude, self.kind) {
            (PathNames::Literal, ..) | (_, Latitude::Path | Latitude::Empty, _) => Cow::Borrowed(value),
            (names, _, Kind::ResourcePath) => names.encode(value),
            _ => url_segment(value),
        }
    }

    /// Returns the text; that of a path without the white space around it, unless this is a part of a value. A value
    /// that is part of a `.` or `..` segment, or of one of white space, is an error, with its action. Servers may ignore
    /// white space around a segment, so it does not protect one.
    pub(super) fn finish(self) -> Result<String, (Range<usize>, Fault)> {
        let mut start = 0;
        for segment in self.text.split('/') {
            let end = start + segment.len();
            let reason = match segment.trim() {
                "." | ".." => "it makes a \".\" or \"..\" segment, which changes the address",
                "" if !segment.is_empty() => {
                    "it makes a segment of white space, which would address the collection"
                }
                _ => "",
            };
            let mut values = self.values.iter();
            let value = values.find(|(value, _)| value.start < end && start < value.end);
            if let (Some((_, action)), false) = (value, reason.is_empty()) {
                return Err((action.clone(), Fault::Unsafe(reason.into())));
            }
            start = end + 1;
        }
        if !self.kind.is_path() {
            return Ok(self.text);
        }
        let (mut start, mut end) =
            (self.text.len() - self.text.trim_start().len(), self.text.trim_end().len());
        if let (Some((first, _)), Some((last, _))) = (self.values.first(), self.values.last()) {
            (start, end) = (start.min(first.start), end.max(last.end));
        }
        Ok(self.text.get(start..end).unwrap_or_default().to_owned())
    }

    fn append(&mut self, text: &str) -> Result<(), Fault> {
        if self.text.len() + text.len() > MAX_OUTPUT {
            return Err(Fault::Limit(format!("the text would be longer than {MAX_OUTPUT} bytes").into()));
        }
        self.text.push_str(text);
        Ok(())
    }
}

/// Rejects values that would turn the path of a resource into that of its collection, such as an empty id.
fn check_path_value(value: &str, latitude: Latitude) -> Result<(), Fault> {
    if value.is_empty() && latitude != Latitude::Empty {
        return Err(Fault::Unsafe("it is empty, which would address the collection".into()));
    }
    if latitude == Latitude::None && value.bytes().all(|byte| byte == b'/') {
        return Err(Fault::Unsafe("it consists of slashes, which would address the collection".into()));
    }
    Ok(())
}
