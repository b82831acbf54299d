//! A tinyproxy process.

use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use tokio::net::TcpStream;

use crate::ports::free_ports;

pub const USER: &str = "operator";
pub const PASSWORD: &str = "proxy-password";

/// How long it may take to listen.
const PATIENCE: Duration = Duration::from_secs(30);

/// Runs until it is dropped. It wants [`USER`] and [`PASSWORD`].
pub struct Tinyproxy {
    address: SocketAddr,
    process: Child,
    _directory: TempDir,
}

impl Tinyproxy {
    /// Leads everything to the proxy at `upstream`.
    pub async fn start(upstream: SocketAddr) -> Self {
        // Fails where another test was first, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let deadline = Instant::now() + PATIENCE;
        loop {
            let directory = tempfile::tempdir().unwrap();
            let [port] = free_ports();
            let address = SocketAddr::from(([127, 0, 0, 1], port));
            let process = launch(&directory, address, upstream);
            let mut proxy = Self { address, process, _directory: directory };
            if proxy.listens(deadline).await {
                return proxy;
            }
            // Another process may have taken the port meanwhile.
            assert!(Instant::now() < deadline, "tinyproxy ends as soon as it starts");
        }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Waits until it listens, or has ended.
    async fn listens(&mut self, deadline: Instant) -> bool {
        while Instant::now() < deadline {
            if self.process.try_wait().unwrap().is_some() {
                return false;
            }
            if TcpStream::connect(self.address).await.is_ok() {
                // It ends if another process has taken the port, and then that one was connected.
                tokio::time::sleep(Duration::from_millis(200)).await;
                return self.process.try_wait().unwrap().is_none();
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("tinyproxy does not listen at {}", self.address);
    }
}

impl Drop for Tinyproxy {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn launch(directory: &TempDir, address: SocketAddr, upstream: SocketAddr) -> Child {
    let file = directory.path().join("tinyproxy.conf");
    let port = address.port();
    let configuration = format!(
        "Port {port}\nListen 127.0.0.1\nTimeout 60\nMaxClients 50\nAllow 127.0.0.1\nLogLevel Warning\n\
         BasicAuth {USER} {PASSWORD}\nUpstream http {upstream}\n"
    );
    std::fs::write(&file, configuration).unwrap();
    let program = std::env::var("TINYPROXY").unwrap_or_else(|_| "tinyproxy".to_owned());
    let mut command = Command::new(&program);
    command.arg("-d").arg("-c").arg(&file).stdin(Stdio::null()).stdout(Stdio::null());
    let spawned = command.spawn();
    spawned.unwrap_or_else(|error| {
        panic!("cannot run {program}: {error}; apt-get install tinyproxy, or name it in TINYPROXY")
    })
}
