//! The contracts of managed servers: loads them, compares them with the cluster, and reports the result.

use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use declarest_core::contract::report::{self, Origin};
use declarest_core::contract::status::{CheckStatus, ContractStatus, Gate, Phase};
use declarest_core::contract::{
    Contract, ContractSource, Loaded, Loading, ObjectKind, ProbeKind, ProbeRequest, ProbeVia, Probed, Prober,
    Read, Snapshot, Target, Verification, observe, probe_requests, unsent, verify,
};
use declarest_core::digest::sha256;
use declarest_core::error::with_causes;
use declarest_core::repository::{Mode, write_atomically};
use declarest_core::server::Client;
use declarest_core::transport::{Names, TlsConfig, TransportError};
use jiff::Timestamp;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use tokio::sync::Semaphore;
use url::Url;

use super::cluster_reads::Api;
use super::connections;
use super::context::Context;
use super::error::Failure;
use super::frame::Round;
use super::kind::{Key, Kind as _};
use super::outcome::{Fact, Notice, Outcome, Reason, Truth};
use super::references::SecretReader;
use super::target_watches::{ANY, TargetWatches, Watched};
use crate::crd::ManagedServer;
use crate::crd::contract::ContractSpec;
use crate::telemetry;

/// The condition of the contract.
const VERIFIED: &str = "ContractVerified";
/// The reason of that condition, and the event, if there is no document.
const UNAVAILABLE: &str = "ContractUnavailable";
/// The maximum time of one pass.
const PASS: Duration = Duration::from_secs(20);
/// The number of passes at the same time.
const PASSES: usize = 4;
/// The longest wait before a degraded contract is verified again.
const DEGRADED_INTERVAL: Duration = Duration::from_mins(1);
/// The file with the last good document of a server.
const KEPT: &str = "contract.json";

/// The documents that were loaded last.
pub struct Contracts {
    known: Mutex<HashMap<Key, Arc<Kept>>>,
    /// The servers whose kept document is the result of the last load, and why it could not be loaded again, if it could
    /// not.
    loads: Mutex<HashMap<Key, Option<String>>>,
    /// The probers of the servers. To build one takes much longer than a probe.
    probers: Mutex<HashMap<Key, Arc<Prober>>>,
    passes: Semaphore,
    pub watches: TargetWatches,
}

impl Default for Contracts {
    fn default() -> Self {
        Self {
            known: Mutex::default(),
            loads: Mutex::default(),
            probers: Mutex::default(),
            passes: Semaphore::new(PASSES),
            watches: TargetWatches::default(),
        }
    }
}

/// A good document, and the source that it is from.
#[derive(Serialize, Deserialize)]
struct Kept {
    /// A digest of the source, which may hold credentials.
    identity: String,
    loaded: Loaded,
}

/// A document, or why there is none.
enum Found {
    Document { loaded: Loaded, stale: Option<String> },
    Nothing(String),
}

impl Contracts {
    /// Forgets a deleted server.
    pub fn forget(&self, context: &Context, key: &Key) {
        self.watches.set(&context.client, key, BTreeSet::new());
        self.known.lock().remove(key);
        self.loads.lock().remove(key);
        self.probers.lock().remove(key);
    }

    /// Returns the prober of a server. It is built again only if the trusted CAs have changed.
    fn prober(&self, key: &Key, tls: &TlsConfig, names: &Names) -> Result<Arc<Prober>, TransportError> {
        let mut probers = self.probers.lock();
        if let Some(known) = probers.get(key).filter(|known| known.is_for(tls)) {
            return Ok(Arc::clone(known));
        }
        let prober = Arc::new(Prober::new(tls, names)?);
        probers.insert(key.clone(), Arc::clone(&prober));
        Ok(prober)
    }

    /// Reads the objects of a contract, and probes its endpoints.
    async fn snapshot(
        &self,
        context: &Context,
        server: &ManagedServer,
        contract: &Contract,
        target: &Target,
        spec: &ContractSpec,
        now: i64,
    ) -> Snapshot {
        let api = Api::new(&context.client);
        let mut snapshot = observe(contract, target, &api.reads(&target.namespace), now).await;
        let requests = probe_requests(contract, target, &spec.binding.severities(), &snapshot);
        if requests.is_empty() {
            return snapshot;
        }
        snapshot.probes.extend(self.probes(context, server, requests).await);
        snapshot
    }

    /// Sends probes. Without the CAs of the server, nothing is known about an endpoint with TLS.
    async fn probes(
        &self,
        context: &Context,
        server: &ManagedServer,
        requests: Vec<ProbeRequest>,
    ) -> Vec<(ProbeKind, Probed)> {
        let mut secrets = SecretReader::new(&context.client, &server.key().namespace);
        let tls = connections::tls(&mut secrets, "spec.http.tls", server.spec.http.tls.as_ref()).await;
        let (tls, sent, refused) = match tls {
            Ok(tls) => (tls, requests, Vec::new()),
            Err(failure) => {
                let (secure, plain): (Vec<_>, Vec<_>) =
                    requests.into_iter().partition(|request| request.url.scheme() == "https");
                (TlsConfig::default(), plain, unsent(&secure, &failure.message))
            }
        };
        let answers = match self.prober(&server.key(), &tls, &context.settings.names) {
            Ok(prober) => prober.send_all(&sent).await,
            Err(error) => unsent(&sent, &with_causes(&error)),
        };
        answers.into_iter().chain(refused).collect()
    }

    /// Loads the contract of the server of this round if that is `due`, verifies it, and adds the result to its status and
    /// `outcome`.
    pub async fn verify(
        &self,
        round: &mut Round<'_, ManagedServer>,
        client: Option<&Client>,
        due: bool,
        outcome: Outcome,
    ) -> Outcome {
        let key = round.key();
        let Some(spec) = round.object.spec.contract.clone() else {
            round.status.contract = None;
            round.context.metrics.forget_contract(key.subject());
            self.watches.set(&round.context.client, &key, BTreeSet::new());
            return outcome;
        };
        let former = round.status.contract.take().map(|former| *former);
        let now = Timestamp::now().as_second();
        // Load the document, and compare it with the cluster.
        let found = self.find(round.context, &round.object, &spec, client, due).await;
        let (fresh, failure) = match found {
            Found::Document { loaded, stale } => {
                let document = loaded.document();
                let verification = match &document.contract {
                    Some(contract) => {
                        let scaler = former.as_ref().and_then(autoscaler);
                        Some(self.compare(round.context, &round.object, &spec, contract, scaler, now).await)
                    }
                    None => None,
                };
                let origin = Origin {
                    source: loaded.source,
                    image_ref: loaded.image_ref,
                    stale: stale.is_some(),
                    loaded: now,
                };
                (report::loaded(&document, &origin, verification, former.as_ref(), now), stale)
            }
            Found::Nothing(reason) => (report::unavailable(former.as_ref()), Some(reason)),
        };
        // Report the result.
        let status = report::settled(former.as_ref(), concealed(&key.namespace, fresh), now);
        round.context.metrics.contract(key.subject(), &status, now);
        let outcome = announced(outcome, former.as_ref(), &status, failure.as_deref());
        let outcome = outcome.with_condition(fact(&status, failure.as_deref()));
        let is_degraded = status.phase == Some(Phase::Degraded);
        round.status.contract = Some(Box::new(status));
        let interval = round.object.interval().unwrap_or(DEGRADED_INTERVAL);
        if is_degraded && outcome.requeue.is_none() && !outcome.reason.is_failure() {
            return outcome.with_requeue(super::backoff::jitter(interval.min(DEGRADED_INTERVAL)));
        }
        outcome
    }

    /// Returns the document. If it cannot be loaded, or that is not due, returns the last good one of the same source.
    async fn find(
        &self,
        context: &Context,
        server: &ManagedServer,
        spec: &ContractSpec,
        client: Option<&Client>,
        due: bool,
    ) -> Found {
        let Some(source) = spec.binding.source() else {
            return Found::Nothing("spec.contract has no source".to_owned());
        };
        if let ContractSource::Inline(text) = &source {
            return Found::Document { loaded: Loaded::inline(text), stale: None };
        }
        let (key, identity) = (server.key(), sha256(Sha256::new_with_prefix(source.identity())));
        let file = context.directories.cache(&ManagedServer::owner(&key)).join(KEPT);
        let kept = self.kept(&key, &identity, &file).await;
        let last = self.loads.lock().remove(&key).filter(|_| !due);
        if let Some((kept, stale)) = kept.as_ref().zip(last) {
            self.loads.lock().insert(key, stale.clone());
            return Found::Document { loaded: kept.loaded.clone(), stale };
        }
        let known = kept.as_ref().map(|kept| &kept.loaded);
        match load(context, server, spec, &source, client, known).await {
            Ok(loaded) => {
                if loaded.document().contract.is_some() {
                    self.loads.lock().insert(key.clone(), None);
                    if known != Some(&loaded) {
                        self.keep(key, file, Kept { identity, loaded: loaded.clone() }).await;
                    }
                }
                Found::Document { loaded, stale: None }
            }
            Err(failure) => {
                tracing::warn!(
                    reason = UNAVAILABLE,
                    detail = failure.message,
                    "the contract cannot be loaded"
                );
                match kept {
                    Some(kept) => {
                        self.loads.lock().insert(key, Some(failure.message.clone()));
                        Found::Document { loaded: kept.loaded.clone(), stale: Some(failure.message) }
                    }
                    None => Found::Nothing(failure.message),
                }
            }
        }
    }

    /// Returns the last good document of a source, also that of an earlier process.
    async fn kept(&self, key: &Key, identity: &str, file: &PathBuf) -> Option<Arc<Kept>> {
        let known = self.known.lock().get(key).cloned();
        let kept = if let Some(known) = known {
            known
        } else {
            let bytes = tokio::fs::read(file).await.ok()?;
            Arc::new(serde_json::from_slice::<Kept>(&bytes).ok()?)
        };
        (kept.identity == identity).then_some(kept)
    }

    /// Keeps a good document in memory and on disk.
    async fn keep(&self, key: Key, file: PathBuf, kept: Kept) {
        let kept = Arc::new(kept);
        self.known.lock().insert(key, Arc::clone(&kept));
        let written = tokio::task::spawn_blocking(move || {
            let bytes = serde_json::to_vec(kept.as_ref()).map_err(std::io::Error::other)?;
            if let Some(parent) = file.parent() {
                crate::directories::ensure_private(parent).map_err(std::io::Error::other)?;
            }
            write_atomically(&file, &bytes, Mode::Private)
        });
        match written.await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, "cannot keep a contract on disk"),
            Err(error) => tracing::warn!(%error, "cannot keep a contract on disk"),
        }
    }

    /// Reads the target, probes it and compares it with the contract.
    async fn compare(
        &self,
        context: &Context,
        server: &ManagedServer,
        spec: &ContractSpec,
        contract: &Contract,
        scaler: Option<&str>,
        now: i64,
    ) -> Verification {
        let (target, severities) = (target(server, spec), spec.binding.severities());
        // Watch the target before it is read, so that no later change is missed.
        self.watches.set(&context.client, &server.key(), watched(contract, &target, scaler));
        let snapshot = if target.workload_name().is_none() {
            Snapshot::empty(now)
        } else {
            // Passes are bounded, so that many servers do not overload the API server at once.
            let _pass = self.passes.acquire().await;
            let work = self.snapshot(context, server, contract, &target, spec, now);
            tokio::time::timeout(PASS, work).await.unwrap_or_else(|_| {
                let reason = format!("the objects were not read within {PASS:?}");
                Snapshot {
                    service: Read::Failed(reason.clone()),
                    workload: Read::Failed(reason),
                    ..Snapshot::empty(now)
                }
            })
        };
        // Only the objects show which autoscaler belongs to the target.
        if let Some(found) = snapshot.autoscaler.found().map(|found| found.metadata.name.as_str())
            && Some(found) != scaler
        {
            self.watches.set(&context.client, &server.key(), watched(contract, &target, Some(found)));
        }
        verify(contract, &target, &severities, &snapshot)
    }
}

/// Loads a document from a web server or a registry.
async fn load(
    context: &Context,
    server: &ManagedServer,
    spec: &ContractSpec,
    source: &ContractSource,
    client: Option<&Client>,
    known: Option<&Loaded>,
) -> Result<Loaded, Failure> {
    let mut secrets = SecretReader::new(&context.client, &server.key().namespace);
    let proxy = connections::proxy(&mut secrets, "spec.http.proxy", server.spec.http.proxy.as_ref()).await?;
    let pull_secret = spec.pull_secret_ref.as_ref();
    let login = connections::login(&mut secrets, "spec.contract.pullSecretRef", pull_secret).await?;
    let failed = |error: &(dyn std::error::Error + 'static)| {
        Failure::new(Reason::ArtifactUnavailable, format!("spec.contract: {}", with_causes(error)))
    };
    let access = match (source, client) {
        (ContractSource::Url(url), Some(client)) if client.serves(url) => {
            Some(client.access().await.map_err(|error| failed(&error))?)
        }
        _ => None,
    };
    let loading = Loading { proxy, login, access };
    source.load(&loading, known).await.map_err(|error| {
        // The server may have rejected the current token.
        client.filter(|_| loading.access.is_some()).inspect(|client| client.invalidate_token());
        failed(&error)
    })
}

/// Returns the status with placeholders in the place of their values.
fn concealed(namespace: &str, mut status: ContractStatus) -> ContractStatus {
    let sources = status.source.iter_mut().chain(&mut status.image_ref);
    let sources = sources.chain(status.history.iter_mut().map(|entry| &mut entry.source));
    let checks = status.checks.iter_mut();
    let checks = checks.flat_map(|check| [&mut check.message, &mut check.expected, &mut check.observed]);
    let probes = status.endpoints.iter_mut().flat_map(|probe| [&mut probe.url, &mut probe.error]);
    for text in sources.chain(checks).chain(probes) {
        *text = telemetry::conceal(namespace, text).into_owned();
    }
    status
}

fn target(server: &ManagedServer, spec: &ContractSpec) -> Target {
    let origin = Url::parse(&server.spec.http.base_url).ok();
    spec.binding.target(server.key().namespace, ProbeVia::Service(origin))
}

/// Returns the objects of a target. `scaler` is the autoscaler that was found last; a further one may follow.
fn watched(contract: &Contract, target: &Target, scaler: Option<&str>) -> BTreeSet<Watched> {
    let Some(name) = target.workload_name() else { return BTreeSet::new() };
    let kinds = target.kinds(contract).into_iter().map(|kind| (ObjectKind::Workload(kind), name.to_owned()));
    let scalers = scaler.into_iter().chain([ANY]).filter(|_| contract.scaling.is_some());
    let scalers = scalers.map(|name| (ObjectKind::Autoscaler, name.to_owned()));
    kinds
        .chain(target.service.iter().map(|name| (ObjectKind::Service, name.clone())))
        .chain(scalers)
        .collect()
}

/// Returns the name of the autoscaler of a target.
fn autoscaler(status: &ContractStatus) -> Option<&str> {
    Some(&status.observed.as_ref()?.autoscaler.as_ref()?.name)
}

/// Returns the condition of a contract.
fn fact(status: &ContractStatus, failure: Option<&str>) -> Fact {
    let phase = status.phase.unwrap_or(Phase::Invalid);
    let fact = |truth, reason, message| Fact { type_: VERIFIED, truth, reason, message };
    let message = match phase {
        Phase::Healthy => "all checks succeeded".to_owned(),
        Phase::Reference => "the contract is valid and has no target".to_owned(),
        Phase::Degraded => {
            let degrading = status.checks.iter().filter(|check| check.degrades());
            let each =
                degrading.map(|check| format!("{} {}: {}", check.kind.as_str(), check.reason, check.message));
            each.collect::<Vec<_>>().join("; ")
        }
        Phase::Invalid => {
            let errors = status.validation.iter().flat_map(|validation| &validation.errors);
            let each = errors.map(|error| format!("{} {}: {}", error.code, error.path, error.message));
            each.collect::<Vec<_>>().join("; ")
        }
    };
    match (phase, failure) {
        (Phase::Invalid, Some(failure)) if status.hash.is_none() => {
            fact(Truth::False, UNAVAILABLE, failure.to_owned())
        }
        (_, failure) => {
            let stale = failure.map(|failure| format!("; the last good copy is used: {failure}"));
            let truth = Truth::from(matches!(phase, Phase::Healthy | Phase::Reference));
            fact(truth, phase.as_str(), message + &stale.unwrap_or_default())
        }
    }
}

/// Adds the events of what changed.
fn announced(
    mut outcome: Outcome,
    former: Option<&ContractStatus>,
    status: &ContractStatus,
    failure: Option<&str>,
) -> Outcome {
    let describe = || {
        let name = status.service_name.as_deref().unwrap_or("unknown");
        format!("contract {name} {}", status.version.as_deref().unwrap_or("unknown"))
    };
    let hash = |status: Option<&ContractStatus>| status.and_then(|status| status.hash.clone());
    if status.hash.is_some() && hash(former) != status.hash {
        outcome = outcome.with_notice(Notice::normal("ContractLoaded", format!("{} was loaded", describe())));
    }
    if let Some(failure) = failure
        && former.is_none_or(|former| !former.stale && former.hash.is_some())
    {
        outcome = outcome.with_notice(Notice::warning(UNAVAILABLE, failure));
    }
    let failing = |status: &ContractStatus| -> Vec<(&'static str, String)> {
        let degrading = status.checks.iter().filter(|check| check.status == CheckStatus::False);
        degrading.map(|check| (check.kind.as_str(), check.reason.clone())).collect()
    };
    let is_news =
        former.is_none_or(|former| former.phase != status.phase || failing(former) != failing(status));
    let message = fact(status, None).message;
    match status.phase {
        Some(Phase::Healthy | Phase::Reference) if is_news => {
            outcome.with_notice(Notice::normal(VERIFIED, format!("{}: {message}", describe())))
        }
        Some(Phase::Degraded) if is_news => outcome.with_notice(Notice::warning("ContractDegraded", message)),
        Some(Phase::Invalid) if is_news && status.hash.is_some() => {
            outcome.with_notice(Notice::warning("ContractInvalid", message))
        }
        _ => outcome,
    }
}

/// Returns why policies of a server have to wait for its contract; `None` if they may run.
pub fn closed(server: &ManagedServer) -> Option<String> {
    let contract = server.spec.contract.as_ref().filter(|contract| contract.gate_sync)?;
    let status = server.status.as_ref().and_then(|status| status.contract.as_ref());
    let gate = status.and_then(|status| status.gate);
    (gate != Some(Gate::Open)).then(|| {
        let source = if contract.binding.inline.is_some() { "its contract" } else { "its loaded contract" };
        let phase = status.and_then(|status| status.phase).map_or("not verified", Phase::as_str);
        format!("{source} is {phase}, and spec.contract.gateSync is true")
    })
}

#[cfg(test)]
mod tests {
    use declarest_core::contract::status::EndpointResult;
    use declarest_core::transport::Pem;

    use super::*;

    #[test]
    fn values_of_placeholders_are_not_shown() {
        telemetry::remember("placeholders", "HOST", "registry.internal");
        let text = || "registry.internal/shop".to_owned();
        let endpoint = EndpointResult { url: text(), ..EndpointResult::default() };
        let status = ContractStatus { source: Some(text()), endpoints: vec![endpoint], ..Default::default() };
        let status = concealed("placeholders", status);
        assert_eq!(status.source.as_deref(), Some("${HOST}/shop"));
        assert_eq!(status.endpoints[0].url, "${HOST}/shop");
    }

    #[test]
    fn a_prober_is_kept_until_its_trust_changes() {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let (contracts, names) = (Contracts::default(), Names::default());
        let [first, second] = ["a", "b"].map(|name| {
            let generated = rcgen::generate_simple_self_signed([format!("{name}.test")]).unwrap();
            let text = generated.cert.pem();
            TlsConfig::trusting(Pem { origin: "CA", text: text.as_bytes() }).unwrap()
        });
        let [shop, bar] = ["shop", "bar"].map(|name| Key { namespace: "team".into(), name: name.into() });
        let prober = |key: &Key, tls: &TlsConfig| contracts.prober(key, tls, &names).unwrap();
        let before = prober(&shop, &first);
        assert!(Arc::ptr_eq(&before, &prober(&shop, &first.clone())));
        assert!(!Arc::ptr_eq(&before, &prober(&bar, &first)));
        let after = prober(&shop, &second);
        assert!(!Arc::ptr_eq(&before, &after));
        assert!(after.is_for(&second) && !after.is_for(&first) && !after.is_for(&TlsConfig::default()));
    }
}
