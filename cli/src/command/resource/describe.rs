//! `resource describe` and `resource template`.

use std::sync::Arc;

use clap::Args;
use declarest_core::language::referred::Unread;
use declarest_core::metadata::document::{Format, OperationSection};
use declarest_core::metadata::{OperationName, Rules};
use declarest_core::path::LogicalPath;
use declarest_core::payload::pointer::Pointer;
use declarest_core::payload::{Descriptor, PayloadType, decode};
use declarest_core::sync::{Resource, SyncError};
use serde::Serialize;

use super::envelope::EnvelopeArgument;
use crate::error::Failure;
use crate::input::{InputError, Literals, PayloadArguments};
use crate::interrupt::{block_on, block_on_local};
use crate::invocation::Invocation;
use crate::output::{self, OutputPolicy};
use crate::target::PathArguments;
use crate::workspace::Workspace;

#[derive(Debug, Args)]
pub struct TemplateArguments {
    #[command(flatten)]
    path: PathArguments,
    #[command(flatten)]
    input: PayloadArguments,
    #[command(flatten)]
    envelope: EnvelopeArgument,
}

/// The description of a path.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Description {
    path: String,
    /// Whether the path is that of a collection.
    collection: bool,
    identity: Identity,
    format: String,
    /// The path of the collection on the server.
    collection_path: String,
    required_fields: Vec<String>,
    secret_fields: Vec<String>,
    operations: Vec<Operation>,
    schemas: Vec<Schema>,
}

#[derive(Debug, Serialize)]
struct Identity {
    id: String,
    alias: String,
}

#[derive(Debug, Serialize)]
struct Operation {
    name: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    method: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
}

#[derive(Debug, Serialize)]
struct Schema {
    operation: &'static str,
    schema: String,
}

/// Prints what metadata says about a path.
pub fn describe(arguments: &PathArguments, invocation: &Invocation) -> Result<(), Failure> {
    let output = invocation.output(OutputPolicy::JsonDefault)?;
    let target = arguments.target(invocation)?;
    let description = block_on(async {
        let workspace = Workspace::connected_if_possible(invocation).await?;
        let collection = target.explicit_collection
            || target.path.is_root()
            || workspace.metadata.has_wildcard_child(&target.path)?;
        Ok(described(&target.path, collection, &workspace.metadata.rules(&target.path)?))
    })?;
    let text = output.is_text().then(|| description.text());
    Ok(output.show(&description, text.as_deref())?)
}

fn described(path: &LogicalPath, collection: bool, rules: &Arc<Rules>) -> Description {
    let resolved = rules.resolved();
    let texts = |pointers: &[Pointer]| pointers.iter().map(ToString::to_string).collect();
    let section = |operation| section(path, collection, rules, operation);
    let operations = OperationName::ALL.into_iter().filter(|operation| *operation != OperationName::Compare);
    let operations: Vec<Operation> = operations
        .map(|operation| {
            let OperationSection { method, path, .. } = section(operation);
            Operation { name: operation.key(), method, path }
        })
        .collect();
    let schemas = OperationName::ALL.into_iter().filter_map(|operation| {
        let schema = resolved.operation(operation).validation.schema_ref.as_ref()?;
        Some(Schema { operation: operation.key(), schema: schema.to_string() })
    });
    let at = if collection { path.clone() } else { path.collection() };
    let collection_path = resolved.remote_collection_path.clone().unwrap_or_else(|| at.to_string());
    let default = || "/id".to_owned();
    Description {
        path: path.to_string(),
        collection,
        identity: Identity {
            id: resolved.id.clone().unwrap_or_else(default),
            alias: resolved.alias.clone().unwrap_or_else(default),
        },
        format: resolved.format.unwrap_or(Format::Any).name().to_owned(),
        collection_path,
        required_fields: texts(&resolved.required_attributes),
        secret_fields: if resolved.secret { vec![String::new()] } else { texts(&resolved.secret_attributes) },
        operations,
        schemas: schemas.collect(),
    }
}

/// Returns the request of an operation: rendered if the path alone is sufficient, otherwise as documents state it.
fn section(
    path: &LogicalPath,
    collection: bool,
    rules: &Arc<Rules>,
    operation: OperationName,
) -> OperationSection {
    let rendered = || -> Result<_, SyncError> {
        if collection {
            return Ok(rules.on_collection_with(path, Some(&Unread), None)?.section(operation)?);
        }
        let resource = Resource::by_path(path.clone(), Arc::clone(rules))?;
        Ok(resource.evaluation_with(Some(&Unread))?.unobserved().section(operation)?)
    };
    rendered().unwrap_or_else(|_| rules.resolved().operation(operation).section())
}

impl Description {
    fn text(&self) -> String {
        let mut lines = vec![
            format!("{} ({})", self.path, if self.collection { "collection" } else { "resource" }),
            format!("id {}  alias {}  format {}", self.identity.id, self.identity.alias, self.format),
            format!("collection on the server: {}", self.collection_path),
        ];
        for (title, fields) in [("required", &self.required_fields), ("secret", &self.secret_fields)] {
            if !fields.is_empty() {
                lines.push(format!("{title}: {}", fields.join(", ")));
            }
        }
        for Operation { name, method, path } in &self.operations {
            let (method, path) = (method.as_deref().unwrap_or("-"), path.as_deref().unwrap_or("-"));
            lines.push(format!("{name:<7} {method:<6} {path}"));
        }
        for Schema { operation, schema } in &self.schemas {
            lines.push(format!("schema of {operation}: {schema}"));
        }
        output::lines(lines)
    }
}

/// Prints a payload as the body of an update.
pub fn template(arguments: &TemplateArguments, invocation: &Invocation) -> Result<(), Failure> {
    let output = invocation.output(OutputPolicy::Payload)?;
    let target = arguments.path.target(invocation)?;
    let input = arguments.input.payload(Literals::Refused)?.ok_or(InputError::Required)?;
    let workspace = block_on_local(Workspace::local(invocation))?;
    let (tree, metadata) = (workspace.tree.as_ref(), &workspace.metadata);
    let resource = Resource::written(tree, metadata, target.path, input.value, input.descriptor)?;
    let evaluation = resource.evaluation_with(Some(&Unread))?.unobserved();
    let rendered = evaluation.render(OperationName::Update)?;
    let Some(body) = evaluation.body(OperationName::Update, &rendered, &resource.payload)? else {
        return Ok(());
    };
    let descriptor = Descriptor::from_media_type(&body.media_type);
    let descriptor =
        descriptor.or_else(|| resource.descriptor.clone()).unwrap_or_else(|| Descriptor::from_extension(""));
    let body = decode(descriptor.payload_type, &body.bytes)?;
    // YAML is sent as JSON unless metadata states otherwise, but people read it as it was written.
    let written = resource.descriptor.filter(|written| {
        written.payload_type == PayloadType::Yaml && descriptor.payload_type == PayloadType::Json
    });
    arguments.envelope.show(&output, body, &written.unwrap_or(descriptor))
}
