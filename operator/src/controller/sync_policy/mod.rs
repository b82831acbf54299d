//! SyncPolicy: decides when and with what the engine runs, and tells in status what came of it.
//!
//! A round of work goes: is the policy itself usable (`overlap`, `schedule`), are its dependencies
//! (`inputs`), is anything due (`decision`), which resources does that concern (`selection`), run it
//! (`run`), and what follows from the report (`verdict`).

mod decision;
mod inputs;
mod inventory;
mod overlap;
mod run;
mod schedule;
mod selection;
mod territory;
mod unsettled;
mod verdict;
mod wakeups;

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use declarest_core::repository::Revision;
use declarest_core::sync::{Knowledge, Recurrences};
use jiff::Timestamp;
use kube::Resource as _;

use super::context::{Context, Guarded};
use super::dependencies::Dependency;
use super::error::Failure;
use super::frame::{self, Reconciler, Round};
use super::kind::Key;
use super::outcome::{Outcome, Reason};
use crate::crd::sync_policy::SyncMode;
use crate::crd::{SyncPolicy, SyncPolicyStatus};
use decision::{ConfigHash, Decision, Fingerprint, Situation};
use inputs::Inputs;
use overlap::Claim;
use schedule::Schedule;
use territory::Territories;

/// Asks for a full run; any new value counts.
pub const SYNC_REQUEST: &str = "declarest.io/sync-requested-at";

/// The controller of all policies.
#[derive(Default)]
pub struct SyncPolicies {
    /// What each policy and its dependencies looked like when this process last started a run of it.
    attempted: Mutex<HashMap<Key, Fingerprint>>,
    /// What the runs of each policy learned about its server, and under which configuration.
    learned: Mutex<HashMap<Key, (Configuration, Arc<Knowledge>)>>,
    /// What the last run of each policy saw of what does not converge.
    recurrences: Mutex<HashMap<Key, Recurrences>>,
    /// Where runs are at work.
    territories: Territories,
}

/// What makes knowledge about a server worthless when it changes: the specs and artifacts that a policy
/// depends on, and their Secrets.
type Configuration = (ConfigHash, String);

/// Runs the controller until `context.stop` is cancelled.
pub async fn run(context: Arc<Context>) {
    let wakeups = wakeups::wakeups(&context);
    let policies = context.caches.policies.clone();
    frame::run(SyncPolicies::default(), context, &policies, wakeups).await;
}

impl Reconciler for SyncPolicies {
    type Kind = SyncPolicy;

    const ANNOTATIONS: &'static [&'static str] = &[SYNC_REQUEST];

    fn dependencies(&self, context: &Context, policy: &SyncPolicy) -> BTreeSet<Dependency> {
        inputs::secret_names(context, policy).into_iter().map(Dependency::Secret).collect()
    }

    async fn reconcile(&self, round: &mut Round<'_, SyncPolicy>) -> Outcome {
        match Box::pin(self.advance(round)).await {
            Ok(outcome) => outcome,
            Err(failure) => failure.into(),
        }
    }

    async fn cleanup(&self, context: &Context, object: &Guarded<SyncPolicy>) -> Result<(), Failure> {
        inventory::unpin_everywhere(context, object.meta()).await
    }

    fn forget(&self, _: &Context, key: &Key) {
        self.attempted.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
        self.learned.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
        self.recurrences.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
    }

    fn concluded(&self, context: &Context, key: &Key, outcome: &Outcome, took: Duration) {
        let success = !outcome.reason.is_failure();
        context.metrics.policy_reconciled(key.subject(), success, outcome.reason.as_str(), took);
    }
}

impl SyncPolicies {
    async fn advance(&self, round: &mut Round<'_, SyncPolicy>) -> Result<Outcome, Failure> {
        let now = Timestamp::now();
        let schedule = check_policy(round, now)?;
        if round.object.spec.suspend {
            return Ok(Outcome::new(
                Reason::Suspended,
                "spec.suspend is true: nothing is compared or written",
            ));
        }
        check_overlap(round)?;
        let inputs = Inputs::gather(round.context, &round.object)?;
        let fingerprint = inputs.fingerprint(round.context, &round.object);
        let sync_interval = round.object.spec.sync_interval.duration().unwrap_or_default();
        let attempted = self.attempted(&round.key());
        let decision = decision::decide(&Situation {
            status: &round.status,
            now,
            fingerprint: &fingerprint,
            attempted: attempted.as_ref(),
            schedule: schedule.as_ref(),
            sync_interval,
            recursive: round.object.spec.source.recursive,
        });
        tracing::debug!(?decision, revision = fingerprint.revision, "decided");
        let (base, trigger) = match decision {
            Decision::Settled => {
                return Ok(verdict::restored(&round.status, schedule.as_ref(), sync_interval, now));
            }
            Decision::BackOff(until) => return Ok(verdict::waiting(&round.status, until, now)),
            Decision::Full(trigger) => (None, trigger),
            // What is only observed stays different, so the count of what differs needs the whole scope.
            Decision::Incremental { trigger, .. } if round.object.spec.mode == SyncMode::Observe => {
                (None, trigger)
            }
            Decision::Incremental { base, trigger } => (base.parse::<Revision>().ok(), trigger),
        };
        let key = round.key();
        let scope = round.object.spec.scope().map_err(Failure::spec_invalid)?;
        let _territory = self.territories.enter(&key, &scope).await;
        let knowledge = self.knowledge(&key, &fingerprint);
        let recurrences = self.recurrences(&key, &round.status);
        let plan = run::RunPlan {
            inputs,
            fingerprint,
            trigger,
            base,
            schedule,
            sync_interval,
            attempted,
            knowledge,
            recurrences,
        };
        let (outcome, recurrences) =
            Box::pin(run::run(round, plan, |fingerprint| self.remember(&key, fingerprint.clone()))).await?;
        if let Some(recurrences) = recurrences {
            self.recurrences.lock().unwrap_or_else(PoisonError::into_inner).insert(key, recurrences);
        }
        Ok(outcome)
    }

    /// What the last run saw; after a restart, what it left on record.
    fn recurrences(&self, key: &Key, status: &SyncPolicyStatus) -> Recurrences {
        let known = self.recurrences.lock().unwrap_or_else(PoisonError::into_inner).get(key).cloned();
        known.unwrap_or_else(|| unsettled::recorded(status))
    }

    fn attempted(&self, key: &Key) -> Option<Fingerprint> {
        self.attempted.lock().unwrap_or_else(PoisonError::into_inner).get(key).cloned()
    }

    /// What was learned under the same configuration, else nothing.
    fn knowledge(&self, key: &Key, fingerprint: &Fingerprint) -> Arc<Knowledge> {
        let configuration = (fingerprint.config.clone(), fingerprint.secrets.clone());
        let mut learned = self.learned.lock().unwrap_or_else(PoisonError::into_inner);
        match learned.get(key) {
            Some((under, knowledge)) if *under == configuration => Arc::clone(knowledge),
            _ => {
                let knowledge = Arc::<Knowledge>::default();
                learned.insert(key.clone(), (configuration, Arc::clone(&knowledge)));
                knowledge
            }
        }
    }

    fn remember(&self, key: &Key, fingerprint: Fingerprint) {
        self.attempted.lock().unwrap_or_else(PoisonError::into_inner).insert(key.clone(), fingerprint);
    }
}

fn check_policy(round: &Round<'_, SyncPolicy>, now: Timestamp) -> Result<Option<Schedule>, Failure> {
    let Some(cron) = &round.object.spec.full_resync_cron else { return Ok(None) };
    let schedule = Schedule::parse(cron, now)
        .map_err(|reason| Failure::spec_invalid(format!("spec.fullResyncCron: {reason}")))?;
    Ok(Some(schedule))
}

fn check_overlap(round: &Round<'_, SyncPolicy>) -> Result<(), Failure> {
    let Some(own) = Claim::of(&round.object) else { return Ok(()) };
    let others = claims(round.context, &round.key().namespace);
    match overlap::senior(&own, &others) {
        None => Ok(()),
        Some(senior) => Err(Failure::new(
            Reason::OverlappingPolicy,
            format!(
                "spec.source.path {} overlaps {} of the older SyncPolicy \"{}\"; narrow one of the two, or delete one",
                own.scope, senior.scope, senior.name
            ),
        )),
    }
}

/// What the policies of a namespace own, by their expanded paths.
fn claims(context: &Context, namespace: &str) -> Vec<Claim> {
    let policies = context.caches.policies.list(namespace);
    policies.iter().filter_map(|policy| claim(context, policy)).collect()
}

fn claim(context: &Context, policy: &SyncPolicy) -> Option<Claim> {
    // Expanding a whole spec costs, and hardly any path needs it.
    if policy.spec.source.path.contains("${") {
        Claim::of(&context.expanded(policy).ok()?)
    } else {
        Claim::of(policy)
    }
}
