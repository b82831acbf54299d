//! One run: writes the status, runs the engine, and writes the status again.

use std::pin::pin;
use std::sync::Arc;

use declarest_core::path::LogicalPath;
use declarest_core::repository::{GitTree, Mirror, RepositoryError, Revision};
use declarest_core::secrets::SecretReader;
use declarest_core::sync::{self, Mode, Options, Reading, Recurrences, Report, Session, Stop, WrittenValues};
use futures::StreamExt as _;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::decision::{Fingerprint, Trigger};
use super::drift;
use super::inputs::{Inputs, not_ready};
use super::inventory::{self, Past, Pins, Settling};
use super::overlap::{self, Claim};
use super::plan::RunPlan;
use super::selection::{self, Request, Selected};
use super::verdict::{self, Run};
use crate::controller::cache::Change;
use crate::controller::conditions;
use crate::controller::context::{Context, Guarded};
use crate::controller::error::{self, Failure};
use crate::controller::frame::Round;
use crate::controller::kind::{Kind, is_ready};
use crate::controller::outcome::{Outcome, Reason};
use crate::controller::outdated::outdated;
use crate::controller::pools::Pools;
use crate::crd::SyncPolicy;
use crate::crd::sync_policy::{FailedResource, RunKind, RunOutcome, SyncMode};

/// Runs the engine and writes the result to the status of the round.
///
/// Also returns the resources that do not converge, if the engine ran. `started` is called when the status records
/// the run; only after that, a failure waits for its backoff.
pub async fn run(
    round: &mut Round<'_, SyncPolicy>,
    pools: &Pools,
    plan: RunPlan,
    started: impl FnOnce(&Fingerprint),
) -> Result<(Outcome, Option<Recurrences>), Failure> {
    let target: Revision = plan.fingerprint.revision.parse().map_err(|error| unavailable(&error))?;
    let mirror = pools.mirrors.get(&plan.inputs.repository.key()).ok_or_else(|| {
        // After a failed fetch, policies use the last one, but the mirror with it is lost.
        if !is_ready(&plan.inputs.repository) {
            return not_ready(&plan.inputs.repository);
        }
        Failure::new(Reason::Reconciling, "waiting for the repository's mirror, which is fetched again")
    })?;
    let (repository_key, sound) = (plan.inputs.repository.key(), mirror.clone());
    let done = Box::pin(run_on(round, pools, plan, target, mirror, started)).await;
    let unreadable = done.as_ref().is_err_and(|failure| failure.reason == Reason::RepositoryUnavailable);
    if unreadable || sound.is_damaged() {
        pools.mirrors.suspect(&repository_key);
    }
    done
}

/// Runs with an open mirror, which may be damaged.
async fn run_on(
    round: &mut Round<'_, SyncPolicy>,
    pools: &Pools,
    plan: RunPlan,
    target: Revision,
    mirror: Mirror,
    started: impl FnOnce(&Fingerprint),
) -> Result<(Outcome, Option<Recurrences>), Failure> {
    let repository = round.context.expanded(&plan.inputs.repository)?;
    let owner = inventory::owner(&round.object.spec, &repository, &plan.inputs.server);
    let stop = Stop::default();
    let mut running = Running { round, pools, plan, target, mirror, owner, stop, cancelled: false };
    let options = options(&running.round.object, running.plan.trigger)?;
    // A drift check of an unchanged revision need not read Git.
    let known = running.plan.knowledge.can_recheck(&running.target, &options);
    if known && running.plan.trigger.is_drift_check() {
        return Box::pin(running.recheck(&options, started)).await;
    }
    // Select the resources.
    let selected = running.select().await?;
    running.forget(&selected.no_longer_declared);
    if selected.selection.is_empty() && running.plan.base.is_some() && !selected.selection.is_whole_scope() {
        let outcome = verdict::nothing_to_do(&mut running.round.status, &running.plan, &running.target);
        return Ok((outcome, Some(running.plan.recurrences)));
    }
    // Record the run, then run the engine.
    let session = running.session(Arc::clone(&selected.tree)).await?;
    running.adopt(&selected);
    running.begin(selected.kind, selected.trigger).await?;
    started(&running.plan.fingerprint);
    Box::pin(running.execute(&session, selected)).await
}

/// Returns the resources that did not converge in earlier runs. Not needed for forced or observe-only runs.
fn earlier(policy: &SyncPolicy, plan: &RunPlan) -> Option<Arc<Recurrences>> {
    let writes_what_differs = policy.spec.mode == SyncMode::Apply && !policy.spec.sync.force;
    // The desired payload depends on the revision and on Secrets.
    let Fingerprint { revision, secrets, .. } = &plan.fingerprint;
    let epoch = format!("{revision} {secrets}");
    writes_what_differs.then(|| Arc::new(plan.recurrences.clone().in_epoch(epoch)))
}

/// A run in progress.
struct Running<'r, 'o> {
    round: &'r mut Round<'o, SyncPolicy>,
    pools: &'r Pools,
    plan: RunPlan,
    target: Revision,
    mirror: Mirror,
    /// The owner of the inventory.
    owner: String,
    stop: Stop,
    /// Whether the run was cancelled before its last part of the work.
    cancelled: bool,
}

impl Running<'_, '_> {
    /// Repeats the requests of an earlier run, without reading Git. If a response differs, compares the whole scope.
    async fn recheck(
        mut self,
        options: &Options,
        started: impl FnOnce(&Fingerprint),
    ) -> Result<(Outcome, Option<Recurrences>), Failure> {
        // Repeat the requests. They only read, so the run is recorded when something differs.
        let (mirror, target) = (self.mirror.clone(), self.target.clone());
        let tree = blocking(move || mirror.tree(&target)).await?;
        let mut session = self.session(Arc::new(tree)).await?;
        let trigger = self.plan.trigger;
        self.mark(RunKind::Full, trigger);
        started(&self.plan.fingerprint);
        match self.watched(sync::recheck(&session, options, &self.stop)).await {
            (Ok(report), cancelled) => {
                let outcome = self.conclude(RunKind::Full, trigger, &report, cancelled, None).await;
                return Ok((outcome, report.recurrences));
            }
            (Err(answers), cancelled) => (session.answers, self.cancelled) = (answers, cancelled),
        }
        // Compare the whole scope.
        let selected = self.select().await?;
        self.adopt(&selected);
        self.begin(selected.kind, selected.trigger).await?;
        Box::pin(self.execute(&session, selected)).await
    }

    /// Selects the resources on the blocking pool, and pins the revisions in use.
    async fn select(&mut self) -> Result<Selected, Failure> {
        let request = self.request()?;
        let pins = self.pins();
        blocking(move || selection::select(&request, &pins)).await
    }

    /// Removes resources from those that did not converge. An incremental run does not read them.
    fn forget(&mut self, paths: &[LogicalPath]) {
        for path in paths {
            self.plan.recurrences.forget(path);
            self.round.status.unsettled_resources.retain(|resource| resource.path != path.as_str());
        }
    }

    /// Records the inventory in the status. Call it only when the run is certain to start, because the inventory must
    /// not contain revisions that were never attempted.
    fn adopt(&mut self, selected: &Selected) {
        let observes = self.observes();
        let status = &mut self.round.status;
        if status.inventory_owner.as_ref() != Some(&self.owner) {
            // It was applied to another server, or from another scope, where other resources may have the same names.
            status.last_applied_repo_revision = None;
            status.inventory_pending = Vec::new();
            self.plan.recurrences = Recurrences::default();
            // What was only observed does not belong to the policy.
            status.inventory_owner = (!observes).then(|| self.owner.clone());
            status.inventory_id = (!observes).then(inventory::new_id);
        }
        // If the mirror has lost the base, the inventory begins at the next commit that is applied.
        if !observes {
            status.inventory_base_revision = Some(selected.inventory_base.to_string());
        } else if status.inventory_owner.is_none() {
            status.inventory_base_revision = None;
        }
    }

    fn observes(&self) -> bool {
        self.round.object.spec.mode == SyncMode::Observe
    }

    fn request(&self) -> Result<Request, Failure> {
        let (spec, status) = (&self.round.object.spec, &self.round.status);
        let revision = |text: &Option<String>| text.as_deref().and_then(|text| text.parse::<Revision>().ok());
        let (prunes, applies): (Vec<_>, Vec<_>) =
            status.failed_resources.iter().partition(|failed| failed.operation == sync::PRUNE);
        let scope = spec.scope();
        Ok(Request {
            mirror: self.mirror.clone(),
            scope: scope.map_err(|reason| Failure::spec_invalid(format!("spec.source.path: {reason}")))?,
            recursive: spec.source.recursive,
            prune: spec.sync.prune,
            base: self.plan.base.clone(),
            target: self.target.clone(),
            owner: self.owner.clone(),
            knows_scope: self.plan.knowledge.has_whole_scope(),
            past: Past {
                owner: status.inventory_owner.clone(),
                base: revision(&status.inventory_base_revision),
                pending: status
                    .inventory_pending
                    .iter()
                    .filter_map(|it| LogicalPath::parse(it).ok())
                    .collect(),
                applied: revision(&status.last_applied_repo_revision),
                attempted: revision(&status.last_attempted_repo_revision)
                    .filter(|_| !status.last_run_observed),
            },
            failed_applies: paths(&applies),
            failed_prunes: paths(&prunes),
            unsettled: self.plan.recurrences.unsettled().map(|(path, _)| path.clone()).collect(),
            trigger: self.plan.trigger,
        })
    }

    /// Creates the session of the engine.
    async fn session(&mut self, tree: Arc<GitTree>) -> Result<Session, Failure> {
        let (context, pools) = (self.round.context, self.pools);
        let bootstrap = |failure: Failure| Failure::new(Reason::SessionBootstrapFailed, failure.message);
        let server = &self.plan.inputs.server;
        let client = pools.servers.client(context, server).await.map_err(bootstrap)?;
        let artifacts = pools.artifacts.get(context, server, &client).await.map_err(bootstrap)?;
        let metadata = Arc::new(artifacts.metadata(tree.clone()));
        let secrets = SecretReader::new(match &self.plan.inputs.store {
            Some(store) => Some(pools.stores.open(context, store).await.map_err(bootstrap)?.store),
            None => None,
        });
        let knowledge = Arc::clone(&self.plan.knowledge);
        let directory = context.directories.cache(&SyncPolicy::owner(&self.round.key()));
        let address = client.address();
        let known = self.round.status.record_id.clone();
        let open = move || {
            let written = WrittenValues::open(&directory, address);
            let id = written.identified(known.as_deref());
            Ok((written, id))
        };
        let (written, id) = blocking(open).await?;
        // It is published before the first write.
        self.round.status.record_id = Some(id);
        let written = Some(Arc::new(written));
        Ok(Session { knowledge, secrets, written, ..Session::new(tree, metadata, client) })
    }

    /// Sets the status fields of a run in progress. If the process dies after they are written, the run counts as failed.
    fn mark(&mut self, kind: RunKind, trigger: Trigger) {
        let (target, observes) = (&self.target, self.observes());
        let status = &mut self.round.status;
        status.last_attempt_time = Some(Time(conditions::whole_seconds(Timestamp::now())));
        status.last_attempted_repo_revision = Some(target.to_string());
        status.last_run_outcome = Some(RunOutcome::Failed);
        status.last_run_observed = observes;
        status.last_trigger = Some(trigger.into_str().to_owned());
        status.last_sync_mode = Some(kind);
        // The planned time of the last run is not valid for this one. Without it, the run has not ended.
        status.next_sync_time = None;
    }

    /// Records in the status and in the inventory that a run is in progress.
    async fn begin(&mut self, kind: RunKind, trigger: Trigger) -> Result<(), Failure> {
        // The status.
        self.mark(kind, trigger);
        let target = &self.target;
        let status = &self.round.status;
        let drifted = drift::condition(status);
        let message = format!("syncing revision {target} ({})", trigger.into_str());
        let mut working = Outcome::new(Reason::Reconciling, message);
        working.conditions = drifted.into_iter().collect();
        let published = self.round.publish(&working, 0).await;
        published.map_err(|error| Failure::api("write the status", &error))?;
        // The inventory.
        if self.observes() {
            return Ok(());
        }
        let (pins, mirror, target) = (self.pins(), self.mirror.clone(), self.target.clone());
        let base = self.round.status.inventory_base_revision.clone();
        blocking(move || pins.attempt(&mirror, base.as_deref(), &target)).await
    }

    fn pins(&self) -> Pins {
        Pins::of(&self.round.object.metadata, self.round.status.inventory_id.as_ref())
    }

    async fn execute(
        self,
        session: &Session,
        selected: Selected,
    ) -> Result<(Outcome, Option<Recurrences>), Failure> {
        let Selected { selection, kind, trigger, settling, .. } = selected;
        let options = options(&self.round.object, trigger)?;
        let options = Options { recurrences: earlier(&self.round.object, &self.plan), ..options };
        tracing::info!(
            revision = %self.target, mode = ?kind, trigger = trigger.into_str(),
            targeted = selection.targeted(), prune = selection.prune.len(), "sync started"
        );
        let (report, cancelled) = self.watched(sync::run(session, selection, &options, &self.stop)).await;
        let outcome = self.conclude(kind, trigger, &report, cancelled, settling).await;
        Ok((outcome, report.recurrences))
    }

    /// Awaits `work` of this run, and requests its stop if the run must not continue. Also returns whether the run is
    /// cancelled: it is no longer wanted, so it has not failed.
    async fn watched<T>(&self, work: impl Future<Output = T>) -> (T, bool) {
        let mut work = pin!(work);
        tokio::select! {
            done = work.as_mut() => (done, self.cancelled),
            Ending { reason, cancelled } = ending(self.round.context, &self.round.object, &self.plan.inputs) => {
                self.stop.request(reason);
                (work.await, cancelled)
            }
        }
    }

    /// Records the result of the run, and pins the applied revision. If the run examined all resources to prune, the
    /// inventory starts again at its revision, with those that are left.
    async fn conclude(
        self,
        kind: RunKind,
        trigger: Trigger,
        report: &Report,
        cancelled: bool,
        settling: Option<Settling>,
    ) -> Outcome {
        let pins = self.pins();
        let Self { round, plan, target, mirror, .. } = self;
        let stats = report.stats;
        tracing::info!(
            revision = %target, mode = ?kind, outcome = report.outcome.as_str(), targeted = stats.targeted,
            applied = stats.applied, created = stats.created, updated = stats.updated,
            pruned = stats.pruned, failed = stats.failed, "sync finished"
        );
        let applied = round.status.last_applied_repo_revision.as_deref();
        // With `force`, equal resources are written, too.
        let is_forced = round.object.spec.sync.force;
        let corrects_drift = !is_forced && trigger.is_drift_check() && applied == Some(target.as_str());
        let run = Run { plan: &plan, kind, report, target: &target, corrects_drift, cancelled };
        verdict::count(round.context, &round.key(), &run);
        let outcome = verdict::conclude(&mut round.status, &run, Timestamp::now());
        let status = &mut round.status;
        let settling = settling.filter(|_| round.object.spec.mode == SyncMode::Apply);
        let left = settling.and_then(|settling| settling.left(report));
        let applied = status.last_applied_repo_revision.as_deref() == Some(target.as_str());
        let revision = target.clone();
        let (pending, declaring) = left.unzip();
        if let Some(id) = pin_reached(pins, mirror, target, applied, declaring).await {
            status.inventory_id = Some(id);
            status.inventory_base_revision = Some(revision.to_string());
            status.inventory_pending = pending.unwrap_or_default();
        }
        outcome
    }
}

/// Runs `work` with Git on the blocking pool.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, RepositoryError> + Send + 'static,
) -> Result<T, Failure> {
    error::blocking(move || work().map_err(|error| unavailable(&error))).await
}

fn paths(failed: &[&FailedResource]) -> Vec<LogicalPath> {
    failed.iter().filter_map(|failed| LogicalPath::parse(&failed.path).ok()).collect()
}

/// Pins the `revision` of a run if it is applied, and prepares an inventory that begins at it if the revisions before it
/// that are still needed, those `declaring` pending resources, are known. Returns the id of that inventory. A failure only
/// causes a full run later, or a larger inventory, so it does not fail this run.
async fn pin_reached(
    pins: Pins,
    mirror: Mirror,
    revision: Revision,
    applied: bool,
    declaring: Option<Vec<Revision>>,
) -> Option<String> {
    let pinned = blocking(move || {
        if applied {
            pins.applied(&mirror, &revision)?;
        }
        declaring.map(|declaring| pins.advance(&mirror, &revision, &declaring)).transpose()
    });
    let warn = |failure: Failure| {
        tracing::warn!(error = failure.message, "cannot pin the revision of the run");
        None
    };
    pinned.await.unwrap_or_else(warn)
}

fn options(policy: &SyncPolicy, trigger: Trigger) -> Result<Options, Failure> {
    let sync = &policy.spec.sync;
    let prune_limit = sync
        .prune_limit
        .limit()
        .map_err(|reason| Failure::spec_invalid(format!("spec.sync.pruneLimit: {reason}")))?;
    Ok(Options {
        mode: match policy.spec.mode {
            SyncMode::Apply => Mode::Apply,
            SyncMode::Observe => Mode::Observe,
        },
        // A drift check may use lists; every other run reads each resource individually.
        reading: if trigger == Trigger::DriftDue { Reading::Bulk } else { Reading::Each },
        first: trigger == Trigger::InitialSync,
        // An equal resource is not drift.
        force: sync.force && policy.spec.mode == SyncMode::Apply,
        prune_limit,
        allow_empty: sync.allow_empty,
        ..Options::default()
    })
}

/// Why a run must stop.
struct Ending {
    reason: String,
    /// Whether the run is no longer wanted, in contrast to a run that takes too long.
    cancelled: bool,
}

/// Waits until the run must stop: its policy, server or repository changes or is deleted, an older policy claims its scope,
/// this process must stop, or the time limit is reached.
async fn ending(context: &Context, policy: &SyncPolicy, inputs: &Inputs) -> Ending {
    let (key, own) = (policy.key(), Claim::of(policy));
    let limit = context.settings.sync_timeout;
    let deadline = tokio::time::Instant::now() + limit;
    let left = context.namespaces.left(&key.namespace);
    let mut policies = pin!(context.caches.policies.subscribe());
    let mut own_change = pin!(outdated(&context.caches.policies, policy));
    // Their address may have been wrong, so that each further write would be a mistake.
    let mut new_server = pin!(outdated(&context.caches.servers, &inputs.server));
    let mut new_repository = pin!(outdated(&context.caches.repositories, &inputs.repository));
    let cancelled = |reason: &str| Ending { reason: reason.to_owned(), cancelled: true };
    loop {
        tokio::select! {
            () = context.stop.cancelled() => return cancelled("the operator is stopping or no longer leads"),
            () = left.cancelled() => return cancelled("another shard gets the namespace"),
            () = tokio::time::sleep_until(deadline) => {
                let reason = format!("the run did not end within {} s (--sync-timeout)", limit.as_secs());
                return Ending { reason, cancelled: false };
            }
            reason = own_change.as_mut() => return cancelled(&reason),
            reason = new_server.as_mut() => return cancelled(&reason),
            reason = new_repository.as_mut() => return cancelled(&reason),
            Some(change) = policies.next() => {
                if let Some(own) = &own
                    && let Some(rival) = rival(context, own, &key.namespace, &change)
                    && let Some(senior) = overlap::senior(own, &[rival])
                {
                    return cancelled(&format!(
                        "the older SyncPolicy \"{}\" claims {}",
                        senior.name, senior.scope
                    ));
                }
            }
        }
    }
}

/// Returns the claim of a changed policy of the namespace that may have the same server.
fn rival(
    context: &Context,
    own: &Claim,
    namespace: &str,
    change: &Change<Guarded<SyncPolicy>>,
) -> Option<Claim> {
    let Change::Present(policy) = change else { return None };
    let policy = policy.0.as_ref().ok().filter(|policy| policy.key().namespace == namespace)?;
    own.rival(policy, &context.settings)
}

/// Returns the failure of a mirror that cannot be read. A mirror without the revision was fetched again, and its
/// repository is about to show a newer revision.
fn unavailable(error: &RepositoryError) -> Failure {
    let reason = match error {
        RepositoryError::RevisionMissing(_) => Reason::Reconciling,
        _ => Reason::RepositoryUnavailable,
    };
    Failure::new(reason, error.to_string())
}
