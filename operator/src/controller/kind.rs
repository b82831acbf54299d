//! The trait of the four kinds, which the reconcile loop uses.

use std::fmt::{self, Debug};
use std::time::Duration;

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::Resource;
use kube::api::ObjectMeta;
use kube::core::object::{HasSpec, HasStatus};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::crd::{
    FieldErrors, Limits, LocalRef, ManagedServer, ResourceRepository, Schedule, SecretRefs, SecretStore,
    Storage, SyncPolicy, secret_refs,
};
use crate::directories::Owner;
use crate::telemetry::Subject;

/// Interval at which an unchanged store is checked.
const STORE_INTERVAL: Duration = Duration::from_mins(10);

/// Namespace and name of an object. Its kind is known from the context.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    pub namespace: String,
    pub name: String,
}

impl Key {
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }

    pub fn of(object: &ObjectMeta) -> Self {
        Self::new(object.namespace.clone().unwrap_or_default(), object.name.clone().unwrap_or_default())
    }

    /// Returns the object as the subject of metric series.
    pub fn subject(&self) -> Subject<'_> {
        Subject { namespace: &self.namespace, name: &self.name }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// The names of the claims of a kind.
#[derive(Clone, Copy, Debug)]
pub struct Naming {
    /// Suffix of the names of created claims, after the object's name.
    pub suffix: &'static str,
    /// Label that holds the object's name, if the name is short enough for a label.
    pub label: &'static str,
    /// The field that states the claim.
    pub field: &'static str,
}

/// One of the four kinds.
pub trait Kind:
    Resource<DynamicType = (), Scope = NamespaceResourceScope>
    + HasSpec<Spec: Serialize + DeserializeOwned>
    + HasStatus<Status: Clone + Default + Serialize + DeserializeOwned + Send + Sync>
    + Clone
    + Debug
    + DeserializeOwned
    + Send
    + Sync
    + 'static
{
    /// Name of the kind, in metrics and logs.
    const NAME: &'static str;

    /// The values that the validation parses for the work of the kind.
    type Parsed: Default + Send + Sync;

    /// Validates the spec, after expansion.
    fn validate(&self, limits: &Limits) -> Result<Self::Parsed, FieldErrors>;

    /// Returns every reference to a Secret, with the path of its field.
    fn secret_refs(&self) -> SecretRefs {
        secret_refs(self.spec())
    }

    /// Returns the interval at which an unchanged object is reconciled; also the longest wait after a failure.
    fn interval(&self) -> Option<Duration>;

    /// Returns the reference of a policy to an object of this kind.
    fn reference(policy: &SyncPolicy) -> Option<&LocalRef>;

    /// Returns where the object stores its data, if it states that, and the names of the claims of its kind.
    fn storage(&self) -> Option<(&Storage, Naming)> {
        None
    }

    /// Returns the conditions of the object.
    fn conditions(&self) -> &[Condition] {
        self.status().map_or(&[], Self::conditions_of)
    }

    fn conditions_of(status: &Self::Status) -> &[Condition];

    /// Records the conditions of `generation`.
    fn observe(status: &mut Self::Status, generation: i64, conditions: Vec<Condition>);

    fn key(&self) -> Key {
        Key::of(self.meta())
    }

    /// Returns the object as the owner of directories.
    fn owner(key: &Key) -> Owner {
        Owner::new(&Self::plural(&()), &key.namespace, &key.name)
    }
}

/// Returns whether the object is ready in its current generation.
pub fn is_ready<K: Kind>(object: &K) -> bool {
    super::conditions::is_ready(object.conditions(), object.meta().generation)
}

macro_rules! kind {
    (
        $kind:ty, $name:literal, parsed: $parsed:ty, validate: $validate:expr, interval: $interval:expr,
        reference: $reference:expr $(, storage: $storage:expr)?
    ) => {
        impl Kind for $kind {
            const NAME: &'static str = $name;

            type Parsed = $parsed;

            fn validate(&self, limits: &Limits) -> Result<Self::Parsed, FieldErrors> {
                let validate: fn(&Self, &Limits) -> Result<Self::Parsed, FieldErrors> = $validate;
                validate(self, limits)
            }

            fn interval(&self) -> Option<Duration> {
                let interval: fn(&Self) -> Option<Duration> = $interval;
                interval(self)
            }

            fn reference(policy: &SyncPolicy) -> Option<&LocalRef> {
                let reference: fn(&SyncPolicy) -> Option<&LocalRef> = $reference;
                reference(policy)
            }

            $(fn storage(&self) -> Option<(&Storage, Naming)> {
                let storage: fn(&Self) -> Option<(&Storage, Naming)> = $storage;
                storage(self)
            })?

            fn conditions_of(status: &Self::Status) -> &[Condition] {
                &status.conditions
            }

            fn observe(status: &mut Self::Status, generation: i64, conditions: Vec<Condition>) {
                status.observed_generation = Some(generation);
                status.conditions = conditions;
            }
        }
    };
}

/// The names of the claims of repositories.
const REPOSITORY_CLAIMS: Naming =
    Naming { suffix: "repo", label: "declarest.io/resource-repo", field: "spec.storage" };

/// The names of the claims of stores.
const STORE_CLAIMS: Naming =
    Naming { suffix: "secrets", label: "declarest.io/secret-store", field: "spec.file.storage" };

kind!(ResourceRepository, "ResourceRepository",
    parsed: (),
    validate: |object, limits| object.spec.validate(limits),
    interval: |object| object.spec.poll_interval.duration(),
    reference: |policy| Some(&policy.spec.resource_repository_ref),
    storage: |object| Some((object.spec.storage.as_ref()?, REPOSITORY_CLAIMS)));
kind!(ManagedServer, "ManagedServer",
    parsed: (),
    validate: |object, limits| object.spec.validate(limits),
    interval: |object| object.spec.poll_interval.duration(),
    reference: |policy| Some(&policy.spec.managed_server_ref));
kind!(SecretStore, "SecretStore",
    parsed: (),
    validate: |object, limits| object.spec.validate(limits),
    interval: |_| Some(STORE_INTERVAL),
    reference: |policy| policy.spec.secret_store_ref.as_ref(),
    storage: |object| Some((object.spec.file.as_ref()?.storage.as_ref()?, STORE_CLAIMS)));
kind!(SyncPolicy, "SyncPolicy",
    parsed: Option<Schedule>,
    validate: |object, _| object.spec.validate(),
    interval: |object| object.spec.sync_interval.duration(),
    reference: |_| None);
