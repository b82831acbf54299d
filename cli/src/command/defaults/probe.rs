//! Defaults that the server adds: temporary resources are created, read and deleted.

use std::sync::Arc;
use std::time::{Duration, Instant};

use declarest_core::authoring::check_texts;
use declarest_core::error::Category;
use declarest_core::language::template::IdentityTemplate;
use declarest_core::metadata::document::OnRemove;
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

/// A temporary resource.
struct Probe {
    resource: Resource,
    sent: Value,
}

/// Creates two resources in `collection`, reads them after `wait`, and deletes those that were created. Returns what the
/// server added to each, without declared secrets. `samples` are payloads of declared resources, which provide the values
/// of required attributes.
pub async fn added_by_server(
    workspace: &Workspace<'_>,
    collection: &LogicalPath,
    samples: &[Object],
    wait: Duration,
) -> Result<Vec<Object>, Failure> {
    let session = workspace.session()?;
    let run = fastrand::u32(..);
    let probes = [
        Probe::new(workspace, collection, &format!("{PREFIX}{run:08x}-1"), samples)?,
        Probe::new(workspace, collection, &format!("{PREFIX}{run:08x}-2"), samples)?,
    ];
    check_addresses(&probes)?;
    let stop = Stop::default();
    // Ctrl-C ends the wait and the reads, but not the deletion.
    finish(&stop, async {
        let (mut created, mut failed) = (Vec::new(), None);
        for probe in &probes {
            match write(&session, &probe.resource, Intent::Create, &stop).await {
                Ok(()) => created.push(probe),
                Err(failure) => {
                    failed = Some(failure);
                    break;
                }
            }
        }
        let read = match failed {
            None => read(workspace, &created, wait, &stop).await,
            Some(failure) => Err(failure),
        };
        let deleted = remove(&session, &created).await;
        // A resource that is left behind is more important than the cause.
        deleted.and(read)
    })
    .await
}

impl Probe {
    fn new(
        workspace: &Workspace<'_>,
        collection: &LogicalPath,
        name: &str,
        samples: &[Object],
    ) -> Result<Self, Failure> {
        let path = collection.child(name).map_err(|error| Failure::invalid(error.to_string()))?;
        let rules = workspace.metadata.rules(&path)?;
        let sent = minimal(&rules, name, samples)?;
        let (tree, descriptor) = (workspace.tree.as_ref(), Descriptor::of(PayloadType::Json));
        let resource = Resource::written(tree, &workspace.metadata, path, sent.clone(), descriptor)?;
        // Stored defaults are not sent, because the answer would confirm them.
        let resource = Resource { payload: Arc::new(sent.clone()), ..resource };
        Ok(Self { resource, sent })
    }

    /// Returns the paths of the requests that name the resource.
    fn addresses(&self) -> Result<[String; 2], Failure> {
        let evaluation = self.resource.evaluation()?.unobserved();
        let path = |operation| Ok::<_, Failure>(evaluation.render(operation)?.path);
        Ok([path(OperationName::Get)?, path(OperationName::Delete)?])
    }
}

/// Fails if the requests of the two resources have the same address, because then the address does not depend on the name,
/// and a deletion could delete another resource.
fn check_addresses(probes: &[Probe; 2]) -> Result<(), Failure> {
    let [first, second] = probes;
    if first.addresses()?.iter().zip(second.addresses()?).any(|(first, second)| *first == second) {
        return Err(Failure::invalid(
            "--from managed-server needs addresses of get and delete that depend on the id or the alias of a resource",
        ));
    }
    Ok(())
}

/// Returns a payload with a name and the required attributes only.
fn minimal(rules: &Rules, name: &str, samples: &[Object]) -> Result<Value, Failure> {
    let resolved = rules.resolved();
    if resolved.secret || *resolved.on_remove() != OnRemove::Delete {
        return Err(Failure::invalid(
            "--from managed-server is not possible for secrets, singletons and resources with resource.onRemove",
        ));
    }
    let pointer = |template: &IdentityTemplate| {
        template.simple().cloned().ok_or_else(|| {
            Failure::invalid(format!(
                "--from managed-server needs resource.id and resource.alias that are single attributes, but metadata \
                 states \"{}\"",
                template.source()
            ))
        })
    };
    let (id, alias) = (pointer(rules.identity().id())?, pointer(rules.identity().alias())?);
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

async fn write(session: &Session, resource: &Resource, intent: Intent, stop: &Stop) -> Result<(), Failure> {
    let options = Options { intent, ..Options::default() };
    let selection = Selection { given: vec![resource.clone()], ..Selection::default() };
    let plan = sync::plan(session, selection, &options, stop).await;
    let report = sync::apply(session, plan, stop).await;
    match report.failures.into_iter().next() {
        Some(failure) => {
            let category = failure.reason.category();
            Err(Failure::new(category, failure.with_path()))
        }
        None => Ok(()),
    }
}

/// Deletes the resources that were created. Ctrl-C does not end it.
async fn remove(session: &Session, created: &[&Probe]) -> Result<(), Failure> {
    let mut left = Vec::new();
    for probe in created {
        let deleted = write(session, &probe.resource, Intent::Delete, &Stop::default()).await;
        left.extend(deleted.err().map(|failure| (&probe.resource.path, failure)));
    }
    let Some((_, first)) = left.first() else { return Ok(()) };
    let paths: Vec<String> = left.iter().map(|(path, _)| path.to_string()).collect();
    let cause = if first.category() == Category::NotFound {
        "the server has no resource with this name; it may have assigned another id".to_owned()
    } else {
        first.message().to_owned()
    };
    let message =
        format!("created, but could not be deleted; delete it by hand: {}: {cause}", paths.join(", "));
    Err(Failure::new(Category::Conflict, message))
}

/// Returns what the server added to each resource.
async fn read(
    workspace: &Workspace<'_>,
    created: &[&Probe],
    wait: Duration,
    stop: &Stop,
) -> Result<Vec<Object>, Failure> {
    let end = Instant::now() + wait;
    while stop.reason().is_none() && Instant::now() < end {
        tokio::time::sleep(STEP.min(end - Instant::now())).await;
    }
    let mut added = Vec::new();
    for probe in created {
        let observed = workspace.remote()?.read(&probe.resource).await?;
        let mut payload = observed.payload.unwrap_or_default();
        // Defaults apply to all resources of the collection.
        check_texts(&probe.resource.path, &payload, &probe.sent)?;
        for secret in &probe.resource.rules.resolved().secret_attributes {
            payload = secret.remove(payload);
        }
        added.push(without(payload.as_object().cloned().unwrap_or_default(), &probe.sent));
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
