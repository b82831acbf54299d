//! The file of the catalogue: its location, decoding and encoding.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use declarest_core::payload::fields::{Field, FieldError, read_document};
use declarest_core::payload::{Object, PayloadType, Position, Value, encode};
use declarest_core::repository::{Mode, write_atomically};

use super::checks::{self, Problem};
use super::error::CatalogueError;
use super::model::{Catalogue, Context};
use super::reference::expand;
use super::section::Setting;
use crate::environment::Environment;

/// The default path of the catalogue, below the home directory.
const DEFAULT_FILE: &str = ".declarest/configs/contexts.yaml";

/// Returns the path of the catalogue from the environment. Relative paths are below the home directory.
pub fn file(environment: &Environment) -> Result<PathBuf, CatalogueError> {
    let text = environment.get("DECLAREST_CONTEXTS_FILE").unwrap_or(DEFAULT_FILE);
    let path = Path::new(text.strip_prefix("~/").unwrap_or(if text == "~" { "" } else { text }));
    if path.is_absolute() {
        return Ok(path.to_owned());
    }
    Ok(environment.home().ok_or(CatalogueError::NoHome)?.join(path))
}

/// The catalogue as stored in its file.
#[derive(Clone, Debug)]
pub struct Stored {
    file: PathBuf,
    /// The root of the file, unless it is empty.
    root: Option<Field>,
    pub catalogue: Catalogue,
}

impl Stored {
    /// Reads and checks `file`. A missing file is an empty catalogue. Sets the mode of the file to 0600.
    pub fn load(file: PathBuf) -> Result<Self, CatalogueError> {
        let failed = |action| {
            let file = file.clone();
            move |error: std::io::Error| CatalogueError::Io { action, file, reason: error.to_string() }
        };
        let bytes = match fs::read(&file) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(failed("read")(error)),
        };
        if let Ok(metadata) = fs::metadata(&file)
            && metadata.permissions().mode() & 0o777 != 0o600
        {
            let private = fs::Permissions::from_mode(0o600);
            fs::set_permissions(&file, private).map_err(failed("protect"))?;
        }
        let (catalogue, root) = decode_catalogue(&file.display().to_string(), PayloadType::Yaml, &bytes)?;
        Ok(Self { file, root, catalogue })
    }

    /// Returns the path of the file.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// Returns `catalogue` as if it was read from the file, without writing it.
    pub fn with(&self, catalogue: &Catalogue) -> Result<Self, CatalogueError> {
        let bytes = encode_catalogue(catalogue)?;
        let (catalogue, root) =
            decode_catalogue(&self.file.display().to_string(), PayloadType::Yaml, &bytes)?;
        Ok(Self { file: self.file.clone(), root, catalogue })
    }

    /// Checks `catalogue` like one that is read, and replaces the file with it.
    pub fn save(&self, catalogue: &Catalogue) -> Result<(), CatalogueError> {
        self.replace(&encode_catalogue(catalogue)?)
    }

    /// Returns the text of the file; empty if it is missing.
    pub fn text(&self) -> Result<Vec<u8>, CatalogueError> {
        match fs::read(&self.file) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
            read => read.map_err(|error| CatalogueError::Io {
                action: "read",
                file: self.file.clone(),
                reason: error.to_string(),
            }),
        }
    }

    /// Checks the text of a catalogue like one that is read, and replaces the file with it.
    pub fn replace(&self, bytes: &[u8]) -> Result<(), CatalogueError> {
        decode_catalogue(&self.file.display().to_string(), PayloadType::Yaml, bytes)?;
        let failed = |action: &'static str| {
            let file = self.file.clone();
            move |error: std::io::Error| CatalogueError::Io { action, file, reason: error.to_string() }
        };
        if let Some(parent) = self.file.parent() {
            fs::create_dir_all(parent).map_err(failed("create the directory of"))?;
        }
        write_atomically(&self.file, bytes, Mode::Private).map_err(failed("write"))
    }

    /// Returns the credentials and the context `wanted`, or the current one, with references to `environment`
    /// replaced. Other contexts are not expanded, so their variables need not be set.
    pub fn expanded(
        &self,
        wanted: Option<&str>,
        environment: &Environment,
    ) -> Result<(Catalogue, Context), CatalogueError> {
        let origin = self.file.display().to_string();
        let located = |source| CatalogueError::Invalid { origin: origin.clone(), source: Box::new(source) };
        let Some(root) = self.root.clone() else { return Err(self.not_found(wanted)) };
        let root = root.with_texts(&|text| expand(text, environment));
        let places = root.places();
        let current = || root.member_text("currentContext").filter(|name| !name.trim().is_empty());
        let name = wanted.or_else(current).ok_or(CatalogueError::NoCurrent)?;
        let contexts = root.member("contexts").map(Field::items).transpose().map_err(located)?;
        let found = contexts.into_iter().flatten().enumerate();
        let found = found
            .filter(|(_, field)| field.member_text("name").is_some_and(|text| text.trim() == name.trim()));
        let [(index, field)] = &found.collect::<Vec<_>>()[..] else {
            return Err(self.not_found(Some(name)));
        };
        let context = Context::read(field.clone()).map_err(located)?;
        let credentials = root.member("credentials").map(Setting::read).transpose().map_err(located)?;
        let credentials = credentials.unwrap_or_default();
        let catalogue =
            Catalogue { current_context: None, default_editor: None, credentials, contexts: Vec::new() };
        checks::check_context(&format!("contexts[{index}]."), &context, &catalogue)
            .map_err(|problem| located(at(&places, problem)))?;
        Ok((catalogue, context))
    }

    /// Checks the contexts of `catalogue`, which were read from `origin` one by one.
    pub fn check(catalogue: &Catalogue, origin: &str) -> Result<(), CatalogueError> {
        catalogue.contexts.iter().try_for_each(|context| {
            checks::check_context("", context, catalogue).map_err(|Problem { field, reason }| {
                let context = format!("{} of {origin}", context.name.0);
                CatalogueError::Setting { context, field, reason }
            })
        })
    }

    /// Returns the error of a context that is not found.
    pub fn not_found(&self, wanted: Option<&str>) -> CatalogueError {
        let known = self.catalogue.contexts.iter().map(|context| context.name.0.clone()).collect();
        match wanted {
            Some(name) => CatalogueError::NotFound { name: name.to_owned(), known },
            None => CatalogueError::NoCurrent,
        }
    }
}

/// Decodes and checks a catalogue. `origin` is its source in errors.
pub fn decode_catalogue(
    origin: &str,
    format: PayloadType,
    bytes: &[u8],
) -> Result<(Catalogue, Option<Field>), CatalogueError> {
    let located = |source| CatalogueError::Invalid { origin: origin.to_owned(), source: Box::new(source) };
    let Some(root) = read_document(format, bytes).map_err(located)? else {
        return Ok((empty(), None));
    };
    let catalogue = Catalogue::read(root.clone()).map_err(located)?;
    checks::catalogue(&catalogue).map_err(|problem| located(at(&root.places(), problem)))?;
    Ok((catalogue, Some(root)))
}

/// Decodes a single context, without checking its references.
pub fn decode_context(origin: &str, root: Field) -> Result<Context, CatalogueError> {
    let located = |source| CatalogueError::Invalid { origin: origin.to_owned(), source: Box::new(source) };
    Context::read(root).map_err(located)
}

/// Returns a catalogue without contexts.
pub fn empty() -> Catalogue {
    Catalogue { current_context: None, default_editor: None, credentials: Vec::new(), contexts: Vec::new() }
}

/// Returns a problem with the position of its field, or of the nearest enclosing field.
fn at(places: &BTreeMap<String, Position>, problem: Problem) -> FieldError {
    let mut around = std::iter::successors(Some(problem.field.as_str()), |field| {
        Some(field.rfind(['.', '[']).map_or("", |end| &field[..end])).filter(|_| !field.is_empty())
    });
    let start = Position { line: 1, column: Some(1) };
    let position = around.find_map(|field| places.get(field)).copied().unwrap_or(start);
    FieldError::Value { position, field: problem.field, reason: problem.reason.into() }
}

/// Encodes a catalogue as YAML, in reading order.
pub fn encode_catalogue(catalogue: &Catalogue) -> Result<Vec<u8>, CatalogueError> {
    let mut bytes = Vec::new();
    let current = Value::from(catalogue.current_context.as_deref().unwrap_or_default());
    let written = catalogue.write().unwrap_or_default();
    let blocks = [
        ("currentContext", Some(&current)),
        ("defaultEditor", written.get("defaultEditor")),
        ("credentials", written.get("credentials")),
    ];
    for (key, value) in blocks {
        if let Some(value) = value {
            bytes
                .extend(encode(PayloadType::Yaml, &Value::Object([(key.to_owned(), value.clone())].into()))?);
        }
    }
    if catalogue.contexts.is_empty() {
        return Ok(bytes);
    }
    bytes.extend(b"contexts:\n");
    for context in &catalogue.contexts {
        bytes.extend(encode_item(context)?);
    }
    Ok(bytes)
}

/// Encodes a context as a list item that begins with its name.
fn encode_item(context: &Context) -> Result<Vec<u8>, CatalogueError> {
    let mut members = match canonical(context).write() {
        Some(Value::Object(members)) => members,
        _ => Object::new(),
    };
    let name = Object::from([("name".to_owned(), members.remove("name").unwrap_or_default())]);
    let mut text = String::new();
    for part in [name, members] {
        let part = encode(PayloadType::Yaml, &Value::Object(part))?;
        for line in String::from_utf8_lossy(&part).lines() {
            text.push_str(if text.is_empty() { "  - " } else { "    " });
            text.push_str(line);
            text.push('\n');
        }
    }
    Ok(text.into_bytes())
}

/// Returns a context without settings that equal the default: metadata in the directory of the repository.
fn canonical(context: &Context) -> Context {
    let mut context = context.clone();
    let base = context.repository.as_ref().and_then(|repository| repository.base_dir()).cloned();
    if let Some(metadata) = &mut context.metadata {
        if base.is_some() && metadata.base_dir == base {
            metadata.base_dir = None;
        }
        if metadata.write() == Some(Value::Object(Object::new())) {
            context.metadata = None;
        }
    }
    context
}
