//! The parameters of operations.

use std::collections::BTreeMap;

use http::Method;

use super::reference::follow;
use super::{OpenApi, PathItem};
use crate::payload::Value;
use crate::payload::pointer::Pointer;

impl OpenApi {
    /// Returns the schemas of the query parameters of an operation and of its path, by name. References that cannot be
    /// resolved are skipped.
    pub fn query_parameters(&self, path: &PathItem, method: &Method) -> BTreeMap<&str, &Value> {
        let at = Pointer::from_token("paths").child(path.template());
        let Ok(item) = follow(&self.root, at) else { return BTreeMap::new() };
        let of_operation = item.member(&method.as_str().to_ascii_lowercase());
        let lists = [item.member("parameters"), of_operation.map(|operation| operation.child("parameters"))];
        let parameters = lists.into_iter().flatten().flat_map(|list| {
            let count = list.get(&self.root).and_then(Value::as_array).map_or(0, <[Value]>::len);
            (0..count).map(move |index| list.child(&index.to_string()))
        });
        parameters.filter_map(|at| self.query_parameter(at)).collect()
    }

    fn query_parameter(&self, at: Pointer) -> Option<(&str, &Value)> {
        let parameter = follow(&self.root, at).ok()?;
        let text = |key| parameter.value.get(key).and_then(Value::as_str);
        if text("in") != Some("query") {
            return None;
        }
        // Version 2 states the keywords of the schema in the parameter itself.
        let schema = parameter.member("schema").and_then(|schema| follow(&self.root, schema).ok());
        Some((text("name")?, schema.map_or(parameter.value, |schema| schema.value)))
    }
}
