//! ResourceRepository: the Git repository that declares desired state.

use std::time::Duration;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use url::Url;

use super::{
    Conditions, FieldErrors, Interval, Limits, SecretKeyRef, Storage, conditions_schema, time_schema,
    validation,
};

const MIN_POLL_INTERVAL: Duration = Duration::from_secs(30);

/// The repository of the desired state, and the polling for new commits.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, KubeSchema)]
#[kube(
    group = "declarest.io",
    version = "v1alpha1",
    kind = "ResourceRepository",
    plural = "resourcerepositories",
    shortname = "rr",
    category = "declarest",
    namespaced,
    status = "ResourceRepositoryStatus",
    derive = "PartialEq",
    doc = "A Git repository that declares REST resources. The operator mirrors and polls it, and publishes its current revision.",
    printcolumn = r#"{"name": "Revision", "type": "string", "jsonPath": ".status.lastFetchedRevision"}"#,
    printcolumn = r#"{"name": "Ready", "type": "string", "jsonPath": ".status.conditions[?(@.type=='Ready')].status"}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#,
    printcolumn = r#"{"name": "Status", "type": "string", "jsonPath": ".status.conditions[?(@.type=='Ready')].message", "priority": 1}"#
)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = ("self.type != 'git' || has(self.git)", "type git needs the block spec.git"))]
pub struct ResourceRepositorySpec {
    /// Kind of repository.
    #[serde(rename = "type")]
    pub kind: RepositoryKind,
    /// Interval at which new commits are fetched, at least 30s. Each wait varies by up to 10 %.
    #[serde(default = "default_poll_interval")]
    #[schemars(extend("x-kubernetes-validations" = validation::at_least(MIN_POLL_INTERVAL)))]
    pub poll_interval: Interval,
    /// The Git repository; required for type git.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git: Option<GitSource>,
    /// Volume for the mirror. Without it, the mirror is in the operator's state directory and must be fetched
    /// again if that directory is lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage: Option<Storage>,
}

/// Kind of repository.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RepositoryKind {
    Git,
}

/// A branch of a Git repository.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GitSource {
    /// Address of the repository: an http, https or ssh URL, or `user@host:path`, without a password.
    /// `file:///path` is allowed only if the operator runs with --allow-file-repositories.
    #[schemars(
        regex(pattern = validation::GIT_URL),
        extend("x-kubernetes-validations" = validation::without_password())
    )]
    pub url: String,
    /// The branch to follow.
    #[serde(default = "default_branch")]
    #[schemars(length(min = 1))]
    pub branch: String,
    /// Credentials; not needed for a public repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth: Option<GitAuth>,
    /// Webhook through which a Git host announces pushes, so that they are fetched at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub webhook: Option<RepositoryWebhook>,
}

/// Credentials of a Git repository.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = (
    "has(self.tokenRef) != has(self.sshSecretRef)",
    "set exactly one of tokenRef and sshSecretRef"
))]
pub struct GitAuth {
    /// Access token for http and https, sent as the password of HTTP basic authentication. The user name is that
    /// of the URL, otherwise `token`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_ref: Option<SecretKeyRef>,
    /// Key pair for ssh.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ssh_secret_ref: Option<SshAuth>,
}

/// An SSH key, and the accepted host keys.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = (
    "has(self.knownHostsRef) || (has(self.insecureIgnoreHostKey) && self.insecureIgnoreHostKey)",
    "set knownHostsRef, or accept any host with insecureIgnoreHostKey: true"
))]
pub struct SshAuth {
    /// Private key in PEM or OpenSSH format.
    pub private_key_ref: SecretKeyRef,
    /// Host keys in known_hosts format; required unless insecureIgnoreHostKey is true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub known_hosts_ref: Option<SecretKeyRef>,
    /// Passphrase of the private key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passphrase_ref: Option<SecretKeyRef>,
    /// User name of the login; by default the user of the URL, otherwise `git`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Accept any host key. An attacker on the network can then impersonate the host; for tests only.
    #[serde(default)]
    pub insecure_ignore_host_key: bool,
}

/// How a Git host announces pushes: with POST to `/webhooks/repository/<namespace>/<name>`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RepositoryWebhook {
    /// Provider that defines the header names and signatures.
    pub provider: WebhookProvider,
    /// The secret shared with the Git host.
    pub secret_ref: SecretKeyRef,
    /// Events to process; others are acknowledged and ignored.
    #[serde(default = "default_events")]
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    pub events: Vec<WebhookEvent>,
    /// Branches whose pushes are processed; by default only git.branch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch_filter: Option<BranchFilter>,
    /// Acknowledge deliveries without processing them.
    #[serde(default)]
    pub suspend: bool,
}

/// Provider that defines the header names and signatures of a webhook delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, strum::IntoStaticStr)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case", const_into_str)]
pub enum WebhookProvider {
    Github,
    Gitlab,
    Gitea,
    GenericHmac,
}

/// Type of a webhook delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum WebhookEvent {
    Push,
    Ping,
}

/// Globs that match branch names; `*` does not match a slash, and `**` does.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct BranchFilter {
    /// Branches to process; all if empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub include: Vec<String>,
    /// Branches to ignore, even if they are included.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub exclude: Vec<String>,
}

/// A compiled [`BranchFilter`].
#[derive(Clone, Debug)]
pub struct BranchMatcher {
    include: Option<GlobSet>,
    exclude: GlobSet,
}

/// The observed state of the repository.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ResourceRepositoryStatus {
    /// The metadata.generation that this status describes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Directory of the mirror in the operator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub local_path: Option<String>,
    /// Commit that the branch pointed to at the last successful fetch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_fetched_revision: Option<String>,
    /// Time at which the last successful fetch began.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "time_schema")]
    pub last_fetched_time: Option<Time>,
    /// The metadata.generation that the last successful fetch used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_fetched_generation: Option<i64>,
    /// The last webhook delivery.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub webhook: Option<WebhookStatus>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "conditions_schema")]
    pub conditions: Conditions,
}

/// The last webhook delivery.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct WebhookStatus {
    /// Path on the operator's webhook address that the Git host must post to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Time of the last accepted delivery, in nanoseconds because two may arrive within a second.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "time_schema")]
    pub last_event_time: Option<String>,
    /// Delivery id that the Git host assigned.
    #[serde(rename = "lastDeliveryID", skip_serializing_if = "Option::is_none")]
    pub last_delivery_id: Option<String>,
}

impl WebhookStatus {
    /// Returns the path that a Git host must post the deliveries for a ResourceRepository to.
    pub fn path_of(namespace: &str, name: &str) -> String {
        format!("/webhooks/repository/{namespace}/{name}")
    }
}

fn default_poll_interval() -> Interval {
    Interval::new("1m")
}

fn default_branch() -> String {
    "main".to_owned()
}

fn default_events() -> Vec<WebhookEvent> {
    vec![WebhookEvent::Push]
}

/// Transport to a Git repository, which determines the type of the credentials.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GitTransport {
    /// `http://` or `https://`.
    Http,
    /// `ssh://` or `user@host:path`.
    Ssh,
    /// `file:///`.
    File,
}

impl ResourceRepositorySpec {
    /// Checks all rules of the spec, after expansion.
    pub fn validate(&self, limits: &Limits) -> Result<(), FieldErrors> {
        let mut errors = FieldErrors::default();
        errors.check("spec.pollInterval", self.poll_interval.at_least(MIN_POLL_INTERVAL));
        match &self.git {
            Some(git) => git.check(limits, &mut errors),
            None => errors.push("spec.git", "is required for type git"),
        }
        if let Some(storage) = &self.storage {
            storage.check("spec.storage", &mut errors);
        }
        errors.check_secret_refs(self);
        errors.into_result()
    }
}

impl GitSource {
    /// Returns the transport of `url`. The error states the valid forms.
    pub fn transport(&self) -> Result<GitTransport, String> {
        let text = self.url.trim();
        if !text.contains("://") {
            return scp_like(text);
        }
        let url = Url::parse(text).map_err(|error| format!("is not a URL ({error})"))?;
        if url.password().is_some() {
            return Err("contains a password; remove it and set git.auth".to_owned());
        }
        let transport = match url.scheme() {
            "http" | "https" => GitTransport::Http,
            "ssh" => GitTransport::Ssh,
            "file" if url.host_str().is_none() && url.path().len() > 1 => return Ok(GitTransport::File),
            "file" => return Err("write a local repository as file:///absolute/path".to_owned()),
            other => return Err(format!("has the scheme {other:?}; write an http, https or ssh URL")),
        };
        if url.host_str().is_none_or(str::is_empty) {
            return Err("has no host".to_owned());
        }
        Ok(transport)
    }

    fn check(&self, limits: &Limits, errors: &mut FieldErrors) {
        let transport = errors.check("spec.git.url", self.transport());
        if transport == Some(GitTransport::File) && !limits.allow_file_repositories {
            errors.push(
                "spec.git.url",
                "file:/// is not allowed here; use a remote repository, or start the operator with \
                 --allow-file-repositories",
            );
        }
        errors.check("spec.git.branch", validation::branch_name(&self.branch));
        if let Some(auth) = &self.auth {
            auth.check(transport, errors);
        }
        if let Some(webhook) = &self.webhook {
            webhook.check(errors);
        }
    }
}

/// Parses `user@host:path`, the short form of an ssh URL.
fn scp_like(text: &str) -> Result<GitTransport, String> {
    let legal = text.split_once(':').is_some_and(|(login, path)| {
        let named = login.split_once('@').is_some_and(|(user, host)| {
            !user.is_empty() && !host.is_empty() && !host.contains(['@', '/']) && !user.contains('/')
        });
        named && !path.is_empty() && !text.contains(char::is_whitespace)
    });
    if legal {
        Ok(GitTransport::Ssh)
    } else {
        Err("is not a repository; write https://host/path, ssh://host/path or user@host:path".to_owned())
    }
}

impl GitAuth {
    /// Returns the credentials that a remote may refuse, with their field.
    pub fn credentials_ref(&self) -> Option<(&'static str, &SecretKeyRef)> {
        let ssh = || Some(("sshSecretRef.privateKeyRef", &self.ssh_secret_ref.as_ref()?.private_key_ref));
        self.token_ref.as_ref().map(|token| ("tokenRef", token)).or_else(ssh)
    }

    fn check(&self, transport: Option<GitTransport>, errors: &mut FieldErrors) {
        if self.token_ref.is_some() == self.ssh_secret_ref.is_some() {
            errors.push("spec.git.auth", "set exactly one of tokenRef and sshSecretRef");
        }
        if self.token_ref.is_some() && transport == Some(GitTransport::Ssh) {
            errors.push("spec.git.auth.tokenRef", "needs an http or https URL; set sshSecretRef for ssh");
        }
        let Some(ssh) = &self.ssh_secret_ref else { return };
        if transport == Some(GitTransport::Http) {
            errors.push("spec.git.auth.sshSecretRef", "needs an ssh URL; set tokenRef for http and https");
        }
        if ssh.known_hosts_ref.is_none() && !ssh.insecure_ignore_host_key {
            errors.push(
                "spec.git.auth.sshSecretRef",
                "set knownHostsRef, or accept any host with insecureIgnoreHostKey: true",
            );
        }
    }
}

impl RepositoryWebhook {
    fn check(&self, errors: &mut FieldErrors) {
        if self.events.iter().enumerate().any(|(index, event)| self.events[..index].contains(event)) {
            errors.push("spec.git.webhook.events", "contains a duplicate event");
        }
        if let Some(filter) = &self.branch_filter {
            errors.check("spec.git.webhook.branchFilter", filter.compile().map(drop));
        }
    }
}

impl BranchFilter {
    /// Compiles the globs. The error names the malformed one.
    pub fn compile(&self) -> Result<BranchMatcher, String> {
        let include = if self.include.is_empty() { None } else { Some(compile(&self.include)?) };
        Ok(BranchMatcher { include, exclude: compile(&self.exclude)? })
    }
}

impl BranchMatcher {
    /// Returns whether pushes to `branch` are processed.
    pub fn matches(&self, branch: &str) -> bool {
        !self.exclude.is_match(branch) && self.include.as_ref().is_none_or(|globs| globs.is_match(branch))
    }
}

fn compile(globs: &[String]) -> Result<GlobSet, String> {
    let mut set = GlobSetBuilder::new();
    for glob in globs {
        if glob.trim().is_empty() {
            return Err("contains an empty glob; remove it".to_owned());
        }
        set.add(
            GlobBuilder::new(glob)
                .literal_separator(true)
                .build()
                .map_err(|error| format!("{glob:?} is not a glob: {}", error.kind()))?,
        );
    }
    set.build().map_err(|error| error.to_string())
}
