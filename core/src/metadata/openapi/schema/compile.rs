//! Compiles the schemas of a document into nodes.

use std::collections::{BTreeMap, HashMap};

use super::{Additional, Node, Type};
use crate::metadata::openapi::reference::{follow, reference, target};
use crate::metadata::openapi::{OpenApi, ReferenceError};
use crate::payload::Value;
use crate::payload::pointer::Pointer;

/// Compiles the schema at a pointer, and all that it refers to. Returns the nodes, and the index of the schema.
pub fn nodes(document: &OpenApi, at: &Pointer) -> Result<(Vec<Node>, usize), ReferenceError> {
    let part = follow(&document.root, at.clone())?;
    if !matches!(part.value, Value::Object(_) | Value::Bool(_)) {
        return Err(ReferenceError::NotASchema { at: part.at, kind: part.value.kind() });
    }
    // Start with the schema itself, not the target of its `$ref`, because keywords next to a `$ref` may apply.
    let start = at.get(&document.root).unwrap_or(part.value);
    let mut compiler = Compiler { document, nodes: Vec::new(), known: HashMap::new(), open: Vec::new() };
    let root = compiler.intern(start);
    while let Some((index, schema)) = compiler.open.pop() {
        let node = compiler.node(schema);
        compiler.nodes[index] = node;
    }
    Ok((compiler.nodes, root))
}

/// The state of the compilation. It works without recursion, because references can nest to any depth.
struct Compiler<'d> {
    document: &'d OpenApi,
    nodes: Vec<Node>,
    /// The nodes by the address of their schema, to compile each schema once.
    known: HashMap<*const Value, usize>,
    /// The schemas that are not compiled yet.
    open: Vec<(usize, &'d Value)>,
}

impl<'d> Compiler<'d> {
    fn intern(&mut self, schema: &'d Value) -> usize {
        match self.target(schema) {
            Some(Ok(target)) => self.place(target),
            Some(Err(fault)) => {
                self.nodes.push(Node { fault: Some(fault), ..Node::default() });
                self.nodes.len() - 1
            }
            None => self.place(schema),
        }
    }

    fn place(&mut self, schema: &'d Value) -> usize {
        if let Some(index) = self.known.get(&std::ptr::from_ref(schema)) {
            return *index;
        }
        let index = self.nodes.len();
        self.nodes.push(Node::default());
        self.known.insert(std::ptr::from_ref(schema), index);
        self.open.push((index, schema));
        index
    }

    /// Returns the target of a schema that consists of a `$ref` only.
    fn target(&self, schema: &Value) -> Option<Result<&'d Value, ReferenceError>> {
        let text = reference(schema)?;
        let alone = schema.as_object().is_some_and(|members| members.len() == 1);
        if !alone && (self.document.siblings_count || is_nullable(schema)) {
            return None;
        }
        Some(self.resolve(text))
    }

    fn resolve(&self, text: &str) -> Result<&'d Value, ReferenceError> {
        let root = &self.document.root;
        let at = target(text)?;
        let part = follow(root, at.clone())?;
        // If siblings count, each step of a chain is a schema of its own.
        if self.document.siblings_count {
            return at.get(root).ok_or(ReferenceError::Missing(at));
        }
        Ok(part.value)
    }

    fn node(&mut self, schema: &'d Value) -> Node {
        if !matches!(schema, Value::Object(_)) {
            return Node { never: matches!(schema, Value::Bool(false)), ..Node::default() };
        }
        let mut node = Node { nullable: is_nullable(schema), ..Node::default() };
        if let Some(text) = reference(schema) {
            match self.resolve(text) {
                Ok(target) => node.all_of.push(self.intern(target)),
                Err(fault) => node.fault = Some(fault),
            }
            if !self.document.siblings_count {
                return node;
            }
        }
        node.types = types(schema.get("type"));
        node.allowed = schema.get("enum").and_then(Value::as_array).map(<[Value]>::to_vec);
        node.required = texts(schema.get("required"));
        let properties = || schema.get("properties").and_then(Value::as_object).into_iter().flatten();
        // These bodies are requests, in which properties that only the server sets are not required.
        for (name, _) in properties().filter(|(_, property)| self.document.is_read_only(property)) {
            node.required.retain(|required| required != name);
        }
        let properties = properties().map(|(name, property)| (name.clone(), self.intern(property)));
        node.properties = properties.collect::<BTreeMap<_, _>>();
        node.additional = match schema.get("additionalProperties") {
            Some(Value::Bool(false)) => Additional::Forbidden,
            Some(schema @ Value::Object(_)) => Additional::Schema(self.intern(schema)),
            _ => Additional::Any,
        };
        // Ignore a list of schemas, one per item, which is a feature of older versions of JSON Schema.
        let items = schema.get("items").filter(|items| !matches!(items, Value::Array(_)));
        node.items = items.map(|items| self.intern(items));
        node.all_of.extend(self.list(schema.get("allOf")));
        node.any_of = self.list(schema.get("anyOf"));
        node.one_of = self.list(schema.get("oneOf"));
        node
    }

    fn list(&mut self, schemas: Option<&'d Value>) -> Vec<usize> {
        let schemas = schemas.and_then(Value::as_array).into_iter().flatten();
        schemas.map(|schema| self.intern(schema)).collect()
    }
}

fn is_nullable(schema: &Value) -> bool {
    matches!(schema.get("nullable"), Some(Value::Bool(true)))
}

fn texts(list: Option<&Value>) -> Vec<String> {
    let items = list.and_then(Value::as_array).into_iter().flatten();
    items.filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Returns the types. If one of them is unknown, returns an empty list, which allows any type.
fn types(keyword: Option<&Value>) -> Vec<Type> {
    let names: Vec<&str> = match keyword {
        Some(Value::String(name)) => vec![name],
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    names.into_iter().map(str::parse).collect::<Result<_, _>>().unwrap_or_default()
}
