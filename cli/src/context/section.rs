//! Sections of a catalogue. One declaration defines the type, the strict decoder, the encoder and the JSON Schema, so
//! that they always agree.

use std::collections::BTreeMap;

use declarest_core::payload::fields::{Field, FieldError, Fields};
use declarest_core::payload::{Object, Value};
use serde_json::{Value as Json, json};

/// The definitions of a schema by name.
pub type Definitions = BTreeMap<String, Json>;

/// A type of a field in a catalogue.
pub trait Setting: Sized {
    /// Decodes the value. The error has the fault and its position.
    fn read(field: Field) -> Result<Self, FieldError>;

    /// Encodes the value; `None` omits the field.
    fn write(&self) -> Option<Value>;

    /// Returns the JSON Schema. Sections add theirs to `definitions` and return a reference.
    fn schema(definitions: &mut Definitions) -> Json;

    /// Returns the value of a missing field, or `None` if the field is required.
    fn absent() -> Option<Self> {
        None
    }
}

impl<T: Setting> Setting for Option<T> {
    fn read(field: Field) -> Result<Self, FieldError> {
        T::read(field).map(Some)
    }

    fn write(&self) -> Option<Value> {
        self.as_ref().and_then(T::write)
    }

    fn schema(definitions: &mut Definitions) -> Json {
        T::schema(definitions)
    }

    fn absent() -> Option<Self> {
        Some(None)
    }
}

impl<T: Setting> Setting for Vec<T> {
    fn read(field: Field) -> Result<Self, FieldError> {
        field.items()?.into_iter().map(T::read).collect()
    }

    fn write(&self) -> Option<Value> {
        (!self.is_empty()).then(|| Value::Array(self.iter().filter_map(T::write).collect()))
    }

    fn schema(definitions: &mut Definitions) -> Json {
        json!({"type": "array", "items": T::schema(definitions)})
    }

    fn absent() -> Option<Self> {
        Some(Self::new())
    }
}

impl Setting for BTreeMap<String, String> {
    fn read(field: Field) -> Result<Self, FieldError> {
        Ok(field.map(|_, field| field.text())?.unwrap_or_default())
    }

    fn write(&self) -> Option<Value> {
        let members = self.iter().map(|(key, text)| (key.clone(), Value::from(text.as_str())));
        (!self.is_empty()).then(|| Value::Object(members.collect()))
    }

    fn schema(definitions: &mut Definitions) -> Json {
        json!({"type": "object", "additionalProperties": String::schema(definitions)})
    }

    fn absent() -> Option<Self> {
        Some(Self::new())
    }
}

impl Setting for bool {
    fn read(field: Field) -> Result<Self, FieldError> {
        field.boolean()
    }

    fn write(&self) -> Option<Value> {
        Some(Value::Bool(*self))
    }

    fn schema(_: &mut Definitions) -> Json {
        json!({"type": "boolean"})
    }
}

impl Setting for String {
    fn read(field: Field) -> Result<Self, FieldError> {
        field.text()
    }

    fn write(&self) -> Option<Value> {
        Some(Value::from(self.as_str()))
    }

    /// The decoder also accepts the source text of other YAML scalars.
    fn schema(_: &mut Definitions) -> Json {
        json!({"type": ["string", "number", "boolean"]})
    }
}

/// A rule about the combination of fields in a section.
pub enum Rule {
    ExactlyOne(&'static [&'static str]),
    AtLeastOne(&'static [&'static str]),
    AtMostOne(&'static [&'static str]),
    /// The first needs the second.
    Needs(&'static str, &'static str),
}

impl Rule {
    pub fn check(&self, fields: &Fields) -> Result<(), FieldError> {
        let present = |keys: &[&'static str]| -> Vec<&'static str> {
            keys.iter().copied().filter(|key| fields.has(key)).collect()
        };
        let reason = match self {
            Self::ExactlyOne(keys) | Self::AtLeastOne(keys) if present(keys).is_empty() => {
                let one = if matches!(self, Self::ExactlyOne(_)) { "exactly" } else { "at least" };
                format!("has none of {}; set {one} one", keys.join(", "))
            }
            Self::ExactlyOne(keys) | Self::AtMostOne(keys) if present(keys).len() > 1 => {
                format!("has {}; keep one of them", present(keys).join(" and "))
            }
            Self::Needs(key, other) if fields.has(key) && !fields.has(other) => {
                format!("{key} needs {other}; set both or neither")
            }
            _ => return Ok(()),
        };
        Err(fields.fail(reason))
    }

    pub fn schema(&self) -> Json {
        let required = |key: &&str| json!({"required": [key]});
        match self {
            Self::ExactlyOne(keys) => json!({"oneOf": keys.iter().map(required).collect::<Vec<_>>()}),
            Self::AtLeastOne(keys) => json!({"anyOf": keys.iter().map(required).collect::<Vec<_>>()}),
            Self::AtMostOne(keys) => {
                let none = json!({"not": {"anyOf": keys.iter().map(required).collect::<Vec<_>>()}});
                json!({"oneOf": keys.iter().map(required).chain([none]).collect::<Vec<_>>()})
            }
            Self::Needs(key, other) => json!({"dependentRequired": {*key: [other]}}),
        }
    }
}

/// Returns the text of a doc comment.
pub fn text_of(lines: &[&str]) -> String {
    lines.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ")
}

/// Adds the field of a section to an object.
pub fn write_field(members: &mut Object, key: &str, value: Option<Value>) {
    if let Some(value) = value {
        members.insert(key.to_owned(), value);
    }
}

/// Declares a section: `/// about`, its name, rules between its fields, and the fields with their keys.
macro_rules! section {
    (
        $(#[doc = $about:literal])*
        $name:ident $([$($rule:expr),+ $(,)?])? {
            $( $(#[doc = $doc:literal])* $field:ident $key:literal : $kind:ty, )*
        }
    ) => {
        $(#[doc = $about])*
        #[derive(Clone, Debug, PartialEq)]
        #[allow(clippy::struct_field_names, reason = "fields are called like their keys")]
        pub struct $name {
            $( $(#[doc = $doc])* pub $field: $kind, )*
        }

        impl $crate::context::section::Setting for $name {
            fn read(
                field: declarest_core::payload::fields::Field,
            ) -> Result<Self, declarest_core::payload::fields::FieldError> {
                let mut fields = field.fields(&[$($key),*])?;
                $($( $rule.check(&fields)?; )+)?
                Ok(Self {
                    $( $field: match fields.read($key, $crate::context::section::Setting::read)? {
                        Some(value) => value,
                        None => <$kind as $crate::context::section::Setting>::absent()
                            .ok_or_else(|| fields.fail(concat!("\"", $key, "\" is missing")))?,
                    }, )*
                })
            }

            fn write(&self) -> Option<declarest_core::payload::Value> {
                let mut members = declarest_core::payload::Object::new();
                $( $crate::context::section::write_field(
                    &mut members,
                    $key,
                    $crate::context::section::Setting::write(&self.$field),
                ); )*
                Some(declarest_core::payload::Value::Object(members))
            }

            fn schema(definitions: &mut $crate::context::section::Definitions) -> serde_json::Value {
                let name = stringify!($name);
                if !definitions.contains_key(name) {
                    let mut properties = serde_json::Map::new();
                    let mut required: Vec<&str> = Vec::new();
                    $(
                        let mut property =
                            <$kind as $crate::context::section::Setting>::schema(definitions);
                        property["description"] = $crate::context::section::text_of(&[$($doc),*]).into();
                        properties.insert($key.to_owned(), property);
                        if <$kind as $crate::context::section::Setting>::absent().is_none() {
                            required.push($key);
                        }
                    )*
                    let rules: Vec<serde_json::Value> = vec![$($( $rule.schema() ),+)?];
                    let mut schema = serde_json::json!({
                        "description": $crate::context::section::text_of(&[$($about),*]),
                        "type": "object",
                        "additionalProperties": false,
                        "properties": properties,
                    });
                    if !required.is_empty() {
                        schema["required"] = required.into();
                    }
                    if !rules.is_empty() {
                        schema["allOf"] = rules.into();
                    }
                    definitions.insert(name.to_owned(), schema);
                }
                serde_json::json!({"$ref": format!("#/$defs/{name}")})
            }
        }
    };
}

pub(super) use section;
