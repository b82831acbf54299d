//! The sections of a catalogue of contexts.

#![expect(clippy::doc_markdown, reason = "the comments are also the texts of the JSON Schema")]

use std::collections::BTreeMap;

use super::section::{Rule, section};
use super::value::{Count, CredentialValue, GrantType, HttpUrl, KvVersion, Positive, Rate, SecretText, Text};

section! {
    /// The contexts of the declarest command line, and the name of the current one.
    Catalogue {
        /// Name of the default context.
        current_context "currentContext": Option<String>,
        /// Editor command; vi by default.
        default_editor "defaultEditor": Option<Text>,
        /// Users and passwords that contexts refer to by name.
        credentials "credentials": Vec<Credential>,
        /// The contexts.
        contexts "contexts": Vec<Context>,
    }
}

section! {
    /// A user and a password.
    Credential {
        /// Name of the credential, for references.
        name "name": Text,
        /// The user, or {prompt: true} to prompt for it.
        username "username": CredentialValue,
        /// The password, or {prompt: true} to prompt for it.
        password "password": CredentialValue,
    }
}

section! {
    /// A repository of desired state, and its managed server.
    Context [Rule::AtLeastOne(&["repository", "managedServer"])] {
        /// Name of the context.
        name "name": Text,
        /// The repository of desired state.
        repository "repository": Option<Repository>,
        /// The REST server.
        managed_server "managedServer": Option<ManagedServer>,
        /// The store with the values of secret placeholders.
        secret_store "secretStore": Option<SecretStore>,
        /// The source of metadata; the repository by default.
        metadata "metadata": Option<Metadata>,
        /// Further settings by name.
        preferences "preferences": BTreeMap<String, String>,
    }
}

section! {
    /// The repository of desired state.
    Repository [Rule::ExactlyOne(&["filesystem", "git"])] {
        /// A directory.
        filesystem "filesystem": Option<Filesystem>,
        /// A Git checkout.
        git "git": Option<Git>,
    }
}

impl Repository {
    /// Returns the directory with the resources.
    pub fn base_dir(&self) -> Option<&Text> {
        let git = || self.git.as_ref().map(|git| &git.local.base_dir);
        self.filesystem.as_ref().map(|filesystem| &filesystem.base_dir).or_else(git)
    }
}

section! {
    /// A directory.
    Filesystem {
        /// The directory.
        base_dir "baseDir": Text,
    }
}

section! {
    /// A Git checkout.
    Git {
        /// The checkout on this machine.
        local "local": GitLocal,
        /// The remote to fetch from and push to.
        remote "remote": Option<GitRemote>,
    }
}

section! {
    /// A Git checkout on this machine.
    GitLocal {
        /// The directory of the checkout.
        base_dir "baseDir": Text,
        /// Whether to create it if it is missing; true by default.
        auto_init "autoInit": Option<bool>,
    }
}

section! {
    /// A remote Git repository.
    GitRemote {
        /// The http, https or ssh URL, or user@host:path.
        url "url": Text,
        /// The branch; main by default.
        branch "branch": Option<Text>,
        /// The product of the Git host.
        provider "provider": Option<Text>,
        /// Whether to push commits; true by default.
        auto_sync "autoSync": Option<bool>,
        /// Credentials; not needed for a public repository.
        auth "auth": Option<GitAuth>,
        /// TLS settings.
        tls "tls": Option<Tls>,
        /// Proxy for connections to the server.
        proxy "proxy": Option<Proxy>,
    }
}

section! {
    /// Credentials of a Git repository.
    GitAuth [Rule::ExactlyOne(&["basic", "accessKey", "ssh"])] {
        /// User and password.
        basic "basic": Option<BasicAuth>,
        /// A token.
        access_key "accessKey": Option<AccessKey>,
        /// A key.
        ssh "ssh": Option<SshAuth>,
    }
}

section! {
    /// User and password, from the credentials of the catalogue.
    BasicAuth {
        /// The credential.
        credentials_ref "credentialsRef": CredentialsRef,
    }
}

section! {
    /// A reference to a credential.
    CredentialsRef {
        /// Name of the credential.
        name "name": Text,
    }
}

section! {
    /// A token.
    AccessKey {
        /// The token.
        token "token": SecretText,
    }
}

section! {
    /// How to log in over SSH.
    SshAuth {
        /// The user; by default that of the URL, otherwise git.
        user "user": Option<Text>,
        /// File with the private key.
        private_key_file "privateKeyFile": Option<Text>,
        /// Passphrase of the private key.
        passphrase "passphrase": Option<SecretText>,
        /// File with the accepted host keys, in known_hosts format.
        known_hosts_file "knownHostsFile": Option<Text>,
        /// Whether to accept any host key.
        insecure_ignore_host_key "insecureIgnoreHostKey": Option<bool>,
    }
}

section! {
    /// Trusted certificate authorities, and a client certificate.
    Tls [Rule::Needs("clientCertFile", "clientKeyFile"), Rule::Needs("clientKeyFile", "clientCertFile")] {
        /// File with the certificate authorities to trust instead of those of the system.
        ca_cert_file "caCertFile": Option<Text>,
        /// File with the client certificate.
        client_cert_file "clientCertFile": Option<Text>,
        /// File with the key of the client certificate.
        client_key_file "clientKeyFile": Option<Text>,
        /// Whether to accept any certificate.
        insecure_skip_verify "insecureSkipVerify": Option<bool>,
    }
}

section! {
    /// A proxy; an empty block disables proxies.
    Proxy {
        /// Proxy for http targets.
        http "http": Option<String>,
        /// Proxy for https targets.
        https "https": Option<String>,
        /// Hosts that are reached without the proxy, separated by commas.
        no_proxy "noProxy": Option<String>,
        /// Credentials of the proxy.
        auth "auth": Option<ProxyAuth>,
    }
}

section! {
    /// Credentials of a proxy.
    ProxyAuth {
        /// User and password.
        basic "basic": BasicAuth,
    }
}

section! {
    /// The REST server.
    ManagedServer {
        /// The connection to the server.
        http "http": Http,
    }
}

section! {
    /// The connection to a REST server.
    Http {
        /// Base URL of all paths.
        url "url": HttpUrl,
        /// Path, or URL of the same origin, that returns a status below 400 if the server is healthy.
        health_check "healthCheck": Option<Text>,
        /// OpenAPI document: a local file or an https URL.
        openapi "openapi": Option<Text>,
        /// Headers of every request.
        default_headers "defaultHeaders": BTreeMap<String, String>,
        /// Credentials.
        auth "auth": HttpAuth,
        /// TLS settings.
        tls "tls": Option<Tls>,
        /// Proxy for connections to the server.
        proxy "proxy": Option<Proxy>,
        /// Limits of the requests to the server.
        request_throttling "requestThrottling": Option<RequestThrottling>,
    }
}

section! {
    /// Credentials of a REST server.
    HttpAuth [Rule::ExactlyOne(&["oauth2", "basic", "customHeaders"])] {
        /// A bearer token from an OAuth 2.0 token endpoint.
        oauth2 "oauth2": Option<OAuth2>,
        /// User and password.
        basic "basic": Option<BasicAuth>,
        /// Headers with secret values.
        custom_headers "customHeaders": Option<Vec<CustomHeader>>,
    }
}

section! {
    /// How to request an OAuth 2.0 token.
    OAuth2 {
        /// Token endpoint.
        token_url "tokenURL": HttpUrl,
        /// Grant type; client_credentials by default.
        grant_type "grantType": Option<GrantType>,
        /// The client id.
        client_id "clientID": Text,
        /// The client secret.
        client_secret "clientSecret": SecretText,
        /// User, for the grant password.
        username "username": Option<Text>,
        /// Password of the user.
        password "password": Option<SecretText>,
        /// Scopes to request, separated by spaces.
        scope "scope": Option<Text>,
        /// Audience to request.
        audience "audience": Option<Text>,
    }
}

section! {
    /// A header with a secret value.
    CustomHeader {
        /// Name of the header.
        header "header": Text,
        /// Prefix of the value, such as Bearer.
        prefix "prefix": Option<String>,
        /// The value.
        value "value": SecretText,
    }
}

section! {
    /// Limits of the requests to a server.
    RequestThrottling [
        Rule::AtLeastOne(&["maxConcurrentRequests", "requestsPerSecond"]),
        Rule::Needs("queueSize", "maxConcurrentRequests"),
        Rule::Needs("burst", "requestsPerSecond"),
    ] {
        /// Maximum number of requests in flight.
        max_concurrent_requests "maxConcurrentRequests": Option<Positive>,
        /// Maximum number of requests that wait; unlimited if 0 or not set.
        queue_size "queueSize": Option<Count>,
        /// Maximum number of requests started per second.
        requests_per_second "requestsPerSecond": Option<Rate>,
        /// Maximum number of requests that start at once after an idle time.
        burst "burst": Option<Count>,
    }
}

section! {
    /// The store with the values of secret placeholders.
    SecretStore [Rule::ExactlyOne(&["file", "vault"])] {
        /// An encrypted file.
        file "file": Option<FileStore>,
        /// HashiCorp Vault.
        vault "vault": Option<VaultStore>,
    }
}

section! {
    /// An encrypted file.
    FileStore [Rule::ExactlyOne(&["key", "keyFile", "passphrase", "passphraseFile"])] {
        /// The file.
        path "path": Text,
        /// The key: 32 bytes, in hexadecimal, base64 or raw.
        key "key": Option<SecretText>,
        /// File with the key.
        key_file "keyFile": Option<Text>,
        /// The passphrase that the key is derived from.
        passphrase "passphrase": Option<SecretText>,
        /// File with the passphrase.
        passphrase_file "passphraseFile": Option<Text>,
        /// Parameters of Argon2id.
        kdf "kdf": Option<Kdf>,
    }
}

section! {
    /// Parameters of Argon2id; 0 selects the default.
    Kdf {
        /// Passes; 3 by default.
        time "time": Option<Count>,
        /// Memory in KiB; 65536 by default.
        memory "memory": Option<Count>,
        /// Lanes; 4 by default.
        threads "threads": Option<Count>,
    }
}

section! {
    /// HashiCorp Vault.
    VaultStore {
        /// URL of the server.
        address "address": HttpUrl,
        /// Mount path of the key-value engine; secret by default.
        mount "mount": Option<Text>,
        /// Path in the engine below which all keys are.
        path_prefix "pathPrefix": Option<String>,
        /// Namespace of all requests.
        namespace "namespace": Option<Text>,
        /// Version of the key-value engine; 2 by default.
        kv_version "kvVersion": Option<KvVersion>,
        /// Credentials.
        auth "auth": VaultAuth,
        /// TLS settings.
        tls "tls": Option<Tls>,
        /// Proxy for connections to the server.
        proxy "proxy": Option<Proxy>,
    }
}

section! {
    /// Credentials of Vault.
    VaultAuth [Rule::ExactlyOne(&["token", "password", "appRole"])] {
        /// A token.
        token "token": Option<SecretText>,
        /// User and password.
        password "password": Option<VaultPassword>,
        /// An AppRole.
        app_role "appRole": Option<AppRole>,
    }
}

section! {
    /// A login with user and password.
    VaultPassword {
        /// The credential.
        credentials_ref "credentialsRef": CredentialsRef,
        /// Mount path of the login method; userpass by default.
        mount "mount": Option<Text>,
    }
}

section! {
    /// A login with an AppRole.
    AppRole {
        /// The role id.
        role_id "roleID": Text,
        /// The secret id.
        secret_id "secretID": SecretText,
        /// Mount path of the login method; approle by default.
        mount "mount": Option<Text>,
    }
}

section! {
    /// The source of metadata.
    Metadata [Rule::AtMostOne(&["baseDir", "bundle", "bundleFile"])] {
        /// A directory.
        base_dir "baseDir": Option<Text>,
        /// A published bundle.
        bundle "bundle": Option<Text>,
        /// A bundle in a file.
        bundle_file "bundleFile": Option<Text>,
        /// Proxy for the download of a bundle.
        proxy "proxy": Option<Proxy>,
    }
}
