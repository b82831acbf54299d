//! The sections of a catalogue of contexts.

#![expect(clippy::doc_markdown, reason = "the comments are the texts of the JSON Schema, too")]

use std::collections::BTreeMap;

use super::section::{Rule, section};
use super::value::{Count, CredentialValue, GrantType, HttpUrl, KvVersion, Positive, Rate, SecretText, Text};

section! {
    /// The contexts of the declarest command line, and which of them is current.
    Catalogue {
        /// Name of the context that is used unless another is asked for.
        current_context "currentContext": Option<String>,
        /// Command that edits files; vi when not set.
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
        /// Name to refer to it by.
        name "name": Text,
        /// The user, or {prompt: true} to ask for it.
        username "username": CredentialValue,
        /// The password, or {prompt: true} to ask for it.
        password "password": CredentialValue,
    }
}

section! {
    /// Where desired state is, and the server that it belongs to.
    Context [Rule::AtLeastOne(&["repository", "managedServer"])] {
        /// Name of the context.
        name "name": Text,
        /// Where desired state is.
        repository "repository": Option<Repository>,
        /// The REST server.
        managed_server "managedServer": Option<ManagedServer>,
        /// Where the values of secret placeholders are.
        secret_store "secretStore": Option<SecretStore>,
        /// Where metadata is; in the repository when not set.
        metadata "metadata": Option<Metadata>,
        /// Further settings by name.
        preferences "preferences": BTreeMap<String, String>,
    }
}

section! {
    /// Where desired state is.
    Repository [Rule::ExactlyOne(&["filesystem", "git"])] {
        /// A plain directory.
        filesystem "filesystem": Option<Filesystem>,
        /// A Git checkout.
        git "git": Option<Git>,
    }
}

impl Repository {
    /// The directory with the resources.
    pub fn base_dir(&self) -> Option<&Text> {
        let git = || self.git.as_ref().map(|git| &git.local.base_dir);
        self.filesystem.as_ref().map(|filesystem| &filesystem.base_dir).or_else(git)
    }
}

section! {
    /// A plain directory.
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
        /// Where it is pushed to and fetched from.
        remote "remote": Option<GitRemote>,
    }
}

section! {
    /// A Git checkout on this machine.
    GitLocal {
        /// Its directory.
        base_dir "baseDir": Text,
        /// Whether to make it if it is missing; true when not set.
        auto_init "autoInit": Option<bool>,
    }
}

section! {
    /// A remote Git repository.
    GitRemote {
        /// Its http, https or ssh URL, or user@host:path.
        url "url": Text,
        /// Its branch; main when not set.
        branch "branch": Option<Text>,
        /// The product that serves it.
        provider "provider": Option<Text>,
        /// Whether to push what is committed; true when not set.
        auto_sync "autoSync": Option<bool>,
        /// Credentials; none for an open repository.
        auth "auth": Option<GitAuth>,
        /// Trust and client certificate.
        tls "tls": Option<Tls>,
        /// Proxy on the way there.
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
        /// The user; that of the URL, else git, when not set.
        user "user": Option<Text>,
        /// File with the private key.
        private_key_file "privateKeyFile": Option<Text>,
        /// What the private key is encrypted with.
        passphrase "passphrase": Option<SecretText>,
        /// File with the keys of known hosts.
        known_hosts_file "knownHostsFile": Option<Text>,
        /// Whether to accept any host key.
        insecure_ignore_host_key "insecureIgnoreHostKey": Option<bool>,
    }
}

section! {
    /// Trust and client certificate.
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
    /// A proxy; an empty one means none at all.
    Proxy {
        /// Proxy for http targets.
        http "http": Option<String>,
        /// Proxy for https targets.
        https "https": Option<String>,
        /// Hosts that are reached without, separated by commas.
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
        /// How to reach it.
        http "http": Http,
    }
}

section! {
    /// How to reach a REST server.
    Http {
        /// URL that all paths are appended to.
        url "url": HttpUrl,
        /// Path, or URL of the same origin, that answers below 400 while the server is well.
        health_check "healthCheck": Option<Text>,
        /// OpenAPI document: a local file or an https URL.
        openapi "openapi": Option<Text>,
        /// Headers of every request.
        default_headers "defaultHeaders": BTreeMap<String, String>,
        /// Credentials.
        auth "auth": HttpAuth,
        /// Trust and client certificate.
        tls "tls": Option<Tls>,
        /// Proxy on the way there.
        proxy "proxy": Option<Proxy>,
        /// Limits of the load put on the server.
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
    /// How to get an OAuth 2.0 token.
    OAuth2 {
        /// Token endpoint.
        token_url "tokenURL": HttpUrl,
        /// Kind of grant; client_credentials when not set.
        grant_type "grantType": Option<GrantType>,
        /// The client.
        client_id "clientID": Text,
        /// Secret of the client.
        client_secret "clientSecret": SecretText,
        /// User, for the grant password.
        username "username": Option<Text>,
        /// Password of the user.
        password "password": Option<SecretText>,
        /// Scopes to ask for, separated by spaces.
        scope "scope": Option<Text>,
        /// Audience to ask for.
        audience "audience": Option<Text>,
    }
}

section! {
    /// A header with a secret value.
    CustomHeader {
        /// Name of the header.
        header "header": Text,
        /// Word before the value, such as Bearer.
        prefix "prefix": Option<String>,
        /// The value.
        value "value": SecretText,
    }
}

section! {
    /// Limits of the load put on a server.
    RequestThrottling [
        Rule::AtLeastOne(&["maxConcurrentRequests", "requestsPerSecond"]),
        Rule::Needs("queueSize", "maxConcurrentRequests"),
        Rule::Needs("burst", "requestsPerSecond"),
    ] {
        /// Requests at the same time.
        max_concurrent_requests "maxConcurrentRequests": Option<Positive>,
        /// Requests that may wait; without bound when 0 or not set.
        queue_size "queueSize": Option<Count>,
        /// Requests started per second.
        requests_per_second "requestsPerSecond": Option<Rate>,
        /// Requests that may start at once after a quiet time.
        burst "burst": Option<Count>,
    }
}

section! {
    /// Where the values of secret placeholders are.
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
        /// The key: 32 bytes, in hexadecimal, base64 or as they are.
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
    /// Parameters of Argon2id; 0 is the default of each.
    Kdf {
        /// Passes; 3 when not set.
        time "time": Option<Count>,
        /// Memory in KiB; 65536 when not set.
        memory "memory": Option<Count>,
        /// Lanes; 4 when not set.
        threads "threads": Option<Count>,
    }
}

section! {
    /// HashiCorp Vault.
    VaultStore {
        /// URL of the server.
        address "address": HttpUrl,
        /// Where the key-value engine is mounted; secret when not set.
        mount "mount": Option<Text>,
        /// What all keys are below.
        path_prefix "pathPrefix": Option<String>,
        /// Namespace of all requests.
        namespace "namespace": Option<Text>,
        /// Version of the key-value engine; 2 when not set.
        kv_version "kvVersion": Option<KvVersion>,
        /// Credentials.
        auth "auth": VaultAuth,
        /// Trust and client certificate.
        tls "tls": Option<Tls>,
        /// Proxy on the way there.
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
        /// The role of an application.
        app_role "appRole": Option<AppRole>,
    }
}

section! {
    /// Login by user and password.
    VaultPassword {
        /// The credential.
        credentials_ref "credentialsRef": CredentialsRef,
        /// Where the method is mounted; userpass when not set.
        mount "mount": Option<Text>,
    }
}

section! {
    /// Login as an application.
    AppRole {
        /// The role.
        role_id "roleID": Text,
        /// Its secret.
        secret_id "secretID": SecretText,
        /// Where the method is mounted; approle when not set.
        mount "mount": Option<Text>,
    }
}

section! {
    /// Where metadata is.
    Metadata [Rule::AtMostOne(&["baseDir", "bundle", "bundleFile"])] {
        /// A directory.
        base_dir "baseDir": Option<Text>,
        /// A published bundle.
        bundle "bundle": Option<Text>,
        /// A bundle in a file.
        bundle_file "bundleFile": Option<Text>,
        /// Proxy on the way to a bundle.
        proxy "proxy": Option<Proxy>,
    }
}
