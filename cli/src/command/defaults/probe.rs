//! Defaults that the server adds: temporary resources are created, read and deleted.

use std::time::{Duration, Instant};

use declarest_core::error::Category;
use declarest_core::metadata::{OperationName, Rules};
use declarest_core::path::LogicalPath;
use declarest_core::payload::pointer::Pointer;
use declarest_core::payload::{Descriptor, Object, PayloadType, Value};
use declarest_core::sync::{self, Intent, Options, Resource, Selection, Session, Stop};

use crate::error::Failure;
use crate::interrupt::finish;
use crate::terminal;
use crate::workspace::Workspace;

/// The beginning of the names of temporary resources.
const PREFIX: &str = "declarest-defaults-";

/// How often a wait looks for Ctrl-C.
const STEP: Duration = Duration::from_millis(100);

/// Asks whether temporary resources may be created, unless `yes`.
pub fn confirm(yes: bool, collection: &LogicalPath) -> Result<(), Failure> {
    if yes {
        return Ok(());
    }
    if !terminal::is_interactive() {
        return Err(Failure::invalid(
            "--from managed-server creates and deletes two temporary resources; confirm it with --yes",
        ));
    }
    let question = format!("Create and delete two temporary resources in {collection}? [y/N]");
    match terminal::ask(&question, false)?.expose().trim() {
        "y" | "Y" | "yes" => Ok(()),
        _ => Err(Failure::invalid("canceled; nothing was created")),
    }
}

/// Creates two resources in `collection`, reads them after `wait`, and deletes them in any case. Returns what the server
/// added to both. `samples` are payloads of declared resources, which provide the values of required attributes.
pub async fn added_by_server(
    workspace: &Workspace<'_>,
    collection: &LogicalPath,
    samples: &[Object],
    wait: Duration,
) -> Result<Vec<Object>, Failure> {
    let session = workspace.session()?;
    let run = fastrand::u32(..);
    let mut probes = Vec::new();
    for number in 1..=2 {
        let name = format!("{PREFIX}{run:08x}-{number}");
        let path = collection.child(&name).map_err(|error| Failure::invalid(error.to_string()))?;
        let rules = workspace.metadata.rules(&path)?;
        let payload = minimal(&rules, &name, samples)?;
        let (tree, descriptor) = (workspace.tree.as_ref(), Descriptor::of(PayloadType::Json));
        let probe = Resource::written(tree, &workspace.metadata, path, payload.clone(), descriptor)?;
        probes.push((probe, payload));
    }
    let resources: Vec<Resource> = probes.iter().map(|(probe, _)| probe.clone()).collect();
    let stop = Stop::default();
    // Ctrl-C ends the wait and the reads, but not the deletion.
    finish(&stop, async {
        let created = write(&session, resources.clone(), Intent::Create, &stop).await;
        let read = match created {
            Ok(()) => read(workspace, &probes, wait, &stop).await,
            Err(failure) => Err(failure),
        };
        let deleted = remove(&session, resources).await;
        // A resource that is left behind is more important than the cause.
        deleted.and(read)
    })
    .await
}

/// Returns a payload with a name and the required attributes only.
fn minimal(rules: &Rules, name: &str, samples: &[Object]) -> Result<Value, Failure> {
    let resolved = rules.resolved();
    let pointer = |stated: &Option<String>| {
        let text = stated.as_deref().unwrap_or("/id");
        Pointer::parse(text).map_err(|_| {
            Failure::invalid(format!(
                "--from managed-server needs an id and an alias that are attributes, but metadata states \"{text}\""
            ))
        })
    };
    let (id, alias) = (pointer(&resolved.id)?, pointer(&resolved.alias)?);
    let sample =
        |at: &Pointer| samples.iter().find_map(|sample| at.get(&Value::Object(sample.clone())).cloned());
    let create = &resolved.operation(OperationName::Create).validation.required_attributes;
    let mut payload = Value::Object(Object::new());
    for required in resolved.required_attributes.iter().chain(create) {
        if *required == id || *required == alias {
            continue;
        }
        let value = sample(required).ok_or_else(|| {
            Failure::invalid(format!(
                "{required} is required, and no declared resource of the collection has it; declare one first"
            ))
        })?;
        payload = required.put(payload, value);
    }
    payload = alias.put(payload, Value::from(name));
    // The server assigns ids that no declared resource states.
    if id != alias && sample(&id).is_some() {
        payload = id.put(payload, Value::from(name));
    }
    Ok(payload)
}

async fn write(session: &Session, given: Vec<Resource>, intent: Intent, stop: &Stop) -> Result<(), Failure> {
    let options = Options { intent, ..Options::default() };
    let selection = Selection { given, ..Selection::default() };
    let plan = sync::plan(session, selection, &options, stop).await;
    let report = sync::apply(session, plan, stop).await;
    match report.failures.into_iter().next() {
        Some(failure) => {
            let category = failure.reason.category();
            Err(Failure::new(category, format!("{}: {}", failure.path, failure.message)))
        }
        None => Ok(()),
    }
}

/// Deletes the resources that exist. Ctrl-C does not end it.
async fn remove(session: &Session, resources: Vec<Resource>) -> Result<(), Failure> {
    let mut left = Vec::new();
    for resource in resources {
        let path = resource.path.clone();
        if let Err(failure) = write(session, vec![resource], Intent::Delete, &Stop::default()).await
            && failure.category() != Category::NotFound
        {
            left.push((path, failure));
        }
    }
    let Some((_, first)) = left.first() else { return Ok(()) };
    let paths: Vec<String> = left.iter().map(|(path, _)| path.to_string()).collect();
    let message = format!("delete by hand, because it failed: {}: {}", paths.join(", "), first.message());
    Err(Failure::new(first.category(), message))
}

/// Returns what the server added to each resource.
async fn read(
    workspace: &Workspace<'_>,
    probes: &[(Resource, Value)],
    wait: Duration,
    stop: &Stop,
) -> Result<Vec<Object>, Failure> {
    let end = Instant::now() + wait;
    while stop.reason().is_none() && Instant::now() < end {
        tokio::time::sleep(STEP.min(end - Instant::now())).await;
    }
    let mut added = Vec::new();
    for (probe, sent) in probes {
        let observed = workspace.remote()?.read(probe).await?;
        let Some(payload) = observed.payload else {
            return Err(Failure::internal(format!(
                "{} was created, but the server has no resource with this name; if it assigned another id, delete the \
                 resource by hand, and let resource.id and resource.alias in metadata name the attributes",
                probe.path
            )));
        };
        added.push(without(payload.as_object().cloned().unwrap_or_default(), sent));
    }
    Ok(added)
}

/// Returns the members of an object that were not sent.
fn without(object: Object, sent: &Value) -> Object {
    let members = object.into_iter().filter_map(|(key, value)| match (value, sent.as_object()?.get(&key)) {
        (value, None) => Some((key, value)),
        (Value::Object(value), Some(sent)) => {
            let rest = without(value, sent);
            (!rest.is_empty()).then_some((key, Value::Object(rest)))
        }
        _ => None,
    });
    members.collect()
}
