//! The objects of a world, as a user writes them.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use declarest_operator::crd::{ResourceRepository, SyncPolicy};
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};

use super::{Object, World, declarest};

impl World {
    /// Makes an object exist, as a user would: a manifest file in standalone mode, else a request.
    pub async fn create(&self, mut object: Value) {
        object["metadata"]["namespace"] = json!(self.namespace);
        let kind = object["kind"].as_str().unwrap().to_owned();
        let name = object["metadata"]["name"].as_str().unwrap().to_owned();
        if self.kubeconfig.is_some() {
            let path = self.collection(&kind);
            let body = serde_json::to_vec(&object).unwrap();
            let request =
                http::Request::post(path).header("content-type", "application/json").body(body).unwrap();
            self.client.request::<Value>(request).await.unwrap();
            return;
        }
        self.write_manifest(&object);
        let path = format!("{}/{name}", self.collection(&kind));
        self.eventually(&format!("{kind} {name} is loaded"), || async {
            let request = http::Request::get(&path).body(Vec::new()).unwrap();
            self.client.request::<Value>(request).await.ok()
        })
        .await;
    }

    pub(super) fn write_manifest(&self, object: &Value) {
        let (kind, name) = (object["kind"].as_str().unwrap(), object["metadata"]["name"].as_str().unwrap());
        fs::write(self.manifest(kind, name), object.to_string()).unwrap();
    }

    pub(super) fn manifest(&self, kind: &str, name: &str) -> PathBuf {
        self.manifests().join(format!("{}-{kind}-{name}.json", self.namespace).to_lowercase())
    }

    fn collection(&self, kind: &str) -> String {
        let namespace = &self.namespace;
        if kind == "Secret" {
            return format!("/api/v1/namespaces/{namespace}/secrets");
        }
        let plural = match kind {
            "ResourceRepository" => "resourcerepositories",
            "ManagedServer" => "managedservers",
            "SecretStore" => "secretstores",
            _ => "syncpolicies",
        };
        format!("/apis/declarest.io/v1alpha1/namespaces/{namespace}/{plural}")
    }

    /// A Secret with text values.
    pub async fn create_secret(&self, name: &str, data: &[(&str, &str)]) {
        let data: BTreeMap<_, _> = data.iter().copied().collect();
        self.create(json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": data,
        }))
        .await;
    }

    /// Replaces keys of a Secret.
    pub async fn replace_secret(&self, name: &str, data: &[(&str, &str)]) {
        let data: BTreeMap<_, _> = data.iter().copied().collect();
        self.patch::<Secret>(name, json!({"stringData": data})).await;
    }

    /// A ResourceRepository called `repo`.
    pub async fn create_repository(&self, url: &str, auth: Value) {
        let mut git = json!({"url": url});
        if !auth.is_null() {
            git["auth"] = auth;
        }
        self.create(declarest("ResourceRepository", "repo", &json!({"type": "git", "git": git}))).await;
    }

    /// A ManagedServer called `server`.
    pub async fn create_server(&self, http: Value) {
        self.create(declarest("ManagedServer", "server", &json!({"http": http}))).await;
    }

    /// A SyncPolicy called `policy` that prunes, with more of its spec.
    pub async fn create_policy(&self, more: Value) {
        let mut spec = json!({
            "resourceRepositoryRef": {"name": "repo"},
            "managedServerRef": {"name": "server"},
            "source": {"path": "/"},
            "sync": {"prune": true},
            "syncInterval": "1h",
        });
        for (field, value) in more.as_object().into_iter().flatten() {
            spec[field] = value.clone();
        }
        self.create(declarest("SyncPolicy", "policy", &spec)).await;
    }

    /// Merges into an object, as `kubectl patch` does. In standalone mode, a change of what a manifest states is written to
    /// the manifest, because the operator applies manifests again and again. Waits until it is applied.
    pub async fn patch<K: Object>(&self, name: &str, patch: Value) {
        let (api, kind) = (self.api::<K>(), K::kind(&()));
        let manifest = fs::read(self.manifest(&kind, name));
        let Some(manifest) = manifest.ok().filter(|_| patch.get("metadata").is_none()) else {
            api.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
            return;
        };
        let mut object: Value = serde_json::from_slice(&manifest).unwrap();
        json_patch::merge(&mut object, &patch);
        self.write_manifest(&object);
        let would_apply = PatchParams::apply("declarest-manifests").force().dry_run();
        self.eventually(&format!("{kind} {name} is applied"), || async {
            let now = json!(api.get(name).await.unwrap());
            let then = json!(api.patch(name, &would_apply, &Patch::Apply(&object)).await.ok()?);
            (now["spec"] == then["spec"] && now["data"] == then["data"]).then_some(())
        })
        .await;
    }

    /// Deletes an object and its manifest and waits until it is gone.
    pub async fn delete<K: Object>(&self, name: &str) {
        let _ = fs::remove_file(self.manifest(&K::kind(&()), name));
        let api = self.api::<K>();
        let _ = api.delete(name, &DeleteParams::default()).await;
        self.eventually(&format!("{name} is gone"), || async {
            api.get_opt(name).await.unwrap().is_none().then_some(())
        })
        .await;
    }

    /// Notifies the repository of a push, as a webhook does.
    pub async fn notify(&self) {
        let now = jiff::Timestamp::now().to_string();
        let patch = json!({"metadata": {"annotations": {"declarest.io/webhook-last-received-at": now}}});
        self.patch::<ResourceRepository>("repo", patch).await;
    }

    /// Asks for a full run now.
    pub async fn request_sync(&self) {
        let now = jiff::Timestamp::now().to_string();
        let patch = json!({"metadata": {"annotations": {"declarest.io/sync-requested-at": now}}});
        self.patch::<SyncPolicy>("policy", patch).await;
    }

    pub fn api<K: Object>(&self) -> Api<K> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }
}
