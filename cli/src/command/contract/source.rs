//! Loads the contract that an argument names.

use std::path::Path;

use declarest_core::bundle::registry_login;
use declarest_core::contract::{ContractSource, Loaded, Loading, OciSource, read_local};
use declarest_core::proxy::Proxy;
use url::Url;

use crate::error::Failure;
use crate::invocation::Invocation;

/// Loads `oci://…`, an http or https URL, or a local file or directory.
pub async fn load(text: &str, invocation: &Invocation) -> Result<Loaded, Failure> {
    let source = match text.split_once("://").map(|(scheme, _)| scheme) {
        Some("oci") => ContractSource::Oci(OciSource::parse(text)?),
        Some("http" | "https") => {
            let url = Url::parse(text);
            ContractSource::Url(url.map_err(|error| Failure::invalid(format!("contract URL: {error}")))?)
        }
        Some(scheme) => {
            let message = format!("\"{scheme}\" is not a scheme of a contract; use oci, https or a path");
            return Err(Failure::invalid(message));
        }
        None => return Ok(read_local(Path::new(text))?),
    };
    fetch(&source, invocation).await
}

/// Loads a contract with the proxy of the environment and the logins of Docker.
pub async fn fetch(source: &ContractSource, invocation: &Invocation) -> Result<Loaded, Failure> {
    let environment = &invocation.environment;
    let proxy = Proxy::from_environment(|name| environment.get(name).map(str::to_owned))?;
    let login = registry_login(|name| environment.get(name).map(Into::into));
    let loading = Loading { proxy, login, access: None };
    Ok(source.load(&loading, None).await?)
}
