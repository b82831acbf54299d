//! Converts the effective metadata of a path to a document.

use super::{
    DefaultsSection, DefaultsSource, Document, OperationDefaultsSection, OperationName, OperationSection,
    OperationsSection, Resolved, ResolvedOperation, ResourceSection, ValidateSection,
};
use crate::secrets::DeclaredSecrets;

impl Resolved {
    /// Returns the secrets in the payloads of the resource.
    pub fn declared_secrets(&self) -> DeclaredSecrets {
        DeclaredSecrets::new(self.secret, &self.secret_attributes)
    }

    /// Returns one document with the merged content of all documents, without absent, empty and false values.
    pub fn to_document(&self) -> Document {
        let resource = self.resource_section();
        let operations: Vec<_> = OperationName::ALL
            .into_iter()
            .map(|name| (name, self.operation(name).section()))
            .filter(|(_, section)| *section != OperationSection::default())
            .collect();
        let shared =
            OperationDefaultsSection { transforms: present(&self.transforms), failed: self.failed.clone() };
        let operations = OperationsSection {
            defaults: (shared != OperationDefaultsSection::default()).then_some(shared),
            operations: operations.into_iter().collect(),
        };
        Document {
            selector: None,
            resource: (resource != ResourceSection::default()).then_some(resource),
            operations: (operations != OperationsSection::default()).then_some(operations),
        }
    }

    pub(in crate::metadata) fn resource_section(&self) -> ResourceSection {
        let defaults = (!self.defaults.is_empty()).then(|| DefaultsSection {
            value: Some(DefaultsSource::Inline(self.defaults.clone())),
            ..DefaultsSection::default()
        });
        ResourceSection {
            id: self.id.clone(),
            alias: self.alias.clone(),
            remote_collection_path: self.remote_collection_path.clone(),
            path_names: self.path_names,
            format: self.format,
            required_attributes: present(&self.required_attributes),
            secret: self.secret.then_some(true),
            secret_attributes: present(&self.secret_attributes),
            singleton: self.singleton.then_some(true),
            on_remove: self.on_remove.clone(),
            write_only_attributes: present(&self.write_only_attributes),
            deferred_attributes: present(&self.deferred_attributes),
            replace_on: present(&self.replace_on),
            depends_on: present(&self.depends_on),
            externalized_attributes: present(&self.externalized_attributes),
            defaults,
        }
    }
}

impl ResolvedOperation {
    /// Returns the section of the operation, without absent and empty values.
    pub fn section(&self) -> OperationSection {
        let validate = ValidateSection {
            required_attributes: present(&self.validation.required_attributes),
            schema_ref: self.validation.schema_ref.clone(),
            assertions: present(&self.validation.assertions),
        };
        OperationSection {
            method: self.method.clone(),
            path: self.path.clone(),
            query: (!self.query.is_empty()).then(|| self.query.clone()),
            headers: (!self.headers.is_empty()).then(|| self.headers.clone()),
            from: self.from,
            absent: self.absent.clone(),
            failed: self.failed.clone(),
            mode: self.mode,
            arrays: (!self.arrays.is_empty()).then(|| self.arrays.clone()),
            body: self.body.clone(),
            transforms: present(&self.transforms),
            validate: (validate != ValidateSection::default()).then_some(validate),
            pagination: self.pagination.clone(),
        }
    }
}

fn present<T: Clone>(list: &[T]) -> Option<Vec<T>> {
    (!list.is_empty()).then(|| list.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::document::Layers;
    use crate::payload::PayloadType;

    fn resolve(document: &Document) -> Resolved {
        let mut layers = Layers::default();
        layers.push(document, &|file| Err(format!("cannot include {file}").into())).unwrap();
        layers.resolve().unwrap()
    }

    #[test]
    fn a_document_is_restored() {
        let text = b"resource: {id: /uid, alias: /name, remoteCollectionPath: /v2, format: json, \
            requiredAttributes: [/name], secretAttributes: [/pin], \
            externalizedAttributes: [{path: /run, file: run.sh}], defaults: {value: {tier: silver}}}\n\
            operations:\n  defaults: {transforms: [{excludeAttributes: [/etag]}], failed: {jq: .error}}\n  \
            create: {failed: {jq: .code != 0}, method: PUT, path: ./x, query: {a: b}, headers: {X: y}, body: {c: 1}, \
            transforms: [{jqExpression: .a}], validate: {requiredAttributes: [/a], \
            schemaRef: 'openapi:request-body', assertions: [{jq: .a}]}}\n  \
            list: {pagination: {style: offset, parameter: first, size: 2}}\n";
        let document = Document::decode(PayloadType::Yaml, text).unwrap();
        assert_eq!(resolve(&document).to_document(), document);
    }

    #[test]
    fn empty_values_are_omitted() {
        let text = b"selector: {descendants: true}\nresource: {secret: false, requiredAttributes: []}\n\
            operations: {defaults: {transforms: []}, get: {query: {}}}\n";
        let document = Document::decode(PayloadType::Yaml, text).unwrap();
        assert_eq!(resolve(&document).to_document(), Document::default());
    }
}
