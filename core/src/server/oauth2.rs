//! Bearer tokens from an OAuth 2.0 token endpoint (RFC 6749). A token is used until it expires.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::FutureExt;
use futures::future::{BoxFuture, Shared};
use http::header::{AUTHORIZATION, HeaderValue};
use http::{Method, StatusCode};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::time::Instant;
use tracing::Instrument as _;
use url::Url;
use zeroize::Zeroizing;

use super::header::{Header, sensitive};
use super::observer::TokenNeed;
use super::request::query_secrets;
use super::wire::{Call, Patience, Purpose, Wire};
use super::{Body, Request, Response, ServerError};
use crate::secrets::Secret;
use crate::transport::shown;

const TOKEN_URL: &str = "http.auth.oauth2.tokenURL";

/// The lifetime of a token if the endpoint does not state it.
const DEFAULT_LIFETIME: Duration = Duration::from_hours(1);
/// A token is not used in this time before its expiry, because requests take time and clocks differ. If half of its
/// lifetime is shorter, that applies.
const MARGIN: Duration = Duration::from_secs(30);
/// The time for which a rejection of the credentials is kept. Otherwise every request of a run would ask again, and
/// some endpoints lock users out after repeated failures.
const REFUSAL_COUNTS: Duration = Duration::from_secs(5);
/// The time for which a token that replaced a rejected one is not replaced for the same reason. Some servers answer 401
/// where others answer 403, so another token does not help.
const REPLACEMENT_COUNTS: Duration = Duration::from_secs(30);
/// A bound for lifetimes that can be added to any `Instant`.
const LONGEST_LIFETIME: Duration = Duration::from_hours(24 * 365);

/// The settings for bearer tokens (RFC 6749). The client's credentials are sent in the request body.
#[derive(Clone, Debug)]
pub struct OAuth2 {
    /// The token endpoint, http or https.
    pub token_url: String,
    /// The grant type.
    pub grant: Grant,
    /// The client id.
    pub client_id: Secret,
    /// The client secret.
    pub client_secret: Secret,
    /// Scopes to request, separated by spaces.
    pub scope: Option<String>,
    /// The audience to request, for token endpoints that need one.
    pub audience: Option<String>,
}

/// An OAuth 2.0 grant type.
#[derive(Clone, Debug)]
pub enum Grant {
    /// The client's own credentials (RFC 6749 section 4.4).
    ClientCredentials,
    /// The credentials of a user (RFC 6749 section 4.3).
    Password {
        /// The user.
        username: Secret,
        /// The password.
        password: Secret,
    },
}

/// Whether the requests of one run have replaced a token after status 403. Clones share the state.
///
/// Some servers write the permissions into the token, so a token from before the creation of a realm is not valid in
/// that realm, but a new one is. Most answers 403 are final, so a run tries this once.
#[derive(Clone, Debug, Default)]
pub struct TokenRenewal(Arc<AtomicBool>);

impl TokenRenewal {
    /// Returns whether this call is the first one.
    fn claim(&self) -> bool {
        !self.0.swap(true, Ordering::Relaxed)
    }
}

/// A token in use.
pub(super) struct Token {
    pub value: Secret,
    /// The `Authorization` header with the token.
    pub header: Header,
    /// The time when a new token is requested.
    stale_at: Instant,
}

type Outcome = Result<Arc<Token>, ServerError>;
/// A request for a token, and the time of its end.
type Flight = Shared<BoxFuture<'static, (Outcome, Instant)>>;

/// The tokens of one client.
pub(super) struct Tokens {
    wire: Arc<Wire>,
    endpoint: Arc<Endpoint>,
    current: Mutex<Current>,
}

struct Current {
    /// The last request for a token, which may still be running.
    flight: Option<Flight>,
    /// The reason for the last request or, without one, for the next.
    need: TokenNeed,
}

/// The token endpoint and the settings for it.
struct Endpoint {
    settings: OAuth2,
    url: Url,
}

impl OAuth2 {
    /// Returns the secrets in these settings, for the redactor.
    pub(super) fn secrets(&self) -> Vec<Secret> {
        let mut secrets = vec![self.client_secret.clone()];
        if let Grant::Password { password, .. } = &self.grant {
            secrets.push(password.clone());
        }
        if let Ok(url) = Url::parse(self.token_url.trim()) {
            secrets.extend(query_secrets(&url));
        }
        secrets
    }

    /// Returns the form of RFC 6749 section 4, without empty parameters.
    fn form(&self) -> Zeroizing<String> {
        let (grant_type, user) = match &self.grant {
            Grant::ClientCredentials => ("client_credentials", None),
            Grant::Password { username, password } => ("password", Some((username, password))),
        };
        let mut form = url::form_urlencoded::Serializer::new(String::new());
        form.append_pair("grant_type", grant_type);
        form.append_pair("client_id", self.client_id.expose());
        form.append_pair("client_secret", self.client_secret.expose());
        for (name, value) in [("scope", &self.scope), ("audience", &self.audience)] {
            if let Some(value) = value.as_deref().map(str::trim).filter(|value| !value.is_empty()) {
                form.append_pair(name, value);
            }
        }
        if let Some((username, password)) = user {
            form.append_pair("username", username.expose());
            form.append_pair("password", password.expose());
        }
        Zeroizing::new(form.finish())
    }
}

impl Tokens {
    /// Checks the settings. It does not request a token yet.
    pub fn new(settings: OAuth2, wire: Arc<Wire>) -> Result<Self, ServerError> {
        let refuse = |reason: &str| ServerError::setting(TOKEN_URL, reason);
        let url = Url::parse(settings.token_url.trim()).ok();
        let url = url.filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
        let url = url.ok_or_else(|| refuse("must be an http or https URL with a host"))?;
        if !url.username().is_empty() || url.password().is_some() || url.fragment().is_some() {
            return Err(refuse("must not contain a user, a password or a fragment"));
        }
        if let Grant::Password { username, password } = &settings.grant
            && (username.expose().is_empty() || password.expose().is_empty())
        {
            let reason = "grantType password needs username and password";
            return Err(ServerError::setting("http.auth.oauth2", reason));
        }
        let current = Current { flight: None, need: TokenNeed::First };
        Ok(Self { wire, endpoint: Arc::new(Endpoint { settings, url }), current: Mutex::new(current) })
    }

    /// Returns the current token, or requests a new one. Concurrent callers share one request. A failure is not kept,
    /// but rejected credentials are for a few seconds. The caller must not hold a slot of the gate.
    pub async fn token(&self, patience: Patience) -> Outcome {
        let flight = self.flight(patience);
        flight.await.0
    }

    /// Drops the token or failure, if there is one.
    pub fn drop_token(&self) {
        let mut current = self.current.lock();
        match current.flight.as_ref().and_then(Shared::peek) {
            Some((Ok(_), _)) => *current = Current { flight: None, need: TokenNeed::Dropped },
            Some((Err(_), _)) => current.flight = None,
            None => {}
        }
    }

    /// Returns the token that replaces `refused`, to which the server answered 401. Returns `None` if `refused` itself
    /// has replaced a rejected token shortly before.
    pub async fn replaced(
        &self,
        refused: &Arc<Token>,
        patience: Patience,
    ) -> Option<Result<Arc<Token>, ServerError>> {
        {
            let mut current = self.current.lock();
            if let Some((Ok(in_use), since)) = current.flight.as_ref().and_then(Shared::peek)
                && Arc::ptr_eq(refused, in_use)
            {
                if current.need == TokenNeed::Refused && since.elapsed() < REPLACEMENT_COUNTS {
                    return None;
                }
                *current = Current { flight: None, need: TokenNeed::Refused };
            }
        }
        Some(self.token(patience).await)
    }

    /// Returns the token that replaces `forbidden`, to which the server answered 403. Returns `None` if `forbidden`
    /// stays in use, because `renewal` was used before or because the endpoint does not return another token.
    pub async fn renewed(
        &self,
        forbidden: &Arc<Token>,
        renewal: &TokenRenewal,
        patience: Patience,
    ) -> Option<Arc<Token>> {
        let flight = self.renewing(forbidden, renewal, patience)?;
        flight.await.0.ok().filter(|token| !Arc::ptr_eq(token, forbidden))
    }

    fn renewing(&self, forbidden: &Arc<Token>, renewal: &TokenRenewal, patience: Patience) -> Option<Flight> {
        let mut current = self.current.lock();
        let outcome = current.flight.as_ref().and_then(Shared::peek);
        if !outcome.is_some_and(|(outcome, _)| outcome.as_ref().is_ok_and(|it| Arc::ptr_eq(it, forbidden))) {
            // Another request has replaced the token since, or is replacing it, so no additional request is needed.
            drop(current);
            return Some(self.flight(patience));
        }
        if !renewal.claim() {
            return None;
        }
        let asked = self.ask(TokenNeed::Forbidden, patience);
        let kept = Arc::clone(forbidden);
        let flight = async move {
            // The server accepted the old token for other requests, so it stays in use if there is no new one.
            let (outcome, ended) = asked.await;
            let outcome = outcome.or_else(|error| {
                tracing::debug!(%error, "no other access token; the last one stays in use");
                Ok(kept)
            });
            (outcome, ended)
        };
        let flight = flight.boxed().shared();
        *current = Current { flight: Some(flight.clone()), need: TokenNeed::Forbidden };
        Some(flight)
    }

    fn flight(&self, patience: Patience) -> Flight {
        let mut current = self.current.lock();
        if let Some(flight) = &current.flight {
            match flight.peek() {
                None => return flight.clone(),
                Some((Ok(token), _)) if token.is_fresh() => return flight.clone(),
                Some((Ok(_), _)) => current.need = TokenNeed::Expired,
                Some((Err(ServerError::Token { .. }), ended)) if ended.elapsed() < REFUSAL_COUNTS => {
                    return flight.clone();
                }
                Some((Err(_), _)) => {}
            }
        }
        let flight = self.ask(current.need, patience).boxed().shared();
        current.flight = Some(flight.clone());
        flight
    }

    /// Requests a token on a separate task, because a caller may be cancelled while the request holds a slot.
    fn ask(&self, need: TokenNeed, patience: Patience) -> impl Future<Output = (Outcome, Instant)> + use<> {
        let (wire, endpoint) = (Arc::clone(&self.wire), Arc::clone(&self.endpoint));
        let asking = async move {
            let outcome = endpoint.ask(&wire, patience).await;
            wire.observe(|observer| observer.token_asked(need, outcome.is_ok()));
            outcome
        };
        let asked = tokio::spawn(asking.in_current_span());
        let endpoint = Arc::clone(&self.endpoint);
        async move {
            // The process ends, or the task failed. This shows nothing about the credentials.
            let interrupted = |_| {
                let request = Request::new(Method::POST, endpoint.url.path());
                endpoint.failed(request.failed("the request was interrupted"))
            };
            let outcome = asked.await.unwrap_or_else(|error| Err(interrupted(error)));
            (outcome, Instant::now())
        }
    }
}

impl Endpoint {
    async fn ask(&self, wire: &Wire, patience: Patience) -> Outcome {
        let mut request = Request::new(Method::POST, self.url.path());
        request.accept = Some("application/json".into());
        request.body = Some(Body {
            media_type: "application/x-www-form-urlencoded".to_owned(),
            bytes: self.settings.form().as_bytes().to_vec().into(),
        });
        let call = Call {
            request: &request,
            target: &self.url,
            credentials: &[],
            conditions: &[],
            names: &[],
            purpose: Purpose::Token,
            patience,
            // Other requests may wait for the same token.
            cancelled: None,
        };
        // Lifetimes start before the request, so that a token never expires earlier than computed.
        let asked_at = Instant::now();
        let answer = wire.send(call).await.map_err(|error| self.failed(error))?;
        let token = self.read(&answer, asked_at)?;
        wire.redaction.learn(token.value.clone());
        Ok(Arc::new(token))
    }

    /// Returns an error with the endpoint's rejection, or the reason why the endpoint cannot answer now.
    fn failed(&self, error: ServerError) -> ServerError {
        let url = shown(&self.url);
        match error {
            ServerError::Status { status, excerpt, .. } if !is_passing(status) => {
                let status = status.as_u16();
                ServerError::Token { url, reason: format!("it answers with status {status}: {excerpt}") }
            }
            error => ServerError::TokenUnavailable { url, source: Box::new(error) },
        }
    }

    fn read(&self, answer: &Response, asked_at: Instant) -> Result<Token, ServerError> {
        // The error does not quote the answer, because it may contain a token in an unknown place.
        let refuse = |reason: &str| ServerError::Token { url: shown(&self.url), reason: reason.to_owned() };
        let document: Value =
            serde_json::from_slice(&answer.body).map_err(|_| refuse("its answer is not JSON"))?;
        let token = document.get("access_token").and_then(Value::as_str).map(str::trim);
        let token = token.filter(|token| !token.is_empty());
        let token = Zeroizing::new(token.ok_or_else(|| refuse("its answer has no access_token"))?.to_owned());
        let header =
            sensitive(&Zeroizing::new(format!("Bearer {}", *token)), "http.auth.oauth2", "the token");
        let header: HeaderValue =
            header.map_err(|_| refuse("its access_token cannot be sent in a header"))?;
        let lifetime = lifetime(document.get("expires_in"));
        Ok(Token {
            value: Secret::from((*token).clone()),
            header: (AUTHORIZATION, header),
            stale_at: asked_at + lifetime - MARGIN.min(lifetime / 2),
        })
    }
}

impl Token {
    fn is_fresh(&self) -> bool {
        Instant::now() < self.stale_at
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Token").finish_non_exhaustive()
    }
}

/// Whether the status says nothing about the credentials, so that a later request may succeed.
fn is_passing(status: StatusCode) -> bool {
    status.is_server_error() || matches!(status, StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS)
}

/// Parses `expires_in` in seconds, as a number or, contrary to RFC 6749 section 5.1, as a string.
fn lifetime(expires_in: Option<&Value>) -> Duration {
    let seconds = match expires_in {
        Some(Value::Number(number)) => number.as_f64(),
        Some(Value::String(text)) => text.trim().parse().ok(),
        _ => None,
    };
    let seconds = seconds.filter(|seconds: &f64| *seconds > 0.0);
    let lifetime = seconds.map(|seconds| Duration::try_from_secs_f64(seconds).unwrap_or(LONGEST_LIFETIME));
    lifetime.unwrap_or(DEFAULT_LIFETIME).min(LONGEST_LIFETIME)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    fn settings(grant: Grant) -> OAuth2 {
        let secret = |text: &str| Secret::from(text.to_owned());
        OAuth2 {
            token_url: "https://idp.test/token".to_owned(),
            grant,
            client_id: secret("app"),
            client_secret: secret("s&cret"),
            scope: Some("read write".to_owned()),
            audience: Some(" ".to_owned()),
        }
    }

    #[test]
    fn forms() {
        let own = settings(Grant::ClientCredentials).form();
        assert_eq!(
            *own,
            "grant_type=client_credentials&client_id=app&client_secret=s%26cret&scope=read+write"
        );
        let (username, password) = (Secret::from("u".to_owned()), Secret::from("p=1".to_owned()));
        let of_user = settings(Grant::Password { username, password }).form();
        assert_eq!(
            *of_user,
            "grant_type=password&client_id=app&client_secret=s%26cret&scope=read+write&username=u&password=p%3D1"
        );
    }

    #[rstest]
    #[case(json!(60), 60)]
    #[case(json!("120"), 120)]
    #[case(json!(" 90 "), 90)]
    #[case(json!(0), 3600)]
    #[case(json!(-5), 3600)]
    #[case(json!("soon"), 3600)]
    #[case(json!(null), 3600)]
    #[case(json!(1e300), 365 * 24 * 3600)]
    #[case(json!("NaN"), 3600)]
    fn lifetimes(#[case] expires_in: Value, #[case] seconds: u64) {
        assert_eq!(lifetime(Some(&expires_in)), Duration::from_secs(seconds));
        assert_eq!(lifetime(None), DEFAULT_LIFETIME);
    }

    #[rstest]
    #[case(400, false)]
    #[case(401, false)]
    #[case(403, false)]
    #[case(408, true)]
    #[case(429, true)]
    #[case(500, true)]
    #[case(503, true)]
    fn statuses_that_pass(#[case] status: u16, #[case] passing: bool) {
        assert_eq!(is_passing(StatusCode::from_u16(status).unwrap()), passing);
    }
}
