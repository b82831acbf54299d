//! `declarest contract verify`.

use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use clap::{Args, ValueEnum};
use declarest_core::contract::report::{self, Origin};
use declarest_core::contract::status::{Check, CheckStatus, ContractStatus, Phase, Severity};
use declarest_core::contract::{ProbeVia, Severities, Target, WorkloadKind, observe, verify};

use super::manifests::Manifests;
use super::{source, validate};
use crate::error::Failure;
use crate::invocation::{Invocation, block_on};
use crate::output::OutputPolicy;

#[derive(Debug, Args)]
pub struct VerifyArguments {
    /// File, directory, archive (tar.gz), or URL with the scheme http, https or oci
    #[arg(long, value_name = "CONTRACT")]
    contract: String,
    /// Kubernetes manifests: a file, or a directory with *.yaml, *.yml and *.json
    #[arg(long, value_name = "PATH")]
    objects: PathBuf,
    /// Name of the Service
    #[arg(long, value_name = "NAME")]
    service: Option<String>,
    /// Name of the workload, optionally with its kind; default is the name of the Service
    #[arg(long, value_name = "[KIND/]NAME")]
    workload: Option<String>,
    /// Namespace of the objects
    #[arg(long, value_name = "NAME", default_value = "default")]
    namespace: String,
    /// Severity of the failures that exit with 7
    #[arg(long, value_name = "SEVERITY", default_value = "error")]
    fail_on: FailOn,
}

/// The lowest severity that is a failure of the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum FailOn {
    Error,
    Warning,
}

/// Compares a contract with objects, and prints the status that the operator would write.
pub fn run(arguments: &VerifyArguments, invocation: &Invocation) -> Result<(), Failure> {
    let output = invocation.output(OutputPolicy::TextDefault)?;
    let target = target(arguments)?;
    let manifests = Manifests::read(&arguments.objects, &arguments.namespace)?;
    let loaded = source::load(&arguments.contract, invocation)?;
    let document = loaded.document();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
    let now = i64::try_from(now).unwrap_or_default();
    let verification = match &document.contract {
        Some(contract) => {
            let snapshot = block_on(async { Ok(observe(contract, &target, &manifests, now).await) })?;
            Some(verify(contract, &target, &Severities::new(), &snapshot))
        }
        None => None,
    };
    let origin = Origin { source: loaded.source, image_ref: loaded.image_ref, stale: false, loaded: now };
    let status = report::loaded(&document, &origin, verification, None, now);
    output.show(&status, Some(&text(&status)))?;
    match status.phase {
        Some(Phase::Invalid) | None => Err(validate::invalid(document.errors.len())),
        _ if status.checks.iter().any(|check| counts(check, arguments.fail_on)) => Err(Failure::Differs),
        _ => Ok(()),
    }
}

fn target(arguments: &VerifyArguments) -> Result<Target, Failure> {
    let (kind, workload) = match arguments.workload.as_deref().map(|text| text.split_once('/')) {
        Some(Some((kind, name))) => {
            let known = WorkloadKind::parse(kind);
            let known = known.ok_or_else(|| {
                let names = WorkloadKind::ALL.map(WorkloadKind::as_str).join(", ");
                Failure::invalid(format!("\"{kind}\" is not a kind of workload; use one of {names}"))
            })?;
            (Some(known), Some(name.to_owned()))
        }
        Some(None) => (None, arguments.workload.clone()),
        None => (None, None),
    };
    let (namespace, service) = (arguments.namespace.clone(), arguments.service.clone());
    Ok(Target { namespace, service, workload, kind, probe: ProbeVia::Nothing })
}

fn counts(check: &Check, fail_on: FailOn) -> bool {
    check.degrades() && (fail_on == FailOn::Warning || check.severity == Severity::Error)
}

fn text(status: &ContractStatus) -> String {
    let unknown = || "unknown".to_owned();
    let head = format!(
        "{}: {} {}",
        status.phase.unwrap_or_default().as_str(),
        status.service_name.clone().unwrap_or_else(unknown),
        status.version.clone().unwrap_or_else(unknown)
    );
    let line = |check: &Check| {
        let name = check.kind.as_str();
        match (check.status, check.message.as_str()) {
            (CheckStatus::False, message) => {
                format!("  {} {name} {}: {message}", check.severity.as_str(), check.reason)
            }
            (CheckStatus::True, _) => format!("  ok {name}"),
            (CheckStatus::Unknown, "") => format!("  unknown {name} {}", check.reason),
            (CheckStatus::Unknown, message) => format!("  unknown {name} {}: {message}", check.reason),
        }
    };
    let errors = status.validation.iter().flat_map(|validation| &validation.errors);
    let errors = errors.map(|finding| format!("  {} {}: {}", finding.code, finding.path, finding.message));
    let checks = status.checks.iter().map(line);
    [head].into_iter().chain(errors).chain(checks).collect::<Vec<_>>().join("\n")
}
