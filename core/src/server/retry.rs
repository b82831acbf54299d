//! When a failed attempt is worth another one, and how long to wait for it.

use std::time::{Duration, SystemTime};

use http::header::{HeaderMap, RETRY_AFTER};
use http::{Method, StatusCode};

/// Attempts in all, the first included.
pub(super) const ATTEMPTS: u32 = 4;

/// A server that asks for more patience than this gets its next request from a later sync.
const LONGEST_WAIT: Duration = Duration::from_mins(1);

const BASE_DELAY: Duration = Duration::from_millis(250);
const LONGEST_BACKOFF: Duration = Duration::from_secs(10);

/// How an attempt failed.
pub(super) enum Failure<'a> {
    /// No connection was made, so nothing was sent.
    Connect,
    /// The connection broke or timed out; the request may have been received.
    Interrupted,
    /// The server answered with this status.
    Status(StatusCode, &'a HeaderMap),
}

/// The pause before the next attempt after the `attempt`-th (from 1) failed; `None` gives up.
///
/// POST and PATCH are repeated only where the server cannot have acted: nothing was sent, or it said 429
/// (RFC 6585 §4).
pub(super) fn pause(method: &Method, attempt: u32, failure: &Failure<'_>) -> Option<Duration> {
    if attempt >= ATTEMPTS {
        return None;
    }
    let idempotent =
        matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS | Method::PUT | Method::DELETE);
    let asked = match failure {
        Failure::Connect => None,
        Failure::Interrupted if idempotent => None,
        Failure::Status(StatusCode::TOO_MANY_REQUESTS, headers) => retry_after(headers, SystemTime::now()),
        Failure::Status(
            StatusCode::BAD_GATEWAY | StatusCode::SERVICE_UNAVAILABLE | StatusCode::GATEWAY_TIMEOUT,
            headers,
        ) if idempotent => retry_after(headers, SystemTime::now()),
        Failure::Interrupted | Failure::Status(..) => return None,
    };
    let ceiling = BASE_DELAY.saturating_mul(2_u32.saturating_pow(attempt)).min(LONGEST_BACKOFF);
    // Full jitter: clients that failed together do not come back together.
    let delay = ceiling.mul_f64(fastrand::f64()).max(asked.unwrap_or_default());
    (delay <= LONGEST_WAIT).then_some(delay)
}

/// `Retry-After` as seconds or as a date (RFC 9110 §10.2.3).
fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse::<u64>() {
        return Some(Duration::from_secs(seconds));
    }
    let at = httpdate::parse_http_date(text).ok()?;
    Some(at.duration_since(now).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn headers(retry_after: &str) -> HeaderMap {
        HeaderMap::from_iter([(RETRY_AFTER, retry_after.parse().unwrap())])
    }

    #[rstest]
    #[case(Method::GET, 503, true)]
    #[case(Method::PUT, 502, true)]
    #[case(Method::POST, 503, false)]
    #[case(Method::POST, 429, true)]
    #[case(Method::GET, 500, false)]
    #[case(Method::GET, 422, false)]
    fn statuses(#[case] method: Method, #[case] status: u16, #[case] again: bool) {
        let headers = HeaderMap::new();
        let failure = Failure::Status(StatusCode::from_u16(status).unwrap(), &headers);
        assert_eq!(pause(&method, 1, &failure).is_some(), again);
    }

    #[test]
    fn a_post_is_never_sent_twice_once_it_may_have_arrived() {
        assert_eq!(pause(&Method::POST, 1, &Failure::Interrupted), None);
        assert!(pause(&Method::POST, 1, &Failure::Connect).is_some());
        assert!(pause(&Method::PUT, 1, &Failure::Interrupted).is_some());
    }

    #[test]
    fn attempts_are_bounded() {
        assert_eq!(pause(&Method::GET, ATTEMPTS, &Failure::Connect), None);
    }

    #[test]
    fn retry_after_is_obeyed_up_to_a_limit() {
        let patient = headers("7");
        let status = StatusCode::TOO_MANY_REQUESTS;
        assert!(
            pause(&Method::GET, 1, &Failure::Status(status, &patient)).unwrap() >= Duration::from_secs(7)
        );
        assert_eq!(pause(&Method::GET, 1, &Failure::Status(status, &headers("61"))), None);
    }

    #[test]
    fn retry_after_dates() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_770);
        let at = headers("Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(retry_after(&at, now), Some(Duration::from_secs(7)));
        assert_eq!(retry_after(&headers("soon"), now), None);
    }
}
