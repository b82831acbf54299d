//! Namespaces of the in-process API.

use k8s_openapi::api::core::v1::Namespace;
use kube::ResourceExt as _;
use kube::api::{DynamicObject, ListParams, PostParams};

use super::api;
use super::widgets::{resource, widget};

/// Unlike in a cluster, manifests need not declare namespaces.
#[tokio::test]
async fn a_namespace_is_created_with_its_first_object() {
    let client = api().client();
    for namespace in ["two", "one"] {
        let widgets: kube::Api<DynamicObject> =
            kube::Api::namespaced_with(client.clone(), namespace, &resource());
        widgets.create(&PostParams::default(), &widget("a")).await.unwrap();
    }
    let namespaces: kube::Api<Namespace> = kube::Api::all(client);
    let found = namespaces.list(&ListParams::default()).await.unwrap();
    assert_eq!(found.iter().map(Namespace::name_any).collect::<Vec<_>>(), ["default", "one", "two"]);
}
