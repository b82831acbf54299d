//! Handles requests: finds the verb of a request, runs it, and returns the response.

use std::sync::Arc;

use http::header::{ACCEPT, CONTENT_TYPE, USER_AGENT};
use http::{HeaderMap, Method, Request, Response, StatusCode};
use hyper::body::Bytes;
use serde_json::{Value, json};

use super::engine::{DeleteOptions, Endpoint, Engine, Propagation, Target, Written};
use super::object::meta;
use super::patch::{PatchType, patch};
use super::removal::Deleted;
use super::render::{Body, Representation, plain, refuse, respond};
use super::resource::{Family, ResourceType};
use super::route::{Query, Route};
use super::selector::Selector;
use super::status_error::StatusError;
use super::{discovery, events, watch};

/// Handles `request`. Errors become responses.
pub(crate) async fn handle(engine: Arc<Engine>, request: Request<Bytes>) -> Response<Body> {
    answer(engine, request).await.unwrap_or_else(|error| refuse(&error))
}

async fn answer(engine: Arc<Engine>, request: Request<Bytes>) -> Result<Response<Body>, StatusError> {
    // Find what the request asks for.
    let route = Route::parse(&engine.registry, request.uri().path())?;
    let mut query = Query::parse(request.uri().query().unwrap_or_default())?;
    if query.write.manager.is_empty() {
        query.write.manager = default_manager(request.headers());
    }
    // Respond.
    match route {
        Route::Collection { resource, namespace } => {
            collection(engine, request, query, resource, namespace).await
        }
        Route::Object(target) => object(engine, request, query, target).await,
        _ if request.method() != Method::GET => Err(StatusError::method_not_allowed()),
        Route::Health => Ok(plain(StatusCode::OK, "ok")),
        Route::Version => Ok(respond(StatusCode::OK, &discovery::version(), &[])),
        Route::CoreVersions => Ok(respond(StatusCode::OK, &discovery::core_versions(), &[])),
        Route::Groups => Ok(respond(StatusCode::OK, &discovery::groups(&engine.registry), &[])),
        Route::Group(group) => Ok(respond(StatusCode::OK, &discovery::group(&engine.registry, &group)?, &[])),
        Route::Resources { group, version } => {
            let resources = discovery::resources(&engine.registry, &group, &version)?;
            Ok(respond(StatusCode::OK, &resources, &[]))
        }
    }
}

/// Returns the field manager of a client that does not set one: its program, as in kube-apiserver.
fn default_manager(headers: &HeaderMap) -> String {
    let agent = headers.get(USER_AGENT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    agent.split('/').next().unwrap_or_default().chars().take(128).collect()
}

fn representation(request: &Request<Bytes>, query: &Query) -> Result<Representation, StatusError> {
    let accept: Vec<&str> =
        request.headers().get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok()).collect();
    Representation::negotiate(&accept.join(","), &query.include_object)
}

async fn collection(
    engine: Arc<Engine>,
    request: Request<Bytes>,
    query: Query,
    resource: Arc<ResourceType>,
    namespace: Option<String>,
) -> Result<Response<Body>, StatusError> {
    let representation = representation(&request, &query)?;
    // Without a namespace, the collection of a custom resource can only be read.
    if resource.is_custom() && resource.namespaced && namespace.is_none() && request.method() != Method::GET {
        return Err(StatusError::unknown_path());
    }
    match *request.method() {
        Method::GET => {
            let selector = selector(&resource, &query)?;
            if query.watch {
                return watch::start(watch::WatchRequest {
                    engine,
                    resource,
                    namespace,
                    selector,
                    representation,
                    query,
                });
            }
            query.revision()?;
            let (mut objects, revision) = engine.store.list(resource.table, namespace.as_deref());
            objects.retain(|object| selector.matches(object));
            Ok(respond(StatusCode::OK, &representation.list(&resource, &objects, revision), &[]))
        }
        Method::POST => {
            let object = body(&request)?;
            if resource.namespaced && namespace.is_none() {
                return Err(StatusError::method_not_allowed());
            }
            let namespace = namespace.unwrap_or_default();
            let created = Arc::clone(&resource);
            let written = blocking(&engine, move |engine| {
                let object = stored_form(&created, object)?;
                engine.create(stored_type(engine, &created), &namespace, object, &query.write)
            })
            .await?;
            Ok(written_response(&resource, representation, &written))
        }
        Method::DELETE => {
            let options = delete_options(&request, &query)?;
            let selector = selector(&resource, &query)?;
            let deleted = Arc::clone(&resource);
            let (objects, revision) = blocking(&engine, move |engine| {
                delete_collection(engine, &deleted, namespace.as_deref(), &selector, &options)
            })
            .await?;
            Ok(respond(StatusCode::OK, &representation.list(&resource, &objects, revision), &[]))
        }
        Method::PUT | Method::PATCH if resource.is_custom() => {
            Err(StatusError::bad_request("name must be provided"))
        }
        _ => Err(StatusError::method_not_allowed()),
    }
}

async fn object(
    engine: Arc<Engine>,
    request: Request<Bytes>,
    query: Query,
    target: Target,
) -> Result<Response<Body>, StatusError> {
    let representation = representation(&request, &query)?;
    let shown = Arc::clone(&target.resource);
    match *request.method() {
        Method::GET => {
            let object = engine.get(&target)?;
            Ok(respond(StatusCode::OK, &representation.object(&shown, &object, true), &[]))
        }
        Method::PUT => {
            let object = body(&request)?;
            let written = blocking(&engine, move |engine| {
                let object = stored_form(&target.resource, object)?;
                engine.update(&stored_target(engine, &target), object, &query.write)
            })
            .await?;
            Ok(written_response(&shown, representation, &written))
        }
        Method::PATCH => {
            let written = patch_object(&engine, &request, query, target).await?;
            Ok(written_response(&shown, representation, &written))
        }
        Method::DELETE if target.endpoint == Endpoint::Main => {
            if matches!(target.resource.family, Family::Namespace) {
                return Err(StatusError::method_not_allowed());
            }
            let options = delete_options(&request, &query)?;
            let deleted = blocking(&engine, move |engine| engine.delete(&target, &options)).await?;
            Ok(deleted_response(&shown, representation, &deleted))
        }
        _ => Err(StatusError::method_not_allowed()),
    }
}

async fn patch_object(
    engine: &Arc<Engine>,
    request: &Request<Bytes>,
    query: Query,
    target: Target,
) -> Result<Written, StatusError> {
    let kind = PatchType::of(&target.resource, content_type(request))?;
    let body = parse(request.body(), kind == PatchType::Apply)?;
    blocking(engine, move |engine| {
        let stored = stored_target(engine, &target);
        if kind == PatchType::Apply {
            let config = stored_form(&target.resource, body)?;
            return engine.apply(&stored, config, &query.write);
        }
        engine.patch(&stored, &query.write, |live| {
            let shown = events::shown(&target.resource, live);
            stored_form(&target.resource, patch(kind, &shown, &body)?)
        })
    })
    .await
}

/// Runs a write. With a state directory, it runs on a blocking thread because it waits for the disk. It is then
/// completed even if the client disconnects.
async fn blocking<T: Send + 'static>(
    engine: &Arc<Engine>,
    write: impl FnOnce(&Engine) -> Result<T, StatusError> + Send + 'static,
) -> Result<T, StatusError> {
    if !engine.store.is_durable() {
        return write(engine);
    }
    let engine = Arc::clone(engine);
    tokio::task::spawn_blocking(move || write(&engine)).await.map_err(StatusError::internal)?
}

/// Returns the type that objects of `resource` are stored as.
fn stored_type<'a>(engine: &'a Engine, resource: &'a Arc<ResourceType>) -> &'a Arc<ResourceType> {
    engine.registry.stored().find(|stored| stored.table == resource.table).unwrap_or(resource)
}

fn stored_target(engine: &Engine, target: &Target) -> Target {
    Target { resource: Arc::clone(stored_type(engine, &target.resource)), ..target.clone() }
}

/// Checks the API version of an object of a client, and converts the object to its stored form.
fn stored_form(resource: &ResourceType, object: Value) -> Result<Value, StatusError> {
    let given = object["apiVersion"].as_str().unwrap_or_default();
    if resource.is_events_view() && !given.is_empty() && given != resource.api_version() {
        return Err(StatusError::bad_request(format!(
            "the API version in the data ({given}) does not match the expected API version ({})",
            resource.api_version()
        )));
    }
    Ok(events::stored(resource, object))
}

fn selector(resource: &ResourceType, query: &Query) -> Result<Selector, StatusError> {
    let is_event = matches!(resource.family, Family::Event);
    // Selectors match the stored form of events.
    let fields = if resource.is_events_view() {
        query.field_selector.replace("regarding.", "involvedObject.")
    } else {
        query.field_selector.clone()
    };
    let selector = Selector::parse(&query.label_selector, &fields)?;
    let mut supported = vec!["metadata.name", "metadata.namespace"];
    if is_event {
        supported.extend([
            "involvedObject.apiVersion",
            "involvedObject.fieldPath",
            "involvedObject.kind",
            "involvedObject.name",
            "involvedObject.namespace",
            "involvedObject.resourceVersion",
            "involvedObject.uid",
            "reason",
            "reportingComponent",
            "source",
            "type",
        ]);
    }
    if matches!(resource.family, Family::Secret) {
        supported.push("type");
    }
    selector.check_fields(&supported)?;
    Ok(selector)
}

fn content_type(request: &Request<Bytes>) -> &str {
    request.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

/// Returns the object in the body of a create or update.
fn body(request: &Request<Bytes>) -> Result<Value, StatusError> {
    let media_type = content_type(request).split(';').next().unwrap_or_default().trim();
    match media_type {
        "" | "application/json" => parse(request.body(), false),
        "application/yaml" => parse(request.body(), true),
        _ => Err(StatusError::unsupported_media_type("application/json, application/yaml")),
    }
}

fn parse(bytes: &Bytes, is_yaml: bool) -> Result<Value, StatusError> {
    // JSON is valid YAML, and programs send JSON even if YAML is allowed.
    let parsed = serde_json::from_slice::<Value>(bytes);
    match parsed {
        Ok(value) => Ok(value),
        Err(_) if is_yaml => serde_saphyr::from_slice::<Value>(bytes).map_err(|error| {
            StatusError::bad_request(format!("the body is not YAML: {}", error.without_snippet()))
        }),
        Err(error) => Err(StatusError::bad_request(format!("the body is not JSON: {error}"))),
    }
}

fn delete_options(request: &Request<Bytes>, query: &Query) -> Result<DeleteOptions, StatusError> {
    let body = if request.body().is_empty() { json!({}) } else { parse(request.body(), false)? };
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let policy = text(&body["propagationPolicy"]).unwrap_or_else(|| query.propagation_policy.clone());
    let orphans = body["orphanDependents"] == true;
    let dry_run = body["dryRun"].as_array().is_some_and(|stages| stages.iter().any(|stage| stage == "All"));
    Ok(DeleteOptions {
        uid: text(&body["preconditions"]["uid"]),
        resource_version: text(&body["preconditions"]["resourceVersion"]),
        propagation: match policy.as_str() {
            "Foreground" => Propagation::Foreground,
            "Orphan" => Propagation::Orphan,
            "" if orphans => Propagation::Orphan,
            "" | "Background" => Propagation::Background,
            other => {
                return Err(StatusError::bad_request(format!(
                    "propagationPolicy: Unsupported value: \"{other}\": supported values: \"Foreground\", \
                     \"Background\", \"Orphan\""
                )));
            }
        },
        dry_run: dry_run || query.write.dry_run,
    })
}

/// Deletes the objects that match `selector`. Returns them and the revision afterwards.
fn delete_collection(
    engine: &Engine,
    resource: &Arc<ResourceType>,
    namespace: Option<&str>,
    selector: &Selector,
    options: &DeleteOptions,
) -> Result<(Vec<Arc<Value>>, u64), StatusError> {
    // Select the objects.
    let (mut objects, _) = engine.store.list(resource.table, namespace);
    objects.retain(|object| selector.matches(object));
    // Delete each. Another one may be gone because its owner was deleted.
    for object in &objects {
        let target = Target {
            resource: Arc::clone(stored_type(engine, resource)),
            namespace: meta(object, "namespace").to_owned(),
            name: meta(object, "name").to_owned(),
            endpoint: Endpoint::Main,
        };
        match engine.delete(&target, options) {
            Ok(_) => {}
            Err(error) if error.code == StatusCode::NOT_FOUND => {}
            Err(error) => return Err(error),
        }
    }
    Ok((objects, engine.store.revision()))
}

fn written_response(
    resource: &ResourceType,
    representation: Representation,
    written: &Written,
) -> Response<Body> {
    respond(written.code, &representation.object(resource, &written.object, true), &written.warnings)
}

/// Returns a Status for a removed object, or the object itself if finalizers hold it.
fn deleted_response(
    resource: &ResourceType,
    representation: Representation,
    deleted: &Deleted,
) -> Response<Body> {
    let body = match deleted {
        Deleted::Marked(object) => representation.object(resource, object, true),
        Deleted::Removed(object) => json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Success",
            "details": {
                "name": meta(object, "name"),
                "group": resource.group,
                "kind": resource.plural,
                "uid": meta(object, "uid"),
            },
        }),
    };
    respond(StatusCode::OK, &body, &[])
}
