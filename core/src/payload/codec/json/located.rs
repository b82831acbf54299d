//! JSON with the place of every member and item.
//!
//! `serde_json` reports places only in errors. It reads its input byte by byte, and looks ahead only to the first
//! byte of a key or an item before it calls the visitor. The last byte that it has read is therefore the place.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::{fmt, io};

use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use super::super::compose::{Compose, repeated};
use super::super::located::Part;
use super::{check, described};
use crate::payload::codec::Located;
use crate::payload::weight::Meter;
use crate::payload::{PayloadError, PayloadType, Position, Value};
use crate::secret::is_secret_name;

/// Decodes one document; `None` if it is blank. Unlike in payloads, duplicate keys are an error.
pub fn decode(bytes: &[u8], meter: &Meter) -> Result<Option<Located>, PayloadError> {
    check(bytes)?;
    if bytes.trim_ascii().is_empty() {
        return Ok(None);
    }
    let cursor = Cursor::new(meter);
    let mut deserializer = serde_json::Deserializer::from_reader(Tracked { rest: bytes, cursor: &cursor });
    let start = Position { line: 1, column: Some(1) };
    let root = PartSeed { cursor: &cursor, at: start }.deserialize(&mut deserializer);
    if let Some((Position { line, column }, key)) = cursor.duplicate.take() {
        let reason = repeated(key.as_deref());
        return Err(PayloadError::decode(PayloadType::Json, line, column, reason));
    }
    let root = root.map_err(|error| described(&error))?;
    deserializer.end().map_err(|error| described(&error))?;
    Ok(Some(root))
}

/// The place of the last byte that was read.
struct Cursor<'m> {
    meter: &'m Meter,
    lines_before: Cell<usize>,
    column: Cell<usize>,
    /// The place of a duplicate key. The key is `None` if it may be part of a secret.
    duplicate: RefCell<Option<(Position, Option<String>)>>,
}

impl<'m> Cursor<'m> {
    fn new(meter: &'m Meter) -> Self {
        Self { meter, lines_before: Cell::new(0), column: Cell::new(0), duplicate: RefCell::new(None) }
    }

    /// Removes the duplicate key from the error if `name`, which contains it, is the name of a secret.
    fn conceal_below(&self, name: &str) {
        if let Some((_, key)) = &mut *self.duplicate.borrow_mut()
            && is_secret_name(name)
        {
            *key = None;
        }
    }

    fn position(&self) -> Position {
        Position { line: self.lines_before.get() + 1, column: Some(self.column.get()) }
    }
}

struct Tracked<'b> {
    rest: &'b [u8],
    cursor: &'b Cursor<'b>,
}

impl io::Read for Tracked<'_> {
    /// Reads one byte at a time, because the cursor must not be ahead of the parser.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let (Some((byte, rest)), Some(target)) = (self.rest.split_first(), buffer.first_mut()) else {
            return Ok(0);
        };
        *target = *byte;
        self.rest = rest;
        if *byte == b'\n' {
            self.cursor.lines_before.update(|lines| lines + 1);
            self.cursor.column.set(0);
        } else {
            self.cursor.column.update(|column| column + 1);
        }
        Ok(1)
    }
}

struct KeySeed<'c>(&'c Cursor<'c>);

impl<'de> DeserializeSeed<'de> for KeySeed<'_> {
    type Value = (String, Position);

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        let at = self.0.position();
        Ok((String::deserialize(deserializer)?, at))
    }
}

struct ItemSeed<'c>(&'c Cursor<'c>);

impl<'de> DeserializeSeed<'de> for ItemSeed<'_> {
    type Value = Located;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Located, D::Error> {
        PartSeed { cursor: self.0, at: self.0.position() }.deserialize(deserializer)
    }
}

#[derive(Clone, Copy)]
struct PartSeed<'c> {
    cursor: &'c Cursor<'c>,
    at: Position,
}

impl<'de> DeserializeSeed<'de> for PartSeed<'_> {
    type Value = Located;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Located, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl PartSeed<'_> {
    fn scalar<E: Error>(self, text: Option<&str>, value: Value) -> Result<Located, E> {
        self.cursor.meter.scalar(text.map_or(0, str::len)).map_err(E::custom)?;
        Ok(Located::new(Part::Scalar { text: text.map(str::to_owned), value: Ok(value) }, self.at))
    }
}

impl<'de> Visitor<'de> for PartSeed<'_> {
    type Value = Located;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<Located, E> {
        self.scalar(None, Value::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Located, E> {
        self.scalar(None, Value::Bool(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Located, E> {
        self.scalar(None, Value::Int(value))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Located, E> {
        self.scalar(None, Value::from(value))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Located, E> {
        self.scalar(None, Value::Float(value))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Located, E> {
        self.scalar(Some(value), Value::from(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Located, A::Error> {
        self.cursor.meter.array().map_err(A::Error::custom)?;
        let mut items = Vec::new();
        while let Some(item) = elements.next_element_seed(ItemSeed(self.cursor))? {
            items.push(item);
        }
        Ok(Located::sequence(items, self.at))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Located, A::Error> {
        self.cursor.meter.object().map_err(A::Error::custom)?;
        let mut members = BTreeMap::new();
        while let Some((key, at)) = entries.next_key_seed(KeySeed(self.cursor))? {
            self.cursor.meter.member(key.len()).map_err(A::Error::custom)?;
            let vacant = match members.entry(key) {
                Entry::Vacant(vacant) => vacant,
                Entry::Occupied(occupied) => {
                    self.cursor.duplicate.replace(Some((at, Some(occupied.key().clone()))));
                    return Err(A::Error::custom("a duplicate key"));
                }
            };
            let member = entries.next_value_seed(PartSeed { cursor: self.cursor, at });
            let member = member.inspect_err(|_| self.cursor.conceal_below(vacant.key()))?;
            vacant.insert(member);
        }
        Ok(Located::mapping(members, self.at))
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn located(bytes: &[u8]) -> Result<Option<Located>, PayloadError> {
        decode(bytes, &Meter::new(1 << 20))
    }

    fn places(part: &Located, path: &str, found: &mut Vec<String>) {
        found.push(format!("{path} {}:{}", part.at.line, part.at.column.unwrap()));
        match &part.part {
            Part::Scalar { .. } => {}
            Part::Sequence(items) => {
                for (index, item) in items.iter().enumerate() {
                    places(item, &format!("{path}/{index}"), found);
                }
            }
            Part::Mapping(members) => {
                for (key, member) in members {
                    places(member, &format!("{path}/{key}"), found);
                }
            }
        }
    }

    #[test]
    fn keys_within_a_secret_are_not_shown() {
        let error = located(b"{\"apiKey\": [{\"s3cret\": 1,\n \"s3cret\": 2}]}").unwrap_err();
        assert_eq!(
            error.to_string(),
            "cannot decode json, line 2, column 2: duplicate key, not shown because it may be part of a secret; put text \
             with braces in quotes, or keep one of the keys"
        );
    }

    #[test]
    fn the_place_of_a_member_is_its_key_and_that_of_an_item_its_start() {
        let text = "{\"a\" :\n [1, {\n  \"b\\\"\": null},\n\t\"x\"  , [ ]]\n , \"c\":\"d\"}\n";
        let mut found = Vec::new();
        places(&located(text.as_bytes()).unwrap().unwrap(), "", &mut found);
        assert_eq!(
            found,
            [" 1:1", "/a 1:2", "/a/0 2:3", "/a/1 2:6", "/a/1/b\" 3:3", "/a/2 4:2", "/a/3 4:9", "/c 5:4"]
        );
    }

    #[rstest]
    #[case(
        "{\"a\": 1,\n \"a\": 2}",
        "cannot decode json, line 2, column 2: duplicate key \"a\"; keep one of them"
    )]
    #[case(
        "{}\n {}",
        "cannot decode json, line 2, column 2: more text after the document; a file holds exactly one"
    )]
    #[case(
        "{\"a\": 18446744073709551616}",
        "cannot decode json, line 1, column 7: an integer outside of the 64-bit range; write it as a string"
    )]
    fn rejects(#[case] text: &str, #[case] message: &str) {
        assert_eq!(located(text.as_bytes()).unwrap_err().to_string(), message);
    }

    #[rstest]
    #[case("{\"a\":[null,true,-1,1.5,\"\\ud83d\\ude00\"],\"b\":{}}")]
    #[case("1e19")]
    fn the_value_is_that_of_the_payload_codec(#[case] text: &str) {
        let located = located(text.as_bytes()).unwrap().unwrap();
        assert_eq!(
            located.into_value().unwrap(),
            super::super::decode(text.as_bytes(), &Meter::new(1 << 20)).unwrap()
        );
    }

    #[test]
    fn a_blank_document_is_none() {
        assert!(located(b" \n").unwrap().is_none());
    }
}
