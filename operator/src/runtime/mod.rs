//! Assembles the process: client, listeners, leader election, controllers, and shutdown.

mod client;
mod cluster;
mod memory;
mod operate;
mod signals;
mod standalone;
mod tasks;

use std::future::Future;
use std::path::PathBuf;
use std::process::ExitCode;

use tokio::runtime::Runtime;

use crate::args::{ManagerOptions, RunOptions, StandaloneOptions};
use crate::controller::expand::InvalidPattern;
use crate::directories::DirectoryError;
use crate::http_server::ListenError;
use crate::leader::LeaseLost;
use crate::standalone::{AccessError, ApiError, ManifestsError};
use crate::telemetry::{self, Exporters, MetricsExporter, OtlpError};
use crate::tls::TlsError;

pub use operate::{Platform, operate};

/// An error that ended the process.
#[derive(Debug, thiserror::Error)]
pub enum RuntimeError {
    #[error("cannot start threads: {0}")]
    Threads(#[source] std::io::Error),
    #[error("cannot handle signals: {0}")]
    Signals(#[source] std::io::Error),
    #[error("no cluster is configured; set KUBECONFIG, or run in a pod with a service account: {0}")]
    Configuration(#[source] kube::config::InferConfigError),
    #[error("cannot connect to the cluster: {0}")]
    Client(#[source] kube::Error),
    #[error(transparent)]
    Directories(#[from] DirectoryError),
    #[error(transparent)]
    Listener(#[from] ListenError),
    #[error("cannot set up TLS: {0}")]
    Tls(#[from] TlsError),
    #[error("cannot set up metrics: {0}")]
    Metrics(#[from] prometheus::Error),
    #[error("cannot export telemetry: {0}")]
    Otlp(#[from] OtlpError),
    #[error(transparent)]
    Expansion(#[from] InvalidPattern),
    #[error(
        "--watch-namespace-selector needs --leader-elect, because shards use leases to divide the namespaces"
    )]
    ShardWithoutElection,
    #[error("a task ended too early: {0}")]
    TaskEnded(String),
    #[error(transparent)]
    LeaseLost(#[from] LeaseLost),
    #[error("cannot set up the in-process API: {0}")]
    Api(#[from] ApiError),
    #[error("cannot load manifests: {0}")]
    Manifests(#[from] ManifestsError),
    #[error(
        "the state directory {} is in the directory of manifests {}, so its files would be read as manifests; set another --state-dir",
        state.display(),
        manifests.display()
    )]
    StateAmongManifests { state: PathBuf, manifests: PathBuf },
    #[error("cannot write {}: {source}", path.display())]
    Kubeconfig { path: PathBuf, source: std::io::Error },
    #[error("cannot serve the in-process API: {0}")]
    ApiAddress(std::io::Error),
    #[error("cannot set up the access to the in-process API: {0}")]
    Access(#[from] AccessError),
}

/// Runs against a cluster until a signal ends the process.
pub fn cluster(options: RunOptions) -> ExitCode {
    let manager = options.manager.clone();
    manager.destinations.destinations(false).restrict_process();
    run(&manager, |exporter| cluster::run(options, exporter))
}

/// Runs without a cluster until a signal ends the process.
pub fn standalone(options: StandaloneOptions) -> ExitCode {
    let manager = options.manager.clone();
    manager.destinations.destinations(true).restrict_process();
    run(&manager, |exporter| standalone::run(options, exporter))
}

fn run<W>(options: &ManagerOptions, work: impl FnOnce(Option<MetricsExporter>) -> W) -> ExitCode
where
    W: Future<Output = Result<(), RuntimeError>>,
{
    let started = start();
    let spans = started.as_ref().ok().and_then(|(_, exporters)| exporters.layer());
    telemetry::install_logs(options.log_level, options.log_format, spans);
    if let Err(error) = memory::keep_private() {
        tracing::warn!(%error, "core dumps cannot be disabled; they may contain secrets");
    }
    memory::budget();
    let result = started.and_then(|(runtime, exporters)| {
        let result = runtime.block_on(work(exporters.metrics()));
        runtime.block_on(exporters.flush());
        // A fetch may still be blocked on an idle connection. It has no state to save, so do not wait for it.
        runtime.shutdown_background();
        result
    });
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

/// Starts the threads and the exporters of telemetry, which send on them.
fn start() -> Result<(Runtime, Exporters), RuntimeError> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(RuntimeError::Threads)?;
    let exporters = Exporters::from_environment(runtime.handle())?;
    Ok((runtime, exporters))
}
