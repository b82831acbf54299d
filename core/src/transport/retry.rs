//! Whether to repeat a failed attempt, and after which pause.

use std::time::{Duration, SystemTime};

use http::header::{DATE, HeaderMap, HeaderName, RETRY_AFTER};
use http::{Method, StatusCode};

/// The number of attempts, including the first, unless another one is configured.
pub(crate) const ATTEMPTS: u32 = 4;

/// The longest wait that a server may ask for. For longer ones the request fails, and a later sync repeats it.
pub(crate) const LONGEST_WAIT: Duration = Duration::from_mins(1);

/// The longest wait for a probe of the breaker. It equals the longest pause between attempts, so the breaker does not
/// delay a request more than real attempts would.
const LONGEST_WAIT_FOR_PROBE: Duration = Duration::from_secs(2);

const BASE_DELAY: Duration = Duration::from_millis(250);
const LONGEST_BACKOFF: Duration = Duration::from_secs(10);
/// The longest pause after the first answer that states a lock.
const FIRST_LOCK: Duration = Duration::from_secs(2);

/// The kind of failure of an attempt.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Failure {
    /// The breaker is open, so nothing was sent. The next probe is after this time.
    NotContacted(Duration),
    /// No connection was made, so nothing was sent.
    Connect,
    /// A certificate was rejected, which is permanent.
    Certificate,
    /// The connection broke or timed out; the request may have been received.
    Interrupted,
    /// Another server, the target of a redirect of a read, did not answer.
    Elsewhere,
    /// The server answered with this status and, if present, this `Retry-After`.
    Status(StatusCode, Option<Duration>),
    /// The same. The answer states that the resource is locked for a time, so the server has done nothing.
    Locked(StatusCode, Option<Duration>),
    /// This process or its proxy refused to send the request, which another attempt cannot correct.
    Unsent,
    /// A failure that another attempt cannot correct.
    Final,
}

/// Returns the pause after the failure of the `attempt`-th of at most `attempts` attempts (from 1); `None` if there is
/// no further one.
///
/// A request that is not `repeatable` is repeated only if the server cannot have acted on it: it was not sent, the answer
/// was 429 (RFC 6585 §4), or it states a lock.
pub(crate) fn pause(repeatable: bool, attempt: u32, attempts: u32, failure: &Failure) -> Option<Duration> {
    if attempt >= attempts {
        return None;
    }
    let asked = match *failure {
        Failure::Connect | Failure::Elsewhere => None,
        Failure::NotContacted(probe_in) if probe_in <= LONGEST_WAIT_FOR_PROBE => Some(probe_in),
        Failure::Interrupted if repeatable => None,
        Failure::Status(StatusCode::TOO_MANY_REQUESTS, retry_after) => retry_after,
        Failure::Locked(_, retry_after) => Some(lock_pause(attempt).max(retry_after.unwrap_or_default())),
        Failure::Status(
            StatusCode::BAD_GATEWAY | StatusCode::SERVICE_UNAVAILABLE | StatusCode::GATEWAY_TIMEOUT,
            retry_after,
        ) if repeatable => retry_after,
        Failure::NotContacted(_)
        | Failure::Certificate
        | Failure::Interrupted
        | Failure::Status(..)
        | Failure::Unsent
        | Failure::Final => return None,
    };
    let delay = backoff(attempt).max(asked.unwrap_or_default());
    (delay <= LONGEST_WAIT).then_some(delay)
}

/// Returns the pause after the `attempt`-th failure (from 1), up to 0.5 s after the first one.
pub(crate) fn backoff(attempt: u32) -> Duration {
    let ceiling = BASE_DELAY.saturating_mul(2_u32.saturating_pow(attempt)).min(LONGEST_BACKOFF);
    // Full jitter keeps clients that failed together from returning together.
    ceiling.mul_f64(fastrand::f64())
}

/// Returns the pause after the `attempt`-th answer (from 1) that states a lock: 1 to 2 s after the first one. Most locks are
/// held for some seconds.
fn lock_pause(attempt: u32) -> Duration {
    let ceiling = FIRST_LOCK.saturating_mul(2_u32.saturating_pow(attempt - 1)).min(LONGEST_BACKOFF);
    ceiling.mul_f64(0.5 + fastrand::f64() / 2.0)
}

/// Whether a request that arrives twice has the same effect as one that arrives once.
pub(crate) fn is_idempotent(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS | Method::PUT | Method::DELETE)
}

/// Returns the wait of `Retry-After`, if it is valid.
pub(crate) fn asked_patience(headers: &HeaderMap) -> Option<Duration> {
    retry_after(headers, SystemTime::now())
}

/// Returns the date in a header.
fn date(headers: &HeaderMap, name: HeaderName) -> Option<SystemTime> {
    httpdate::parse_http_date(headers.get(name)?.to_str().ok()?.trim()).ok()
}

/// Parses `Retry-After`, which is seconds or a date (RFC 9110 §10.2.3). A date is relative to the server's clock in
/// `Date`, if the answer has it, because clocks differ.
fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse::<u64>() {
        return Some(Duration::from_secs(seconds));
    }
    let at = date(headers, RETRY_AFTER)?;
    Some(at.duration_since(date(headers, DATE).unwrap_or(now)).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    fn statuses(
        #[values(400, 401, 403, 404, 408, 409, 410, 412, 422, 425, 429, 500, 501, 502, 503, 504, 507)]
        status: u16,
        #[values("GET", "HEAD", "OPTIONS", "PUT", "DELETE", "POST", "PATCH")] method: &str,
    ) {
        let again = match status {
            429 => true,
            502..=504 => !matches!(method, "POST" | "PATCH"),
            _ => false,
        };
        let failure = Failure::Status(StatusCode::from_u16(status).unwrap(), None);
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        assert_eq!(pause(is_idempotent(&method), 1, ATTEMPTS, &failure).is_some(), again);
    }

    #[test]
    fn pauses_grow_and_vary() {
        for (attempt, longest) in [(1, 500), (2, 1000), (3, 2000)] {
            let pauses: Vec<_> =
                (0..200).map(|_| pause(true, attempt, ATTEMPTS, &Failure::Connect).unwrap()).collect();
            let longest = Duration::from_millis(longest);
            assert!(pauses.iter().all(|pause| *pause <= longest), "{attempt}: {pauses:?}");
            // It is practically impossible that 200 even pauses are all in one half.
            assert!(pauses.iter().any(|pause| *pause > longest / 2), "{attempt}: {pauses:?}");
            assert!(pauses.iter().any(|pause| *pause < longest / 2), "{attempt}: {pauses:?}");
        }
    }

    #[test]
    fn locks_are_waited_for() {
        for (attempt, longest) in [(1, 2), (2, 4), (3, 8)] {
            let (longest, locked) =
                (Duration::from_secs(longest), Failure::Locked(StatusCode::CONFLICT, None));
            let pauses = (0..200).map(|_| pause(false, attempt, ATTEMPTS, &locked).unwrap());
            assert!(pauses.into_iter().all(|pause| pause >= longest / 2 && pause <= longest), "{attempt}");
        }
        let asked = Failure::Locked(StatusCode::LOCKED, Some(Duration::from_secs(7)));
        assert!(pause(false, 1, ATTEMPTS, &asked).unwrap() >= Duration::from_secs(7));
        assert_eq!(pause(false, ATTEMPTS, ATTEMPTS, &asked), None);
    }

    #[test]
    fn a_post_that_may_have_arrived_is_not_repeated() {
        assert_eq!(pause(false, 1, ATTEMPTS, &Failure::Interrupted), None);
        assert!(pause(false, 1, ATTEMPTS, &Failure::Connect).is_some());
        assert!(pause(false, 1, ATTEMPTS, &Failure::NotContacted(Duration::ZERO)).is_some());
        assert!(pause(true, 1, ATTEMPTS, &Failure::Interrupted).is_some());
    }

    #[rstest]
    #[case(Failure::Connect)]
    #[case(Failure::Elsewhere)]
    #[case(Failure::NotContacted(Duration::ZERO))]
    fn attempts_are_bounded(#[case] failure: Failure) {
        assert_eq!(pause(true, ATTEMPTS, ATTEMPTS, &failure), None);
    }

    #[rstest]
    #[case(Failure::Certificate)]
    #[case(Failure::Final)]
    fn some_failures_are_final(#[case] failure: Failure) {
        assert_eq!(pause(true, 1, ATTEMPTS, &failure), None);
    }

    #[test]
    fn a_probe_is_awaited_only_if_it_is_soon() {
        let soon = Duration::from_millis(1900);
        assert!(pause(false, 1, ATTEMPTS, &Failure::NotContacted(soon)).unwrap() >= soon);
        assert_eq!(pause(true, 1, ATTEMPTS, &Failure::NotContacted(Duration::from_millis(2001))), None);
    }

    #[test]
    fn retry_after_is_obeyed_up_to_a_limit() {
        let asked = |seconds| {
            let patience = Some(Duration::from_secs(seconds));
            pause(true, 1, ATTEMPTS, &Failure::Status(StatusCode::TOO_MANY_REQUESTS, patience))
        };
        assert!(asked(7).unwrap() >= Duration::from_secs(7));
        assert_eq!(asked(60), Some(Duration::from_mins(1)));
        assert_eq!(asked(61), None);
    }

    #[rstest]
    #[case("7", Some(7))]
    #[case("Sun, 06 Nov 1994 08:49:37 GMT", Some(7))]
    #[case("Sun, 06 Nov 1994 08:49:00 GMT", Some(0))]
    #[case("soon", None)]
    fn retry_after_is_seconds_or_a_date(#[case] text: &str, #[case] expected: Option<u64>) {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_770);
        let headers = HeaderMap::from_iter([(RETRY_AFTER, text.parse().unwrap())]);
        assert_eq!(retry_after(&headers, now), expected.map(Duration::from_secs));
    }

    #[test]
    fn a_date_in_retry_after_is_relative_to_the_date_of_the_answer() {
        let headers = HeaderMap::from_iter([
            (RETRY_AFTER, "Sun, 06 Nov 1994 08:49:37 GMT".parse().unwrap()),
            (DATE, "Sun, 06 Nov 1994 08:49:30 GMT".parse().unwrap()),
        ]);
        assert_eq!(retry_after(&headers, SystemTime::now()), Some(Duration::from_secs(7)));
    }
}
