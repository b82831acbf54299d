//! Validation of objects when they are written: by reviews as an API server sends them, and by a real API server.

use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use declarest_operator::crd::{ManagedServer, ResourceRepository, SyncPolicy};
use futures::future::join_all;
use futures::stream::pending;
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use reqwest::{Body, Certificate, Client};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::authority::{Authority, Certified};
use crate::support::cluster::{Cluster, config_dir};
use crate::support::faulty_api::Trouble;
use crate::support::ports::free_ports;
use crate::support::world::{World, declarest, on_cluster};

const KINDS: [&str; 4] = ["managedserver", "resourcerepository", "secretstore", "syncpolicy"];

/// The flags of an operator that reviews, except for the directory of its certificate.
const FLAGS: [&str; 3] =
    ["--enable-admission-webhooks", "--admission-webhook-port=127.0.0.1:0", "--env-expand-allow=*"];

fn certificates_in(directory: &TempDir) -> String {
    format!("--admission-webhook-cert-dir={}", directory.path().display())
}

/// Writes a new certificate, as a kubelet updates a volume.
fn certify(authority: &Authority, directory: &Path) {
    let Certified { certificate, key } = authority.certify(&["127.0.0.1"]).unwrap();
    for (name, content) in [("tls.key", key), ("tls.crt", certificate)] {
        fs::write(directory.join(name), content).unwrap();
    }
}

/// A client that trusts this authority only.
fn trusting(authority: &Authority) -> Client {
    // A second call has no effect.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let authority = Certificate::from_pem(authority.pem.as_bytes()).unwrap();
    Client::builder().tls_certs_only([authority]).build().unwrap()
}

/// An operator that reviews, and its certificate.
struct Host {
    world: World,
    authority: Authority,
    directory: TempDir,
    address: String,
}

impl Host {
    async fn new() -> Self {
        let (authority, directory) = (Authority::new().unwrap(), tempfile::tempdir().unwrap());
        certify(&authority, directory.path());
        Self::with(authority, directory, &[]).await
    }

    async fn with(authority: Authority, directory: TempDir, arguments: &[&str]) -> Self {
        let certificates = certificates_in(&directory);
        let arguments = [&FLAGS[..], &[&certificates], arguments].concat();
        let world = World::start_clustered(&arguments).await;
        Self::of(world, authority, directory).await
    }

    async fn of(world: World, authority: Authority, directory: TempDir) -> Self {
        let address = world.listener("listening for admission reviews").await;
        Self { world, authority, directory, address }
    }

    fn url(&self, kind: &str) -> String {
        format!("https://{}/validate-declarest-io-v1alpha1-{kind}", self.address)
    }

    /// Sends a review as an API server does; the response to it.
    async fn review(&self, operation: &str, object: &Value, before: &Value) -> Value {
        let shown = if object.is_null() { before } else { object };
        self.review_named(shown["metadata"]["name"].as_str().unwrap(), operation, object, before).await
    }

    /// Like [`Self::review`], with another name of the request.
    async fn review_named(&self, name: &str, operation: &str, object: &Value, before: &Value) -> Value {
        let shown = if object.is_null() { before } else { object };
        let kind = shown["kind"].as_str().unwrap();
        let group = json!({"group": "declarest.io", "version": "v1alpha1", "kind": kind});
        let resource = json!({"group": "declarest.io", "version": "v1alpha1", "resource": format!("{}s", kind.to_lowercase())});
        let review = json!({
            "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
            "request": {
                "uid": "7", "kind": group, "resource": resource, "name": name,
                "namespace": shown["metadata"]["namespace"].as_str().unwrap_or(&self.world.namespace), "operation": operation, "userInfo": {}, "dryRun": false,
                "object": object, "oldObject": before, "options": null,
            },
        });
        let url = self.url(&kind.to_lowercase());
        let loaded = || async {
            trusting(&self.authority)
                .post(&url)
                .header("content-type", "application/json")
                .body(review.to_string())
                .send()
                .await
                .ok()
        };
        let response = self.world.eventually("a review is answered", loaded).await;
        let answer: Value = serde_json::from_slice(&response.bytes().await.unwrap()).unwrap();
        assert_eq!((&answer["kind"], &answer["response"]["uid"]), (&json!("AdmissionReview"), &json!("7")));
        answer["response"].clone()
    }

    /// The message of a denial; empty if the request is allowed.
    async fn denial(&self, operation: &str, object: &Value, before: &Value) -> String {
        let response = self.review(operation, object, before).await;
        let message = response["status"]["message"].as_str().unwrap_or_default().to_owned();
        assert_eq!(response["allowed"], json!(message.is_empty()), "{response}");
        message
    }
}

fn repository(spec: &Value) -> Value {
    declarest("ResourceRepository", "repo", &json!({"type": "git", "git": spec}))
}

fn server(spec: &Value) -> Value {
    declarest("ManagedServer", "server", &json!({"http": spec}))
}

fn policy(name: &str, path: &str) -> Value {
    let spec = json!({
        "resourceRepositoryRef": {"name": "repo"}, "managedServerRef": {"name": "server"},
        "source": {"path": path}, "suspend": false,
    });
    declarest("SyncPolicy", name, &spec)
}

fn with(mut object: Value, pointer: &str, value: Value) -> Value {
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    object.pointer_mut(parent).unwrap()[name] = value;
    object
}

#[tokio::test]
async fn invalid_objects_are_denied_with_their_field() {
    let host = Host::new().await;
    let cases = [
        (repository(&json!({"url": "https://git.example.test/r.git"})), ""),
        (repository(&json!({"url": "ftp://git.example.test/r.git"})), "spec.git.url"),
        (repository(&json!({"url": "https://git.example.test/r.git", "branch": "a..b"})), "spec.git.branch"),
        (repository(&json!({"url": "${PATH}"})), "invalid after the expansion of placeholders: spec.git.url"),
        (server(&json!({"baseURL": "https://api.example.test"})), ""),
        (server(&json!({"baseURL": "not a url"})), "spec.http.baseURL"),
        (declarest("SecretStore", "store", &json!({})), "set exactly one of vault and file"),
        (policy("a", "/shops"), ""),
        (policy("a", "/shops/../x"), "spec.source.path"),
        (with(policy("a", "/shops"), "/spec/fullResyncCron", json!("0 0 30 2 *")), "spec.fullResyncCron"),
        (with(policy("a", "/shops"), "/spec/syncInterval", json!("1s")), "spec.syncInterval"),
        (with(policy("a", "/shops"), "/spec/source", json!(7)), "cannot be decoded"),
    ];
    for (object, expected) in cases {
        for operation in ["CREATE", "UPDATE"] {
            let message = host.denial(operation, &object, &Value::Null).await;
            assert!(
                message.contains(expected) && message.is_empty() == expected.is_empty(),
                "{message}: {object}"
            );
        }
    }
    let leaky = repository(&json!({"url": "${PATH}"}));
    let message = host.denial("CREATE", &leaky, &Value::Null).await;
    assert!(!message.contains("/bin"), "the value is not shown: {message}");
    // The operator can set finalizers on an object that is invalid already.
    let invalid = policy("a", "/shops/../x");
    let labelled = with(invalid.clone(), "/metadata/finalizers", json!(["declarest.io/cleanup"]));
    assert_eq!(host.denial("UPDATE", &labelled, &invalid).await, "");
    // Finalizers of an invalid object that is being deleted must be removable.
    let dying =
        with(policy("a", "/shops/../x"), "/metadata/deletionTimestamp", json!("2026-01-01T00:00:00Z"));
    assert_eq!(host.denial("UPDATE", &dying, &Value::Null).await, "");
}

/// The operator has no rights there, so it could not answer questions about other objects.
#[tokio::test]
async fn objects_in_other_namespaces_than_those_of_the_operator_are_not_reviewed() {
    let host = Host::new().await;
    let invalid = policy("a", "/shops/../x");
    assert!(host.denial("CREATE", &invalid, &Value::Null).await.contains("spec.source.path"));
    let elsewhere = with(invalid, "/metadata/namespace", json!("elsewhere"));
    assert_eq!(host.denial("CREATE", &elsewhere, &Value::Null).await, "");
    assert_eq!(host.denial("DELETE", &Value::Null, &elsewhere).await, "");
}

#[tokio::test]
async fn a_policy_must_not_begin_to_overlap_another_one() {
    let host = Host::new().await;
    host.world.create(policy("senior", "/shops")).await;
    let create = async |object: Value| host.denial("CREATE", &object, &Value::Null).await;
    let message = create(policy("junior", "/shops/rio")).await;
    let expected = "spec.source.path overlaps that of the SyncPolicy \"senior\"";
    assert!(message.starts_with(expected), "{message}");
    assert_eq!(create(policy("junior", "/users")).await, "");
    let elsewhere = with(policy("junior", "/shops/rio"), "/spec/managedServerRef/name", json!("production"));
    assert_eq!(create(elsewhere).await, "", "the paths of another server do not overlap");
    assert_eq!(create(policy("senior", "/shops/rio")).await, "", "a policy does not overlap itself");
    assert_eq!(create(with(policy("junior", "/shops"), "/spec/suspend", json!(true))).await, "");
    // A policy that overlaps already can be changed, but not into another overlap.
    let before = policy("junior", "/shops/rio");
    let changed = with(before.clone(), "/spec/syncInterval", json!("2h"));
    assert_eq!(host.denial("UPDATE", &changed, &before).await, "");
    let moved = policy("junior", "/shops/lima");
    assert!(host.denial("UPDATE", &moved, &before).await.contains("overlaps"));
    assert!(
        host.denial("UPDATE", &before, &with(before.clone(), "/spec/suspend", json!(true)))
            .await
            .contains("overlaps")
    );
}

#[tokio::test]
async fn what_a_policy_uses_cannot_be_deleted() {
    let host = Host::new().await;
    let (server, repository) = (
        server(&json!({"baseURL": "https://a.example.test"})),
        repository(&json!({"url": "https://a/r.git"})),
    );
    assert_eq!(host.denial("DELETE", &Value::Null, &server).await, "");
    host.world.create(policy("a", "/a")).await;
    host.world.create(policy("b", "/b")).await;
    for (object, kind) in
        [(&server, "ManagedServer \"server\""), (&repository, "ResourceRepository \"repo\"")]
    {
        let message = host.denial("DELETE", &Value::Null, object).await;
        assert!(message.starts_with(kind) && message.contains("SyncPolicy \"a\", \"b\""), "{message}");
    }
    let other = with(server.clone(), "/metadata/name", json!("other"));
    assert_eq!(host.denial("DELETE", &Value::Null, &other).await, "");
    assert_eq!(host.denial("DELETE", &Value::Null, &policy("a", "/a")).await, "");
    // The tests set the variable for every operator.
    let by_variable =
        with(policy("c", "/c"), "/spec/managedServerRef/name", json!("${DECLAREST_VAR_HIDDEN}"));
    host.world.create(by_variable).await;
    let named = with(server.clone(), "/metadata/name", json!("concealed-value"));
    let message = host.denial("DELETE", &Value::Null, &named).await;
    assert!(message.contains("is used by SyncPolicy \"c\";"), "{message}");
    // The reviews of `kubectl delete --raw` for a collection have no name.
    let response = host.review_named("", "DELETE", &Value::Null, &server).await;
    let message = response["status"]["message"].as_str().unwrap_or_default();
    assert!(message.starts_with("ManagedServer \"server\" is used by"), "{response}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deletion_is_denied_while_the_policies_cannot_be_listed() {
    let (authority, directory) = (Authority::new().unwrap(), tempfile::tempdir().unwrap());
    certify(&authority, directory.path());
    let certificates = certificates_in(&directory);
    let (world, api) = World::start_behind(&[&FLAGS[..], &[&certificates]].concat()).await;
    let host = Host::of(world, authority, directory).await;
    let server = server(&json!({"baseURL": "https://a.example.test"}));
    assert_eq!(host.denial("DELETE", &Value::Null, &server).await, "");
    api.set(Trouble::Forbidden("/syncpolicies"));
    let response = host.review("DELETE", &Value::Null, &server).await;
    assert_eq!((&response["allowed"], &response["status"]["code"]), (&json!(false), &json!(500)));
    let message = response["status"]["message"].as_str().unwrap();
    assert!(message.starts_with("cannot list the SyncPolicies of the namespace"), "{message}");
}

#[tokio::test]
async fn risky_fields_are_allowed_with_warnings() {
    let host = Host::new().await;
    let store = |spec: Value| declarest("SecretStore", "store", &spec);
    let key = json!({"keyRef": {"name": "k", "key": "key"}});
    let file = |more: Value| {
        let mut file = json!({"path": "secrets.enc", "encryption": key});
        file.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        store(json!({"file": file}))
    };
    let ssh = json!({"privateKeyRef": {"name": "k", "key": "key"}, "insecureIgnoreHostKey": true});
    let basic = json!({"basicAuth": {"usernameRef": {"name": "k", "key": "user"}, "passwordRef": {"name": "k", "key": "key"}}});
    let every_resource = with(policy("a", "/"), "/spec/sync", json!({"prune": true, "force": true}));
    let cases: [(Value, &[&str]); 8] = [
        (server(&json!({"baseURL": "https://api.example.test"})), &[]),
        (
            server(
                &json!({"baseURL": "http://api.example.test", "auth": basic, "tls": {"insecureSkipVerify": true}}),
            ),
            &["spec.http.baseURL: credentials are sent", "spec.http.tls.insecureSkipVerify: any certificate"],
        ),
        (
            repository(&json!({"url": "ssh://git@git.example.test/r.git", "auth": {"sshSecretRef": ssh}})),
            &["spec.git.auth.sshSecretRef.insecureIgnoreHostKey: any host key"],
        ),
        (every_resource, &["spec.sync.force: each full run", "spec.sync.prune: with source.path /"]),
        (with(policy("a", "/a"), "/spec/sync", json!({"prune": true})), &[]),
        (file(json!({})), &["spec.file.storage: without it"]),
        (file(json!({"seedRef": {"name": "k", "key": "seed"}})), &[]),
        (file(json!({"storage": {"existingPVC": {"name": "claim"}}})), &[]),
    ];
    for (object, expected) in cases {
        let response = host.review("CREATE", &object, &Value::Null).await;
        assert_eq!(response["allowed"], json!(true), "{response}");
        let warnings = response["warnings"].as_array().cloned().unwrap_or_default();
        let mut warnings: Vec<&str> = warnings.iter().filter_map(Value::as_str).collect();
        warnings.sort_unstable();
        let as_expected = warnings.len() == expected.len()
            && warnings.iter().zip(expected).all(|(warning, start)| warning.starts_with(start));
        assert!(as_expected, "{warnings:?}: {object}");
    }
}

#[tokio::test]
async fn the_operator_waits_for_its_certificate_and_reloads_it() {
    let [port] = free_ports();
    let probes = format!("127.0.0.1:{port}");
    let probe = format!("--health-probe-bind-address={probes}");
    let host = Host::with(Authority::new().unwrap(), tempfile::tempdir().unwrap(), &[&probe]).await;
    let client = trusting(&host.authority);
    let readiness =
        || async { client.get(format!("http://{probes}/readyz")).send().await.ok()?.text().await.ok() };
    let wait = async |wanted: &str| {
        let look = || async { readiness().await.filter(|text| text.trim_end() == wanted) };
        host.world.eventually(wanted, look).await
    };
    wait("the certificate of the admission webhooks is not loaded").await;
    certify(&host.authority, host.directory.path());
    wait("ok").await;
    assert_eq!(host.denial("CREATE", &policy("a", "/a"), &Value::Null).await, "");
    // A new authority: only the new certificate is accepted by those who trust it.
    let renewed = Authority::new().unwrap();
    certify(&renewed, host.directory.path());
    let url = host.url("syncpolicy");
    let reloaded = || async { trusting(&renewed).get(&url).send().await.ok() };
    let answer = host.world.eventually("the new certificate is presented", reloaded).await;
    assert_eq!(answer.status().as_u16(), 405);
    // A half-written pair changes nothing.
    fs::write(host.directory.path().join("tls.crt"), "garbage").unwrap();
    host.world
        .eventually("the problem is logged", || async {
            host.world.log().contains("tls.crt is not").then_some(())
        })
        .await;
    assert!(trusting(&renewed).get(&url).send().await.is_ok());
}

#[tokio::test]
async fn hostile_requests_are_rejected() {
    let host = Host::new().await;
    host.denial("CREATE", &policy("a", "/a"), &Value::Null).await;
    let post = |body: Vec<u8>| {
        let request =
            trusting(&host.authority).post(host.url("syncpolicy")).header("content-type", "application/json");
        request.body(body).send()
    };
    for (body, status) in [(b"{".to_vec(), 400), (b"{}".to_vec(), 422), (vec![b' '; (3 << 20) + 1], 413)] {
        assert_eq!(post(body).await.unwrap().status().as_u16(), status);
    }
    let plain =
        Client::new().post(host.url("syncpolicy").replace("https", "http")).timeout(Duration::from_secs(5));
    assert!(plain.send().await.is_err());
}

/// Bodies that never end occupy all places for 3 s.
#[tokio::test]
async fn a_review_is_answered_although_other_bodies_do_not_arrive() {
    let host = Host::new().await;
    host.denial("CREATE", &policy("a", "/a"), &Value::Null).await;
    let client = trusting(&host.authority);
    let endless = || {
        let body = Body::wrap_stream(pending::<io::Result<Vec<u8>>>());
        client.post(host.url("syncpolicy")).header("content-type", "application/json").body(body).send()
    };
    let endless = tokio::spawn(join_all((0..40).map(|_| endless()).collect::<Vec<_>>()));
    tokio::time::sleep(Duration::from_millis(300)).await;
    let other = policy("b", "/b");
    let review = host.denial("CREATE", &other, &Value::Null);
    tokio::time::timeout(Duration::from_secs(40), review).await.unwrap();
    // The end of a connection may be noticed before the response is read.
    let refused = endless.await.unwrap();
    assert!(
        refused.iter().all(|answer| !answer.as_ref().is_ok_and(|answer| answer.status() != 408)),
        "{refused:?}"
    );
}

/// A real API server calls the webhooks over TLS.
#[tokio::test]
async fn an_api_server_denies_and_warns() {
    if !on_cluster() {
        return;
    }
    let host = Host::new().await;
    let (registration, error) = Registration::of(&host).await;
    assert!(
        error.contains("vsyncpolicy-v1alpha1.declarest.io") && error.contains("spec.fullResyncCron"),
        "{error}"
    );
    // Valid objects pass, and what is used cannot be deleted.
    host.world.create_server(json!({"baseURL": "https://api.example.test"})).await;
    host.world.create(policy("a", "/a")).await;
    let servers = host.world.api::<ManagedServer>();
    let error = servers.delete("server", &DeleteParams::default()).await.unwrap_err().to_string();
    assert!(error.contains("is used by SyncPolicy \"a\""), "{error}");
    // A user of kubectl sees the warnings.
    let tls = json!({"insecureSkipVerify": true});
    let mut risky = server(&json!({"baseURL": "https://api.example.test", "tls": tls}));
    risky["metadata"] = json!({"name": "risky", "namespace": host.world.namespace});
    let file = host.directory.path().join("risky.json");
    fs::write(&file, risky.to_string()).unwrap();
    let mut apply = Command::new("sh");
    apply.args(["-c", r#""$1" apply -f "$2" 2>&1"#, "sh"]).arg(Cluster::shared().kubectl_path()).arg(&file);
    let printed = Cluster::shared().run(&mut apply).unwrap();
    assert!(printed.contains("Warning: spec.http.tls.insecureSkipVerify: any certificate"), "{printed}");
    host.world.delete::<SyncPolicy>("a").await;
    host.world.delete::<ManagedServer>("server").await;
    host.world.delete::<ManagedServer>("risky").await;
    registration.remove().await;
}

/// The operator creates claims for the users who ask for them, so they need the right themselves.
#[tokio::test]
async fn a_claim_needs_the_right_of_its_author() {
    if !on_cluster() {
        return;
    }
    let cluster = Cluster::shared();
    for file in ["review_role.yaml", "review_role_binding.yaml"] {
        cluster.kubectl(&["apply", "-f", &format!("{}/{file}", config_dir("webhook"))]).unwrap();
    }
    let host = Host::new().await;
    let namespace = host.world.namespace.clone();
    let (registration, _) = Registration::of(&host).await;
    let user = format!("editor-of-{namespace}");
    let (in_namespace, of_user) = (format!("--namespace={namespace}"), format!("--user={user}"));
    let bind = |name: &str, role: &str| {
        cluster.kubectl(&["create", "rolebinding", name, &in_namespace, &of_user, role]).unwrap();
    };
    bind("objects", "--clusterrole=declarest-operator-editor");
    let repositories = Api::<ResourceRepository>::namespaced(cluster.user(&user).await, &namespace);
    let with_storage = |name: &str, storage: Value| -> ResourceRepository {
        let git = json!({"url": "https://git.example.test/r.git"});
        let spec = json!({"type": "git", "git": git, "storage": storage});
        serde_json::from_value(declarest("ResourceRepository", name, &spec)).unwrap()
    };
    let claim =
        |size: &str| json!({"pvc": {"accessModes": ["ReadWriteOnce"], "requests": {"storage": size}}});
    let create =
        async |repository: &ResourceRepository| repositories.create(&PostParams::default(), repository).await;
    // The API server follows roles with a delay.
    let existing =
        || async { create(&with_storage("b", json!({"existingPVC": {"name": "shared"}}))).await.ok() };
    host.world.eventually("the user may create repositories", existing).await;
    // Without the right, only existing claims can be used.
    let error = create(&with_storage("a", claim("1Gi"))).await.unwrap_err().to_string();
    let expected =
        format!("user \"{user}\" may not create persistentvolumeclaims in the namespace \"{namespace}\"");
    assert!(error.contains(&expected), "{error}");
    // A template of another user stays as it is.
    let admin = host.world.api::<ResourceRepository>();
    admin.create(&PostParams::default(), &with_storage("c", claim("1Gi"))).await.unwrap();
    let patch = async |patch: Value| {
        repositories.patch("c", &PatchParams::default(), &Patch::Merge(patch)).await.map(|_| ())
    };
    patch(json!({"spec": {"pollInterval": "10m"}})).await.unwrap();
    let error = patch(json!({"spec": {"storage": claim("2Gi")}})).await.unwrap_err().to_string();
    assert!(error.contains(&expected), "{error}");
    // With the right.
    let right = ["create", "role", "claims", "--verb=create", "--resource=persistentvolumeclaims"];
    cluster.kubectl(&[&right[..], &[&in_namespace]].concat()).unwrap();
    bind("claims", "--role=claims");
    let created = || async { create(&with_storage("a", claim("1Gi"))).await.ok() };
    host.world.eventually("the user may create claims", created).await;
    registration.remove().await;
}

/// The webhooks of an operator, registered at the API server for the namespace of its test.
struct Registration {
    configurations: Api<ValidatingWebhookConfiguration>,
    name: String,
}

impl Registration {
    /// Registers the webhooks, and returns also the error for an invalid policy, which shows that they are called.
    async fn of(host: &Host) -> (Self, String) {
        let webhooks: Vec<Value> = KINDS.iter().map(|kind| webhook(host, kind)).collect();
        let name = format!("declarest-{}", host.world.namespace);
        let configuration = json!({"metadata": {"name": name}, "webhooks": webhooks});
        let configurations = Api::<ValidatingWebhookConfiguration>::all(host.world.client.clone());
        configurations
            .create(&PostParams::default(), &serde_json::from_value(configuration).unwrap())
            .await
            .unwrap();
        // The API server follows configurations with a delay.
        let invalid: SyncPolicy =
            serde_json::from_value(with(policy("bad", "/a"), "/spec/fullResyncCron", json!("0 0 30 2 *")))
                .unwrap();
        let policies = host.world.api::<SyncPolicy>();
        let dry_run = PostParams { dry_run: true, ..PostParams::default() };
        let denied = || async { policies.create(&dry_run, &invalid).await.err() };
        let error = host.world.eventually("the invalid policy is denied", denied).await.to_string();
        (Self { configurations, name }, error)
    }

    async fn remove(self) {
        self.configurations.delete(&self.name, &DeleteParams::default()).await.unwrap();
    }
}

fn webhook(host: &Host, kind: &str) -> Value {
    let plural = kind.strip_suffix('y').map_or_else(|| format!("{kind}s"), |stem| format!("{stem}ies"));
    let mut operations = vec!["CREATE", "UPDATE"];
    if kind != "syncpolicy" {
        operations.push("DELETE");
    }
    let authority =
        serde_json::to_value(k8s_openapi::ByteString(host.authority.pem.clone().into_bytes())).unwrap();
    json!({
        "name": format!("v{kind}-v1alpha1.declarest.io"), "failurePolicy": "Fail", "sideEffects": "None",
        "admissionReviewVersions": ["v1"], "timeoutSeconds": 10,
        "clientConfig": {"url": host.url(kind), "caBundle": authority},
        "rules": [{"apiGroups": ["declarest.io"], "apiVersions": ["v1alpha1"], "operations": operations, "resources": [plural]}],
        // Other tests share the API server.
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": host.world.namespace}},
    })
}
