//! One run: status before, the engine, status after.

use std::sync::Arc;
use std::time::Duration;

use declarest_core::path::LogicalPath;
use declarest_core::repository::{Mirror, RepositoryError, Revision};
use declarest_core::sync::{self, Mode, Options, Recurrences, Session, Stop};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::decision::{Fingerprint, Trigger};
use super::inputs::Inputs;
use super::schedule::Schedule;
use super::selection::{self, Pins, Request, Selected};
use super::verdict::{self, Run};
use crate::controller::context::Context;
use crate::controller::error::Failure;
use crate::controller::frame::Round;
use crate::controller::kind::{Key, Kind as _};
use crate::controller::outcome::{Outcome, Reason};
use crate::crd::sync_policy::{FailedResource, RunOutcome, SyncMode};
use crate::crd::{Limit, SyncPolicy};

/// How often a run looks whether its policy still wants it.
const WATCH: Duration = Duration::from_millis(250);

/// A run that was decided on.
pub struct RunPlan {
    pub inputs: Inputs,
    pub fingerprint: Fingerprint,
    pub trigger: Trigger,
    /// The commit to diff from; `None` compares the whole scope.
    pub base: Option<Revision>,
    pub schedule: Option<Schedule>,
    pub sync_interval: Duration,
    /// What things looked like at the last run of this process.
    pub attempted: Option<Fingerprint>,
    /// What the last run saw of what does not converge.
    pub recurrences: Recurrences,
}

/// Runs the engine and writes what came of it into the round's status.
///
/// The second part of the result is what this run saw of what does not converge, if it ran.
/// `started` is called once the run is on record: only from then on does a failure wait for its backoff.
pub async fn run(
    round: &mut Round<'_, SyncPolicy>,
    plan: RunPlan,
    started: impl FnOnce(&Fingerprint),
) -> Result<(Outcome, Option<Recurrences>), Failure> {
    let context = Arc::clone(round.context);
    let target: Revision = plan.fingerprint.revision.parse().map_err(|error| unavailable(&error))?;
    let mirror = context.mirrors.get(&plan.inputs.repository.key()).ok_or_else(|| {
        Failure::new(
            Reason::RepositoryUnavailable,
            "the repository's mirror is not open yet; waiting for its next fetch",
        )
    })?;
    let selected = select(round, &plan, mirror.clone(), target.clone()).await?;
    round.status.inventory_base_revision = Some(selected.inventory_base.to_string());
    if selected.selection.is_empty() && plan.base.is_some() && !selected.selection.whole_scope {
        return Ok((verdict::nothing_to_do(&mut round.status, &plan, &target), None));
    }
    let client = context.servers.client(&context, &plan.inputs.server).await;
    let bootstrap = |failure: Failure| Failure::new(Reason::SessionBootstrapFailed, failure.message);
    let client = client.map_err(bootstrap)?;
    let artifacts = context.artifacts.of(&context, &plan.inputs.server, &client).await.map_err(bootstrap)?;
    let consecutive = verdict::consecutive_failures(&round.status, &plan);
    begin(round, &target, &selected).await?;
    started(&plan.fingerprint);

    let Selected { selection, kind, trigger, tree, .. } = selected;
    let metadata = Arc::new(artifacts.metadata(tree.clone()));
    let session = Session { tree, metadata, client };
    let stop = Stop::default();
    let options = Options { recurrences: watched(&round.object, &plan), ..options(&round.object)? };
    tracing::info!(
        revision = %target, mode = ?kind, trigger = trigger.as_str(),
        targeted = selection.targeted(), prune = selection.prune.len(), "sync started"
    );
    let (key, generation) = (round.key(), round.generation());
    let report = tokio::select! {
        report = sync::run(&session, selection, &options, &stop) => report,
        () = watch(&context, &key, generation, &stop) => {
            // Does not happen: the watch ends with the run.
            return Err(Failure::new(Reason::ReconcileFailed, "the run was lost"));
        }
    };
    let stats = report.stats;
    tracing::info!(
        revision = %target, mode = ?kind, outcome = report.outcome.as_str(), targeted = stats.targeted,
        applied = stats.applied, created = stats.created, updated = stats.updated,
        pruned = stats.pruned, failed = stats.failed, "sync finished"
    );
    let applied = round.status.last_applied_repo_revision.as_deref();
    verdict::count(&context, &key, verdict::corrects_drift(trigger, applied, &target), &report);
    let run = Run { plan: &plan, kind, trigger, report: &report, target: &target, consecutive };
    let outcome = verdict::conclude(&mut round.status, &run, Timestamp::now());
    if round.status.last_applied_repo_revision.as_deref() == Some(target.as_str()) {
        pin_applied(Pins::of(&round.object.metadata), mirror, target).await;
    }
    Ok((outcome, report.recurrences))
}

/// What earlier runs saw of what does not converge. Whoever forces writes, or wants none, need not know.
fn watched(policy: &SyncPolicy, plan: &RunPlan) -> Option<Arc<Recurrences>> {
    let writes_what_differs = policy.spec.mode == SyncMode::Apply && !policy.spec.sync.force;
    // Secrets may come with the commit or from a Secret.
    let Fingerprint { revision, secrets, .. } = &plan.fingerprint;
    let epoch = format!("{revision} {secrets}");
    writes_what_differs.then(|| Arc::new(plan.recurrences.clone().in_epoch(epoch)))
}

/// Selects on the blocking pool and pins what is worked with.
async fn select(
    round: &Round<'_, SyncPolicy>,
    plan: &RunPlan,
    mirror: Mirror,
    target: Revision,
) -> Result<Selected, Failure> {
    let spec = &round.object.spec;
    let status = &round.status;
    let revision = |text: &Option<String>| text.as_deref().and_then(|text| text.parse::<Revision>().ok());
    let (prunes, applies): (Vec<_>, Vec<_>) =
        status.failed_resources.iter().partition(|failed| failed.operation == verdict::PRUNE);
    let request = Request {
        mirror,
        scope: spec.scope().map_err(|reason| Failure::spec_invalid(format!("spec.source.path: {reason}")))?,
        recursive: spec.source.recursive,
        prune: spec.sync.prune,
        base: plan.base.clone(),
        target,
        inventory_base: revision(&status.inventory_base_revision),
        applied: revision(&status.last_applied_repo_revision),
        failed_applies: paths(&applies),
        failed_prunes: paths(&prunes),
        trigger: plan.trigger,
    };
    let pins = Pins::of(&round.object.metadata);
    let selected = tokio::task::spawn_blocking(move || selection::select(request, &pins));
    match selected.await {
        Ok(selected) => selected.map_err(|error| unavailable(&error)),
        Err(error) => Err(Failure::new(Reason::ReconcileFailed, format!("cannot select resources: {error}"))),
    }
}

fn paths(failed: &[&FailedResource]) -> Vec<LogicalPath> {
    failed.iter().filter_map(|failed| LogicalPath::parse(&failed.path).ok()).collect()
}

/// Tells in status that a run is under way. Should the process die, the run counts as failed.
async fn begin(
    round: &mut Round<'_, SyncPolicy>,
    target: &Revision,
    selected: &Selected,
) -> Result<(), Failure> {
    let trigger = selected.trigger.as_str();
    let status = &mut round.status;
    status.last_attempt_time = Some(Time(verdict::whole_seconds(Timestamp::now())));
    status.last_attempted_repo_revision = Some(target.to_string());
    status.last_run_outcome = Some(RunOutcome::Failed);
    status.last_trigger = Some(trigger.to_owned());
    status.last_sync_mode = Some(selected.kind);
    // The plan of the last run says nothing about when this one is to be repeated.
    status.next_sync_time = None;
    let drifted = verdict::drift_seen(status);
    let mut working = Outcome::new(Reason::Reconciling, format!("syncing revision {target} ({trigger})"));
    working.conditions = drifted;
    round.publish(&working, 0).await.map_err(|error| Failure::api("write the status", &error))?;
    Ok(())
}

/// Pins what was applied. A failure costs at most a full run later, so it is no failure of this one.
async fn pin_applied(pins: Pins, mirror: Mirror, applied: Revision) {
    let pinned =
        tokio::task::spawn_blocking(move || pins.keep(&mirror, None, Some(&applied), &applied)).await;
    match pinned {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::warn!(%error, "cannot pin the applied revision"),
        Err(error) => tracing::warn!(%error, "cannot pin the applied revision"),
    }
}

fn options(policy: &SyncPolicy) -> Result<Options, Failure> {
    let sync = &policy.spec.sync;
    let limit = sync
        .prune_limit
        .limit()
        .map_err(|reason| Failure::spec_invalid(format!("spec.sync.pruneLimit: {reason}")))?;
    Ok(Options {
        mode: match policy.spec.mode {
            SyncMode::Apply => Mode::Apply,
            SyncMode::Observe => Mode::Observe,
        },
        force: sync.force,
        prune_limit: match limit {
            Limit::Count(count) => sync::PruneLimit::Count(usize::try_from(count).unwrap_or(usize::MAX)),
            Limit::Percent(percent) => sync::PruneLimit::Percent(u8::try_from(percent).unwrap_or(100)),
        },
        allow_empty: sync.allow_empty,
        ..Options::default()
    })
}

/// Stops the run when its policy changes or goes, when this process must stop, or when time is up.
/// Never returns; the run ends by itself soon after.
async fn watch(context: &Context, key: &Key, generation: i64, stop: &Stop) {
    let deadline = tokio::time::Instant::now() + context.settings.sync_timeout;
    let mut ticks = tokio::time::interval(WATCH);
    while stop.reason().is_none() {
        tokio::select! {
            () = context.stop.cancelled() => stop.request("the operator is stopping or no longer leads"),
            () = tokio::time::sleep_until(deadline) => {
                let limit = context.settings.sync_timeout;
                stop.request(format!("the run did not end within {} s (--sync-timeout)", limit.as_secs()));
            }
            _ = ticks.tick() => {
                if let Some(reason) = unwanted(context, key, generation) {
                    stop.request(reason);
                }
            }
        }
    }
    std::future::pending::<()>().await;
}

/// Why the policy does not want its run any more.
fn unwanted(context: &Context, key: &Key, generation: i64) -> Option<&'static str> {
    let Some(policy) = context.caches.policies.get(&key.namespace, &key.name) else {
        return Some("the policy is gone");
    };
    if policy.metadata.deletion_timestamp.is_some() {
        return Some("the policy is being deleted");
    }
    // The cache may lag behind the round, which read the object afresh.
    let moved_on = policy.metadata.generation.is_some_and(|current| current > generation);
    moved_on.then_some("the policy's spec changed")
}

fn unavailable(error: &RepositoryError) -> Failure {
    Failure::new(Reason::RepositoryUnavailable, error.to_string())
}
