//! `declarest contract verify`.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use declarest_core::contract::report::{self, Origin};
use declarest_core::contract::status::{Check, CheckStatus, ContractStatus, Phase, Severity};
use declarest_core::contract::{
    Contract, Loaded, ProbeVia, Prober, Severities, Snapshot, Target, WorkloadKind, observe, probe_requests,
    verify,
};
use declarest_core::transport::{Names, TlsConfig};
use jiff::Timestamp;
use url::Url;

use super::cluster::{ApiServer, Server};
use super::manifests::Manifests;
use super::{source, validate};
use crate::cluster::ClusterArguments;
use crate::error::Failure;
use crate::interrupt::block_on;
use crate::invocation::Invocation;
use crate::output::OutputPolicy;

#[derive(Debug, Args)]
pub struct VerifyArguments {
    /// File, directory, archive (tar.gz), or URL with the scheme http, https or oci
    #[arg(long, value_name = "CONTRACT", required_unless_present = "server", conflicts_with = "server")]
    contract: Option<String>,
    /// Name of a ManagedServer, whose contract and target are used
    #[arg(long, value_name = "NAME", conflicts_with_all = ["service", "workload", "objects"])]
    server: Option<String>,
    /// Kubernetes manifests instead of a cluster: a file, or a directory with *.yaml, *.yml and *.json
    #[arg(long, value_name = "PATH", conflicts_with_all = ["kubeconfig", "kube_context", "probe"])]
    objects: Option<PathBuf>,
    /// Name of the Service
    #[arg(long, value_name = "NAME")]
    service: Option<String>,
    /// Name of the workload, optionally with its kind; default is the name of the Service
    #[arg(long, value_name = "[KIND/]NAME")]
    workload: Option<String>,
    #[command(flatten)]
    cluster: ClusterArguments,
    /// Destination of probes: the Service, the origin of http.baseURL, or none; default is service inside of a cluster
    #[arg(long, value_name = "DESTINATION")]
    probe: Option<Probe>,
    /// Severity of the failures that exit with 7
    #[arg(long, value_name = "SEVERITY", default_value = "error")]
    fail_on: FailOn,
}

/// The destination of probes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Probe {
    Service,
    BaseUrl,
    None,
}

/// The lowest severity that is a failure of the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum FailOn {
    Error,
    Warning,
}

/// A contract, what it is compared with, and the objects that were read.
struct Comparison {
    loaded: Loaded,
    target: Target,
    severities: Severities,
    /// `None` if the contract is not valid.
    snapshot: Option<Snapshot>,
    /// The first object that could not be read.
    failure: Option<Failure>,
}

/// Compares a contract with objects, and prints the status that the operator would write.
pub fn run(arguments: &VerifyArguments, invocation: &Invocation) -> Result<(), Failure> {
    let output = invocation.output(OutputPolicy::TextDefault)?;
    let now = Timestamp::now().as_second();
    let Comparison { loaded, target, severities, snapshot, failure } = block_on(async {
        match &arguments.objects {
            Some(path) => with_manifests(arguments, path, now, invocation).await,
            None => with_cluster(arguments, now, invocation).await,
        }
    })?;
    let document = loaded.document();
    let verification = match (&document.contract, snapshot) {
        (Some(contract), Some(snapshot)) => Some(verify(contract, &target, &severities, &snapshot)),
        _ => None,
    };
    let origin = Origin { source: loaded.source, image_ref: loaded.image_ref, stale: false, loaded: now };
    let status = report::loaded(&document, &origin, verification, None, now);
    output.show(&status, Some(&text(&status)))?;
    let counted: Vec<&Check> =
        status.checks.iter().filter(|check| counts(check, arguments.fail_on)).collect();
    match status.phase {
        Some(Phase::Invalid) | None => Err(validate::invalid(document.errors.len())),
        _ if counted.iter().any(|check| check.status == CheckStatus::False) => Err(Failure::Differs),
        _ if !counted.is_empty() => Err(failure.unwrap_or(Failure::Differs)),
        _ => Ok(()),
    }
}

async fn with_manifests(
    arguments: &VerifyArguments,
    path: &Path,
    now: i64,
    invocation: &Invocation,
) -> Result<Comparison, Failure> {
    let namespace = arguments.cluster.namespace.clone().unwrap_or_else(|| "default".to_owned());
    let target = target(arguments, namespace, ProbeVia::Nothing)?;
    let manifests = Manifests::read(path, &target.namespace)?;
    let loaded = stated(arguments, invocation).await?;
    let snapshot = match loaded.document().contract {
        Some(contract) => Some(observe(&contract, &target, &manifests, now).await),
        None => None,
    };
    Ok(Comparison { loaded, target, severities: Severities::new(), snapshot, failure: None })
}

async fn with_cluster(
    arguments: &VerifyArguments,
    now: i64,
    invocation: &Invocation,
) -> Result<Comparison, Failure> {
    let api = ApiServer::connect(&arguments.cluster).await?;
    let namespace = api.namespace().to_owned();
    let server = match &arguments.server {
        Some(name) => Some(api.server(&namespace, name).await?),
        None => None,
    };
    let inside = invocation.environment.get("KUBERNETES_SERVICE_HOST").is_some();
    let probe = arguments.probe.unwrap_or(if inside { Probe::Service } else { Probe::None });
    let probe = destination(probe, server.as_ref())?;
    let (loaded, target, severities) = if let Some(Server { contract, .. }) = server {
        let invalid = |reason: &str| Failure::invalid(format!("the ManagedServer has no {reason}"));
        let binding = contract.ok_or_else(|| invalid("spec.contract"))?;
        let source = binding.source().ok_or_else(|| invalid("valid source in spec.contract"))?;
        let loaded = source::fetch(&source, invocation).await?;
        (loaded, binding.target(namespace, probe), binding.severities())
    } else {
        let target = target(arguments, namespace, probe)?;
        (stated(arguments, invocation).await?, target, Severities::new())
    };
    let snapshot = match loaded.document().contract {
        Some(contract) => Some(snapshot(&api, &contract, &target, &severities, now).await?),
        None => None,
    };
    Ok(Comparison { loaded, target, severities, snapshot, failure: api.into_failure() })
}

/// Reads the objects, and sends the probes.
async fn snapshot(
    api: &ApiServer,
    contract: &Contract,
    target: &Target,
    severities: &Severities,
    now: i64,
) -> Result<Snapshot, Failure> {
    let mut snapshot = observe(contract, target, &api.reads(&target.namespace), now).await;
    let requests = probe_requests(contract, target, severities, &snapshot);
    if !requests.is_empty() {
        let prober = Prober::new(&TlsConfig::default(), &Names::default())?;
        snapshot.probes.extend(prober.send_all(&requests).await);
    }
    Ok(snapshot)
}

/// Loads the contract that `--contract` states.
async fn stated(arguments: &VerifyArguments, invocation: &Invocation) -> Result<Loaded, Failure> {
    source::load(arguments.contract.as_deref().unwrap_or_default(), invocation).await
}

fn destination(probe: Probe, server: Option<&Server>) -> Result<ProbeVia, Failure> {
    let origin = server.and_then(|server| Url::parse(&server.http.base_url).ok());
    match (probe, origin) {
        (Probe::None, _) => Ok(ProbeVia::Nothing),
        (Probe::Service, origin) => Ok(ProbeVia::Service(origin)),
        (Probe::BaseUrl, Some(origin)) => Ok(ProbeVia::Origin(origin)),
        (Probe::BaseUrl, None) => {
            Err(Failure::invalid("--probe base-url needs --server with a valid http.baseURL"))
        }
    }
}

fn target(arguments: &VerifyArguments, namespace: String, probe: ProbeVia) -> Result<Target, Failure> {
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
    Ok(Target { namespace, service: arguments.service.clone(), workload, kind, probe })
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
