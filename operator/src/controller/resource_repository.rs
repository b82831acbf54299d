//! ResourceRepository: mirrors a branch, polls it and publishes its current revision.

use std::collections::HashSet;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use declarest_core::error::{Categorized as _, Category};
use declarest_core::repository::{
    Deadline, Mirror, Remote, RemoteAuth, RemoteUrl, RepositoryError, Revision,
};
use declarest_core::spans;
use futures::stream;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::{Resource as _, ResourceExt as _};
use tokio_util::sync::CancellationToken;

use super::backoff;
use super::cache::Cache;
use super::conditions;
use super::connections;
use super::context::{Context, Guarded};
use super::error::{Failure, blocking};
use super::frame::{self, Reconciler, Round};
use super::kind::{self, Key, Kind as _};
use super::mirrors::Place;
use super::outcome::{Notice, Outcome, Reason};
use super::outdated::outdated;
use super::pools::Pools;
use super::references::SecretReader;
use super::volumes;
use crate::crd::resource_repository::{GitAuth, GitSource, WebhookStatus};
use crate::crd::{ResourceRepository, ResourceRepositoryStatus, SyncPolicy};
use crate::directories;

/// The annotation with the time of the last delivery (RFC 3339). The receiver of webhooks sets it.
pub const RECEIVED_AT: &str = "declarest.io/webhook-last-received-at";

/// The annotation with the Git host's id of that delivery.
pub const DELIVERY_ID: &str = "declarest.io/webhook-last-event-id";

/// Maximum duration of a fetch.
const FETCH_LIMIT: Duration = Duration::from_mins(5);

/// The duration from which the status shows the first fetch of a spec.
const LONG: Duration = Duration::from_secs(2);

/// Runs the controller until `context.stop` is cancelled.
pub async fn run(context: Arc<Context>, pools: Arc<Pools>) {
    let wakeups = stream::select(context.dependents::<ResourceRepository>(), pools.mirrors.suspects());
    let objects = context.caches.repositories.clone();
    frame::run(ResourceRepositories(pools), context, &objects, wakeups).await;
}

struct ResourceRepositories(Arc<Pools>);

impl Reconciler for ResourceRepositories {
    type Kind = ResourceRepository;

    const ANNOTATIONS: &'static [&'static str] = &[RECEIVED_AT];

    async fn reconcile(&self, round: &mut Round<'_, ResourceRepository>) -> Outcome {
        let done = work(round, &self.0).await;
        done.unwrap_or_else(|failure| {
            // A poll that failed before its fetch.
            round.context.metrics.polled(round.key().subject(), false);
            failure.into()
        })
    }

    async fn cleanup(&self, context: &Context, object: &Guarded<ResourceRepository>) -> Result<(), Failure> {
        let key = Key::of(object.meta());
        let opened = self.0.mirrors.close(&key);
        let state = context.directories.repository(&ResourceRepository::owner(&key));
        blocking(move || remove_mirrors(opened, &state)).await
    }

    fn forget(&self, _: &Context, key: &Key) {
        self.0.mirrors.forget(key);
    }
}

/// Removes the open mirror and the one in the state directory. A claim may hold other data, so a mirror on it is
/// removed only if it was open.
fn remove_mirrors(opened: Option<(Place, Mirror)>, state: &Path) -> Result<(), Failure> {
    let mut directories = vec![state.to_owned()];
    if let Some((place, mirror)) = opened {
        // A policy still uses a pinned revision. The directory is removed at the next start of the operator.
        if mirror.pins().is_ok_and(|pins| !pins.is_empty()) {
            return Ok(());
        }
        directories.push(place.directory);
    }
    directories
        .iter()
        .try_for_each(|directory| Mirror::remove(directory).map_err(|error| Failure::internal(&error)))
}

/// Does one round: storage, credentials, fetch.
async fn work(round: &mut Round<'_, ResourceRepository>, pools: &Arc<Pools>) -> Result<Outcome, Failure> {
    let (context, object) = (round.context, round.object.clone());
    let Some(git) = &object.spec.git else {
        return Err(Failure::spec_invalid("spec.git: is required for type git"));
    };
    show_webhook_path(&object, git, &mut round.status);
    // Read the credentials and open the mirror.
    let remote = remote(context, &object, git).await?;
    let (mirror, note) = open_mirror(context, pools, &object, &remote.url, &mut round.status).await?;
    // Fetch if it is due. The Secret of the webhook is read at the same time.
    let interval = object.interval().unwrap_or_default();
    let mut outcome = Outcome::ready("");
    let held = held(&object, &mirror).await?;
    if held.is_some() {
        // Policies can use the last revision, even if the fetch fails.
        pools.mirrors.set_current(&object.key());
    }
    let wait = if held == Some(Held::Tip) { wait(&object, interval) } else { Duration::ZERO };
    let unusable = webhook_problem(context, &object, git);
    let left = context.namespaces.left(&object.key().namespace);
    let unusable = if wait.is_zero() {
        let (begun, since) = (Timestamp::now(), Instant::now());
        let action = format!("fetching branch {} of {}", git.branch, remote.url);
        let fetched = async { tokio::join!(fetch(context, &object, &mirror, remote, left), unusable) };
        let (fetched, unusable) = announced(round, Box::pin(fetched), action).await;
        // A cancelled fetch has not failed. The status stays as it was, so the next round or operator fetches.
        let fetched = match fetched {
            Ok(fetched) => fetched,
            Err(cause) => return Ok(Outcome::new(Reason::Reconciling, cause)),
        };
        acknowledge_webhook(&object, &mut round.status, &mut outcome);
        context.metrics.polled(object.key().subject(), fetched.is_ok());
        match fetched {
            Ok(revision) => {
                pools.mirrors.set_current(&object.key());
                record(round, &revision, begun, &mut outcome);
                outcome = outcome.with_requeue(until_poll(interval, since.elapsed()));
            }
            // The outcome keeps its events, although the fetch failed.
            Err(failure) => {
                if failure.reason == Reason::SpecInvalid {
                    // The host may have another address later, and the branch may be repaired.
                    outcome = outcome.with_requeue(until_poll(interval, since.elapsed()));
                }
                outcome.reason = failure.reason;
                outcome.message = with_secret(failure, git);
                return Ok(outcome);
            }
        }
        unusable
    } else {
        outcome = outcome.with_requeue(wait);
        unusable.await
    };
    // Report the revision.
    let revision = round.status.last_fetched_revision.as_deref().unwrap_or_default();
    outcome.message = format!("branch {} is at {revision}", git.branch);
    for note in note.into_iter().chain(unusable) {
        outcome.message.push_str("; ");
        outcome.message.push_str(&note);
    }
    Ok(outcome)
}

/// Shows the path that the Git host must post to, if there is a webhook.
fn show_webhook_path(object: &ResourceRepository, git: &GitSource, status: &mut ResourceRepositoryStatus) {
    if git.webhook.is_some() {
        let Key { namespace, name } = object.key();
        let webhook = status.webhook.get_or_insert_with(WebhookStatus::default);
        webhook.path = Some(WebhookStatus::path_of(&namespace, &name));
    } else if let Some(webhook) = &mut status.webhook {
        webhook.path = None;
    }
}

/// Returns why no webhook delivery can be accepted, if so. Polling continues, so the repository is Ready nevertheless.
async fn webhook_problem(context: &Context, object: &ResourceRepository, git: &GitSource) -> Option<String> {
    let webhook = git.webhook.as_ref()?;
    let mut reader = SecretReader::new(&context.client, &object.key().namespace);
    let secret = reader.value("spec.git.webhook.secretRef", &webhook.secret_ref).await;
    secret.err().map(|failure| format!("webhook deliveries are rejected: {}", failure.message))
}

async fn open_mirror(
    context: &Context,
    pools: &Arc<Pools>,
    object: &ResourceRepository,
    url: &RemoteUrl,
    status: &mut ResourceRepositoryStatus,
) -> Result<(Mirror, Option<String>), Failure> {
    // Find the directory.
    let key = object.key();
    let state = context.directories.repository(&ResourceRepository::owner(&key));
    let settled = volumes::settle(context, object, state).await?;
    status.local_path = Some(settled.directory.display().to_string());
    // Open the mirror, when no other task does.
    let binding = format!("{} {url}", object.uid().unwrap_or_default());
    let place = Place { directory: settled.directory, binding };
    let (pools, turn) = (Arc::clone(pools), pools.mirrors.turn(&key).await);
    let policies = context.caches.policies.clone();
    // The turn is moved into the blocking work, which cannot be cancelled: the turn must not end before it.
    let opened = blocking(move || {
        directories::ensure_private(&place.directory).map_err(|error| Failure::internal(&error))?;
        let mirror = pools.mirrors.open(&turn, &key, &place).map_err(|error| failure(&error))?;
        if let Err(error) = unpin_deleted(&mirror, &policies) {
            tracing::warn!(%error, "cannot remove the pins of deleted policies");
        }
        Ok(mirror)
    });
    Ok((opened.await?, settled.note))
}

/// Removes the pins of policies that were deleted while the operator was not running. A policy pins below its uid.
fn unpin_deleted(mirror: &Mirror, policies: &Cache<Guarded<SyncPolicy>>) -> Result<(), RepositoryError> {
    let pins = mirror.pins()?;
    // Read after the pins: a policy that is pinned was in the cache before.
    let policies = policies.store().state();
    let alive: HashSet<&str> = policies.iter().filter_map(|policy| policy.meta().uid.as_deref()).collect();
    let is_orphan = |name: &str| name.split('/').next().is_some_and(|uid| !alive.contains(uid));
    pins.iter().filter(|(name, _)| is_orphan(name)).try_for_each(|(name, _)| mirror.unpin(name))
}

/// Where the mirror has a revision.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Held {
    Tip,
    History,
}

/// Returns where the mirror has the revision that the status shows; `None` if it does not have it.
async fn held(object: &ResourceRepository, mirror: &Mirror) -> Result<Option<Held>, Failure> {
    let shown = object.status.as_ref().and_then(|status| status.last_fetched_revision.as_deref());
    let Some(shown) = shown.and_then(|shown| shown.parse::<Revision>().ok()) else { return Ok(None) };
    let mirror = mirror.clone();
    blocking(move || {
        let tip = mirror.tip().map_err(|error| failure(&error))?;
        let in_history = || mirror.tree(&shown).is_ok().then_some(Held::History);
        Ok(if tip.as_ref() == Some(&shown) { Some(Held::Tip) } else { in_history() })
    })
    .await
}

/// Returns the time until the next fetch of a mirror that is at its revision; zero if it is due.
fn wait(object: &ResourceRepository, interval: Duration) -> Duration {
    let status = object.status.clone().unwrap_or_default();
    let asked = status.last_fetched_generation != object.meta().generation
        || delivery(object) != acknowledged(&status)
        // After a failure, the reconcile loop decides when to retry, so a round means that a fetch is due.
        || !kind::is_ready(object);
    if asked { Duration::ZERO } else { until_next(&status, interval, Timestamp::now()) }
}

/// Returns the time until `interval` after the begin of the last fetch.
fn until_next(status: &ResourceRepositoryStatus, interval: Duration, now: Timestamp) -> Duration {
    let Some(Time(last)) = status.last_fetched_time else { return Duration::ZERO };
    // A clock that was set back must not stop polling.
    let elapsed = Duration::try_from(now.duration_since(last)).unwrap_or(interval);
    let left = interval.saturating_sub(elapsed);
    // Each wait varies by a tenth, and times are stored in whole seconds, so a fetch may start a little early.
    if left <= interval / 10 + Duration::from_secs(1) { Duration::ZERO } else { backoff::jitter(left) }
}

/// Returns the time until the next poll after a fetch that took this long: polls begin an interval apart, unless fetches
/// take longer than half of it.
fn until_poll(interval: Duration, fetch: Duration) -> Duration {
    backoff::jitter(interval).saturating_sub(fetch).max(interval / 2)
}

/// Returns the webhook delivery in the annotations of the object.
fn delivery(object: &ResourceRepository) -> (Option<String>, Option<String>) {
    let annotation = |name: &str| object.annotations().get(name).cloned();
    // The text is not normalised, because two deliveries may arrive within one second, and the precision depends
    // on the receiver.
    let received = annotation(RECEIVED_AT).filter(|text| is_rfc3339(text));
    (received, annotation(DELIVERY_ID))
}

/// Whether the API server accepts the text as `date-time` (RFC 3339, section 5.6, without leap seconds). The parser also
/// accepts other forms of ISO 8601.
fn is_rfc3339(text: &str) -> bool {
    const FORM: &[u8] = b"0000-00-00T00:00:00";
    const ZONE: &[u8] = b"+00:00";
    let has_form = |text: &[u8], form: &[u8]| {
        let fits = |(byte, form): (&u8, &u8)| match form {
            b'0' => byte.is_ascii_digit(),
            b'+' => matches!(byte, b'+' | b'-'),
            _ => byte == form,
        };
        text.len() == form.len() && text.iter().zip(form).all(fits)
    };
    let Some((time, rest)) = text.as_bytes().split_at_checked(FORM.len()) else { return false };
    let digits = rest
        .strip_prefix(b".")
        .map_or(0, |rest| rest.iter().take_while(|byte| byte.is_ascii_digit()).count());
    let zone = if digits == 0 { rest } else { &rest[1 + digits..] };
    has_form(time, FORM)
        && !time.ends_with(b"60")
        && (zone == b"Z" || has_form(zone, ZONE))
        && text.parse::<Timestamp>().is_ok()
}

/// Returns the last processed webhook delivery.
fn acknowledged(status: &ResourceRepositoryStatus) -> (Option<String>, Option<String>) {
    let Some(webhook) = &status.webhook else { return (None, None) };
    (webhook.last_event_time.clone(), webhook.last_delivery_id.clone())
}

fn acknowledge_webhook(
    object: &ResourceRepository,
    status: &mut ResourceRepositoryStatus,
    outcome: &mut Outcome,
) {
    let (received, id) = delivery(object);
    if (received.clone(), id.clone()) == acknowledged(status) {
        return;
    }
    let note =
        id.as_deref().map_or_else(|| "delivery without an id".to_owned(), |id| format!("delivery {id}"));
    outcome.notices.push(Notice::normal("WebhookReceived", note));
    let webhook = status.webhook.get_or_insert_with(WebhookStatus::default);
    webhook.last_event_time = received;
    webhook.last_delivery_id = id;
}

fn record(
    round: &mut Round<'_, ResourceRepository>,
    revision: &Revision,
    begun: Timestamp,
    outcome: &mut Outcome,
) {
    let generation = round.generation();
    let status = &mut round.status;
    let before = status.last_fetched_revision.replace(revision.as_str().to_owned());
    status.last_fetched_time = Some(Time(conditions::whole_seconds(begun)));
    status.last_fetched_generation = Some(generation);
    if before.as_deref() != Some(revision.as_str()) {
        round.context.metrics.revision_changed(round.key().subject());
        let from = before.map_or_else(String::new, |before| format!(" (was {before})"));
        outcome.notices.push(Notice::normal("RevisionChanged", format!("{}{from}", revision.as_str())));
        tracing::info!(revision = revision.as_str(), "revision changed");
    }
}

/// Returns the result of `fetched`. If the current spec was not fetched yet and this takes long, the status shows it: the
/// conditions would be those of the former spec, or there would be none.
async fn announced<T>(
    round: &mut Round<'_, ResourceRepository>,
    mut fetched: Pin<Box<impl Future<Output = T>>>,
    action: String,
) -> T {
    let generation = round.object.meta().generation;
    let is_judged = conditions::find(round.object.conditions(), "Ready")
        .is_some_and(|ready| ready.status != "Unknown" && ready.observed_generation == generation);
    if is_judged {
        return fetched.await;
    }
    if let Ok(fetched) = tokio::time::timeout(LONG, fetched.as_mut()).await {
        return fetched;
    }
    // The round writes the status again after the fetch.
    if let Err(error) = round.publish(&Outcome::new(Reason::Reconciling, action), 0).await {
        tracing::debug!(%error, "cannot write the status");
    }
    fetched.await
}

/// Fetches the branch. Returns the reason if the fetch is cancelled: the operator stops, the namespace has `left`, or the
/// object has another spec or is deleted.
async fn fetch(
    context: &Context,
    object: &ResourceRepository,
    mirror: &Mirror,
    remote: Remote,
    left: CancellationToken,
) -> Result<Result<Revision, Failure>, String> {
    let span = spans::fetch();
    let (mirror, quota) = (mirror.clone(), context.settings.quota);
    let cancelled = CancellationToken::new();
    let deadline = Deadline::new(Instant::now() + FETCH_LIMIT, cancelled.clone());
    // The thread that fetches ends soon after this future is dropped.
    let _cancelled = cancelled.drop_guard();
    let fetched = blocking(move || {
        let fetched = mirror.fetch_within(&remote, &deadline, quota);
        fetched.map_err(|error| {
            // Only this finds an old Git object that cannot be read. The next round then discards the mirror.
            let damage = if is_local(&error) { mirror.examine().err() } else { None };
            failure(&damage.unwrap_or(error))
        })
    });
    tokio::select! {
        fetched = fetched => {
            if let Err(failure) = &fetched {
                spans::failed(&span, failure.reason.into_str());
            }
            Ok(fetched)
        }
        () = context.stop.cancelled() => Err("the operator is stopping".to_owned()),
        () = left.cancelled() => Err("another shard gets the namespace".to_owned()),
        reason = outdated(&context.caches.repositories, object) => Err(reason),
    }
}

/// Returns the message of `failure`, with the Secret if the remote refused the credentials.
fn with_secret(failure: Failure, git: &GitSource) -> String {
    let refused = git.auth.as_ref().and_then(GitAuth::credentials_ref);
    match refused.filter(|_| failure.reason == Reason::AuthFailed) {
        Some((field, key)) => {
            format!("{}; check spec.git.auth.{field}: Secret {}", failure.message, key.name)
        }
        None => failure.message,
    }
}

/// Returns whether the cause may be the mirror, and not the network or the remote.
fn is_local(error: &RepositoryError) -> bool {
    matches!(error.category(), Category::Internal)
}

fn failure(error: &RepositoryError) -> Failure {
    let reason = match error.category() {
        Category::Validation => Reason::SpecInvalid,
        Category::Auth => Reason::AuthFailed,
        Category::NotFound | Category::Conflict | Category::Transport | Category::Internal => {
            Reason::FetchFailed
        }
    };
    Failure::new(reason, error.to_string())
}

fn parse_url(context: &Context, git: &GitSource) -> Result<RemoteUrl, Failure> {
    let parsed = if context.settings.limits.allow_file_repositories {
        RemoteUrl::parse_local_allowed(&git.url)
    } else {
        RemoteUrl::parse(&git.url)
    };
    parsed.map_err(|error| Failure::spec_invalid(format!("spec.git.url: {error}")))
}

async fn remote(context: &Context, object: &ResourceRepository, git: &GitSource) -> Result<Remote, Failure> {
    let mut reader = SecretReader::new(&context.client, &object.key().namespace);
    let auth = match &git.auth {
        Some(auth) => credentials(&mut reader, auth).await?,
        None => RemoteAuth::None,
    };
    let proxy = connections::environment_proxy()?;
    Ok(Remote { proxy, ..Remote::new(parse_url(context, git)?, git.branch.as_str(), auth) })
}

async fn credentials(reader: &mut SecretReader, auth: &GitAuth) -> Result<RemoteAuth, Failure> {
    const SSH: &str = "spec.git.auth.sshSecretRef";
    if let Some(token) = &auth.token_ref {
        let token = reader.value("spec.git.auth.tokenRef", token).await?;
        return Ok(RemoteAuth::Token { user: None, token });
    }
    let Some(ssh) = &auth.ssh_secret_ref else { return Ok(RemoteAuth::None) };
    let known_hosts = reader.optional(&format!("{SSH}.knownHostsRef"), ssh.known_hosts_ref.as_ref()).await?;
    Ok(RemoteAuth::Ssh {
        user: ssh.user.clone(),
        private_key: reader.value(&format!("{SSH}.privateKeyRef"), &ssh.private_key_ref).await?,
        passphrase: reader.optional(&format!("{SSH}.passphraseRef"), ssh.passphrase_ref.as_ref()).await?,
        known_hosts: known_hosts.map(|hosts| hosts.expose().to_owned()),
        insecure_ignore_host_key: ssh.insecure_ignore_host_key,
    })
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    fn fetched(second: i64) -> ResourceRepositoryStatus {
        ResourceRepositoryStatus {
            last_fetched_time: Some(Time(Timestamp::from_second(second).unwrap())),
            ..ResourceRepositoryStatus::default()
        }
    }

    #[rstest]
    #[case::fast(0, 54..=66)]
    #[case::slow(20, 34..=46)]
    #[case::slower_than_the_interval(300, 30..=30)]
    fn polls_begin_an_interval_apart(#[case] fetch: u64, #[case] expected: std::ops::RangeInclusive<u64>) {
        let wait = until_poll(Duration::from_mins(1), Duration::from_secs(fetch));
        assert!(expected.contains(&wait.as_secs()), "{wait:?}");
    }

    #[rstest]
    #[case::just_fetched(1000, 54..=66)]
    #[case::half_way(1030, 27..=33)]
    #[case::almost_due(1053, 0..=0)]
    #[case::overdue(2000, 0..=0)]
    #[case::clock_set_back(500, 0..=0)]
    fn the_next_fetch_is_an_interval_after_the_last(
        #[case] now: i64,
        #[case] expected: std::ops::RangeInclusive<u64>,
    ) {
        let now = Timestamp::from_second(now).unwrap();
        let wait = until_next(&fetched(1000), Duration::from_mins(1), now);
        assert!(expected.contains(&wait.as_secs()), "{wait:?}");
    }

    #[test]
    fn a_fetch_is_due_if_there_was_none() {
        let status = ResourceRepositoryStatus::default();
        assert_eq!(until_next(&status, Duration::from_mins(1), Timestamp::now()), Duration::ZERO);
    }

    #[test]
    fn a_delivery_is_acknowledged_once() {
        let object: ResourceRepository = serde_json::from_value(json!({
            "apiVersion": "declarest.io/v1alpha1",
            "kind": "ResourceRepository",
            "metadata": {
                "name": "r",
                "annotations": {RECEIVED_AT: "2026-01-31T12:00:00.123456789Z", DELIVERY_ID: "d-1"},
            },
            "spec": {"type": "git", "git": {"url": "https://git.example.test/r"}},
        }))
        .unwrap();
        let mut status = ResourceRepositoryStatus::default();
        let mut outcome = Outcome::ready("");
        acknowledge_webhook(&object, &mut status, &mut outcome);
        assert_eq!(delivery(&object), acknowledged(&status));
        acknowledge_webhook(&object, &mut status, &mut outcome);
        assert_eq!(outcome.notices.len(), 1);
        let mut later = object.clone();
        later.annotations_mut().insert(RECEIVED_AT.to_owned(), "2026-01-31T12:00:00.2Z".to_owned());
        assert_ne!(delivery(&later), acknowledged(&status), "a second push within one second");
        assert_eq!(outcome.notices, [Notice::normal("WebhookReceived", "delivery d-1")]);
    }

    #[rstest::rstest]
    #[case("2026-01-31T12:00:00Z", true)]
    #[case("2026-01-31T12:00:00.2+02:00", true)]
    #[case("2026-01-31T12:00:00-02:00", true)]
    #[case("2026-01-31T12:00:00+0100", false)]
    #[case("2026-01-31T12:00:00+01", false)]
    #[case("2026-01-31T12:00:00+01:00:00", false)]
    #[case("2026-01-31T12:00:60Z", false)]
    #[case("2026-01-31T12:00:00.Z", false)]
    #[case("2026-01-31T12:00:00", false)]
    #[case("20260131T120000Z", false)]
    #[case("2026-01-31 12:00:00Z", false)]
    #[case("2026-01-31T12:00Z", false)]
    #[case("2026-01-31T12:00:00+01:00[Europe/Rome]", false)]
    #[case("soon", false)]
    fn times_that_the_api_server_accepts(#[case] text: &str, #[case] accepted: bool) {
        assert_eq!(is_rfc3339(text), accepted);
    }
}
