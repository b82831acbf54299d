//! Tests of templates.

mod derived;
mod functions;
mod guards;
mod language;
mod scope;
mod syntax;

use super::*;
use crate::path::{LogicalPath, PathNames};
use crate::payload::{Descriptor, PayloadType, Value, decode};

/// A resource to render templates for: `/shops/rio/tills/t1` with the remote id 7.
struct Resource {
    path: LogicalPath,
    collection: LogicalPath,
    payload: Option<Value>,
    descriptor: Option<Descriptor>,
    remote_collection: Option<String>,
    remote_id: String,
    descendants: Option<Descendants>,
    derived: DerivedFields,
}

impl Resource {
    fn new(payload: &str) -> Self {
        Self::at("/shops/rio/tills/t1", payload)
    }

    fn at(path: &str, payload: &str) -> Self {
        let path = LogicalPath::parse(path).unwrap();
        Self {
            collection: path.parent().unwrap(),
            path,
            payload: Some(decode(PayloadType::Yaml, payload.as_bytes()).unwrap()),
            descriptor: None,
            remote_collection: None,
            remote_id: "7".to_owned(),
            descendants: None,
            derived: DerivedFields::default(),
        }
    }

    /// Returns the collection itself, as the target of lists.
    fn list(path: &str) -> Self {
        let collection = LogicalPath::parse(path).unwrap();
        Self {
            path: collection.clone(),
            payload: None,
            remote_id: String::new(),
            collection,
            ..Self::at("/a/b", "{}")
        }
    }

    fn below(mut self, root: &str) -> Self {
        let root = LogicalPath::parse(root).unwrap();
        self.descendants = Some(Descendants::new(&root, &self.path, &self.collection));
        self
    }

    fn derive(mut self, patterns: &[PathPattern]) -> Self {
        self.derived = derive_fields(&self.target(), patterns);
        self
    }

    fn target(&self) -> Target<'_> {
        let descendants = self.descendants.as_ref();
        Target { path: &self.path, collection: &self.collection, descendants, names: PathNames::Literal }
    }

    fn scope(&self) -> Scope<'_> {
        Scope {
            target: self.target(),
            payload: self.payload.as_ref(),
            descriptor: self.descriptor.as_ref(),
            remote_collection: self.remote_collection.as_deref(),
            alias: if self.payload.is_some() { self.path.name() } else { "" },
            remote_id: &self.remote_id,
            derived: &self.derived,
            values: None,
            observed: Observed::Nothing,
        }
    }

    fn render(&self, kind: Kind, template: &str) -> Result<String, TemplateError> {
        Template::parse(template, kind).unwrap().render(&self.scope())
    }
}

fn render(template: &str, payload: &str) -> Result<String, TemplateError> {
    Resource::new(payload).render(Kind::Query, template)
}
