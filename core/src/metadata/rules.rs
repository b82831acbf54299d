//! Compiled rules: the merged documents that govern the same paths.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, OnceLock};

use http::{HeaderName, Method, StatusCode};
use parking_lot::Mutex;
use sha2::{Digest as _, Sha256};

use super::document::{
    Document, DocumentError, Format, NO_HEADER_NAME, OperationMode, OperationName, Pagination, ReadFrom,
    Resolved, Step, any_in_body,
};
use super::identity::{Identity, IdentityRules};
use super::openapi::PathItem;
use super::steps::{StepRules, Steps};
use super::{Api, Entries, MetadataError, Origin, Validation, ValidationError, list, origin};
use crate::language::jq::{self, ProgramCache};
use crate::language::template::IdentityTemplate;
use crate::language::template::{
    DerivedFields, Kind, OperationSources, PathPattern, PatternSources, Target, Template, TemplateError,
    derive_fields, path_patterns,
};
use crate::path::{LogicalPath, PathNames};
use crate::payload::pointer::Pointer;
use crate::payload::{Descriptor, PayloadType, Value};

/// The compiled rules for all paths that the same metadata documents govern. An [`Evaluation`](super::Evaluation) applies
/// them to one resource or collection.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts about the rules")]
pub struct Rules {
    documents: Vec<String>,
    /// The content of each document.
    stated: Vec<Arc<Document>>,
    pub(super) resolved: Resolved,
    pub(super) identity: IdentityRules,
    pub(super) remote_collection: Option<Template>,
    pub(super) depends_on: Vec<Template>,
    /// The conditions of `absent`.
    absent: BTreeMap<OperationName, jq::Query>,
    /// The conditions of `failed`, and that of the operations without one.
    failed: BTreeMap<OperationName, jq::Query>,
    failed_by_default: Option<jq::Query>,
    operations: Vec<OperationRules>,
    pub(super) patterns: Vec<PathPattern>,
    /// The number of segments of the deepest collection whose document also applies to descendants.
    pub(super) descendants: Option<usize>,
    pub(super) format: Option<Descriptor>,
    pub(super) programs: Arc<ProgramCache>,
    runs_jq: bool,
    reads_others: bool,
    /// Whether templates refer to other resources.
    refers: bool,
    /// Whether templates name the ids of parents.
    names_ids: bool,
    pub(super) api: Option<Arc<Api>>,
    /// The compiled validations by operation, and method and path template of `OpenAPI`.
    validations: Mutex<HashMap<(OperationName, String), Arc<Validation>>>,
    digest: OnceLock<[u8; 32]>,
}

/// The compiled rules of one operation.
#[derive(Debug)]
pub(super) struct OperationRules {
    pub method: Option<Template>,
    pub path: Template,
    pub query: Vec<(String, Template)>,
    pub headers: Vec<(HeaderName, Template)>,
    pub steps: Steps,
}

impl Rules {
    /// Compiles `resolved`, which is merged from `documents`, from low to high precedence. `descendants` is the number
    /// of segments of the deepest collection whose document also applies to descendants.
    pub(super) fn compile(
        resolved: Resolved,
        documents: Vec<(String, Arc<Document>)>,
        descendants: Option<usize>,
        programs: Arc<ProgramCache>,
        api: Option<Arc<Api>>,
    ) -> Result<Self, MetadataError> {
        let (documents, stated): (Vec<_>, Vec<_>) = documents.into_iter().unzip();
        let compiled = Self::compile_fields(&resolved);
        let (identity, remote_collection, operations) = compiled.map_err(|source| {
            MetadataError::Document { file: documents.join(", "), source: Arc::new(source) }
        })?;
        // Each document was checked when it was read.
        let parsed = |text: &String| Template::parse(text, Kind::ResourcePath).ok();
        let depends_on = resolved.depends_on.iter().filter_map(parsed).collect();
        let absent = conditions(|name| resolved.operation(name).absent.as_ref()?.jq.as_deref());
        let failed = conditions(|name| Some(&*resolved.operation(name).failed.as_ref()?.jq));
        let failed_by_default = resolved.failed.as_ref().and_then(|it| jq::Query::compile(&it.jq).ok());
        let patterns = patterns(&resolved, remote_collection.as_ref(), &operations);
        let format = match resolved.format {
            Some(Format::Concrete(payload_type)) => Some(Descriptor::of(payload_type)),
            Some(Format::Any) | None => None,
        };
        let runs_jq = !absent.is_empty()
            || OperationName::ALL.into_iter().any(|operation| resolved.steps(operation).any(Step::runs_jq));
        let reads = |step: &Step| matches!(step, Step::Jq(text) if calls_resource(text));
        let of_resources = OperationName::ALL.into_iter().filter(|name| *name != OperationName::List);
        let reads_others = of_resources.flat_map(|operation| resolved.steps(operation)).any(reads);
        let any = |test: &dyn Fn(&Template) -> bool| {
            let bodies = OperationName::ALL.into_iter();
            let mut bodies = bodies.filter_map(|operation| resolved.operation(operation).body.as_ref());
            remote_collection.as_ref().is_some_and(test)
                || operations.iter().any(|operation| operation.any(test))
                || bodies.any(|body| any_in_body(body, test))
        };
        let (refers, names_ids) = (any(&Template::refers), any(&names_ids));
        Ok(Self {
            documents,
            stated,
            resolved,
            identity,
            remote_collection,
            depends_on,
            absent,
            failed,
            failed_by_default,
            operations,
            patterns,
            descendants,
            format,
            programs,
            runs_jq,
            reads_others,
            refers,
            names_ids,
            api,
            validations: Mutex::default(),
            digest: OnceLock::new(),
        })
    }

    fn compile_fields(
        resolved: &Resolved,
    ) -> Result<(IdentityRules, Option<Template>, Vec<OperationRules>), DocumentError> {
        let identity = |field: &str, text: &Option<String>| {
            let parsed = text.as_deref().map(IdentityTemplate::parse).transpose();
            parsed.map_err(|error| invalid(field, error.to_string()))
        };
        let identity = IdentityRules::new(
            identity("resource.id", &resolved.id)?,
            identity("resource.alias", &resolved.alias)?,
        );
        let identity = if resolved.singleton { identity.of_singleton() } else { identity };
        let identity = identity.with_path_names(resolved.path_names.unwrap_or_default());
        let collection = resolved.remote_collection_path.as_deref();
        let collection = collection.map(|text| Template::parse(text, Kind::RemoteCollectionPath)).transpose();
        let collection = collection.map_err(|error| template(REMOTE_COLLECTION, &error))?;
        let operations = OperationName::ALL.into_iter();
        let operations = operations.map(|operation| OperationRules::compile(resolved, operation));
        Ok((identity, collection, operations.collect::<Result<_, _>>()?))
    }

    /// The files of the compiled documents, from low to high precedence.
    pub fn documents(&self) -> &[String] {
        &self.documents
    }

    /// Returns `field` with the last document that states it, because later documents take precedence.
    pub(super) fn origin(&self, field: String) -> Origin {
        let mut documents = self.documents.iter().zip(&self.stated).rev();
        let stating = documents.find(|(_, document)| origin::states(document, &field));
        Origin { field, file: stating.map(|(file, _)| file.clone()) }
    }

    /// Fails if `resource.replaceOn` names the id: a resource at `path` that was found by its alias keeps its id.
    pub(crate) fn check_kept_id(&self, path: &LogicalPath) -> Result<(), MetadataError> {
        let Some(id) = self.identity().id().simple() else { return Ok(()) };
        if !self.resolved.replace_on.contains(id) {
            return Ok(());
        }
        Err(MetadataError::Unusable {
            path: path.clone(),
            field: self.origin("resource.replaceOn".to_owned()).into(),
            rendered: id.to_string(),
            reason: "is the id, and the server has the resource with another id, which it keeps; state this id in the \
                     file, or remove the file in one commit and add it in the next",
        })
    }

    /// The content of each document, in the order of [`Self::documents`].
    pub fn stated(&self) -> &[Arc<Document>] {
        &self.stated
    }

    /// The merged content of the documents.
    pub fn resolved(&self) -> &Resolved {
        &self.resolved
    }

    /// The identity rules.
    pub fn identity(&self) -> &IdentityRules {
        &self.identity
    }

    /// Whether metadata takes the id of a resource from one of its secrets.
    pub fn has_secret_id(&self) -> bool {
        self.resolved.secret || self.is_secret(self.identity.id())
    }

    /// Whether metadata takes the alias of a resource from one of its secrets.
    pub fn has_secret_alias(&self) -> bool {
        self.is_secret(self.identity.alias())
    }

    fn is_secret(&self, name: &IdentityTemplate) -> bool {
        let secrets = &self.resolved.secret_attributes;
        let is_within = |at: &Pointer| secrets.iter().any(|secret| at.tokens().starts_with(secret.tokens()));
        !secrets.is_empty() && name.pointers().any(is_within)
    }

    /// How the segments of a path name resources.
    pub fn path_names(&self) -> PathNames {
        self.identity.path_names()
    }

    /// Returns alias and remote id of the resource at `path` with the desired `payload`.
    pub fn identify(&self, path: &LogicalPath, payload: &Value) -> Result<Identity, MetadataError> {
        self.identity.identify(path, payload).map_err(|source| {
            let is_alias = source.template() == self.identity.alias().source();
            let field = if is_alias { "resource.alias" } else { "resource.id" };
            MetadataError::Identity {
                path: path.clone(),
                field: self.origin(field.to_owned()).into(),
                source,
            }
        })
    }

    /// Returns a substitute for the payload of the resource at `path`, to be used if only the path is known.
    pub fn seed(&self, path: &LogicalPath) -> Value {
        let derived = self.derived(path, &path.collection());
        self.identity.seed(path, derived.members())
    }

    /// Returns whether `payload` states its remote id.
    pub fn states_id(&self, payload: &Value) -> bool {
        self.identity.id().evaluate(payload).is_ok()
    }

    /// Returns `payload` with its id set to `remote_id`, so that a stale id in a file cannot address another resource;
    /// `None` if nothing changes, or if metadata does not state `resource.id` as a single pointer.
    pub fn with_remote_id(&self, payload: &Value, remote_id: &str) -> Option<Value> {
        let pointer = self.identity.id().simple().filter(|_| self.resolved.id.is_some())?;
        let stated = pointer.get(payload).and_then(Value::scalar_text);
        let changes = stated.is_none_or(|stated| stated.trim() != remote_id);
        changes.then(|| pointer.put(payload.clone(), Value::from(remote_id)))
    }

    /// Returns the remote id that the observed `payload` states; `None` if metadata does not define `resource.id`.
    pub fn observed_id(&self, payload: &Value) -> Option<String> {
        self.resolved.id.as_ref()?;
        let id = self.identity.id().evaluate(payload).ok()?;
        self.path_names().check(&id).ok().map(str::to_owned)
    }

    /// Returns the attributes that `operation` requires and `payload` lacks, without duplicates: those that metadata
    /// requires, and those that alias and id are rendered from.
    pub fn missing_in(&self, payload: &Value, operation: OperationName) -> Vec<String> {
        let creating = match operation {
            OperationName::Create => true,
            OperationName::Update => false,
            _ => return Vec::new(),
        };
        let required = self.resolved.required_attributes.iter();
        let absent = required.filter(|pointer| pointer.get(payload).is_none_or(Value::is_null));
        let mut missing: Vec<String> = absent.map(ToString::to_string).collect();
        // The path of a singleton is its name, whatever broader metadata states.
        let names =
            if self.resolved.singleton { Vec::new() } else { self.identity.missing_in(payload, creating) };
        for text in names {
            if !missing.contains(&text) {
                missing.push(text);
            }
        }
        missing
    }

    /// Returns the entries of a list response for `collection`, after its transforms.
    pub fn entries(&self, collection: &LogicalPath, answer: Value) -> Result<Entries, MetadataError> {
        let mut entries = list::entries(&self.identity, collection, answer, self.lists_names())?;
        if !self.resolved.write_only_attributes.is_empty() {
            for entry in &mut entries.named {
                entry.payload = self.shown(std::mem::take(&mut entry.payload));
            }
        }
        Ok(entries)
    }

    /// Returns an observed payload without write-only attributes, for which some servers show masks.
    pub(super) fn shown(&self, payload: Value) -> Value {
        let pointers = self.resolved.write_only_attributes.iter();
        pointers.fold(payload, |payload, pointer| pointer.remove(payload))
    }

    /// Returns whether the entries of a list only name the members.
    pub fn lists_names(&self) -> bool {
        self.resolved.operation(OperationName::List).mode == Some(OperationMode::Names)
    }

    /// The pagination that metadata states for lists.
    pub(super) fn pagination(&self) -> Option<&Pagination> {
        self.resolved.operation(OperationName::List).pagination.as_ref()
    }

    /// The status codes by which `absent` of an operation recognises absence.
    pub fn absent_statuses(&self, operation: OperationName) -> &[u16] {
        let absent = self.resolved.operation(operation).absent.as_ref();
        absent.and_then(|absent| absent.status.as_deref()).unwrap_or_default()
    }

    /// Whether an answer means that the resource does not exist, or that the list has no entries, according to `absent` of
    /// the operation. An expression that fails is not true. Blocks while it runs.
    pub fn means_absent(&self, operation: OperationName, status: StatusCode, answer: &Value) -> bool {
        let Some(absent) = &self.resolved.operation(operation).absent else { return false };
        let has_status = match &absent.status {
            Some(statuses) => statuses.contains(&status.as_u16()),
            None => status.is_success(),
        };
        let condition = self.absent.get(&operation);
        let holds = || condition.is_none_or(|condition| condition.holds(answer).unwrap_or(false));
        has_status && holds()
    }

    /// The condition by which an answer to the operation with a status of success states a failure.
    pub fn failed(&self, operation: OperationName) -> Option<&jq::Query> {
        self.failed.get(&operation).or(self.failed_by_default.as_ref())
    }

    /// Whether a resource is read in the list of its collection.
    pub fn reads_from_list(&self) -> bool {
        self.resolved.operation(OperationName::Get).from == Some(ReadFrom::List)
    }

    /// Returns whether an update depends on the content of the resource on the server.
    pub fn updates_observed(&self) -> bool {
        let mode = self.resolved.operation(OperationName::Update).mode;
        let reads = |step: &Step| matches!(step, Step::Jq(text) if text.contains("$observed"));
        mode.is_some_and(|mode| mode != OperationMode::Replace)
            || self.resolved.steps(OperationName::Update).any(reads)
            || self.observes(OperationName::Update)
    }

    /// Returns whether an update takes values from the content on the server, so that it needs the whole content.
    pub fn merges(&self) -> bool {
        let mode = self.resolved.operation(OperationName::Update).mode;
        matches!(mode, Some(OperationMode::Merge | OperationMode::JsonPatch))
    }

    /// Returns whether templates of `operation` use the content of the resource on the server.
    pub fn observes(&self, operation: OperationName) -> bool {
        let body = self.resolved.operation(operation).body.as_ref();
        self.operation(operation).any(&Template::observes)
            || body.is_some_and(|body| any_in_body(body, &Template::observes))
    }

    /// Returns whether an update may replace attributes that the payload does not state.
    pub fn replaces_whole(&self) -> bool {
        let method = self.resolved.operation(OperationName::Update).method.as_deref();
        self.patch_type(OperationName::Update).is_none() && method.is_none_or(|method| method != "PATCH")
    }

    /// Returns whether the requests of one resource go to its id below the collection, and nothing else in them names it.
    pub fn addresses_by_id(&self) -> bool {
        let operations = [OperationName::Get, OperationName::Update, OperationName::Delete].map(|name| {
            let stated = self.resolved.operation(name);
            stated.path.is_none() && stated.query.is_empty() && stated.body.is_none()
        });
        operations.into_iter().all(|is_default| is_default)
            && !self.reads_from_list()
            && self.operation(OperationName::Get).headers.iter().all(|(_, value)| value.is_static())
    }

    /// Returns whether the query of `operation` differs between resources. What the server has, such as a revision, does not
    /// count.
    pub fn names_in_query(&self, operation: OperationName) -> bool {
        let names = |template: &Template| {
            !template.is_static() && (!template.observes() || !template.pointers().is_empty())
        };
        self.operation(operation).query.iter().any(|(_, template)| names(template))
    }

    /// Returns whether a payload may have secrets.
    pub fn has_secrets(&self) -> bool {
        self.resolved.secret || !self.resolved.secret_attributes.is_empty()
    }

    /// Returns whether a document with `selector.descendants` applies.
    pub fn of_descendants(&self) -> bool {
        self.descendants.is_some()
    }

    /// Returns whether the transforms of a resource read other resources.
    pub fn reads_others(&self) -> bool {
        self.reads_others
    }

    /// Returns whether templates refer to other resources.
    pub fn refers(&self) -> bool {
        self.refers
    }

    /// Returns whether templates name the ids of parents, so that requests need them.
    pub fn names_ids(&self) -> bool {
        self.names_ids
    }

    /// The media type of the patch that `operation` sends; `None` if it sends a whole payload.
    pub(super) fn patch_type(&self, operation: OperationName) -> Option<&'static str> {
        let mode = self.resolved.operation(operation).mode.filter(|_| operation == OperationName::Update);
        mode.and_then(OperationMode::patch_type)
    }

    /// Returns whether an entry of a list may be used instead of a read of the member: no rule makes it differ from
    /// [`Self::as_read`], and no jq runs when they are compared. With jq, a partial entry could look complete, because `//` replaces
    /// missing values.
    pub fn entries_may_stand_for_reads(&self) -> bool {
        let only_reduces = |operation| self.operation(operation).steps.only_reducing().is_some();
        only_reduces(OperationName::Get)
            && only_reduces(OperationName::List)
            && self.resolved.operation(OperationName::Get).path.is_none()
            && !self.lists_names()
            && !self.absent.contains_key(&OperationName::Get)
            && self.resolved.write_only_attributes.is_empty()
            && !self.resolved.steps(OperationName::Compare).any(Step::runs_jq)
    }

    /// Returns an entry of a list as a read of the member shows it, if the steps of `get` only remove attributes, or take
    /// a member of the answer before, as of `{"data": {...}}`. The input of other steps may be an answer of another shape,
    /// so they leave the entry unchanged.
    pub fn as_read<'v>(&self, entry: Cow<'v, Value>) -> Cow<'v, Value> {
        match self.operation(OperationName::Get).steps.only_reducing() {
            Some(pipeline) if pipeline.removes() && !matches!(*entry, Value::Bytes(_)) => {
                Cow::Owned(pipeline.without_removed(entry.into_owned()))
            }
            _ => entry,
        }
    }

    /// Returns a hash of the rules without the `OpenAPI` document. Other versions of the program may return
    /// another one.
    pub fn digest(&self) -> &[u8; 32] {
        self.digest.get_or_init(|| Sha256::digest(format!("{:?}", self.resolved)).into())
    }

    /// Returns whether a step runs jq, so that evaluation may take long.
    pub const fn runs_jq(&self) -> bool {
        self.runs_jq
    }

    /// The format of payloads; `None` if metadata does not state a concrete one.
    pub fn payload_type(&self) -> Option<PayloadType> {
        self.format.as_ref().map(|format| format.payload_type)
    }

    /// Returns the validation of the body of `operation`, which `method` sends to `path`. It is compiled once per path template of `OpenAPI`.
    pub(super) fn validation(
        &self,
        operation: OperationName,
        method: &Method,
        path: &str,
    ) -> Result<Arc<Validation>, ValidationError> {
        let rules = &self.resolved.operation(operation).validation;
        let item = self.api.as_ref().and_then(|api| api.path(path));
        let template = item.map_or("", PathItem::template);
        let key = (operation, format!("{method} {template}"));
        if let Some(known) = self.validations.lock().get(&key) {
            return Ok(Arc::clone(known));
        }
        let described = item.and_then(|item| item.operation(method));
        let document = self.api.as_ref().map(|api| api.document());
        let compiled = Arc::new(Validation::compile(rules, document, described)?);
        self.validations.lock().insert(key, Arc::clone(&compiled));
        Ok(compiled)
    }

    pub(super) fn operation(&self, operation: OperationName) -> &OperationRules {
        &self.operations[operation as usize]
    }

    pub(super) fn derived(&self, path: &LogicalPath, collection: &LogicalPath) -> DerivedFields {
        let target = Target { path, collection, descendants: None, names: self.path_names() };
        derive_fields(&target, &self.patterns)
    }
}

/// The name of the field `remoteCollectionPath` in messages.
pub(super) const REMOTE_COLLECTION: &str = "resource.remoteCollectionPath";

impl OperationRules {
    fn compile(resolved: &Resolved, operation: OperationName) -> Result<Self, DocumentError> {
        let said = resolved.operation(operation);
        let field = |key: &str| format!("operations.{operation}.{key}");
        let parse = |text: &str, kind, key: &str| {
            Template::parse(text, kind).map_err(|error| template(&field(key), &error))
        };
        // A member `id` in the payload of a singleton is not its name.
        let is_named_by_path = resolved.singleton && resolved.id.is_none();
        let default = default_path(operation);
        let default = if is_named_by_path && default != "." { "./{{/remoteID}}" } else { default };
        let mut headers = Vec::new();
        for (name, value) in said.headers.iter() {
            let key = format!("headers.{name}");
            let named = HeaderName::from_bytes(name.as_bytes());
            let named = named.map_err(|_| invalid(&field(&key), NO_HEADER_NAME))?;
            headers.push((named, parse(value, Kind::Header, &key)?));
        }
        let query = said
            .query
            .iter()
            .map(|(name, value)| Ok((name.clone(), parse(value, Kind::Query, &format!("query.{name}"))?)));
        Ok(Self {
            method: said.method.as_deref().map(|text| parse(text, Kind::Method, "method")).transpose()?,
            path: parse(said.path.as_deref().unwrap_or(default), Kind::Path, "path")?,
            query: query.collect::<Result<_, DocumentError>>()?,
            headers,
            steps: Steps::compile(resolved, operation)?,
        })
    }

    /// Whether `test` is true for a template.
    fn any(&self, test: &dyn Fn(&Template) -> bool) -> bool {
        let step = |step: &StepRules| matches!(step, StepRules::Jq(template) if test(template));
        self.method.as_ref().is_some_and(test)
            || test(&self.path)
            || self.query.iter().any(|(_, template)| test(template))
            || self.headers.iter().any(|(_, template)| test(template))
            || matches!(&self.steps, Steps::Rendered(steps) if steps.iter().any(step))
    }
}

/// Compiles the conditions of operations. Each document was checked when it was read.
fn conditions<'r>(text: impl Fn(OperationName) -> Option<&'r str>) -> BTreeMap<OperationName, jq::Query> {
    let condition = |name| Some((name, jq::Query::compile(text(name)?).ok()?));
    OperationName::ALL.into_iter().filter_map(condition).collect()
}

/// Whether a template names the ids of parents.
fn names_ids(template: &Template) -> bool {
    template.pointers().iter().any(|pointer| pointer.tokens().first().is_some_and(|name| name == "ids"))
}

/// Returns the path of an operation if no document states one.
pub(super) const fn default_path(operation: OperationName) -> &'static str {
    match operation {
        OperationName::Create | OperationName::List => ".",
        OperationName::Get | OperationName::Update | OperationName::Delete | OperationName::Compare => {
            "./{{/id}}"
        }
    }
}

fn patterns(
    resolved: &Resolved,
    remote_collection: Option<&Template>,
    operations: &[OperationRules],
) -> Vec<PathPattern> {
    let mut sources = PatternSources { remote_collection, ..PatternSources::default() };
    // Parse the steps again, because `OperationRules` keeps steps without templates as jq only.
    let jq = |steps: &[Step]| -> Vec<Template> {
        let texts = steps.iter().filter_map(|step| match step {
            Step::Jq(text) => Template::parse(text, Kind::Jq).ok(),
            Step::Select(_) | Step::Exclude(_) => None,
        });
        texts.collect()
    };
    let shared = jq(&resolved.transforms);
    sources.default_steps = shared.iter().collect();
    let own: Vec<Vec<Template>> =
        OperationName::ALL.iter().map(|operation| jq(&resolved.operation(*operation).transforms)).collect();
    for operation in OperationName::ALL {
        let place = operation as usize;
        let explicit = resolved.operation(operation).path.is_some();
        let path = explicit.then(|| &operations[place].path);
        let found = OperationSources { steps: own[place].iter().collect(), path };
        sources.operations.insert(operation.key(), found);
    }
    path_patterns(&sources)
}

fn template(field: &str, error: &TemplateError) -> DocumentError {
    invalid(field, error.to_string())
}

fn invalid(field: &str, reason: impl Into<std::borrow::Cow<'static, str>>) -> DocumentError {
    DocumentError::invalid(field, reason)
}

/// Whether a jq expression seems to call `resource()`.
fn calls_resource(jq: &str) -> bool {
    let mut names = jq.split("resource").skip(1);
    names.any(|rest| rest.trim_start().starts_with('('))
}
