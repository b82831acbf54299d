//! The indexed paths of a document.

use std::collections::HashMap;
use std::sync::Arc;

use http::Method;

use super::operation::{ApiOperation, Bodies, METHODS, default_method, unknown_method};
use super::reference::follow;
use super::servers::strip;
use super::{OpenApiError, Segment};
use crate::metadata::document::OperationName;
use crate::payload::Value;
use crate::payload::pointer::Pointer;

/// One path of a document.
#[derive(Clone, Debug)]
pub struct PathItem {
    template: String,
    segments: Vec<Segment>,
    operations: Arc<[ApiOperation]>,
}

/// The maximum length of a path, in bytes. All pointers below a path contain it. Longer paths are ignored.
pub const MAX_TEMPLATE: usize = 1024;

/// All paths. A lookup is a hash lookup, or a scan of the templates with the same number of segments.
#[derive(Clone, Debug, Default)]
pub struct Paths {
    /// Sorted by the number of variables, then by text.
    items: Vec<PathItem>,
    exact: HashMap<String, usize>,
    by_length: HashMap<usize, Vec<usize>>,
}

impl PathItem {
    /// The path as stated in the document.
    pub fn template(&self) -> &str {
        &self.template
    }

    /// Its segments.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// All its operations.
    pub fn operations(&self) -> &[ApiOperation] {
        &self.operations
    }

    /// Returns the operation with this method.
    pub fn operation(&self, method: &Method) -> Option<&ApiOperation> {
        self.operations.iter().find(|operation| operation.method() == method)
    }

    /// Returns the operation with this method, or [`OpenApiError::Method`], because the server would reject it.
    pub fn require(&self, method: &Method) -> Result<&ApiOperation, OpenApiError> {
        self.operation(method).ok_or_else(|| unknown_method(&self.template, method, &self.operations))
    }

    /// Returns the method of an operation whose metadata states none: for create, the first of POST and PUT that the
    /// path has; for update, the first of PUT, PATCH and POST with a body; for delete, DELETE; for all others, GET.
    pub fn default_method(&self, name: OperationName) -> Option<&Method> {
        self.default_operation(name).map(ApiOperation::method)
    }

    /// Returns the update of the resource at this path.
    pub fn update(&self) -> Option<&ApiOperation> {
        self.default_operation(OperationName::Update)
    }

    fn default_operation(&self, name: OperationName) -> Option<&ApiOperation> {
        let found = default_method(name).iter().find_map(|method| self.operation(method));
        found.filter(|operation| name != OperationName::Update || operation.may_write())
    }

    /// Returns the name of the last variable.
    pub fn last_variable(&self) -> Option<&str> {
        self.segments.iter().rev().find_map(Segment::variable)
    }

    fn matches(&self, names: &[&str]) -> bool {
        self.segments.len() == names.len()
            && self.segments.iter().zip(names).all(|(segment, name)| match segment {
                Segment::Literal(text) => text == name,
                Segment::Variable(_) => true,
            })
    }

    /// Returns the path without the names of its variables.
    fn shape(&self) -> String {
        self.segments.iter().flat_map(|segment| ["/", segment.literal().unwrap_or("{}")]).collect()
    }

    fn variables(&self) -> usize {
        self.segments.iter().filter(|segment| segment.variable().is_some()).count()
    }
}

impl Paths {
    /// Reads the paths of a document. Invalid paths, and references that cannot be resolved, are ignored.
    pub fn read(root: &Value) -> Self {
        let members = root.get("paths").and_then(Value::as_object);
        let paths = Pointer::from_token("paths");
        // Several paths may refer to the same item; read it once.
        let mut read: HashMap<Pointer, Arc<[ApiOperation]>> = HashMap::new();
        let mut bodies = Bodies::new(root);
        let mut items = Vec::new();
        let is_path = |template: &str| template.starts_with('/') && template.len() <= MAX_TEMPLATE;
        for (template, _) in members.into_iter().flatten().filter(|(template, _)| is_path(template)) {
            let Ok(part) = follow(root, paths.child(template)) else { continue };
            let operations =
                read.entry(part.at).or_insert_with_key(|at| operations(&mut bodies, part.value, at));
            items.push(PathItem {
                template: template.clone(),
                segments: Segment::all_of(template),
                operations: Arc::clone(operations),
            });
        }
        Self::index(items)
    }

    /// Returns the paths without a prefix; `None` if it is empty, or if one of them does not have it.
    pub fn without(&self, prefix: &str) -> Option<Self> {
        let shorter = |item: &PathItem| {
            let template = strip(&item.template, prefix)?.to_owned();
            Some(PathItem { segments: Segment::all_of(&template), template, ..item.clone() })
        };
        let items: Vec<_> = self.items.iter().map(shorter).collect::<Option<_>>()?;
        (!prefix.is_empty()).then(|| Self::index(items))
    }

    fn index(mut items: Vec<PathItem>) -> Self {
        join_alike(&mut items);
        items.sort_by(|a, b| (a.variables(), &a.template).cmp(&(b.variables(), &b.template)));
        let (mut exact, mut by_length) = (HashMap::new(), HashMap::<usize, Vec<usize>>::new());
        for (index, item) in items.iter().enumerate() {
            exact.insert(item.template.clone(), index);
            by_length.entry(item.segments.len()).or_default().push(index);
        }
        Self { items, exact, by_length }
    }

    /// All paths, sorted by the number of variables, then by text.
    pub fn iter(&self) -> impl Iterator<Item = &PathItem> {
        self.items.iter()
    }

    /// Returns the path with exactly this text.
    pub fn exact(&self, template: &str) -> Option<&PathItem> {
        self.exact.get(template).and_then(|index| self.items.get(*index))
    }

    /// Returns the paths with this number of segments, sorted by the number of variables, then by text.
    pub fn with_length(&self, segments: usize) -> impl Iterator<Item = &PathItem> {
        self.by_length.get(&segments).into_iter().flatten().filter_map(|index| self.items.get(*index))
    }

    /// Returns the path item for `path`: the one with the same text, otherwise the first template that matches.
    pub fn find(&self, path: &str) -> Option<&PathItem> {
        let names: Vec<&str> = path.split('/').filter(|name| !name.is_empty()).collect();
        self.exact(path).or_else(|| self.with_length(names.len()).find(|item| item.matches(&names)))
    }
}

/// Adds to each path the operations of those that differ from it only in the names of variables: for a request, they are
/// one path.
fn join_alike(items: &mut [PathItem]) {
    let mut shapes: HashMap<String, Vec<usize>> = HashMap::new();
    for (index, item) in items.iter().enumerate().filter(|(_, item)| item.variables() > 0) {
        shapes.entry(item.shape()).or_default().push(index);
    }
    for alike in shapes.into_values().filter(|alike| alike.len() > 1) {
        // The first operation of each method, so that the time is linear in the number of paths.
        let mut all: Vec<ApiOperation> = Vec::new();
        for index in &alike {
            add_missing(&mut all, &items[*index].operations);
        }
        for index in alike {
            let mut joined = items[index].operations.to_vec();
            add_missing(&mut joined, &all);
            items[index].operations = joined.into();
        }
    }
}

/// Adds the operations whose methods are missing.
fn add_missing(known: &mut Vec<ApiOperation>, others: &[ApiOperation]) {
    for operation in others {
        if known.iter().all(|known| known.method() != operation.method()) {
            known.push(operation.clone());
        }
    }
}

fn operations(bodies: &mut Bodies<'_>, item: &Value, at: &Pointer) -> Arc<[ApiOperation]> {
    let present = METHODS.into_iter().filter(|(key, _)| matches!(item.get(key), Some(Value::Object(_))));
    present.map(|(key, method)| ApiOperation::read(bodies, method, &at.child(key))).collect()
}
