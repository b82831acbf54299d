//! Validation in code: one accepted and one rejected value per rule. Each case is a minimal spec with one
//! field changed.

use rstest::rstest;
use serde_json::{Value, json};

use super::{
    FieldErrors, Limits, ManagedServerSpec, ResourceRepositorySpec, SecretStoreSpec, SyncPolicySpec,
    secret_refs,
};

fn limits() -> Limits {
    Limits {
        allow_file_repositories: false,
        bundle_dir: "/var/lib/declarest/bundles".into(),
        secrets_base_dir: "/var/lib/declarest/secrets".into(),
    }
}

fn secret() -> Value {
    json!({"name": "s", "key": "k"})
}

fn with(mut spec: Value, pointer: &str, value: Value) -> Value {
    let (parents, field) = pointer.rsplit_once('/').unwrap_or_default();
    let mut parent = &mut spec;
    for segment in parents.split('/').skip(1) {
        parent = &mut parent[segment];
    }
    parent[field] = value;
    spec
}

/// Returns the errors as text, empty if there are none.
fn text<T>(outcome: Result<T, FieldErrors>) -> String {
    outcome.err().map(|errors| errors.to_string()).unwrap_or_default()
}

fn repository(pointer: &str, value: Value, limits: &Limits) -> String {
    let spec = json!({"type": "git", "git": {"url": "https://git.test/repo.git"}});
    let spec: ResourceRepositorySpec = serde_json::from_value(with(spec, pointer, value)).unwrap();
    text(spec.validate(limits))
}

#[rstest]
#[case("/pollInterval", json!("30s"))]
#[case("/git/url", json!("ssh://git@git.test:2222/repo.git"))]
#[case("/git/url", json!("git@git.test:acme/repo.git"))]
#[case("/git/url", json!("https://user@git.test/repo.git"))]
#[case("/git/branch", json!("feature/a.b-c_d"))]
#[case("/git/webhook", json!({"provider": "github", "secretRef": secret(), "branchFilter": {"include": ["release/**", "v[0-9]*"]}}))]
#[case("/storage", json!({"pvc": {"accessModes": ["ReadWriteOnce"], "requests": {"storage": "1.5Gi"}}}))]
fn repository_accepts(#[case] pointer: &str, #[case] value: Value) {
    assert_eq!(repository(pointer, value, &limits()), "");
}

#[rstest]
#[case("/git", json!(null), "spec.git: is required for type git")]
#[case("/pollInterval", json!("29.9s"), r#"spec.pollInterval: "29.9s" is too short; the minimum is 30s"#)]
#[case("/pollInterval", json!("soon"), r#"spec.pollInterval: "soon" is not a duration above zero; write for example 30s or 1h30m"#)]
#[case("/git/url", json!(""), "spec.git.url: is not a repository; write https://host/path, ssh://host/path or user@host:path")]
#[case("/git/url", json!("git.test:repo.git"), "spec.git.url: is not a repository; write https://host/path, ssh://host/path or user@host:path")]
#[case("/git/url", json!("https://bob:hunter2@git.test/repo"), "spec.git.url: contains a password; remove it and set git.auth")]
#[case("/git/url", json!("ftp://git.test/repo"), r#"spec.git.url: has the scheme "ftp"; write an http, https or ssh URL"#)]
#[case("/git/url", json!("ssh:///repo"), "spec.git.url: has no host")]
#[case("/git/url", json!("file:///srv/repo"), "spec.git.url: file:/// is not allowed here; use a remote repository, or start the operator with --allow-file-repositories")]
#[case("/git/auth", json!({}), "spec.git.auth: set exactly one of tokenRef and sshSecretRef")]
#[case("/git/auth", json!({"sshSecretRef": {"privateKeyRef": secret(), "knownHostsRef": secret()}}), "spec.git.auth.sshSecretRef: needs an ssh URL; set tokenRef for http and https")]
#[case("/git/auth", json!({"tokenRef": {"name": " ", "key": "k"}}), "spec.git.auth.tokenRef.name: must not be empty")]
#[case("/git/webhook", json!({"provider": "gitea", "secretRef": secret(), "events": ["push", "push"]}), "spec.git.webhook.events: contains a duplicate event")]
#[case("/git/webhook", json!({"provider": "gitea", "secretRef": secret(), "branchFilter": {"exclude": ["a[b"]}}), r#"spec.git.webhook.branchFilter: "a[b" is not a glob: unclosed character class; missing ']'"#)]
#[case("/storage", json!({}), "spec.storage: set exactly one of existingPVC and pvc")]
#[case("/storage", json!({"pvc": {"accessModes": ["ReadWriteOnce"], "requests": {"storage": "0Gi"}}}), r#"spec.storage.pvc.requests.storage: "0Gi" is not a size; write a quantity above zero such as 10Gi"#)]
fn repository_rejects(#[case] pointer: &str, #[case] value: Value, #[case] error: &str) {
    assert_eq!(repository(pointer, value, &limits()), error);
}

#[test]
fn repository_may_be_a_directory_if_the_operator_allows_it() {
    let limits = Limits { allow_file_repositories: true, ..limits() };
    assert_eq!(repository("/git/url", json!("file:///srv/repo"), &limits), "");
    assert_eq!(
        repository("/git/url", json!("file://host/repo"), &limits),
        "spec.git.url: write a local repository as file:///absolute/path"
    );
}

#[test]
fn all_invalid_fields_are_reported_at_once() {
    let spec = json!({
        "type": "git",
        "pollInterval": "1s",
        "git": {"url": "git@git.test:repo", "branch": "a..b", "auth": {
            "sshSecretRef": {"privateKeyRef": {"name": "", "key": ""}}
        }}
    });
    let spec: ResourceRepositorySpec = serde_json::from_value(spec).unwrap();
    let errors = spec.validate(&limits()).unwrap_err();
    let fields: Vec<_> = errors.fields().collect();
    assert_eq!(
        fields,
        [
            "spec.pollInterval",
            "spec.git.branch",
            "spec.git.auth.sshSecretRef",
            "spec.git.auth.sshSecretRef.privateKeyRef.name",
            "spec.git.auth.sshSecretRef.privateKeyRef.key",
        ]
    );
}

#[rstest]
#[case("main", true)]
#[case("release/2.0", true)]
#[case("", false)]
#[case("-d", false)]
#[case("HEAD", false)]
#[case("@", false)]
#[case("a..b", false)]
#[case("a@{1}", false)]
#[case("a.", false)]
#[case("a b", false)]
#[case("a\tb", false)]
#[case("a~1", false)]
#[case("a:b", false)]
#[case("/a", false)]
#[case("a//b", false)]
#[case("a/.b", false)]
#[case("a.lock", false)]
#[case("a.lock/b", false)]
fn branch_names(#[case] name: &str, #[case] legal: bool) {
    assert_eq!(super::validation::branch_name(name).is_ok(), legal);
}

#[rstest]
#[case(&[], &[], "anything/at/all", true)]
#[case(&["main"], &[], "main", true)]
#[case(&["main"], &[], "domain", false)]
#[case(&["release/*"], &[], "release/1", true)]
#[case(&["release/*"], &[], "release/1/fix", false)]
#[case(&["release/**"], &[], "release/1/fix", true)]
#[case(&["**"], &["wip/**"], "wip/x", false)]
#[case(&[], &["wip/*"], "main", true)]
fn branch_filters(
    #[case] include: &[&str],
    #[case] exclude: &[&str],
    #[case] branch: &str,
    #[case] counts: bool,
) {
    let owned = |globs: &[&str]| globs.iter().map(|glob| (*glob).to_owned()).collect();
    let filter =
        super::resource_repository::BranchFilter { include: owned(include), exclude: owned(exclude) };
    assert_eq!(filter.compile().unwrap().matches(branch), counts);
}

fn server(pointer: &str, value: Value) -> String {
    let spec = with(json!({"http": {"baseURL": "https://api.test/v1"}}), pointer, value);
    let spec: ManagedServerSpec = serde_json::from_value(spec).unwrap();
    text(spec.validate(&limits()))
}

#[rstest]
#[case("/http/healthCheck", json!("status/live"))]
#[case("/http/healthCheck", json!("https://api.test:443/live"))]
#[case("/http/defaultHeaders", json!({"X-Tenant": "blue green"}))]
#[case("/http/proxy", json!({}))]
#[case("/http/requestThrottling", json!({"maxConcurrentRequests": 1, "queueSize": 0}))]
#[case("/metadata", json!({}))]
#[case("/metadata", json!({"url": "https://files.test/shop.TGZ?sig=x"}))]
#[case("/metadata", json!({"bundle": "shop-bundle:1.2.3"}))]
#[case("/metadata", json!({"bundle": "oci://registry.test/shop@sha256:00"}))]
#[case("/metadata", json!({"bundle": "shop/v1"}))]
#[case("/metadata", json!({"bundle": "file:///var/lib/declarest/bundles/shop.tar.gz"}))]
#[case("/metadata", json!({"bundle": "file://localhost/var/lib/declarest/bundles/my%20shop.tar.gz"}))]
#[case("/metadata", json!({"bundle": "shop:latest"}))]
fn server_accepts(#[case] pointer: &str, #[case] value: Value) {
    assert_eq!(server(pointer, value), "");
}

#[rstest]
#[case("/http/baseURL", json!("api.test"), "spec.http.baseURL: is not a URL (relative URL without a base); write https://host/path")]
#[case("/http/baseURL", json!("https://bob:hunter2@api.test"), "spec.http.baseURL: contains credentials; remove them and refer to a Secret")]
#[case("/http/baseURL", json!("https://api.test/#top"), "spec.http.baseURL: has a fragment; remove # and the text after it")]
#[case("/http/healthCheck", json!("/live?deep=1"), "spec.http.healthCheck: must not have a query or a fragment")]
#[case("/http/healthCheck", json!("https://other.test/live"), "spec.http.healthCheck: has another origin; write a path or a URL with the scheme, host and port of baseURL")]
#[case("/http/healthCheck", json!("../admin"), "spec.http.healthCheck: must not contain . or .. segments")]
#[case("/http/defaultHeaders", json!({"X Tenant": "blue"}), r#"spec.http.defaultHeaders[X Tenant]: "X Tenant" is not a header name; use letters, digits and hyphens"#)]
#[case("/http/defaultHeaders", json!({"X-Tenant": "a\nb"}), "spec.http.defaultHeaders[X-Tenant]: contains a character that is not allowed in a header")]
#[case("/http/auth", json!({}), "spec.http.auth: set exactly one of oauth2, basicAuth and customHeaders (with at least one header)")]
#[case("/http/auth", json!({"customHeaders": [{"header": "a b", "valueRef": secret()}]}), r#"spec.http.auth.customHeaders[0].header: "a b" is not a header name; use letters, digits and hyphens"#)]
#[case("/http/auth", json!({"oauth2": {"tokenURL": "https://x.test", "grantType": "password", "clientIDRef": secret(), "clientSecretRef": secret()}}), "spec.http.auth.oauth2: grantType password needs usernameRef and passwordRef")]
#[case("/http/tls", json!({"clientCertRef": secret()}), "spec.http.tls: set clientCertRef and clientKeyRef together, or neither")]
#[case("/http/proxy", json!({"httpsURL": "http://u:p@proxy.test"}), "spec.http.proxy.httpsURL: contains credentials; remove them and refer to a Secret")]
#[case("/http/requestThrottling", json!({"requestsPerSecond": 0}), "spec.http.requestThrottling: set maxConcurrentRequests or requestsPerSecond above zero, or remove requestThrottling")]
#[case("/http/requestThrottling", json!({"requestsPerSecond": 5, "queueSize": 1}), "spec.http.requestThrottling.queueSize: needs maxConcurrentRequests above zero")]
#[case("/http/requestThrottling", json!({"maxConcurrentRequests": 5, "burst": -1}), "spec.http.requestThrottling.burst: must not be negative; spec.http.requestThrottling.burst: needs requestsPerSecond above zero")]
#[case("/metadata", json!({"url": "https://files.test/shop.zip"}), "spec.metadata.url: must end in .tar.gz or .tgz")]
#[case("/metadata", json!({"bundle": "/etc/passwd"}), "spec.metadata.bundle: a local bundle must be below /var/lib/declarest/bundles")]
#[case("/metadata", json!({"bundle": "shop/../../x"}), "spec.metadata.bundle: a local bundle must be below /var/lib/declarest/bundles")]
#[case("/metadata", json!({"bundle": "file:///var/lib/declarest/bundles/%2e%2e/cache/x"}), "spec.metadata.bundle: a local bundle must be below /var/lib/declarest/bundles")]
#[case("/metadata", json!({"bundle": "file:///var/lib/declarest/bundles/a%2f..%2f..%2fcache/x"}), "spec.metadata.bundle: a local bundle must be below /var/lib/declarest/bundles")]
#[case("/metadata", json!({"bundle": "file://localhostile/x"}), r#"spec.metadata.bundle: bundle reference "file://localhostile/x": must be file:///<absolute path>; files of other hosts cannot be read"#)]
#[case("/metadata", json!({"bundle": "ftp://files.test/x"}), r#"spec.metadata.bundle: "ftp" is not a scheme of a bundle; use oci or https"#)]
#[case("/openapi", json!({"url": "file:///openapi.json"}), r#"spec.openapi.url: has the scheme "file"; write an http or https URL"#)]
#[case("/pollInterval", json!("1s"), r#"spec.pollInterval: "1s" is too short; the minimum is 30s"#)]
fn server_rejects(#[case] pointer: &str, #[case] value: Value, #[case] error: &str) {
    assert_eq!(server(pointer, value), error);
}

#[test]
fn secret_refs_of_a_server_name_their_fields() {
    let spec = json!({"http": {
        "baseURL": "https://api.test",
        "defaultHeaders": {"name": "a", "key": "b"},
        "auth": {"customHeaders": [{"header": "X-Key", "valueRef": secret()}]},
        "tls": {"caCertRef": secret(), "clientCertRef": secret(), "clientKeyRef": secret()},
        "proxy": {"auth": {"usernameRef": secret(), "passwordRef": secret()}}
    }});
    let spec: ManagedServerSpec = serde_json::from_value(spec).unwrap();
    let fields: Vec<_> = secret_refs(&spec).into_iter().map(|(field, _)| field).collect();
    assert_eq!(
        fields,
        [
            "spec.http.auth.customHeaders[0].valueRef",
            "spec.http.proxy.auth.passwordRef",
            "spec.http.proxy.auth.usernameRef",
            "spec.http.tls.caCertRef",
            "spec.http.tls.clientCertRef",
            "spec.http.tls.clientKeyRef",
        ]
    );
}

fn store(spec: Value) -> String {
    text(serde_json::from_value::<SecretStoreSpec>(spec).unwrap().validate(&limits()))
}

fn vault(pointer: &str, value: Value) -> String {
    let spec =
        json!({"vault": {"address": "https://vault.test", "auth": {"token": {"secretRef": secret()}}}});
    store(with(spec, pointer, value))
}

fn file(path: &str) -> Value {
    json!({"file": {"path": path, "encryption": {"keyRef": secret()}}})
}

#[rstest]
#[case("/vault/mount", json!("team/kv"), "")]
#[case("/vault/pathPrefix", json!("/shop/"), "")]
#[case("/vault/namespace", json!("ops/eu"), "")]
#[case("/vault/kvVersion", json!(1), "")]
#[case("/vault/mount", json!(""), "spec.vault.mount: must not be empty")]
#[case("/vault/pathPrefix", json!("a/../b"), r#"spec.vault.pathPrefix: "a/../b" has an empty, . or .. segment"#)]
#[case("/vault/namespace", json!("a//b"), r#"spec.vault.namespace: "a//b" has an empty, . or .. segment"#)]
#[case("/vault/kvVersion", json!(3), "spec.vault.kvVersion: must be 1 or 2")]
#[case("/vault/auth", json!({}), "spec.vault.auth: set exactly one of token, userpass and appRole")]
#[case("/vault/address", json!("vault://x"), r#"spec.vault.address: has the scheme "vault"; write an http or https URL"#)]
fn vault_stores(#[case] pointer: &str, #[case] value: Value, #[case] error: &str) {
    assert_eq!(vault(pointer, value), error);
}

#[rstest]
#[case("store.json", "store.json")]
#[case("team/./store.json", "team/store.json")]
#[case("/var/lib/declarest/secrets/team/store.json", "team/store.json")]
fn file_stores_stay_in_their_directory(#[case] path: &str, #[case] relative: &str) {
    let spec: SecretStoreSpec = serde_json::from_value(file(path)).unwrap();
    assert_eq!(spec.validate(&limits()), Ok(()));
    assert_eq!(spec.file.unwrap().relative_path(&limits()).unwrap().to_str(), Some(relative));
}

#[rstest]
#[case("")]
#[case(".")]
#[case("../store.json")]
#[case("a/../../store.json")]
#[case("/etc/passwd")]
#[case("/var/lib/declarest/secrets")]
#[case("/var/lib/declarest/secrets/../cache/x")]
#[case("/var/lib/declarest/secretsx/store.json")]
fn file_stores_cannot_leave_their_directory(#[case] path: &str) {
    let expected =
        format!("spec.file.path: {path:?} is outside of the store's directory; write a relative path");
    assert_eq!(store(file(path)), expected);
}

#[test]
fn a_store_has_exactly_one_of_vault_and_file() {
    assert_eq!(store(json!({})), "spec: set exactly one of vault and file");
    assert_eq!(vault("/file", file("x")["file"].clone()), "spec: set exactly one of vault and file");
}

fn policy(pointer: &str, value: Value) -> String {
    let spec = json!({
        "resourceRepositoryRef": {"name": "repo"},
        "managedServerRef": {"name": "server"},
        "source": {"path": "/"}
    });
    text(serde_json::from_value::<SyncPolicySpec>(with(spec, pointer, value)).unwrap().validate())
}

#[rstest]
#[case("/source/path", json!("shops//eu/"), "")]
#[case("/syncInterval", json!("10s"), "")]
#[case("/sync/pruneLimit", json!(7), "")]
#[case("/managedServerRef/name", json!(""), "spec.managedServerRef.name: must not be empty")]
#[case("/secretStoreRef", json!({"name": " "}), "spec.secretStoreRef.name: must not be empty")]
#[case("/syncInterval", json!("9s"), r#"spec.syncInterval: "9s" is too short; the minimum is 10s"#)]
#[case("/sync/pruneLimit", json!("200%"), r#"spec.sync.pruneLimit: "200%" is neither a count nor a percentage from 0% to 100%"#)]
fn policies(#[case] pointer: &str, #[case] value: Value, #[case] error: &str) {
    assert_eq!(policy(pointer, value), error);
}

#[rstest]
#[case("")]
#[case("/shops/../users")]
#[case("/shops/_/x")]
fn policies_reject_invalid_logical_paths(#[case] path: &str) {
    let error = policy("/source/path", json!(path));
    assert!(error.starts_with("spec.source.path: "), "{error}");
}
