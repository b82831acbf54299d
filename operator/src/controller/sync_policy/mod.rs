//! SyncPolicy: decides when the engine runs and on which resources, and records the result in the status.
//!
//! The stages of a round: check the policy (`overlap`, `schedule`), check its dependencies (`inputs`), decide what is
//! due (`decision`), select the resources (`selection`), run the engine (`run`), record the result (`verdict`). The
//! first stages pass their results to `selection` and `run` in a `plan`.

mod decision;
mod drift;
mod inputs;
mod inventory;
mod overlap;
mod plan;
mod run;
mod schedule;
mod selection;
mod territory;
mod unsettled;
mod verdict;
mod wakeups;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use declarest_core::repository::Revision;
use declarest_core::sync::{Knowledge, Recurrences};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::Resource as _;
use parking_lot::Mutex;

use super::context::{Context, Guarded};
use super::dependencies::Dependency;
use super::error::{self, Failure};
use super::frame::{self, Reconciler, Round};
use super::kind::{Key, Kind as _};
use super::outcome::{Outcome, Reason};
use super::pools::Pools;
use super::workers::{Demand, OF_A_SERVER};
use crate::crd::sync_policy::SyncMode;
use crate::crd::{ManagedServer, SyncPolicy, SyncPolicyStatus};
use decision::{ConfigHash, Decision, Fingerprint, Situation};
use inputs::Inputs;
pub use overlap::{Claim, overlapping};
use plan::RunPlan;
use territory::Territories;

/// The annotation that requests a full run. Every new value is a request.
pub const SYNC_REQUEST: &str = "declarest.io/sync-requested-at";

/// A new policy waits for its dependencies for this time before its status reports them.
const EARLY: Duration = Duration::from_secs(5);

/// The controller of all policies.
#[derive(Default)]
pub struct SyncPolicies {
    pools: Arc<Pools>,
    memory: Mutex<HashMap<Key, Memory>>,
    /// The scopes of the runs in progress.
    territories: Territories,
}

/// What this process remembers of a policy.
#[derive(Default)]
struct Memory {
    /// The fingerprint when a run was last started.
    attempted: Option<Fingerprint>,
    /// The configuration of the last runs, and their knowledge about the server.
    learned: Option<Learned>,
    /// The resources that do not converge, from the last run.
    recurrences: Option<Recurrences>,
    /// Since when a new policy waits for its dependencies.
    waiting: Option<Instant>,
}

/// The knowledge of the runs with one configuration.
struct Learned {
    /// The specs and artifacts that the policy depends on, and their Secrets. If one of them changes, only the knowledge
    /// about creates remains valid.
    configuration: (ConfigHash, String),
    /// The uid of the server, and its base URL.
    server: (Option<String>, String),
    knowledge: Arc<Knowledge>,
}

/// Runs the controller until `context.stop` is cancelled.
pub async fn run(context: Arc<Context>, pools: Arc<Pools>) {
    let wakeups = wakeups::wakeups(&context, &pools.mirrors);
    let policies = context.caches.policies.clone();
    frame::run(SyncPolicies { pools, ..SyncPolicies::default() }, context, &policies, wakeups).await;
}

impl Reconciler for SyncPolicies {
    type Kind = SyncPolicy;

    const ANNOTATIONS: &'static [&'static str] = &[SYNC_REQUEST];

    fn dependencies(&self, context: &Context, policy: &SyncPolicy) -> BTreeSet<Dependency> {
        inputs::secret_names(context, policy).into_iter().map(Dependency::Secret).collect()
    }

    fn demand(&self, context: &Context, policy: &SyncPolicy) -> Demand {
        if policy.spec.suspend {
            return Demand::Nothing;
        }
        let name = policy.spec.managed_server_ref.name.clone();
        let namespace = policy.key().namespace;
        let server = context.caches.servers.get(&namespace, &name);
        let limit = server.and_then(|server| server.spec.http.request_throttling?.max_concurrent_requests);
        let limit = limit.and_then(|limit| usize::try_from(limit).ok()).filter(|limit| *limit > 0);
        Demand::Server { name, share: limit.map_or(OF_A_SERVER, |limit| limit.min(OF_A_SERVER)) }
    }

    async fn reconcile(&self, round: &mut Round<'_, SyncPolicy>) -> Outcome {
        match Box::pin(self.advance(round)).await {
            Ok(outcome) => outcome,
            Err(failure) => failure.into(),
        }
    }

    async fn cleanup(&self, context: &Context, object: &Guarded<SyncPolicy>) -> Result<(), Failure> {
        inventory::unpin_everywhere(&self.pools.mirrors, object.meta()).await?;
        // The record of write-only attributes. A later policy of this name must write them.
        error::remove(context.directories.cache(&SyncPolicy::owner(&Key::of(object.meta())))).await
    }

    fn forget(&self, _: &Context, key: &Key) {
        self.memory.lock().remove(key);
    }

    fn concluded(&self, round: &Round<'_, SyncPolicy>, outcome: &Outcome, took: Duration) {
        let (metrics, key) = (&round.context.metrics, round.key());
        let success = !outcome.reason.is_failure();
        metrics.policy_reconciled(key.subject(), success, outcome.reason.into_str(), took);
        // From the status, which outlives the process.
        if let Some(Time(at)) = &round.status.last_successful_sync_time {
            metrics.policy_succeeded(key.subject(), *at);
        }
    }
}

impl SyncPolicies {
    async fn advance(&self, round: &mut Round<'_, SyncPolicy>) -> Result<Outcome, Failure> {
        // Check the policy.
        let now = Timestamp::now();
        let schedule = round.parsed.take();
        if round.object.spec.suspend {
            round.status.next_sync_time = None;
            return Ok(Outcome::new(Reason::Suspended, "spec.suspend is true: the policy does not sync"));
        }
        check_overlap(round)?;
        // Check the dependencies.
        let inputs = match Inputs::gather(round.context, &round.object) {
            Err(failure) if self.is_early(round, &failure) => {
                let waiting = Outcome::new(Reason::Reconciling, failure.message);
                return Ok(waiting.quietly().with_requeue(EARLY));
            }
            gathered => gathered?,
        };
        let key = round.key();
        self.remember(&key, |memory| memory.waiting = None);
        let fingerprint = inputs.fingerprint(round.context, &round.object);
        // Decide what is due.
        let sync_interval = round.object.spec.sync_interval.duration().unwrap_or_default();
        let attempted = self.remember(&key, |memory| memory.attempted.clone());
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
            // Observed drift is not corrected, so its count needs the whole scope.
            Decision::Incremental { trigger, .. } if round.object.spec.mode == SyncMode::Observe => {
                (None, trigger)
            }
            Decision::Incremental { base, trigger } => (base.parse::<Revision>().ok(), trigger),
        };
        // Run.
        let (knowledge, recurrences) =
            (self.knowledge(&key, &fingerprint, &inputs.server), self.recurrences(&key, &round.status));
        let plan = RunPlan {
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
        self.run(round, key, plan).await
    }

    /// Runs the plan when no other run of the server has an overlapping scope.
    async fn run(
        &self,
        round: &mut Round<'_, SyncPolicy>,
        key: Key,
        plan: RunPlan,
    ) -> Result<Outcome, Failure> {
        let scope = round.object.spec.scope().map_err(Failure::spec_invalid)?;
        let server = round.object.spec.managed_server_ref.name.clone();
        let _territory = self.territories.enter(&key, &server, &scope).await;
        let started = |fingerprint: &Fingerprint| {
            self.remember(&key, |memory| memory.attempted = Some(fingerprint.clone()));
        };
        let (outcome, recurrences) = Box::pin(run::run(round, &self.pools, plan, started)).await?;
        if recurrences.is_some() {
            self.remember(&key, |memory| memory.recurrences = recurrences);
        }
        Ok(outcome)
    }

    /// Returns whether a new policy waits for objects that are probably about to be ready, because they were created
    /// together. Then its status is not written yet.
    fn is_early(&self, round: &Round<'_, SyncPolicy>, failure: &Failure) -> bool {
        if failure.reason != Reason::DependencyNotReady || !round.status.conditions.is_empty() {
            return false;
        }
        let since = self.remember(&round.key(), |memory| *memory.waiting.get_or_insert_with(Instant::now));
        since.elapsed() < EARLY
    }

    /// Returns the resources that do not converge, from the last run; after a restart, from the status.
    fn recurrences(&self, key: &Key, status: &SyncPolicyStatus) -> Recurrences {
        let known = self.remember(key, |memory| memory.recurrences.clone());
        known.unwrap_or_else(|| unsettled::recorded(status))
    }

    /// Returns the knowledge of runs with the same configuration, otherwise only that about created resources.
    fn knowledge(&self, key: &Key, fingerprint: &Fingerprint, server: &ManagedServer) -> Arc<Knowledge> {
        let configuration = (fingerprint.config.clone(), fingerprint.secrets.clone());
        let server = (server.metadata.uid.clone(), server.spec.http.base_url.clone());
        self.remember(key, |memory| match &memory.learned {
            Some(learned) if learned.configuration == configuration => Arc::clone(&learned.knowledge),
            earlier => {
                let of_creates =
                    earlier.as_ref().map(|learned| learned.knowledge.of_creates(learned.server == server));
                let knowledge = Arc::new(of_creates.unwrap_or_default());
                memory.learned = Some(Learned { configuration, server, knowledge: Arc::clone(&knowledge) });
                knowledge
            }
        })
    }

    /// Gives `work` what is remembered of a policy.
    fn remember<T>(&self, key: &Key, work: impl FnOnce(&mut Memory) -> T) -> T {
        work(self.memory.lock().entry(key.clone()).or_default())
    }
}

fn check_overlap(round: &Round<'_, SyncPolicy>) -> Result<(), Failure> {
    let Some(own) = Claim::of(&round.object) else { return Ok(()) };
    let context = round.context;
    let rivals =
        context.caches.policies.select(&round.key().namespace, |policy| own.rival(policy, &context.settings));
    match overlap::senior(&own, &rivals) {
        None => Ok(()),
        Some(senior) => Err(Failure::new(
            Reason::OverlappingPolicy,
            format!(
                "spec.source.path {} overlaps {} of the older SyncPolicy \"{}\"; change one of the paths, or delete \
                 one policy",
                own.scope, senior.scope, senior.name
            ),
        )),
    }
}
