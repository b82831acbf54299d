//! Compiled rules and their evaluation for one resource.

use http::Method;

use super::identity::own_id;
use super::{Difference, Entry, Identity, MetadataError, differences, list};
use crate::path::LogicalPath;
use crate::payload::{Class, Descriptor, PayloadType, Value};

/// What can be done with a resource or collection on a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Operation {
    /// Read one resource.
    Get,
    /// Make a resource exist.
    Create,
    /// Change an existing resource.
    Update,
    /// Remove a resource.
    Delete,
    /// Read the members of a collection.
    List,
}

/// What a request is rendered from.
#[derive(Clone, Copy, Debug)]
pub struct Scope<'a> {
    /// The resource, or the collection itself for [`Operation::List`].
    pub path: &'a LogicalPath,
    /// The segment that addresses the resource on the server.
    pub remote_id: &'a str,
    /// How the resource is stored in the repository; decides media types.
    pub descriptor: Option<&'a Descriptor>,
}

/// A request as rules make it; the payload itself is added by whoever sends it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rendered {
    /// The HTTP method.
    pub method: Method,
    /// The path below the server's base URL, unencoded.
    pub path: String,
    /// The media type to ask for.
    pub accept: Descriptor,
    /// The media type of a body; `None` where the operation sends none.
    pub content: Option<Descriptor>,
}

/// The rules for all resources that the same metadata documents govern.
#[derive(Clone, Debug)]
pub struct Rules {
    requests: fn(Operation) -> (Method, Target),
}

/// Where a request goes, relative to the remote collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    Collection,
    Member,
}

/// Methods and paths where no metadata says otherwise.
const fn convention(operation: Operation) -> (Method, Target) {
    match operation {
        Operation::Get => (Method::GET, Target::Member),
        Operation::Create => (Method::POST, Target::Collection),
        Operation::Update => (Method::PUT, Target::Member),
        Operation::Delete => (Method::DELETE, Target::Member),
        Operation::List => (Method::GET, Target::Collection),
    }
}

impl Rules {
    /// The rules that hold where no metadata document exists.
    pub(super) fn conventions() -> Self {
        Self { requests: convention }
    }

    /// The names of the resource at `path`; `payload` is the desired one, or `None` for a read by path.
    pub fn identify(&self, path: &LogicalPath, payload: Option<&Value>) -> Result<Identity, MetadataError> {
        Identity::by_convention(path, payload)
    }

    /// Whether `payload` itself states the id that addresses it on the server.
    pub fn states_id(&self, payload: &Value) -> bool {
        own_id(payload).is_some()
    }

    /// The request that `operation` becomes.
    pub fn render(&self, operation: Operation, scope: Scope<'_>) -> Rendered {
        let (method, target) = (self.requests)(operation);
        let collection = match operation {
            Operation::List => Some(scope.path.clone()),
            _ => scope.path.parent(),
        };
        let collection = collection.unwrap_or_else(LogicalPath::root);
        let path = match target {
            Target::Collection => collection.as_str().to_owned(),
            Target::Member => format!("{}/{}", collection.as_str().trim_end_matches('/'), scope.remote_id),
        };
        let descriptor = wire_format(scope.descriptor);
        let content = matches!(operation, Operation::Create | Operation::Update).then(|| descriptor.clone());
        Rendered { method, path, accept: descriptor, content }
    }

    /// The entries of a list answer for `collection`.
    pub fn entries(&self, collection: &LogicalPath, answer: Value) -> Result<Vec<Entry>, MetadataError> {
        list::entries(collection, answer)
    }

    /// Whether a list answer says that it is only a part of the collection.
    pub fn is_partial(&self, answer: &Value) -> bool {
        list::is_partial(answer)
    }

    /// How `observed` departs from `desired`, sorted; empty when they are equal.
    ///
    /// An id that the server gave and the desired payload does not state is identity, not drift: without
    /// this, a collection with server-given ids could never converge.
    pub fn compare(&self, desired: &Value, observed: &Value) -> Vec<Difference> {
        let mut found = differences(desired, observed);
        if own_id(desired).is_none() && desired.get("id").is_none() {
            found.retain(|difference| difference.path != "/id");
        }
        found
    }
}

/// Structured payloads travel as JSON however they are stored; text and binary ones as what they are.
fn wire_format(descriptor: Option<&Descriptor>) -> Descriptor {
    match descriptor {
        Some(descriptor) if descriptor.payload_type.class() != Class::Structured => descriptor.clone(),
        _ => Descriptor::of(PayloadType::Json),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(Operation::Get, "/shops/rio", "GET /shops/17")]
    #[case(Operation::Create, "/shops/rio", "POST /shops")]
    #[case(Operation::Update, "/shops/rio", "PUT /shops/17")]
    #[case(Operation::Delete, "/shops/rio", "DELETE /shops/17")]
    #[case(Operation::List, "/shops", "GET /shops")]
    #[case(Operation::Get, "/rio", "GET /17")]
    #[case(Operation::Create, "/rio", "POST /")]
    fn conventions(#[case] operation: Operation, #[case] path: &str, #[case] expected: &str) {
        let path = LogicalPath::parse(path).unwrap();
        let rendered =
            Rules::conventions().render(operation, Scope { path: &path, remote_id: "17", descriptor: None });
        assert_eq!(format!("{} {}", rendered.method, rendered.path), expected);
    }

    #[test]
    fn yaml_travels_as_json_and_xml_as_itself() {
        let media_type = |extension| {
            let path = LogicalPath::parse("/a/b").unwrap();
            let descriptor = Descriptor::from_extension(extension);
            let scope = Scope { path: &path, remote_id: "b", descriptor: Some(&descriptor) };
            Rules::conventions().render(Operation::Update, scope).content.unwrap().media_type
        };
        assert_eq!(media_type(".yaml"), "application/json");
        assert_eq!(media_type(".xml"), "application/xml");
    }

    #[test]
    fn a_server_given_id_is_no_drift_but_a_declared_one_is() {
        let object = |members: &[(&str, i64)]| {
            Value::Object(members.iter().map(|(k, v)| ((*k).to_owned(), Value::Int(*v))).collect())
        };
        let rules = Rules::conventions();
        assert!(rules.compare(&object(&[("a", 1)]), &object(&[("a", 1), ("id", 9)])).is_empty());
        assert_eq!(rules.compare(&object(&[("id", 1)]), &object(&[("id", 9)])).len(), 1);
        assert_eq!(rules.compare(&object(&[("a", 1)]), &object(&[("a", 1), ("b", 9)])).len(), 1);
    }
}
