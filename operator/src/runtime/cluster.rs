//! Runs the operator against a cluster.

use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;

use super::operate::{Platform, operate};
use super::{RuntimeError, client, signals};
use crate::args::RunOptions;
use crate::directories::Directories;
use crate::leader::{self, Candidate, Timing};

pub async fn run(options: RunOptions) -> Result<(), RuntimeError> {
    let stop = signals::stop_on_signal()?;
    let client = client::connect().await?;
    let identity = leader::identity();
    let election = options.leader_elect.then(|| {
        let leases: Api<Lease> = match std::env::var("POD_NAMESPACE") {
            Ok(namespace) if !namespace.is_empty() => Api::namespaced(client.clone(), &namespace),
            _ => Api::default_namespaced(client.clone()),
        };
        Candidate::new(leases, identity.clone(), Timing::default())
    });
    let platform = Platform {
        client,
        directories: Directories::from_environment(|name| std::env::var(name).ok()),
        identity,
        election,
        allow_file_repositories: options.allow_file_repositories,
        metrics_address: options.metrics_bind_address,
        probe_address: options.health_probe_bind_address,
        webhook_address: options.repository_webhook_bind_address,
        admission: options.enable_admission_webhooks.then_some(options.admission),
        webhook_client: client::connect().await?,
    };
    operate(platform, &options.manager, stop).await
}
