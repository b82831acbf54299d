//! The phases of the process: prepare, become leader, reconcile, drain.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use declarest_core::repository::Quota;
use kube::{Client, Resource, ResourceExt as _};
use tokio_util::sync::CancellationToken;

use super::RuntimeError;
use super::client::install_crypto_provider;
use super::memory;
use super::tasks::Tasks;
use crate::admission::{self, Certificates, Reviewer};
use crate::args::{AdmissionOptions, BindAddress, ManagerOptions};
use crate::controller;
use crate::controller::cache::{Cache, Cached};
use crate::controller::context::{Caches, Context, Settings};
use crate::controller::events::Events;
use crate::controller::expand::Expansion;
use crate::controller::workers;
use crate::crd::Limits;
use crate::directories::{Directories, Owner};
use crate::http_server::HttpServer;
use crate::leader::Candidate;
use crate::shard::{Keeper, Namespaces};
use crate::telemetry::{self, Health, Metrics, MetricsExporter, Readers};
use crate::webhooks::Receiver;

/// The time that work in flight has to end.
const DRAIN: Duration = Duration::from_secs(25);

/// The parts of the operator that differ between a cluster and standalone mode.
pub struct Platform {
    pub client: Client,
    pub directories: Directories,
    /// Unique to this run of this replica.
    pub identity: String,
    /// Present if metrics are exported.
    pub metrics_exporter: Option<MetricsExporter>,
    /// Present if there may be other replicas.
    pub election: Option<Candidate>,
    /// Present if other operators have other namespaces.
    pub keeper: Option<Keeper>,
    pub allow_file_repositories: bool,
    pub metrics_address: BindAddress,
    /// Present if only authorised users may read the metrics.
    pub metrics_readers: Option<Readers>,
    pub probe_address: BindAddress,
    pub webhook_address: BindAddress,
    /// Present if objects are validated when they are written.
    pub admission: Option<AdmissionOptions>,
    /// A client of its own, so that webhooks do not wait for the controllers.
    pub webhook_client: Client,
}

/// Runs until `stop` is cancelled, then drains.
///
/// # Errors
/// The cause of a failed start, or the loss of the lease.
pub async fn operate(
    platform: Platform,
    options: &ManagerOptions,
    stop: CancellationToken,
) -> Result<(), RuntimeError> {
    // Prepare directories, and serve metrics and probes.
    install_crypto_provider();
    let Platform { client, directories, identity, election, keeper, .. } = platform;
    directories.prepare()?;
    let metrics = Arc::new(Metrics::new()?);
    let (health, close) = (Arc::new(Health::default()), CancellationToken::new());
    let probes = telemetry::server("probes", telemetry::probes(Arc::clone(&health)));
    let mut background = Tasks::default();
    let scraped = scraped(platform.metrics_readers, &metrics)?;
    background.serve(&platform.metrics_address, scraped, &close).await?;
    background.serve(&platform.probe_address, probes, &close).await?;
    if let Some(exporter) = platform.metrics_exporter {
        background.spawn("export of metrics", exporter.run(Arc::clone(&metrics)));
    }
    let settings = settings(options, &directories, platform.allow_file_repositories)?;
    // Fill the caches. Standby replicas do so too.
    let namespaces = options.namespaces();
    let (caches, watches) = Caches::open(&client, &namespaces);
    for (kind, watch) in watches {
        background.spawn(format!("watch of {kind}"), watch);
    }
    if let Some(admission) = platform.admission {
        let reviewer = Reviewer::new(platform.webhook_client.clone(), settings.clone(), namespaces.clone());
        admit(admission, reviewer, &health, &close, &mut background).await?;
    }
    let receiver = Receiver::new(
        platform.webhook_client,
        caches.clone(),
        settings.clone(),
        Arc::clone(&metrics),
        namespaces,
    );
    background.serve(&platform.webhook_address, receiver.server(), &close).await?;
    let context = Arc::new(Context {
        events: Events::new(client.clone(), identity),
        client,
        caches,
        metrics,
        directories,
        settings,
        dependencies: controller::dependencies::Dependencies::default(),
        namespaces: keeper.as_ref().map_or_else(Namespaces::all, Keeper::namespaces),
        leadership: election.as_ref().map(Candidate::leadership).unwrap_or_default(),
        stop: stop.child_token(),
    });
    // Become leader, reconcile and drain. Without one of its tasks, the process would miss changes, so it ends. Work in
    // flight is then dropped, and the lease expires.
    let result = tokio::select! {
        result = Box::pin(lead(election, keeper, &context, &health, &stop)) => result,
        error = background.ended_early(&close) => Err(error),
    };
    health.drain();
    close.cancel();
    background.shutdown().await;
    result
}

fn scraped(readers: Option<Readers>, metrics: &Arc<Metrics>) -> Result<HttpServer, RuntimeError> {
    let open = telemetry::server("metrics", telemetry::scrape(Arc::clone(metrics)));
    Ok(match readers {
        Some(readers) => readers.guard(open)?,
        None => open,
    })
}

/// Serves the admission webhooks. The replica is not ready before their certificate is loaded.
async fn admit(
    options: AdmissionOptions,
    reviewer: Reviewer,
    health: &Health,
    close: &CancellationToken,
    background: &mut Tasks,
) -> Result<(), RuntimeError> {
    let certificates = Arc::new(Certificates::default());
    let acceptor = certificates.acceptor()?;
    if background.serve(&options.address, admission::server(reviewer, acceptor), close).await? {
        let follow = Arc::clone(&certificates).follow(options.certificates);
        background.spawn("certificate of the admission webhooks", follow);
        health.await_certificate(certificates.loaded());
    }
    Ok(())
}

fn settings(
    options: &ManagerOptions,
    directories: &Directories,
    allow_file_repositories: bool,
) -> Result<Settings, RuntimeError> {
    Ok(Settings {
        workers: workers::number(memory::limit(), options.max_concurrent_reconciles),
        sync_timeout: options.sync_timeout,
        quota: Quota { fetch: options.max_fetch_size, mirror: options.max_mirror_size },
        limits: Limits {
            allow_file_repositories,
            bundle_dir: directories.bundles().to_owned(),
            secrets_base_dir: directories.secrets().to_owned(),
        },
        expansion: Expansion::new(&options.env_expand_allow)?,
        names: options.destinations.names(),
    })
}

/// Waits for the caches and for leadership. Then holds the lease and reconciles until `stop` is cancelled.
async fn lead(
    mut election: Option<Candidate>,
    keeper: Option<Keeper>,
    context: &Arc<Context>,
    health: &Health,
    stop: &CancellationToken,
) -> Result<(), RuntimeError> {
    tokio::select! {
        () = stop.cancelled() => return Ok(()),
        // If a watch has ended, the caller ends the process.
        true = context.caches.synced() => {}
    }
    health.caches_synced();
    tracing::info!("caches are synced");
    if let Some(candidate) = &mut election
        && !candidate.acquire(stop).await
    {
        // An attempt may have succeeded although its answer was not awaited.
        candidate.release().await;
        return Ok(());
    }
    context.metrics.leads(true);
    let result = match &mut election {
        // If the lease is lost, work in flight is dropped, because another replica may already do the same work.
        Some(candidate) => {
            let work_ended = CancellationToken::new();
            tokio::select! {
                lost = candidate.hold(&work_ended) => lost.map_err(RuntimeError::from),
                result = reconcile(keeper, context, health, stop) => result,
            }
        }
        None => reconcile(keeper, context, health, stop).await,
    };
    context.metrics.leads(false);
    if let Some(candidate) = &mut election
        && result.is_ok()
    {
        candidate.release().await;
    }
    result
}

/// Runs the controllers. When `stop` is cancelled, they have [`DRAIN`] to end their work.
async fn reconcile(
    keeper: Option<Keeper>,
    context: &Arc<Context>,
    health: &Health,
    stop: &CancellationToken,
) -> Result<(), RuntimeError> {
    sweep(context).await;
    let controllers = controller::run(Arc::clone(context));
    let deadline = async {
        stop.cancelled().await;
        health.drain();
        tokio::time::sleep(DRAIN).await;
    };
    let keep = async {
        match keeper {
            Some(keeper) => Box::pin(keeper.run()).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        () = controllers => {}
        () = keep => {}
        () = deadline => tracing::warn!("work in flight did not end in time and is aborted"),
    }
    Ok(())
}

/// Removes the directories of objects that were deleted while the operator was not running. A directory that cannot be
/// removed must not keep the operator from reconciling.
async fn sweep(context: &Context) {
    let mut alive = HashSet::new();
    add_owners(&context.caches.repositories, &mut alive);
    add_owners(&context.caches.servers, &mut alive);
    add_owners(&context.caches.stores, &mut alive);
    add_owners(&context.caches.policies, &mut alive);
    let directories = context.directories.clone();
    let swept = tokio::task::spawn_blocking(move || directories.sweep(&alive)).await;
    if let Ok(swept) = swept {
        for path in swept.removed {
            tracing::info!(path = %path.display(), "removed the directory of a deleted object");
        }
        for error in swept.failed {
            tracing::warn!(%error, "the cleanup of deleted objects is not complete");
        }
    }
}

fn add_owners<T: Cached>(cache: &Cache<T>, owners: &mut HashSet<Owner>) {
    let plural = <T as Resource>::plural(&());
    owners.extend(
        cache
            .store()
            .state()
            .iter()
            .map(|object| Owner::new(&plural, &object.namespace().unwrap_or_default(), &object.name_any())),
    );
}
