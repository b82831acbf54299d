//! The resource types this API serves, and how each of them differs from the others.

use std::sync::Arc;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, CustomResourceDefinitionVersion,
};

use super::ApiError;
use super::schema::Schema;
use super::table::Column;

/// What decides defaults, validation and immutable fields of a type.
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
}

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
    /// Where the objects are. `events` of `v1` and of `events.k8s.io/v1` are one table.
    pub table: usize,
    /// Whether objects outlive the process. Secrets never do: their source is the manifests.
    pub durable: bool,
}

impl ResourceType {
    pub(crate) fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }

    /// `syncpolicies.declarest.io`, or `secrets` for the core group.
    pub(crate) fn qualified_plural(&self) -> String {
        if self.group.is_empty() { self.plural.clone() } else { format!("{}.{}", self.plural, self.group) }
    }

    pub(crate) fn schema(&self) -> Option<&Schema> {
        match &self.family {
            Family::Custom(schema) => Some(schema),
            _ => None,
        }
    }

    /// Whether writes count in `metadata.generation`.
    pub(crate) fn counts_generations(&self) -> bool {
        matches!(self.family, Family::Custom(_))
    }

    /// Whether an update may leave `metadata.resourceVersion` out.
    pub(crate) fn allows_unconditional_update(&self) -> bool {
        !matches!(self.family, Family::Custom(_) | Family::Lease)
    }

    /// Whether this is the `events.k8s.io` spelling of an event.
    pub(crate) fn is_events_view(&self) -> bool {
        matches!(self.family, Family::Event) && !self.group.is_empty()
    }

    fn from_crd(crd: &CustomResourceDefinition, table: usize) -> Result<Self, ApiError> {
        let name = crd.metadata.name.clone().unwrap_or_default();
        let served: Vec<&CustomResourceDefinitionVersion> =
            crd.spec.versions.iter().filter(|version| version.served).collect();
        let [version] = served.as_slice() else {
            return Err(ApiError::Versions { crd: name, served: served.len() });
        };
        let schema = version
            .schema
            .as_ref()
            .and_then(|schema| schema.open_api_v3_schema.as_ref())
            .ok_or_else(|| ApiError::NoSchema { crd: name.clone() })?;
        let names = &crd.spec.names;
        let columns = version.additional_printer_columns.iter().flatten().map(Column::from).collect();
        Ok(Self {
            group: crd.spec.group.clone(),
            version: version.name.clone(),
            kind: names.kind.clone(),
            plural: names.plural.clone(),
            singular: names.singular.clone().unwrap_or_else(|| names.kind.to_lowercase()),
            short_names: names.short_names.clone().unwrap_or_default(),
            categories: names.categories.clone().unwrap_or_default(),
            namespaced: crd.spec.scope == "Namespaced",
            has_status: version.subresources.as_ref().is_some_and(|sub| sub.status.is_some()),
            family: Family::Custom(Box::new(Schema::compile(&name, schema)?)),
            columns,
            table,
            durable: true,
        })
    }

    fn built_in(group: &str, kind: &str, plural: &str, short: &[&str], family: Family, table: usize) -> Self {
        let namespaced = !matches!(family, Family::Namespace);
        let durable = matches!(family, Family::Claim);
        let has_status = matches!(family, Family::Claim | Family::Namespace);
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
            columns: Column::built_in(&family),
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
    /// The built-in types and those of `crds`.
    pub(crate) fn new(crds: &[CustomResourceDefinition]) -> Result<Self, ApiError> {
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
        for (position, crd) in crds.iter().enumerate() {
            types.push(ResourceType::from_crd(crd, 5 + position)?);
        }
        Ok(Self { types: types.into_iter().map(Arc::new).collect(), tables: 5 + crds.len() })
    }

    pub(crate) fn tables(&self) -> usize {
        self.tables
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<ResourceType>> {
        self.types.iter()
    }

    /// The types that are stored as they are spelled: every table once.
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
