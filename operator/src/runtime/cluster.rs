//! Runs the operator against a cluster.

use std::num::NonZeroU32;

use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;

use super::client::Limit;
use super::operate::{Platform, operate};
use super::{RuntimeError, client, signals};
use crate::args::RunOptions;
use crate::directories::Directories;
use crate::leader::{self, Candidate, Timing, lease_name};
use crate::shard::{self, Keeper, Members};
use crate::telemetry::{MetricsExporter, Readers};

/// The limit of the requests for webhooks: the Secrets that prove deliveries, and the objects that reviews compare.
const WEBHOOKS: Limit =
    Limit { per_second: NonZeroU32::MIN.saturating_add(49), burst: NonZeroU32::MIN.saturating_add(99) };

/// The limit of the reviews of users who read metrics. Requests with many tokens must not delay anything else.
const READERS: Limit =
    Limit { per_second: NonZeroU32::MIN.saturating_add(9), burst: NonZeroU32::MIN.saturating_add(19) };

pub async fn run(options: RunOptions, metrics_exporter: Option<MetricsExporter>) -> Result<(), RuntimeError> {
    let stop = signals::stop_on_signal()?;
    let limit = Limit { per_second: options.kube_api_qps, burst: options.kube_api_burst };
    let client = client::connect(limit).await?;
    let identity = leader::identity();
    let members = match (options.watch_namespace_selector.clone(), options.manager.namespaces()) {
        (Some(_), _) if !options.leader_elect => return Err(RuntimeError::ShardWithoutElection),
        (Some(selector), _) => Some(Members::Selected(selector)),
        (None, names) if names.is_empty() => None,
        (None, names) => Some(Members::Listed(names)),
    };
    let shard = options.shard_name.clone().or_else(|| members.as_ref().map(shard::name));
    let (mut election, mut keeper) = (None, None);
    if options.leader_elect {
        let lease_client = client::connect_for_lease().await?;
        let leases: Api<Lease> = match std::env::var("POD_NAMESPACE") {
            Ok(namespace) if !namespace.is_empty() => Api::namespaced(lease_client, &namespace),
            _ => Api::default_namespaced(lease_client),
        };
        let (name, timing) = (lease_name(shard.as_deref()), Timing::default());
        election = Some(Candidate::new(leases.clone(), name, identity.clone(), timing));
        // Without an election, claims would never expire.
        if let (Some(shard), Some(members)) = (shard, members) {
            keeper = Some(Keeper::new(client.clone(), leases, shard, members, timing));
        }
    }
    let metrics_readers =
        if options.metrics_secure { Some(Readers::new(client::connect(READERS).await?)) } else { None };
    let platform = Platform {
        client,
        directories: Directories::from_environment(|name| std::env::var(name).ok()),
        identity,
        metrics_exporter,
        election,
        keeper,
        allow_file_repositories: options.allow_file_repositories,
        metrics_address: options.metrics_bind_address,
        metrics_readers,
        probe_address: options.health_probe_bind_address,
        webhook_address: options.repository_webhook_bind_address,
        admission: options.enable_admission_webhooks.then_some(options.admission),
        webhook_client: client::connect(WEBHOOKS).await?,
    };
    Box::pin(operate(platform, &options.manager, stop)).await
}
