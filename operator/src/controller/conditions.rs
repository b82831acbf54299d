//! Computes conditions from the outcome of a round, following kstatus. Ready: the object is usable now. Reconciling:
//! the operator works or retries. Stalled: a user must act. Reconciling and Stalled are never both True.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

use super::outcome::{Fact, Reason, Standing, Truth};

/// Consecutive failures after which a retry alone is not expected to succeed.
const STALLED_AFTER: u32 = 5;

/// Maximum length of a message in characters.
const MESSAGE_LIMIT: usize = 1024;

/// The input of the conditions.
#[derive(Clone, Copy, Debug)]
pub struct Verdict<'a> {
    pub reason: Reason,
    pub message: &'a str,
    /// Consecutive failures, including this one; 0 after a success.
    pub failures: u32,
    pub facts: &'a [Fact],
    pub generation: i64,
}

/// Returns the new conditions. `lastTransitionTime` changes only with `status`.
pub fn compute(previous: &[Condition], verdict: &Verdict<'_>, now: Timestamp) -> Vec<Condition> {
    let (ready, reconciling, stalled) = truths(verdict);
    let reason = verdict.reason.into_str();
    let next = |type_: &str, truth: Truth, reason: &str, message: &str| {
        let status = truth.into_str();
        let since = find(previous, type_)
            .filter(|condition| condition.status == status)
            .map_or(Time(whole_seconds(now)), |condition| condition.last_transition_time.clone());
        Condition {
            type_: type_.to_owned(),
            status: status.to_owned(),
            reason: reason.to_owned(),
            message: truncate(message).to_owned(),
            observed_generation: Some(verdict.generation),
            last_transition_time: since,
        }
    };
    let mut conditions = Vec::with_capacity(3 + verdict.facts.len());
    conditions.push(match (ready, find(previous, "Ready")) {
        (None, Some(kept)) => kept.clone(),
        (ready, _) => next("Ready", ready.unwrap_or(Truth::Unknown), reason, verdict.message),
    });
    for (type_, truth) in [("Reconciling", reconciling), ("Stalled", stalled)] {
        let message = if truth { verdict.message } else { "" };
        conditions.push(next(type_, truth.into(), reason, message));
    }
    let facts = verdict.facts.iter();
    conditions.extend(facts.map(|fact| next(fact.type_, fact.truth, fact.reason, &fact.message)));
    conditions
}

/// Returns the condition of a type, if there is one.
pub fn find<'a>(conditions: &'a [Condition], type_: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.type_ == type_)
}

/// Returns whether Ready is True for exactly this generation of the spec.
pub fn is_ready(conditions: &[Condition], generation: Option<i64>) -> bool {
    find(conditions, "Ready")
        .is_some_and(|ready| ready.status == "True" && ready.observed_generation == generation)
}

/// Returns Ready (`None`: unchanged), Reconciling and Stalled.
fn truths(verdict: &Verdict<'_>) -> (Option<Truth>, bool, bool) {
    match verdict.reason.standing() {
        Standing::Usable => (Some(Truth::True), false, false),
        Standing::Working => (None, true, false),
        Standing::Idle => (Some(Truth::False), false, false),
        Standing::Retrying if verdict.failures < STALLED_AFTER => (Some(Truth::False), true, false),
        Standing::Retrying | Standing::Stuck => (Some(Truth::False), false, true),
    }
}

/// Truncates to seconds, because Kubernetes stores whole seconds and a finer time would differ when it is read back.
pub fn whole_seconds(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}

fn truncate(message: &str) -> &str {
    message.char_indices().nth(MESSAGE_LIMIT).map_or(message, |(end, _)| &message[..end])
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn verdict(reason: Reason, failures: u32) -> Verdict<'static> {
        Verdict { reason, message: "m", failures, facts: &[], generation: 7 }
    }

    fn statuses(conditions: &[Condition]) -> String {
        let of = |type_| match find(conditions, type_).map(|condition| condition.status.as_str()) {
            Some("True") => 'T',
            Some("False") => 'F',
            Some("Unknown") => 'U',
            _ => '-',
        };
        ["Ready", "Reconciling", "Stalled"].into_iter().map(of).collect()
    }

    #[rstest]
    #[case(Reason::Ready, 0, "TFF")]
    #[case(Reason::Reconciling, 0, "UTF")]
    #[case(Reason::SpecInvalid, 1, "FFT")]
    #[case(Reason::Suspended, 0, "FFF")]
    #[case(Reason::OverlappingPolicy, 1, "FFT")]
    #[case(Reason::DependencyInvalid, 1, "FFT")]
    #[case(Reason::DependencyNotReady, 1, "FTF")]
    #[case(Reason::PartialFailure, 1, "FTF")]
    #[case(Reason::PartialFailure, 4, "FTF")]
    #[case(Reason::PartialFailure, 5, "FFT")]
    #[case(Reason::ManagedServerAuthFailed, 1, "FFT")]
    #[case(Reason::PruneRefused, 1, "FFT")]
    #[case(Reason::NeverConverges, 1, "FFT")]
    #[case(Reason::FetchFailed, 1, "FTF")]
    #[case(Reason::AuthFailed, 1, "FFT")]
    #[case(Reason::DecryptFailed, 1, "FFT")]
    #[case(Reason::ReconcileFailed, 1, "FTF")]
    fn each_reason_has_its_three_conditions(
        #[case] reason: Reason,
        #[case] failures: u32,
        #[case] expected: &str,
    ) {
        assert_eq!(statuses(&compute(&[], &verdict(reason, failures), at(1))), expected);
    }

    #[test]
    fn work_in_progress_keeps_ready_as_it_was() {
        let before = compute(&[], &verdict(Reason::Ready, 0), at(1));
        let working = Verdict { generation: 8, ..verdict(Reason::Reconciling, 0) };
        let during = compute(&before, &working, at(2));
        assert_eq!(statuses(&during), "TTF");
        assert_eq!(find(&during, "Ready"), find(&before, "Ready"));
        assert!(!is_ready(&during, Some(8)));
    }

    #[test]
    fn the_transition_time_changes_only_with_the_status() {
        let first = compute(&[], &verdict(Reason::FetchFailed, 1), at(1));
        let second = compute(&first, &verdict(Reason::ReconcileFailed, 2), at(2));
        assert_eq!(find(&second, "Ready").unwrap().last_transition_time, Time(at(1)));
        assert_eq!(find(&second, "Ready").unwrap().reason, "ReconcileFailed");
        let third = compute(&second, &verdict(Reason::Ready, 0), at(3));
        assert_eq!(find(&third, "Ready").unwrap().last_transition_time, Time(at(3)));
        assert_eq!(find(&third, "Stalled").unwrap().last_transition_time, Time(at(1)));
    }

    #[test]
    fn the_same_verdict_again_changes_nothing() {
        let first = compute(&[], &verdict(Reason::Ready, 0), at(1));
        assert_eq!(compute(&first, &verdict(Reason::Ready, 0), at(9)), first);
    }

    #[test]
    fn conditions_that_a_verdict_lacks_are_removed() {
        let facts = [Fact {
            type_: "Reachable",
            truth: Truth::False,
            reason: "ProbeFailed",
            message: "connection refused".to_owned(),
        }];
        let first = compute(&[], &Verdict { facts: &facts, ..verdict(Reason::Ready, 0) }, at(1));
        assert_eq!(find(&first, "Reachable").unwrap().status, "False");
        assert_eq!(find(&compute(&first, &verdict(Reason::Ready, 0), at(2)), "Reachable"), None);
    }

    #[test]
    fn long_messages_are_cut_between_characters() {
        let message = "ü".repeat(2000);
        let verdict = Verdict { message: &message, ..verdict(Reason::ReconcileFailed, 1) };
        let conditions = compute(&[], &verdict, at(1));
        assert_eq!(find(&conditions, "Ready").unwrap().message.chars().count(), 1024);
    }

    #[test]
    fn ready_applies_to_its_own_generation_only() {
        let conditions = compute(&[], &verdict(Reason::Ready, 0), at(1));
        assert!(is_ready(&conditions, Some(7)));
        assert!(!is_ready(&conditions, Some(8)));
        assert!(!is_ready(&[], Some(7)));
    }
}
