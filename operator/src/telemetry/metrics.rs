//! Prometheus metrics. The series of an object are removed when the object is deleted.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use declarest_core::contract::status::ContractStatus;
use declarest_core::server::Gate;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use prometheus::proto::MetricFamily;
use prometheus::{
    Encoder as _, GaugeVec, HistogramVec, IntCounterVec, IntGauge, IntGaugeVec, Registry, TextEncoder,
};

use super::gates::Gates;
use super::queues::Queues;
use super::series::{Subject, counter, gauge, histogram, opts, registered, remove_series};

/// The statuses of a condition.
const STATUSES: [&str; 3] = ["True", "False", "Unknown"];

/// The metrics of the process, in their own registry, so that tests do not share metrics.
#[derive(Clone, Debug)]
pub struct Metrics {
    registry: Registry,
    repositories: RepositoryMetrics,
    servers: ServerMetrics,
    policies: PolicyMetrics,
    condition: IntGaugeVec,
    queues: Queues,
    leader: IntGauge,
}

#[derive(Clone, Debug)]
struct RepositoryMetrics {
    polls: IntCounterVec,
    revision_changes: IntCounterVec,
    /// Not by object, because a sender that is not proven may name any object.
    deliveries: IntCounterVec,
}

#[derive(Clone, Debug)]
struct ServerMetrics {
    request_duration: HistogramVec,
    throttled: IntCounterVec,
    tokens: IntCounterVec,
    gates: Gates,
    contract_phase: IntGaugeVec,
    contract_check: IntGaugeVec,
    contract_verified: IntGaugeVec,
}

#[derive(Clone, Debug)]
struct PolicyMetrics {
    reconciles: IntCounterVec,
    reconcile_duration: HistogramVec,
    applied: IntCounterVec,
    pruned: IntCounterVec,
    failed: IntCounterVec,
    drift_corrected: IntCounterVec,
    last_success: GaugeVec,
}

/// Counts of the writes of one sync to the managed server.
#[derive(Clone, Copy, Debug, Default)]
pub struct SyncCounts {
    pub applied: u64,
    pub pruned: u64,
    pub failed: u64,
    /// Writes without a change in Git.
    pub drift_corrected: u64,
}

impl Metrics {
    /// # Errors
    /// Two metrics of this file have the same name.
    pub fn new() -> Result<Self, prometheus::Error> {
        let registry = Registry::new();
        let leader = IntGauge::with_opts(opts("leader", "1 while this replica reconciles"))?;
        let metrics = Self {
            repositories: RepositoryMetrics::new(&registry)?,
            servers: ServerMetrics::new(&registry)?,
            policies: PolicyMetrics::new(&registry)?,
            condition: gauge(
                &registry,
                "resource_condition",
                "1 for the current status of a condition",
                &["kind", "type", "status"],
            )?,
            queues: registered(&registry, Queues::new()?)?,
            leader: registered(&registry, leader)?,
            registry,
        };
        metrics.describe_build()?;
        Ok(metrics)
    }

    fn describe_build(&self) -> Result<(), prometheus::Error> {
        let build = registered(
            &self.registry,
            IntGaugeVec::new(
                opts("build_info", "Always 1; the labels show the build"),
                &["version", "commit"],
            )?,
        )?;
        let commit = option_env!("DECLAREST_BUILD_COMMIT").unwrap_or("unknown");
        build.with_label_values(&[env!("CARGO_PKG_VERSION"), commit]).set(1);
        Ok(())
    }

    /// Records a poll of a repository; `result` is `success` or `failure`.
    pub fn polled(&self, repository: Subject<'_>, success: bool) {
        let result = if success { "success" } else { "failure" };
        self.repositories.polls.with_label_values(&[repository.namespace, repository.name, result]).inc();
    }

    pub fn revision_changed(&self, repository: Subject<'_>) {
        self.repositories.revision_changes.with_label_values(&[repository.namespace, repository.name]).inc();
    }

    /// Records a webhook delivery. `provider` is `none` if it is not known.
    pub fn webhook_received(&self, provider: &str, result: &str) {
        self.repositories.deliveries.with_label_values(&[provider, result]).inc();
    }

    /// Records a reconcile of a policy. `reason` is a condition reason, so the label has few values.
    pub fn policy_reconciled(&self, policy: Subject<'_>, success: bool, reason: &str, took: Duration) {
        let result = if success { "success" } else { "failure" };
        self.policies.reconciles.with_label_values(&[policy.namespace, policy.name, result, reason]).inc();
        self.policies
            .reconcile_duration
            .with_label_values(&[policy.namespace, policy.name, result])
            .observe(took.as_secs_f64());
    }

    pub fn synced(&self, policy: Subject<'_>, counts: SyncCounts) {
        let labels = &[policy.namespace, policy.name];
        self.policies.applied.with_label_values(labels).inc_by(counts.applied);
        self.policies.pruned.with_label_values(labels).inc_by(counts.pruned);
        self.policies.failed.with_label_values(labels).inc_by(counts.failed);
        self.policies.drift_corrected.with_label_values(labels).inc_by(counts.drift_corrected);
    }

    pub fn policy_succeeded(&self, policy: Subject<'_>, at: jiff::Timestamp) {
        let seconds = at.as_duration().as_secs_f64();
        self.policies.last_success.with_label_values(&[policy.namespace, policy.name]).set(seconds);
    }

    /// Publishes the conditions of an object in place of its `previous` ones.
    pub fn conditions(
        &self,
        kind: &str,
        subject: Subject<'_>,
        previous: &[Condition],
        current: &[Condition],
    ) {
        for condition in current {
            self.condition(kind, subject, &condition.type_, &condition.status);
        }
        // Otherwise, the series of a condition that is removed from the status would show its last status forever.
        let is_removed = |before: &&Condition| current.iter().all(|now| now.type_ != before.type_);
        for removed in previous.iter().filter(is_removed) {
            for status in STATUSES {
                let labels = [subject.namespace, subject.name, kind, &removed.type_, status];
                let _ = self.condition.remove_label_values(&labels);
            }
        }
    }

    /// Publishes the current status of one condition in place of its previous one.
    pub fn condition(&self, kind: &str, subject: Subject<'_>, type_: &str, status: &str) {
        for candidate in STATUSES {
            let labels = [subject.namespace, subject.name, kind, type_, candidate];
            if candidate == status {
                self.condition.with_label_values(&labels).set(1);
            } else {
                // The series is usually missing, because only one of the three exists.
                let _ = self.condition.remove_label_values(&labels);
            }
        }
    }

    /// Records a request to a managed server; `code` is the status, or a word for a transport failure.
    pub fn requested(&self, server: Subject<'_>, method: &str, code: &str, took: Duration) {
        self.servers
            .request_duration
            .with_label_values(&[server.namespace, server.name, method, code])
            .observe(took.as_secs_f64());
    }

    /// Records a request that waited for the client's throttle (`by_server` is false), or that the server rejected
    /// with 429 or 503.
    pub fn throttled(&self, server: Subject<'_>, by_server: bool) {
        let source = if by_server { "server" } else { "client" };
        self.servers.throttled.with_label_values(&[server.namespace, server.name, source]).inc();
    }

    /// Records a request for an OAuth 2.0 token.
    pub fn token_asked(&self, server: Subject<'_>, reason: &str, had: bool) {
        let result = if had { "success" } else { "failure" };
        self.servers.tokens.with_label_values(&[server.namespace, server.name, reason, result]).inc();
    }

    /// Publishes the state of the gate of a managed server, for as long as the gate is in use.
    pub fn show_gate(&self, server: Subject<'_>, gate: &Arc<Gate>) {
        self.servers.gates.show(server, gate);
    }

    /// Publishes the phase and the checks of a contract in place of the previous ones. `now` is the time of the
    /// verification in seconds.
    pub fn contract(&self, server: Subject<'_>, status: &ContractStatus, now: i64) {
        self.servers.forget_contract(server);
        let labels = [server.namespace, server.name];
        if let Some(phase) = status.phase {
            let [namespace, name] = labels;
            self.servers.contract_phase.with_label_values(&[namespace, name, phase.as_str()]).set(1);
        }
        for check in &status.checks {
            let labels = [labels[0], labels[1], check.kind.as_str(), check.status.as_str()];
            self.servers.contract_check.with_label_values(&labels).set(1);
        }
        if status.hash.is_some() {
            self.servers.contract_verified.with_label_values(&labels).set(now);
        }
    }

    /// Removes the series of the contract of a server.
    pub fn forget_contract(&self, server: Subject<'_>) {
        self.servers.forget_contract(server);
    }

    /// Shows the queue of a controller, which is empty.
    pub fn open_queue(&self, kind: &'static str) {
        self.queues.open(kind);
    }

    /// Records that a round of work on an object is due after a time.
    pub fn queued(&self, kind: &'static str, subject: Subject<'_>, after: Duration) {
        self.queues.add(kind, subject, after);
    }

    /// Records that a round of work on an object starts, or that the object does not exist.
    pub fn dequeued(&self, kind: &str, subject: Subject<'_>) {
        self.queues.remove(kind, subject);
    }

    pub fn leads(&self, leading: bool) {
        self.leader.set(i64::from(leading));
    }

    /// Removes all series of a deleted object.
    pub fn forget(&self, kind: &str, subject: Subject<'_>) {
        remove_series(&self.condition, subject, Some(kind));
        self.queues.remove(kind, subject);
        match kind {
            "ResourceRepository" => self.repositories.forget(subject),
            "ManagedServer" => self.servers.forget(subject),
            "SyncPolicy" => self.policies.forget(subject),
            _ => {}
        }
    }

    /// Returns all series.
    pub fn gather(&self) -> Vec<MetricFamily> {
        self.registry.gather()
    }

    /// Returns all series in the text exposition format.
    pub fn encode(&self) -> Result<Vec<u8>, prometheus::Error> {
        let mut text = Vec::new();
        TextEncoder::new().encode(&self.gather(), &mut text)?;
        Ok(text)
    }
}

impl RepositoryMetrics {
    fn new(registry: &Registry) -> Result<Self, prometheus::Error> {
        let counter = |name, help, labels: &[&str]| counter(registry, name, help, labels);
        Ok(Self {
            polls: counter("resource_repository_poll_total", "Repository polls", &["result"])?,
            revision_changes: counter(
                "resource_repository_revision_changes_total",
                "New revisions seen",
                &[],
            )?,
            deliveries: registered(
                registry,
                IntCounterVec::new(
                    opts("repository_webhook_requests_total", "Webhook deliveries"),
                    &["provider", "result"],
                )?,
            )?,
        })
    }

    fn forget(&self, subject: Subject<'_>) {
        remove_series(&self.polls, subject, None);
        remove_series(&self.revision_changes, subject, None);
    }
}

impl ServerMetrics {
    fn new(registry: &Registry) -> Result<Self, prometheus::Error> {
        let gauge = |name, help, labels: &[&str]| gauge(registry, name, help, labels);
        let buckets = vec![0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0];
        Ok(Self {
            request_duration: histogram(
                registry,
                "managed_server_request_duration_seconds",
                "Latency of requests to managed servers",
                &["method", "code"],
                buckets,
            )?,
            throttled: counter(
                registry,
                "managed_server_throttled_total",
                "Requests delayed by the operator (client) or rejected with 429 or 503 (server)",
                &["source"],
            )?,
            tokens: counter(
                registry,
                "managed_server_token_requests_total",
                "Requests for OAuth 2.0 tokens, by reason and result",
                &["reason", "result"],
            )?,
            gates: registered(registry, Gates::new()?)?,
            contract_phase: gauge("contract_phase", "1 for the current phase of a contract", &["phase"])?,
            contract_check: gauge(
                "contract_check",
                "1 for the current status of a check of a contract",
                &["check", "status"],
            )?,
            contract_verified: gauge(
                "contract_last_verified_timestamp_seconds",
                "Unix time of the last verification",
                &[],
            )?,
        })
    }

    fn forget_contract(&self, subject: Subject<'_>) {
        remove_series(&self.contract_phase, subject, None);
        remove_series(&self.contract_check, subject, None);
        remove_series(&self.contract_verified, subject, None);
    }

    fn forget(&self, subject: Subject<'_>) {
        remove_series(&self.request_duration, subject, None);
        remove_series(&self.throttled, subject, None);
        remove_series(&self.tokens, subject, None);
        self.gates.forget(subject);
        self.forget_contract(subject);
    }
}

impl PolicyMetrics {
    fn new(registry: &Registry) -> Result<Self, prometheus::Error> {
        let counter = |name, help, labels: &[&str]| counter(registry, name, help, labels);
        let buckets = vec![0.005, 0.02, 0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0];
        let last_success =
            opts("syncpolicy_last_success_timestamp_seconds", "Unix time of the last sync without a failure");
        Ok(Self {
            reconciles: counter(
                "syncpolicy_reconcile_total",
                "Reconciles of sync policies",
                &["result", "reason"],
            )?,
            reconcile_duration: histogram(
                registry,
                "syncpolicy_reconcile_duration_seconds",
                "Duration of a reconcile of a sync policy",
                &["result"],
                buckets,
            )?,
            applied: counter(
                "syncpolicy_resources_applied_total",
                "Resources confirmed in desired state",
                &[],
            )?,
            pruned: counter(
                "syncpolicy_resources_pruned_total",
                "Resources deleted because Git no longer declares them",
                &[],
            )?,
            failed: counter(
                "syncpolicy_resources_failed_total",
                "Resources that could not be applied or pruned",
                &[],
            )?,
            drift_corrected: counter(
                "syncpolicy_drift_corrected_total",
                "Writes without a change in Git",
                &[],
            )?,
            last_success: registered(registry, GaugeVec::new(last_success, &["namespace", "name"])?)?,
        })
    }

    fn forget(&self, subject: Subject<'_>) {
        for counter in [&self.reconciles, &self.applied, &self.pruned, &self.failed, &self.drift_corrected] {
            remove_series(counter, subject, None);
        }
        remove_series(&self.reconcile_duration, subject, None);
        remove_series(&self.last_success, subject, None);
    }
}

/// Returns the route `/metrics`.
pub fn scrape(metrics: Arc<Metrics>) -> Router {
    async fn handle(State(metrics): State<Arc<Metrics>>) -> Response {
        match metrics.encode() {
            Ok(text) => ([(CONTENT_TYPE, prometheus::TEXT_FORMAT)], text).into_response(),
            Err(error) => {
                tracing::error!(%error, "cannot encode metrics");
                StatusCode::INTERNAL_SERVER_ERROR.into_response()
            }
        }
    }
    Router::new().route("/metrics", get(handle)).with_state(metrics)
}

#[cfg(test)]
mod tests {
    use declarest_core::server::Throttling;

    use super::*;

    const A: Subject<'_> = Subject { namespace: "team", name: "a" };
    const B: Subject<'_> = Subject { namespace: "team", name: "b" };

    fn text(metrics: &Metrics) -> String {
        String::from_utf8(metrics.encode().unwrap()).unwrap()
    }

    #[test]
    fn a_condition_has_one_current_status() {
        let metrics = Metrics::new().unwrap();
        metrics.condition("SyncPolicy", A, "Ready", "Unknown");
        metrics.condition("SyncPolicy", A, "Ready", "True");
        let text = text(&metrics);
        let series: Vec<_> = text.lines().filter(|line| line.contains("resource_condition{")).collect();
        assert_eq!(
            series,
            [
                r#"declarest_operator_resource_condition{kind="SyncPolicy",name="a",namespace="team",status="True",type="Ready"} 1"#
            ]
        );
    }

    #[test]
    fn forgetting_an_object_drops_its_series_and_no_others() {
        let metrics = Metrics::new().unwrap();
        for subject in [A, B] {
            metrics.policy_reconciled(subject, true, "Ready", Duration::from_millis(3));
            metrics.synced(subject, SyncCounts { applied: 2, ..SyncCounts::default() });
            metrics.condition("SyncPolicy", subject, "Ready", "True");
            metrics.condition("ManagedServer", subject, "Ready", "True");
        }
        metrics.forget("SyncPolicy", A);
        let text = text(&metrics);
        let of_a: Vec<_> = text.lines().filter(|line| line.contains(r#"name="a""#)).collect();
        assert_eq!(of_a.len(), 1, "{of_a:?}");
        assert!(of_a[0].contains(r#"kind="ManagedServer""#));
        assert!(text.contains(r#"syncpolicy_resources_applied_total{name="b",namespace="team"} 2"#));
    }

    #[test]
    fn a_gate_has_series_while_it_is_in_use() {
        let metrics = Metrics::new().unwrap();
        let gate = |concurrency| {
            let throttling = Throttling { max_concurrent_requests: concurrency, ..Throttling::default() };
            Arc::new(Gate::new(&throttling).unwrap())
        };
        let (of_a, replaced, of_b) = (gate(None), gate(Some(2)), gate(Some(5)));
        metrics.show_gate(A, &of_a);
        metrics.show_gate(B, &replaced);
        metrics.show_gate(B, &of_b);
        let series = |metrics: &Metrics| {
            let text = text(metrics);
            let mut of_gates: Vec<String> = text
                .lines()
                .filter(|line| line.starts_with("declarest_operator_managed_server_"))
                .map(|line| line.trim_start_matches("declarest_operator_managed_server_").to_owned())
                .collect();
            of_gates.sort();
            of_gates
        };
        assert_eq!(
            series(&metrics),
            [
                r#"breaker_open{name="a",namespace="team"} 0"#,
                r#"breaker_open{name="b",namespace="team"} 0"#,
                r#"concurrency_limit{name="a",namespace="team"} 16"#,
                r#"concurrency_limit{name="b",namespace="team"} 5"#,
                r#"requests_in_flight{name="a",namespace="team"} 0"#,
                r#"requests_in_flight{name="b",namespace="team"} 0"#,
            ]
        );
        metrics.forget("ManagedServer", A);
        drop(of_b);
        assert_eq!(
            series(&metrics),
            [] as [&str; 0],
            "the deleted object and the unused gate have no series"
        );
    }

    #[test]
    fn tokens_are_counted_by_reason_and_result() {
        let metrics = Metrics::new().unwrap();
        metrics.token_asked(A, "first", true);
        metrics.token_asked(A, "refused", false);
        metrics.token_asked(A, "refused", false);
        let encoded = text(&metrics);
        let name = "declarest_operator_managed_server_token_requests_total";
        for (labels, count) in
            [(r#"reason="first",result="success""#, 1), (r#"reason="refused",result="failure""#, 2)]
        {
            let series = format!(r#"{name}{{name="a",namespace="team",{labels}}} {count}"#);
            assert!(encoded.contains(&series), "{series}\n{encoded}");
        }
        metrics.forget("ManagedServer", A);
        assert!(!text(&metrics).contains(&format!("{name}{{")));
    }

    #[test]
    fn the_build_is_described() {
        let text = text(&Metrics::new().unwrap());
        assert!(text.contains(concat!(r#"version=""#, env!("CARGO_PKG_VERSION"))));
    }
}
