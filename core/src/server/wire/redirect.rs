//! Rules for redirects: the allowed targets, and the headers that are sent to them.

use http::StatusCode;
use url::Url;

use super::{Call, EXCERPT, Failed, Purpose, Wire};
use crate::server::request::{percent_decoded, segments_of};
use crate::server::{Detour, Request, ServerError};
use crate::transport::exchange::is_read;
use crate::transport::retry::Failure;

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

impl Reach {
    /// Returns the failure of a request to this distance. Only the requests below the base URL describe the managed
    /// server.
    pub(super) fn blames(self, failure: Failure) -> Failure {
        if self == Self::Home { failure } else { Failure::Elsewhere }
    }
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

    /// Returns the error of a write that the server redirects to `to`. With 302 and 303, it may have executed the write.
    pub(super) fn unfollowed_write(&self, request: &Request, to: &Url, status: StatusCode) -> ServerError {
        let place =
            if self.base_url.origin_is(to) { self.shown_path(to) } else { to.origin().ascii_serialization() };
        let reason = format!(
            "redirect with status {} leads to {place}, and is not followed for a write; if this is the address for \
             writes, state it in the path of the operation; otherwise correct the base URL or the credentials",
            status.as_u16()
        );
        let may_be_done = matches!(status, StatusCode::FOUND | StatusCode::SEE_OTHER);
        if may_be_done { request.failed(reason) } else { request.refused(reason) }
    }

    /// Fails if the redirect replaces a name of the resource that the request writes. Servers redirect from the former
    /// name of what was renamed, or moved to another owner, and that is not the declared resource.
    pub(super) fn check_names(&self, call: Call<'_>, to: &Url, status: StatusCode) -> Result<(), Failed> {
        if call.names.is_empty() {
            return Ok(());
        }
        let replaced = replaced(call.target, to).into_iter().find(|replaced| call.names.contains(replaced));
        let Some(name) = replaced else { return Ok(()) };
        let (status, to) = (status.as_u16(), self.shown_path(to));
        let reason = format!(
            "redirect with status {status} leads to {to}, which replaces \"{name}\", and is not followed for a write"
        );
        Err(Failed::finally(call.request.failed(reason)))
    }

    /// Returns the redirect from the target of `call` to `url`, if it replaced names.
    pub(super) fn detour(&self, call: Call<'_>, url: &Url) -> Option<Box<Detour>> {
        let replaced = replaced(call.target, url);
        let to =
            || self.redaction.redact_with(&call.request.secrets, &percent_decoded(&self.shown_path(url)));
        (!replaced.is_empty()).then(|| Box::new(Detour { to: to(), replaced }))
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

/// Returns the segments of `asked` that the path of `to` does not have, in this order and regardless of case. Redirects
/// that add a prefix or a slash replace none.
fn replaced(asked: &Url, to: &Url) -> Vec<String> {
    if asked.path() == to.path() {
        return Vec::new();
    }
    let names = |url: &Url| segments_of(url.path()).map(percent_decoded).collect::<Vec<_>>();
    let (mut replaced, found) = (names(asked), names(to));
    let mut rest = found.as_slice();
    replaced.retain(|name| {
        let place = rest.iter().position(|other| other.to_lowercase() == name.to_lowercase());
        rest = place.map_or(rest, |place| &rest[place + 1..]);
        place.is_none()
    });
    replaced
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("/users/ana", "/users/ana/", &[])]
    #[case("/users/Ana", "/users/ana", &[])]
    #[case("/users/a%6ea", "/users/ana", &[])]
    #[case("/api/users/ana", "/api/v2/users/ana", &[])]
    #[case("/users/ana", "/users/bob", &["ana"])]
    #[case("/repos/a/r%2F1", "/repos/b/r%2F1", &["a"])]
    #[case("/repos/a/r", "/projects/17", &["repos", "a", "r"])]
    fn names(#[case] asked: &str, #[case] to: &str, #[case] expected: &[&str]) {
        let url = |path: &str| Url::parse("http://h.test").unwrap().join(path).unwrap();
        assert_eq!(replaced(&url(asked), &url(to)), expected);
    }
}
