//! A Vault as a child process.

use std::env;
use std::fs::{self, File};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

/// It starts in a second on an idle machine; builds may run beside.
const START_TIMEOUT: Duration = Duration::from_mins(1);

/// Vault does not end with its parent. This shell does: it kills Vault when its stdin, a pipe from the test
/// process, closes, however that process ended.
const UNTIL_STDIN_CLOSES: &str = r#""$@" & pid=$!; cat >/dev/null; kill -9 $pid"#;

/// Certificate and key of the server, PEM.
pub struct Tls {
    pub certificate: String,
    pub key: String,
}

pub struct Process {
    pub url: String,
    directory: TempDir,
    guard: Child,
}

impl Process {
    /// Starts a Vault that is not initialised, and waits until it answers. `client` must trust its certificate.
    pub async fn start(tls: Option<&Tls>, client: &reqwest::Client) -> Self {
        let program = env::var("VAULT_BIN").unwrap_or_default();
        assert!(
            Path::new(&program).is_file(),
            "these tests need a Vault, and VAULT_BIN={program:?} is none; build one and run them with \
             `make test-real`, or set VAULT_BIN to what `make vault` prints"
        );
        // Another process may take a port between its choice and its use.
        for _ in 0..5 {
            let process = Self::spawn(&program, tls);
            if process.is_new(client).await {
                return process;
            }
        }
        panic!("{program} does not start as a new Vault");
    }

    fn spawn(program: &str, tls: Option<&Tls>) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let at = |name: &str| directory.path().join(name);
        let mut listener = json!({"address": format!("127.0.0.1:{port}")});
        match tls {
            None => listener["tls_disable"] = json!(true),
            Some(tls) => {
                fs::write(at("tls.crt"), &tls.certificate).unwrap();
                fs::write(at("tls.key"), &tls.key).unwrap();
                listener["tls_cert_file"] = json!(at("tls.crt"));
                listener["tls_key_file"] = json!(at("tls.key"));
            }
        }
        let config = json!({"storage": {"inmem": {}}, "listener": {"tcp": listener}, "disable_mlock": true});
        fs::write(at("config.json"), config.to_string()).unwrap();
        let log = File::create(at("log")).unwrap();
        let guard = Command::new("sh")
            .args(["-c", UNTIL_STDIN_CLOSES, "sh", program, "server"])
            .arg(format!("-config={}", at("config.json").display()))
            .stdin(Stdio::piped())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        let scheme = if tls.is_some() { "https" } else { "http" };
        Self { url: format!("{scheme}://127.0.0.1:{port}"), directory, guard }
    }

    /// Waits for an answer. False when the port is not ours: this Vault could not have it, or what answers there
    /// is initialised and therefore of another test.
    async fn is_new(&self, client: &reqwest::Client) -> bool {
        let deadline = Instant::now() + START_TIMEOUT;
        while Instant::now() < deadline {
            if let Ok(answer) = client.get(format!("{}/v1/sys/init", self.url)).send().await {
                let text = answer.text().await.unwrap();
                let state: Value = serde_json::from_str(&text).unwrap_or_else(|_| panic!("{text}"));
                return state["initialized"] == false && !self.log().contains("address already in use");
            }
            if self.log().contains("address already in use") {
                return false;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("Vault does not answer:\n{}", self.log());
    }

    fn log(&self) -> String {
        fs::read_to_string(self.directory.path().join("log")).unwrap_or_default()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.guard.stdin.take());
        // The guard ends as its stdin closes; waiting reaps it.
        let _ = self.guard.wait();
    }
}
