//! ManagedServer: checks that a connection can be built, fetches the artifacts, probes the health check if one is
//! configured, and verifies the contract if there is one.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use declarest_core::server::Client;
use futures::stream;
use parking_lot::Mutex;

use super::artifacts::Artifacts;
use super::backoff;
use super::conditions;
use super::context::{Context, Guarded};
use super::dependencies::Dependency;
use super::error::{self, Failure};
use super::frame::{self, Reconciler, Round};
use super::kind::{Key, Kind as _};
use super::outcome::{Fact, Notice, Outcome, Reason, Truth};
use super::pools::Pools;
use crate::crd::ManagedServer;

/// Runs the controller until `context.stop` is cancelled.
pub async fn run(context: Arc<Context>, pools: Arc<Pools>) {
    let targets = pools.contracts.watches.changes();
    let wakeups = stream::select(context.dependents::<ManagedServer>(), targets);
    let objects = context.caches.servers.clone();
    frame::run(ManagedServers { pools, polls: Mutex::default() }, context, &objects, wakeups).await;
}

/// The condition of the artifacts, and the event when they are fetched.
const CACHED: &str = "ArtifactsCached";

/// The reason of that condition if the last artifacts are used.
const STALE: &str = "StaleArtifact";

struct ManagedServers {
    pools: Arc<Pools>,
    polls: Mutex<HashMap<Key, Poll>>,
}

/// The generation of a server, and the digest of its Secrets.
type Inputs = (i64, String);

/// The last successful round that fetched everything.
struct Poll {
    inputs: Inputs,
    at: Instant,
}

impl Reconciler for ManagedServers {
    type Kind = ManagedServer;

    fn dependencies(&self, _: &Context, object: &ManagedServer) -> BTreeSet<Dependency> {
        let named = object.secret_refs().into_iter().map(|(_, secret)| secret.name);
        let pulled = object.spec.pull_secrets().map(|secret| secret.name.clone());
        named.chain(pulled).map(Dependency::Secret).collect()
    }

    async fn reconcile(&self, round: &mut Round<'_, ManagedServer>) -> Outcome {
        // Taken before the Secrets are read, so that a later change of them counts.
        let key = round.key();
        let inputs = (round.generation(), round.context.secrets_hash::<ManagedServer>(&key));
        // Build the client that policies use. This checks all settings and Secrets.
        let client = self.pools.servers.client(round.context, &round.object).await;
        let (started, rest) = (Instant::now(), self.rest(&inputs, round));
        let due = rest.is_zero();
        let outcome = match &client {
            Ok(client) => self.connected(round, client, due).await,
            Err(failure) => failure.clone().into(),
        };
        // Verify the contract, also if the server cannot be used.
        let outcome = self.pools.contracts.verify(round, client.as_ref().ok(), due, outcome).await;
        let is_ready = outcome.reason == Reason::Ready;
        let is_stale = |fact: &Fact| fact.type_ == CACHED && fact.truth == Truth::False;
        if due && is_ready && !outcome.conditions.iter().any(is_stale) {
            self.polls.lock().insert(key, Poll { inputs, at: started });
        }
        if due || !is_ready || outcome.requeue.is_some() {
            return outcome;
        }
        outcome.with_requeue(backoff::jitter(rest))
    }

    async fn cleanup(&self, context: &Context, object: &Guarded<ManagedServer>) -> Result<(), Failure> {
        let owner = ManagedServer::owner(&Key::of(kube::Resource::meta(object)));
        for directory in [context.directories.cache(&owner), context.directories.bundle_cache(&owner)] {
            error::remove(directory).await?;
        }
        Ok(())
    }

    fn forget(&self, context: &Context, key: &Key) {
        self.polls.lock().remove(key);
        self.pools.servers.forget(key);
        self.pools.artifacts.forget(key);
        self.pools.contracts.forget(context, key);
    }
}

impl ManagedServers {
    /// Returns how long nothing is to be downloaded again; zero if it is due. Changes of the target of the contract cause
    /// many rounds.
    fn rest(&self, inputs: &Inputs, round: &Round<'_, ManagedServer>) -> Duration {
        let poll =
            self.polls.lock().get(&round.key()).filter(|poll| poll.inputs == *inputs).map(|poll| poll.at);
        let (Some(at), Some(interval)) = (poll, round.object.interval()) else { return Duration::ZERO };
        let rest = interval.saturating_sub(at.elapsed());
        // The wait before a round may be a tenth shorter.
        if rest * 10 <= interval { Duration::ZERO } else { rest }
    }

    async fn connected(&self, round: &mut Round<'_, ManagedServer>, client: &Client, due: bool) -> Outcome {
        // Fetch the artifacts.
        let outcome = match artifacts(round, &self.pools.artifacts, client, due).await {
            Ok(outcome) => outcome,
            Err(failure) => return failure.into(),
        };
        // Probe the server.
        if round.object.spec.http.health_check.is_none() {
            return outcome;
        }
        outcome.with_condition(match client.health().await {
            Ok(()) => reachable(Truth::True, "ProbeSucceeded", "the health check succeeded".to_owned()),
            Err(error) => {
                tracing::warn!(reason = "ProbeFailed", %error, "the health check failed");
                reachable(Truth::False, "ProbeFailed", error.to_string())
            }
        })
    }
}

/// Fetches the bundle and the `OpenAPI` document if that is `due`, and records them in the status. If they cannot be fetched again,
/// the last ones are used.
async fn artifacts(
    round: &mut Round<'_, ManagedServer>,
    known: &Artifacts,
    client: &Client,
    due: bool,
) -> Result<Outcome, Failure> {
    let (context, object) = (round.context, &round.object);
    let outcome = Outcome::ready("all references are valid");
    if object.spec.metadata.is_none() && object.spec.openapi.is_none() {
        round.status.artifact_digests = None;
        (round.status.openapi_cache_path, round.status.metadata_cache_path) = (None, None);
        return Ok(outcome);
    }
    let artifacts = known.refresh(context, object, client, due).await?;
    let (truth, reason, message) = match &artifacts {
        artifacts if !artifacts.stale.is_empty() => (Truth::False, STALE, artifacts.stale.join("; ")),
        artifacts if artifacts.warnings.is_empty() => {
            (Truth::True, "Cached", "all artifacts are fetched and valid".to_owned())
        }
        artifacts => (Truth::True, "Cached", artifacts.warnings.join("; ")),
    };
    if due && reason == STALE {
        tracing::warn!(reason, detail = message, "artifacts cannot be fetched again; the last ones are used");
    }
    let before = conditions::find(object.conditions(), CACHED).map(|cached| cached.reason.as_str());
    let is_news = before != Some(reason) || round.status.artifact_digests != artifacts.digests();
    let outcome = match reason {
        _ if !is_news => outcome,
        STALE => outcome.with_notice(Notice::warning("DownloadFailed", message.as_str())),
        _ => outcome.with_notice(Notice::normal(CACHED, message.as_str())),
    };
    round.status.artifact_digests = artifacts.digests();
    round.status.openapi_cache_path = artifacts.openapi_path();
    round.status.metadata_cache_path = artifacts.metadata_path();
    Ok(outcome.with_condition(Fact { type_: CACHED, truth, reason, message }))
}

/// Returns the condition `Reachable`. It does not affect whether the server is used.
fn reachable(truth: Truth, reason: &'static str, message: String) -> Fact {
    Fact { type_: "Reachable", truth, reason, message }
}
