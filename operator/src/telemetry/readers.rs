//! The users who may read the metrics. The API server decides: it reviews the token of a request, and the right of its
//! user to `get` the path, as it does for its own metrics.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec, UserInfo};
use kube::api::PostParams;
use kube::{Api, Client};
use parking_lot::Mutex;
use sha2::{Digest as _, Sha256};

use crate::access::{self, Right};
use crate::http_server::{HttpServer, bearer_token};
use crate::tls::{SelfSigned, TlsError};

/// The time for which a decision is used again. A scraper sends a request every few seconds.
const REUSE: Duration = Duration::from_mins(1);
/// The maximum number of decisions that are kept.
const KEPT: usize = 256;
/// The time limit of the two reviews of a token.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The longest token that is reviewed, in bytes.
const MAX_TOKEN: usize = 8 << 10;

/// Decides on requests for metrics.
pub struct Readers {
    client: Client,
    /// Decisions by the digest of the token and the path, with the time at which they end.
    decided: Mutex<HashMap<[u8; 32], (Decision, Instant)>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Decision {
    Allowed,
    /// The token is not valid.
    Unknown,
    /// The user of the token lacks the right.
    Forbidden,
}

impl Readers {
    /// Returns readers whose tokens are reviewed by requests of `client`.
    pub fn new(client: Client) -> Self {
        Self { client, decided: Mutex::default() }
    }

    /// Returns `server` with HTTPS, by a certificate of its own, and with a check of each request.
    pub fn guard(self, server: HttpServer) -> Result<HttpServer, TlsError> {
        let tls = SelfSigned::new(&["localhost"])?.acceptor;
        let router = server.router.layer(from_fn_with_state(Arc::new(self), check));
        Ok(HttpServer { router, tls: Some(tls), ..server })
    }

    async fn decide(&self, token: &str, path: &str) -> Result<Decision, kube::Error> {
        let key: [u8; 32] =
            Sha256::new().chain_update(token).chain_update([0]).chain_update(path).finalize().into();
        if let Some(decision) = self.earlier(&key) {
            return Ok(decision);
        }
        let decision = match self.user(token).await? {
            None => Decision::Unknown,
            Some(user) => {
                let allowed = access::is_allowed(&self.client, user, Right::GetPath(path)).await?;
                if allowed { Decision::Allowed } else { Decision::Forbidden }
            }
        };
        let mut decided = self.decided.lock();
        let now = Instant::now();
        decided.retain(|_, (_, end)| *end > now);
        // With this many tokens, most are not those of scrapers.
        if decided.len() < KEPT {
            decided.insert(key, (decision, now + REUSE));
        }
        Ok(decision)
    }

    fn earlier(&self, key: &[u8; 32]) -> Option<Decision> {
        let decided = self.decided.lock();
        decided.get(key).filter(|(_, end)| *end > Instant::now()).map(|(decision, _)| *decision)
    }

    /// Returns the user of a token; `None` if it is not valid.
    async fn user(&self, token: &str) -> Result<Option<UserInfo>, kube::Error> {
        let spec = TokenReviewSpec { token: Some(token.to_owned()), ..Default::default() };
        let review = TokenReview { spec, ..Default::default() };
        let reviews = Api::<TokenReview>::all(self.client.clone());
        let status = reviews.create(&PostParams::default(), &review).await?.status.unwrap_or_default();
        Ok(status.user.filter(|_| status.authenticated == Some(true)))
    }
}

/// Passes a request on if its token allows it.
async fn check(State(readers): State<Arc<Readers>>, request: Request, next: Next) -> Response {
    let token = bearer_token(request.headers()).map(str::trim);
    let Some(token) = token.filter(|token| !token.is_empty() && token.len() <= MAX_TOKEN) else {
        return (StatusCode::UNAUTHORIZED, "send a bearer token\n").into_response();
    };
    match tokio::time::timeout(TIMEOUT, readers.decide(token, request.uri().path())).await {
        Ok(Ok(Decision::Allowed)) => next.run(request).await,
        Ok(Ok(Decision::Unknown)) => (StatusCode::UNAUTHORIZED, "the token is not valid\n").into_response(),
        Ok(Ok(Decision::Forbidden)) => {
            (StatusCode::FORBIDDEN, "the user may not get this path\n").into_response()
        }
        Ok(Err(error)) => {
            tracing::warn!(%error, "cannot review the token of a request for metrics; see the overlay secure-metrics");
            unavailable()
        }
        Err(_) => {
            tracing::warn!("the API server did not review the token of a request for metrics in time");
            unavailable()
        }
    }
}

fn unavailable() -> Response {
    (StatusCode::SERVICE_UNAVAILABLE, "the token cannot be reviewed\n").into_response()
}
