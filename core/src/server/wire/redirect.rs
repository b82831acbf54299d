//! Rules for redirects: the allowed targets, and the headers that are sent to them.

use http::StatusCode;
use url::Url;

use super::{Call, EXCERPT, Failed, Purpose, Wire};
use crate::transport::exchange::is_read;

/// The distance from the base URL that a chain of redirects has reached. It never decreases, because the distant
/// server chose the next target, even if that is on our server again.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Reach {
    /// Below the base URL, or a URL from the settings.
    Home,
    /// The same origin, but not below the base path. Another tenant may be there.
    Neighbour,
    /// Another origin.
    Stranger,
}

impl Wire {
    /// Returns the distance of `url` from the base URL.
    pub(super) fn reach(&self, call: Call<'_>, url: &Url) -> Reach {
        if call.purpose == Purpose::Token {
            // The settings name the token endpoint, and a write never leaves its origin.
            return Reach::Home;
        }
        if !self.base_url.origin_is(url) {
            return Reach::Stranger;
        }
        // The health check and the OpenAPI document may be configured outside the base path.
        let kept = self.base_url.is_below(call.target);
        if kept && !self.base_url.keeps(url) { Reach::Neighbour } else { Reach::Home }
    }

    /// Fails if the request must not be sent to this distance: writes, bodies, and client certificates for other
    /// tenants of the origin.
    pub(super) fn check_reach(
        &self,
        call: Call<'_>,
        to: &Url,
        reach: Reach,
        status: StatusCode,
    ) -> Result<(), Failed> {
        let request = call.request;
        // A document of another origin is downloaded without credentials from the start.
        let stays = !self.cross_origin_redirects && self.base_url.origin_is(call.target);
        let obstacle = match reach {
            Reach::Home => return Ok(()),
            _ if !is_read(&request.method) => "for a write",
            _ if request.body.is_some() => "with a body",
            Reach::Neighbour if self.certified => "with a client certificate",
            Reach::Stranger if stays => "because allowCrossOriginRedirects is not set",
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

    /// Returns the path that a redirect names, redacted and cut to [`EXCERPT`] characters.
    fn shown_path(&self, url: &Url) -> String {
        self.redaction.redact(url.path()).chars().take(EXCERPT).collect()
    }

    /// Turns an error status after a redirect away from the base URL into a transport error. A 404 from there does
    /// not show that the resource is absent on our server; it must not cause a create, nor confirm a delete.
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
