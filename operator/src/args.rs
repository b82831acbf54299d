//! The command line: flags and their defaults.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use clap::{Args as Group, Parser, Subcommand, ValueEnum};
use declarest_core::transport::{Destinations, HostPattern, Names};
use ipnet::IpNet;
use tracing::level_filters::LevelFilter;

use crate::crd::validation::is_label;

/// Keeps REST servers in sync with Git.
///
/// Without a subcommand, it runs against the cluster of KUBECONFIG or of the pod's service account.
#[derive(Debug, Parser)]
#[command(name = "declarest-operator", version, args_conflicts_with_subcommands = true)]
pub struct Args {
    #[command(subcommand)]
    command: Option<Command>,

    #[command(flatten)]
    run: RunOptions,
}

impl Args {
    /// Parses the command line of the process. Exits with status 2 if it is invalid.
    pub fn read() -> Self {
        Self::parse()
    }

    pub fn into_command(self) -> Command {
        self.command.unwrap_or(Command::Run(self.run))
    }
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the controllers against a cluster; the default
    #[command(hide = true)]
    Run(RunOptions),
    /// Run the same controllers without a cluster, on manifests from a directory
    Standalone(StandaloneOptions),
    /// Print the custom resource definitions as YAML, or write one file per kind
    Crds(CrdsOptions),
}

#[derive(Clone, Debug, Group)]
#[expect(clippy::struct_excessive_bools, reason = "independent flags")]
pub struct RunOptions {
    /// Elect a leader among the replicas with a Lease; only the leader reconciles
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true",
          default_value_t = false, action = clap::ArgAction::Set)]
    pub leader_elect: bool,

    /// Allow spec.git.url to be file:///...
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true",
          default_value_t = false, action = clap::ArgAction::Set)]
    pub allow_file_repositories: bool,

    /// Address of /metrics; "0" or empty disables it
    #[arg(long, value_name = "ADDRESS", default_value = ":8080")]
    pub metrics_bind_address: BindAddress,

    /// Serve /metrics by HTTPS, and only to users whose token gives the right to read it; needs the overlay
    /// secure-metrics
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true",
          default_value_t = false, action = clap::ArgAction::Set)]
    pub metrics_secure: bool,

    /// Address of /healthz and /readyz; "0" or empty disables them
    #[arg(long, value_name = "ADDRESS", default_value = ":8081")]
    pub health_probe_bind_address: BindAddress,

    /// Address of the receiver of Git webhooks; "0" or empty disables it
    #[arg(long, value_name = "ADDRESS", default_value = ":8082")]
    pub repository_webhook_bind_address: BindAddress,

    /// Validate objects when they are written; needs a validating webhook configuration
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true",
          default_value_t = false, action = clap::ArgAction::Set)]
    pub enable_admission_webhooks: bool,

    #[command(flatten)]
    pub admission: AdmissionOptions,

    /// Reconcile only in namespaces whose labels match: the operator is a shard, and needs --leader-elect
    #[arg(long, value_name = "SELECTOR", conflicts_with = "watch_namespace")]
    pub watch_namespace_selector: Option<String>,

    /// Name of the shard, which is a part of the name of its Lease; by default, a digest of its namespaces or selector
    #[arg(long, value_name = "NAME", value_parser = parse_shard_name)]
    pub shard_name: Option<String>,

    /// Average number of requests per second that the controllers send to the Kubernetes API
    #[arg(long, value_name = "N", default_value = "200")]
    pub kube_api_qps: NonZeroU32,

    /// Number of requests that the controllers may send to the Kubernetes API at once
    #[arg(long, value_name = "N", default_value = "200")]
    pub kube_api_burst: NonZeroU32,

    #[command(flatten)]
    pub manager: ManagerOptions,
}

/// The server of the admission webhooks.
#[derive(Clone, Debug, Group)]
pub struct AdmissionOptions {
    /// Port of the admission webhooks on every interface, or HOST:PORT
    #[arg(id = "admission-webhook-port", long = "admission-webhook-port", value_name = "PORT",
          default_value = "9443", value_parser = parse_port)]
    pub address: BindAddress,

    /// Directory with the certificate of the admission webhooks: tls.crt and tls.key
    #[arg(
        id = "admission-webhook-cert-dir",
        long = "admission-webhook-cert-dir",
        value_name = "DIR",
        default_value = "/tmp/k8s-webhook-server/serving-certs"
    )]
    pub certificates: PathBuf,
}

#[derive(Clone, Debug, Group)]
pub struct StandaloneOptions {
    /// Directory of YAML manifests to load and watch
    #[arg(long, value_name = "DIR")]
    pub manifests: PathBuf,

    /// Directory for mirrors, caches and the state of objects
    #[arg(long, value_name = "DIR")]
    pub state_dir: PathBuf,

    /// Serve the in-process API on this loopback address, for `kubectl --kubeconfig`; the file `kubeconfig` in
    /// the state directory contains the address and the token
    #[arg(long, value_name = "ADDRESS")]
    pub api_listen: Option<BindAddress>,

    /// Allow spec.git.url to be file:///...
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true",
          default_value_t = true, action = clap::ArgAction::Set)]
    pub allow_file_repositories: bool,

    /// Address of /metrics; "0" or empty disables it
    #[arg(long, value_name = "ADDRESS", default_value = "0")]
    pub metrics_bind_address: BindAddress,

    /// Address of /healthz and /readyz; "0" or empty disables them
    #[arg(long, value_name = "ADDRESS", default_value = "0")]
    pub health_probe_bind_address: BindAddress,

    /// Address of the receiver of Git webhooks; "0" or empty disables it
    #[arg(long, value_name = "ADDRESS", default_value = "0")]
    pub repository_webhook_bind_address: BindAddress,

    #[command(flatten)]
    pub manager: ManagerOptions,
}

/// The options that `run` and `standalone` share.
#[derive(Clone, Debug, Group)]
pub struct ManagerOptions {
    /// Watch only these namespaces; if empty, all namespaces
    #[arg(long, value_name = "NAMESPACE,...", value_delimiter = ',')]
    pub watch_namespace: Vec<String>,

    /// Maximum number of objects that each controller reconciles at the same time; only lowers the number that the
    /// memory limit of the process allows
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub max_concurrent_reconciles: Option<u16>,

    /// Maximum duration of a sync; a longer one is aborted
    #[arg(long, value_name = "DURATION", default_value = "30m", value_parser = parse_duration)]
    pub sync_timeout: Duration,

    /// Names of environment variables that `${NAME}` in a spec may use; `*` matches any characters. Every namespace can
    /// read their values
    #[arg(long, value_name = "PATTERN,...", value_delimiter = ',', default_value = "DECLAREST_VAR_*")]
    pub env_expand_allow: Vec<String>,

    /// The most that one fetch of a repository receives, such as 512Mi
    #[arg(long, value_name = "SIZE", default_value = "512Mi", value_parser = parse_size)]
    pub max_fetch_size: u64,

    /// The most that the mirror of one repository occupies on disk; a fetch that exceeds it fails
    #[arg(long, value_name = "SIZE", default_value = "2Gi", value_parser = parse_size)]
    pub max_mirror_size: u64,

    #[command(flatten)]
    pub destinations: DestinationOptions,

    /// Minimum level of log messages
    #[arg(long, value_name = "LEVEL", default_value = "info", value_parser =
        PossibleValuesParser::new(["error", "warn", "info", "debug", "trace"])
            .try_map(|level| level.parse::<LevelFilter>()))]
    pub log_level: LevelFilter,

    /// Format of log lines
    #[arg(long, value_name = "FORMAT", default_value = "json")]
    pub log_format: LogFormat,
}

impl ManagerOptions {
    /// Returns the namespaces to watch, sorted and distinct; none means all.
    pub fn namespaces(&self) -> Vec<String> {
        let names = self.watch_namespace.iter().map(|name| name.trim()).filter(|name| !name.is_empty());
        names.map(str::to_owned).collect::<BTreeSet<_>>().into_iter().collect()
    }
}

/// The hosts and addresses that objects may let the operator connect to.
#[derive(Clone, Debug, Group)]
pub struct DestinationOptions {
    /// Networks to allow, as exceptions from --deny-cidr and from the default: link-local addresses, metadata services
    /// and, except in standalone mode, loopback are denied
    #[arg(long, value_name = "CIDR,...", value_delimiter = ',')]
    pub allow_cidr: Vec<IpNet>,

    /// Networks to deny; of several networks that contain an address, the smallest one decides
    #[arg(long, value_name = "CIDR,...", value_delimiter = ',')]
    pub deny_cidr: Vec<IpNet>,

    /// The only hosts to allow: names, IP addresses, and *.DOMAIN for all names below a domain
    #[arg(long, value_name = "HOST,...", value_delimiter = ',')]
    pub allowed_hosts: Vec<HostPattern>,

    /// Addresses of hosts for the probes of contracts, instead of DNS: for an operator outside of the cluster, which
    /// does not know the names of Services. HOST may be *.DOMAIN
    #[arg(long, value_name = "HOST=ADDRESS,...", value_delimiter = ',', value_parser = known_host)]
    pub resolve: Vec<(HostPattern, IpAddr)>,
}

fn known_host(text: &str) -> Result<(HostPattern, IpAddr), String> {
    let (host, address) = text.split_once('=').ok_or("write HOST=ADDRESS")?;
    let host = host.parse::<HostPattern>().map_err(|error| error.to_string())?;
    let address = address.trim().parse().map_err(|_| format!("\"{address}\" is not an IP address"))?;
    Ok((host, address))
}

impl DestinationOptions {
    /// Returns the restriction of the process. `loopback` allows connections to this machine.
    pub fn destinations(&self, loopback: bool) -> Destinations {
        Destinations::new(loopback, &self.allow_cidr, &self.deny_cidr, self.allowed_hosts.clone())
    }

    /// Returns the addresses of hosts for probes.
    pub fn names(&self) -> Names {
        Names::new(self.resolve.clone())
    }
}

#[derive(Debug, Group)]
pub struct CrdsOptions {
    /// Directory to write the files `<group>_<plural>.yaml` to, instead of standard output
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,

    /// File to write the reference of all fields to, as Markdown
    #[arg(long, value_name = "FILE")]
    pub reference: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    Json,
    Text,
}

/// The address of a listener. `:8080` is port 8080 of every interface; `0` and the empty string disable it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BindAddress {
    Off,
    EveryInterface(u16),
    Host(String),
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected HOST:PORT, :PORT, or 0 for off, not {0:?}")]
pub struct InvalidBindAddress(String);

impl FromStr for BindAddress {
    type Err = InvalidBindAddress;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.trim();
        if text.is_empty() || text == "0" {
            return Ok(Self::Off);
        }
        let invalid = || InvalidBindAddress(text.to_owned());
        let (host, port) = text.rsplit_once(':').ok_or_else(invalid)?;
        let port: u16 = port.parse().map_err(|_| invalid())?;
        Ok(if host.is_empty() { Self::EveryInterface(port) } else { Self::Host(text.to_owned()) })
    }
}

fn parse_port(text: &str) -> Result<BindAddress, InvalidBindAddress> {
    text.parse().map_or_else(|_| text.parse(), |port| Ok(BindAddress::EveryInterface(port)))
}

/// A name that can be a part of the name of a Lease (RFC 1123).
fn parse_shard_name(text: &str) -> Result<String, String> {
    is_label(text)
        .then(|| text.to_owned())
        .ok_or_else(|| format!("expected lower-case letters, digits and inner hyphens, not {text:?}"))
}

/// Parses a number of bytes with an optional binary suffix, as Kubernetes writes quantities.
fn parse_size(text: &str) -> Result<u64, String> {
    let units = [("Ki", 10), ("Mi", 20), ("Gi", 30), ("Ti", 40), ("", 0)];
    let parsed = units.iter().find_map(|(suffix, shift)| {
        let number: u64 = text.strip_suffix(suffix)?.parse().ok()?;
        number.checked_mul(1 << shift).filter(|size| *size > 0)
    });
    parsed.ok_or_else(|| format!("expected a size such as 512Mi or 2Gi, not {text:?}"))
}

fn parse_duration(text: &str) -> Result<Duration, String> {
    let duration: jiff::SignedDuration =
        text.parse().map_err(|error| format!("expected a duration such as 30m or 1h30m: {error}"))?;
    Duration::try_from(duration)
        .ok()
        .filter(|duration| !duration.is_zero())
        .ok_or_else(|| format!("expected a duration above zero, not {text:?}"))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn run_options(args: &[&str]) -> RunOptions {
        let all = std::iter::once("declarest-operator").chain(args.iter().copied());
        match Args::try_parse_from(all).unwrap().into_command() {
            Command::Run(options) => options,
            other => panic!("expected to run against a cluster, not {other:?}"),
        }
    }

    #[test]
    fn clap_accepts_the_definition_of_the_command_line() {
        use clap::CommandFactory as _;
        Args::command().debug_assert();
    }

    #[rstest]
    #[case(&[], false)]
    #[case(&["--leader-elect"], true)]
    #[case(&["--leader-elect=true"], true)]
    #[case(&["--leader-elect=false"], false)]
    fn booleans_are_flags_with_an_optional_value(#[case] args: &[&str], #[case] expected: bool) {
        assert_eq!(run_options(args).leader_elect, expected);
    }

    #[test]
    fn defaults_are_those_of_a_cluster() {
        let options = run_options(&[]);
        assert_eq!(options.metrics_bind_address, BindAddress::EveryInterface(8080));
        assert_eq!(options.health_probe_bind_address, BindAddress::EveryInterface(8081));
        assert_eq!(options.repository_webhook_bind_address, BindAddress::EveryInterface(8082));
        assert_eq!(options.admission.address, BindAddress::EveryInterface(9443));
        assert!(!options.enable_admission_webhooks);
        assert_eq!((options.kube_api_qps.get(), options.kube_api_burst.get()), (200, 200));
        assert_eq!(options.manager.max_concurrent_reconciles, None);
        assert_eq!(options.manager.sync_timeout, Duration::from_mins(30));
        assert_eq!(options.manager.env_expand_allow, ["DECLAREST_VAR_*"]);
        assert!(options.manager.namespaces().is_empty());
    }

    #[rstest]
    #[case("--watch-namespace=", &[])]
    #[case("--watch-namespace=team", &["team"])]
    #[case("--watch-namespace=b, a,,b", &["a", "b"])]
    fn namespaces_are_a_list(#[case] argument: &str, #[case] expected: &[&str]) {
        assert_eq!(run_options(&[argument]).manager.namespaces(), expected);
    }

    #[rstest]
    #[case(&["--no-such-flag"])]
    #[case(&["--sync-timeout=0s"])]
    #[case(&["--max-concurrent-reconciles=0"])]
    #[case(&["--shard-name=A"])]
    #[case(&["--shard-name=a-"])]
    #[case(&["--watch-namespace=a", "--watch-namespace-selector=shard=a"])]
    #[case(&["--kube-api-qps=0"])]
    #[case(&["standalone", "--manifests=m"])]
    fn invalid_arguments_exit_with_2(#[case] args: &[&str]) {
        let all = std::iter::once("declarest-operator").chain(args.iter().copied());
        assert_eq!(Args::try_parse_from(all).unwrap_err().exit_code(), 2);
    }

    #[rstest]
    #[case("100", Ok(100))]
    #[case("512Mi", Ok(512 << 20))]
    #[case("2Gi", Ok(2 << 30))]
    #[case("0", Err(()))]
    #[case("1G", Err(()))]
    #[case("99999999999Ti", Err(()))]
    fn sizes(#[case] text: &str, #[case] expected: Result<u64, ()>) {
        assert_eq!(parse_size(text).map_err(drop), expected);
    }

    #[rstest]
    #[case("", BindAddress::Off)]
    #[case("0", BindAddress::Off)]
    #[case(":8080", BindAddress::EveryInterface(8080))]
    #[case("127.0.0.1:0", BindAddress::Host("127.0.0.1:0".into()))]
    #[case("[::1]:9", BindAddress::Host("[::1]:9".into()))]
    fn bind_addresses(#[case] text: &str, #[case] expected: BindAddress) {
        assert_eq!(text.parse(), Ok(expected));
    }

    #[rstest]
    #[case("8080")]
    #[case("host:")]
    #[case(":70000")]
    fn invalid_bind_addresses_are_rejected(#[case] text: &str) {
        assert_eq!(text.parse::<BindAddress>(), Err(InvalidBindAddress(text.to_owned())));
    }
}
