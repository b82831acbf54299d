//! ManagedServer: a REST server that is kept equal to Git.

use std::collections::BTreeMap;
use std::time::Duration;

use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    BasicAuth, Conditions, FieldErrors, Interval, Limits, Proxy, SecretKeyRef, SecretRefs, Tls,
    conditions_schema, validation,
};

const MIN_POLL_INTERVAL: Duration = Duration::from_secs(30);

/// How to reach a REST server, and the documents that describe its API.
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
    doc = "A REST server whose resources are kept equal to what a ResourceRepository declares.",
    printcolumn = r#"{"name": "Ready", "type": "string", "jsonPath": ".status.conditions[?(@.type=='Ready')].status"}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#,
    printcolumn = r#"{"name": "URL", "type": "string", "jsonPath": ".spec.http.baseURL", "priority": 1}"#
)]
#[serde(rename_all = "camelCase")]
pub struct ManagedServerSpec {
    /// The server's endpoint and how requests to it are made.
    pub http: HttpEndpoint,
    /// The server's OpenAPI document, from which defaults for requests are derived.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub openapi: Option<OpenApiSource>,
    /// Metadata shared by all repositories of this kind of server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<MetadataSource>,
    /// How often to check the documents for changes and to probe the server, at least 30s.
    #[serde(default = "default_poll_interval")]
    pub poll_interval: Interval,
}

/// A server's endpoint and how requests to it are made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HttpEndpoint {
    /// URL that all resource paths are appended to: http or https, without credentials.
    #[serde(rename = "baseURL")]
    #[schemars(regex(pattern = validation::HTTP_URL))]
    pub base_url: String,
    /// Path below baseURL, or URL of the same origin, that answers below 400 while the server is well. It
    /// decides the condition Reachable and nothing else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub health_check: Option<String>,
    /// Headers sent with every request to the server, unless metadata or auth set the same one.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub default_headers: BTreeMap<String, String>,
    /// Credentials; none for an open server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth: Option<HttpAuth>,
    /// Trust and client certificate; the system's certificate authorities when not set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<Tls>,
    /// Proxy on the way to the server; that of the manager's environment when not set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxy: Option<Proxy>,
    /// Limits of the load put on the server, shared by all policies that use it.
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

/// How to get a token (RFC 6749).
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
    #[schemars(regex(pattern = validation::HTTP_URL))]
    pub token_url: String,
    /// Kind of grant to ask for.
    #[serde(default)]
    pub grant_type: GrantType,
    /// Secret key that holds the client id.
    #[serde(rename = "clientIDRef")]
    pub client_id_ref: SecretKeyRef,
    /// Secret key that holds the client secret.
    pub client_secret_ref: SecretKeyRef,
    /// Secret key that holds the user name; for grantType password.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub username_ref: Option<SecretKeyRef>,
    /// Secret key that holds the password; for grantType password.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password_ref: Option<SecretKeyRef>,
    /// Scopes to ask for, separated by spaces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    /// Audience to ask for, where the token endpoint wants one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audience: Option<String>,
}

/// Kind of OAuth 2.0 grant.
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
    /// Word to put before the value, separated by a space: `Bearer`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
}

/// Limits of the load put on a server. At least one of maxConcurrentRequests and requestsPerSecond must be
/// above zero; zero means no limit.
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
    /// Requests in flight at the same time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub max_concurrent_requests: Option<i32>,
    /// Requests that may wait for a slot; one more fails at once. Unlimited when 0 or not set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub queue_size: Option<i32>,
    /// Requests started per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub requests_per_second: Option<i32>,
    /// Requests that may start at once after a quiet time; requestsPerSecond when not set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub burst: Option<i32>,
}

/// Where the OpenAPI document is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OpenApiSource {
    /// URL of the document, http or https. On the origin of http.baseURL it is fetched with http.auth.
    #[schemars(regex(pattern = validation::HTTP_URL))]
    pub url: String,
}

/// Where shared metadata is. At most one of the two.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[x_kube(validation = ("!(has(self.url) && has(self.bundle))", "set url or bundle, not both"))]
pub struct MetadataSource {
    /// URL of a bundle archive (tar.gz or tgz), http or https.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = validation::HTTP_URL))]
    pub url: Option<String>,
    /// Bundle reference: `name:1.2.3`, `oci://registry/repository:tag`, an archive's URL, or a path below
    /// the operator's bundle directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub bundle: Option<String>,
}

/// What the operator knows about the server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ManagedServerStatus {
    /// The metadata.generation that this status describes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The cached OpenAPI document inside the operator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub openapi_cache_path: Option<String>,
    /// The cached metadata inside the operator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata_cache_path: Option<String>,
    /// Digests of the cached documents. A change makes every policy that uses the server run in full.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub artifact_digests: Option<ArtifactDigests>,
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
    /// Checks, after expansion, everything that makes a spec usable.
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
        errors.check_secret_refs(self.secret_refs());
        errors.into_result()
    }

    /// Every Secret that the spec refers to, with the field that does.
    pub fn secret_refs(&self) -> SecretRefs<'_> {
        let mut refs = SecretRefs::new();
        if let Some(auth) = &self.http.auth {
            auth.secret_refs(&mut refs);
        }
        if let Some(tls) = &self.http.tls {
            tls.secret_refs("spec.http.tls", &mut refs);
        }
        if let Some(proxy) = &self.http.proxy {
            proxy.secret_refs("spec.http.proxy", &mut refs);
        }
        refs
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
                errors.push(&field, "holds a character that a header must not carry");
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
        .map_err(|_| format!("{name:?} is no header name; use letters, digits and hyphens"))
}

/// A health check is a path, or a URL that leads to the same server.
fn same_origin(base: &url::Url, text: &str) -> Result<(), String> {
    if text.trim().is_empty() {
        return Err("must not be empty; remove it to probe nothing".to_owned());
    }
    if !text.contains("://") {
        let climbs = text.split(['/', '\\']).any(|segment| matches!(segment, "." | ".."));
        return if climbs { Err("must not hold . or .. segments".to_owned()) } else { Ok(()) };
    }
    if validation::http_url(text)?.origin() == base.origin() {
        Ok(())
    } else {
        Err("leads to another server; write a path or a URL of the same scheme, host and port as baseURL"
            .to_owned())
    }
}

impl HttpAuth {
    fn secret_refs<'a>(&'a self, refs: &mut SecretRefs<'a>) {
        if let Some(oauth2) = &self.oauth2 {
            let named = [
                ("clientIDRef", Some(&oauth2.client_id_ref)),
                ("clientSecretRef", Some(&oauth2.client_secret_ref)),
                ("usernameRef", oauth2.username_ref.as_ref()),
                ("passwordRef", oauth2.password_ref.as_ref()),
            ];
            refs.extend(
                named
                    .into_iter()
                    .filter_map(|(name, secret)| Some((format!("spec.http.auth.oauth2.{name}"), secret?))),
            );
        }
        if let Some(basic) = &self.basic_auth {
            basic.secret_refs("spec.http.auth.basicAuth", refs);
        }
        refs.extend(self.custom_headers.iter().enumerate().map(|(index, header)| {
            (format!("spec.http.auth.customHeaders[{index}].valueRef"), &header.value_ref)
        }));
    }

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
    }
}

fn archive_url(text: &str) -> Result<(), String> {
    let url = validation::http_url(text)?;
    let path = url.path().to_ascii_lowercase();
    if [".tar.gz", ".tgz"].iter().any(|suffix| path.ends_with(suffix)) {
        Ok(())
    } else {
        Err("leads to no tar.gz or tgz archive".to_owned())
    }
}

/// Checks the form of a bundle reference and confines local ones to the bundle directory.
fn bundle_reference(text: &str, limits: &Limits) -> Result<(), String> {
    let text = text.trim();
    let path = match text.split_once("://") {
        Some(("http" | "https", _)) => return validation::http_url(text).map(drop),
        Some(("oci", rest)) if rest.contains('/') => return Ok(()),
        Some(("oci", _)) => return Err("write oci://registry/repository:tag".to_owned()),
        Some(("file", rest)) => rest.strip_prefix("localhost").unwrap_or(rest),
        Some((scheme, _)) => return Err(format!("{scheme:?} is no scheme of a bundle; use oci or https")),
        None if is_shorthand(text) => return Ok(()),
        None => text,
    };
    if super::validation::confined(&limits.bundle_dir, path).is_some() {
        Ok(())
    } else {
        Err(format!("local bundles must lie below {}", limits.bundle_dir.display()))
    }
}

/// `name:1.2.3`: the version starts with a digit and holds no slash, so that no path looks like it.
fn is_shorthand(text: &str) -> bool {
    text.split_once(':').is_some_and(|(name, version)| {
        !name.is_empty()
            && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
            && version.starts_with(|first: char| first.is_ascii_digit())
            && !version.contains('/')
    })
}
