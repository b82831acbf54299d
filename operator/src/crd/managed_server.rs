//! ManagedServer: a REST server whose resources are kept in sync with Git.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use declarest_core::bundle::Reference;
use declarest_core::contract::status::ContractStatus;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::contract::ContractSpec;
use super::{
    BasicAuth, Conditions, FieldErrors, Interval, Limits, LocalRef, Proxy, SecretKeyRef, Tls,
    conditions_schema, validation,
};

const MIN_POLL_INTERVAL: Duration = Duration::from_secs(30);

/// The connection to a REST server, and the documents that describe its API.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "declarest.io",
    version = "v1alpha1",
    kind = "ManagedServer",
    plural = "managedservers",
    shortname = "ms",
    category = "declarest",
    namespaced,
    status = "ManagedServerStatus",
    derive = "PartialEq",
    doc = "A REST server whose resources are kept in sync with a ResourceRepository.",
    printcolumn = r#"{"name": "Ready", "type": "string", "jsonPath": ".status.conditions[?(@.type=='Ready')].status"}"#,
    printcolumn = r#"{"name": "Phase", "type": "string", "jsonPath": ".status.contract.phase"}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#,
    printcolumn = r#"{"name": "Reachable", "type": "string", "jsonPath": ".status.conditions[?(@.type=='Reachable')].status", "priority": 1}"#,
    printcolumn = r#"{"name": "URL", "type": "string", "jsonPath": ".spec.http.baseURL", "priority": 1}"#,
    printcolumn = r#"{"name": "Status", "type": "string", "jsonPath": ".status.conditions[?(@.type=='Ready')].message", "priority": 1}"#
)]
#[serde(rename_all = "camelCase")]
pub struct ManagedServerSpec {
    /// The endpoint of the server and the settings of requests to it.
    pub http: HttpEndpoint,
    /// The server's OpenAPI document, from which defaults for requests are derived.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub openapi: Option<OpenApiSource>,
    /// Metadata shared by all repositories of this kind of server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<MetadataSource>,
    /// Interval at which the documents are checked for changes and the server is probed, at least 30s.
    #[serde(default = "default_poll_interval")]
    #[schemars(extend("x-kubernetes-validations" = validation::at_least(MIN_POLL_INTERVAL)))]
    pub poll_interval: Interval,
    /// The contract of the service, with which its objects in the cluster are compared. Nothing is changed there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contract: Option<ContractSpec>,
}

/// The endpoint of a server and the settings of requests to it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HttpEndpoint {
    /// Base URL of all resource paths: http or https, without credentials.
    #[serde(rename = "baseURL")]
    #[schemars(
        regex(pattern = validation::HTTP_URL),
        extend("x-kubernetes-validations" = validation::without_credentials())
    )]
    pub base_url: String,
    /// Path below baseURL, or URL of the same origin, that returns a status below 400 if the server is healthy.
    /// It sets the condition Reachable. If it answers 401 or 403, no resource counts as absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub health_check: Option<String>,
    /// Follow redirects of reads to another origin. Credentials and writes are never sent there.
    #[serde(default)]
    pub allow_cross_origin_redirects: bool,
    /// Headers of every request to the server. Metadata and auth take precedence over them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub default_headers: BTreeMap<String, String>,
    /// Credentials. Without them, requests are not authenticated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth: Option<HttpAuth>,
    /// TLS settings; by default the system's certificate authorities are trusted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<Tls>,
    /// Proxy for connections to the server; by default that of the operator's environment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxy: Option<Proxy>,
    /// Limits of the requests to the server, shared by all policies that use it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_throttling: Option<RequestThrottling>,
}

/// Credentials of a server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = (
    "(has(self.oauth2) ? 1 : 0) + (has(self.basicAuth) ? 1 : 0) + \
     (has(self.customHeaders) && size(self.customHeaders) > 0 ? 1 : 0) == 1",
    "set exactly one of oauth2, basicAuth and customHeaders (with at least one header)"
))]
pub struct HttpAuth {
    /// A bearer token from an OAuth 2.0 token endpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oauth2: Option<OAuth2>,
    /// HTTP basic authentication.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub basic_auth: Option<BasicAuth>,
    /// Headers with secret values, for example an API key or a static bearer token.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub custom_headers: Vec<CustomHeader>,
}

/// How to request a token (RFC 6749).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = (
    "!has(self.grantType) || self.grantType != 'password' || \
     (has(self.usernameRef) && has(self.passwordRef))",
    "grantType password needs usernameRef and passwordRef"
))]
pub struct OAuth2 {
    /// Token endpoint, http or https.
    #[serde(rename = "tokenURL")]
    #[schemars(
        regex(pattern = validation::HTTP_URL),
        extend("x-kubernetes-validations" = validation::without_credentials())
    )]
    pub token_url: String,
    /// Grant type of the token request.
    #[serde(default)]
    pub grant_type: GrantType,
    /// Secret key that holds the client id.
    #[serde(rename = "clientIDRef")]
    pub client_id_ref: SecretKeyRef,
    /// Secret key that holds the client secret.
    pub client_secret_ref: SecretKeyRef,
    /// Secret key that holds the user name, for grantType password.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub username_ref: Option<SecretKeyRef>,
    /// Secret key that holds the password, for grantType password.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password_ref: Option<SecretKeyRef>,
    /// Scopes to request, separated by spaces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    /// Audience to request, if the token endpoint requires one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audience: Option<String>,
}

/// OAuth 2.0 grant type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GrantType {
    #[default]
    ClientCredentials,
    Password,
}

/// A header whose value is a secret.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CustomHeader {
    /// Name of the header.
    #[schemars(length(min = 1))]
    pub header: String,
    /// Secret key that holds the value.
    pub value_ref: SecretKeyRef,
    /// Prefix of the value, separated from it by a space, for example `Bearer`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
}

/// Limits of the requests to a server. At least one of maxConcurrentRequests and requestsPerSecond must be above
/// zero; zero means no limit.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = (
        "(has(self.maxConcurrentRequests) && self.maxConcurrentRequests > 0) || \
         (has(self.requestsPerSecond) && self.requestsPerSecond > 0)",
        "set maxConcurrentRequests or requestsPerSecond above zero, or remove requestThrottling"
    ),
    validation = (
        "!has(self.queueSize) || (has(self.maxConcurrentRequests) && self.maxConcurrentRequests > 0)",
        "queueSize needs maxConcurrentRequests above zero"
    ),
    validation = (
        "!has(self.burst) || (has(self.requestsPerSecond) && self.requestsPerSecond > 0)",
        "burst needs requestsPerSecond above zero"
    )
)]
pub struct RequestThrottling {
    /// Maximum number of requests in flight.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub max_concurrent_requests: Option<i32>,
    /// Maximum number of requests that wait for a slot; further requests fail at once. Unlimited if 0 or not set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub queue_size: Option<i32>,
    /// Maximum number of requests started per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub requests_per_second: Option<i32>,
    /// Maximum number of requests that start at once after an idle time; by default requestsPerSecond.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub burst: Option<i32>,
}

/// The location of the OpenAPI document.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OpenApiSource {
    /// URL of the document, http or https. If its origin is that of http.baseURL, http.auth is sent.
    #[schemars(
        regex(pattern = validation::HTTP_URL),
        extend("x-kubernetes-validations" = validation::without_credentials())
    )]
    pub url: String,
}

/// The location of shared metadata: at most one of url and bundle.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = ("!(has(self.url) && has(self.bundle))", "set url or bundle, not both"),
    validation = ("!has(self.pullSecretRef) || has(self.bundle)", "pullSecretRef needs bundle")
)]
pub struct MetadataSource {
    /// URL of a bundle archive (tar.gz or tgz), http or https.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        regex(pattern = validation::HTTP_URL),
        extend("x-kubernetes-validations" = validation::without_credentials())
    )]
    pub url: Option<String>,
    /// Bundle reference: `name:1.2.3`, `oci://registry/repository:tag`, the URL of an archive, or a path below
    /// the operator's bundle directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub bundle: Option<String>,
    /// Secret of type kubernetes.io/dockerconfigjson with the credentials for the registry of the bundle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pull_secret_ref: Option<LocalRef>,
}

/// The observed state of the server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ManagedServerStatus {
    /// The metadata.generation that this status describes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// File of the cached OpenAPI document in the operator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub openapi_cache_path: Option<String>,
    /// Directory of the cached metadata in the operator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata_cache_path: Option<String>,
    /// Digests of the cached documents. A change triggers a full run of every policy that uses the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub artifact_digests: Option<ArtifactDigests>,
    /// The contract, and how the objects of its target compare with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contract: Option<Box<ContractStatus>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "conditions_schema")]
    pub conditions: Conditions,
}

/// SHA-256 digests of cached documents.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ArtifactDigests {
    /// Digest of the OpenAPI document.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub openapi: Option<String>,
    /// Digest of the metadata bundle.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<String>,
}

fn default_poll_interval() -> Interval {
    Interval::new("10m")
}

impl ManagedServerSpec {
    /// Returns the Secrets with the credentials for registries.
    pub fn pull_secrets(&self) -> impl Iterator<Item = &LocalRef> {
        let contract = self.contract.as_ref().and_then(|contract| contract.pull_secret_ref.as_ref());
        let metadata = self.metadata.as_ref().and_then(|metadata| metadata.pull_secret_ref.as_ref());
        contract.into_iter().chain(metadata)
    }

    /// Checks all rules of the spec, after expansion.
    pub fn validate(&self, limits: &Limits) -> Result<(), FieldErrors> {
        let mut errors = FieldErrors::default();
        self.http.check(&mut errors);
        if let Some(openapi) = &self.openapi {
            errors.check("spec.openapi.url", validation::http_url(&openapi.url));
        }
        if let Some(metadata) = &self.metadata {
            metadata.check(limits, &mut errors);
        }
        errors.check("spec.pollInterval", self.poll_interval.at_least(MIN_POLL_INTERVAL));
        if let Some(contract) = &self.contract {
            contract.check(&mut errors);
        }
        errors.check_secret_refs(self);
        errors.into_result()
    }
}

impl HttpEndpoint {
    fn check(&self, errors: &mut FieldErrors) {
        let base = errors.check("spec.http.baseURL", validation::http_url(&self.base_url));
        if let (Some(base), Some(health_check)) = (base, &self.health_check) {
            errors.check("spec.http.healthCheck", same_origin(&base, health_check));
        }
        for (name, value) in &self.default_headers {
            let field = format!("spec.http.defaultHeaders[{name}]");
            errors.check(&field, header_name(name));
            if http::HeaderValue::from_str(value).is_err() {
                errors.push(&field, "contains a character that is not allowed in a header");
            }
        }
        if let Some(auth) = &self.auth {
            auth.check(errors);
        }
        if let Some(tls) = &self.tls {
            tls.check("spec.http.tls", errors);
        }
        if let Some(proxy) = &self.proxy {
            proxy.check("spec.http.proxy", errors);
        }
        if let Some(throttling) = &self.request_throttling {
            throttling.check(errors);
        }
    }
}

fn header_name(name: &str) -> Result<(), String> {
    http::HeaderName::from_bytes(name.trim().as_bytes())
        .map(drop)
        .map_err(|_| format!("{name:?} is not a header name; use letters, digits and hyphens"))
}

/// Checks that a health check is a path, or a URL of the same origin.
fn same_origin(base: &url::Url, text: &str) -> Result<(), String> {
    if text.trim().is_empty() {
        return Err("must not be empty; remove it to disable the probe".to_owned());
    }
    if text.contains(['?', '#']) {
        return Err("must not have a query or a fragment".to_owned());
    }
    if !text.contains("://") {
        let climbs = text.split(['/', '\\']).any(|segment| matches!(segment, "." | ".."));
        return if climbs { Err("must not contain . or .. segments".to_owned()) } else { Ok(()) };
    }
    if validation::http_url(text)?.origin() == base.origin() {
        Ok(())
    } else {
        Err("has another origin; write a path or a URL with the scheme, host and port of baseURL".to_owned())
    }
}

impl HttpAuth {
    fn check(&self, errors: &mut FieldErrors) {
        let modes = [self.oauth2.is_some(), self.basic_auth.is_some(), !self.custom_headers.is_empty()];
        if modes.into_iter().filter(|set| *set).count() != 1 {
            errors.push(
                "spec.http.auth",
                "set exactly one of oauth2, basicAuth and customHeaders (with at least one header)",
            );
        }
        if let Some(oauth2) = &self.oauth2 {
            errors.check("spec.http.auth.oauth2.tokenURL", validation::http_url(&oauth2.token_url));
            let user = oauth2.username_ref.is_some() && oauth2.password_ref.is_some();
            if oauth2.grant_type == GrantType::Password && !user {
                errors.push("spec.http.auth.oauth2", "grantType password needs usernameRef and passwordRef");
            }
        }
        for (index, header) in self.custom_headers.iter().enumerate() {
            errors
                .check(&format!("spec.http.auth.customHeaders[{index}].header"), header_name(&header.header));
        }
    }
}

impl RequestThrottling {
    fn check(&self, errors: &mut FieldErrors) {
        const FIELD: &str = "spec.http.requestThrottling";
        let named = [
            ("maxConcurrentRequests", self.max_concurrent_requests),
            ("queueSize", self.queue_size),
            ("requestsPerSecond", self.requests_per_second),
            ("burst", self.burst),
        ];
        for (name, value) in named {
            if value.is_some_and(|value| value < 0) {
                errors.push(&format!("{FIELD}.{name}"), "must not be negative");
            }
        }
        let concurrency = self.max_concurrent_requests.is_some_and(|limit| limit > 0);
        let rate = self.requests_per_second.is_some_and(|limit| limit > 0);
        if !concurrency && !rate {
            errors.push(
                FIELD,
                "set maxConcurrentRequests or requestsPerSecond above zero, or remove requestThrottling",
            );
        }
        if self.queue_size.is_some() && !concurrency {
            errors.push(&format!("{FIELD}.queueSize"), "needs maxConcurrentRequests above zero");
        }
        if self.burst.is_some() && !rate {
            errors.push(&format!("{FIELD}.burst"), "needs requestsPerSecond above zero");
        }
    }
}

impl MetadataSource {
    fn check(&self, limits: &Limits, errors: &mut FieldErrors) {
        if self.url.is_some() && self.bundle.is_some() {
            errors.push("spec.metadata", "set url or bundle, not both");
        }
        if let Some(url) = &self.url {
            errors.check("spec.metadata.url", archive_url(url));
        }
        if let Some(bundle) = &self.bundle {
            errors.check("spec.metadata.bundle", bundle_reference(bundle, limits));
        }
        let is_image = |bundle: &String| bundle.trim().starts_with("oci://");
        if self.pull_secret_ref.is_some() && !self.bundle.as_ref().is_some_and(is_image) {
            errors.push("spec.metadata.pullSecretRef", "needs a bundle in a registry (oci://)");
        }
    }
}

fn archive_url(text: &str) -> Result<(), String> {
    let url = validation::http_url(text)?;
    let path = url.path().to_ascii_lowercase();
    if [".tar.gz", ".tgz"].iter().any(|suffix| path.ends_with(suffix)) {
        Ok(())
    } else {
        Err("must end in .tar.gz or .tgz".to_owned())
    }
}

/// Checks the form of a bundle reference. Rejects local ones outside of the bundle directory.
fn bundle_reference(text: &str, limits: &Limits) -> Result<(), String> {
    let text = text.trim();
    match text.split_once("://") {
        Some(("http" | "https", _)) => return validation::http_url(text).map(drop),
        Some(("oci", rest)) if rest.contains('/') => return Ok(()),
        Some(("oci", _)) => return Err("write oci://registry/repository:tag".to_owned()),
        Some(("file", _)) | None => {}
        Some((scheme, _)) => return Err(format!("{scheme:?} is not a scheme of a bundle; use oci or https")),
    }
    // A URL is decoded before its path is checked, because `%2e%2e` and `%2f` are `..` and `/`.
    match Reference::parse(text).map_err(|error| error.to_string())? {
        Reference::Path(path) => local_bundle(&limits.bundle_dir, &path).map(drop),
        _ => Ok(()),
    }
}

/// Returns the path of a local bundle, or an error if it is not below `directory`. Does not resolve symbolic links.
pub fn local_bundle(directory: &Path, path: &Path) -> Result<PathBuf, String> {
    let inside = validation::confined(directory, path);
    inside
        .map(|inside| directory.join(inside))
        .ok_or_else(|| format!("a local bundle must be below {}", directory.display()))
}
