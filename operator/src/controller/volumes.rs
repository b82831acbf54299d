//! The `PersistentVolumeClaim`s of objects, and the places of their data.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use k8s_openapi::api::core::v1::{
    PersistentVolumeClaim, PersistentVolumeClaimSpec, VolumeResourceRequirements,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::PostParams;
use kube::{Api, ResourceExt as _};

use super::context::Context;
use super::error::Failure;
use super::kind::{Kind, Naming};
use super::status::FIELD_MANAGER;
use crate::crd::validation::bytes;
use crate::crd::{AccessMode, ClaimTemplate};

/// The maximum length of the value of a label (Kubernetes, "Labels and Selectors").
const MAX_LABEL: usize = 63;

/// The place of an object's data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    pub directory: PathBuf,
    /// The mount point, if the data is on a claim.
    pub mounted: Option<PathBuf>,
    /// A note for the user about the place.
    pub note: Option<String>,
}

/// Returns the name of the claim of an object, if it has one.
pub fn claim_name<K: Kind>(object: &K) -> Option<String> {
    let (storage, naming) = object.storage()?;
    let existing = storage.existing_pvc.as_ref().map(|claim| claim.name.clone());
    Some(existing.unwrap_or_else(|| format!("{}-{}", object.name_any(), naming.suffix)))
}

/// Creates the claim of an object if necessary, and returns the place of its data: on the claim if an administrator
/// mounted it, otherwise below `state`.
///
/// # Errors
/// `DependencyInvalid` if an existing claim is missing, or the claim to create exists and has another owner.
pub async fn settle<K: Kind>(context: &Context, object: &K, state: PathBuf) -> Result<Place, Failure> {
    let Some(((storage, naming), claim)) = object.storage().zip(claim_name(object)) else {
        return Ok(Place { directory: state, mounted: None, note: None });
    };
    let key = object.key();
    let claims: Api<PersistentVolumeClaim> = Api::namespaced(context.client.clone(), &key.namespace);
    // Find or create the claim.
    let found = claims.get_opt(&claim).await.map_err(|error| {
        Failure::api(&format!("read PersistentVolumeClaim {}/{claim}", key.namespace), &error)
    })?;
    let mut notes = Vec::new();
    match (&storage.pvc, found) {
        (Some(template), Some(found)) => {
            check_ours(object, &found, naming)?;
            notes.extend(unfollowed(template, &found, naming));
        }
        (None, Some(_)) => {}
        (Some(template), None) => {
            let wanted = wanted_claim(object, &claim, template, naming);
            claims
                .create(
                    &PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() },
                    &wanted,
                )
                .await
                .map_err(|error| {
                    Failure::api(&format!("create PersistentVolumeClaim {}/{claim}", key.namespace), &error)
                })?;
        }
        (None, None) => {
            return Err(Failure::dependency_invalid(format!(
                "{}.existingPVC: PersistentVolumeClaim {}/{claim} does not exist",
                naming.field, key.namespace
            )));
        }
    }
    // Use the claim if it is mounted.
    let mounted = context.directories.claim(&key.namespace, &claim);
    if tokio::fs::metadata(&mounted).await.is_ok_and(|found| found.is_dir()) {
        let directory = K::owner(&key).below(&mounted);
        return Ok(Place { directory, mounted: Some(mounted), note: joined(&notes) });
    }
    notes.push(format!(
        "PersistentVolumeClaim {claim} is not mounted at {}; data is stored in the operator's state directory",
        mounted.display()
    ));
    Ok(Place { directory: state, mounted: None, note: joined(&notes) })
}

fn joined(notes: &[String]) -> Option<String> {
    (!notes.is_empty()).then(|| notes.join("; "))
}

/// Returns a note about the fields of the template that differ from the claim, which the operator never changes.
fn unfollowed(template: &ClaimTemplate, claim: &PersistentVolumeClaim, naming: Naming) -> Option<String> {
    let spec = claim.spec.as_ref()?;
    let wanted: BTreeSet<&str> = template.access_modes.iter().map(AccessMode::into_str).collect();
    let modes: BTreeSet<&str> = spec.access_modes.iter().flatten().map(String::as_str).collect();
    let requests = spec.resources.as_ref().and_then(|resources| resources.requests.as_ref());
    let size = requests.and_then(|requests| bytes(&requests.get("storage")?.0));
    let class = template.storage_class_name.as_ref();
    let fields = [
        ("accessModes", modes != wanted),
        // The API server may write the same size in another unit.
        (
            "requests.storage",
            size.zip(bytes(&template.requests.storage)).is_some_and(|(a, b)| (a - b).abs() >= 1.0),
        ),
        ("storageClassName", class.is_some() && class != spec.storage_class_name.as_ref()),
    ];
    let differing: Vec<&str> = fields.iter().filter(|(_, differs)| *differs).map(|(name, _)| *name).collect();
    let name = claim.metadata.name.as_deref().unwrap_or_default();
    (!differing.is_empty()).then(|| {
        format!(
            "{}.pvc differs from PersistentVolumeClaim {name} in {}; the operator does not change existing claims",
            naming.field,
            differing.join(", ")
        )
    })
}

fn check_ours<K: Kind>(object: &K, claim: &PersistentVolumeClaim, naming: Naming) -> Result<(), Failure> {
    let owners = claim.metadata.owner_references.as_deref().unwrap_or_default();
    let ours = owners
        .iter()
        .any(|owner| owner.controller == Some(true) && Some(&owner.uid) == object.meta().uid.as_ref());
    if ours {
        return Ok(());
    }
    let name = claim.metadata.name.as_deref().unwrap_or_default();
    let (namespace, field) = (object.key().namespace, naming.field);
    Err(Failure::dependency_invalid(format!(
        "{field}.pvc: PersistentVolumeClaim {namespace}/{name} exists and has another owner; \
         remove it, or name it in {field}.existingPVC"
    )))
}

fn wanted_claim<K: Kind>(
    object: &K,
    claim: &str,
    template: &ClaimTemplate,
    naming: Naming,
) -> PersistentVolumeClaim {
    let key = object.key();
    let mut labels = BTreeMap::from([("app.kubernetes.io/name".to_owned(), FIELD_MANAGER.to_owned())]);
    if key.name.len() <= MAX_LABEL {
        labels.insert(naming.label.to_owned(), key.name.clone());
    }
    let requests = BTreeMap::from([("storage".to_owned(), Quantity(template.requests.storage.clone()))]);
    PersistentVolumeClaim {
        metadata: ObjectMeta {
            name: Some(claim.to_owned()),
            namespace: Some(key.namespace),
            labels: Some(labels),
            owner_references: object.controller_owner_ref(&()).map(|owner| vec![owner]),
            ..ObjectMeta::default()
        },
        spec: Some(PersistentVolumeClaimSpec {
            access_modes: Some(template.access_modes.iter().map(|mode| mode.into_str().to_owned()).collect()),
            storage_class_name: template.storage_class_name.clone(),
            resources: Some(VolumeResourceRequirements {
                requests: Some(requests),
                ..VolumeResourceRequirements::default()
            }),
            ..PersistentVolumeClaimSpec::default()
        }),
        ..PersistentVolumeClaim::default()
    }
}
