//! The login of a store. All calls share it; it is renewed, and repeated when Vault rejects its token.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, StatusCode};
use tokio::sync::Mutex;
use tokio::time::Instant;
use vaultrs::api::auth::approle::requests::LoginWithApproleRequest;
use vaultrs::api::auth::userpass::requests::LoginRequest;
use vaultrs::api::token::requests::{LookupTokenSelfRequest, RenewTokenSelfRequest};
use zeroize::Zeroizing;

use super::answer::{Answer, Granted, LoginAnswer, silence};
use super::call::{Call, Line};
use super::settings::{credential, plain_path, refuse};
use super::{VaultAuth, VaultError, VaultSettings};
use crate::secrets::Secret;

/// The time for which a failed login counts for all calls. Otherwise each call of a run would log in by itself, one
/// after the other: Vault locks users out after repeated refusals, and a Vault that does not answer delays each login
/// by its whole time limit. Shorter than the pause between two checks of a store, so that each check asks Vault.
const FAILURE_COUNTS: Duration = Duration::from_secs(3);

/// A Vault server and the login to it.
pub(super) struct Sessions {
    line: Line,
    auth: VaultAuth,
    login: Login,
    lookup: Call,
    renewal: Call,
    /// Held during a login, so that concurrent callers wait for one login.
    current: Mutex<Current>,
}

/// The outcome of the last login.
#[derive(Default)]
struct Current {
    session: Option<Arc<Session>>,
    /// The failure since then, and the time of its end.
    failed: Option<(VaultError, Instant)>,
}

/// The way to obtain a token.
enum Login {
    Given(Arc<Session>),
    Request(Box<Call>),
}

/// A token in use.
struct Session {
    token: HeaderValue,
    /// The time to renew the token, if it can be renewed.
    renew_at: Option<Instant>,
    /// Whether a call was denied with this token and with the token before it.
    denied: Arc<AtomicBool>,
}

impl Session {
    fn new(token: &str, renew_at: Option<Instant>) -> Option<Self> {
        // Zeroed after the last request with it.
        let bytes = Bytes::from_owner(Zeroizing::new(token.as_bytes().to_vec()));
        let mut token = HeaderValue::from_maybe_shared(bytes).ok()?;
        token.set_sensitive(true);
        Some(Self { token, renew_at, denied: Arc::default() })
    }
}

impl Current {
    /// Returns the failure of the last login as long as it counts.
    fn check(&self) -> Result<(), VaultError> {
        match &self.failed {
            Some((error, ended)) if ended.elapsed() < FAILURE_COUNTS => Err(error.clone()),
            _ => Ok(()),
        }
    }

    /// Keeps the outcome of a login.
    fn keep(&mut self, outcome: Result<Arc<Session>, VaultError>) -> Result<Arc<Session>, VaultError> {
        match &outcome {
            Ok(session) => *self = Self { session: Some(Arc::clone(session)), failed: None },
            Err(error) => self.failed = Some((error.clone(), Instant::now())),
        }
        outcome
    }
}

impl Login {
    fn new(auth: &VaultAuth) -> Result<Self, VaultError> {
        match auth {
            VaultAuth::Token(token) => {
                let session = Session::new(credential("auth.token", token)?, None);
                let session = session.ok_or_else(|| {
                    refuse("auth.token", "contains characters that a header cannot carry".to_owned())
                })?;
                Ok(Self::Given(Arc::new(session)))
            }
            VaultAuth::Userpass { mount, username, password } => {
                let username = username.trim();
                if username.is_empty() || username.contains('/') || matches!(username, "." | "..") {
                    let reason = format!("the user name {username:?} is empty or not a plain name");
                    return Err(refuse("auth.userpass", reason));
                }
                let password = credential("auth.userpass", password)?;
                let mount = plain_path("auth.userpass.mount", mount)?;
                let (username, password) = (username.to_owned(), password.to_owned());
                Ok(Self::Request(Call::login(&LoginRequest { mount, username, password })?.into()))
            }
            VaultAuth::AppRole { mount, role_id, secret_id } => {
                let role_id = credential("auth.appRole.roleID", role_id)?.to_owned();
                let secret_id = credential("auth.appRole.secretID", secret_id)?.to_owned();
                let mount = plain_path("auth.appRole.mount", mount)?;
                Ok(Self::Request(Call::login(&LoginWithApproleRequest { mount, role_id, secret_id })?.into()))
            }
        }
    }
}

impl Sessions {
    pub(super) fn new(settings: VaultSettings) -> Result<Self, VaultError> {
        let line = Line::new(&settings)?;
        let login = Login::new(&settings.auth)?;
        let lookup = Call::new(&LookupTokenSelfRequest {}, "look up the token", "read")?;
        let renewal = Call::new(&RenewTokenSelfRequest { increment: None }, "renew the token", "update")?;
        Ok(Self { line, auth: settings.auth, login, lookup, renewal, current: Mutex::default() })
    }

    /// Sends a call. A denial may mean that the token is no longer valid or that its policies have changed, so the
    /// call is repeated once after a new login.
    pub(super) async fn call(&self, call: &Call) -> Result<Answer, VaultError> {
        let session = self.session().await?;
        let denied = match self.line.send(call, Some(&session.token)).await {
            Err(error @ VaultError::Denied { .. }) => error,
            outcome => return outcome,
        };
        let Some(fresh) = self.replacement(&session).await? else { return Err(self.explained(denied)) };
        let outcome = self.line.send(call, Some(&fresh.token)).await;
        if matches!(outcome, Err(VaultError::Denied { .. })) {
            fresh.denied.store(true, Ordering::Relaxed);
        }
        outcome
    }

    /// Returns the error of a call with a token that cannot be replaced. No policy helps if the token itself is not valid.
    fn explained(&self, denied: VaultError) -> VaultError {
        match denied {
            VaultError::Denied { reason, .. }
                if matches!(self.login, Login::Given(_)) && reason.contains("invalid token") =>
            {
                self.refused(&format!("the token is not valid, and may have expired; replace it: {reason}"))
            }
            denied => denied,
        }
    }

    /// Looks up the current token.
    pub(super) async fn lookup_self(&self) -> Result<Answer, VaultError> {
        self.call(&self.lookup).await.map_err(|error| match error {
            VaultError::Denied { reason, path, .. } => self.refused(&format!(
                "the token is not valid, or its policies do not grant read on {path}: {reason}"
            )),
            error => error,
        })
    }

    /// Returns the session for the next call.
    async fn session(&self) -> Result<Arc<Session>, VaultError> {
        let mut current = self.current.lock().await;
        let due = |session: &Session| session.renew_at.is_some_and(|at| Instant::now() >= at);
        if let Some(session) = current.session.as_ref().filter(|session| !due(session)) {
            return Ok(Arc::clone(session));
        }
        current.check()?;
        if let Some(session) = &current.session {
            match self.renew(session).await {
                Ok(renewed) => return current.keep(Ok(renewed)),
                Err(error) => tracing::debug!(%error, "the token is not renewed; logging in again"),
            }
        }
        current.keep(self.log_in().await)
    }

    /// Returns another session than `stale`; `None` if there is none, or if a new one would be denied as well.
    async fn replacement(&self, stale: &Session) -> Result<Option<Arc<Session>>, VaultError> {
        if matches!(self.login, Login::Given(_)) {
            return Ok(None);
        }
        let mut current = self.current.lock().await;
        if let Some(session) = current.session.as_ref().filter(|session| session.token != stale.token) {
            return Ok(Some(Arc::clone(session)));
        }
        current.check()?;
        // The previous new login did not help. While Vault still accepts its token, another login would not help
        // either, and a run over many denied secrets would create as many tokens.
        let known = async || self.line.send(&self.lookup, Some(&stale.token)).await.is_ok();
        if stale.denied.load(Ordering::Relaxed) && known().await {
            return Ok(None);
        }
        current.keep(self.log_in().await).map(Some)
    }

    async fn log_in(&self) -> Result<Arc<Session>, VaultError> {
        let call = match &self.login {
            Login::Given(session) => return Ok(Arc::clone(session)),
            Login::Request(call) => call,
        };
        let answer = self.line.send(call, None).await.map_err(|error| match error {
            VaultError::Denied { reason, .. } => self.refused(&reason),
            // Vault rejects wrong credentials with 400 and a reason. Other servers answer 400 without a reason in its
            // format.
            VaultError::Status { status, reason, .. }
                if status == StatusCode::BAD_REQUEST && reason != silence(status) =>
            {
                self.refused(&reason)
            }
            error => error,
        })?;
        let granted = answer.json::<LoginAnswer>()?.auth;
        let session =
            granted.as_ref().and_then(|granted| Self::granted(granted, granted.client_token.as_ref()?));
        session.ok_or_else(|| self.refused("it returned no token; a second factor is not supported"))
    }

    async fn renew(&self, session: &Session) -> Result<Arc<Session>, VaultError> {
        let answer = self.line.send(&self.renewal, Some(&session.token)).await?;
        let renewed = answer.json::<LoginAnswer>()?.auth;
        let renewed = renewed.map(|granted| {
            let session = Session {
                token: session.token.clone(),
                renew_at: renew_at(&granted),
                denied: Arc::clone(&session.denied),
            };
            Arc::new(session)
        });
        renewed.ok_or_else(|| self.refused("its answer does not state how long the renewed token is valid"))
    }

    fn granted(granted: &Granted, token: &Secret) -> Option<Arc<Session>> {
        Session::new(token.expose(), renew_at(granted)).map(Arc::new)
    }

    fn refused(&self, reason: &str) -> VaultError {
        let (address, method) = (self.line.address.to_string(), self.auth.name());
        VaultError::Login { address, method, reason: reason.to_owned() }
    }
}

/// Returns the time after two thirds of the token's life; `None` if the token cannot be renewed or does not expire.
fn renew_at(granted: &Granted) -> Option<Instant> {
    let life = Duration::from_secs(granted.lease_duration);
    let renews = granted.renewable && !life.is_zero();
    Instant::now().checked_add(life / 3 * 2).filter(|_| renews)
}
