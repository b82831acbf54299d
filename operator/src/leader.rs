//! Leader election with a Lease, by the rules of client-go. A replica takes over a lease that has not changed for
//! its whole duration, measured on the replica's own clock. Replicas therefore need no synchronized clocks.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use kube::Api;
use kube::api::PostParams;
use parking_lot::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Returns the name of the Lease that the replicas of a shard compete for; `None` is the operator of all namespaces.
pub fn lease_name(shard: Option<&str>) -> String {
    match shard {
        None => "declarest-operator.declarest.io".to_owned(),
        Some(shard) => format!("declarest-operator-{shard}.declarest.io"),
    }
}

/// The duration of a lease, the deadline for its holder to renew it, and the period of attempts to get or renew it.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    pub duration: Duration,
    pub renew_deadline: Duration,
    pub retry_period: Duration,
}

/// The time that the release of the lease has at shutdown.
const RELEASE: Duration = Duration::from_secs(3);

impl Timing {
    /// Returns the limit of one attempt. It is below the retry period, so that an attempt that hangs does not delay the
    /// next one.
    fn attempt(&self) -> Duration {
        self.retry_period * 3 / 4
    }
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry_period: Duration::from_secs(2),
        }
    }
}

/// The lease could not be renewed in time, or another replica holds it. The work must stop at once.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("lost the lease {lease}: {cause}")]
pub struct LeaseLost {
    lease: String,
    cause: String,
}

/// An attempt to get or renew the lease that failed.
#[derive(Debug, thiserror::Error)]
enum AttemptError {
    #[error(transparent)]
    Api(#[from] kube::Error),
    #[error("no response within {} ms", .0.as_millis())]
    TimedOut(Duration),
}

/// Whether this replica may act as the leader now. Clones share the answer.
///
/// A process that was suspended may run again before it learns that another replica leads. So the answer depends on
/// the time of the last renewal, and becomes false at the renew deadline, before another replica can take the lease.
#[derive(Clone, Debug, Default)]
pub struct Leadership(Option<Arc<Mutex<Option<Instant>>>>);

impl Leadership {
    /// Returns true without an election.
    pub fn is_held(&self) -> bool {
        let Some(until) = &self.0 else { return true };
        let until = *until.lock();
        until.is_some_and(|until| Instant::now() < until)
    }

    fn set(&self, to: Option<Instant>) {
        if let Some(until) = &self.0 {
            *until.lock() = to;
        }
    }
}

/// A replica that takes part in the election.
pub struct Candidate {
    leadership: Leadership,
    leases: Api<Lease>,
    name: String,
    identity: String,
    timing: Timing,
    seen: Option<Sighting>,
    /// The start of the last attempt that got or renewed the lease.
    renewed: Instant,
}

/// A state of the lease and when it was first seen.
#[derive(Clone, Debug)]
struct Sighting {
    spec: LeaseSpec,
    at: Instant,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    /// The lease is not held, or it has expired.
    Free,
    /// This replica holds it.
    Ours,
    /// Another replica holds it, and may be alive until this time.
    Held(Instant),
}

impl Candidate {
    /// Creates a candidate for the lease `name`. `identity` must differ between replicas and between runs of one replica.
    pub fn new(leases: Api<Lease>, name: String, identity: String, timing: Timing) -> Self {
        let leadership = Leadership(Some(Arc::default()));
        Self { leadership, leases, name, identity, timing, seen: None, renewed: Instant::now() }
    }

    /// Returns the leadership of this replica.
    pub fn leadership(&self) -> Leadership {
        self.leadership.clone()
    }

    fn lost(&self, cause: impl Into<String>) -> LeaseLost {
        LeaseLost { lease: self.name.clone(), cause: cause.into() }
    }

    /// Waits until this replica holds the lease. Returns `false` if `stop` is cancelled first.
    pub async fn acquire(&mut self, stop: &CancellationToken) -> bool {
        tracing::info!(identity = %self.identity, "waiting for the lease {}", self.name);
        loop {
            let attempt = tokio::select! {
                () = stop.cancelled() => return false,
                attempt = self.attempt() => attempt,
            };
            let mut next = Instant::now() + self.timing.retry_period;
            match attempt {
                Ok(Standing::Ours) => {
                    tracing::info!(identity = %self.identity, "became leader");
                    return true;
                }
                Ok(Standing::Held(until)) => next = next.min(until),
                Ok(Standing::Free) => {}
                Err(error) => tracing::warn!(%error, "cannot take the lease {}", self.name),
            }
            tokio::select! {
                () = stop.cancelled() => return false,
                () = tokio::time::sleep_until(next) => {}
            }
        }
    }

    /// Keeps the lease until `stop`.
    ///
    /// # Errors
    /// [`LeaseLost`] as soon as another replica holds it, or the renew deadline has passed.
    pub async fn hold(&mut self, stop: &CancellationToken) -> Result<(), LeaseLost> {
        loop {
            tokio::select! {
                () = stop.cancelled() => return Ok(()),
                () = tokio::time::sleep(self.timing.retry_period) => {}
            }
            let deadline = self.renewed + self.timing.renew_deadline;
            // The process may have been suspended.
            if Instant::now() >= deadline {
                return Err(self.lost("it was not renewed within the renew deadline"));
            }
            match tokio::time::timeout_at(deadline, self.attempt()).await {
                Ok(Ok(Standing::Ours)) => {}
                Ok(Ok(_)) => return Err(self.lost("another replica holds it")),
                Ok(Err(error)) if Instant::now() >= deadline => return Err(self.lost(error.to_string())),
                Ok(Err(error)) => tracing::warn!(%error, "cannot renew the lease {}", self.name),
                Err(_) => return Err(self.lost("no response within the renew deadline")),
            }
        }
    }

    /// Releases the lease if this replica holds it, so that another one need not wait for its end. Takes at most 3 s.
    pub async fn release(&mut self) {
        self.leadership.set(None);
        let released = async {
            let Some(mut lease) = self.leases.get_opt(&self.name).await? else { return Ok(()) };
            let spec = lease.spec.get_or_insert_default();
            if spec.holder_identity.as_deref() != Some(&self.identity) {
                return Ok(());
            }
            spec.holder_identity = None;
            spec.lease_duration_seconds = Some(1);
            spec.renew_time = Some(MicroTime(Timestamp::now()));
            self.leases.replace(&self.name, &PostParams::default(), &lease).await.map(drop)?;
            Ok::<(), AttemptError>(())
        };
        let released = tokio::time::timeout(RELEASE, released).await;
        let released = released.unwrap_or(Err(AttemptError::TimedOut(RELEASE)));
        if let Err(error) = released {
            tracing::warn!(%error, "cannot release the lease {}", self.name);
        }
    }

    /// Tries to get or renew the lease.
    async fn attempt(&mut self) -> Result<Standing, AttemptError> {
        let (started, limit) = (Instant::now(), self.timing.attempt());
        let standing = tokio::time::timeout(limit, self.take()).await;
        let standing = standing.map_err(|_| AttemptError::TimedOut(limit))??;
        // Other replicas measure from a later time.
        let held = standing == Standing::Ours;
        if held {
            self.renewed = started;
        }
        self.leadership.set(held.then(|| started + self.timing.renew_deadline));
        Ok(standing)
    }

    /// Reads the lease. If this replica may hold it, also writes it, guarded by its resourceVersion.
    async fn take(&mut self) -> Result<Standing, kube::Error> {
        let Some(mut lease) = self.leases.get_opt(&self.name).await? else {
            return self.create().await;
        };
        let spec = lease.spec.clone().unwrap_or_default();
        let standing = self.judge(&spec, Instant::now());
        if matches!(standing, Standing::Held(_)) {
            return Ok(standing);
        }
        let renewed = self.renewal(&spec, Timestamp::now());
        lease.spec = Some(renewed);
        match self.leases.replace(&self.name, &PostParams::default(), &lease).await {
            Ok(stored) => {
                self.saw(stored.spec.unwrap_or_default(), Instant::now());
                Ok(Standing::Ours)
            }
            // Another replica was faster. The next attempt reads the lease again.
            Err(error) if is_conflict(&error) && standing == Standing::Free => Ok(self.held_again()),
            Err(error) => Err(error),
        }
    }

    async fn create(&mut self) -> Result<Standing, kube::Error> {
        let lease = Lease {
            metadata: ObjectMeta { name: Some(self.name.clone()), ..ObjectMeta::default() },
            spec: Some(self.renewal(&LeaseSpec::default(), Timestamp::now())),
        };
        match self.leases.create(&PostParams::default(), &lease).await {
            Ok(stored) => {
                self.saw(stored.spec.unwrap_or_default(), Instant::now());
                Ok(Standing::Ours)
            }
            Err(error) if is_conflict(&error) => Ok(self.held_again()),
            Err(error) => Err(error),
        }
    }

    fn judge(&mut self, spec: &LeaseSpec, now: Instant) -> Standing {
        let seen_at = self.saw(spec.clone(), now);
        let holder = spec.holder_identity.as_deref().unwrap_or_default();
        if holder.is_empty() {
            return Standing::Free;
        }
        if holder == self.identity {
            return Standing::Ours;
        }
        let duration = spec
            .lease_duration_seconds
            .and_then(|seconds| u64::try_from(seconds).ok())
            .map_or(self.timing.duration, Duration::from_secs);
        let until = seen_at + duration;
        if now >= until { Standing::Free } else { Standing::Held(until) }
    }

    /// Returns the standing after another replica got the lease.
    fn held_again(&self) -> Standing {
        Standing::Held(Instant::now() + self.timing.duration)
    }

    /// Records a state of the lease. Returns when this state was first seen.
    fn saw(&mut self, spec: LeaseSpec, now: Instant) -> Instant {
        match &self.seen {
            Some(sighting) if sighting.spec == spec => sighting.at,
            _ => {
                self.seen = Some(Sighting { spec, at: now });
                now
            }
        }
    }

    fn renewal(&self, current: &LeaseSpec, now: Timestamp) -> LeaseSpec {
        let ours = current.holder_identity.as_deref() == Some(&self.identity);
        let transitions = current.lease_transitions.unwrap_or(0);
        LeaseSpec {
            holder_identity: Some(self.identity.clone()),
            lease_duration_seconds: i32::try_from(self.timing.duration.as_secs()).ok(),
            acquire_time: if ours { current.acquire_time.clone() } else { Some(MicroTime(now)) },
            renew_time: Some(MicroTime(now)),
            lease_transitions: Some(if ours { transitions } else { transitions.saturating_add(1) }),
            ..LeaseSpec::default()
        }
    }
}

fn is_conflict(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 409)
}

/// Returns a name that is unique to this run of this replica: the pod's name with a suffix.
pub fn identity() -> String {
    let host = std::env::var("HOSTNAME").ok().filter(|host| !host.is_empty());
    format!("{}_{:016x}", host.as_deref().unwrap_or("declarest-operator"), fastrand::u64(..))
}

#[cfg(test)]
mod tests {
    use http::{Request, Response, StatusCode};
    use kube::client::Body;
    use serde_json::{Value, json};
    use std::sync::Arc;

    use super::*;

    /// An API server with one Lease that enforces resourceVersion. `down` makes it return 503.
    #[derive(Clone, Default)]
    struct LeaseServer {
        state: Arc<Mutex<(Option<Value>, u64, bool)>>,
        /// How many of the next requests are not answered.
        silent: Arc<Mutex<u32>>,
    }

    impl LeaseServer {
        fn candidate(&self, identity: &str) -> Candidate {
            let server = self.clone();
            let service = tower::service_fn(move |request: Request<Body>| {
                let server = server.clone();
                async move {
                    let method = request.method().clone();
                    let body = request.into_body().collect_bytes().await.unwrap();
                    let silent = {
                        let mut left = server.silent.lock();
                        *left = left.saturating_sub(1);
                        *left > 0
                    };
                    if silent {
                        std::future::pending::<()>().await;
                    }
                    Ok::<_, std::convert::Infallible>(server.answer(&method, &body))
                }
            });
            let client = kube::Client::new(service, "system");
            let timing = Timing {
                duration: Duration::from_secs(15),
                renew_deadline: Duration::from_secs(10),
                retry_period: Duration::from_secs(2),
            };
            Candidate::new(Api::default_namespaced(client), lease_name(None), identity.to_owned(), timing)
        }

        fn set_down(&self, down: bool) {
            self.state.lock().2 = down;
        }

        fn holder(&self) -> Option<String> {
            let state = self.state.lock();
            state.0.as_ref()?["spec"]["holderIdentity"].as_str().map(str::to_owned)
        }

        fn answer(&self, method: &http::Method, body: &[u8]) -> Response<Body> {
            let mut state = self.state.lock();
            let (lease, version, down) = &mut *state;
            if *down {
                return failure(StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable");
            }
            if method == http::Method::GET {
                return match lease {
                    Some(lease) => reply(StatusCode::OK, lease),
                    None => failure(StatusCode::NOT_FOUND, "NotFound"),
                };
            }
            let mut sent: Value = serde_json::from_slice(body).unwrap();
            let current = lease.as_ref().map(|lease| lease["metadata"]["resourceVersion"].clone());
            if current.is_some_and(|current| current != sent["metadata"]["resourceVersion"]) {
                return failure(StatusCode::CONFLICT, "Conflict");
            }
            *version += 1;
            sent["metadata"]["resourceVersion"] = json!(version.to_string());
            *lease = Some(sent.clone());
            reply(StatusCode::OK, &sent)
        }
    }

    fn reply(code: StatusCode, body: &Value) -> Response<Body> {
        Response::builder().status(code).body(Body::from(body.to_string().into_bytes())).unwrap()
    }

    fn failure(code: StatusCode, reason: &str) -> Response<Body> {
        let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code.as_u16(),
                            "reason": reason, "message": reason});
        reply(code, &status)
    }

    fn never() -> CancellationToken {
        CancellationToken::new()
    }

    #[tokio::test(start_paused = true)]
    async fn the_second_candidate_waits_until_the_first_releases() {
        let server = LeaseServer::default();
        let mut first = server.candidate("first");
        let mut second = server.candidate("second");
        assert!(first.acquire(&never()).await);

        let stop = never();
        let waiting = tokio::spawn({
            let stop = stop.clone();
            async move {
                let acquired = second.acquire(&stop).await;
                (second, acquired)
            }
        });
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert_eq!(server.holder().as_deref(), Some("first"));
        first.release().await;
        let (_, acquired) = waiting.await.unwrap();
        assert!(acquired);
        assert_eq!(server.holder().as_deref(), Some("second"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_lease_that_is_not_renewed_is_taken_after_its_duration() {
        let server = LeaseServer::default();
        assert!(server.candidate("dead").acquire(&never()).await);
        let started = Instant::now();
        assert!(server.candidate("heir").acquire(&never()).await);
        assert!(started.elapsed() >= Duration::from_secs(15), "{:?}", started.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn a_holder_that_cannot_renew_loses_the_lease_before_others_take_it() {
        let server = LeaseServer::default();
        let mut holder = server.candidate("holder");
        assert!(holder.acquire(&never()).await);
        server.set_down(true);
        let started = Instant::now();
        holder.hold(&never()).await.unwrap_err();
        assert!(started.elapsed() < Duration::from_secs(15), "{:?}", started.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn an_outage_shorter_than_the_deadline_is_survived() {
        let server = LeaseServer::default();
        let mut holder = server.candidate("holder");
        assert!(holder.acquire(&never()).await);
        let stop = never();
        let holding = tokio::spawn({
            let stop = stop.clone();
            async move { holder.hold(&stop).await }
        });
        server.set_down(true);
        tokio::time::sleep(Duration::from_secs(7)).await;
        server.set_down(false);
        tokio::time::sleep(Duration::from_secs(30)).await;
        stop.cancel();
        assert_eq!(holding.await.unwrap(), Ok(()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_holder_whose_lease_was_taken_stops() {
        let server = LeaseServer::default();
        let mut holder = server.candidate("holder");
        assert!(holder.acquire(&never()).await);
        server.state.lock().0.as_mut().unwrap()["spec"]["holderIdentity"] = json!("usurper");
        let lost = holder.hold(&never()).await.unwrap_err();
        assert_eq!(
            lost.to_string(),
            "lost the lease declarest-operator.declarest.io: another replica holds it"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn an_attempt_that_hangs_does_not_delay_the_next_ones() {
        let server = LeaseServer::default();
        let mut holder = server.candidate("holder");
        assert!(holder.acquire(&never()).await);
        // The first of them is silent no more.
        *server.silent.lock() = 3;
        let (stop, started) = (never(), Instant::now());
        let leadership = holder.leadership();
        let holding = tokio::spawn({
            let stop = stop.clone();
            async move { holder.hold(&stop).await }
        });
        while *server.silent.lock() > 0 {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        assert!(started.elapsed() < Duration::from_secs(15), "{:?}", started.elapsed());
        tokio::time::sleep(Duration::from_secs(30)).await;
        assert!(leadership.is_held());
        stop.cancel();
        assert_eq!(holding.await.unwrap(), Ok(()));
    }

    #[tokio::test(start_paused = true)]
    async fn leadership_ends_at_the_renew_deadline_although_nothing_notices() {
        let server = LeaseServer::default();
        let mut suspended = server.candidate("suspended");
        let leadership = suspended.leadership();
        assert!(!leadership.is_held());
        assert!(suspended.acquire(&never()).await);
        assert!(leadership.is_held());
        tokio::time::sleep(Duration::from_secs(10)).await;
        assert!(!leadership.is_held());
        assert!(Leadership::default().is_held());
    }

    #[tokio::test(start_paused = true)]
    async fn a_holder_that_was_suspended_does_not_renew() {
        let server = LeaseServer::default();
        let mut suspended = server.candidate("suspended");
        assert!(suspended.acquire(&never()).await);
        let stop = never();
        let mut holding = Box::pin(suspended.hold(&stop));
        assert!(futures::poll!(&mut holding).is_pending());
        tokio::time::advance(Duration::from_secs(12)).await;
        let lost = holding.await.unwrap_err().to_string();
        assert!(lost.ends_with(": it was not renewed within the renew deadline"), "{lost}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_release_that_is_not_answered_ends_in_time() {
        let server = LeaseServer::default();
        let mut holder = server.candidate("holder");
        assert!(holder.acquire(&never()).await);
        *server.silent.lock() = u32::MAX;
        let started = Instant::now();
        holder.release().await;
        assert_eq!(started.elapsed(), RELEASE);
    }
}
