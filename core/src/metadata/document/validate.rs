//! Validates the rules of one document that decoding does not check, and the templates and jq expressions in it.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt::Display;

use http::HeaderName;

use super::{
    AbsentSection, DefaultsSection, Document, DocumentError, ExternalizedAttribute, OperationName,
    OperationSection, OperationsSection, Pagination, ResourceSection, Step,
};
use crate::language::jq::{Origin, Program};
use crate::language::template::{IdentityTemplate, Kind, Template};
use crate::payload::pointer::Pointer;
use crate::payload::{PayloadType, Value};
use crate::repository::{is_profile_name, sidecar_file};

/// The fault of a key of `headers` that is not a header name.
pub(in crate::metadata) const NO_HEADER_NAME: &str =
    "is not a header name (RFC 9110, section 5.1); use letters, digits and \"-\", without spaces or a colon";

type Outcome = Result<(), DocumentError>;

/// Reads and validates a document. Errors name their location in it. `collection` is whether the document is that of a
/// collection (`_/metadata.yaml`).
pub fn read(format: PayloadType, bytes: &[u8], collection: bool) -> Result<Document, DocumentError> {
    let document = Document::decode(format, bytes)?;
    document.validate(collection).map_err(|error| error.located(format, bytes))?;
    Ok(document)
}

impl Document {
    /// Checks all rules that concern a single document, and the templates and jq expressions in it. It is called by
    /// [`read`], and before a document is written.
    pub fn validate(&self, collection: bool) -> Result<(), DocumentError> {
        if self.selector.is_some() && !collection {
            return invalid("selector", "only the metadata of a collection can have one");
        }
        if let Some(resource) = &self.resource {
            check_resource(resource)?;
        }
        if let Some(operations) = &self.operations {
            check_operations(operations)?;
        }
        let format = self.resource.as_ref().and_then(|resource| resource.format);
        match format.filter(|format| format.is_unstructured()) {
            Some(format) => match self.first_structured() {
                Some(field) => invalid(
                    field,
                    format!(
                        "payloads of the format {} have no attributes; remove this, or the format",
                        format.name()
                    ),
                ),
                None => Ok(()),
            },
            None => Ok(()),
        }
    }

    /// Returns the first field that refers to attributes of payloads.
    fn first_structured(&self) -> Option<String> {
        let resource = self.resource.iter().filter_map(|resource| {
            let lists = [
                ("requiredAttributes", is_filled(resource.required_attributes.as_ref())),
                ("writeOnlyAttributes", is_filled(resource.write_only_attributes.as_ref())),
                ("deferredAttributes", is_filled(resource.deferred_attributes.as_ref())),
                ("replaceOn", is_filled(resource.replace_on.as_ref())),
                ("secretAttributes", is_filled(resource.secret_attributes.as_ref())),
                ("externalizedAttributes", is_filled(resource.externalized_attributes.as_ref())),
            ];
            let values = [
                ("id", said(resource.id.as_ref()).is_some()),
                ("alias", said(resource.alias.as_ref()).is_some()),
                ("defaults", resource.defaults.is_some()),
            ];
            let found = values.into_iter().chain(lists).find(|(_, there)| *there);
            found.map(|(key, _)| format!("resource.{key}"))
        });
        let operations = self.operations.iter().flat_map(|section| {
            let shared = section.defaults.as_ref().and_then(|defaults| defaults.transforms.as_ref());
            let shared = is_filled(shared).then(|| "operations.defaults.transforms".to_owned());
            let own = section.operations.iter().filter_map(|(name, operation)| {
                let key = match operation {
                    _ if operation.validate.is_some() => "validate",
                    // The answer to a list is structured, also if its members are not.
                    _ if *name != OperationName::List && is_filled(operation.transforms.as_ref()) => {
                        "transforms"
                    }
                    _ => return None,
                };
                Some(format!("operations.{name}.{key}"))
            });
            shared.into_iter().chain(own)
        });
        resource.chain(operations).next()
    }
}

fn check_resource(resource: &ResourceSection) -> Outcome {
    identity("resource.id", resource.id.as_ref())?;
    identity("resource.alias", resource.alias.as_ref())?;
    let collection = resource.remote_collection_path.as_ref();
    template(Kind::RemoteCollectionPath, "resource.remoteCollectionPath", collection)?;
    pointers("resource.requiredAttributes", resource.required_attributes.as_ref())?;
    pointers("resource.writeOnlyAttributes", resource.write_only_attributes.as_ref())?;
    pointers("resource.deferredAttributes", resource.deferred_attributes.as_ref())?;
    pointers("resource.replaceOn", resource.replace_on.as_ref())?;
    for (index, path) in resource.depends_on.iter().flatten().enumerate() {
        let field = format!("resource.dependsOn[{index}]");
        if !path.starts_with('/') {
            return invalid(field, "a path of the repository must start with \"/\"");
        }
        template(Kind::Path, &field, Some(path))?;
    }
    pointers("resource.secretAttributes", resource.secret_attributes.as_ref())?;
    if resource.secret == Some(true) && is_filled(resource.secret_attributes.as_ref()) {
        return invalid(
            "resource.secretAttributes",
            "the whole resource is secret; remove these or \"secret: true\"",
        );
    }
    externalized(resource.externalized_attributes.as_deref().unwrap_or_default())?;
    resource.defaults.as_ref().map_or(Ok(()), defaults)
}

fn check_operations(section: &OperationsSection) -> Outcome {
    let shared = section.defaults.as_ref().and_then(|defaults| defaults.transforms.as_ref());
    check_transforms("operations.defaults", shared)?;
    let failed = section.defaults.as_ref().and_then(|defaults| defaults.failed.as_ref());
    failed.map_or(Ok(()), |failed| jq("operations.defaults.failed.jq", &failed.jq))?;
    for (name, operation) in &section.operations {
        if operation.pagination.is_some() && *name != OperationName::List {
            return invalid(format!("operations.{name}.pagination"), "only list has pages; remove it");
        }
        check_operation(*name, operation)?;
    }
    Ok(())
}

fn check_operation(name: OperationName, operation: &OperationSection) -> Outcome {
    let field = &format!("operations.{name}");
    let may_observe = matches!(name, OperationName::Update | OperationName::Delete);
    let check_observed = |field: &str, observes: bool| {
        if observes && !may_observe {
            invalid(field, "only update and delete have $observed")
        } else {
            Ok(())
        }
    };
    let check_value = |kind, field: &str, text: &str| -> Outcome {
        let parsed = Template::parse(text, kind);
        let observes = parsed.as_ref().is_ok_and(Template::observes);
        valid(field, parsed.map(drop)).and_then(|()| check_observed(field, observes))
    };
    template(Kind::Method, &format!("{field}.method"), operation.method.as_ref())?;
    template(Kind::Path, &format!("{field}.path"), operation.path.as_ref())?;
    for (name, value) in operation.query.iter().flatten() {
        check_value(Kind::Query, &format!("{field}.query.{name}"), value)?;
    }
    for (name, value) in operation.headers.iter().flat_map(super::Headers::iter) {
        let field = format!("{field}.headers.{name}");
        if HeaderName::from_bytes(name.as_bytes()).is_err() {
            return invalid(field, NO_HEADER_NAME);
        }
        check_value(Kind::Header, &field, value)?;
    }
    let observes = operation.body.as_ref().is_some_and(|body| any_in_body(body, &Template::observes));
    check_observed(&format!("{field}.body"), observes)?;
    check_transforms(field, operation.transforms.as_ref())?;
    if let Some(absent) = &operation.absent {
        check_absent(&format!("{field}.absent"), absent)?;
    }
    if let Some(failed) = &operation.failed {
        jq(&format!("{field}.failed.jq"), &failed.jq)?;
    }
    if let Some(stated) = &operation.pagination {
        pagination(&format!("{field}.pagination"), stated)?;
    }
    let Some(validate) = &operation.validate else { return Ok(()) };
    pointers(&format!("{field}.validate.requiredAttributes"), validate.required_attributes.as_ref())?;
    for (index, assertion) in validate.assertions.iter().flatten().enumerate() {
        let field = format!("{field}.validate.assertions[{index}].jq");
        if assertion.jq.trim().is_empty() {
            return invalid(field, "is blank; write a jq expression that returns true");
        }
        jq(&field, &assertion.jq)?;
    }
    Ok(())
}

/// Whether `test` is true for a template in a body.
pub(in crate::metadata) fn any_in_body(body: &Value, test: &dyn Fn(&Template) -> bool) -> bool {
    match body {
        Value::String(text) => {
            text.contains("{{") && Template::parse(text, Kind::Query).is_ok_and(|template| test(&template))
        }
        _ => body.children().any(|child| any_in_body(child, test)),
    }
}

fn check_absent(field: &str, absent: &AbsentSection) -> Outcome {
    let is_other = |status: &&u16| match **status {
        // Without a condition, no resource would exist.
        200..300 => absent.jq.is_none(),
        status => !(400..500).contains(&status) || [401, 403, 408, 429].contains(&status),
    };
    if let Some(status) = absent.status.iter().flatten().find(is_other) {
        let reason = format!(
            "{status} is not allowed; use 4xx, except 401, 403, 408 and 429, or 2xx together with jq"
        );
        return invalid(format!("{field}.status"), reason);
    }
    absent.jq.as_ref().map_or(Ok(()), |text| jq(&format!("{field}.jq"), text))
}

fn check_transforms(field: &str, steps: Option<&Vec<Step>>) -> Outcome {
    for (index, step) in steps.into_iter().flatten().enumerate() {
        let field = format!("{field}.transforms[{index}]");
        match step {
            Step::Select(list) => pointers(&format!("{field}.selectAttributes"), Some(list))?,
            Step::Exclude(list) => pointers(&format!("{field}.excludeAttributes"), Some(list))?,
            Step::Jq(expression) => {
                let field = format!("{field}.jqExpression");
                // The jq expression of a template is only known after rendering.
                if !expression.contains("{{") {
                    jq(&field, expression)?;
                }
                template(Kind::Jq, &field, Some(expression))?;
            }
        }
    }
    Ok(())
}

fn template(kind: Kind, field: &str, text: Option<&String>) -> Outcome {
    valid(field, said(text).map_or(Ok(()), |text| Template::parse(text, kind).map(drop)))
}

fn identity(field: &str, text: Option<&String>) -> Outcome {
    valid(field, said(text).map_or(Ok(()), |text| IdentityTemplate::parse(text).map(drop)))
}

fn jq(field: &str, text: &str) -> Outcome {
    valid(field, Program::compile(text, Origin::Metadata).map(drop))
}

fn valid(field: &str, parsed: Result<(), impl Display>) -> Outcome {
    parsed.or_else(|error| invalid(field, error.to_string()))
}

/// Checks pointers and parameter names. The two parameters must differ, because a request cannot have both.
fn pagination(field: &str, stated: &Pagination) -> Outcome {
    let numbered = stated.numbered();
    let (pointer, parameter) = match stated {
        Pagination::Next { pointer } => (Some(pointer), None),
        Pagination::Cursor { pointer, parameter } => (Some(pointer), Some(parameter)),
        _ => (None, numbered.map(|numbered| &numbered.parameter)),
    };
    let size = numbered.and_then(|numbered| numbered.size_parameter.as_ref());
    let items = numbered.and_then(|numbered| numbered.items.as_ref());
    for (key, pointer) in [("pointer", pointer), ("items", items)] {
        if pointer.is_some_and(Pointer::is_root) {
            return invalid(format!("{field}.{key}"), "a JSON Pointer must start with \"/\"");
        }
    }
    for (key, name) in [("parameter", parameter), ("sizeParameter", size)] {
        if name.is_some_and(|name| name.trim().is_empty()) {
            return invalid(format!("{field}.{key}"), "is blank; name the query parameter");
        }
        if let Some(Err(error)) = name.filter(|name| name.starts_with('/')).map(|name| Pointer::parse(name)) {
            return invalid(format!("{field}.{key}"), error.to_string());
        }
    }
    if size.is_some() && size == parameter {
        return invalid(format!("{field}.sizeParameter"), "must differ from parameter");
    }
    Ok(())
}

fn pointers(field: &str, list: Option<&Vec<Pointer>>) -> Outcome {
    match list.into_iter().flatten().position(Pointer::is_root) {
        Some(index) => invalid(format!("{field}[{index}]"), "a JSON Pointer must start with \"/\""),
        None => Ok(()),
    }
}

fn externalized(entries: &[ExternalizedAttribute]) -> Outcome {
    let (mut paths, mut files) = (HashSet::new(), HashSet::new());
    for (index, entry) in entries.iter().enumerate() {
        let field = |key| format!("resource.externalizedAttributes[{index}].{key}");
        pointers(&field("path"), Some(&vec![entry.path.clone()]))?;
        let file = match sidecar_file(&entry.file) {
            Ok(file) => file,
            Err(reason) => return invalid(field("file"), format!("\"{}\" {reason}", entry.file)),
        };
        if entry.template.as_ref().is_some_and(|template| template.matches("%s").count() != 1) {
            return invalid(field("template"), "must have exactly one %s, for the file");
        }
        if entry.is_enabled() && !paths.insert(&entry.path) {
            return invalid(field("path"), format!("{} is externalized twice; keep one entry", entry.path));
        }
        if entry.is_enabled() && !files.insert(file) {
            return invalid(
                field("file"),
                format!("\"{}\" is used twice; give each attribute its own file", entry.file),
            );
        }
    }
    Ok(())
}

fn defaults(section: &DefaultsSection) -> Outcome {
    let selected = section.use_profiles.iter().flatten().map(|name| ("useProfiles", name));
    let defined = section.profiles.iter().flatten().map(|(name, _)| ("profiles", name));
    match selected.chain(defined).find(|(_, name)| !is_profile_name(name)) {
        Some((key, name)) => invalid(
            format!("resource.defaults.{key}"),
            format!(
                "\"{name}\" is not a profile name; use letters, digits, \".\", \"_\" and \"-\", a letter or digit first"
            ),
        ),
        None => Ok(()),
    }
}

/// Returns the text, unless it is blank.
fn said(text: Option<&String>) -> Option<&String> {
    text.filter(|text| !text.trim().is_empty())
}

fn is_filled<T>(list: Option<&Vec<T>>) -> bool {
    list.is_some_and(|list| !list.is_empty())
}

fn invalid(field: impl Into<String>, reason: impl Into<Cow<'static, str>>) -> Outcome {
    Err(DocumentError::invalid(field, reason))
}
