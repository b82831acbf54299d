//! What an API server with our CRDs must accept and refuse: one accepted and one refused object for every
//! pattern, enum, bound and CEL rule. Runs against any client, so that a real API server and the in-process
//! one answer the same questions.

use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, PostParams};
use serde_json::{Value, json};

/// What must happen to an object.
#[derive(Clone, Copy, Debug)]
pub enum Expect {
    Accepted,
    /// With 422 and a message that contains this text.
    Refused(&'static str),
}

use Expect::{Accepted, Refused};

/// A minimal object with one change.
pub struct Case {
    kind: &'static str,
    /// JSON pointer of the change; what is missing on the way is created.
    pointer: &'static str,
    /// The new value; `Value::Null` removes the field.
    value: Value,
    expect: Expect,
}

const fn case(kind: &'static str, pointer: &'static str, value: Value, expect: Expect) -> Case {
    Case { kind, pointer, value, expect }
}

/// Creates every case in `namespace` and reports all that came out otherwise than expected. An error must not repeat the
/// password `canary`.
pub async fn check_all(client: &Client, namespace: &str) -> Result<(), String> {
    let mut wrong = Vec::new();
    for (index, case) in cases().into_iter().enumerate() {
        let mut object = minimal(case.kind);
        change(&mut object, case.pointer, case.value.clone());
        let outcome = create(client, namespace, &format!("case-{index}"), object).await;
        let good = match (case.expect, &outcome) {
            (Accepted, Ok(_)) => true,
            (Refused(text), Err(kube::Error::Api(status))) => {
                status.code == 422 && status.message.contains(text) && !status.message.contains("canary")
            }
            _ => false,
        };
        if !good {
            let outcome = outcome.map(|_| "accepted");
            wrong.push(format!(
                "{} {} = {}: expected {:?}, got {outcome:?}",
                case.kind, case.pointer, case.value, case.expect
            ));
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
}

/// Creates a minimal object of each kind and compares the stored spec with the documented defaults.
pub async fn check_defaults(client: &Client, namespace: &str) {
    let expected = [
        (
            "ResourceRepository",
            json!({
                "type": "git",
                "pollInterval": "1m",
                "git": {"url": "https://git.test/repo.git", "branch": "main"}
            }),
        ),
        (
            "ManagedServer",
            json!({
                "http": {"baseURL": "https://api.test", "allowCrossOriginRedirects": false},
                "pollInterval": "10m"
            }),
        ),
        (
            "SecretStore",
            json!({"file": {"path": "store", "encryption": {"keyRef": {"name": "s", "key": "k"}}}}),
        ),
        (
            "SyncPolicy",
            json!({
                "resourceRepositoryRef": {"name": "repo"},
                "managedServerRef": {"name": "server"},
                "source": {"path": "/", "recursive": true},
                "sync": {"prune": false, "force": false, "allowEmpty": false, "pruneLimit": "50%"},
                "mode": "apply",
                "syncInterval": "5m",
                "suspend": false
            }),
        ),
    ];
    for (kind, spec) in expected {
        let stored = create(client, namespace, "defaults", minimal(kind)).await.unwrap();
        assert_eq!(stored.data["spec"], spec, "{kind}");
    }
}

/// Fields that are not part of a kind must not be stored, and explicit nulls count as absent.
pub async fn check_pruning(client: &Client, namespace: &str) {
    let mut object = minimal("SyncPolicy");
    change(&mut object, "/spec/source/depth", json!(3));
    let mut stored = create(client, namespace, "pruned", object).await.unwrap();
    assert_eq!(stored.data["spec"]["source"].take(), json!({"path": "/", "recursive": true}));
}

/// Creates `object` through the dynamic API, which sends it as it is.
async fn create(
    client: &Client,
    namespace: &str,
    name: &str,
    object: Value,
) -> Result<DynamicObject, kube::Error> {
    let mut object: DynamicObject = serde_json::from_value(object).unwrap();
    object.metadata.name = Some(name.to_owned());
    let kind = object.types.as_ref().unwrap().kind.clone();
    let crd = declarest_operator::crd::all().into_iter().find(|crd| crd.spec.names.kind == kind).unwrap();
    let gvk = GroupVersionKind::gvk("declarest.io", "v1alpha1", &kind);
    let resource = ApiResource::from_gvk_with_plural(&gvk, &crd.spec.names.plural);
    Api::<DynamicObject>::namespaced_with(client.clone(), namespace, &resource)
        .create(&PostParams::default(), &object)
        .await
}

fn minimal(kind: &str) -> Value {
    let spec = match kind {
        "ResourceRepository" => json!({"type": "git", "git": {"url": "https://git.test/repo.git"}}),
        "ManagedServer" => json!({"http": {"baseURL": "https://api.test"}}),
        "SecretStore" => json!({"file": {"path": "store", "encryption": {"keyRef": secret()}}}),
        "SyncPolicy" => json!({
            "resourceRepositoryRef": {"name": "repo"},
            "managedServerRef": {"name": "server"},
            "source": {"path": "/"}
        }),
        other => panic!("{other} is none of our kinds"),
    };
    json!({"apiVersion": "declarest.io/v1alpha1", "kind": kind, "metadata": {}, "spec": spec})
}

fn change(object: &mut Value, pointer: &str, value: Value) {
    let (parents, field) = pointer.rsplit_once('/').unwrap();
    let mut parent = object;
    for segment in parents.split('/').skip(1) {
        parent = match parent {
            Value::Array(items) => &mut items[segment.parse::<usize>().unwrap()],
            map => &mut map[segment],
        };
        if parent.is_null() {
            *parent = json!({});
        }
    }
    let fields = parent.as_object_mut().unwrap();
    if value.is_null() {
        fields.remove(field);
    } else {
        fields.insert(field.to_owned(), value);
    }
}

fn secret() -> Value {
    json!({"name": "s", "key": "k"})
}

fn cases() -> Vec<Case> {
    [resource_repository(), storage(), managed_server(), connection(), secret_store(), sync_policy()]
        .into_iter()
        .flatten()
        .collect()
}

fn resource_repository() -> Vec<Case> {
    let case = |pointer, value, expect| case("ResourceRepository", pointer, value, expect);
    let known = json!({"privateKeyRef": secret(), "knownHostsRef": secret()});
    let insecure = |value: Value| json!({"privateKeyRef": secret(), "insecureIgnoreHostKey": value});
    let webhook = |field: &str, value: Value| {
        let mut webhook = json!({"provider": "github", "secretRef": secret()});
        webhook[field] = value;
        webhook
    };
    vec![
        case("/spec/type", json!("git"), Accepted),
        case("/spec/type", json!("svn"), Refused("spec.type")),
        case("/spec/type", Value::Null, Refused("spec.type")),
        case("/spec/git", Value::Null, Refused("type git needs the block spec.git")),
        case("/spec/pollInterval", json!("1h30m"), Accepted),
        case("/spec/pollInterval", json!("0.5h250ms"), Accepted),
        case("/spec/pollInterval", json!("${POLL_INTERVAL}"), Accepted),
        case("/spec/pollInterval", json!("30"), Refused("spec.pollInterval")),
        case("/spec/pollInterval", json!("1 m"), Refused("spec.pollInterval")),
        case("/spec/pollInterval", json!("${A}${B}"), Refused("spec.pollInterval")),
        case("/spec/pollInterval", json!(60), Refused("spec.pollInterval")),
        case("/spec/pollInterval", json!("30s"), Accepted),
        case("/spec/pollInterval", json!("29s999ms"), Refused("the minimum is 30s")),
        case("/spec/git/url", json!("ssh://git@git.test:2222/repo.git"), Accepted),
        case("/spec/git/url", json!("git@git.test:acme/repo.git"), Accepted),
        case("/spec/git/url", json!("https://git.test/a:b@c.git"), Accepted),
        case("/spec/git/url", json!("https://me:canary@git.test/repo.git"), Refused("contains a password")),
        case("/spec/git/url", json!("file:///srv/repo.git"), Accepted),
        case("/spec/git/url", json!("${GIT_URL}"), Accepted),
        case("/spec/git/url", json!("ftp://git.test/repo.git"), Refused("spec.git.url")),
        case("/spec/git/url", json!("https:///repo.git"), Refused("spec.git.url")),
        case("/spec/git/url", json!("/srv/repo.git"), Refused("spec.git.url")),
        case("/spec/git/url", json!("x${GIT_URL}"), Refused("spec.git.url")),
        case("/spec/git/branch", json!("release/1"), Accepted),
        case("/spec/git/branch", json!(""), Refused("spec.git.branch")),
        case("/spec/git/auth", json!({"tokenRef": secret()}), Accepted),
        case("/spec/git/auth", json!({}), Refused("set exactly one of tokenRef and sshSecretRef")),
        case(
            "/spec/git/auth",
            json!({"tokenRef": null}),
            Refused("set exactly one of tokenRef and sshSecretRef"),
        ),
        case(
            "/spec/git/auth",
            json!({"tokenRef": secret(), "sshSecretRef": known}),
            Refused("set exactly one of"),
        ),
        case("/spec/git/auth/tokenRef", json!({"name": "s"}), Refused("tokenRef.key")),
        case("/spec/git/auth/tokenRef", json!({"name": "", "key": "k"}), Refused("tokenRef.name")),
        case("/spec/git/auth/tokenRef", json!({"name": "s", "key": ""}), Refused("tokenRef.key")),
        case("/spec/git/auth/sshSecretRef", known.clone(), Accepted),
        case("/spec/git/auth/sshSecretRef", insecure(json!(true)), Accepted),
        case("/spec/git/auth/sshSecretRef", insecure(json!(false)), Refused("set knownHostsRef")),
        case("/spec/git/auth/sshSecretRef", insecure(Value::Null), Refused("set knownHostsRef")),
        case("/spec/git/auth/sshSecretRef", json!({"knownHostsRef": secret()}), Refused("privateKeyRef")),
        case("/spec/git/webhook", webhook("provider", json!("generic-hmac")), Accepted),
        case("/spec/git/webhook", webhook("provider", json!("bitbucket")), Refused("provider")),
        case("/spec/git/webhook", webhook("secretRef", Value::Null), Refused("secretRef")),
        case("/spec/git/webhook", webhook("events", json!(["push", "ping"])), Accepted),
        case("/spec/git/webhook", webhook("events", json!(["tag"])), Refused("events")),
        case("/spec/git/webhook", webhook("events", json!(["push", "push"])), Refused("Duplicate value")),
        case("/spec/git/webhook", webhook("branchFilter", json!({"include": ["release/**"]})), Accepted),
    ]
}

fn storage() -> Vec<Case> {
    let case = |value, expect| case("ResourceRepository", "/spec/storage", value, expect);
    let pvc =
        |modes: Value, size: &str| json!({"pvc": {"accessModes": modes, "requests": {"storage": size}}});
    let once = json!(["ReadWriteOnce"]);
    vec![
        case(json!({"existingPVC": {"name": "claim"}}), Accepted),
        case(json!({"existingPVC": {"name": ""}}), Refused("existingPVC.name")),
        case(pvc(once.clone(), "10Gi"), Accepted),
        case(pvc(once.clone(), "1.5e3"), Accepted),
        case(pvc(once.clone(), "${CLAIM_SIZE}"), Accepted),
        case(pvc(once.clone(), "ten"), Refused("requests.storage")),
        case(pvc(json!([]), "10Gi"), Refused("accessModes")),
        case(pvc(json!(["Exclusive"]), "10Gi"), Refused("accessModes")),
        case(json!({"pvc": {"requests": {"storage": "1Gi"}}}), Refused("accessModes")),
        case(json!({}), Refused("set exactly one of existingPVC and pvc")),
        case(
            json!({"existingPVC": {"name": "claim"}, "pvc": pvc(once, "1Gi")["pvc"]}),
            Refused("set exactly one of existingPVC and pvc"),
        ),
    ]
}

fn managed_server() -> Vec<Case> {
    let case = |pointer, value, expect| case("ManagedServer", pointer, value, expect);
    let basic = json!({"usernameRef": secret(), "passwordRef": secret()});
    let oauth2 = |field: &str, value: Value| {
        let mut oauth2 = json!({
            "tokenURL": "https://login.test/token", "clientIDRef": secret(), "clientSecretRef": secret()
        });
        oauth2[field] = value;
        json!({ "oauth2": oauth2 })
    };
    let mut password = oauth2("grantType", json!("password"));
    password["oauth2"]["usernameRef"] = secret();
    let incomplete = password.clone();
    password["oauth2"]["passwordRef"] = secret();
    let header = json!({"header": "X-Api-Key", "valueRef": secret()});
    let one_mode = Refused("set exactly one of oauth2, basicAuth and customHeaders");
    vec![
        case("/spec/http/baseURL", json!("http://10.0.0.1:8080/api?tenant=1"), Accepted),
        case("/spec/http/baseURL", json!("${BASE_URL}"), Accepted),
        case("/spec/http/baseURL", json!("https://api.test/users/@me"), Accepted),
        case("/spec/http/baseURL", json!("https://me:canary@api.test"), Refused("contains credentials")),
        case("/spec/http/baseURL", json!("ftp://api.test"), Refused("spec.http.baseURL")),
        case("/spec/http/baseURL", json!("https://"), Refused("spec.http.baseURL")),
        case("/spec/http/baseURL", Value::Null, Refused("spec.http.baseURL")),
        case("/spec/http/healthCheck", json!("/health"), Accepted),
        case("/spec/http/healthCheck", json!(""), Refused("spec.http.healthCheck")),
        case("/spec/http/defaultHeaders", json!({"X-Tenant": "blue"}), Accepted),
        case("/spec/http/defaultHeaders", json!({"X-Tenant": 1}), Refused("defaultHeaders")),
        case("/spec/http/auth", json!({}), one_mode),
        case("/spec/http/auth", json!({"customHeaders": []}), one_mode),
        case("/spec/http/auth", json!({"customHeaders": [header]}), Accepted),
        case("/spec/http/auth", json!({"customHeaders": [header], "basicAuth": basic}), one_mode),
        case("/spec/http/auth", json!({"customHeaders": [], "basicAuth": basic}), Accepted),
        case(
            "/spec/http/auth",
            json!({"customHeaders": [{"header": "", "valueRef": secret()}]}),
            Refused("header"),
        ),
        case("/spec/http/auth", json!({"basicAuth": {"usernameRef": secret()}}), Refused("passwordRef")),
        case("/spec/http/auth", oauth2("scope", json!("read write")), Accepted),
        case("/spec/http/auth", oauth2("tokenURL", json!("login.test")), Refused("tokenURL")),
        case(
            "/spec/http/auth",
            oauth2("tokenURL", json!("https://me:canary@login.test")),
            Refused("contains credentials"),
        ),
        case("/spec/http/auth", oauth2("clientIDRef", Value::Null), Refused("clientIDRef")),
        case("/spec/http/auth", oauth2("grantType", json!("implicit")), Refused("grantType")),
        case("/spec/http/auth", incomplete, Refused("grantType password needs usernameRef and passwordRef")),
        case("/spec/http/auth", password, Accepted),
        case("/spec/openapi", json!({"url": "https://api.test/openapi.json"}), Accepted),
        case("/spec/openapi", json!({"url": "openapi.json"}), Refused("spec.openapi.url")),
        case("/spec/openapi", json!({"url": "https://canary@api.test"}), Refused("contains credentials")),
        case("/spec/metadata", json!({"url": "https://files.test/shop.tar.gz"}), Accepted),
        case(
            "/spec/metadata",
            json!({"url": "https://canary@a.test/b.tgz"}),
            Refused("contains credentials"),
        ),
        case("/spec/metadata", json!({"url": "shop.tar.gz"}), Refused("spec.metadata.url")),
        case("/spec/metadata", json!({"bundle": "shop-bundle:1.2.3"}), Accepted),
        case("/spec/metadata", json!({"bundle": ""}), Refused("spec.metadata.bundle")),
        case(
            "/spec/metadata",
            json!({"url": "https://files.test/shop.tgz", "bundle": "shop-bundle:1.2.3"}),
            Refused("set url or bundle, not both"),
        ),
        case("/spec/pollInterval", json!("often"), Refused("spec.pollInterval")),
        case("/spec/pollInterval", json!("5s"), Refused("the minimum is 30s")),
    ]
}

fn connection() -> Vec<Case> {
    let case = |pointer, value, expect| case("ManagedServer", pointer, value, expect);
    let throttling = |value, expect| case("/spec/http/requestThrottling", value, expect);
    let both = Refused("set clientCertRef and clientKeyRef together, or neither");
    vec![
        throttling(json!({"maxConcurrentRequests": 4, "queueSize": 0}), Accepted),
        throttling(json!({"requestsPerSecond": 10, "burst": 20}), Accepted),
        throttling(json!({}), Refused("set maxConcurrentRequests or requestsPerSecond above zero")),
        throttling(
            json!({"maxConcurrentRequests": 0}),
            Refused("set maxConcurrentRequests or requestsPerSecond above zero"),
        ),
        throttling(
            json!({"requestsPerSecond": 1, "queueSize": 5}),
            Refused("queueSize needs maxConcurrentRequests above zero"),
        ),
        throttling(
            json!({"maxConcurrentRequests": 1, "burst": 5}),
            Refused("burst needs requestsPerSecond above zero"),
        ),
        throttling(json!({"maxConcurrentRequests": -1}), Refused("maxConcurrentRequests")),
        throttling(json!({"maxConcurrentRequests": 1, "queueSize": -1}), Refused("queueSize")),
        throttling(json!({"requestsPerSecond": -1}), Refused("requestsPerSecond")),
        throttling(json!({"requestsPerSecond": 1, "burst": -1}), Refused("burst")),
        throttling(json!({"requestsPerSecond": 0.5}), Refused("requestsPerSecond")),
        case("/spec/http/tls", json!({"caCertRef": secret()}), Accepted),
        case("/spec/http/tls", json!({"clientCertRef": secret(), "clientKeyRef": secret()}), Accepted),
        case("/spec/http/tls", json!({"clientCertRef": secret()}), both),
        case("/spec/http/tls", json!({"clientKeyRef": secret()}), both),
        case("/spec/http/proxy", json!({}), Accepted),
        case("/spec/http/proxy", json!({"httpURL": "http://proxy.test:3128"}), Accepted),
        case("/spec/http/proxy", json!({"httpURL": "proxy.test:3128"}), Refused("proxy.httpURL")),
        case(
            "/spec/http/proxy",
            json!({"httpsURL": "http://canary@p.test"}),
            Refused("contains credentials"),
        ),
        case("/spec/http/proxy", json!({"httpsURL": "socks5://proxy.test"}), Refused("proxy.httpsURL")),
        case("/spec/http/proxy", json!({"auth": {"usernameRef": secret()}}), Refused("passwordRef")),
    ]
}

fn secret_store() -> Vec<Case> {
    let case = |pointer, value, expect| case("SecretStore", pointer, value, expect);
    let vault = |field: &str, value: Value| {
        let mut vault = json!({"address": "https://vault.test", "auth": {"token": {"secretRef": secret()}}});
        vault[field] = value;
        json!({ "vault": vault })
    };
    let app_role = json!({"appRole": {"roleIDRef": secret(), "secretIDRef": secret()}});
    let userpass = json!({"userpass": {"usernameRef": secret(), "passwordRef": secret()}});
    let mut two = app_role.clone();
    two["userpass"] = userpass["userpass"].clone();
    let one_store = Refused("set exactly one of vault and file");
    let one_login = Refused("set exactly one of token, userpass and appRole");
    let one_key = Refused("set exactly one of keyRef and passphraseRef");
    vec![
        case("/spec", json!({}), one_store),
        case("/spec/vault", vault("mount", json!("kv"))["vault"].clone(), one_store),
        case("/spec", vault("mount", json!("kv")), Accepted),
        case("/spec", vault("mount", json!("")), Refused("vault.mount")),
        case("/spec", vault("address", json!("vault.test:8200")), Refused("vault.address")),
        case("/spec", vault("address", json!("https://canary@vault.test")), Refused("contains credentials")),
        case("/spec", vault("kvVersion", json!(1)), Accepted),
        case("/spec", vault("kvVersion", json!(0)), Refused("kvVersion")),
        case("/spec", vault("kvVersion", json!(3)), Refused("kvVersion")),
        case("/spec", vault("auth", json!({})), one_login),
        case("/spec", vault("auth", two), one_login),
        case("/spec", vault("auth", app_role), Accepted),
        case("/spec", vault("auth", userpass), Accepted),
        case("/spec", vault("auth", json!({"appRole": {"roleIDRef": secret()}})), Refused("secretIDRef")),
        case("/spec", vault("auth", json!({"userpass": {"usernameRef": secret()}})), Refused("passwordRef")),
        case("/spec", vault("auth", json!({"token": {}})), Refused("secretRef")),
        case("/spec/file/path", json!(""), Refused("spec.file.path")),
        case("/spec/file/encryption", json!({"passphraseRef": secret()}), Accepted),
        case("/spec/file/encryption", json!({}), one_key),
        case("/spec/file/encryption", json!({"keyRef": secret(), "passphraseRef": secret()}), one_key),
        case("/spec/file/encryption", Value::Null, Refused("encryption")),
    ]
}

fn sync_policy() -> Vec<Case> {
    let case = |pointer, value, expect| case("SyncPolicy", pointer, value, expect);
    vec![
        case("/spec/resourceRepositoryRef", Value::Null, Refused("resourceRepositoryRef")),
        case("/spec/resourceRepositoryRef/name", json!(""), Refused("resourceRepositoryRef.name")),
        case("/spec/managedServerRef", Value::Null, Refused("managedServerRef")),
        case("/spec/managedServerRef/name", json!(""), Refused("managedServerRef.name")),
        case("/spec/secretStoreRef", json!({"name": "store"}), Accepted),
        case("/spec/secretStoreRef", json!({"name": ""}), Refused("secretStoreRef.name")),
        case("/spec/source", Value::Null, Refused("spec.source")),
        case("/spec/source/path", json!("${SCOPE}"), Accepted),
        case("/spec/source/path", json!(""), Refused("spec.source.path")),
        case("/spec/mode", json!("observe"), Accepted),
        case("/spec/mode", json!("dry-run"), Refused("spec.mode")),
        case("/spec/sync/pruneLimit", json!(0), Accepted),
        case("/spec/sync/pruneLimit", json!(250), Accepted),
        case("/spec/sync/pruneLimit", json!(-1), Refused("pruneLimit")),
        case("/spec/sync/pruneLimit", json!("100%"), Accepted),
        case("/spec/sync/pruneLimit", json!("${PRUNE_LIMIT}"), Accepted),
        case("/spec/sync/pruneLimit", json!("101%"), Refused("pruneLimit")),
        case("/spec/sync/pruneLimit", json!("half"), Refused("pruneLimit")),
        case("/spec/sync/prune", json!("yes"), Refused("spec.sync.prune")),
        case("/spec/syncInterval", json!("90s"), Accepted),
        case("/spec/syncInterval", json!("10s"), Accepted),
        case("/spec/syncInterval", json!("5s"), Refused("the minimum is 10s")),
        case("/spec/fullResyncCron", json!("0 3 * * 0"), Accepted),
        case("/spec/fullResyncCron", json!("${FULL_RESYNC}"), Accepted),
        case("/spec/fullResyncCron", json!("@daily"), Refused("spec.fullResyncCron")),
        case("/spec/fullResyncCron", json!("0 0 3 * * 0"), Refused("spec.fullResyncCron")),
        case("/spec/syncInterval", json!("1d"), Refused("spec.syncInterval")),
        case("/spec/suspend", json!(true), Accepted),
    ]
}
