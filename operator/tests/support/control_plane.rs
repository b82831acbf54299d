//! A real etcd and kube-apiserver as child processes.

use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rcgen::KeyPair;
use serde_json::Value;

use super::authority::Authority;
use super::ports::free_ports;

/// Starting both takes 5 to 10 s on an idle machine; builds may run beside.
const START_TIMEOUT: Duration = Duration::from_mins(5);

/// Runs a program that must not outlive the test process, and starts it again if it ends. The shell waits for the end
/// of its stdin, which comes when the test process ends in any way, kill -9 included. It then kills the program and
/// removes the directory. Ctrl-C reaches the whole process group, so the shell ignores it to get that far.
const GUARD: &str = r#"trap "" HUP INT TERM; set -m
dir=$1; shift
(while :; do "$@" & echo $! >"$dir/${1##*/}.pid"; wait $!; sleep 0.2; done) & group=$!
cat >/dev/null
kill -9 -- -$group; wait; rm -rf "$dir""#;

/// The file with an entry for each write of a service account.
const AUDIT_LOG: &str = "audit.log";
const AUDIT_POLICY: &str = "apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
  - level: Metadata
    userGroups: ['system:serviceaccounts']
    verbs: [create, update, patch, delete, deletecollection]
  - level: None
";

pub struct ControlPlane {
    pub dir: PathBuf,
    pub url: String,
    /// Bearer token of a member of `system:masters`.
    pub admin_token: &'static str,
    /// PEM certificate of the authority that signed the server's certificate.
    pub ca: String,
    /// Their stdin keeps the servers alive.
    _servers: [Child; 2],
}

impl ControlPlane {
    pub fn start(assets: &Path) -> Result<Self, String> {
        let directory = tempfile::Builder::new()
            .prefix("declarest-cluster-")
            .tempdir()
            .map_err(|error| format!("cannot create a directory for the cluster: {error}"))?;
        let dir = directory.path().to_owned();
        let [etcd_client, etcd_peer, api_port] = free_ports();
        let admin_token = "admin";
        let ca = write_credentials(&dir, admin_token)?;

        let etcd_url = format!("http://127.0.0.1:{etcd_client}");
        let etcd = spawn(&assets.join("etcd"), &dir, &etcd_args(&dir, &etcd_url, etcd_peer))?;
        let api = spawn(&assets.join("kube-apiserver"), &dir, &api_args(&dir, &etcd_url, api_port))?;
        // From here on the guards of the two servers remove it.
        let dir = directory.keep();
        let url = format!("https://127.0.0.1:{api_port}");
        Ok(Self { dir, url, admin_token, ca, _servers: [etcd, api] })
    }

    /// Sends a signal, such as `-STOP`, to `etcd` or `kube-apiserver`. A server that ends is started again.
    pub fn signal(&self, server: &str, signal: &str) {
        let pid = fs::read_to_string(self.dir.join(format!("{server}.pid"))).unwrap();
        assert!(Command::new("kill").args([signal, pid.trim()]).status().unwrap().success());
    }

    /// Returns the entries of the audit log (`audit.k8s.io/v1`, Event).
    pub fn audit_log(&self) -> Vec<Value> {
        let log = fs::read_to_string(self.dir.join(AUDIT_LOG)).unwrap();
        // The server may be writing the last line.
        let complete = log.rsplit_once('\n').map_or("", |(complete, _)| complete);
        complete.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Waits until the API server is as `ready` wants it; the error holds the end of the servers' logs.
    pub async fn wait_until<F: Future<Output = bool>>(&self, ready: impl Fn() -> F) -> Result<(), String> {
        let deadline = Instant::now() + START_TIMEOUT;
        while !ready().await {
            if Instant::now() > deadline {
                return Err(format!(
                    "kube-apiserver is not ready after {}s\n{}\n{}",
                    START_TIMEOUT.as_secs(),
                    log_tail(&self.dir, "etcd"),
                    log_tail(&self.dir, "kube-apiserver")
                ));
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        Ok(())
    }
}

/// Writes the serving certificate, the key that signs tokens of service accounts and the admin token;
/// returns the certificate authority.
fn write_credentials(dir: &Path, admin_token: &str) -> Result<String, String> {
    let generate = || -> Result<_, rcgen::Error> {
        let authority = Authority::new()?;
        let serving = authority.certify(&["127.0.0.1", "localhost"])?;
        Ok((authority.pem, serving, KeyPair::generate()?))
    };
    let (ca, serving, token_key) =
        generate().map_err(|error| format!("cannot make the cluster's certificates: {error}"))?;
    let files = [
        ("serving.crt", serving.certificate),
        ("serving.key", serving.key),
        ("service-account.key", token_key.serialize_pem()),
        ("service-account.pub", token_key.public_key_pem()),
        ("audit.yaml", AUDIT_POLICY.to_owned()),
        ("tokens.csv", format!("{admin_token},admin,admin,system:masters\n")),
    ];
    for (name, content) in files {
        fs::write(dir.join(name), content).map_err(|error| format!("cannot write {name}: {error}"))?;
    }
    Ok(ca)
}

fn etcd_args(dir: &Path, client_url: &str, peer_port: u16) -> Vec<OsString> {
    let peer_url = format!("http://127.0.0.1:{peer_port}");
    let mut args: Vec<OsString> =
        vec!["--data-dir".into(), dir.join("etcd").into(), "--unsafe-no-fsync".into()];
    args.extend(
        [
            ("--listen-client-urls", client_url),
            ("--advertise-client-urls", client_url),
            ("--listen-peer-urls", &peer_url),
            ("--initial-advertise-peer-urls", &peer_url),
            ("--initial-cluster", &format!("default={peer_url}")),
        ]
        .into_iter()
        .flat_map(|(flag, value)| [flag.into(), value.into()]),
    );
    args
}

fn api_args(dir: &Path, etcd_url: &str, port: u16) -> Vec<OsString> {
    let file = |name: &str| dir.join(name).into_os_string();
    [
        ("--etcd-servers", etcd_url.into()),
        ("--bind-address", "127.0.0.1".into()),
        ("--secure-port", port.to_string().into()),
        ("--service-cluster-ip-range", "10.96.0.0/24".into()),
        ("--cert-dir", file("certificates")),
        ("--tls-cert-file", file("serving.crt")),
        ("--tls-private-key-file", file("serving.key")),
        ("--authorization-mode", "RBAC".into()),
        ("--token-auth-file", file("tokens.csv")),
        ("--audit-policy-file", file("audit.yaml")),
        ("--audit-log-path", file(AUDIT_LOG)),
        ("--service-account-issuer", "https://kubernetes.default.svc".into()),
        ("--service-account-signing-key-file", file("service-account.key")),
        ("--service-account-key-file", file("service-account.pub")),
    ]
    .into_iter()
    .flat_map(|(flag, value)| [flag.into(), value])
    .collect()
}

/// Starts `program` under [`GUARD`], logging into `dir`.
fn spawn(program: &Path, dir: &Path, args: &[OsString]) -> Result<Child, String> {
    if !program.is_file() {
        return Err(format!("{} does not exist; build it with `make envtest`", program.display()));
    }
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    let log = File::create(dir.join(format!("{name}.log")))
        .and_then(|log| Ok((log.try_clone()?, log)))
        .map_err(|error| format!("cannot create the log of {name}: {error}"))?;
    Command::new("bash")
        .args(["-c", GUARD, "bash"])
        .arg(dir)
        .arg(program)
        .args(args)
        // Both run for minutes at most, so memory is cheaper than the processor time of collecting it.
        .env("GOGC", "400")
        .stdin(Stdio::piped())
        .stdout(log.0)
        .stderr(log.1)
        .spawn()
        .map_err(|error| format!("cannot start {}: {error}", program.display()))
}

fn log_tail(dir: &Path, name: &str) -> String {
    let log = fs::read_to_string(dir.join(format!("{name}.log"))).unwrap_or_default();
    let lines: Vec<&str> = log.lines().collect();
    format!("--- end of the log of {name}\n{}", lines[lines.len().saturating_sub(20)..].join("\n"))
}
