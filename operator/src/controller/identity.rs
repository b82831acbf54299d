//! What something was built from, so that it is built again when that changes.

use super::context::Context;
use super::kind::Kind;

/// An object in one generation, with the Secrets that it refers to in one version. Rotated Secrets are noticed by
/// this.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    uid: Option<String>,
    generation: Option<i64>,
    secret_versions: Vec<(String, Option<String>)>,
}

impl Identity {
    /// The identity of `object`, whose placeholders are expanded, as of now. To be taken before Secrets are read:
    /// a rotation in between then builds once more.
    pub fn of<K: Kind>(context: &Context, object: &K) -> Self {
        let namespace = object.key().namespace;
        let version = |name: &str| {
            let stored = context.caches.secrets.object(&namespace, name);
            stored.and_then(|stored| stored.metadata.resource_version.clone())
        };
        let secrets = object.secret_refs();
        Self {
            uid: object.meta().uid.clone(),
            generation: object.meta().generation,
            secret_versions: secrets
                .into_iter()
                .map(|(_, secret)| (secret.name.clone(), version(&secret.name)))
                .collect(),
        }
    }
}
