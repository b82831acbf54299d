//! The file of the catalogue: its location, decoding and encoding.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use declarest_core::payload::fields::{Field, FieldError, read_document};
use declarest_core::payload::{Object, PayloadType, Position, Value, encode};
use declarest_core::repository::{Mode, write_through};
use declarest_core::variable::referred;

use super::checks::{self, Problem};
use super::error::CatalogueError;
use super::mode::protect;
use super::model::{Catalogue, Context, Credential, Fault, FaultyCredential};
use super::reference::expand;
use super::section::Setting;
use super::value::Text;
use crate::environment::Environment;
use crate::lock::Lock;

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
    /// The content of the file.
    content: Vec<u8>,
    /// The lock of the directory of the file, if it was read to be changed.
    lock: Option<Arc<Lock>>,
    /// The root of the file, unless it is empty.
    root: Option<Field>,
    pub catalogue: Catalogue,
}

impl Stored {
    /// Reads and checks `file`. A missing file is an empty catalogue. Sets the mode of the file to 0600.
    pub fn load(file: PathBuf) -> Result<Self, CatalogueError> {
        let bytes = read(&file)?;
        protect(&file, 0o600).map_err(CatalogueError::io("set the mode 0600 of", &file))?;
        let (catalogue, root) = decode_stored(&file.display().to_string(), PayloadType::Yaml, &bytes)?;
        Ok(Self { file, content: bytes, lock: None, root, catalogue })
    }

    /// Reads `file` to edit its text. If it is not a valid catalogue, the result has no contexts.
    pub fn load_text(file: PathBuf) -> Result<Self, CatalogueError> {
        match Self::load(file.clone()) {
            Err(CatalogueError::Invalid { .. }) => {
                let content = read(&file)?;
                Ok(Self { file, content, lock: None, root: None, catalogue: Catalogue::default() })
            }
            loaded => loaded,
        }
    }

    /// Reads `file` like [`Self::load`]. Other commands wait for its change until the result is dropped.
    pub fn load_to_change(file: PathBuf) -> Result<Self, CatalogueError> {
        let lock = Some(Arc::new(Self::locked(&file)?));
        Ok(Self { lock, ..Self::load(file)? })
    }

    fn locked(file: &Path) -> Result<Lock, CatalogueError> {
        let directory = file.parent().filter(|parent| !parent.as_os_str().is_empty());
        let directory = directory.unwrap_or(Path::new("."));
        fs::create_dir_all(directory).map_err(CatalogueError::io("create the directory of", file))?;
        Ok(Lock::of(directory)?)
    }

    /// Returns the path of the file.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// Returns `catalogue` as if it was read from the file, without writing it.
    pub fn with(&self, catalogue: &Catalogue) -> Result<Self, CatalogueError> {
        let bytes = encode_catalogue(catalogue)?;
        let (catalogue, root) = decode_stored(&self.file.display().to_string(), PayloadType::Yaml, &bytes)?;
        Ok(Self { root, catalogue, ..self.clone() })
    }

    /// Replaces the file with `catalogue` if they differ: the file may have comments, which a new one does not have.
    pub fn save(&self, catalogue: &Catalogue) -> Result<(), CatalogueError> {
        if *catalogue == self.catalogue { Ok(()) } else { self.rewrite(catalogue) }
    }

    /// Checks `catalogue` like one that is read, and replaces the file with it. Faults of contexts that were read from
    /// the file are kept; other contexts must be valid.
    pub fn rewrite(&self, catalogue: &Catalogue) -> Result<(), CatalogueError> {
        let bytes = encode_catalogue(catalogue)?;
        let (changed, root) = decode_stored(&self.file.display().to_string(), PayloadType::Yaml, &bytes)?;
        let located = CatalogueError::invalid(self.file.display());
        let places = || root.as_ref().map(Field::places).unwrap_or_default();
        checks::current(&changed).map_err(|problem| located(at(&places(), problem)))?;
        let is_new = |fault: &&FaultyCredential| {
            !catalogue.faulty_credentials.iter().any(|known| known.written == fault.written)
        };
        if let Some(fault) = changed.faulty_credentials.iter().find(is_new) {
            return Err(located(fault.reason.clone()));
        }
        for (given, changed) in catalogue.contexts.iter().zip(&changed.contexts) {
            if let (None, Some(fault)) = (&given.fault, &changed.fault) {
                return Err(located(fault.reason.clone()));
            }
        }
        self.write(&bytes)
    }

    /// Returns the text of the file; empty if it is missing.
    pub fn text(&self) -> Result<Vec<u8>, CatalogueError> {
        read(&self.file)
    }

    /// Checks the text of a catalogue with all its contexts, and replaces the file with it.
    pub fn replace(&self, bytes: &[u8]) -> Result<(), CatalogueError> {
        decode_catalogue(&self.file.display().to_string(), PayloadType::Yaml, bytes)?;
        self.write(bytes)
    }

    /// Returns the fault of a context of this catalogue, if it has one.
    pub fn check_fault(&self, context: &Context) -> Result<(), CatalogueError> {
        let Some(fault) = &context.fault else { return Ok(()) };
        Err(CatalogueError::invalid(self.file.display())(fault.reason.clone()))
    }

    /// Returns the first fault of the catalogue or of one of its contexts.
    pub fn validated(&self) -> Result<(), CatalogueError> {
        decode_catalogue(&self.file.display().to_string(), PayloadType::Yaml, &self.text()?).map(drop)
    }

    /// Replaces the file, unless another command has changed it after it was read.
    fn write(&self, bytes: &[u8]) -> Result<(), CatalogueError> {
        let _lock = self.lock.is_none().then(|| Self::locked(&self.file)).transpose()?;
        if self.text()? != self.content {
            return Err(CatalogueError::Changed(self.file.clone()));
        }
        write_through(&self.file, bytes, Mode::Private).map_err(CatalogueError::io("write", &self.file))
    }

    /// Returns the credentials and the context `wanted`, or the current one, with references to `environment`
    /// replaced. Other contexts are not expanded, so their variables need not be set.
    pub fn expanded(
        &self,
        wanted: Option<&str>,
        environment: &Environment,
    ) -> Result<(Catalogue, Context), CatalogueError> {
        let Some(written) = &self.root else { return Err(self.not_found(wanted)) };
        let located = |error| {
            let error = naming_unset_variable(error, written, environment);
            CatalogueError::invalid(self.file.display())(error)
        };
        let root = written.clone().with_texts(&|text| expand(text, environment));
        let places = root.places();
        let current = || root.member_text("currentContext").filter(|name| !name.trim().is_empty());
        let name = wanted.or_else(current).ok_or_else(|| self.not_found(None))?;
        let contexts = root.member("contexts").map(Field::items).transpose().map_err(&located)?;
        let found = contexts.into_iter().flatten().enumerate();
        let found = found
            .filter(|(_, field)| field.member_text("name").is_some_and(|text| text.trim() == name.trim()));
        let (index, field) = match &found.collect::<Vec<_>>()[..] {
            [] => return Err(self.not_found(Some(name))),
            [(index, field)] => (*index, field.clone()),
            [(first, _), (second, _), ..] => {
                return Err(located(at(&places, checks::same_name(name.trim(), *first, *second))));
            }
        };
        let context = Context::read(field).map_err(&located)?;
        let mut catalogue = Catalogue::default();
        read_credentials(&root, &mut catalogue, |_| Ok(())).map_err(&located)?;
        // Empty and duplicate ones; a reference to a variable without a value does not count as empty.
        catalogue.faulty_credentials.extend(self.catalogue.faulty_credentials.iter().cloned());
        checks::check_context(&format!("contexts[{index}]."), &context, &catalogue)
            .map_err(|problem| located(at(&places, problem)))?;
        Ok((catalogue, context))
    }

    /// Checks the contexts of `catalogue`, which were read from `origin` one by one.
    pub fn check(catalogue: &Catalogue, origin: &str) -> Result<(), CatalogueError> {
        catalogue.contexts.iter().try_for_each(|context| {
            checks::check_context("", context, catalogue)
                .map_err(|problem| problem.of(format!("{} of {origin}", context.name.0)))
        })
    }

    /// Returns the index of a context. Fails if there are several with this name.
    pub fn position(&self, name: &str) -> Result<usize, CatalogueError> {
        let contexts = &self.catalogue.contexts;
        let mut found = contexts.iter().enumerate().filter(|(_, context)| context.name.0 == name);
        let (index, context) = found.next().ok_or_else(|| self.not_found(Some(name)))?;
        if found.next().is_some() {
            self.check_fault(context)?;
        }
        Ok(index)
    }

    /// Returns the error of a context that is not found.
    pub fn not_found(&self, wanted: Option<&str>) -> CatalogueError {
        let known: Vec<_> = self.catalogue.contexts.iter().map(|context| context.name.0.clone()).collect();
        match wanted {
            _ if known.is_empty() => {
                CatalogueError::NoContexts { wanted: wanted.map(str::to_owned), file: self.file.clone() }
            }
            Some(name) => CatalogueError::NotFound { name: name.to_owned(), known },
            None => CatalogueError::NoCurrent,
        }
    }
}

/// Returns the content of `file`; empty if it is missing.
fn read(file: &Path) -> Result<Vec<u8>, CatalogueError> {
    match fs::read(file) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        read => read.map_err(CatalogueError::io("read", file)),
    }
}

/// Decodes a catalogue, and checks it with all its contexts. `origin` is its source in errors.
pub fn decode_catalogue(
    origin: &str,
    format: PayloadType,
    bytes: &[u8],
) -> Result<Catalogue, CatalogueError> {
    let (catalogue, root) = decode_stored(origin, format, bytes)?;
    let located = CatalogueError::invalid(origin);
    if let Some(fault) = catalogue.faulty_credentials.first() {
        return Err(located(fault.reason.clone()));
    }
    let faults = catalogue.contexts.iter().filter_map(|context| context.fault.as_deref());
    if let Some(fault) = catalogue.nameless.iter().chain(faults).next() {
        return Err(located(fault.reason.clone()));
    }
    let places = || root.map(|root| root.places()).unwrap_or_default();
    checks::current(&catalogue).map_err(|problem| located(at(&places(), problem)))?;
    Ok(catalogue)
}

/// Decodes a catalogue. A context or credential that is not valid becomes one with a fault, so that the others can be
/// used.
fn decode_stored(
    origin: &str,
    format: PayloadType,
    bytes: &[u8],
) -> Result<(Catalogue, Option<Field>), CatalogueError> {
    let located = CatalogueError::invalid(origin);
    let Some(root) = read_document(format, bytes).map_err(&located)? else {
        return Ok((Catalogue::default(), None));
    };
    let catalogue = lenient(&root).map_err(located)?;
    Ok((catalogue, Some(root)))
}

fn lenient(root: &Field) -> Result<Catalogue, FieldError> {
    let places = root.places();
    let located = |problem| at(&places, problem);
    let mut catalogue =
        Catalogue::read(root.clone().without_member("contexts").without_member("credentials"))?;
    let mut stems = BTreeMap::new();
    read_credentials(root, &mut catalogue, |credential| checks::check_credential(credential, &mut stems))?;
    let items = root.member("contexts").map(Field::items).transpose()?.unwrap_or_default();
    let mut named = Vec::new();
    for (index, item) in items.into_iter().enumerate() {
        match context(item.clone())? {
            Ok(context) => {
                catalogue.contexts.push(context);
                named.push((index, item));
            }
            Err(fault) => catalogue.nameless.push(fault),
        }
    }
    let mut reasons = Vec::new();
    for (context, (index, _)) in catalogue.contexts.iter().zip(&named) {
        let same = catalogue.contexts.iter().zip(&named).filter(|(other, _)| other.name == context.name);
        let same: Vec<usize> = same.map(|(_, (index, _))| *index).collect();
        let checked = match same[..] {
            [first, second, ..] => Err(checks::same_name(&context.name.0, first, second)),
            _ if context.fault.is_some() => Ok(()),
            _ => checks::check_context(&format!("contexts[{index}]."), context, &catalogue),
        };
        reasons.push(checked.err().map(located));
    }
    for ((context, (_, item)), reason) in catalogue.contexts.iter_mut().zip(named).zip(reasons) {
        if let Some(reason) = reason {
            *context = Context::faulty(context.name.clone(), item.into_value()?, reason);
        }
    }
    Ok(catalogue)
}

/// Reads the credentials, and applies `check` to each.
fn read_credentials(
    root: &Field,
    catalogue: &mut Catalogue,
    mut check: impl FnMut(&Credential) -> Result<(), Problem>,
) -> Result<(), FieldError> {
    let list = root.member("credentials").filter(|list| !list.is_blank());
    for item in list.map(Field::items).transpose()?.unwrap_or_default() {
        let read = Credential::read(item.clone()).and_then(|credential| {
            let failed =
                |Problem { field, reason }| item.member(&field).unwrap_or_else(|| item.clone()).fail(reason);
            check(&credential).map(|()| credential).map_err(failed)
        });
        match read {
            Ok(credential) => catalogue.credentials.push(credential),
            Err(reason) => {
                let name = item.member_text("name").map(|name| name.trim().to_owned());
                let written = item.into_value()?;
                catalogue.faulty_credentials.push(FaultyCredential { name, written, reason });
            }
        }
    }
    Ok(())
}

/// Reads a context. If it is not valid, the result is a context with a fault, or only the fault if it has no name.
fn context(item: Field) -> Result<Result<Context, Fault>, FieldError> {
    let reason = match Context::read(item.clone()) {
        Ok(context) => return Ok(Ok(context)),
        Err(reason) => reason,
    };
    let name = item.member_text("name").and_then(|name| Text::try_from(name.to_owned()).ok());
    let written = item.into_value()?;
    Ok(match name {
        Some(name) => Ok(Context::faulty(name, written, reason)),
        None => Err(Fault { written, reason }),
    })
}

/// Decodes a single context, without checking its references.
pub fn decode_context(origin: &str, root: Field) -> Result<Context, CatalogueError> {
    Context::read(root).map_err(CatalogueError::invalid(origin))
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

/// Adds to an error about a value that it is a reference to a variable without a value. `root` has the references.
fn naming_unset_variable(error: FieldError, root: &Field, environment: &Environment) -> FieldError {
    let FieldError::Value { position, field, reason } = error else { return error };
    let variable = root.text_at(&field).and_then(referred);
    let reason = match variable.filter(|name| environment.get(name).is_none()) {
        Some(name) => format!("{reason}; set the environment variable {name}").into(),
        None => reason,
    };
    FieldError::Value { position, field, reason }
}

/// Encodes a catalogue as YAML, in reading order.
pub fn encode_catalogue(catalogue: &Catalogue) -> Result<Vec<u8>, CatalogueError> {
    let mut bytes = Vec::new();
    let current = Value::from(catalogue.current_context.as_deref().unwrap_or_default());
    let written = catalogue.write().unwrap_or_default();
    let credentials = Some(catalogue.stored_credentials()).filter(|credentials| !credentials.is_empty());
    let credentials = credentials.map(Value::Array);
    let blocks = [
        ("currentContext", Some(&current)),
        ("defaultEditor", written.get("defaultEditor")),
        ("credentials", credentials.as_ref()),
    ];
    for (key, value) in blocks {
        if let Some(value) = value {
            bytes
                .extend(encode(PayloadType::Yaml, &Value::Object([(key.to_owned(), value.clone())].into()))?);
        }
    }
    if !catalogue.contexts.is_empty() || !catalogue.nameless.is_empty() {
        bytes.extend(b"contexts:\n");
    }
    for context in &catalogue.contexts {
        let mut members = match canonical(context).stored() {
            Value::Object(members) => members,
            _ => Object::new(),
        };
        let name = Object::from([("name".to_owned(), members.remove("name").unwrap_or_default())]);
        bytes.extend(encode_item(&[Value::Object(name), Value::Object(members)])?);
    }
    for fault in &catalogue.nameless {
        bytes.extend(encode_item(std::slice::from_ref(&fault.written))?);
    }
    Ok(bytes)
}

/// Encodes a list item from its parts, in order.
fn encode_item(parts: &[Value]) -> Result<Vec<u8>, CatalogueError> {
    let mut text = String::new();
    for part in parts {
        let part = encode(PayloadType::Yaml, part)?;
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
