//! Where redirects may lead, and who is told what there.

use http::header::LOCATION;
use http::{Method, StatusCode};
use url::Url;

use super::{Call, EXCERPT, Failed, Purpose, Wire};
use crate::server::Request;

/// How far redirects have led. It never shrinks again: whoever was asked out there has chosen what is asked next,
/// be it of the server that knows us.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Reach {
    /// Below the base URL, or wherever the settings say.
    Home,
    /// The same origin, but not below the base path: somebody else may live there, another tenant perhaps.
    Neighbour,
    /// Another origin.
    Stranger,
}

impl Wire {
    /// How far `url` is from where the server is configured to be.
    pub(super) fn reach(&self, call: Call<'_>, url: &Url) -> Reach {
        if call.purpose == Purpose::Token {
            // It goes to whom the settings name, and as a write it leaves no origin.
            return Reach::Home;
        }
        if !self.base_url.origin_is(url) {
            return Reach::Stranger;
        }
        // The health check and the document may be configured to be beside the base path.
        let kept = self.base_url.is_below(call.target);
        if kept && !self.base_url.keeps(url) { Reach::Neighbour } else { Reach::Home }
    }

    /// Whether a redirect may lead so far. What it carries must be for everybody there, or nothing.
    pub(super) fn check_reach(
        &self,
        request: &Request,
        to: &Url,
        reach: Reach,
        status: StatusCode,
    ) -> Result<(), Failed> {
        let obstacle = match reach {
            Reach::Home => return Ok(()),
            _ if !is_read(&request.method) => "for a write",
            _ if request.body.is_some() => "with a body",
            Reach::Neighbour if self.certified => "with a client certificate",
            Reach::Neighbour | Reach::Stranger => return Ok(()),
        };
        let (status, path) = (status.as_u16(), self.shown_path(to));
        let place = if self.base_url.origin_is(to) {
            format!("{path}, which is not below the base path {}", self.base_url.path())
        } else {
            format!("{}, which is another origin", to.origin().ascii_serialization())
        };
        let reason =
            format!("redirect with status {status} leads to {place}, and is not followed {obstacle}");
        Err(Failed::finally(request.failed(reason)))
    }

    /// The path that a redirect names, which may be long and hold anything.
    fn shown_path(&self, url: &Url) -> String {
        self.redaction.redact(url.path()).chars().take(EXCERPT).collect()
    }

    /// What others, to whom a redirect of ours led, have not got or refuse is no word of ours: taken for it, what
    /// exists would be created again, and what is to be deleted would count as gone.
    pub(super) fn check_word(
        &self,
        call: Call<'_>,
        url: &Url,
        reach: Reach,
        status: StatusCode,
    ) -> Result<(), Failed> {
        let elsewhere = self.base_url.origin_is(call.target) && reach != Reach::Home;
        if elsewhere && (status.is_client_error() || status.is_server_error()) {
            let place = if self.base_url.origin_is(url) {
                format!("{}, which without credentials", self.shown_path(url))
            } else {
                format!("{}, which", url.origin().ascii_serialization())
            };
            let reason = format!("redirected to {place} answers with status {}", status.as_u16());
            return Err(Failed::finally(call.request.failed(reason)));
        }
        Ok(())
    }
}

/// Whether the method asks for nothing but an answer, so that it may be sent to others.
fn is_read(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD)
}

/// Where a redirect leads, if it may be followed: reads anywhere but from https to http, writes only within the
/// origin and only with method and body kept (307, 308). How far it may lead besides is for [`Wire::check_reach`].
pub(super) fn redirection(request: &Request, from: &Url, answer: &reqwest::Response) -> Result<Url, Failed> {
    let status = answer.status();
    let refuse = |why: &str| {
        Failed::finally(request.failed(format!("redirect with status {} {why}", status.as_u16())))
    };
    let location = answer.headers().get(LOCATION).and_then(|location| location.to_str().ok());
    let to = location
        .and_then(|location| from.join(location).ok())
        .ok_or_else(|| refuse("names no usable location"))?;
    if !matches!(to.scheme(), "http" | "https") {
        return Err(refuse("leads to neither http nor https and is not followed"));
    }
    if from.scheme() == "https" && to.scheme() != "https" {
        return Err(refuse("leads from https to http and is not followed"));
    }
    if !to.username().is_empty() || to.password().is_some() {
        return Err(refuse("leads to a URL with credentials and is not followed"));
    }
    if is_read(&request.method) {
        return Ok(to);
    }
    let keeps_method = matches!(status, StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT);
    if keeps_method && from.origin() == to.origin() {
        return Ok(to);
    }
    Err(refuse("is not followed for a write"))
}
