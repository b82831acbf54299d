//! Resolved contexts: references replaced, overrides applied, defaults set. Also creates the components of a context,
//! such as clients and proxies.

use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use declarest_core::proxy::{Proxy as Proxies, ProxyCredentials};
use declarest_core::repository::{Remote, RemoteAuth, RemoteUrl};
use declarest_core::secrets::Secret;
use declarest_core::server::{
    Auth, BaseUrl, Client, Gate, Grant, HeaderCredential, OAuth2 as ServerOAuth2, RequestObserver,
    Settings as ServerSettings, Throttling,
};
use declarest_core::transport::{TlsConfig, TlsFiles};

use super::catalogue::Stored;
use super::checks::{check_context, parse_proxy};
use super::credential::Credentials;
use super::error::CatalogueError;
use super::model::{
    Context, Git, GitAuth, Http, HttpAuth, OAuth2, Proxy, RequestThrottling, SecretStore, Tls,
};
use super::overrides;
use super::secrets::secrets_of;
use super::section::Setting as _;
use super::statuses::Statuses;
use super::value::{Count, GrantType, Text};
use super::warnings;
use crate::environment::Environment;
use crate::error::Failure;
use crate::output::Messages;

const NEEDED_BY_PASSWORD: &str = "is missing; grantType password needs it";

/// The place of a context's resources.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RepositoryPlace {
    /// A plain directory.
    Filesystem { base_dir: PathBuf },
    /// A Git checkout.
    Git {
        base_dir: PathBuf,
        /// Whether to create the checkout if it is missing.
        auto_init: bool,
        /// Whether to push commits.
        auto_sync: bool,
    },
}

/// The place of a context's metadata.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MetadataSource {
    /// In a directory: that of the repository or another one.
    Directory(PathBuf),
    /// In a published bundle.
    Bundle(String),
    /// In a bundle in a file.
    BundleFile(PathBuf),
    /// Nowhere: there is neither metadata nor a repository.
    None,
}

/// A component that can use a proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProxiedComponent {
    Server,
    Git,
    Vault,
    Metadata,
}

/// A resolved context.
#[derive(Debug)]
pub struct ResolvedContext {
    pub name: String,
    /// The settings, with references replaced and overrides applied.
    pub context: Context,
    pub(super) credentials: Credentials,
    pub(super) messages: Messages,
    /// The proxies of the components, with the names of their credentials.
    proxies: [Proxies<String>; 4],
    /// The statuses of the answers to all clients of the managed server.
    pub statuses: Arc<Statuses>,
}

impl ResolvedContext {
    /// Resolves the context `wanted`, or the current one.
    pub fn new(
        stored: &Stored,
        wanted: Option<&str>,
        set: &[String],
        environment: &Environment,
        messages: &Messages,
    ) -> Result<Self, Failure> {
        let (catalogue, mut context) = stored.expanded(wanted, environment)?;
        let name = context.name.0.clone();
        overrides::apply(&mut context, set)?;
        check_context("", &context, &catalogue).map_err(|problem| problem.of(name.as_str()))?;
        default_metadata(&mut context);
        messages.hide(secrets_of(context.write().unwrap_or_default()));
        Ok(Self {
            proxies: proxies(&context, environment)?,
            credentials: Credentials::new(catalogue.credentials, environment, messages),
            messages: messages.clone(),
            statuses: Arc::default(),
            name,
            context,
        })
    }

    /// Returns warnings about insecure settings, in a fixed order.
    pub fn warnings(&self) -> Vec<String> {
        warnings::of(&self.context)
    }

    /// Returns the place of the resources.
    pub fn repository(&self) -> Result<RepositoryPlace, CatalogueError> {
        let repository = self.context.repository.as_ref();
        if let Some(filesystem) = repository.and_then(|repository| repository.filesystem.as_ref()) {
            return Ok(RepositoryPlace::Filesystem { base_dir: (&*filesystem.base_dir.0).into() });
        }
        let git = self.git().ok_or_else(|| self.missing("repository", "repository"))?;
        let auto_sync = git.remote.as_ref().and_then(|remote| remote.auto_sync).unwrap_or(true);
        Ok(RepositoryPlace::Git {
            base_dir: (&*git.local.base_dir.0).into(),
            auto_init: git.local.auto_init.unwrap_or(true),
            auto_sync,
        })
    }

    fn git(&self) -> Option<&Git> {
        self.context.repository.as_ref()?.git.as_ref()
    }

    /// Returns the remote of the repository without credentials, for work that does not contact it, or `None` without a
    /// remote.
    pub fn git_origin(&self) -> Result<Option<Remote>, Failure> {
        let Some(remote) = self.git().and_then(|git| git.remote.as_ref()) else { return Ok(None) };
        Ok(Some(Remote {
            url: RemoteUrl::parse_local_allowed(&remote.url.0)?,
            branch: remote.branch.as_ref().map_or("main", |branch| branch.0.as_str()).to_owned(),
            auth: RemoteAuth::None,
            tls: TlsConfig::default(),
            proxy: Proxies::default(),
        }))
    }

    /// Returns the remote of the repository with its credentials, or `None` if there is no remote. Prompts for
    /// credentials if necessary.
    pub fn git_remote(&self) -> Result<Option<Remote>, Failure> {
        let Some(remote) = self.git().and_then(|git| git.remote.as_ref()) else { return Ok(None) };
        let Some(origin) = self.git_origin()? else { return Ok(None) };
        Ok(Some(Remote {
            auth: remote.auth.as_ref().map_or(Ok(RemoteAuth::None), |auth| self.git_auth(auth))?,
            tls: TlsConfig::from_files(&tls_files(remote.tls.as_ref()))?,
            proxy: self.proxy(ProxiedComponent::Git)?,
            ..origin
        }))
    }

    fn git_auth(&self, auth: &GitAuth) -> Result<RemoteAuth, Failure> {
        const FIELD: &str = "repository.git.remote.auth.ssh";
        if let Some(basic) = &auth.basic {
            let login = self.credentials.login(&basic.credentials_ref.name.0)?;
            let user = Some(login.username.expose().to_owned());
            return Ok(RemoteAuth::Token { user, token: login.password });
        }
        if let Some(key) = &auth.access_key {
            // Git hosts ignore the user name of a token.
            return Ok(RemoteAuth::Token { user: Some("token".to_owned()), token: key.token.0.clone() });
        }
        let Some(ssh) = &auth.ssh else { return Ok(RemoteAuth::None) };
        let Some(key_file) = &ssh.private_key_file else {
            let field = format!("{FIELD}.privateKeyFile");
            return Err(self.setting(&field, "is missing; name a key file").into());
        };
        let known_hosts = ssh.known_hosts_file.as_ref();
        let known_hosts = known_hosts.map(|file| self.read(&format!("{FIELD}.knownHostsFile"), &file.0));
        Ok(RemoteAuth::Ssh {
            user: ssh.user.as_ref().map(|user| user.0.clone()),
            private_key: Secret::from(self.read(&format!("{FIELD}.privateKeyFile"), &key_file.0)?),
            passphrase: ssh.passphrase.as_ref().map(|passphrase| passphrase.0.clone()),
            known_hosts: known_hosts.transpose()?,
            insecure_ignore_host_key: ssh.insecure_ignore_host_key.unwrap_or_default(),
        })
    }

    /// Returns the place of the metadata.
    pub fn metadata(&self) -> MetadataSource {
        let metadata = self.context.metadata.as_ref();
        let said = metadata.and_then(|metadata| {
            let directory =
                metadata.base_dir.as_ref().map(|text| MetadataSource::Directory((&*text.0).into()));
            let bundle = || metadata.bundle.as_ref().map(|text| MetadataSource::Bundle(text.0.clone()));
            let file =
                || metadata.bundle_file.as_ref().map(|text| MetadataSource::BundleFile((&*text.0).into()));
            directory.or_else(bundle).or_else(file)
        });
        said.unwrap_or(MetadataSource::None)
    }

    /// Returns the settings of the secret store.
    pub fn secret_store(&self) -> Result<&SecretStore, CatalogueError> {
        self.context.secret_store.as_ref().ok_or_else(|| self.missing("secret provider", "secretStore"))
    }

    /// Returns the proxy of a component with its credentials. Prompts for credentials if necessary.
    pub fn proxy(&self, component: ProxiedComponent) -> Result<Proxies, Failure> {
        self.proxies[component as usize].clone().try_map_auth(|name| {
            let login = self.credentials.login(&name)?;
            Ok(ProxyCredentials { username: login.username.expose().to_owned(), password: login.password })
        })
    }

    /// Returns a client of the managed server.
    pub fn server(&self, parallel: Option<NonZero<u32>>) -> Result<Client, Failure> {
        let http = self.http()?;
        let base_url = BaseUrl::parse(&http.url.0)?;
        let settings = ServerSettings {
            base_url,
            auth: http.auth.as_ref().map_or(Ok(Auth::None), |auth| self.server_auth(auth))?,
            tls: tls_files(http.tls.as_ref()).into(),
            proxy: self.server_proxy(http)?,
            default_headers: http.default_headers.clone().into_iter().collect(),
            health_check: http.health_check.as_ref().map(|check| check.0.clone()),
            cross_origin_redirects: true,
            trace: self.messages.trace(),
        };
        let mut throttling = throttling(http.request_throttling.as_ref());
        if let Some(parallel) = parallel {
            throttling.max_concurrent_requests = Some(parallel.get() as usize);
        }
        let gate = Gate::new(&throttling)?;
        let statuses = Arc::clone(&self.statuses) as Arc<dyn RequestObserver>;
        Ok(Client::new(settings, Arc::new(gate), Some(statuses))?)
    }

    /// Returns the proxy for the server, its token endpoint and its `OpenAPI` document.
    fn server_proxy(&self, http: &Http) -> Result<Proxies, Failure> {
        let token = http.oauth2().map(|oauth2| oauth2.token_url.0.as_str());
        let openapi = http.openapi.as_ref().map(|openapi| openapi.0.as_str());
        let targets = [Some(http.url.0.as_str()), token, openapi].into_iter().flatten();
        self.proxy_to(ProxiedComponent::Server, targets)
    }

    /// Returns the proxy of a component. Prompts for its credentials only if one of `targets`, the known request
    /// targets, uses it.
    pub(super) fn proxy_to<'a>(
        &self,
        component: ProxiedComponent,
        mut targets: impl Iterator<Item = &'a str>,
    ) -> Result<Proxies, Failure> {
        let proxies = &self.proxies[component as usize];
        let is_served = |target: &str| {
            url::Url::parse(target.trim()).is_ok_and(|target| proxies.serving(&target).is_some())
        };
        if targets.any(is_served) { self.proxy(component) } else { Ok(proxies.clone().without_auth()) }
    }

    fn server_auth(&self, auth: &HttpAuth) -> Result<Auth, Failure> {
        if let Some(basic) = &auth.basic {
            let login = self.credentials.login(&basic.credentials_ref.name.0)?;
            return Ok(Auth::Basic { username: login.username, password: login.password });
        }
        if let Some(headers) = &auth.custom_headers {
            let credential = |header: &super::model::CustomHeader| HeaderCredential {
                header: header.header.0.clone(),
                prefix: header.prefix.clone().unwrap_or_default(),
                value: header.value.0.clone(),
            };
            return Ok(Auth::Headers(headers.iter().map(credential).collect()));
        }
        auth.oauth2.as_ref().map_or(Ok(Auth::None), |oauth2| Ok(Auth::OAuth2(self.oauth2(oauth2)?)))
    }

    fn oauth2(&self, settings: &OAuth2) -> Result<ServerOAuth2, CatalogueError> {
        const FIELD: &str = "managedServer.http.auth.oauth2";
        let text = |text: &Option<Text>| text.as_ref().map(|text| text.0.clone());
        let grant = match settings.grant_type {
            None | Some(GrantType::ClientCredentials) => Grant::ClientCredentials,
            Some(GrantType::Password) => match (&settings.username, &settings.password) {
                (Some(username), Some(password)) => Grant::Password {
                    username: Secret::from(username.0.clone()),
                    password: password.0.clone(),
                },
                (None, _) => return Err(self.setting(&format!("{FIELD}.username"), NEEDED_BY_PASSWORD)),
                (_, None) => return Err(self.setting(&format!("{FIELD}.password"), NEEDED_BY_PASSWORD)),
            },
        };
        Ok(ServerOAuth2 {
            token_url: settings.token_url.0.clone(),
            grant,
            client_id: Secret::from(settings.client_id.0.clone()),
            client_secret: settings.client_secret.0.clone(),
            scope: text(&settings.scope),
            audience: text(&settings.audience),
        })
    }

    /// Returns the settings of the managed server.
    pub fn http(&self) -> Result<&Http, CatalogueError> {
        let server = self.context.managed_server.as_ref();
        Ok(&server.ok_or_else(|| self.missing("managed server", "managedServer"))?.http)
    }

    /// Reads the file that a setting names.
    fn read(&self, field: &str, file: &str) -> Result<String, CatalogueError> {
        std::fs::read_to_string(Path::new(file))
            .map_err(|error| self.setting(field, &format!("cannot read {file}: {error}")))
    }

    pub(super) fn setting(&self, field: &str, reason: &str) -> CatalogueError {
        let (context, field) = (self.name.clone(), field.to_owned());
        CatalogueError::Setting { context, field, reason: reason.to_owned() }
    }

    fn missing(&self, capability: &'static str, field: &'static str) -> CatalogueError {
        CatalogueError::Missing { context: self.name.clone(), capability, field }
    }
}

/// Sets the default of metadata: the directory of the repository.
fn default_metadata(context: &mut Context) {
    let base_dir = context.repository.as_ref().and_then(|repository| repository.base_dir()).cloned();
    let metadata = context.metadata.get_or_insert_default();
    if metadata.bundle.is_none() && metadata.bundle_file.is_none() && metadata.base_dir.is_none() {
        metadata.base_dir = base_dir;
    }
}

/// Returns the proxy of each [`ProxiedComponent`]. Components without a block use that of the first component with one,
/// otherwise that of the environment.
fn proxies(context: &Context, environment: &Environment) -> Result<[Proxies<String>; 4], Failure> {
    let server = context.managed_server.as_ref().and_then(|server| server.http.proxy.as_ref());
    let git = context.repository.as_ref().and_then(|repository| repository.git.as_ref());
    let git = git.and_then(|git| git.remote.as_ref()?.proxy.as_ref());
    let vault = context.secret_store.as_ref().and_then(|store| store.vault.as_ref());
    let vault = vault.and_then(|vault| vault.proxy.as_ref());
    let metadata = context.metadata.as_ref().and_then(|metadata| metadata.proxy.as_ref());
    let block = |field: &str, proxy: Option<&Proxy>| proxy.map(|proxy| parse_proxy(field, proxy)).transpose();
    let blocks = [
        block("managedServer.http.proxy", server)?,
        block("repository.git.remote.proxy", git)?,
        block("secretStore.vault.proxy", vault)?,
        block("metadata.proxy", metadata)?,
    ];
    let base = Proxies::from_environment(|name| environment.get(name).map(str::to_owned))?;
    Ok(Proxies::resolve(&base, blocks))
}

fn throttling(settings: Option<&RequestThrottling>) -> Throttling {
    let Some(settings) = settings else { return Throttling::default() };
    let set = |count: Option<Count>| count.map(|count| count.0).filter(|count| *count > 0);
    Throttling {
        max_concurrent_requests: set(settings.max_concurrent_requests).map(|count| count as usize),
        queue_size: settings.queue_size.map(|count| count.0 as usize),
        requests_per_second: settings.requests_per_second.map(|rate| rate.0).filter(|rate| *rate > 0.0),
        burst: set(settings.burst),
    }
}

pub(super) fn tls_files(tls: Option<&Tls>) -> TlsFiles {
    let Some(tls) = tls else { return TlsFiles::default() };
    let file = |text: &Option<Text>| text.as_ref().map(|text| PathBuf::from(&*text.0));
    TlsFiles {
        ca_cert_file: file(&tls.ca_cert_file),
        client_cert_file: file(&tls.client_cert_file),
        client_key_file: file(&tls.client_key_file),
        insecure_skip_verify: tls.insecure_skip_verify.unwrap_or_default(),
    }
}
