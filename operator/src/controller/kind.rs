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
    FieldErrors, Limits, ManagedServer, ResourceRepository, Schedule, SecretRefs, SecretStore, SyncPolicy,
    secret_refs,
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
    ($kind:ty, $name:literal, parsed: $parsed:ty, validate: $validate:expr, interval: $interval:expr) => {
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

kind!(ResourceRepository, "ResourceRepository",
    parsed: (),
    validate: |object, limits| object.spec.validate(limits),
    interval: |object| object.spec.poll_interval.duration());
kind!(ManagedServer, "ManagedServer",
    parsed: (),
    validate: |object, limits| object.spec.validate(limits),
    interval: |object| object.spec.poll_interval.duration());
kind!(SecretStore, "SecretStore",
    parsed: (),
    validate: |object, limits| object.spec.validate(limits),
    interval: |_| Some(STORE_INTERVAL));
kind!(SyncPolicy, "SyncPolicy",
    parsed: Option<Schedule>,
    validate: |object, _| object.spec.validate(),
    interval: |object| object.spec.sync_interval.duration());
