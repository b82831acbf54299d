//! Puts the process together: client, listeners, leadership, controllers, and an orderly end.

mod client;
mod operate;
mod signals;

use std::process::ExitCode;

use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;

use crate::args::RunOptions;
use crate::controller::expand::InvalidPattern;
use crate::directories::{Directories, DirectoryError};
use crate::leader::{self, Candidate, LeaseLost, Timing};
use crate::telemetry::{self, ListenError};

use operate::Platform;

/// Why the process ended other than by request.
#[derive(Debug, thiserror::Error)]
pub enum RuntimeError {
    #[error("cannot handle signals: {0}")]
    Signals(#[source] std::io::Error),
    #[error("cannot find a cluster; set KUBECONFIG, or run in a pod with a service account: {0}")]
    Configuration(#[source] kube::config::InferConfigError),
    #[error("cannot connect to the cluster: {0}")]
    Client(#[source] kube::Error),
    #[error(transparent)]
    Directories(#[from] DirectoryError),
    #[error(transparent)]
    Listener(#[from] ListenError),
    #[error("cannot set up metrics: {0}")]
    Metrics(#[from] prometheus::Error),
    #[error(transparent)]
    Expansion(#[from] InvalidPattern),
    #[error("a watch ended before its first answer")]
    WatchEnded,
    #[error(transparent)]
    LeaseLost(#[from] LeaseLost),
}

/// Runs against a cluster until a signal ends the process.
pub async fn cluster(options: RunOptions) -> ExitCode {
    telemetry::install_logs(options.manager.log_level, options.manager.log_format);
    client::install_crypto_provider();
    exit_code(run_in_cluster(options).await)
}

async fn run_in_cluster(options: RunOptions) -> Result<(), RuntimeError> {
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
    };
    operate::operate(platform, &options.manager, stop).await
}

fn exit_code(result: Result<(), RuntimeError>) -> ExitCode {
    match result {
        Ok(()) => {
            tracing::info!("ended");
            ExitCode::SUCCESS
        }
        Err(error) => {
            tracing::error!(%error, "ended");
            ExitCode::FAILURE
        }
    }
}
