//! Converts Swagger 2.0 documents to `OpenAPI` 3.
//!
//! Only the parts that are used are converted: bodies and responses with their media types, and the locations of
//! schemas. The additions refer to the original parts instead of copying them, so a document does not grow much. Form
//! data is not converted.

use super::operation::{MAX_MEDIA_TYPES, METHODS};
use super::paths::MAX_TEMPLATE;
use super::reference::{Part, follow, reference_to};
use crate::payload::pointer::Pointer;
use crate::payload::{Object, PayloadType, Value};

/// Sections with a new location: the name below `components`, and the old name.
const SECTIONS: [(&str, &str); 3] =
    [("schemas", "definitions"), ("parameters", "parameters"), ("responses", "responses")];

/// Returns whether the document states that it is Swagger 2: `"2"`, `"2.x"` or a number in [2, 3).
pub fn is_version_2(root: &Object) -> bool {
    match root.get("swagger") {
        Some(Value::String(version)) => version == "2" || version.starts_with("2."),
        Some(Value::Int(version)) => *version == 2,
        Some(Value::Float(version)) => (2.0..3.0).contains(version),
        _ => false,
    }
}

/// Adds the `OpenAPI` 3 form of the parts that Swagger 2 states differently. Existing parts are kept.
pub fn upgrade(root: Object) -> Object {
    let document = Value::Object(root);
    let additions = additions(&document);
    let Value::Object(mut root) = document else { return Object::new() };
    for addition in additions {
        addition.apply(&mut root);
    }
    fill_components(&mut root);
    root
}

fn fill_components(root: &mut Object) {
    let moved: Vec<_> =
        SECTIONS.into_iter().filter_map(|(new, old)| Some((new, root.get(old)?.clone()))).collect();
    let components = root.entry("components".to_owned()).or_insert_with(|| Value::Object(Object::new()));
    if let Value::Object(components) = components {
        for (name, section) in moved {
            components.entry(name.to_owned()).or_insert(section);
        }
    }
}

/// Content in the form of version 3, for `key` of the object at `holder`.
struct Addition {
    holder: Pointer,
    key: String,
    content: Value,
}

impl Addition {
    fn new(holder: Pointer, key: &str, media_types: &[&str], schema: &Pointer) -> Self {
        let object = |key: &str, value| Value::Object([(key.to_owned(), value)].into());
        let media =
            media_types.iter().map(|name| ((*name).to_owned(), object("schema", reference_to(schema))));
        let content = object("content", Value::Object(media.collect()));
        Self { holder, key: key.to_owned(), content }
    }

    fn apply(self, root: &mut Object) {
        let holder =
            self.holder.tokens().iter().try_fold(root, |object, token| match object.get_mut(token) {
                Some(Value::Object(members)) => Some(members),
                _ => None,
            });
        let Some(holder) = holder else { return };
        let entry = holder.entry(self.key).or_insert_with(|| Value::Object(Object::new()));
        match (entry, self.content) {
            (Value::Object(present), Value::Object(added)) if !present.contains_key("$ref") => {
                present.extend(added);
            }
            // A shared response gets the media types of the operation that uses it.
            (entry, added) => *entry = added,
        }
    }
}

fn additions(document: &Value) -> Vec<Addition> {
    let mut found = Vec::new();
    let paths = document.get("paths").and_then(Value::as_object);
    for (path, item) in paths.into_iter().flatten().filter(|(path, _)| path.len() <= MAX_TEMPLATE) {
        for (method, _) in METHODS {
            let Some(operation) = item.get(method) else { continue };
            let levels = [operation, item, document];
            let at: Pointer = ["paths", path, method].map(str::to_owned).into_iter().collect();
            let parameter = |place| parameter(document, operation, item, &at, place);
            if operation.get("requestBody").is_some() {
                // It stays.
            } else if let Some(schema) = parameter("body").and_then(|part| part.member("schema")) {
                let media_types = media_types(levels, "consumes");
                found.push(Addition::new(at.clone(), "requestBody", &media_types, &schema));
            } else if parameter("formData").is_some() {
                // Its media types are not converted.
                let (key, content) = ("requestBody".to_owned(), Value::Object(Object::new()));
                found.push(Addition { holder: at.clone(), key, content });
            }
            let responses = operation.get("responses").and_then(Value::as_object);
            for (status, response) in responses.into_iter().flatten() {
                let holder = at.child("responses");
                let Ok(part) = follow(document, holder.child(status)) else { continue };
                if response.get("content").is_none()
                    && let Some(schema) = part.member("schema")
                {
                    let media_types = media_types(levels, "produces");
                    found.push(Addition::new(holder, status, &media_types, &schema));
                }
            }
        }
    }
    found
}

/// Returns the first parameter in this place of the operation, otherwise of the path item.
fn parameter<'d>(
    document: &'d Value,
    operation: &Value,
    item: &Value,
    at: &Pointer,
    place: &str,
) -> Option<Part<'d>> {
    let item_at: Pointer = at.tokens().iter().take(2).cloned().collect();
    let lists = [(operation, at), (item, &item_at)];
    let parameters = lists.into_iter().flat_map(|(holder, at)| {
        let count = holder.get("parameters").and_then(Value::as_array).map_or(0, <[Value]>::len);
        let list = at.child("parameters");
        (0..count).map(move |index| list.child(&index.to_string()))
    });
    let mut parameters = parameters.filter_map(|parameter| follow(document, parameter).ok());
    parameters.find(|part| part.value.get("in").and_then(Value::as_str) == Some(place))
}

/// Returns the first list that names a media type, otherwise JSON.
fn media_types<'d>(levels: [&'d Value; 3], key: &str) -> Vec<&'d str> {
    let lists = levels.into_iter().filter_map(|level| level.get(key).and_then(Value::as_array));
    let named = lists.map(|list| list.iter().filter_map(Value::as_str).take(MAX_MEDIA_TYPES).collect());
    named
        .into_iter()
        .find(|names: &Vec<&str>| !names.is_empty())
        .unwrap_or_else(|| vec![PayloadType::Json.media_type()])
}
