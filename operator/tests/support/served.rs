//! The in-process API on a loopback port, for operators that run as they do in a cluster.

use std::fs;
use std::path::PathBuf;

use declarest_operator::{crd, standalone};
use kube::Client;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio_util::sync::{CancellationToken, DropGuard};

pub struct Served {
    pub client: Client,
    /// Leads an operator here.
    pub kubeconfig: PathBuf,
    _directory: TempDir,
    _stop: DropGuard,
}

impl Served {
    /// Serves in a task of the test's runtime until dropped.
    pub async fn start() -> Self {
        let api = standalone::Api::new(crd::all()).unwrap();
        let client = api.client();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let directory = tempfile::tempdir().unwrap();
        let kubeconfig = directory.path().join("kubeconfig");
        let access = standalone::Access::new().unwrap();
        let content = access.kubeconfig(listener.local_addr().unwrap());
        fs::write(&kubeconfig, content.to_string()).unwrap();
        let stop = CancellationToken::new();
        tokio::spawn(api.serve(listener, access, stop.clone()).unwrap());
        Self { client, kubeconfig, _directory: directory, _stop: stop.drop_guard() }
    }
}
