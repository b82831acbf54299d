//! Metadata with its templates rendered, to show it to users.

use super::document::{Document, Headers, OperationName, OperationSection, OperationsSection};
use super::{Evaluation, MetadataError, Rendered};

impl Evaluation<'_> {
    /// Returns `operation` as it is for this resource: the request, including the parts that come from conventions and
    /// from the server's `OpenAPI` document, all steps in their order, and the validation of a body. Compare has no
    /// method, because it sends nothing.
    pub fn section(&self, operation: OperationName) -> Result<OperationSection, MetadataError> {
        let rendered = self.render(operation)?;
        let steps = self.steps(operation)?;
        let sends = operation != OperationName::Compare;
        let said = self.rules.resolved.operation(operation);
        let stated = said.section();
        let writes = matches!(operation, OperationName::Create | OperationName::Update);
        let headers = headers(&said.headers, &rendered, sends, writes || stated.body.is_some());
        Ok(OperationSection {
            method: sends.then(|| rendered.method.to_string()),
            path: Some(rendered.path),
            query: (!rendered.query.is_empty()).then(|| rendered.query.into_iter().collect()),
            headers: (!headers.is_empty()).then_some(headers),
            transforms: (!steps.is_empty()).then_some(steps),
            ..stated
        })
    }

    /// Returns the metadata of this resource or collection, with its names and operations rendered. A template that
    /// cannot be rendered stays as metadata states it.
    pub fn document(&self) -> Document {
        let mut resource = self.rules.resolved.resource_section();
        let named = |name: &String| (!name.is_empty()).then(|| name.clone());
        resource.id = named(&self.subject.identity.remote_id).or(resource.id);
        resource.alias = named(&self.subject.identity.alias).or(resource.alias);
        resource.remote_collection_path = Some(self.remote_collection().to_owned());
        let depends_on = self.dependencies().unwrap_or_default();
        if !depends_on.is_empty() {
            resource.depends_on = Some(depends_on.iter().map(ToString::to_string).collect());
        }
        let operations = OperationName::ALL.into_iter().map(|operation| {
            let stated = || self.rules.resolved.operation(operation).section();
            (operation, self.section(operation).unwrap_or_else(|_| stated()))
        });
        let operations = OperationsSection { defaults: None, operations: operations.collect() };
        Document { selector: None, resource: Some(resource), operations: Some(operations) }
    }
}

/// Returns the headers of a request, in the spelling of the documents.
fn headers(stated: &Headers, rendered: &Rendered, sends: bool, has_body: bool) -> Headers {
    let mut headers = Headers::default();
    for (name, value) in &rendered.headers {
        let spelling =
            stated.iter().map(|(name, _)| name).find(|stated| name.as_str().eq_ignore_ascii_case(stated));
        let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
        headers.insert(spelling.unwrap_or(name.as_str()), value);
    }
    if sends {
        headers.insert("Accept", rendered.accept.clone());
    }
    if has_body {
        headers.insert("Content-Type", rendered.content_type.clone());
    }
    headers
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crate::metadata::{Identity, Metadata, Source, Subject};
    use crate::path::LogicalPath;
    use crate::payload::{PayloadType, decode, encode};
    use crate::repository::DirTree;

    fn shown(metadata: &str) -> String {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(root.path().join("shops/_")).unwrap();
        std::fs::write(root.path().join("shops/_/metadata.yaml"), metadata).unwrap();
        let tree = Arc::new(DirTree::open(root.path()).unwrap());
        let path = LogicalPath::parse("/shops/rio").unwrap();
        let rules = Metadata::layered(vec![Arc::new(Source::repository(tree))]).rules(&path).unwrap();
        let payload = decode(PayloadType::Json, br#"{"uid":7,"name":"Rio"}"#).unwrap();
        let identity = Identity { alias: "Rio".to_owned(), remote_id: "7".to_owned() };
        let subject = Subject { path: &path, identity: &identity, payload: Some(&payload), descriptor: None };
        let document = rules.on_resource(subject).unwrap().document();
        String::from_utf8(encode(PayloadType::Yaml, &document.to_value()).unwrap()).unwrap()
    }

    #[test]
    fn templates_are_rendered() {
        let metadata = "resource: {id: /uid, alias: /name, remoteCollectionPath: '/v2/{{/name}}'}\n\
            operations:\n  defaults: {transforms: [{jqExpression: '.n = \"{{/name}}\"'}]}\n  \
            get: {query: {q: '{{/uid}}'}, headers: {X-A: '{{/name}}'}}\n  \
            update: {method: PATCH, transforms: [{excludeAttributes: [/uid]}]}\n";
        insta::assert_snapshot!(shown(metadata), @r#"
        operations:
            compare:
                path: /v2/Rio/7
                transforms:
                    - jqExpression: .n = "Rio"
            create:
                headers:
                    Accept: application/json
                    Content-Type: application/json
                method: POST
                path: /v2/Rio
                transforms:
                    - jqExpression: .n = "Rio"
            delete:
                headers:
                    Accept: application/json
                method: DELETE
                path: /v2/Rio/7
                transforms:
                    - jqExpression: .n = "Rio"
            get:
                headers:
                    Accept: application/json
                    X-A: Rio
                method: GET
                path: /v2/Rio/7
                query:
                    q: "7"
                transforms:
                    - jqExpression: .n = "Rio"
            list:
                headers:
                    Accept: application/json
                method: GET
                path: /v2/Rio
                transforms:
                    - jqExpression: .n = "Rio"
            update:
                headers:
                    Accept: application/json
                    Content-Type: application/json
                method: PATCH
                path: /v2/Rio/7
                transforms:
                    - jqExpression: .n = "Rio"
                    - excludeAttributes:
                        - /uid
        resource:
            alias: Rio
            id: "7"
            remoteCollectionPath: /v2/Rio
        "#);
    }

    #[test]
    fn templates_that_cannot_be_rendered_stay() {
        let shown = shown("operations: {delete: {path: './{{/no/such}}'}}");
        assert!(shown.contains("path: ./{{/no/such}}"), "{shown}");
        assert!(shown.contains("path: /shops/7"), "{shown}");
    }
}
