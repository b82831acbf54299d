//! Create, update, patch, apply and delete of one object.

use std::sync::Arc;
use std::time::{Duration, Instant};

use http::StatusCode;
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::admit::{FieldValidation, admit};
use super::apply::{Manager, Managers, Operation, apply};
use super::collect;
use super::object::{
    align_with_path, finalizers, is_terminating, meta, now, owner_references, random_suffix, remove_meta,
    set_meta, time,
};
use super::removal::{Deleted, mark, remove};
use super::resource::{Family, Registry, ResourceType};
use super::status_error::{FieldError, StatusError};
use super::store::{Store, Writer};

/// The served types and their objects.
#[derive(Debug)]
pub(crate) struct Engine {
    pub registry: Registry,
    pub store: Store,
    /// When old events were removed last.
    pub expired: Mutex<Option<Instant>>,
}

/// The age at which events are removed, as kube-apiserver does by default.
const EVENT_AGE: jiff::SignedDuration = jiff::SignedDuration::from_hours(1);
const EVENTS_APART: Duration = Duration::from_mins(1);

/// The part of an object that a request writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Endpoint {
    /// All fields, except for the status of a type with a status subresource.
    Main,
    /// Only the status.
    Status,
}

/// The query parameters of a write.
#[derive(Clone, Debug, Default)]
pub(crate) struct WriteOptions {
    pub manager: String,
    pub dry_run: bool,
    pub validation: FieldValidation,
    pub force: bool,
}

/// The object of a request, and the endpoint.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub resource: Arc<ResourceType>,
    pub namespace: String,
    pub name: String,
    pub endpoint: Endpoint,
}

/// The result of a write.
#[derive(Debug)]
pub(crate) struct Written {
    pub object: Arc<Value>,
    pub code: StatusCode,
    pub warnings: Vec<String>,
}

/// How the dependents of a deleted object are handled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Propagation {
    #[default]
    Background,
    Foreground,
    Orphan,
}

/// The body of a delete.
#[derive(Clone, Debug, Default)]
pub(crate) struct DeleteOptions {
    pub uid: Option<String>,
    pub resource_version: Option<String>,
    pub propagation: Propagation,
    pub dry_run: bool,
}

impl Target {
    fn not_found(&self) -> StatusError {
        self.resource.not_found(&self.name)
    }

    fn manager(&self, options: &WriteOptions, operation: Operation) -> Manager {
        Manager {
            name: if options.manager.is_empty() { "unknown".to_owned() } else { options.manager.clone() },
            operation,
            api_version: self.resource.api_version(),
            subresource: if self.endpoint == Endpoint::Status { "status" } else { "" }.to_owned(),
        }
    }
}

impl Engine {
    pub(crate) fn get(&self, target: &Target) -> Result<Arc<Value>, StatusError> {
        let found = self.store.get(target.resource.table, &target.namespace, &target.name);
        found.ok_or_else(|| target.not_found())
    }

    /// Creates `object` in `namespace`.
    pub(crate) fn create(
        &self,
        resource: &Arc<ResourceType>,
        namespace: &str,
        mut object: Value,
        options: &WriteOptions,
    ) -> Result<Written, StatusError> {
        // Complete the identity of the object.
        align_with_path(resource, &mut object, namespace, None)?;
        if !meta(&object, "resourceVersion").is_empty() {
            return Err(StatusError::bad_request(
                "resourceVersion should not be set on objects to be created",
            ));
        }
        if meta(&object, "name").is_empty() && !meta(&object, "generateName").is_empty() {
            let name = format!("{}{}", meta(&object, "generateName"), random_suffix());
            set_meta(&mut object, "name", json!(name));
        }
        // Store it.
        let target = Target {
            resource: Arc::clone(resource),
            namespace: namespace.to_owned(),
            name: meta(&object, "name").to_owned(),
            endpoint: Endpoint::Main,
        };
        let writer = self.store.writer();
        self.insert(&writer, &target, object, options, None)
    }

    /// Stores a new object. An apply passes `managers`; a create records its own.
    fn insert(
        &self,
        writer: &Writer<'_>,
        target: &Target,
        mut object: Value,
        options: &WriteOptions,
        managers: Option<Managers>,
    ) -> Result<Written, StatusError> {
        let resource = &target.resource;
        if self.store.get(resource.table, &target.namespace, &target.name).is_some() {
            return Err(resource.already_exists(&target.name));
        }
        // Set the metadata that the server owns.
        for field in
            ["deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "managedFields", "generation"]
        {
            remove_meta(&mut object, field);
        }
        let time = now();
        set_meta(&mut object, "uid", json!(uuid::Uuid::new_v4().to_string()));
        set_meta(&mut object, "creationTimestamp", json!(time));
        if resource.counts_generations() {
            set_meta(&mut object, "generation", json!(1));
        }
        if resource.has_status
            && let Some(fields) = object.as_object_mut()
        {
            fields.remove("status");
        }
        // Validate the object, and record its field managers.
        let warnings = admit(resource, &mut object, None, options.validation)?;
        let managers = managers.unwrap_or_else(|| {
            let mut managers = Managers::default();
            let manager = target.manager(options, Operation::Update);
            managers.record_update(&json!({}), &object, &resource.merge_schema(), &manager, &time);
            managers
        });
        managers.store(&mut object);
        if options.dry_run {
            return Ok(Written { object: Arc::new(object), code: StatusCode::CREATED, warnings });
        }
        // Commit. An object whose owner no longer exists is collected at once.
        self.ensure_namespace(writer, &target.namespace)?;
        if matches!(resource.family, Family::Event) {
            self.expire_events(writer, resource)?;
        }
        let has_owner = !owner_references(&object).is_empty();
        let object = writer.put(resource, object).map_err(StatusError::internal)?;
        if has_owner {
            self.collect(writer)?;
        }
        Ok(Written { object, code: StatusCode::CREATED, warnings })
    }

    /// Removes old events, at most once in [`EVENTS_APART`].
    fn expire_events(&self, writer: &Writer<'_>, resource: &ResourceType) -> Result<(), StatusError> {
        let mut expired = self.expired.lock();
        if expired.is_some_and(|last| last.elapsed() < EVENTS_APART) {
            return Ok(());
        }
        *expired = Some(Instant::now());
        let oldest = time(jiff::Timestamp::now() - EVENT_AGE);
        let (events, _) = self.store.list(resource.table, None);
        // Times of this format are in the order of their texts.
        for event in events.iter().filter(|event| meta(event, "creationTimestamp") < oldest.as_str()) {
            writer.remove(resource, event.as_ref().clone()).map_err(StatusError::internal)?;
        }
        Ok(())
    }

    /// Creates the namespace `name` unless it exists. In this API, the first object creates its namespace.
    pub(crate) fn ensure_namespace(&self, writer: &Writer<'_>, name: &str) -> Result<(), StatusError> {
        let resource = self.registry.namespaces();
        if name.is_empty() || self.store.get(resource.table, "", name).is_some() {
            return Ok(());
        }
        let object = json!({
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {
                "name": name,
                "uid": uuid::Uuid::new_v4().to_string(),
                "creationTimestamp": now(),
                "labels": {"kubernetes.io/metadata.name": name},
            },
            "spec": {"finalizers": ["kubernetes"]},
            "status": {"phase": "Active"},
        });
        writer.put(resource, object).map_err(StatusError::internal)?;
        Ok(())
    }

    /// Replaces an object, or its status.
    pub(crate) fn update(
        &self,
        target: &Target,
        mut object: Value,
        options: &WriteOptions,
    ) -> Result<Written, StatusError> {
        align_with_path(&target.resource, &mut object, &target.namespace, Some(&target.name))?;
        // Check the version that the client has.
        let writer = self.store.writer();
        let live = self.get(target)?;
        if meta(&object, "resourceVersion").is_empty() && !target.resource.allows_unconditional_update() {
            let error =
                FieldError::invalid("metadata.resourceVersion", &json!(0), "must be specified for an update");
            return Err(target.resource.invalid(&target.name, &[error]));
        }
        // Store the object.
        self.replace(&writer, target, &live, object, options, None)
    }

    /// Changes an object with `patch`, which receives the live object.
    pub(crate) fn patch(
        &self,
        target: &Target,
        options: &WriteOptions,
        patch: impl FnOnce(&Arc<Value>) -> Result<Value, StatusError>,
    ) -> Result<Written, StatusError> {
        let writer = self.store.writer();
        let live = self.get(target)?;
        let mut object = patch(&live)?;
        align_with_path(&target.resource, &mut object, &target.namespace, Some(&target.name))?;
        let written = self.replace(&writer, target, &live, object, options, None);
        // The patch was well-formed. If its result cannot be decoded, its content is invalid: 422.
        written.map_err(|error| match error.code {
            StatusCode::BAD_REQUEST => StatusError::unprocessable(error.message),
            _ => error,
        })
    }

    /// Applies `config` with server-side apply. Creates the object if it does not exist.
    pub(crate) fn apply(
        &self,
        target: &Target,
        mut config: Value,
        options: &WriteOptions,
    ) -> Result<Written, StatusError> {
        if options.manager.is_empty() {
            return Err(StatusError::unprocessable(
                "PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Required value: is required for apply patch",
            ));
        }
        // Check the configuration, and remove the fields that this endpoint may not own.
        let resource = &target.resource;
        align_with_path(resource, &mut config, &target.namespace, Some(&target.name))?;
        if !config["metadata"]["managedFields"].is_null() {
            return Err(StatusError::bad_request("metadata.managedFields must be nil"));
        }
        restrict(resource, &mut config, target.endpoint);
        // Merge it into the live object, then store the result.
        let manager = target.manager(options, Operation::Apply);
        let writer = self.store.writer();
        let live = self.store.get(resource.table, &target.namespace, &target.name);
        if live.is_none() && target.endpoint == Endpoint::Status {
            return Err(target.not_found());
        }
        let blank = json!({"apiVersion": config["apiVersion"], "kind": config["kind"], "metadata": {
            "name": target.name,
        }});
        let base = live.as_deref().unwrap_or(&blank);
        let (merged, managers) = apply(resource, base, &config, &manager, options.force, &now())?;
        match &live {
            Some(live) => self.replace(&writer, target, live, merged, options, Some(managers)),
            None => self.insert(&writer, target, merged, options, Some(managers)),
        }
    }

    /// Replaces the part of `live` that the endpoint may write with that of `object`.
    fn replace(
        &self,
        writer: &Writer<'_>,
        target: &Target,
        live: &Arc<Value>,
        object: Value,
        options: &WriteOptions,
        managers: Option<Managers>,
    ) -> Result<Written, StatusError> {
        // Check preconditions, and keep the fields that the client may not write.
        let resource = &target.resource;
        check_preconditions(
            resource,
            live,
            Some(meta(&object, "uid")),
            Some(meta(&object, "resourceVersion")),
        )?;
        let mut next = carry_over(resource, live, object, target.endpoint);
        // Validate the object, count its generation, and record its field managers.
        let warnings = admit(resource, &mut next, Some(live), options.validation)?;
        if resource.counts_generations() && content(&next) != content(live) {
            let generation = live["metadata"]["generation"].as_i64().unwrap_or(0) + 1;
            set_meta(&mut next, "generation", json!(generation));
        }
        let managers = managers.unwrap_or_else(|| {
            let mut managers = Managers::of(live);
            let manager = target.manager(options, Operation::Update);
            managers.record_update(live, &next, &resource.merge_schema(), &manager, &now());
            managers
        });
        managers.store(&mut next);
        // A write without a change does not create a new revision.
        set_meta(&mut next, "resourceVersion", live["metadata"]["resourceVersion"].clone());
        if next == **live {
            return Ok(Written { object: Arc::clone(live), code: StatusCode::OK, warnings });
        }
        if options.dry_run {
            return Ok(Written { object: Arc::new(next), code: StatusCode::OK, warnings });
        }
        // Commit. An object that is being deleted is removed with its last finalizer.
        let owners_changed = owner_references(&next) != owner_references(live);
        let object = if is_terminating(&next) && finalizers(&next).is_empty() {
            let object = writer.remove(resource, next).map_err(StatusError::internal)?;
            self.collect(writer)?;
            object
        } else {
            let object = writer.put(resource, next).map_err(StatusError::internal)?;
            if owners_changed {
                self.collect(writer)?;
            }
            object
        };
        Ok(Written { object, code: StatusCode::OK, warnings })
    }

    /// Deletes the objects whose owners are all deleted.
    pub(super) fn collect(&self, writer: &Writer<'_>) -> Result<(), StatusError> {
        collect::collect(&self.registry, &self.store, writer)
    }

    /// Deletes an object, or marks it for deletion if it has finalizers.
    pub(crate) fn delete(&self, target: &Target, options: &DeleteOptions) -> Result<Deleted, StatusError> {
        // Check preconditions.
        let writer = self.store.writer();
        let live = self.get(target)?;
        check_preconditions(
            &target.resource,
            &live,
            options.uid.as_deref(),
            options.resource_version.as_deref(),
        )?;
        if options.dry_run {
            return Ok(Deleted::Removed(live));
        }
        // Handle dependents first for orphan and foreground propagation.
        match options.propagation {
            Propagation::Background => {}
            Propagation::Orphan => collect::orphan(&self.registry, &self.store, &writer, meta(&live, "uid"))?,
            Propagation::Foreground => {
                let marked = mark(&writer, &target.resource, &live, Some(collect::FOREGROUND))?;
                self.collect(&writer)?;
                return Ok(match self.get(target) {
                    Ok(object) => Deleted::Marked(object),
                    Err(_) => Deleted::Removed(marked),
                });
            }
        }
        // Delete the object, and collect its dependents.
        let deleted = remove(&writer, &target.resource, &live)?;
        self.collect(&writer)?;
        Ok(deleted)
    }
}

/// Returns the fields whose changes increase `metadata.generation`: all but identity, metadata and status.
fn content(object: &Value) -> Vec<(&String, &Value)> {
    let is_content = |name: &str| !matches!(name, "apiVersion" | "kind" | "metadata" | "status");
    object.as_object().into_iter().flatten().filter(|(name, _)| is_content(name)).collect()
}

fn check_preconditions(
    resource: &ResourceType,
    live: &Value,
    uid: Option<&str>,
    resource_version: Option<&str>,
) -> Result<(), StatusError> {
    let name = meta(live, "name");
    if let Some(uid) = uid.filter(|uid| !uid.is_empty() && *uid != meta(live, "uid")) {
        let why = format!(
            "Precondition failed: UID in precondition: {uid}, UID in object meta: {}",
            meta(live, "uid")
        );
        return Err(resource.conflict(name, &why));
    }
    if resource_version.is_some_and(|given| !given.is_empty() && given != meta(live, "resourceVersion")) {
        return Err(resource.stale(name));
    }
    Ok(())
}

/// Returns the new object, with the fields of `live` that this endpoint, or any client, may not write.
fn carry_over(resource: &ResourceType, live: &Value, mut object: Value, endpoint: Endpoint) -> Value {
    if endpoint == Endpoint::Status {
        let mut next = live.clone();
        match object.get_mut("status") {
            Some(status) => next["status"] = status.take(),
            None => {
                if let Some(fields) = next.as_object_mut() {
                    fields.remove("status");
                }
            }
        }
        return next;
    }
    if resource.has_status
        && let Some(fields) = object.as_object_mut()
    {
        match live.get("status") {
            Some(status) => fields.insert("status".to_owned(), status.clone()),
            None => fields.remove("status"),
        };
    }
    for field in [
        "uid",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "generation",
        "generateName",
        "managedFields",
    ] {
        match live["metadata"].get(field) {
            Some(value) => set_meta(&mut object, field, value.clone()),
            None => remove_meta(&mut object, field),
        }
    }
    remove_meta(&mut object, "selfLink");
    object
}

/// Removes the fields from `config` that an apply through `endpoint` may not own.
fn restrict(resource: &ResourceType, config: &mut Value, endpoint: Endpoint) {
    let Some(fields) = config.as_object_mut() else { return };
    if endpoint == Endpoint::Main {
        if resource.has_status {
            fields.remove("status");
        }
        return;
    }
    fields.retain(|name, _| matches!(name.as_str(), "apiVersion" | "kind" | "metadata" | "status"));
    if let Some(metadata) = fields.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.retain(|name, _| matches!(name.as_str(), "name" | "namespace" | "uid" | "resourceVersion"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_removed_after_an_hour() {
        let registry = Registry::new(Vec::new()).unwrap();
        let store = Store::new(registry.tables(), 9, None);
        let engine = Engine { registry, store, expired: Mutex::default() };
        let events = Arc::clone(engine.registry.find("", "v1", "events").unwrap());
        let event = |name: &str, age: i64| {
            let created = time(jiff::Timestamp::now() - jiff::SignedDuration::from_mins(age));
            json!({"metadata": {"name": name, "namespace": "default", "creationTimestamp": created}})
        };
        for event in [event("old", 61), event("young", 59)] {
            engine.store.writer().put(&events, event).unwrap();
        }
        engine.create(&events, "default", event("new", 0), &WriteOptions::default()).unwrap();
        let (left, _) = engine.store.list(events.table, None);
        assert_eq!(left.iter().map(|event| meta(event, "name")).collect::<Vec<_>>(), ["new", "young"]);
    }
}
