//! The `OpenAPI` documents of servers.

use std::sync::LazyLock;

use declarest_core::metadata::document::OperationName;
use declarest_core::metadata::inference::{infer, infer_all};
use declarest_core::metadata::openapi::schema::Schema;
use declarest_core::metadata::openapi::{ApiOperation, OpenApi, PathItem};
use declarest_core::payload::{PayloadType, Value, decode};

/// So many paths are looked at; the work for further ones is the same.
const PATHS: usize = 16;

static PAYLOAD: LazyLock<Value> = LazyLock::new(|| {
    let text = r#"{"id": 7, "name": "Rio", "open": true, "tags": ["a"], "closed": null,
        "parent": {"id": 1.5, "parent": {"parent": {"children": [{}, {"parent": {}}]}}}}"#;
    decode(PayloadType::Json, text.as_bytes()).expect("JSON")
});

pub fn document(data: &[u8]) {
    let Ok(document) = OpenApi::parse(data) else { return };
    for path in ["/shops", "/shops/rio", "/shops/rio/tills/t1", "", "/"] {
        if let Some(item) = document.path(path, "/api/v2") {
            assert!(document.exact_path(item.template()).is_some(), "{} is not indexed", item.template());
        }
    }
    for item in document.paths().take(PATHS) {
        let found = document.path(item.template(), "/").expect("each path is found by its text");
        assert_eq!(found.template(), item.template());
        assert!(
            document.paths_with_length(item.segments().len()).any(|same| same.template() == item.template())
        );
        operations(&document, item);
    }
    for target in ["/shops/", "/shops/_/tills/_", "/shops/rio"] {
        let short = infer(target, Some(&document)).expect("a path");
        let long = infer_all(target, Some(&document)).expect("a path");
        for inferred in [short, long] {
            let bytes = inferred.encode_yaml().expect("inferred metadata can be written");
            let again = declarest_core::metadata::document::Document::decode(PayloadType::Yaml, &bytes);
            assert_eq!(again.expect("inferred metadata can be read"), inferred);
        }
    }
}

fn operations(document: &OpenApi, item: &PathItem) {
    for name in OperationName::ALL {
        if let Some(method) = item.default_method(name) {
            assert!(item.require(method).is_ok(), "{method} of {} is a default", item.template());
        }
    }
    for operation in item.operations() {
        for media in operation.request().iter().chain(operation.response()) {
            let _ = document.payload_type(media);
        }
        for format in [None, Some(PayloadType::Json), Some(PayloadType::Text)] {
            let _ = (operation.request_media_type(format), operation.response_media_type(format));
        }
        schemas(document, operation);
    }
}

fn schemas(document: &OpenApi, operation: &ApiOperation) {
    for pointer in [operation.request_schema(), operation.response_schema()].into_iter().flatten() {
        let Ok(schema) = Schema::compile(document, pointer) else { continue };
        let _ = schema.check(&PAYLOAD);
        let empty = Value::Object([].into());
        if let Some(fields) = PAYLOAD.as_object() {
            let _ = schema.complete(&empty, fields).map(|completed| schema.check(&completed));
        }
    }
}
