//! Parses the path and the query of a request.

use std::sync::Arc;

use super::admit::FieldValidation;
use super::engine::{Endpoint, Target, WriteOptions};
use super::resource::{Registry, ResourceType};
use super::status_error::StatusError;

/// The endpoint that a path addresses.
#[derive(Debug)]
pub(crate) enum Route {
    Version,
    /// `/healthz`, `/livez`, `/readyz`.
    Health,
    /// `/api`
    CoreVersions,
    /// `/apis`
    Groups,
    /// `/apis/<group>`
    Group(String),
    /// `/api/v1`, `/apis/<group>/<version>`
    Resources {
        group: String,
        version: String,
    },
    /// The objects of a type, in one namespace or in all.
    Collection {
        resource: Arc<ResourceType>,
        namespace: Option<String>,
    },
    Object(Target),
}

impl Route {
    pub(crate) fn parse(registry: &Registry, path: &str) -> Result<Self, StatusError> {
        let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
        match segments.as_slice() {
            ["version"] => Ok(Self::Version),
            ["healthz" | "livez" | "readyz", ..] => Ok(Self::Health),
            ["api"] => Ok(Self::CoreVersions),
            ["apis"] => Ok(Self::Groups),
            ["apis", group] => Ok(Self::Group((*group).to_owned())),
            ["api", version] => Ok(Self::Resources { group: String::new(), version: (*version).to_owned() }),
            ["apis", group, version] => {
                Ok(Self::Resources { group: (*group).to_owned(), version: (*version).to_owned() })
            }
            ["api", version, rest @ ..] => Self::resource(registry, "", version, rest),
            ["apis", group, version, rest @ ..] => Self::resource(registry, group, version, rest),
            _ => Err(StatusError::unknown_path()),
        }
    }

    fn resource(registry: &Registry, group: &str, version: &str, rest: &[&str]) -> Result<Self, StatusError> {
        let find = |plural: &str| registry.find(group, version, plural).cloned();
        let (namespace, rest) = match rest {
            // `/namespaces/<name>` is a namespace object. If a served plural follows, it is a scope.
            ["namespaces", namespace, plural, ..] if find(plural).is_some_and(|found| found.namespaced) => {
                (Some(*namespace), &rest[2..])
            }
            rest => (None, rest),
        };
        let [plural, rest @ ..] = rest else { return Err(StatusError::unknown_path()) };
        let resource = find(plural).ok_or_else(StatusError::unknown_path)?;
        if rest.is_empty() {
            return Ok(Self::Collection { resource, namespace: namespace.map(str::to_owned) });
        }
        if resource.namespaced && namespace.is_none() {
            return Err(StatusError::unknown_path());
        }
        let (name, endpoint) = match rest {
            [name] => (*name, Endpoint::Main),
            [name, "status"] if resource.has_status => (*name, Endpoint::Status),
            _ => return Err(StatusError::unknown_subresource()),
        };
        let namespace = namespace.unwrap_or_default().to_owned();
        Ok(Self::Object(Target { resource, namespace, name: name.to_owned(), endpoint }))
    }
}

/// The query parameters that this API supports.
#[derive(Clone, Debug, Default)]
pub(crate) struct Query {
    pub watch: bool,
    pub label_selector: String,
    pub field_selector: String,
    pub resource_version: String,
    pub bookmarks: bool,
    pub send_initial_events: bool,
    pub timeout_seconds: Option<u64>,
    /// `includeObject` of table requests.
    pub include_object: String,
    pub propagation_policy: String,
    pub write: WriteOptions,
}

impl Query {
    pub(crate) fn parse(query: &str) -> Result<Self, StatusError> {
        let mut parsed = Self::default();
        let flag = |value: &str| matches!(value, "true" | "1");
        for (name, value) in url::form_urlencoded::parse(query.as_bytes()) {
            match name.as_ref() {
                "watch" => parsed.watch = flag(&value),
                "labelSelector" => parsed.label_selector = value.into_owned(),
                "fieldSelector" => parsed.field_selector = value.into_owned(),
                "resourceVersion" => parsed.resource_version = value.into_owned(),
                "allowWatchBookmarks" => parsed.bookmarks = flag(&value),
                "sendInitialEvents" => parsed.send_initial_events = flag(&value),
                "timeoutSeconds" => parsed.timeout_seconds = value.parse().ok(),
                "includeObject" => parsed.include_object = value.into_owned(),
                "propagationPolicy" => parsed.propagation_policy = value.into_owned(),
                "fieldManager" => parsed.write.manager = value.into_owned(),
                "force" => parsed.write.force = flag(&value),
                "dryRun" if value == "All" => parsed.write.dry_run = true,
                "dryRun" if value.is_empty() => {}
                "dryRun" => return Err(StatusError::bad_request(format!("dryRun={value} is not supported"))),
                "fieldValidation" => {
                    parsed.write.validation = match value.as_ref() {
                        "Ignore" => FieldValidation::Ignore,
                        "Strict" => FieldValidation::Strict,
                        _ => FieldValidation::Warn,
                    };
                }
                // Others are ignored: pagination, because a list is always complete, and pretty-printing.
                _ => {}
            }
        }
        Ok(parsed)
    }

    /// Returns the revision that a watch or list requests. 0 means any; it is the default.
    pub(crate) fn revision(&self) -> Result<u64, StatusError> {
        match self.resource_version.as_str() {
            "" => Ok(0),
            text => text.parse().map_err(|_| StatusError::malformed_revision(text, self.watch)),
        }
    }
}
