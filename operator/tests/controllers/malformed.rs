//! Objects from before a schema change.

use declarest_operator::controller::frame::FINALIZER;
use declarest_operator::crd::{self, ManagedServer};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps,
};
use kube::api::{ApiResource, DeleteParams, DynamicObject, PostParams};
use kube::{Api, ResourceExt as _};
use serde_json::json;

use crate::world::{NAMESPACE, World};

/// Our definitions with a spec that may be anything, as an earlier schema might have been.
fn lax() -> Vec<CustomResourceDefinition> {
    let mut crds = crd::all();
    for version in crds.iter_mut().flat_map(|crd| &mut crd.spec.versions) {
        let schema = version.schema.as_mut().unwrap().open_api_v3_schema.as_mut().unwrap();
        let anything = JSONSchemaProps {
            type_: Some("object".to_owned()),
            x_kubernetes_preserve_unknown_fields: Some(true),
            ..JSONSchemaProps::default()
        };
        schema.properties.as_mut().unwrap().insert("spec".to_owned(), anything);
    }
    crds
}

#[tokio::test]
async fn one_undecodable_object_is_reported_and_harms_no_other() {
    let mut world = World::idle(lax());
    let servers: Api<DynamicObject> =
        Api::namespaced_with(world.client.clone(), NAMESPACE, &ApiResource::erase::<ManagedServer>(&()));
    let bad: DynamicObject = serde_json::from_value(json!({
        "apiVersion": "declarest.io/v1alpha1", "kind": "ManagedServer",
        "metadata": {"name": "bad", "finalizers": [FINALIZER]},
        "spec": {"http": "https://api.example.test"},
    }))
    .unwrap();
    servers.create(&PostParams::default(), &bad).await.unwrap();
    world.run();
    world.create::<ManagedServer>("good", json!({"http": {"baseURL": "https://api.example.test"}})).await;
    world.until_reason::<ManagedServer>("good", "Ready").await;

    let reported = |object: Option<&DynamicObject>| {
        object.is_some_and(|object| object.data["status"]["conditions"][0]["reason"] == "SpecInvalid")
    };
    let bad = kube::runtime::wait::await_condition(servers.clone(), "bad", reported).await.unwrap().unwrap();
    let message = bad.data["status"]["conditions"][0]["message"].as_str().unwrap();
    assert!(message.starts_with("the object cannot be read: "), "{message}");

    servers.delete("bad", &DeleteParams::default()).await.unwrap();
    let uid = bad.uid().unwrap();
    let gone = kube::runtime::conditions::is_deleted(&uid);
    kube::runtime::wait::await_condition(servers, "bad", gone).await.unwrap();
}
