//! Kubernetes objects in files.

use std::fs;
use std::path::Path;

use declarest_core::contract::objects::{Meta, Selector};
use declarest_core::contract::{Cluster, ObjectKind};
use declarest_core::payload::{PayloadType, decode};
use serde::Deserialize as _;
use serde_json::Value;

use crate::error::Failure;

/// The largest file, in bytes.
const MAX_FILE: u64 = 32 << 20;

/// The objects of one namespace. Objects without a namespace are in every namespace.
pub struct Manifests {
    objects: Vec<Value>,
}

impl Manifests {
    /// Reads a file, or all files `*.yaml`, `*.yml` and `*.json` of a directory.
    pub fn read(path: &Path, namespace: &str) -> Result<Self, Failure> {
        let mut files = vec![path.to_owned()];
        if path.is_dir() {
            let entries = fs::read_dir(path).map_err(Failure::read(path))?;
            let entries: Result<Vec<_>, _> = entries.map(|entry| entry.map(|entry| entry.path())).collect();
            files = entries.map_err(Failure::read(path))?;
            let is_manifest = |file: &Path| {
                let extension = file.extension().and_then(|extension| extension.to_str());
                matches!(extension, Some("yaml" | "yml" | "json")) && file.is_file()
            };
            files.retain(|file| is_manifest(file));
            files.sort();
        }
        let mut objects = Vec::new();
        for file in &files {
            objects.extend(objects_of(file)?);
        }
        objects.retain(|object| {
            let own = object.pointer("/metadata/namespace").and_then(Value::as_str);
            own.is_none_or(|own| own == namespace)
        });
        Ok(Self { objects })
    }

    fn of(&self, kind: ObjectKind) -> impl Iterator<Item = &Value> {
        let (version, name, _) = kind.names();
        let is_of = move |object: &&Value| object["apiVersion"] == version && object["kind"] == name;
        self.objects.iter().filter(is_of)
    }
}

impl Cluster for Manifests {
    async fn get(&self, kind: ObjectKind, name: &str) -> Result<Option<Value>, String> {
        Ok(self.of(kind).find(|object| object["metadata"]["name"] == name).cloned())
    }

    async fn list(
        &self,
        kind: ObjectKind,
        selector: Option<&Selector>,
        limit: usize,
    ) -> Result<Vec<Value>, String> {
        let is_selected = |object: &&Value| {
            let Some(selector) = selector else { return true };
            Meta::deserialize(&object["metadata"]).is_ok_and(|meta| selector.matches(&meta.labels))
        };
        Ok(self.of(kind).filter(is_selected).take(limit).cloned().collect())
    }
}

/// Reads the objects of a file: YAML documents, or JSON, which is YAML. The items of lists are objects.
fn objects_of(file: &Path) -> Result<Vec<Value>, Failure> {
    let size = fs::metadata(file).map_err(Failure::read(file))?.len();
    if size > MAX_FILE {
        return Err(Failure::invalid(format!("{} is larger than {} MiB", file.display(), MAX_FILE >> 20)));
    }
    let text = fs::read_to_string(file).map_err(Failure::read(file))?;
    let mut objects = Vec::new();
    for document in documents(&text) {
        let invalid = |reason: &dyn std::fmt::Display| {
            Failure::invalid(format!("{} is not a Kubernetes manifest: {reason}", file.display()))
        };
        let value = decode(PayloadType::Yaml, document.as_bytes()).map_err(|error| invalid(&error))?;
        match serde_json::to_value(&value).map_err(|error| invalid(&error))? {
            Value::Null => {}
            Value::Object(mut members) => match members.remove("items") {
                Some(Value::Array(items)) => objects.extend(items),
                _ => objects.push(Value::Object(members)),
            },
            _ => return Err(invalid(&"a document is not a mapping")),
        }
    }
    Ok(objects)
}

/// Splits a text at the lines that begin YAML documents.
fn documents(text: &str) -> Vec<String> {
    let mut documents = vec![String::new()];
    for line in text.lines() {
        if line == "---" || line.starts_with("--- ") {
            documents.push(String::new());
        } else if let Some(last) = documents.last_mut() {
            last.push_str(line);
            last.push('\n');
        }
    }
    documents
}
