//! The headers of each Git host, and the proof that it was the sender.

use axum::http::HeaderMap;
use declarest_core::secrets::Secret;
use ring::hmac;

use crate::crd::resource_repository::{WebhookEvent, WebhookProvider};
use crate::http_server::is_same;

/// The headers of one provider.
pub struct Dialect {
    proof: Proof,
    event: &'static str,
    push: &'static str,
    ping: Option<&'static str>,
    delivery: &'static str,
}

/// The header that proves who the sender is.
enum Proof {
    /// The secret itself.
    Token(&'static str),
    /// The HMAC-SHA256 of the body in hexadecimal digits, after a prefix.
    Hmac { header: &'static str, prefix: &'static str, prefix_required: bool },
}

impl Dialect {
    /// Returns the headers of `provider`, as the documentation of that product states them.
    pub const fn of(provider: WebhookProvider) -> Self {
        match provider {
            WebhookProvider::Github => Self {
                proof: Proof::Hmac {
                    header: "x-hub-signature-256",
                    prefix: "sha256=",
                    prefix_required: true,
                },
                event: "x-github-event",
                push: "push",
                ping: Some("ping"),
                delivery: "x-github-delivery",
            },
            WebhookProvider::Gitlab => Self {
                proof: Proof::Token("x-gitlab-token"),
                event: "x-gitlab-event",
                push: "Push Hook",
                ping: None,
                delivery: "x-gitlab-event-uuid",
            },
            WebhookProvider::Gitea => Self {
                proof: Proof::Hmac { header: "x-gitea-signature", prefix: "", prefix_required: false },
                event: "x-gitea-event",
                push: "push",
                ping: None,
                delivery: "x-gitea-delivery",
            },
            WebhookProvider::GenericHmac => Self {
                proof: Proof::Hmac { header: "x-signature", prefix: "sha256=", prefix_required: false },
                event: "x-event-type",
                push: "push",
                ping: Some("ping"),
                delivery: "x-delivery-id",
            },
        }
    }

    /// Returns whether the sender knows `secret`. The comparison takes the same time wherever the proof differs.
    pub fn is_proven(&self, headers: &HeaderMap, body: &[u8], secret: &Secret) -> bool {
        match self.proof {
            Proof::Token(header) => text(headers, header).is_some_and(|token| is_same(token, secret)),
            Proof::Hmac { header, prefix, prefix_required } => {
                let Some(stated) = text(headers, header) else { return false };
                let digits = match stated.strip_prefix(prefix) {
                    Some(digits) => digits,
                    None if prefix_required => return false,
                    None => stated,
                };
                let key = hmac::Key::new(hmac::HMAC_SHA256, secret.expose().as_bytes());
                decode_hex(digits).is_some_and(|code| hmac::verify(&key, body, &code).is_ok())
            }
        }
    }

    /// Returns the type of the delivery; `None` for a type that is never processed.
    pub fn event(&self, headers: &HeaderMap) -> Option<WebhookEvent> {
        let event = text(headers, self.event)?;
        if event == self.push {
            Some(WebhookEvent::Push)
        } else {
            (self.ping == Some(event)).then_some(WebhookEvent::Ping)
        }
    }

    /// Returns the id that the Git host assigned to the delivery.
    pub fn delivery<'h>(&self, headers: &'h HeaderMap) -> Option<&'h str> {
        text(headers, self.delivery).map(str::trim).filter(|id| !id.is_empty())
    }
}

fn text<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers.get(name)?.to_str().ok()
}

fn decode_hex(digits: &str) -> Option<Vec<u8>> {
    let digits = digits.as_bytes();
    if !digits.len().is_multiple_of(2) {
        return None;
    }
    let digit = |byte: u8| char::from(byte).to_digit(16);
    digits.chunks_exact(2).map(|pair| u8::try_from(digit(pair[0])? * 16 + digit(pair[1])?).ok()).collect()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    /// Test case 2 of RFC 4231.
    const SECRET: &str = "Jefe";
    const BODY: &str = "what do ya want for nothing?";
    const CODE: &str = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";

    fn headers(name: &'static str, value: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(name, value.parse().unwrap());
        headers
    }

    #[rstest]
    #[case::github(WebhookProvider::Github, "x-hub-signature-256", &format!("sha256={CODE}"), true)]
    #[case::github_upper_case(WebhookProvider::Github, "x-hub-signature-256", &format!("sha256={}", CODE.to_uppercase()), true)]
    #[case::github_without_prefix(WebhookProvider::Github, "x-hub-signature-256", CODE, false)]
    #[case::github_other_header(WebhookProvider::Github, "x-signature", &format!("sha256={CODE}"), false)]
    #[case::gitea(WebhookProvider::Gitea, "x-gitea-signature", CODE, true)]
    #[case::generic(WebhookProvider::GenericHmac, "x-signature", CODE, true)]
    #[case::generic_with_prefix(WebhookProvider::GenericHmac, "x-signature", &format!("sha256={CODE}"), true)]
    #[case::short(WebhookProvider::GenericHmac, "x-signature", &CODE[..62], false)]
    #[case::odd(WebhookProvider::GenericHmac, "x-signature", &CODE[..63], false)]
    #[case::empty(WebhookProvider::GenericHmac, "x-signature", "", false)]
    #[case::not_hexadecimal(WebhookProvider::GenericHmac, "x-signature", "zz", false)]
    #[case::gitlab(WebhookProvider::Gitlab, "x-gitlab-token", SECRET, true)]
    #[case::gitlab_prefix(WebhookProvider::Gitlab, "x-gitlab-token", "Jef", false)]
    #[case::gitlab_empty(WebhookProvider::Gitlab, "x-gitlab-token", "", false)]
    fn proofs(
        #[case] provider: WebhookProvider,
        #[case] header: &'static str,
        #[case] value: &str,
        #[case] expected: bool,
    ) {
        let (headers, secret) = (headers(header, value), Secret::from(SECRET.to_owned()));
        assert_eq!(Dialect::of(provider).is_proven(&headers, BODY.as_bytes(), &secret), expected);
    }

    #[rstest]
    #[case(WebhookProvider::Github, "x-github-event", "push", Some(WebhookEvent::Push))]
    #[case(WebhookProvider::Github, "x-github-event", "ping", Some(WebhookEvent::Ping))]
    #[case(WebhookProvider::Github, "x-github-event", "release", None)]
    #[case(WebhookProvider::Gitlab, "x-gitlab-event", "Push Hook", Some(WebhookEvent::Push))]
    #[case(WebhookProvider::Gitlab, "x-gitlab-event", "Tag Push Hook", None)]
    #[case(WebhookProvider::Gitea, "x-gitea-event", "push", Some(WebhookEvent::Push))]
    #[case(WebhookProvider::Gitea, "x-gitea-event", "ping", None)]
    #[case(WebhookProvider::GenericHmac, "x-event-type", "ping", Some(WebhookEvent::Ping))]
    fn events(
        #[case] provider: WebhookProvider,
        #[case] header: &'static str,
        #[case] value: &str,
        #[case] expected: Option<WebhookEvent>,
    ) {
        assert_eq!(Dialect::of(provider).event(&headers(header, value)), expected);
    }
}
