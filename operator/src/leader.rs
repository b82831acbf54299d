//! Leader election with a Lease, by the rules of client-go. A replica takes over a lease that has not changed for
//! its whole duration, measured on the replica's own clock. Replicas therefore need no synchronized clocks.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use kube::Api;
use kube::api::PostParams;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// The Lease that all replicas compete for.
pub const LEASE_NAME: &str = "declarest-operator.declarest.io";

/// The duration of a lease, the deadline for its holder to renew it, and the period of attempts to get or renew it.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    pub duration: Duration,
    pub renew_deadline: Duration,
    pub retry_period: Duration,
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
#[error("lost the lease {LEASE_NAME}: {0}")]
pub struct LeaseLost(String);

/// A replica that takes part in the election.
pub struct Candidate {
    leases: Api<Lease>,
    identity: String,
    timing: Timing,
    seen: Option<Sighting>,
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
    /// Another replica holds it, and may still be alive.
    Held,
}

impl Candidate {
    /// Creates a candidate. `identity` must differ between replicas and between runs of one replica.
    pub fn new(leases: Api<Lease>, identity: String, timing: Timing) -> Self {
        Self { leases, identity, timing, seen: None }
    }

    /// Waits until this replica holds the lease. Returns `false` if `stop` is cancelled first.
    pub async fn acquire(&mut self, stop: &CancellationToken) -> bool {
        tracing::info!(identity = %self.identity, "waiting for the lease {LEASE_NAME}");
        loop {
            let attempt = tokio::select! {
                () = stop.cancelled() => return false,
                attempt = self.attempt() => attempt,
            };
            match attempt {
                Ok(Standing::Ours) => {
                    tracing::info!(identity = %self.identity, "became leader");
                    return true;
                }
                Ok(_) => {}
                Err(error) => tracing::warn!(%error, "cannot take the lease {LEASE_NAME}"),
            }
            tokio::select! {
                () = stop.cancelled() => return false,
                () = tokio::time::sleep(self.timing.retry_period) => {}
            }
        }
    }

    /// Keeps the lease until `stop`.
    ///
    /// # Errors
    /// [`LeaseLost`] as soon as another replica holds it, or the renew deadline has passed.
    pub async fn hold(&mut self, stop: &CancellationToken) -> Result<(), LeaseLost> {
        let mut renewed = Instant::now();
        loop {
            tokio::select! {
                () = stop.cancelled() => return Ok(()),
                () = tokio::time::sleep(self.timing.retry_period) => {}
            }
            let deadline = renewed + self.timing.renew_deadline;
            match tokio::time::timeout_at(deadline, self.attempt()).await {
                Ok(Ok(Standing::Ours)) => renewed = Instant::now(),
                Ok(Ok(_)) => return Err(LeaseLost("another replica holds it".to_owned())),
                Ok(Err(error)) if Instant::now() >= deadline => return Err(LeaseLost(error.to_string())),
                Ok(Err(error)) => tracing::warn!(%error, "cannot renew the lease {LEASE_NAME}"),
                Err(_) => return Err(LeaseLost("no response within the renew deadline".to_owned())),
            }
        }
    }

    /// Releases the lease, so that another replica need not wait for its end.
    pub async fn release(&mut self) {
        let released = async {
            let Some(mut lease) = self.leases.get_opt(LEASE_NAME).await? else { return Ok(()) };
            let spec = lease.spec.get_or_insert_default();
            if spec.holder_identity.as_deref() != Some(&self.identity) {
                return Ok(());
            }
            spec.holder_identity = None;
            spec.lease_duration_seconds = Some(1);
            spec.renew_time = Some(MicroTime(Timestamp::now()));
            self.leases.replace(LEASE_NAME, &PostParams::default(), &lease).await.map(drop)
        };
        if let Err::<(), kube::Error>(error) = released.await {
            tracing::warn!(%error, "cannot release the lease {LEASE_NAME}");
        }
    }

    /// Reads the lease. If this replica may hold it, also writes it, guarded by its resourceVersion.
    async fn attempt(&mut self) -> Result<Standing, kube::Error> {
        let Some(mut lease) = self.leases.get_opt(LEASE_NAME).await? else {
            return self.create().await;
        };
        let spec = lease.spec.clone().unwrap_or_default();
        let standing = self.judge(&spec, Instant::now());
        if standing == Standing::Held {
            return Ok(standing);
        }
        let renewed = self.renewal(&spec, Timestamp::now());
        lease.spec = Some(renewed);
        match self.leases.replace(LEASE_NAME, &PostParams::default(), &lease).await {
            Ok(stored) => {
                self.saw(stored.spec.unwrap_or_default(), Instant::now());
                Ok(Standing::Ours)
            }
            // Another replica was faster. The next attempt reads the lease again.
            Err(error) if is_conflict(&error) && standing == Standing::Free => Ok(Standing::Held),
            Err(error) => Err(error),
        }
    }

    async fn create(&mut self) -> Result<Standing, kube::Error> {
        let lease = Lease {
            metadata: ObjectMeta { name: Some(LEASE_NAME.to_owned()), ..ObjectMeta::default() },
            spec: Some(self.renewal(&LeaseSpec::default(), Timestamp::now())),
        };
        match self.leases.create(&PostParams::default(), &lease).await {
            Ok(stored) => {
                self.saw(stored.spec.unwrap_or_default(), Instant::now());
                Ok(Standing::Ours)
            }
            Err(error) if is_conflict(&error) => Ok(Standing::Held),
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
        if now.duration_since(seen_at) >= duration { Standing::Free } else { Standing::Held }
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
    use std::sync::{Arc, Mutex};

    use super::*;

    /// An API server with one Lease that enforces resourceVersion. `down` makes it return 503.
    #[derive(Clone, Default)]
    struct LeaseServer {
        state: Arc<Mutex<(Option<Value>, u64, bool)>>,
    }

    impl LeaseServer {
        fn candidate(&self, identity: &str) -> Candidate {
            let server = self.clone();
            let service = tower::service_fn(move |request: Request<Body>| {
                let server = server.clone();
                async move {
                    let method = request.method().clone();
                    let body = request.into_body().collect_bytes().await.unwrap();
                    Ok::<_, std::convert::Infallible>(server.answer(&method, &body))
                }
            });
            let client = kube::Client::new(service, "system");
            let timing = Timing {
                duration: Duration::from_secs(15),
                renew_deadline: Duration::from_secs(10),
                retry_period: Duration::from_secs(2),
            };
            Candidate::new(Api::default_namespaced(client), identity.to_owned(), timing)
        }

        fn set_down(&self, down: bool) {
            self.state.lock().unwrap().2 = down;
        }

        fn holder(&self) -> Option<String> {
            let state = self.state.lock().unwrap();
            state.0.as_ref()?["spec"]["holderIdentity"].as_str().map(str::to_owned)
        }

        fn answer(&self, method: &http::Method, body: &[u8]) -> Response<Body> {
            let mut state = self.state.lock().unwrap();
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
        server.state.lock().unwrap().0.as_mut().unwrap()["spec"]["holderIdentity"] = json!("usurper");
        assert_eq!(holder.hold(&never()).await, Err(LeaseLost("another replica holds it".to_owned())));
    }
}
