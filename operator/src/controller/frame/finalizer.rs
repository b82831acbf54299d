//! The finalizer that earlier versions added to objects. It is removed.

use kube::Api;
use kube::api::{ApiResource, DynamicObject, ObjectMeta, Patch, PatchParams};
use serde_json::json;

use super::{Frame, Reconciler};
use crate::controller::kind::Key;

const FORMER_FINALIZER: &str = "declarest.io/cleanup";

impl<R: Reconciler> Frame<R> {
    /// Replaces the finalizers of the version that was read, so that no concurrent change is lost.
    pub(super) async fn set_finalizers(
        &self,
        object: &ObjectMeta,
        finalizers: &[String],
    ) -> Result<(), kube::Error> {
        let key = Key::of(object);
        let resource = ApiResource::erase::<R::Kind>(&());
        let api: Api<DynamicObject> =
            Api::namespaced_with(self.context.client.clone(), &key.namespace, &resource);
        let patch = json!({
            "metadata": {
                "uid": object.uid,
                "resourceVersion": object.resource_version,
                "finalizers": finalizers,
            }
        });
        let stored = api.patch(&key.name, &PatchParams::default(), &Patch::Merge(patch)).await?.metadata;
        self.knows(&key, stored.resource_version);
        Ok(())
    }
}

/// Returns the finalizers without that of earlier versions, or `None` if it is not there.
pub(super) fn without_former_finalizer(object: &ObjectMeta) -> Option<Vec<String>> {
    let present = object.finalizers.as_deref().unwrap_or_default();
    let is_kept = |finalizer: &&String| *finalizer != FORMER_FINALIZER;
    let kept: Vec<String> = present.iter().filter(is_kept).cloned().collect();
    (kept.len() < present.len()).then_some(kept)
}
