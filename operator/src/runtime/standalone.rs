//! Runs the operator without a cluster: the same controllers, on an in-process API that is filled from manifests.

use std::path::{Component, Path};

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
    check_apart(&options.manifests, &options.state_dir)?;
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

/// Fails if the files of the state directory would be read as manifests.
fn check_apart(manifests: &Path, state: &Path) -> Result<(), RuntimeError> {
    let (Ok(real_manifests), Ok(real_state)) = (manifests.canonicalize(), state.canonicalize()) else {
        return Ok(());
    };
    let Ok(below) = real_state.strip_prefix(&real_manifests) else { return Ok(()) };
    let is_hidden = |part: Component<'_>| part.as_os_str().to_string_lossy().starts_with('.');
    if below.components().any(is_hidden) {
        return Ok(());
    }
    Err(RuntimeError::StateAmongManifests { state: state.to_owned(), manifests: manifests.to_owned() })
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
    let kubeconfig = access.kubeconfig(bound);
    let server = api.serve(listener, access, close.clone()).map_err(RuntimeError::ApiAddress)?;
    write_private(&path, &kubeconfig).map_err(failed)?;
    background.spawn_server("server of the API", server);
    Ok(())
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    /// A kubeconfig for an address that is not served would only be a token on disk.
    #[tokio::test]
    async fn an_api_that_is_not_served_leaves_no_kubeconfig() {
        let state = tempfile::tempdir().unwrap();
        let api = Api::new(Vec::new()).unwrap();
        let address = "0.0.0.0:0".parse().unwrap();
        let (close, mut tasks) = (CancellationToken::new(), Tasks::default());
        let error = listen(&api, &address, state.path(), &close, &mut tasks).await.unwrap_err();
        assert!(error.to_string().contains("use a loopback address"), "{error}");
        assert!(!state.path().join(KUBECONFIG).exists());
    }

    #[rstest]
    #[case::beside("manifests", "state", false)]
    #[case::below("manifests", "manifests/state", true)]
    #[case::the_same("manifests", "manifests", true)]
    #[case::hidden("manifests", "manifests/.state", false)]
    #[case::above("state/manifests", "state", false)]
    fn state_is_not_among_manifests(#[case] manifests: &str, #[case] state: &str, #[case] refused: bool) {
        let root = tempfile::tempdir().unwrap();
        let [manifests, state] = [manifests, state].map(|directory| root.path().join(directory));
        std::fs::create_dir_all(&manifests).unwrap();
        std::fs::create_dir_all(&state).unwrap();
        assert_eq!(check_apart(&manifests, &state).is_err(), refused);
    }
}
