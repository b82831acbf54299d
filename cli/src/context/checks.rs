//! Rules between settings, and formats that the types do not check.

use std::collections::BTreeMap;

use declarest_core::proxy::{Proxy as Proxies, ProxyError, ProxyFields};
use declarest_core::repository::RemoteUrl;
use url::Url;

use super::credential::variable_stem;
use super::error::CatalogueError;
use super::model::{
    BasicAuth, Catalogue, Context, Credential, Git, HttpAuth, Kdf, ManagedServer, Proxy, SecretStore,
    VaultStore,
};
use super::reference::is_reference;
use super::value::{CredentialValue, GrantType};

/// A violated rule.
#[derive(Debug, PartialEq, Eq)]
pub struct Problem {
    /// The field, with its name in decoding errors.
    pub field: String,
    pub reason: String,
}

impl Problem {
    /// Returns the error of the problem in `context`.
    pub fn of(self, context: impl Into<String>) -> CatalogueError {
        let Self { field, reason } = self;
        CatalogueError::Setting { context: context.into(), field, reason }
    }
}

type Outcome = Result<(), Problem>;

fn problem(field: impl Into<String>, reason: impl Into<String>) -> Outcome {
    Err(Problem { field: field.into(), reason: reason.into() })
}

/// Returns the problem of two contexts with the same name. `first` and `second` are their indices.
pub fn same_name(name: &str, first: usize, second: usize) -> Problem {
    Problem {
        field: format!("contexts[{second}].name"),
        reason: format!("contexts[{first}] already has the name \"{name}\"; names must be unique"),
    }
}

/// Checks that the current context exists.
pub fn current(catalogue: &Catalogue) -> Outcome {
    let current = catalogue.current_context.as_deref().unwrap_or_default().trim();
    let mut names = catalogue.contexts.iter().map(|context| context.name.0.as_str());
    if current.is_empty() || is_reference(current) || names.any(|name| name == current || is_reference(name))
    {
        return Ok(());
    }
    problem("currentContext", format!("there is no context \"{current}\""))
}

/// Checks a credential. `stems` are the names before it, by the prefixes of their variables.
pub fn check_credential(credential: &Credential, stems: &mut BTreeMap<String, String>) -> Outcome {
    let name = &credential.name.0;
    match stems.insert(variable_stem(name), name.clone()) {
        Some(first) if first == *name => {
            return problem("name", format!("duplicate credential name \"{name}\"; rename one"));
        }
        Some(first) => {
            let reason =
                format!("\"{name}\" and \"{first}\" have the same environment variables; rename one");
            return problem("name", reason);
        }
        None => {}
    }
    for (key, value) in [("username", &credential.username), ("password", &credential.password)] {
        if matches!(value, CredentialValue::Literal(secret) if secret.0.expose().is_empty()) {
            return problem(key, "must not be empty; write a value or {prompt: true}");
        }
    }
    Ok(())
}

/// Checks one context. `prefix` is the prefix of its field names.
pub fn check_context(prefix: &str, context: &Context, catalogue: &Catalogue) -> Outcome {
    let check = Check { prefix, catalogue };
    if let Some(server) = &context.managed_server {
        check.server(server)?;
    }
    if let Some(git) = context.repository.as_ref().and_then(|repository| repository.git.as_ref()) {
        check.git(git)?;
    }
    if let Some(store) = &context.secret_store {
        check.store(store)?;
    }
    if let Some(metadata) = &context.metadata {
        check.proxy("metadata.proxy", metadata.proxy.as_ref())?;
    }
    Ok(())
}

struct Check<'c> {
    prefix: &'c str,
    catalogue: &'c Catalogue,
}

impl Check<'_> {
    fn problem(&self, field: &str, reason: impl Into<String>) -> Outcome {
        problem(format!("{}{field}", self.prefix), reason)
    }

    fn server(&self, server: &ManagedServer) -> Outcome {
        let http = &server.http;
        if let Some(check) = &http.health_check {
            self.health_check(&http.url.0, &check.0)?;
        }
        if let Some(openapi) = &http.openapi
            && openapi.0.contains("://")
            && !openapi.0.to_ascii_lowercase().starts_with("https://")
        {
            return self.problem(
                "managedServer.http.openapi",
                "must be a local file or an https URL; save the document of a server without TLS to a file",
            );
        }
        http.auth.as_ref().map_or(Ok(()), |auth| self.auth(auth))?;
        self.proxy("managedServer.http.proxy", http.proxy.as_ref())
    }

    fn health_check(&self, base: &str, check: &str) -> Outcome {
        const FIELD: &str = "managedServer.http.healthCheck";
        if is_reference(check) {
            return Ok(());
        }
        if check.contains('?') {
            return self.problem(FIELD, "must not have a query; use a path without a query");
        }
        if !check.contains("://") || is_reference(base) {
            return Ok(());
        }
        match (Url::parse(base.trim()), Url::parse(check)) {
            (Ok(base), Ok(check)) if base.origin() == check.origin() => Ok(()),
            _ => self.problem(FIELD, "must be a path, or a URL with the scheme, host and port of url"),
        }
    }

    fn auth(&self, auth: &HttpAuth) -> Outcome {
        const FIELD: &str = "managedServer.http.auth";
        if let Some(basic) = &auth.basic {
            self.reference(&format!("{FIELD}.basic"), basic)?;
        }
        match &auth.oauth2 {
            Some(oauth2)
                if oauth2.grant_type == Some(GrantType::Password)
                    && (oauth2.username.is_none() || oauth2.password.is_none()) =>
            {
                self.problem(&format!("{FIELD}.oauth2"), "grantType password needs username and password")
            }
            _ => Ok(()),
        }
    }

    fn git(&self, git: &Git) -> Outcome {
        const FIELD: &str = "repository.git.remote";
        let Some(remote) = &git.remote else { return Ok(()) };
        if !is_reference(&remote.url.0)
            && let Err(error) = RemoteUrl::parse_local_allowed(&remote.url.0)
        {
            return self.problem(&format!("{FIELD}.url"), error.to_string());
        }
        if let Some(basic) = remote.auth.as_ref().and_then(|auth| auth.basic.as_ref()) {
            self.reference(&format!("{FIELD}.auth.basic"), basic)?;
        }
        self.proxy(&format!("{FIELD}.proxy"), remote.proxy.as_ref())
    }

    fn store(&self, store: &SecretStore) -> Outcome {
        if let Some(kdf) = store.file.as_ref().and_then(|file| file.kdf.as_ref()) {
            self.kdf(kdf)?;
        }
        let Some(vault) = &store.vault else { return Ok(()) };
        if let Some(password) = &vault.auth.password {
            self.named("secretStore.vault.auth.password.credentialsRef", &password.credentials_ref.name.0)?;
        }
        self.vault_paths(vault)?;
        self.proxy("secretStore.vault.proxy", vault.proxy.as_ref())
    }

    fn kdf(&self, kdf: &Kdf) -> Outcome {
        let or_default = |count: Option<super::value::Count>, default| match count {
            Some(super::value::Count(0)) | None => default,
            Some(super::value::Count(count)) => count,
        };
        let (threads, memory) = (or_default(kdf.threads, 4), or_default(kdf.memory, 65536));
        if threads > 255 {
            return self.problem("secretStore.file.kdf.threads", "must be at most 255");
        }
        if memory < 8 * threads {
            let reason = format!("must be at least 8 KiB for each of the {threads} threads");
            return self.problem("secretStore.file.kdf.memory", reason);
        }
        Ok(())
    }

    fn vault_paths(&self, vault: &VaultStore) -> Outcome {
        let paths = [
            ("mount", vault.mount.as_ref().map(|mount| mount.0.as_str())),
            ("pathPrefix", vault.path_prefix.as_deref()),
        ];
        for (key, path) in paths {
            let path = path.unwrap_or_default().trim_matches('/');
            if !path.is_empty() && path.split('/').any(|segment| matches!(segment, "" | "." | "..")) {
                let reason = "must not have empty, \".\" or \"..\" segments";
                return self.problem(&format!("secretStore.vault.{key}"), reason);
            }
        }
        Ok(())
    }

    fn proxy(&self, field: &str, proxy: Option<&Proxy>) -> Outcome {
        let Some(proxy) = proxy else { return Ok(()) };
        if let Some(auth) = &proxy.auth {
            self.reference(&format!("{field}.auth.basic"), &auth.basic)?;
        }
        parse_proxy(&format!("{}{field}", self.prefix), proxy).map(drop).map_err(|error| {
            let (ProxyError::Url(field)
            | ProxyError::Beyond(field)
            | ProxyError::CredentialsTwice(field)
            | ProxyError::NoProxy { field, .. }) = &error;
            let text = error.to_string();
            let reason = text.strip_prefix(field.as_str()).unwrap_or(&text).trim_start_matches([':', ' ']);
            Problem { field: field.clone(), reason: reason.to_owned() }
        })
    }

    fn reference(&self, field: &str, basic: &BasicAuth) -> Outcome {
        self.named(&format!("{field}.credentialsRef"), &basic.credentials_ref.name.0)
    }

    fn named(&self, field: &str, name: &str) -> Outcome {
        for faulty in &self.catalogue.faulty_credentials {
            match faulty.name.as_deref() {
                Some(known) if known == name => {
                    let reason = format!("credential \"{name}\" cannot be used: {}", faulty.reason);
                    return self.problem(&format!("{field}.name"), reason);
                }
                // It may have this name when the context is used.
                Some(known) if is_reference(known) => return Ok(()),
                _ => {}
            }
        }
        let known = || self.catalogue.credentials.iter().map(|credential| credential.name.0.as_str());
        if is_reference(name) || known().any(|known| known == name || is_reference(known)) {
            return Ok(());
        }
        let known: Vec<_> = known().collect();
        let there = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        self.problem(
            &format!("{field}.name"),
            format!("there is no credential \"{name}\" under credentials; there is {there}"),
        )
    }
}

/// Parses a proxy block, with the names of credentials instead of their values.
pub fn parse_proxy(field: &str, proxy: &Proxy) -> Result<Proxies<String>, ProxyError> {
    let known = |text: &'_ Option<String>| text.clone().filter(|text| !is_reference(text));
    let (http, https, no_proxy) = (known(&proxy.http), known(&proxy.https), known(&proxy.no_proxy));
    let fields =
        ProxyFields { http: http.as_deref(), https: https.as_deref(), no_proxy: no_proxy.as_deref() };
    let auth = proxy.auth.as_ref().map(|auth| auth.basic.credentials_ref.name.0.clone());
    Proxies::parse(field, fields, auth)
}
