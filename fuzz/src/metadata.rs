//! Metadata documents and the languages that they embed.

use std::sync::{Arc, LazyLock};

use declarest_core::language::jq::Context;
use declarest_core::language::template::IdentityTemplate;
use declarest_core::language::template::{
    DerivedFields, Descendants, Kind, MAX_OUTPUT, Observed, Scope, Target, Template, derive_fields,
};
use declarest_core::metadata::document::{Document, Layers, OperationName};
use declarest_core::metadata::transform::{Pipeline, Step};
use declarest_core::metadata::{Metadata, Rules, Subject};
use declarest_core::path::{LogicalPath, PathNames};
use declarest_core::payload::{Descriptor, PayloadType, Value, decode};
use declarest_core::repository::{Entry, EntryKind, RepositoryError, Revision, Tree};

use super::utf8;

/// A payload with a value of each kind.
static PAYLOAD: LazyLock<Value> = LazyLock::new(|| {
    let text = r#"{"id": 7, "name": "Rio", "open": true, "closed": null, "size": 2.5, "empty": "",
        "tags": ["a", "b/c", ""], "owner": {"name": "Ana", "e-mail": "a@b.test"}, "lines": "a\nb"}"#;
    decode(PayloadType::Json, text.as_bytes()).expect("JSON")
});

static PATH: LazyLock<LogicalPath> =
    LazyLock::new(|| LogicalPath::parse("/shops/rio/tills/t1").expect("a path"));

pub fn document(data: &[u8]) {
    for format in [PayloadType::Yaml, PayloadType::Json] {
        let Ok(document) = Document::decode(format, data) else { continue };
        let bytes = document.encode_yaml().expect("what was read can be written");
        let again = Document::decode(PayloadType::Yaml, &bytes).expect("what was written can be read");
        assert_eq!(again, document);
        assert_eq!(again.encode_yaml().expect("it was written before"), bytes);
        for collection in [false, true] {
            // Either answer is right; it is the same for a document that was written and read.
            let checked = document.validate(collection).map_err(|error| error.to_string());
            assert_eq!(again.validate(collection).map_err(|error| error.to_string()), checked);
        }
        let mut layers = Layers::default();
        let include = |_: &str| Ok(PAYLOAD.clone());
        if layers.push(&document, &include).is_ok() && layers.push(&again, &include).is_ok() {
            let _ = layers.resolve();
        }
    }
}

/// Renders each template for a resource and for a list.
pub fn template(data: &[u8]) {
    let Some(text) = utf8(data) else { return };
    for kind in [Kind::Path, Kind::RemoteCollectionPath, Kind::Method, Kind::Query, Kind::Header, Kind::Jq] {
        let Ok(template) = Template::parse(text, kind) else { continue };
        for is_list in [false, true] {
            if let Ok(rendered) = rendered(&template, is_list) {
                assert!(rendered.len() <= MAX_OUTPUT);
                assert!(kind != Kind::Header || !rendered.contains(['\r', '\n']), "{rendered:?}");
            }
        }
    }
}

fn rendered(template: &Template, is_list: bool) -> Result<String, impl std::error::Error> {
    let collection = PATH.parent().expect("not the root");
    let descendants = Descendants::new(&collection.parent().expect("not the root"), &PATH, &collection);
    let path = if is_list { &collection } else { &*PATH };
    let target =
        Target { path, collection: &collection, descendants: Some(&descendants), names: PathNames::Literal };
    let derived: DerivedFields = derive_fields(&target, &[]);
    template.render(&Scope {
        target,
        payload: (!is_list).then_some(&PAYLOAD),
        descriptor: Some(&Descriptor::of(PayloadType::Yaml)).filter(|_| !is_list),
        remote_collection: Some("/api/shops/rio/tills"),
        alias: if is_list { "" } else { "t1" },
        remote_id: if is_list { "" } else { "7" },
        derived: &derived,
        values: None,
        observed: Observed::Content(&PAYLOAD),
    })
}

pub fn identity_template(data: &[u8]) {
    let Some(text) = utf8(data) else { return };
    let Ok(template) = IdentityTemplate::parse(text) else { return };
    if let Ok(name) = template.evaluate(&PAYLOAD) {
        assert!(template.missing_in(&PAYLOAD).is_empty(), "{name:?} was made of what is missing");
    }
    for pointer in template.pointers() {
        let _ = pointer.get(&PAYLOAD);
    }
    let again = IdentityTemplate::parse(template.source()).expect("the same text");
    assert_eq!(again.evaluate(&PAYLOAD).ok(), template.evaluate(&PAYLOAD).ok());
}

pub fn jq(data: &[u8]) {
    let Some(text) = utf8(data) else { return };
    if let Ok(pipeline) = Pipeline::compile([Step::Jq(text.to_owned())]) {
        let _ = pipeline.apply(PAYLOAD.clone(), Context::default());
    }
}

/// The input is the document of a collection and, after a line `---`, the JSON that its server answers.
pub fn rules(data: &[u8]) {
    let Some(text) = utf8(data) else { return };
    let (document, answer) = text.split_once("\n---\n").unwrap_or((text, "[]"));
    let metadata = Metadata::new(Arc::new(OneDocument(document.as_bytes().to_vec())));
    let Ok(rules) = metadata.rules(&PATH) else { return };
    let answer = decode(PayloadType::Json, answer.as_bytes()).unwrap_or_default();
    list(&rules, answer.clone());
    for payload in [PAYLOAD.clone(), rules.seed(&PATH), answer] {
        resource(&rules, &payload);
    }
}

fn list(rules: &Rules, answer: Value) {
    let collection = PATH.parent().expect("not the root");
    let Ok(evaluation) = rules.on_collection(&collection) else { return };
    let _ = evaluation.render(OperationName::List);
    let Ok(answer) = evaluation.transform(OperationName::List, answer) else { return };
    for entry in rules.entries(&collection, answer).unwrap_or_default().named {
        for names in [PathNames::Literal, PathNames::PercentEncoded] {
            if let Ok(path) = entry.path(&collection, names) {
                assert!(path.is_within(&collection), "{path:?}");
            }
        }
    }
}

fn resource(rules: &Rules, payload: &Value) {
    let Ok(identity) = rules.identify(&PATH, payload) else { return };
    let subject = Subject { path: &PATH, identity: &identity, payload: Some(payload), descriptor: None };
    let Ok(evaluation) = rules.on_resource(subject) else { return };
    for operation in OperationName::ALL {
        let Ok(rendered) = evaluation.render(operation) else { continue };
        assert!(rendered.path.starts_with('/'), "{rendered:?}");
        let _ = evaluation.body(operation, &rendered, payload);
        let _ = evaluation.transform(operation, payload.clone());
    }
}

/// A repository with nothing but `shops/_/tills/_/metadata.yaml`.
struct OneDocument(Vec<u8>);

impl OneDocument {
    const PLACE: [&str; 5] = ["shops", "_", "tills", "_", "metadata.yaml"];
}

impl Tree for OneDocument {
    fn entries(&self, directory: &str) -> Result<Option<Vec<Entry>>, RepositoryError> {
        let depth = directory.split('/').filter(|name| !name.is_empty()).count();
        let found = Self::PLACE.get(depth).filter(|_| directory == Self::PLACE[..depth].join("/"));
        let kind = if depth + 1 < Self::PLACE.len() { EntryKind::Directory } else { EntryKind::File };
        Ok(found.map(|name| vec![Entry { name: (*name).to_owned(), kind }]))
    }

    fn read_within(&self, file: &str, _: u64) -> Result<Option<Vec<u8>>, RepositoryError> {
        Ok((file == Self::PLACE.join("/")).then(|| self.0.clone()))
    }

    fn revision(&self) -> Option<&Revision> {
        None
    }
}
