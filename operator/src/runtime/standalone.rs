//! Runs the operator without a cluster: the same controllers, on an in-process API that is filled from manifests.

use std::path::Path;

use tokio_util::sync::CancellationToken;

use super::operate::{Platform, operate};
use super::tasks::Tasks;
use super::{RuntimeError, signals};
use crate::args::{BindAddress, StandaloneOptions};
use crate::directories::{self, Directories};
use crate::leader;
use crate::standalone::{Access, Api, Manifests, write_private};
use crate::telemetry::MetricsExporter;
use crate::{crd, http_server};

/// The file in the state directory with the address of the API and the token for it.
const KUBECONFIG: &str = "kubeconfig";

pub async fn run(
    options: StandaloneOptions,
    metrics_exporter: Option<MetricsExporter>,
) -> Result<(), RuntimeError> {
    let stop = signals::stop_on_signal()?;
    directories::ensure_private(&options.state_dir)?;
    // Two operators on one state would both write to the same servers.
    let _lock = directories::lock(&options.state_dir)?;
    let api = Api::restore(crd::all(), &options.state_dir)?;
    let mut manifests = Manifests::new(options.manifests.clone(), api.client());
    let changes = manifests.changes();
    let loaded = manifests.load_and_report().await?;
    tracing::info!(applied = loaded.applied, "loaded manifests");
    // The API ends after the controllers, because they still write to it while they drain.
    let close = CancellationToken::new();
    let mut background = Tasks::default();
    if let Some(address) = &options.api_listen {
        listen(&api, address, &options.state_dir, &close, &mut background).await?;
    }
    background.spawn("watch of the manifests", manifests.watch(changes, stop.clone()));
    let platform = Platform {
        client: api.client(),
        directories: Directories::below(&options.state_dir),
        identity: leader::identity(),
        metrics_exporter,
        election: None,
        keeper: None,
        allow_file_repositories: options.allow_file_repositories,
        metrics_address: options.metrics_bind_address,
        metrics_readers: None,
        probe_address: options.health_probe_bind_address,
        webhook_address: options.repository_webhook_bind_address,
        admission: None,
        webhook_client: api.client(),
    };
    let stopping = stop.clone();
    let result = tokio::select! {
        result = operate(platform, &options.manager, stop) => result,
        error = background.ended_early(&stopping) => Err(error),
    };
    close.cancel();
    background.shutdown().await;
    result
}

/// Serves the API, and writes a kubeconfig for it.
async fn listen(
    api: &Api,
    address: &BindAddress,
    state: &Path,
    close: &CancellationToken,
    background: &mut Tasks,
) -> Result<(), RuntimeError> {
    let Some(listener) = http_server::listen(address, "the API").await? else { return Ok(()) };
    let (path, access) = (state.join(KUBECONFIG), Access::new()?);
    let failed = |source| RuntimeError::Kubeconfig { path: path.clone(), source };
    let bound = listener.local_addr().map_err(failed)?;
    write_private(&path, &access.kubeconfig(bound)).map_err(failed)?;
    let (api, close) = (api.clone(), close.clone());
    background.spawn("server of the API", async move {
        if let Err(error) = api.serve(listener, access, close).await {
            tracing::error!(%error, "cannot serve the API");
        }
    });
    Ok(())
}
