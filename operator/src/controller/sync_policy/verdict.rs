//! The consequences of a run: status fields, conditions, events, and the time of the next run.

use std::time::Duration;

use declarest_core::error::Category;
use declarest_core::path::LogicalPath;
use declarest_core::repository::Revision;
use declarest_core::sync::{self, FailureReason, PruneRefused, Report};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt as _;

use super::drift;
use super::plan::RunPlan;
use super::schedule::{self, until};
use super::unsettled;
use crate::controller::backoff;
use crate::controller::conditions;
use crate::controller::context::Context;
use crate::controller::kind::Key;
use crate::controller::outcome::{Notice, Outcome, Reason};
use crate::crd::Schedule;
use crate::crd::SyncPolicyStatus;
use crate::crd::sync_policy::{FailedResource, ResourceStats, RunKind, RunOutcome};
use crate::telemetry::SyncCounts;

/// Maximum number of failures in the status; `failedResourcesTruncated` shows that there are more.
const NAMED_FAILURES: usize = 50;
/// Maximum length of a failure's message in the status, in characters.
const FAILURE_MESSAGE: usize = 512;
/// Maximum number of failures in the condition's message.
const SHOWN_FAILURES: usize = 3;
/// The longest wait after a failed run.
const LONGEST_RETRY: Duration = Duration::from_mins(5);
/// The message about deletions that an earlier run refused.
const REFUSED: &str = "pruning was refused; approve it with spec.sync.pruneLimit or spec.sync.allowEmpty";

/// A run and its report.
pub struct Run<'a> {
    pub plan: &'a RunPlan,
    pub kind: RunKind,
    pub report: &'a Report,
    pub target: &'a Revision,
    /// Whether its writes revert changes on the server: it is a drift check, and the revision is unchanged.
    pub corrects_drift: bool,
    /// Whether the run is no longer wanted. Then it has not failed.
    pub cancelled: bool,
}

impl Run<'_> {
    /// Returns whether the run ended early because it was cancelled, and not because of the server.
    fn is_cancelled(&self) -> bool {
        self.cancelled && self.report.stopped.is_some() && self.report.aborted_by.is_none()
    }
}

/// Writes the result of the run to `status`. Returns the conditions and the time of the next round.
pub fn conclude(status: &mut SyncPolicyStatus, run: &Run<'_>, now: Timestamp) -> Outcome {
    let report = run.report;
    let earlier_failures = run.plan.consecutive_failures(status);
    let now = conditions::whole_seconds(now);
    // Only a full run examines refused deletions again.
    let refused = report.prune_refused.is_some() || run.kind == RunKind::Incremental && status.prune_refused;
    let succeeded = report.outcome == sync::Outcome::Succeeded && !refused;
    let previous_revision = status.last_applied_repo_revision.clone();
    let recovered = status.consecutive_failures > 0 && succeeded;
    status.resource_stats = Some(stats(report));
    status.last_run_outcome = Some(match report.outcome {
        sync::Outcome::Failed => RunOutcome::Failed,
        _ if succeeded => RunOutcome::Succeeded,
        _ => RunOutcome::PartiallyFailed,
    });
    // Failures.
    remember_failures(status, report);
    status.prune_refused = refused;
    status.unsettled_resources = unsettled::to_status(report);
    let drifted = std::mem::replace(&mut status.drifted_resources, drift::to_status(report));
    if report.outcome != sync::Outcome::Failed {
        let seen = &run.plan.fingerprint;
        status.last_applied_config_hash = Some(seen.config.to_status());
        status.last_secret_resource_version_hash = Some(seen.secrets.clone());
        status.last_handled_sync_request.clone_from(&seen.request);
        if run.kind == RunKind::Full {
            status.last_full_resync_time = Some(Time(now));
        }
    }
    if succeeded {
        succeed(status, (!status.last_run_observed).then_some(run.target), now);
    } else if run.is_cancelled() {
        status.consecutive_failures = earlier_failures;
    } else {
        status.consecutive_failures = earlier_failures.saturating_add(1);
    }
    // The time of the next run.
    let next = if run.is_cancelled() { now } else { next_look(status, run, now, succeeded) };
    status.next_sync_time = Some(Time(next));

    // Conditions and events.
    let mut outcome = of_run(status, run).with_requeue(until(next, now));
    if let Some(condition) = drift::condition(status) {
        if status.drifted_resources != drifted {
            outcome = outcome.with_notice(Notice::normal(condition.reason, condition.message.clone()));
        }
        outcome.conditions.push(condition);
    }
    let moved = previous_revision != status.last_applied_repo_revision;
    let outcome = outcome.with_failures(status.consecutive_failures.unsigned_abs());
    with_results(outcome, run, succeeded, moved || recovered)
}

/// Adds the events about what the run has written. A success without a write is reported only if it `is_news`.
fn with_results(mut outcome: Outcome, run: &Run<'_>, succeeded: bool, is_news: bool) -> Outcome {
    let stats = run.report.stats;
    let written = stats.created + stats.updated + stats.pruned;
    if written > 0 && run.corrects_drift {
        let restored =
            if written == 1 { "1 resource was".to_owned() } else { format!("{written} resources were") };
        let note = format!("{restored} restored after a change on the server");
        outcome = outcome.with_notice(Notice::normal("DriftCorrected", note));
    }
    if succeeded && (written > 0 || is_news) {
        let note = format!(
            "revision {}: {} created, {} updated, {} pruned, {} unchanged",
            run.target, stats.created, stats.updated, stats.pruned, stats.unchanged
        );
        outcome = outcome.with_notice(Notice::normal("SyncSucceeded", note));
    }
    outcome
}

fn succeed(status: &mut SyncPolicyStatus, applied: Option<&Revision>, now: Timestamp) {
    if let Some(revision) = applied {
        status.last_applied_repo_revision = Some(revision.to_string());
    }
    status.last_successful_sync_time = Some(Time(now));
    status.consecutive_failures = 0;
}

/// Records a revision whose diff does not concern the scope: only the revision fields change.
pub fn nothing_to_do(status: &mut SyncPolicyStatus, plan: &RunPlan, target: &Revision) -> Outcome {
    let now = conditions::whole_seconds(Timestamp::now());
    status.last_attempted_repo_revision = Some(target.to_string());
    if !status.prune_refused && status.unsettled_resources.is_empty() {
        // The resources that failed are no longer declared.
        status.failed_resources.clear();
        if let Some(stats) = &mut status.resource_stats {
            stats.targeted = stats.targeted.saturating_sub(stats.failed);
            stats.failed = 0;
        }
        status.last_run_outcome = Some(RunOutcome::Succeeded);
        succeed(status, Some(target), now);
    }
    restored(status, plan.schedule.as_ref(), plan.sync_interval, now)
}

/// Returns the conditions of a policy without due work, as its last run set them.
pub fn restored(
    status: &SyncPolicyStatus,
    schedule: Option<&Schedule>,
    sync_interval: Duration,
    now: Timestamp,
) -> Outcome {
    let planned = status.next_sync_time.as_ref().map(|time| time.0);
    let planned = planned.filter(|time| schedule::is_credible_plan(*time, sync_interval, now));
    let next = planned.unwrap_or_else(|| next_full(status, schedule, sync_interval, now));
    standing(status).with_requeue(until(next, now))
}

/// Returns the conditions of a policy that waits for the retry of a failed run.
pub fn waiting(status: &SyncPolicyStatus, retry: Timestamp, now: Timestamp) -> Outcome {
    standing(status).with_requeue(until(retry, now))
}

fn next_full(
    status: &SyncPolicyStatus,
    schedule: Option<&Schedule>,
    interval: Duration,
    now: Timestamp,
) -> Timestamp {
    let last_full = status.last_full_resync_time.as_ref().map_or(now, |time| time.0.min(now));
    schedule::next_full(schedule, interval, last_full, fastrand::f64())
}

/// Adds the run to the metrics.
pub fn count(context: &Context, policy: &Key, run: &Run<'_>) {
    let stats = run.report.stats;
    let wide = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
    let written = stats.created + stats.updated;
    context.metrics.synced(
        policy.subject(),
        SyncCounts {
            applied: wide(stats.applied),
            pruned: wide(stats.pruned),
            // A cancelled run has resources that it did not attempt.
            failed: if run.is_cancelled() { 0 } else { wide(stats.failed) },
            drift_corrected: if run.corrects_drift { wide(written) } else { 0 },
        },
    );
}

/// Returns the outcome of the last run, from the status.
fn standing(status: &SyncPolicyStatus) -> Outcome {
    let conditions = drift::condition(status).into_iter().collect();
    if status.last_run_outcome == Some(RunOutcome::Succeeded) {
        return Outcome { conditions, ..succeeded(status) };
    }
    let failures = status.consecutive_failures.unsigned_abs();
    // The condition has the original message, unless another round replaced it.
    let remembered = conditions::find(&status.conditions, "Ready").and_then(|ready| {
        let reason = RUN_REASONS.into_iter().find(|reason| reason.into_str() == ready.reason)?;
        Some(Outcome::new(reason, ready.message.clone()))
    });
    let outcome = remembered.unwrap_or_else(|| derived(status));
    Outcome { conditions, recalled: true, ..outcome }.with_failures(failures)
}

/// Reasons that only a run sets.
const RUN_REASONS: [Reason; 5] = [
    Reason::PartialFailure,
    Reason::PruneRefused,
    Reason::NeverConverges,
    Reason::ManagedServerAuthFailed,
    Reason::ManagedServerUnavailable,
];

fn succeeded(status: &SyncPolicyStatus) -> Outcome {
    let stats = status.resource_stats.unwrap_or_default();
    let observed = status.last_attempted_repo_revision.as_ref().filter(|_| status.last_run_observed);
    let revision = observed.or(status.last_applied_repo_revision.as_ref()).map_or("", String::as_str);
    Outcome::ready(if stats.drifted > 0 {
        format!("compared revision {revision}; the condition Drifted names the differences")
    } else if observed.is_some() {
        format!("compared revision {revision}; the server does not differ")
    } else if stats.targeted == 0 && status.last_sync_mode == Some(RunKind::Full) {
        format!("applied revision {revision}, which declares no resources at spec.source.path")
    } else {
        format!("applied revision {revision}")
    })
}

fn derived(status: &SyncPolicyStatus) -> Outcome {
    let revision = status.last_attempted_repo_revision.as_deref().unwrap_or_default();
    if status.failed_resources.is_empty() {
        return match status.last_run_outcome {
            Some(RunOutcome::PartiallyFailed) if status.prune_refused => {
                Outcome::new(Reason::PruneRefused, REFUSED)
            }
            Some(RunOutcome::PartiallyFailed) => {
                Outcome::new(Reason::NeverConverges, unsettled::message(&status.unsettled_resources))
            }
            _ => Outcome::new(
                Reason::ReconcileFailed,
                format!("the run at revision {revision} was interrupted"),
            ),
        };
    }
    let failures: Vec<(&str, &str, &str)> = status
        .failed_resources
        .iter()
        .map(|failed| (failed.path.as_str(), failed.reason.as_str(), failed.message.as_str()))
        .collect();
    let failed = status.resource_stats.map_or(failures.len(), |counts| counts.failed.unsigned_abs() as usize);
    let refused = status.prune_refused.then_some(REFUSED);
    Outcome::new(Reason::PartialFailure, with_refusal(failure_message(failed, revision, &failures), refused))
}

fn with_refusal(mut message: String, refused: Option<&str>) -> String {
    if let Some(refused) = refused {
        message.push_str("; ");
        message.push_str(refused);
    }
    message
}

fn of_run(status: &SyncPolicyStatus, run: &Run<'_>) -> Outcome {
    match &run.report.stopped {
        Some(reason) if run.is_cancelled() => {
            Outcome::new(Reason::Reconciling, format!("the run was cancelled: {reason}"))
        }
        _ => {
            let mut outcome = of_report(status, run.report, run.target);
            if [Reason::ManagedServerUnavailable, Reason::ManagedServerAuthFailed].contains(&outcome.reason) {
                let server = run.plan.inputs.server.name_any();
                outcome.message = format!("ManagedServer {server}: {}", outcome.message);
            }
            outcome
        }
    }
}

fn of_report(status: &SyncPolicyStatus, report: &Report, target: &Revision) -> Outcome {
    let failures: Vec<(&str, &str, &str)> = report
        .failures
        .iter()
        .chain(&report.unsettled)
        .map(|failure| (failure.path.as_str(), failure.reason.as_str(), failure.message.as_str()))
        .collect();
    let failed = || failure_message(report.stats.failed, target.as_str(), &failures);
    if let Some(reason) = &report.stopped {
        return match report.aborted_by {
            Some(Category::Auth) => Outcome::new(Reason::ManagedServerAuthFailed, failed()),
            Some(_) => Outcome::new(Reason::ManagedServerUnavailable, failed()),
            None => Outcome::new(Reason::ReconcileFailed, format!("the run was stopped: {reason}")),
        };
    }
    let earlier = || status.prune_refused.then(|| REFUSED.to_owned());
    let refused = report.prune_refused.as_ref().map(refusal).or_else(earlier);
    if !report.failures.is_empty() {
        return Outcome::new(common_reason(report), with_refusal(failed(), refused.as_deref()));
    }
    if let Some(refused) = refused {
        return Outcome::new(Reason::PruneRefused, refused);
    }
    if !report.unsettled.is_empty() {
        return Outcome::new(Reason::NeverConverges, unsettled::message(&unsettled::to_status(report)));
    }
    succeeded(status)
}

fn refusal(refused: &PruneRefused) -> String {
    let paths: Vec<&str> = refused.paths.iter().map(LogicalPath::as_str).collect();
    let more = if refused.count > paths.len() { ", …" } else { "" };
    let noun = if refused.count == 1 { "resource" } else { "resources" };
    format!(
        "nothing was pruned: {} {noun} would be deleted ({}{more}); {}",
        refused.count,
        paths.join(", "),
        refused.why
    )
}

/// Returns the reason of failures. If nothing succeeded and all failures have one cause, the server is at fault, unless
/// it answered 500 to all requests: many servers do so if they cannot process a request.
fn common_reason(report: &Report) -> Reason {
    let all = |category| {
        report.stats.applied + report.stats.pruned == 0
            && report.failures.iter().all(|failure| failure.reason == FailureReason::Category(category))
    };
    let is_unavailable = report.failures.iter().any(|failure| failure.http_status != Some(500));
    if all(Category::Auth) {
        Reason::ManagedServerAuthFailed
    } else if all(Category::Transport) && is_unavailable {
        Reason::ManagedServerUnavailable
    } else {
        Reason::PartialFailure
    }
}

fn failure_message(failed: usize, revision: &str, failures: &[(&str, &str, &str)]) -> String {
    let shown: Vec<String> = failures
        .iter()
        .take(SHOWN_FAILURES)
        .map(|(path, reason, message)| format!("{path} ({reason}): {message}"))
        .collect();
    let more = if failed > shown.len() { "; …" } else { "" };
    let noun = if failed == 1 { "resource" } else { "resources" };
    format!("{failed} {noun} failed at revision {revision}: {}{more}", shown.join("; "))
}

fn remember_failures(status: &mut SyncPolicyStatus, report: &Report) {
    let attempts = |path: &str| {
        let before = status.failed_resources.iter().find(|failed| failed.path == path);
        before.map_or(1, |failed| failed.attempts.saturating_add(1))
    };
    let failed: Vec<FailedResource> = report
        .failures
        .iter()
        .take(NAMED_FAILURES)
        .map(|failure| FailedResource {
            path: failure.path.to_string(),
            operation: failure.operation.to_owned(),
            reason: failure.reason.as_str().to_owned(),
            message: failure.message.chars().take(FAILURE_MESSAGE).collect(),
            attempts: attempts(failure.path.as_str()),
        })
        .collect();
    status.failed_resources = failed;
    status.failed_resources_truncated = report.failures.len() > NAMED_FAILURES;
}

fn stats(report: &Report) -> ResourceStats {
    let narrow = |count: usize| i32::try_from(count).unwrap_or(i32::MAX);
    let stats = report.stats;
    ResourceStats {
        targeted: narrow(stats.targeted),
        applied: narrow(stats.applied),
        pruned: narrow(stats.pruned),
        failed: narrow(stats.failed),
        created: narrow(stats.created),
        updated: narrow(stats.updated),
        unchanged: narrow(stats.unchanged),
        drifted: narrow(stats.drifted),
    }
}

/// Returns the time of the next run: after a success the next full run, after a failure a retry if that is sooner.
fn next_look(status: &SyncPolicyStatus, run: &Run<'_>, now: Timestamp, succeeded: bool) -> Timestamp {
    let interval = run.plan.sync_interval;
    let full = next_full(status, run.plan.schedule.as_ref(), interval, now);
    let only_refused = run.report.failures.is_empty() && run.report.stopped.is_none();
    if succeeded || only_refused {
        return full;
    }
    let failures = u32::try_from(status.consecutive_failures).unwrap_or(1);
    let wait = backoff::jitter(backoff::delay(failures, Some(interval.min(LONGEST_RETRY))));
    // A failing resource must not delay the drift check of the others. If the full run is overdue, it is the one that
    // just failed, and waits for its retry.
    let retry = schedule::later(now, wait);
    if full > now { retry.min(full) } else { retry }
}
