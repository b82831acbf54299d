//! Discovery documents: the served groups, versions and resources.

use serde_json::{Value, json};

use super::resource::{Registry, ResourceType};
use super::status_error::StatusError;

/// The Kubernetes version whose behavior this API follows.
const MAJOR: &str = "1";
const MINOR: &str = "36";

/// `/version`
pub(crate) fn version() -> Value {
    json!({
        "major": MAJOR,
        "minor": MINOR,
        "gitVersion": format!("v{MAJOR}.{MINOR}.0+declarest"),
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": "rustc",
        "platform": format!("{}/{}", std::env::consts::OS, std::env::consts::ARCH),
    })
}

/// `/api`
pub(crate) fn core_versions() -> Value {
    json!({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []})
}

/// `/apis`
pub(crate) fn groups(registry: &Registry) -> Value {
    let mut names: Vec<&str> = Vec::new();
    for resource in registry.iter().filter(|resource| !resource.group.is_empty()) {
        if !names.contains(&resource.group.as_str()) {
            names.push(&resource.group);
        }
    }
    let groups: Vec<Value> = names.into_iter().filter_map(|name| describe_group(registry, name)).collect();
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
}

/// `/apis/<group>`
pub(crate) fn group(registry: &Registry, name: &str) -> Result<Value, StatusError> {
    let mut group = describe_group(registry, name).ok_or_else(StatusError::unknown_path)?;
    group["kind"] = json!("APIGroup");
    group["apiVersion"] = json!("v1");
    Ok(group)
}

fn describe_group(registry: &Registry, name: &str) -> Option<Value> {
    let mut versions: Vec<&str> = Vec::new();
    for resource in registry.iter().filter(|resource| resource.group == name) {
        if !versions.contains(&resource.version.as_str()) {
            versions.push(&resource.version);
        }
    }
    let version = |version: &&str| json!({"groupVersion": format!("{name}/{version}"), "version": version});
    let preferred = version(versions.first()?);
    let versions: Vec<Value> = versions.iter().map(version).collect();
    (!name.is_empty()).then(|| json!({"name": name, "versions": versions, "preferredVersion": preferred}))
}

/// `/api/v1`, `/apis/<group>/<version>`
pub(crate) fn resources(registry: &Registry, group: &str, version: &str) -> Result<Value, StatusError> {
    let served: Vec<&ResourceType> = registry
        .iter()
        .filter(|resource| resource.group == group && resource.version == version)
        .map(AsRef::as_ref)
        .collect();
    let Some(first) = served.first() else { return Err(StatusError::unknown_path()) };
    let mut resources = Vec::new();
    for resource in &served {
        let mut entry = json!({
            "name": resource.plural,
            "singularName": resource.singular,
            "namespaced": resource.namespaced,
            "kind": resource.kind,
            "verbs": ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
        });
        for (key, values) in [("shortNames", &resource.short_names), ("categories", &resource.categories)] {
            if !values.is_empty() {
                entry[key] = json!(values);
            }
        }
        resources.push(entry);
        if resource.has_status {
            resources.push(json!({
                "name": format!("{}/status", resource.plural),
                "singularName": "",
                "namespaced": resource.namespaced,
                "kind": resource.kind,
                "verbs": ["get", "patch", "update"],
            }));
        }
    }
    let group_version = first.api_version();
    Ok(json!({
        "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": resources,
    }))
}
