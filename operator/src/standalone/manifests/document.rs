//! Reads manifest files: selects the files, splits them into documents, and decodes the objects.

use std::io;
use std::path::{Path, PathBuf};

use k8s_openapi::ByteString;
use kube::api::TypeMeta;
use serde_json::{Map, Value, json};

use super::Problem;

/// A directory that cannot be listed.
#[derive(Debug)]
pub(super) struct ScanError {
    pub path: PathBuf,
    pub source: io::Error,
}

/// All documents of a directory.
#[derive(Debug, Default)]
pub(super) struct Scan {
    pub documents: Vec<Document>,
    /// Documents whose identity is unknown.
    pub problems: Vec<Problem>,
}

/// One object and its place in a file.
#[derive(Clone, Debug)]
pub(super) struct Document {
    place: Place,
    types: TypeMeta,
    name: String,
    namespace: String,
    content: Map<String, Value>,
}

/// The place of a document.
#[derive(Clone, Debug)]
struct Place {
    file: PathBuf,
    document: usize,
    line: usize,
}

impl Place {
    fn problem(&self, message: impl Into<String>) -> Problem {
        Problem { file: self.file.clone(), document: self.document, line: self.line, message: message.into() }
    }
}

impl Document {
    pub(super) fn kind(&self) -> &str {
        &self.types.kind
    }

    pub(super) fn types(&self) -> &TypeMeta {
        &self.types
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the declared namespace, or `default`.
    pub(super) fn namespace(&self) -> &str {
        &self.namespace
    }

    pub(super) fn problem(&self, message: String) -> Problem {
        self.place.problem(message)
    }

    /// Returns the object to apply: the document without the fields that only the API writes.
    pub(super) fn object(&self, namespace: &str) -> Value {
        let mut object = self.content.clone();
        object.remove("status");
        let metadata = object.entry("metadata").or_insert_with(|| json!({}));
        if let Some(metadata) = metadata.as_object_mut() {
            for field in ["creationTimestamp", "generation", "managedFields", "resourceVersion", "uid"] {
                metadata.remove(field);
            }
            metadata.remove("namespace");
            if !namespace.is_empty() {
                metadata.insert("namespace".to_owned(), json!(namespace));
            }
        }
        Value::Object(object)
    }

    fn parse(place: Place, content: Map<String, Value>) -> Result<Self, Problem> {
        let text = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().to_owned();
        let metadata = content.get("metadata");
        let types =
            TypeMeta { api_version: text(content.get("apiVersion")), kind: text(content.get("kind")) };
        let name = text(metadata.and_then(|metadata| metadata.get("name")));
        let namespace = text(metadata.and_then(|metadata| metadata.get("namespace")));
        for (field, value) in
            [("apiVersion", &types.api_version), ("kind", &types.kind), ("metadata.name", &name)]
        {
            if value.is_empty() {
                return Err(place.problem(format!("{field} is missing; a manifest must identify one object")));
            }
        }
        let namespace = if namespace.is_empty() { "default".to_owned() } else { namespace };
        let mut document = Self { place, types, name, namespace, content };
        if document.types.kind == "Secret" {
            document.check_secret()?;
            document.encode_string_data()?;
        }
        Ok(document)
    }

    /// Returns the problem of a Secret with a field that Secrets do not have, such as `stringdata`.
    fn check_secret(&self) -> Result<(), Problem> {
        const FIELDS: [&str; 7] =
            ["apiVersion", "kind", "metadata", "type", "immutable", "data", "stringData"];
        match self.content.keys().find(|field| !FIELDS.contains(&field.as_str())) {
            Some(field) => {
                Err(self.place.problem(format!("unknown field {field:?}; use {}", FIELDS.join(", "))))
            }
            None => Ok(()),
        }
    }

    /// Moves `stringData` to `data`, so that a key that is removed from it is also removed from the Secret.
    fn encode_string_data(&mut self) -> Result<(), Problem> {
        let Some(plain) = self.content.remove("stringData") else { return Ok(()) };
        let mut data = self.content.get("data").and_then(Value::as_object).cloned().unwrap_or_default();
        for (key, value) in plain.as_object().into_iter().flatten() {
            let Some(text) = value.as_str() else {
                return Err(self.place.problem(format!("stringData.{key} is not a string; quote it")));
            };
            let encoded = serde_json::to_value(ByteString(text.as_bytes().to_vec()));
            data.insert(key.clone(), encoded.unwrap_or_default());
        }
        self.content.insert("data".to_owned(), Value::Object(data));
        Ok(())
    }
}

/// Reads all manifests below `dir`, in order of their paths.
pub(super) fn scan(dir: &Path) -> Result<Scan, ScanError> {
    let mut files = Vec::new();
    find(dir, &mut files)?;
    files.sort();
    let mut scan = Scan::default();
    for path in files {
        let file = path.strip_prefix(dir).unwrap_or(&path).to_owned();
        match std::fs::read_to_string(&path) {
            Ok(text) => read(&file, &text, &mut scan),
            // The file was deleted after it was listed.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => {
                let place = Place { file, document: 1, line: 1 };
                scan.problems.push(place.problem(format!("cannot be read: {error}")));
            }
        }
    }
    Ok(scan)
}

fn find(directory: &Path, files: &mut Vec<PathBuf>) -> Result<(), ScanError> {
    let failed = |source| ScanError { path: directory.to_owned(), source };
    for entry in std::fs::read_dir(directory).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        // Hidden files are those of editors, and the versions of a mounted ConfigMap (`..data`).
        if path.file_name().is_none_or(|name| name.to_string_lossy().starts_with('.')) {
            continue;
        }
        let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
        if path.is_dir() {
            find(&path, files)?;
        } else if matches!(extension, "yaml" | "yml" | "json") {
            files.push(path);
        }
    }
    Ok(())
}

fn read(file: &Path, text: &str, scan: &mut Scan) {
    let is_json = file.extension().is_some_and(|extension| extension == "json");
    let parts = if is_json { vec![(1, text.to_owned())] } else { split(text) };
    for (position, (line, part)) in parts.into_iter().enumerate() {
        let place = Place { file: file.to_owned(), document: position + 1, line };
        match decode(&part, is_json) {
            Ok(Value::Null) => {}
            Ok(value) => unpack(&place, value, scan),
            Err((offset, message)) => {
                let place = Place { line: line + offset.saturating_sub(1), ..place };
                scan.problems.push(place.problem(message));
            }
        }
    }
}

/// Splits a YAML stream into documents, each with its first line. `---` at the start of a line always ends a
/// document (YAML 1.2, 9.1.4), so that an invalid document cannot hide the next one.
fn split(text: &str) -> Vec<(usize, String)> {
    let mut parts = vec![(1, String::new())];
    for (index, line) in text.split_inclusive('\n').enumerate() {
        let is_marker = line
            .strip_prefix("---")
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(char::is_whitespace));
        if is_marker {
            let holds_something = |part: &str| {
                part.lines().any(|line| !line.trim().is_empty() && !line.trim_start().starts_with('#'))
            };
            if parts.last().is_some_and(|(_, part)| !holds_something(part)) {
                parts.pop();
            }
            parts.push((index + 1, String::new()));
        }
        if let Some((_, part)) = parts.last_mut() {
            part.push_str(line);
        }
    }
    parts
}

/// Decodes a document. The error is the line in the document and the message.
fn decode(text: &str, is_json: bool) -> Result<Value, (usize, String)> {
    if is_json {
        return serde_json::from_str(text).map_err(|error| (error.line(), format!("not JSON: {error}")));
    }
    if text.lines().all(|line| {
        let line = line.strip_prefix("---").unwrap_or(line).trim();
        line.is_empty() || line.starts_with('#')
    }) {
        return Ok(Value::Null);
    }
    serde_saphyr::from_str(text).map_err(|error| {
        let line = error.location().and_then(|location| usize::try_from(location.line()).ok());
        (line.unwrap_or(1), format!("not YAML: {}", error.without_snippet()))
    })
}

/// Adds a document to `scan`; a `List` adds its items.
fn unpack(place: &Place, value: Value, scan: &mut Scan) {
    let Value::Object(mut content) = value else {
        scan.problems.push(place.problem("a manifest must be an object with apiVersion, kind and metadata"));
        return;
    };
    let is_list = content.get("kind").and_then(Value::as_str).is_some_and(|kind| kind.ends_with("List"));
    match content.remove("items") {
        Some(Value::Array(items)) if is_list => items.into_iter().for_each(|item| unpack(place, item, scan)),
        items => {
            content.extend(items.map(|items| ("items".to_owned(), items)));
            match Document::parse(place.clone(), content) {
                Ok(document) => scan.documents.push(document),
                Err(problem) => scan.problems.push(problem),
            }
        }
    }
}
