//! The resource types that this API serves, and their differences.

use std::borrow::Cow;
use std::sync::Arc;

use http::StatusCode;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::json;

use super::ApiError;
use super::column::Column;
use super::schema::{Schema, Structural};
use super::status_error::{FieldError, StatusError};

/// The family of a type, which determines its defaults, validation and immutable fields.
#[derive(Debug)]
pub(crate) enum Family {
    /// Described by a `CustomResourceDefinition`.
    Custom(Box<Schema>),
    Secret,
    /// `PersistentVolumeClaim`.
    Claim,
    Event,
    Lease,
    Namespace,
    /// A type that the operator only reads. Objects are stored as they are.
    Observed,
}

impl Family {
    /// Returns the columns of a built-in type.
    fn columns(&self) -> Vec<Column> {
        let age = Column::age();
        match self {
            Self::Custom(_) => Vec::new(),
            Self::Secret => vec![Column::new("Type", "string", ".type"), age],
            Self::Claim => vec![
                Column::new("Status", "string", ".status.phase"),
                Column::new("Volume", "string", ".spec.volumeName"),
                Column::new("StorageClass", "string", ".spec.storageClassName"),
                age,
            ],
            Self::Event => vec![
                Column::new("Last Seen", "date", ".lastTimestamp"),
                Column::new("Type", "string", ".type"),
                Column::new("Reason", "string", ".reason"),
                Column::new("Kind", "string", ".involvedObject.kind"),
                Column::new("Object", "string", ".involvedObject.name"),
                Column::new("Message", "string", ".message"),
            ],
            Self::Lease => vec![Column::new("Holder", "string", ".spec.holderIdentity"), age],
            Self::Namespace => vec![Column::new("Status", "string", ".status.phase"), age],
            Self::Observed => vec![age],
        }
    }
}

/// The types that contracts are compared with, in addition to `PersistentVolumeClaim`.
const OBSERVED: [(&str, &str, &str, &str); 9] = [
    ("", "v1", "Service", "services"),
    ("", "v1", "Pod", "pods"),
    ("apps", "v1", "Deployment", "deployments"),
    ("apps", "v1", "StatefulSet", "statefulsets"),
    ("apps", "v1", "DaemonSet", "daemonsets"),
    ("batch", "v1", "Job", "jobs"),
    ("batch", "v1", "CronJob", "cronjobs"),
    ("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices"),
    ("autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers"),
];

/// One served resource type of one API version.
#[derive(Debug)]
pub(crate) struct ResourceType {
    pub group: String,
    pub version: String,
    pub kind: String,
    pub plural: String,
    pub singular: String,
    pub short_names: Vec<String>,
    pub categories: Vec<String>,
    pub namespaced: bool,
    pub has_status: bool,
    pub family: Family,
    pub columns: Vec<Column>,
    /// The table of the objects. `events` of `v1` and of `events.k8s.io/v1` share one table.
    pub table: usize,
    /// Whether objects outlive the process. Secrets never do, because they are read from the manifests again.
    pub durable: bool,
}

impl ResourceType {
    pub(crate) fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }

    /// Returns the plural with the group, such as `syncpolicies.declarest.io`, or `secrets` for the core group.
    pub(crate) fn qualified_plural(&self) -> String {
        if self.group.is_empty() { self.plural.clone() } else { format!("{}.{}", self.plural, self.group) }
    }

    pub(crate) fn schema(&self) -> Option<&Schema> {
        match &self.family {
            Family::Custom(schema) => Some(schema),
            _ => None,
        }
    }

    /// Returns the schema with the merge rules of this type.
    pub(crate) fn merge_schema(&self) -> Cow<'_, Structural> {
        self.schema().map_or_else(|| Cow::Owned(Structural::built_in()), |schema| Cow::Borrowed(&schema.root))
    }

    pub(crate) fn is_custom(&self) -> bool {
        matches!(self.family, Family::Custom(_))
    }

    /// Returns whether writes increase `metadata.generation`.
    pub(crate) fn counts_generations(&self) -> bool {
        self.is_custom()
    }

    /// Returns whether an update may omit `metadata.resourceVersion`.
    pub(crate) fn allows_unconditional_update(&self) -> bool {
        !matches!(self.family, Family::Custom(_) | Family::Lease)
    }

    /// Returns whether this is the event type of `events.k8s.io`.
    pub(crate) fn is_events_view(&self) -> bool {
        matches!(self.family, Family::Event) && !self.group.is_empty()
    }

    pub(crate) fn not_found(&self, name: &str) -> StatusError {
        let message = format!("{} \"{name}\" not found", self.qualified_plural());
        self.error(StatusCode::NOT_FOUND, "NotFound", message, name)
    }

    pub(crate) fn already_exists(&self, name: &str) -> StatusError {
        let message = format!("{} \"{name}\" already exists", self.qualified_plural());
        self.error(StatusCode::CONFLICT, "AlreadyExists", message, name)
    }

    pub(crate) fn conflict(&self, name: &str, why: &str) -> StatusError {
        let message =
            format!("Operation cannot be fulfilled on {} \"{name}\": {why}", self.qualified_plural());
        self.error(StatusCode::CONFLICT, "Conflict", message, name)
    }

    /// Returns the conflict of a write with a resourceVersion that is not current.
    pub(crate) fn stale(&self, name: &str) -> StatusError {
        let why =
            "the object has been modified; please apply your changes to the latest version and try again";
        self.conflict(name, why)
    }

    pub(crate) fn invalid(&self, name: &str, errors: &[FieldError]) -> StatusError {
        StatusError::invalid(&self.kind, &self.group, name, errors)
    }

    /// Returns the error of an object whose kind is not that of its type.
    pub(crate) fn wrong_kind(&self, name: &str, given: &str) -> StatusError {
        let error = FieldError::invalid("kind", &json!(given), &format!("must be {}", self.kind));
        StatusError::invalid(given, &self.group, name, &[error])
    }

    fn error(&self, code: StatusCode, reason: &'static str, message: String, name: &str) -> StatusError {
        StatusError::new(code, reason, message).about(&self.group, &self.plural, name)
    }

    fn from_crd(crd: CustomResourceDefinition, table: usize) -> Result<Self, ApiError> {
        let name = crd.metadata.name.unwrap_or_default();
        let mut served = crd.spec.versions.into_iter().filter(|version| version.served);
        let (version, others) = (served.next(), served.count());
        let Some(version) = version.filter(|_| others == 0) else {
            return Err(ApiError::Versions(name));
        };
        let Some(schema) = version.schema.and_then(|schema| schema.open_api_v3_schema) else {
            return Err(ApiError::NoSchema(name));
        };
        let names = crd.spec.names;
        Ok(Self {
            group: crd.spec.group,
            version: version.name,
            singular: names.singular.unwrap_or_else(|| names.kind.to_lowercase()),
            kind: names.kind,
            plural: names.plural,
            short_names: names.short_names.unwrap_or_default(),
            categories: names.categories.unwrap_or_default(),
            namespaced: crd.spec.scope == "Namespaced",
            has_status: version.subresources.is_some_and(|sub| sub.status.is_some()),
            family: Family::Custom(Box::new(Schema::compile(&name, &schema)?)),
            columns: version.additional_printer_columns.iter().flatten().map(Column::from).collect(),
            table,
            durable: true,
        })
    }

    fn built_in(group: &str, kind: &str, plural: &str, short: &[&str], family: Family, table: usize) -> Self {
        let namespaced = !matches!(family, Family::Namespace);
        let durable = matches!(family, Family::Claim);
        let has_status = matches!(family, Family::Claim | Family::Namespace | Family::Observed);
        Self {
            group: group.to_owned(),
            version: "v1".to_owned(),
            kind: kind.to_owned(),
            plural: plural.to_owned(),
            singular: kind.to_lowercase(),
            short_names: short.iter().map(ToString::to_string).collect(),
            categories: Vec::new(),
            namespaced,
            has_status,
            columns: family.columns(),
            family,
            table,
            durable,
        }
    }
}

/// All served types.
#[derive(Debug)]
pub(crate) struct Registry {
    types: Vec<Arc<ResourceType>>,
    tables: usize,
}

impl Registry {
    /// Creates a registry of the built-in types and the types of `crds`.
    pub(crate) fn new(crds: Vec<CustomResourceDefinition>) -> Result<Self, ApiError> {
        let mut types = vec![
            ResourceType::built_in("", "Namespace", "namespaces", &["ns"], Family::Namespace, 0),
            ResourceType::built_in("", "Secret", "secrets", &[], Family::Secret, 1),
            ResourceType::built_in(
                "",
                "PersistentVolumeClaim",
                "persistentvolumeclaims",
                &["pvc"],
                Family::Claim,
                2,
            ),
            ResourceType::built_in("", "Event", "events", &["ev"], Family::Event, 3),
            ResourceType::built_in("events.k8s.io", "Event", "events", &["ev"], Family::Event, 3),
            ResourceType::built_in("coordination.k8s.io", "Lease", "leases", &[], Family::Lease, 4),
        ];
        let mut tables = 5;
        for (group, version, kind, plural) in OBSERVED {
            let observed = ResourceType::built_in(group, kind, plural, &[], Family::Observed, tables);
            types.push(ResourceType { version: version.to_owned(), ..observed });
            tables += 1;
        }
        for crd in crds {
            types.push(ResourceType::from_crd(crd, tables)?);
            tables += 1;
        }
        Ok(Self { types: types.into_iter().map(Arc::new).collect(), tables })
    }

    pub(crate) fn tables(&self) -> usize {
        self.tables
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<ResourceType>> {
        self.types.iter()
    }

    /// Returns the types of stored objects: one per table.
    pub(crate) fn stored(&self) -> impl Iterator<Item = &Arc<ResourceType>> {
        self.iter().filter(|resource| !resource.is_events_view())
    }

    pub(crate) fn namespaces(&self) -> &Arc<ResourceType> {
        &self.types[0]
    }

    pub(crate) fn find(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<ResourceType>> {
        self.iter().find(|resource| {
            resource.group == group && resource.version == version && resource.plural == plural
        })
    }
}
