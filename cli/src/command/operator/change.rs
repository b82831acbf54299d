//! `declarest operator sync`, `suspend` and `resume`.

use std::time::{Duration, Instant};

use clap::Args;
use declarest_core::error::Category;
use jiff::Timestamp;
use kube::api::DynamicObject;
use serde_json::{Value, json};

use super::PolicyArguments;
use super::objects::{Policy, Report, is_suspended};
use crate::error::Failure;
use crate::interrupt::block_on;
use crate::invocation::Invocation;
use crate::output::{Output, OutputPolicy};
use crate::settings::parse_interval;

/// The annotation that requests a full run. The operator handles each new value once.
const REQUEST: &str = "declarest.io/sync-requested-at";

/// The time in which an operator that starts again notices that a policy can run.
const PATIENCE: Duration = Duration::from_secs(25);

/// Time between two looks at a policy.
const PAUSE: Duration = Duration::from_millis(500);

#[derive(Debug, Args)]
pub struct SyncArguments {
    #[command(flatten)]
    policy: PolicyArguments,
    /// Wait until the run ended, by default at most 10m, and exit with its result
    #[arg(long, value_name = "TIME", num_args = 0..=1, require_equals = true, default_missing_value = "10m",
        value_parser = parse_interval)]
    wait: Option<Duration>,
}

/// Requests a run, and optionally waits for its end.
pub fn sync(arguments: &SyncArguments, invocation: &Invocation) -> Result<(), Failure> {
    let output = invocation.output_about_resources(OutputPolicy::TextDefault)?;
    block_on(async {
        let policy = Policy::connect(&arguments.policy).await?;
        if is_suspended(&policy.read().await?) {
            let name = &arguments.policy.name;
            let hint = format!("\"declarest operator resume {name}\" continues its runs");
            let message = format!("SyncPolicy \"{name}\" is suspended, so it does not run");
            return Err(Failure::invalid(message).with_hint(|_| Some(hint)));
        }
        let request = Timestamp::now().to_string();
        let requested = policy.patch(json!({"metadata": {"annotations": {REQUEST: request}}})).await?;
        let Some(limit) = arguments.wait else {
            return show(&output, &requested, "requested a run");
        };
        let ended = ended(&policy, &request, limit).await?;
        match ended.data.pointer("/status/lastRunOutcome").and_then(Value::as_str) {
            Some("Succeeded") => show(&output, &ended, "the run succeeded"),
            outcome => Err(failed(&ended, outcome.unwrap_or("Unknown"))),
        }
    })
}

/// Waits until the operator has handled a request.
async fn ended(policy: &Policy, request: &str, limit: Duration) -> Result<DynamicObject, Failure> {
    let start = Instant::now();
    loop {
        let object = policy.read().await;
        match object {
            Ok(object) => {
                let handled = object.data.pointer("/status/lastHandledSyncRequest");
                if handled.and_then(Value::as_str) == Some(request) {
                    return Ok(object);
                }
                if start.elapsed() >= limit {
                    return Err(late(&object, limit));
                }
                if start.elapsed() >= PATIENCE
                    && let Some(rejection) = rejection(&object)
                {
                    return Err(rejection);
                }
            }
            // The API server may be available again before the time is over.
            Err(failure) if failure.category().is_transient() && start.elapsed() < limit => {}
            Err(failure) => return Err(failure),
        }
        tokio::time::sleep(PAUSE.min(limit)).await;
    }
}

/// Returns the failure of a policy that the operator does not run until it, or another policy, is changed.
fn rejection(object: &DynamicObject) -> Option<Failure> {
    const REASONS: [&str; 2] = ["SpecInvalid", "OverlappingPolicy"];
    let report = Report::of_policy(object);
    let reason = report.reason.filter(|reason| report.ready == "False" && REASONS.contains(&&**reason))?;
    let why = report.message.unwrap_or_default();
    Some(Failure::invalid(format!("SyncPolicy \"{}\" does not run: {reason}: {why}", report.name)))
}

fn late(object: &DynamicObject, limit: Duration) -> Failure {
    let report = Report::of_policy(object);
    let mut message = format!("SyncPolicy \"{}\" did not run within {} s", report.name, limit.as_secs());
    if let Some(reason) = report.reason.filter(|_| report.ready != "True") {
        message = format!("{message}: {reason}: {}", report.message.unwrap_or_default());
    }
    let hint = "the operator handles the request when the policy can run; check that it is running";
    Failure::new(Category::Transport, message).with_hint(|_| Some(hint.to_owned()))
}

/// Returns the failure of a run that did not succeed, with the resources that failed.
fn failed(object: &DynamicObject, outcome: &str) -> Failure {
    let report = Report::of_policy(object);
    let resources = object.data.pointer("/status/failedResources").and_then(Value::as_array);
    let lines = resources.into_iter().flatten().map(|resource| {
        let text = |key: &str| resource[key].as_str().unwrap_or_default();
        format!("\n  {} {}: {}", text("operation"), text("path"), text("message"))
    });
    let lines: String = lines.collect();
    let why = report.message.unwrap_or_default();
    let message = format!("the run of SyncPolicy \"{}\" ended with {outcome}: {why}{lines}", report.name);
    Failure::internal(message)
}

/// Sets `spec.suspend`.
pub fn suspend(arguments: &PolicyArguments, suspend: bool, invocation: &Invocation) -> Result<(), Failure> {
    let output = invocation.output_about_resources(OutputPolicy::TextDefault)?;
    block_on(async {
        let policy = Policy::connect(arguments).await?;
        let before = policy.read().await?;
        let done = if suspend { "suspended" } else { "resumed" };
        if is_suspended(&before) == suspend {
            let already = if suspend { "is already suspended" } else { "is not suspended" };
            return show(&output, &before, already);
        }
        let changed = policy.patch(json!({"spec": {"suspend": suspend}})).await?;
        show(&output, &changed, done)
    })
}

fn show(output: &Output, policy: &DynamicObject, done: &str) -> Result<(), Failure> {
    let report = Report::of_policy(policy);
    let text = format!("{}: {done}", report.title());
    Ok(output.show_about(&[&report.title()], &report, Some(&text))?)
}
