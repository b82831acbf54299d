//! Reads the TLS and proxy settings of a spec and their Secrets.

use declarest_core::bundle::RegistryLogin;
use declarest_core::proxy::{Proxy, ProxyCredentials, ProxyFields};
use declarest_core::transport::{Pem, TlsConfig, TlsError};

use super::error::Failure;
use super::references::SecretReader;
use crate::crd::{self, LocalRef, SecretKeyRef, Tls};

/// The key of a Secret of the type kubernetes.io/dockerconfigjson.
const DOCKER_CONFIG: &str = ".dockerconfigjson";

/// Reads the TLS settings in `field` of a spec.
///
/// # Errors
/// `DependencyInvalid` with the field if a Secret is missing or does not hold a certificate or key.
pub async fn tls(secrets: &mut SecretReader, field: &str, spec: Option<&Tls>) -> Result<TlsConfig, Failure> {
    let Some(spec) = spec else { return Ok(TlsConfig::default()) };
    let unusable = |error: TlsError| Failure::dependency_invalid(error.to_string());
    let [authorities, certificate, key] =
        ["caCertRef", "clientCertRef", "clientKeyRef"].map(|name| format!("{field}.{name}"));
    let mut tls = TlsConfig::default();
    if let Some(pem) = secrets.optional(&authorities, spec.ca_cert_ref.as_ref()).await? {
        let pem = Pem { origin: &authorities, text: pem.expose().as_bytes() };
        tls = TlsConfig::trusting(pem).map_err(unusable)?;
    }
    if spec.insecure_skip_verify {
        tls = TlsConfig::insecure();
    }
    let presented = secrets.optional(&certificate, spec.client_cert_ref.as_ref()).await?;
    let presented_key = secrets.optional(&key, spec.client_key_ref.as_ref()).await?;
    let (Some(presented), Some(presented_key)) = (presented, presented_key) else { return Ok(tls) };
    let presented = Pem { origin: &certificate, text: presented.expose().as_bytes() };
    let presented_key = Pem { origin: &key, text: presented_key.expose().as_bytes() };
    tls.presenting(presented, presented_key).map_err(unusable)
}

/// Reads the credentials for registries in the Secret that `field` of a spec names. Without it, requests are anonymous.
///
/// # Errors
/// `DependencyInvalid` if the Secret or its key is missing.
pub async fn login(
    secrets: &mut SecretReader,
    field: &str,
    reference: Option<&LocalRef>,
) -> Result<RegistryLogin, Failure> {
    let Some(LocalRef { name }) = reference else { return Ok(RegistryLogin::Anonymous) };
    let secret = SecretKeyRef { name: name.clone(), key: DOCKER_CONFIG.to_owned() };
    let content = secrets.value(field, &secret).await?;
    Ok(RegistryLogin::Content(format!("Secret {name}"), content))
}

/// The event of a proxy that cannot be used.
const PROXY_CONFIG_FAILED: &str = "ProxyConfigFailed";

/// Returns the proxy of the operator's environment.
///
/// # Errors
/// `SpecInvalid` if a variable is invalid.
pub fn environment_proxy() -> Result<Proxy, Failure> {
    Proxy::from_environment(|name| std::env::var(name).ok()).map_err(|error| {
        Failure::spec_invalid(format!("the operator's environment: {error}")).with_event(PROXY_CONFIG_FAILED)
    })
}

/// Reads the proxy in `field` of a spec; missing fields are taken from the environment.
///
/// # Errors
/// `SpecInvalid` if the settings contradict each other, `DependencyInvalid` if a Secret is missing.
pub async fn proxy(
    secrets: &mut SecretReader,
    field: &str,
    spec: Option<&crd::Proxy>,
) -> Result<Proxy, Failure> {
    let environment = environment_proxy()?;
    let Some(spec) = spec else { return Ok(environment) };
    let configured = configured(secrets, field, spec).await;
    configured
        .map(|proxy| proxy.over(&environment))
        .map_err(|failure| failure.with_event(PROXY_CONFIG_FAILED))
}

async fn configured(secrets: &mut SecretReader, field: &str, spec: &crd::Proxy) -> Result<Proxy, Failure> {
    let auth = match &spec.auth {
        None => None,
        Some(basic) => {
            let username = secrets.value(&format!("{field}.auth.usernameRef"), &basic.username_ref).await?;
            let password = secrets.value(&format!("{field}.auth.passwordRef"), &basic.password_ref).await?;
            Some(ProxyCredentials { username: username.expose().to_owned(), password })
        }
    };
    let fields = ProxyFields {
        http: spec.http_url.as_deref(),
        https: spec.https_url.as_deref(),
        no_proxy: spec.no_proxy.as_deref(),
    };
    Proxy::parse(field, fields, auth).map_err(|error| Failure::spec_invalid(error.to_string()))
}
