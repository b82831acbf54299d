//! The scope of templates: resolves names to values.

use std::collections::BTreeMap;

use super::derive::DerivedFields;
use super::field::FIXED_FIELDS;
use super::operand::Operand;
use super::target::Target;
use crate::language::referred::ReferenceValues;
use crate::payload::{Descriptor, Object, PayloadType, Value};

/// The values that a template can refer to, borrowed.
///
/// A name is looked up in this order. The first match applies, even if its value is null:
///
/// 1. `payload` and `value` (the whole payload, with the derived fields if it is an object), `payloadType`,
///    `payloadMediaType`, `payloadExtension`, `remoteCollectionPath`, and below a root of descendants
///    `descendantPath` and `descendantCollectionPath`;
/// 2. the members of an object payload;
/// 3. `logicalPath`, `logicalCollectionPath`, `alias`, `remoteID`, and `id`, which is the remote id unless it is
///    blank;
/// 4. path-derived fields, then plural fields;
/// 5. `aliases`, the names of the parents in the repository, and `ids`, their names on the server;
/// 6. `contentType`, the active media type, unless the payload is an object.
///
/// A payload's own `id` therefore hides the remote id; `remoteID` is always the remote id.
#[derive(Clone, Copy, Debug)]
pub struct Scope<'a> {
    /// The resource or collection of the operation.
    pub target: Target<'a>,
    /// The desired payload, or the seed of a read by path alone; `None` for a list.
    pub payload: Option<&'a Value>,
    /// The explicit descriptor of the payload, otherwise that of a concrete `format`. If it is `None`, the payload
    /// determines the type: bytes are `octet-stream`, a string is `text`, other values are `json`.
    pub descriptor: Option<&'a Descriptor>,
    /// The rendered remote collection; `None` while it is rendered itself, when the logical collection is used instead.
    pub remote_collection: Option<&'a str>,
    /// The alias; blank for a list.
    pub alias: &'a str,
    /// The remote id; blank for a list.
    pub remote_id: &'a str,
    /// The fields that are derived from the path.
    pub derived: &'a DerivedFields,
    /// The values of other resources; without them, `ref` is an error.
    pub values: Option<&'a dyn ReferenceValues>,
    /// The content of the resource on the server, for `$observed`.
    pub observed: Observed<'a>,
}

/// The content of the resource on the server.
#[derive(Clone, Copy, Debug, Default)]
pub enum Observed<'a> {
    /// There is none, as in all operations except updates and deletions.
    #[default]
    Nothing,
    /// It is not known. Each of its members is an empty text, so that the rest of a request can be rendered.
    Unknown,
    /// This content.
    Content(&'a Value),
}

impl<'a> Observed<'a> {
    /// Returns the content, if it is known.
    pub fn content(self) -> Option<&'a Value> {
        if let Self::Content(content) = self { Some(content) } else { None }
    }

    pub(super) fn operand(self) -> Operand<'a> {
        match self {
            Self::Nothing => Operand::Missing,
            Self::Unknown => Operand::Field(""),
            Self::Content(content) => Operand::Value(content),
        }
    }
}

impl<'a> Scope<'a> {
    /// Returns the field called `name`.
    pub(super) fn field(&self, name: &str) -> Operand<'a> {
        self.engine_field(name)
            .or_else(|| self.members().and_then(|members| members.get(name)).map(Operand::Value))
            .or_else(|| self.identity_field(name).map(Operand::Field))
            .or_else(|| self.derived.get(name).map(Operand::Field))
            .or_else(|| self.derived.of_parents(name).map(Operand::Value))
            .or_else(|| self.content_type(name).map(Operand::Field))
            .unwrap_or(Operand::Missing)
    }

    /// Returns the field `name` of the payload with derived fields.
    pub(super) fn payload_field(&self, name: &str) -> Operand<'a> {
        let member = self.members().and_then(|members| members.get(name)).map(Operand::Value);
        member.or_else(|| self.derived.get(name).map(Operand::Field)).unwrap_or(Operand::Missing)
    }

    /// Returns all fields of the root, by name.
    pub(super) fn fields(&self) -> BTreeMap<&'a str, Operand<'a>> {
        let members = self.members().into_iter().flatten().map(|(name, _)| name.as_str());
        let names = FIXED_FIELDS.into_iter().chain(members).chain(self.derived.names());
        names
            .map(|name| (name, self.field(name)))
            .filter(|(_, field)| !matches!(field, Operand::Missing))
            .collect()
    }

    /// Returns all fields of the payload with derived fields, by name.
    pub(super) fn payload_fields(&self) -> BTreeMap<&'a str, Operand<'a>> {
        let members = self.members().into_iter().flatten().map(|(name, _)| name.as_str());
        members.chain(self.derived.names()).map(|name| (name, self.payload_field(name))).collect()
    }

    /// The active payload type.
    pub(super) fn payload_type(&self) -> PayloadType {
        match (self.descriptor, self.payload) {
            (Some(descriptor), _) => descriptor.payload_type,
            (None, Some(Value::Bytes(_))) => PayloadType::OctetStream,
            (None, Some(Value::String(_))) => PayloadType::Text,
            (None, _) => PayloadType::Json,
        }
    }

    /// The active media type.
    pub(super) fn media_type(&self) -> &'a str {
        self.descriptor.map_or_else(|| self.payload_type().media_type(), |descriptor| descriptor.media_type)
    }

    /// The active extension, with its dot.
    pub(super) fn extension(&self) -> &'a str {
        self.descriptor.map_or_else(|| self.payload_type().extension(), |descriptor| &descriptor.extension)
    }

    fn engine_field(&self, name: &str) -> Option<Operand<'a>> {
        Some(match name {
            "payload" | "value" => match self.payload {
                None | Some(Value::Object(_)) => Operand::Payload,
                Some(payload) => Operand::Value(payload),
            },
            "payloadType" => Operand::Field(self.payload_type().name()),
            "payloadMediaType" => Operand::Field(self.media_type()),
            "payloadExtension" => Operand::Field(self.extension()),
            "remoteCollectionPath" => {
                Operand::Field(self.remote_collection.unwrap_or_else(|| self.target.collection.as_str()))
            }
            "descendantPath" => Operand::Field(self.target.descendants?.path()),
            "descendantCollectionPath" => Operand::Field(self.target.descendants?.collection()),
            _ => return None,
        })
    }

    fn identity_field(&self, name: &str) -> Option<&'a str> {
        match name {
            "logicalPath" => Some(self.target.path.as_str()),
            "logicalCollectionPath" => Some(self.target.collection.as_str()),
            "alias" => Some(self.alias),
            "remoteID" => Some(self.remote_id),
            "id" => Some(self.remote_id).filter(|id| !id.trim().is_empty()),
            _ => None,
        }
    }

    fn content_type(&self, name: &str) -> Option<&'a str> {
        (name == "contentType" && self.members().is_none()).then(|| self.media_type())
    }

    fn members(&self) -> Option<&'a Object> {
        self.payload.and_then(Value::as_object)
    }
}
