//! `--set key=value`: overrides for one run, which are never saved.

use super::error::CatalogueError;
use super::model::Context;
use super::value::{HttpUrl, Text};

/// The keys that `--set` supports.
const KEYS: [&str; 10] = [
    "managedServer.http.healthCheck",
    "managedServer.http.proxy.http",
    "managedServer.http.proxy.https",
    "managedServer.http.proxy.noProxy",
    "managedServer.http.url",
    "metadata.baseDir",
    "metadata.bundle",
    "metadata.bundleFile",
    "repository.filesystem.baseDir",
    "repository.git.local.baseDir",
];

/// Applies overrides in their order, so the last one of a key, and of the sources of metadata, is used.
pub fn apply(context: &mut Context, overrides: &[String]) -> Result<(), CatalogueError> {
    for text in overrides {
        let (key, result) = match text.split_once('=') {
            Some((key, value)) => (key.trim(), set(context, key.trim(), value.trim())),
            None => (text.as_str(), Err("write it as key=value".to_owned())),
        };
        result.map_err(|reason| CatalogueError::Override { key: key.to_owned(), reason })?;
    }
    Ok(())
}

fn set(context: &mut Context, key: &str, value: &str) -> Result<(), String> {
    if let Some(field) = key.strip_prefix("metadata.").filter(|_| KEYS.contains(&key)) {
        set_metadata(context, field, value);
        return Ok(());
    }
    if let Some(field) = key.strip_prefix("managedServer.http.").filter(|_| KEYS.contains(&key)) {
        return set_server(context, field, value);
    }
    let repository = context.repository.as_mut();
    let place = match key {
        "repository.filesystem.baseDir" => {
            repository.and_then(|repository| repository.filesystem.as_mut()).map(|found| &mut found.base_dir)
        }
        "repository.git.local.baseDir" => {
            repository.and_then(|repository| repository.git.as_mut()).map(|found| &mut found.local.base_dir)
        }
        _ => return Err(format!("cannot be set; the keys are {}", KEYS.join(", "))),
    };
    *place.ok_or_else(|| missing(key))? = required(value)?;
    Ok(())
}

fn missing(key: &str) -> String {
    let block = key.rsplit_once('.').map_or(key, |(block, _)| block);
    format!("the context has no {block}")
}

fn required(value: &str) -> Result<Text, String> {
    optional(value).ok_or_else(|| "must not be empty".to_owned())
}

fn optional(value: &str) -> Option<Text> {
    (!value.is_empty()).then(|| Text(value.to_owned()))
}

fn set_server(context: &mut Context, field: &str, value: &str) -> Result<(), String> {
    let http = match context.managed_server.as_mut() {
        Some(server) => &mut server.http,
        None => return Err(missing("managedServer.http.url")),
    };
    let text = Some(value.to_owned()).filter(|value| !value.is_empty());
    match field {
        "url" => {
            HttpUrl::check(value)?;
            http.url = HttpUrl(value.to_owned());
        }
        "healthCheck" => http.health_check = optional(value),
        "proxy.http" => http.proxy.get_or_insert_default().http = text,
        "proxy.https" => http.proxy.get_or_insert_default().https = text,
        _ => http.proxy.get_or_insert_default().no_proxy = text,
    }
    Ok(())
}

/// Sets a source of metadata and removes the others. An empty value only removes this source.
fn set_metadata(context: &mut Context, field: &str, value: &str) {
    let metadata = context.metadata.get_or_insert_default();
    let value = optional(value);
    if value.is_some() {
        (metadata.base_dir, metadata.bundle, metadata.bundle_file) = (None, None, None);
    }
    match field {
        "baseDir" => metadata.base_dir = value,
        "bundle" => metadata.bundle = value,
        _ => metadata.bundle_file = value,
    }
}
