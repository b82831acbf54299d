//! The sections of a catalogue of contexts.

#![expect(clippy::doc_markdown, reason = "the comments are also the texts of the JSON Schema")]

use std::collections::BTreeMap;

use declarest_core::payload::Value;
use declarest_core::payload::fields::FieldError;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use super::section::Setting;
use super::value::{Count, CredentialValue, GrantType, HttpUrl, KvVersion, Rate, SecretText, Text};

/// The contexts of the declarest command line, and the name of the current one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Catalogue {
    /// Name of the default context.
    pub current_context: Option<String>,
    /// Editor command; vi by default.
    pub default_editor: Option<Text>,
    /// Users and passwords that contexts refer to by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub credentials: Vec<Credential>,
    /// The contexts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub contexts: Vec<Context>,
    /// The stored contexts that have no name. They do not affect the others.
    #[serde(skip)]
    pub nameless: Vec<Fault>,
    /// The stored credentials that are not valid. They do not affect contexts that do not use them.
    #[serde(skip)]
    pub faulty_credentials: Vec<FaultyCredential>,
}

/// A credential that is not valid.
#[derive(Clone, Debug, PartialEq)]
pub struct FaultyCredential {
    /// Its name, if it has one.
    pub name: Option<String>,
    /// The credential as it is in the file.
    pub written: Value,
    /// The fault.
    pub reason: FieldError,
}

impl Catalogue {
    /// Adds a credential. It replaces one with the same name.
    pub fn put_credential(&mut self, credential: Credential) {
        self.faulty_credentials.retain(|faulty| faulty.name.as_deref() != Some(&credential.name.0));
        match self.credentials.iter_mut().find(|known| known.name == credential.name) {
            Some(known) => *known = credential,
            None => self.credentials.push(credential),
        }
    }

    /// Returns the context with this name.
    pub fn context(&self, name: &str) -> Option<&Context> {
        self.contexts.iter().find(|context| context.name.0 == name)
    }

    /// Returns the name of the current context, if one is set.
    pub fn current(&self) -> Option<&str> {
        self.current_context.as_deref().map(str::trim).filter(|name| !name.is_empty())
    }

    /// Returns the stored form of the credentials.
    pub fn stored_credentials(&self) -> Vec<Value> {
        let faulty = self.faulty_credentials.iter().map(|faulty| faulty.written.clone());
        self.credentials.iter().filter_map(Setting::write).chain(faulty).collect()
    }
}

/// A user and a password.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Credential {
    /// Name of the credential, for references.
    pub name: Text,
    /// The user, or {prompt: true} to prompt for it.
    pub username: CredentialValue,
    /// The password, or {prompt: true} to prompt for it.
    pub password: CredentialValue,
}

/// A repository of desired state, and its managed server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Context {
    /// Name of the context.
    pub name: Text,
    /// The repository of desired state.
    #[serde(default, deserialize_with = "unless_empty")]
    #[schemars(extend("default" = null))]
    pub repository: Option<Repository>,
    /// The REST server.
    pub managed_server: Option<ManagedServer>,
    /// The store with the values of secret placeholders.
    pub secret_store: Option<SecretStore>,
    /// The source of metadata; the repository by default.
    pub metadata: Option<Metadata>,
    /// Further settings by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub preferences: BTreeMap<String, String>,
    /// The fault of a stored context that is not valid. It does not affect the other contexts, and it is reported when
    /// the context is used.
    #[serde(skip)]
    pub fault: Option<Box<Fault>>,
}

/// A context that is not valid.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    /// The context as it is in the file.
    pub written: Value,
    /// The fault.
    pub reason: FieldError,
}

impl Context {
    /// Returns a context whose stored form is not valid.
    pub fn faulty(name: Text, written: Value, reason: FieldError) -> Self {
        Self { name, fault: Some(Box::new(Fault { written, reason })), ..Self::default() }
    }

    /// Returns the stored form: all fields, or what the file contains if it is not valid.
    pub fn stored(&self) -> Value {
        let Some(fault) = &self.fault else { return self.write().unwrap_or_default() };
        let mut written = fault.written.clone();
        if let Value::Object(members) = &mut written {
            members.insert("name".to_owned(), self.name.0.as_str().into());
        }
        written
    }
}

/// Reads a repository. One without members is absent.
fn unless_empty<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Repository>, D::Error> {
    let repository = Option::<Repository>::deserialize(deserializer)?;
    Ok(repository.filter(|repository| repository.filesystem.is_some() || repository.git.is_some()))
}

/// The repository of desired state.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Repository {
    /// A directory.
    pub filesystem: Option<Filesystem>,
    /// A Git checkout.
    pub git: Option<Git>,
}

impl Repository {
    /// Returns the directory with the resources.
    pub fn base_dir(&self) -> Option<&Text> {
        let git = || self.git.as_ref().map(|git| &git.local.base_dir);
        self.filesystem.as_ref().map(|filesystem| &filesystem.base_dir).or_else(git)
    }
}

/// A directory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Filesystem {
    /// The directory.
    pub base_dir: Text,
}

/// A Git checkout.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Git {
    /// The checkout on this machine.
    pub local: GitLocal,
    /// The remote to fetch from and push to.
    pub remote: Option<GitRemote>,
}

/// A Git checkout on this machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GitLocal {
    /// The directory of the checkout.
    pub base_dir: Text,
    /// Whether to create it if it is missing; true by default.
    pub auto_init: Option<bool>,
}

/// A remote Git repository.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GitRemote {
    /// The http, https or ssh URL, or user@host:path.
    pub url: Text,
    /// The branch; main by default.
    pub branch: Option<Text>,
    /// The product of the Git host.
    pub provider: Option<Text>,
    /// Whether to push commits; true by default.
    pub auto_sync: Option<bool>,
    /// Credentials; not needed for a public repository.
    pub auth: Option<GitAuth>,
    /// TLS settings.
    pub tls: Option<Tls>,
    /// Proxy for connections to the server.
    pub proxy: Option<Proxy>,
}

/// Credentials of a Git repository.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GitAuth {
    /// User and password.
    pub basic: Option<BasicAuth>,
    /// A token.
    pub access_key: Option<AccessKey>,
    /// A key.
    pub ssh: Option<SshAuth>,
}

/// User and password, from the credentials of the catalogue.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BasicAuth {
    /// The credential.
    pub credentials_ref: CredentialsRef,
}

/// A reference to a credential.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CredentialsRef {
    /// Name of the credential.
    pub name: Text,
}

/// A token.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AccessKey {
    /// The token.
    pub token: SecretText,
}

/// How to log in over SSH.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SshAuth {
    /// The user; by default that of the URL, otherwise git.
    pub user: Option<Text>,
    /// File with the private key.
    pub private_key_file: Option<Text>,
    /// Passphrase of the private key.
    pub passphrase: Option<SecretText>,
    /// File with the accepted host keys, in known_hosts format.
    pub known_hosts_file: Option<Text>,
    /// Whether to accept any host key.
    pub insecure_ignore_host_key: Option<bool>,
}

/// Trusted certificate authorities, and a client certificate.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Tls {
    /// File with the certificate authorities to trust instead of those of the system.
    pub ca_cert_file: Option<Text>,
    /// File with the client certificate.
    pub client_cert_file: Option<Text>,
    /// File with the key of the client certificate.
    pub client_key_file: Option<Text>,
    /// Whether to accept any certificate.
    pub insecure_skip_verify: Option<bool>,
}

/// A proxy; an empty block disables proxies.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[expect(clippy::struct_field_names, reason = "fields are called like their keys")]
pub struct Proxy {
    /// Proxy for http targets.
    pub http: Option<String>,
    /// Proxy for https targets.
    pub https: Option<String>,
    /// Hosts that are reached without the proxy, separated by commas.
    pub no_proxy: Option<String>,
    /// Credentials of the proxy.
    pub auth: Option<ProxyAuth>,
}

/// Credentials of a proxy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ProxyAuth {
    /// User and password.
    pub basic: BasicAuth,
}

/// The REST server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ManagedServer {
    /// The connection to the server.
    pub http: Http,
}

/// The connection to a REST server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Http {
    /// Base URL of all paths.
    pub url: HttpUrl,
    /// Path, or URL of the same origin, that returns a status below 400 if the server is healthy.
    pub health_check: Option<Text>,
    /// OpenAPI document: a local file or an https URL.
    pub openapi: Option<Text>,
    /// Headers of every request.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub default_headers: BTreeMap<String, String>,
    /// Credentials; not needed for a server that accepts requests without them.
    pub auth: Option<HttpAuth>,
    /// TLS settings.
    pub tls: Option<Tls>,
    /// Proxy for connections to the server.
    pub proxy: Option<Proxy>,
    /// Limits of the requests to the server.
    pub request_throttling: Option<RequestThrottling>,
}

impl Http {
    /// Returns how to request a token, if the server needs one.
    pub fn oauth2(&self) -> Option<&OAuth2> {
        self.auth.as_ref()?.oauth2.as_ref()
    }
}

/// Credentials of a REST server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HttpAuth {
    /// A bearer token from an OAuth 2.0 token endpoint.
    pub oauth2: Option<OAuth2>,
    /// User and password.
    pub basic: Option<BasicAuth>,
    /// Headers with secret values.
    pub custom_headers: Option<Vec<CustomHeader>>,
}

/// How to request an OAuth 2.0 token.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct OAuth2 {
    /// Token endpoint.
    #[serde(rename = "tokenURL")]
    pub token_url: HttpUrl,
    /// Grant type; client_credentials by default.
    pub grant_type: Option<GrantType>,
    /// The client id.
    #[serde(rename = "clientID")]
    pub client_id: Text,
    /// The client secret.
    pub client_secret: SecretText,
    /// User, for the grant password.
    pub username: Option<Text>,
    /// Password of the user.
    pub password: Option<SecretText>,
    /// Scopes to request, separated by spaces.
    pub scope: Option<Text>,
    /// Audience to request.
    pub audience: Option<Text>,
}

/// A header with a secret value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CustomHeader {
    /// Name of the header.
    pub header: Text,
    /// Prefix of the value, such as Bearer.
    pub prefix: Option<String>,
    /// The value.
    pub value: SecretText,
}

/// Limits of the requests to a server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RequestThrottling {
    /// Maximum number of requests in flight; unlimited if 0 or not set.
    pub max_concurrent_requests: Option<Count>,
    /// Maximum number of requests that wait; unlimited if 0 or not set.
    pub queue_size: Option<Count>,
    /// Maximum number of requests started per second; unlimited if 0 or not set.
    pub requests_per_second: Option<Rate>,
    /// Maximum number of requests that start at once after an idle time.
    pub burst: Option<Count>,
}

/// The store with the values of secret placeholders.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SecretStore {
    /// An encrypted file.
    pub file: Option<FileStore>,
    /// HashiCorp Vault.
    pub vault: Option<VaultStore>,
}

/// An encrypted file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FileStore {
    /// The file.
    pub path: Text,
    /// The key: 32 bytes, in hexadecimal, base64 or raw.
    pub key: Option<SecretText>,
    /// File with the key.
    pub key_file: Option<Text>,
    /// The passphrase that the key is derived from.
    pub passphrase: Option<SecretText>,
    /// File with the passphrase.
    pub passphrase_file: Option<Text>,
    /// Parameters of Argon2id.
    pub kdf: Option<Kdf>,
}

/// Parameters of Argon2id; 0 selects the default.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Kdf {
    /// Passes; 3 by default.
    pub time: Option<Count>,
    /// Memory in KiB; 65536 by default.
    pub memory: Option<Count>,
    /// Lanes; 4 by default.
    pub threads: Option<Count>,
}

/// HashiCorp Vault.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct VaultStore {
    /// URL of the server.
    pub address: HttpUrl,
    /// Mount path of the key-value engine; secret by default.
    pub mount: Option<Text>,
    /// Path in the engine below which all keys are.
    pub path_prefix: Option<String>,
    /// Namespace of all requests.
    pub namespace: Option<Text>,
    /// Version of the key-value engine; 2 by default.
    pub kv_version: Option<KvVersion>,
    /// Credentials.
    pub auth: VaultAuth,
    /// TLS settings.
    pub tls: Option<Tls>,
    /// Proxy for connections to the server.
    pub proxy: Option<Proxy>,
}

/// Credentials of Vault.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct VaultAuth {
    /// A token.
    pub token: Option<SecretText>,
    /// User and password.
    pub password: Option<VaultPassword>,
    /// An AppRole.
    pub app_role: Option<AppRole>,
}

/// A login with user and password.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct VaultPassword {
    /// The credential.
    pub credentials_ref: CredentialsRef,
    /// Mount path of the login method; userpass by default.
    pub mount: Option<Text>,
}

/// A login with an AppRole.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AppRole {
    /// The role id.
    #[serde(rename = "roleID")]
    pub role_id: Text,
    /// The secret id.
    #[serde(rename = "secretID")]
    pub secret_id: SecretText,
    /// Mount path of the login method; approle by default.
    pub mount: Option<Text>,
}

/// The source of metadata.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Metadata {
    /// A directory.
    pub base_dir: Option<Text>,
    /// A published bundle.
    pub bundle: Option<Text>,
    /// A bundle in a file.
    pub bundle_file: Option<Text>,
    /// Proxy for the download of a bundle.
    pub proxy: Option<Proxy>,
}
