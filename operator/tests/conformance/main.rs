//! How a Kubernetes API behaves, as far as this project relies on it. The same tests run on the in-process
//! API and, with `KUBEBUILDER_ASSETS`, on a real kube-apiserver, so that the one cannot drift from the other.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "each is a failed test")]

#[path = "../support/mod.rs"]
mod support;

mod admission;
mod apply;
mod delete;
mod objects;
mod schema;
mod watch;
mod wire;

use std::time::Duration;

use declarest_operator::{crd, standalone};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, ListParams, PostParams};
use kube::{Client, ResourceExt as _};
use support::cluster::Cluster;
use support::widgets;
use support::world::on_cluster;
use tokio::sync::OnceCell;

/// A client of an API that serves widgets. Its default namespace is the test's own.
async fn client() -> Client {
    client_of(|| vec![widgets::crd()]).await
}

/// A client of an API that serves our kinds.
async fn client_of_ours() -> Client {
    client_of(crd::all).await
}

/// A real API serves all of them, an in-process one just `definitions`.
async fn client_of(definitions: impl FnOnce() -> Vec<CustomResourceDefinition>) -> Client {
    if on_cluster() {
        let cluster = Cluster::shared();
        let client = cluster.admin_in(&cluster.create_namespace().await).await;
        install_widgets(&client).await;
        return client;
    }
    standalone::Api::new(definitions()).unwrap().client()
}

/// A further namespace that exists and that no other test uses.
async fn namespace(name: &str) -> String {
    if on_cluster() { Cluster::shared().create_namespace().await } else { name.to_owned() }
}

/// Serves widgets from the cluster of this process.
async fn install_widgets(client: &Client) {
    static INSTALLED: OnceCell<()> = OnceCell::const_new();
    let install = async || {
        let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
        let definition = widgets::crd();
        definitions.create(&PostParams::default(), &definition).await.unwrap();
        let served = async {
            while widgets::widgets(client).list(&ListParams::default()).await.is_err() {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        let name = definition.name_any();
        tokio::time::timeout(Duration::from_secs(30), served)
            .await
            .unwrap_or_else(|_| panic!("{name} is not served"));
    };
    INSTALLED.get_or_init(install).await;
}
