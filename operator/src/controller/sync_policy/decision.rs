//! Decides whether to run, on which part of the scope, and why. A pure function of its input.

use std::time::Duration;

use declarest_core::sync;
use jiff::Timestamp;

use super::schedule::{cron_due, drift_due, is_credible_plan};
use crate::crd::Schedule;
use crate::crd::SyncPolicyStatus;
use crate::crd::sync_policy::RunOutcome;

/// The input of the decision.
#[derive(Clone, Copy, Debug)]
pub struct Situation<'a> {
    pub status: &'a SyncPolicyStatus,
    pub now: Timestamp,
    /// The current fingerprint of the policy and its dependencies.
    pub fingerprint: &'a Fingerprint,
    /// The fingerprint when this process last started a run, if it did.
    pub attempted: Option<&'a Fingerprint>,
    pub schedule: Option<&'a Schedule>,
    pub sync_interval: Duration,
    pub recursive: bool,
}

/// The inputs of a policy. If one of them changes, the policy runs before its backoff ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fingerprint {
    /// Spec generations and artifact digests of the policy and its dependencies.
    pub config: ConfigHash,
    /// Versions of the Secrets of the server and the store.
    pub secrets: String,
    /// The value of the annotation that requests a run.
    pub request: Option<String>,
    /// The commit that the repository is at.
    pub revision: String,
}

/// Separate hashes of the policy and its dependencies, so that the cause of a change is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigHash {
    pub policy: String,
    pub dependencies: String,
}

impl ConfigHash {
    /// Returns the form in the status.
    pub fn to_status(&self) -> String {
        format!("{}-{}", self.policy, self.dependencies)
    }
}

/// The next step of a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Compare the whole scope.
    Full(Trigger),
    /// Compare the resources that changed since `base`, and those that failed.
    Incremental { base: String, trigger: Trigger },
    /// A failed run is not repeated before this time.
    BackOff(Timestamp),
    /// Nothing is due.
    Settled,
}

/// The cause of a run, shown as `status.lastTrigger`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(const_into_str)]
pub enum Trigger {
    InitialSync,
    SpecChanged,
    DependencyChanged,
    SecretChanged,
    ManualRequest,
    CronDue,
    DriftDue,
    Retry,
    LowDiffConfidence,
    RevisionChanged,
}

impl Trigger {
    /// Returns whether writes of this run correct changes by other clients of the server.
    pub const fn is_drift_check(self) -> bool {
        matches!(self, Self::CronDue | Self::DriftDue | Self::ManualRequest)
    }
}

/// Returns the decision. The first rule that matches decides.
pub fn decide(situation: &Situation<'_>) -> Decision {
    let Situation { status, now, fingerprint, .. } = *situation;
    let due = first_due(situation);
    if due == Decision::Settled {
        return due;
    }
    let failed = status.last_run_outcome.is_some_and(|outcome| outcome != RunOutcome::Succeeded);
    let nothing_new = situation.attempted == Some(fingerprint);
    match &status.next_sync_time {
        Some(retry) if failed && nothing_new && is_credible_plan(retry.0, situation.sync_interval, now) => {
            Decision::BackOff(retry.0)
        }
        _ => due,
    }
}

fn first_due(situation: &Situation<'_>) -> Decision {
    let Situation { status, now, fingerprint, schedule, sync_interval, recursive, .. } = *situation;
    let Some(last_full) = &status.last_full_resync_time else {
        return Decision::Full(Trigger::InitialSync);
    };
    if let Some(trigger) = config_change(status, &fingerprint.config) {
        return Decision::Full(trigger);
    }
    if status.last_secret_resource_version_hash.as_ref() != Some(&fingerprint.secrets) {
        return Decision::Full(Trigger::SecretChanged);
    }
    if fingerprint.request.is_some() && fingerprint.request != status.last_handled_sync_request {
        return Decision::Full(Trigger::ManualRequest);
    }
    if cron_due(schedule, last_full.0, now) {
        return Decision::Full(Trigger::CronDue);
    }
    if drift_due(sync_interval, last_full.0, now) {
        return Decision::Full(Trigger::DriftDue);
    }
    let hidden = status.failed_resources.iter().any(|failed| failed.operation == sync::LIST);
    if status.failed_resources_truncated || hidden {
        return Decision::Full(Trigger::Retry);
    }
    let Some(base) = base(status) else { return Decision::Full(Trigger::LowDiffConfidence) };
    let moved = *base != fingerprint.revision;
    // After an aborted run of another revision, a force-push may have led back to the applied one. A run without an end
    // may have been the full one that follows it.
    let interrupted = status.next_sync_time.is_none();
    let strayed = status.last_run_outcome == Some(RunOutcome::Failed) && (interrupted || loses_track(status));
    if strayed || (moved && (!recursive || loses_track(status))) {
        return Decision::Full(Trigger::LowDiffConfidence);
    }
    if moved {
        return Decision::Incremental { base: base.clone(), trigger: Trigger::RevisionChanged };
    }
    if !status.failed_resources.is_empty() {
        return Decision::Incremental { base: base.clone(), trigger: Trigger::Retry };
    }
    Decision::Settled
}

/// Returns whether a diff alone is not sufficient: an aborted run may have written changes that a revert commit hides,
/// or deletions were refused.
fn loses_track(status: &SyncPolicyStatus) -> bool {
    match status.last_run_outcome {
        Some(RunOutcome::Failed) => status.last_attempted_repo_revision != status.last_applied_repo_revision,
        Some(RunOutcome::PartiallyFailed) => status.prune_refused,
        Some(RunOutcome::Succeeded) | None => false,
    }
}

/// Returns the commit to diff from: the last attempted one, or the last applied one if the attempt was aborted.
fn base(status: &SyncPolicyStatus) -> Option<&String> {
    match status.last_run_outcome {
        Some(RunOutcome::Failed) => status.last_applied_repo_revision.as_ref(),
        _ => status.last_attempted_repo_revision.as_ref(),
    }
}

fn config_change(status: &SyncPolicyStatus, now: &ConfigHash) -> Option<Trigger> {
    let applied = status.last_applied_config_hash.as_deref().unwrap_or_default();
    if applied == now.to_status() {
        return None;
    }
    let same_policy = applied.split_once('-').is_some_and(|(policy, _)| policy == now.policy);
    Some(if same_policy { Trigger::DependencyChanged } else { Trigger::SpecChanged })
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
    use rstest::rstest;

    use super::*;
    use crate::crd::sync_policy::FailedResource;

    const NOW: &str = "2026-11-21T12:00:00Z";

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn fingerprint() -> Fingerprint {
        Fingerprint {
            config: ConfigHash { policy: "p".to_owned(), dependencies: "d".to_owned() },
            secrets: "s".to_owned(),
            request: None,
            revision: "r1".to_owned(),
        }
    }

    fn settled() -> SyncPolicyStatus {
        SyncPolicyStatus {
            last_attempted_repo_revision: Some("r1".to_owned()),
            last_applied_repo_revision: Some("r1".to_owned()),
            last_full_resync_time: Some(Time(at("2026-11-21T11:59:00Z"))),
            last_secret_resource_version_hash: Some("s".to_owned()),
            last_applied_config_hash: Some("p-d".to_owned()),
            last_run_outcome: Some(RunOutcome::Succeeded),
            next_sync_time: Some(Time(at("2026-11-21T12:04:00Z"))),
            ..SyncPolicyStatus::default()
        }
    }

    fn failed_resource() -> FailedResource {
        FailedResource {
            path: "/a".to_owned(),
            operation: "update".to_owned(),
            reason: "ValidationError".to_owned(),
            message: String::new(),
            attempts: 1,
        }
    }

    fn run(status: &SyncPolicyStatus, fingerprint: &Fingerprint, recursive: bool) -> Decision {
        decide(&Situation {
            status,
            now: at(NOW),
            fingerprint,
            attempted: None,
            schedule: None,
            sync_interval: Duration::from_mins(5),
            recursive,
        })
    }

    type Change = fn(&mut SyncPolicyStatus, &mut Fingerprint);

    #[rstest]
    #[case("nothing", |_: &mut SyncPolicyStatus, _: &mut Fingerprint| (), Decision::Settled)]
    #[case("no full run yet", |s: &mut SyncPolicyStatus, _: &mut Fingerprint| s.last_full_resync_time = None, Decision::Full(Trigger::InitialSync))]
    #[case("spec", |_: &mut SyncPolicyStatus, f: &mut Fingerprint| f.config.policy = "q".to_owned(), Decision::Full(Trigger::SpecChanged))]
    #[case("dependency", |_: &mut SyncPolicyStatus, f: &mut Fingerprint| f.config.dependencies = "e".to_owned(), Decision::Full(Trigger::DependencyChanged))]
    #[case("secret", |_: &mut SyncPolicyStatus, f: &mut Fingerprint| f.secrets = "t".to_owned(), Decision::Full(Trigger::SecretChanged))]
    #[case("request", |_: &mut SyncPolicyStatus, f: &mut Fingerprint| f.request = Some("now".to_owned()), Decision::Full(Trigger::ManualRequest))]
    #[case("interval", |s: &mut SyncPolicyStatus, _: &mut Fingerprint| s.last_full_resync_time = Some(Time(at("2026-11-21T11:55:00Z"))), Decision::Full(Trigger::DriftDue))]
    #[case("clock set back", |s: &mut SyncPolicyStatus, _: &mut Fingerprint| s.last_full_resync_time = Some(Time(at("2027-11-21T11:59:00Z"))), Decision::Full(Trigger::DriftDue))]
    #[case("truncated", |s: &mut SyncPolicyStatus, _: &mut Fingerprint| s.failed_resources_truncated = true, Decision::Full(Trigger::Retry))]
    #[case("force-push back to the applied commit after an aborted run", |s: &mut SyncPolicyStatus, _: &mut Fingerprint| {
        s.last_run_outcome = Some(RunOutcome::Failed);
        s.last_attempted_repo_revision = Some("r2".to_owned());
    }, Decision::Full(Trigger::LowDiffConfidence))]
    #[case("kill in the run that follows", |s: &mut SyncPolicyStatus, _: &mut Fingerprint| {
        s.last_run_outcome = Some(RunOutcome::Failed);
        s.failed_resources.push(failed_resource());
        s.next_sync_time = None;
    }, Decision::Full(Trigger::LowDiffConfidence))]
    #[case("commit", |_: &mut SyncPolicyStatus, f: &mut Fingerprint| f.revision = "r2".to_owned(), Decision::Incremental { base: "r1".to_owned(), trigger: Trigger::RevisionChanged })]
    #[case("failures", |s: &mut SyncPolicyStatus, _: &mut Fingerprint| s.failed_resources.push(failed_resource()), Decision::Incremental { base: "r1".to_owned(), trigger: Trigger::Retry })]
    fn the_first_matching_rule_decides(
        #[case] what: &str,
        #[case] change: Change,
        #[case] expected: Decision,
    ) {
        let (mut status, mut fingerprint) = (settled(), fingerprint());
        change(&mut status, &mut fingerprint);
        assert_eq!(run(&status, &fingerprint, true), expected, "{what}");
    }

    #[test]
    fn a_handled_request_is_not_repeated() {
        let status = SyncPolicyStatus { last_handled_sync_request: Some("now".to_owned()), ..settled() };
        let fingerprint = Fingerprint { request: Some("now".to_owned()), ..fingerprint() };
        assert_eq!(run(&status, &fingerprint, true), Decision::Settled);
    }

    #[test]
    fn a_scope_that_is_not_recursive_is_always_compared_in_full() {
        let fingerprint = Fingerprint { revision: "r2".to_owned(), ..fingerprint() };
        assert_eq!(run(&settled(), &fingerprint, false), Decision::Full(Trigger::LowDiffConfidence));
    }

    #[test]
    fn an_aborted_run_is_followed_by_a_full_one() {
        let status = SyncPolicyStatus {
            last_attempted_repo_revision: Some("r2".to_owned()),
            last_run_outcome: Some(RunOutcome::Failed),
            ..settled()
        };
        let reverted = Fingerprint { revision: "r3".to_owned(), ..fingerprint() };
        let same = Fingerprint { revision: "r2".to_owned(), ..fingerprint() };
        for fingerprint in [reverted, same] {
            let expected = Decision::Full(Trigger::LowDiffConfidence);
            assert_eq!(
                run(&status, &fingerprint, true),
                expected,
                "no diff shows the writes of the aborted run"
            );
        }
    }

    #[test]
    fn a_commit_after_refused_deletions_causes_a_full_run() {
        let status = SyncPolicyStatus {
            last_run_outcome: Some(RunOutcome::PartiallyFailed),
            prune_refused: true,
            ..settled()
        };
        let fingerprint = Fingerprint { revision: "r2".to_owned(), ..fingerprint() };
        assert_eq!(run(&status, &fingerprint, true), Decision::Full(Trigger::LowDiffConfidence));
    }

    #[test]
    fn resources_that_never_converge_cause_neither_retries_nor_full_runs() {
        let status = SyncPolicyStatus { last_run_outcome: Some(RunOutcome::PartiallyFailed), ..settled() };
        assert_eq!(run(&status, &fingerprint(), true), Decision::Settled);
        let fingerprint = Fingerprint { revision: "r2".to_owned(), ..fingerprint() };
        let expected = Decision::Incremental { base: "r1".to_owned(), trigger: Trigger::RevisionChanged };
        assert_eq!(run(&status, &fingerprint, true), expected);
    }

    #[test]
    fn a_retry_is_due_if_the_clock_was_set_back() {
        let mut status = settled();
        status.failed_resources.push(failed_resource());
        status.last_run_outcome = Some(RunOutcome::PartiallyFailed);
        status.next_sync_time = Some(Time(at("2026-11-22T12:00:30Z")));
        let fingerprint = fingerprint();
        let decision = decide(&Situation {
            status: &status,
            now: at(NOW),
            fingerprint: &fingerprint,
            attempted: Some(&fingerprint),
            schedule: None,
            sync_interval: Duration::from_mins(5),
            recursive: true,
        });
        let expected = Decision::Incremental { base: "r1".to_owned(), trigger: Trigger::Retry };
        assert_eq!(decision, expected);
    }

    #[rstest]
    #[case(Some(fingerprint()), Decision::BackOff(at("2026-11-21T12:00:30Z")))]
    #[case(None, Decision::Incremental { base: "r1".to_owned(), trigger: Trigger::Retry })]
    #[case(Some(Fingerprint { revision: "r0".to_owned(), ..fingerprint() }), Decision::Incremental { base: "r1".to_owned(), trigger: Trigger::Retry })]
    fn failures_wait_for_their_backoff_unless_an_input_changed(
        #[case] attempted: Option<Fingerprint>,
        #[case] expected: Decision,
    ) {
        let mut status = settled();
        status.failed_resources.push(failed_resource());
        status.last_run_outcome = Some(RunOutcome::PartiallyFailed);
        status.next_sync_time = Some(Time(at("2026-11-21T12:00:30Z")));
        let decision = decide(&Situation {
            status: &status,
            now: at(NOW),
            fingerprint: &fingerprint(),
            attempted: attempted.as_ref(),
            schedule: None,
            sync_interval: Duration::from_mins(5),
            recursive: true,
        });
        assert_eq!(decision, expected);
    }
}
