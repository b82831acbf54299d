//! One HTTP exchange: a request, the redirects that it follows, and the body of the answer.
//!
//! The caller defines the requests and the policy for redirects in an [`Exchange`], and runs it with [`follow`]. Its
//! clients must not follow redirects themselves. [`collect`] reads the body up to a limit.

use std::future::Future;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::LOCATION;
use http::{Method, StatusCode};
use reqwest::Response;
use tokio::time::{Instant, timeout_at};
use url::Url;

use super::destinations;
use crate::memory::{Pool, Reservation, Shortage};

/// The maximum number of redirects in one exchange.
const REDIRECTS: usize = 10;

/// The requests of one exchange, and the policy for its redirects.
pub(crate) trait Exchange {
    /// The error of an exchange without an answer.
    type Error;

    /// Sends the request to `url`, and returns the answer before its body is read.
    fn send(&mut self, url: &Url) -> impl Future<Output = Result<Response, Self::Error>> + Send;

    /// Decides whether to follow a redirect that [`follow`] allows, and what the next request contains.
    fn redirect(&mut self, from: &Url, to: &Url, status: StatusCode) -> Result<(), Self::Error>;

    /// Returns the error for a redirect that is not followed.
    fn refused(&self, reason: String) -> Self::Error;

    /// Returns the error for a redirect of a write to `to` that is not followed.
    fn write_refused(&self, _to: &Url, status: StatusCode) -> Self::Error {
        self.refused(format!("redirect with status {} is not followed for a write", status.as_u16()))
    }
}

/// Sends the request of `exchange` with this method to `url`, follows redirects, and returns the first other answer.
///
/// Redirects of reads may lead anywhere except from https to http. Redirects of writes stay within the origin, and must
/// have a status that keeps method and body. All targets must be allowed [`destinations`].
pub(crate) async fn follow<E: Exchange>(
    exchange: &mut E,
    method: &Method,
    url: &Url,
) -> Result<Response, E::Error> {
    let mut redirected: Option<Url> = None;
    for _ in 0..=REDIRECTS {
        let from = redirected.as_ref().unwrap_or(url);
        destinations::check(from).map_err(|denied| exchange.refused(denied.to_string()))?;
        let answer = exchange.send(from).await?;
        let status = answer.status();
        if !status.is_redirection() || status == StatusCode::NOT_MODIFIED {
            return Ok(answer);
        }
        let to = target(from, location(from, &answer))
            .map_err(|why| exchange.refused(format!("redirect with status {} {why}", status.as_u16())))?;
        if !is_read(method) && !keeps_write(from, status, &to) {
            return Err(exchange.write_refused(&to, status));
        }
        exchange.redirect(from, &to, status)?;
        redirected = Some(to);
    }
    Err(exchange.refused(format!("more than {REDIRECTS} redirects")))
}

/// Returns the URL in the `Location` header of an answer of `from`, if it is valid.
pub(crate) fn location(from: &Url, answer: &Response) -> Option<Url> {
    from.join(answer.headers().get(LOCATION)?.to_str().ok()?).ok()
}

/// Returns whether the method only reads, so that other origins may get the request.
pub(crate) fn is_read(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD)
}

/// Returns the target of a redirect, or the reason why it is not followed.
fn target(from: &Url, location: Option<Url>) -> Result<Url, &'static str> {
    let to = location.ok_or("has no usable Location header")?;
    if !matches!(to.scheme(), "http" | "https") {
        return Err("leads to neither http nor https and is not followed");
    }
    if from.scheme() == "https" && to.scheme() != "https" {
        return Err("leads from https to http and is not followed");
    }
    if !to.username().is_empty() || to.password().is_some() {
        return Err("leads to a URL with credentials and is not followed");
    }
    Ok(to)
}

/// Returns whether a redirect keeps the method, the body and the origin.
fn keeps_write(from: &Url, status: StatusCode, to: &Url) -> bool {
    let keeps_method = matches!(status, StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT);
    keeps_method && from.origin() == to.origin()
}

/// The time limit of an exchange with a server. It stops during waits that are not for the server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    end: Instant,
}

impl Clock {
    pub fn start(limit: Duration) -> Self {
        Self { end: Instant::now() + limit }
    }

    /// Returns the output of `work`, or `None` if the time ends before.
    pub async fn run<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        timeout_at(self.end, work).await.ok()
    }

    /// Returns the output of `wait`, and adds its duration to the limit.
    pub async fn stop<T>(&mut self, wait: impl Future<Output = T>) -> T {
        let began = Instant::now();
        let output = wait.await;
        self.end += began.elapsed();
        output
    }
}

/// A body that was read up to a limit.
pub(crate) enum Collected {
    /// The complete body.
    Whole(Bytes),
    /// The beginning of a body that is longer than the limit.
    Cut(Bytes),
    /// The memory for the body is not available.
    Short(Shortage),
    /// The time ended before the body.
    Late,
}

/// Reads a body up to `limit` before `clock` ends. A body of a single chunk is not copied.
pub(crate) async fn collect(
    answer: &mut Response,
    limit: usize,
    clock: &mut Clock,
) -> Result<Collected, reqwest::Error> {
    // Content-Length determines the capacity, up to the limit.
    let expected = answer.content_length().and_then(|length| usize::try_from(length).ok()).unwrap_or(0);
    let Some(first) = clock.run(answer.chunk()).await else { return Ok(Collected::Late) };
    let Some(first) = first? else { return Ok(Collected::Whole(Bytes::new())) };
    if first.len() > limit {
        return Ok(Collected::Cut(first.slice(..limit)));
    }
    let Some(second) = clock.run(answer.chunk()).await else { return Ok(Collected::Late) };
    let Some(second) = second? else { return Ok(Collected::Whole(first)) };
    let first_part = expected.max(first.len() + second.len()).min(limit);
    let mut held = Reservation::new(Pool::Answers);
    if let Err(shortage) = clock.stop(held.cover(first_part)).await {
        return Ok(Collected::Short(shortage));
    }
    let mut body = BytesMut::with_capacity(first_part);
    body.extend_from_slice(&first);
    let mut next = Some(second);
    while let Some(chunk) = next {
        let room = limit - body.len();
        if chunk.len() > room {
            body.extend_from_slice(&chunk[..room]);
            return Ok(Collected::Cut(body.freeze()));
        }
        if let Err(shortage) = clock.stop(held.cover(body.len() + chunk.len())).await {
            return Ok(Collected::Short(shortage));
        }
        body.extend_from_slice(&chunk);
        let Some(chunk) = clock.run(answer.chunk()).await else { return Ok(Collected::Late) };
        next = chunk?;
    }
    Ok(Collected::Whole(held.share().keep(body.freeze())))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::relative("https://a.test/x", Some("y?z"), Ok("https://a.test/y?z"))]
    #[case::other_origin("https://a.test", Some("https://b.test/"), Ok("https://b.test/"))]
    #[case::upgrade("http://a.test", Some("https://a.test/"), Ok("https://a.test/"))]
    #[case::plain("http://a.test", Some("http://b.test/"), Ok("http://b.test/"))]
    #[case::no_location("http://a.test", None, Err("has no usable Location header"))]
    #[case::no_url("http://a.test", Some("http://["), Err("has no usable Location header"))]
    #[case::downgrade(
        "https://a.test",
        Some("http://a.test/"),
        Err("leads from https to http and is not followed")
    )]
    #[case::file(
        "http://a.test",
        Some("file:///x"),
        Err("leads to neither http nor https and is not followed")
    )]
    #[case::credentials(
        "http://a.test",
        Some("http://u@a.test/"),
        Err("leads to a URL with credentials and is not followed")
    )]
    fn targets_of_redirects(
        #[case] from: &str,
        #[case] location: Option<&str>,
        #[case] expected: Result<&str, &str>,
    ) {
        let from: Url = from.parse().unwrap();
        let found = target(&from, location.and_then(|location| from.join(location).ok()));
        assert_eq!(found.as_ref().map(Url::as_str), expected.as_ref().map(|url| *url));
    }

    #[rstest]
    #[case::kept(307, "http://a.test/y", true)]
    #[case::as_read(302, "http://a.test/y", false)]
    #[case::moved(301, "http://a.test/y", false)]
    #[case::elsewhere(308, "http://b.test/y", false)]
    fn redirects_of_writes(#[case] status: u16, #[case] to: Url, #[case] expected: bool) {
        let from = "http://a.test/x".parse().unwrap();
        assert_eq!(keeps_write(&from, StatusCode::from_u16(status).unwrap(), &to), expected);
    }
}
