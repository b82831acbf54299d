//! Whether to run, how much, and why: a pure function of what is known.

use std::time::Duration;

use jiff::Timestamp;

use super::schedule::{Schedule, cron_due, drift_due, is_credible_plan};
use super::verdict::LIST;
use crate::crd::SyncPolicyStatus;
use crate::crd::sync_policy::RunOutcome;

/// All that the decision depends on.
#[derive(Clone, Copy, Debug)]
pub struct Situation<'a> {
    pub status: &'a SyncPolicyStatus,
    pub now: Timestamp,
    /// What the policy and its dependencies look like now.
    pub fingerprint: &'a Fingerprint,
    /// What they looked like when this process last started a run, if it did.
    pub attempted: Option<&'a Fingerprint>,
    pub schedule: Option<&'a Schedule>,
    pub sync_interval: Duration,
    pub recursive: bool,
}

/// Everything whose change makes a policy worth another look before its backoff is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fingerprint {
    /// Spec generations and artifact digests of the policy and its dependencies.
    pub config: ConfigHash,
    /// Versions of all Secrets they reference.
    pub secrets: String,
    /// The annotation that asks for a run.
    pub request: Option<String>,
    /// The commit that the repository is at.
    pub revision: String,
}

/// Two hashes, so that a change tells whose it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigHash {
    pub policy: String,
    pub dependencies: String,
}

impl ConfigHash {
    /// As stored in status.
    pub fn to_status(&self) -> String {
        format!("{}-{}", self.policy, self.dependencies)
    }
}

/// What to do now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Compare the whole scope.
    Full(Trigger),
    /// Look at what changed since `base` and at what failed.
    Incremental { base: String, trigger: Trigger },
    /// A failed run is not repeated before this time.
    BackOff(Timestamp),
    /// Nothing is due.
    Settled,
}

/// Why a run happens; shown as `status.lastTrigger`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::InitialSync => "InitialSync",
            Self::SpecChanged => "SpecChanged",
            Self::DependencyChanged => "DependencyChanged",
            Self::SecretChanged => "SecretChanged",
            Self::ManualRequest => "ManualRequest",
            Self::CronDue => "CronDue",
            Self::DriftDue => "DriftDue",
            Self::Retry => "Retry",
            Self::LowDiffConfidence => "LowDiffConfidence",
            Self::RevisionChanged => "RevisionChanged",
        }
    }

    /// Whether a write of this run corrects what somebody else changed on the server.
    pub const fn is_drift_check(self) -> bool {
        matches!(self, Self::CronDue | Self::DriftDue | Self::ManualRequest)
    }
}

/// Decides; the first rule that matches wins.
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
    let hidden = status.failed_resources.iter().any(|failed| failed.operation == LIST);
    if status.failed_resources_truncated || hidden {
        return Decision::Full(Trigger::Retry);
    }
    let Some(base) = base(status) else { return Decision::Full(Trigger::LowDiffConfidence) };
    let moved = *base != fingerprint.revision;
    if moved && (!recursive || loses_track(status)) {
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

/// Whether a diff alone would leave something behind: writes of an aborted run that a revert does not show,
/// or deletions that were refused.
fn loses_track(status: &SyncPolicyStatus) -> bool {
    match status.last_run_outcome {
        Some(RunOutcome::Failed) => status.last_attempted_repo_revision != status.last_applied_repo_revision,
        Some(RunOutcome::PartiallyFailed) => status.prune_refused,
        Some(RunOutcome::Succeeded) | None => false,
    }
}

/// The commit to diff from: the one last attempted, unless that attempt was aborted.
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
    #[case("commit", |_: &mut SyncPolicyStatus, f: &mut Fingerprint| f.revision = "r2".to_owned(), Decision::Incremental { base: "r1".to_owned(), trigger: Trigger::RevisionChanged })]
    #[case("failures", |s: &mut SyncPolicyStatus, _: &mut Fingerprint| s.failed_resources.push(failed_resource()), Decision::Incremental { base: "r1".to_owned(), trigger: Trigger::Retry })]
    fn first_matching_rule_wins(#[case] what: &str, #[case] change: Change, #[case] expected: Decision) {
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
    fn a_scope_that_is_not_recursive_never_trusts_a_diff() {
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
            assert_eq!(run(&status, &fingerprint, true), expected, "what it wrote is in no diff");
        }
    }

    #[test]
    fn refused_deletions_are_not_forgotten_by_the_next_commit() {
        let status = SyncPolicyStatus {
            last_run_outcome: Some(RunOutcome::PartiallyFailed),
            prune_refused: true,
            ..settled()
        };
        let fingerprint = Fingerprint { revision: "r2".to_owned(), ..fingerprint() };
        assert_eq!(run(&status, &fingerprint, true), Decision::Full(Trigger::LowDiffConfidence));
    }

    #[test]
    fn what_never_converges_is_no_reason_to_hurry_or_to_look_at_everything() {
        let status = SyncPolicyStatus {
            last_run_outcome: Some(RunOutcome::PartiallyFailed),
            next_sync_time: Some(Time(at("2026-11-21T12:04:00Z"))),
            ..settled()
        };
        assert_eq!(run(&status, &fingerprint(), true), Decision::Settled);
        let fingerprint = Fingerprint { revision: "r2".to_owned(), ..fingerprint() };
        let expected = Decision::Incremental { base: "r1".to_owned(), trigger: Trigger::RevisionChanged };
        assert_eq!(run(&status, &fingerprint, true), expected);
    }

    #[test]
    fn a_retry_that_a_clock_set_back_moved_away_is_due_now() {
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
    fn failures_wait_for_their_backoff_unless_something_is_new(
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
