//! Commands that print metadata without rendering: `get` and `resolve`.

use declarest_core::error::{Categorized as _, Category};
use declarest_core::metadata::document::{Document, merge};
use declarest_core::metadata::inference::{conventions, infer_all, is_collection};
use declarest_core::metadata::{Api, OperationName};
use declarest_core::payload::Value;
use declarest_core::repository::RepositoryError;

use super::Subject;
use crate::error::Failure;
use crate::interrupt::{block_on, block_on_local};
use crate::invocation::Invocation;
use crate::output::OutputPolicy;
use crate::target::PathArguments;
use crate::workspace::Workspace;

/// `resource metadata get`.
pub fn get(path: &PathArguments, overrides_only: bool, invocation: &Invocation) -> Result<(), Failure> {
    let output = invocation.output(OutputPolicy::JsonDefault)?;
    let subject = Subject::new(path, invocation)?;
    let missing = || RepositoryError::MetadataMissing(subject.selector.document_stem());
    let metadata = block_on_local(Workspace::local(invocation))?.metadata;
    let stored = metadata.stored(&subject.selector)?;
    let governing = metadata.rules(&subject.representative()?)?;
    let shown = if overrides_only {
        stored.last().ok_or_else(missing)?.to_value()
    } else if stored.is_empty() && governing.stated().is_empty() {
        let inferred = block_on(inferred(&subject, invocation))?.ok_or_else(missing)?.to_value();
        let text = &subject.text;
        invocation.messages.note(&format!(
            "no document governs {text}: this metadata is inferred, and requests use only the defaults and what the OpenAPI \
             document supplies; \"declarest resource metadata infer {text} --apply\" stores it"
        ));
        inferred
    } else {
        let default = merge(vacant(subject.selector.is_collection()), conventions(&subject.text)?.to_value());
        let shown = merge(default, governing.resolved().to_document().to_value());
        // A document of a selector may contain fields that do not apply to its representative path.
        stored.iter().map(|document| document.to_value()).fold(shown, merge)
    };
    Ok(output.show(&shown, None)?)
}

/// Returns the parts of a metadata document that are empty by default.
fn vacant(collection: bool) -> Value {
    let object = |members: Vec<(&str, Value)>| {
        Value::Object(members.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
    };
    let empty = || object(Vec::new());
    let operation = |name: OperationName| {
        let sent = [("query", empty()), ("headers", empty()), ("body", Value::Null), ("validate", empty())];
        let sent = sent.into_iter().filter(|_| name != OperationName::Compare);
        (name.key(), object(sent.chain([("transforms", Value::Array(Vec::new()))]).collect()))
    };
    let operations = OperationName::ALL.into_iter().map(operation).collect();
    let resource = vec![("defaults", empty()), ("format", "any".into())];
    let mut members = vec![("operations", object(operations)), ("resource", object(resource))];
    // Only documents of collections may have a selector.
    if collection {
        members.push(("selector", object(vec![("descendants", false.into())])));
    }
    object(members)
}

/// Returns the inferred metadata of a path without stored metadata, if the server or its `OpenAPI` document has it.
async fn inferred(subject: &Subject, invocation: &Invocation) -> Result<Option<Document>, Failure> {
    let path = subject.representative()?;
    let workspace = Workspace::connected_if_possible(invocation).await?;
    let document = workspace.metadata.api().map(Api::document);
    let described = document
        .is_some_and(|document| document.path(path.as_str(), "").is_some() || is_collection(document, &path));
    if !described && !is_on_server(subject, &workspace).await? {
        return Ok(None);
    }
    Ok(Some(infer_all(&subject.text, document)?))
}

async fn is_on_server(subject: &Subject, workspace: &Workspace<'_>) -> Result<bool, Failure> {
    let has_wildcards = subject.text.contains(['_', '*', '?', '[']) && subject.selector.is_collection();
    if has_wildcards || !workspace.is_connected() {
        return Ok(false);
    }
    let path = subject.representative()?;
    let remote = workspace.remote()?;
    let found = if subject.selector.is_collection() {
        remote.list(&path).await.map(drop)
    } else {
        remote.find(&path).await.map(drop)
    };
    match found {
        Ok(()) => Ok(true),
        Err(error) if matches!(error.category(), Category::NotFound | Category::Validation) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// `resource metadata resolve`.
pub fn resolve(path: &PathArguments, invocation: &Invocation) -> Result<(), Failure> {
    let output = invocation.output(OutputPolicy::JsonDefault)?;
    let subject = Subject::new(path, invocation)?;
    let metadata = block_on_local(Workspace::local(invocation))?.metadata;
    let rules = metadata.rules(&subject.representative()?)?;
    Ok(output.show(&rules.resolved().to_document().to_value(), None)?)
}
