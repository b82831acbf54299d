//! The REST server as another process, and what it takes to talk to it at the least.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use reqwest::{Client, RequestBuilder};
use serde_json::Value;
use tokio::task::JoinSet;

use crate::SERVE;

/// A server process; it ends with this value.
pub struct Rest {
    process: Child,
    pub url: String,
    client: Client,
}

impl Rest {
    pub fn start(collections: &[String], latency_ms: u64) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args([SERVE, "--listen=127.0.0.1:0"]).arg(format!("--latency-ms={latency_ms}"));
        command.args(collections.iter().map(|collection| format!("--collection={collection}")));
        let mut process = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.strip_prefix("listening on ").and_then(|rest| rest.split_once(','));
        let url = address.unwrap_or_else(|| panic!("the server said {line:?}")).0.to_owned();
        Self { process, url, client: Client::new() }
    }

    /// How many requests there were since the last reset, and how many at once.
    pub async fn counts(&self) -> Counts {
        let counts = self.client.get(format!("{}/_control/counts", self.url)).send().await.unwrap();
        let counts: Value = serde_json::from_slice(&counts.bytes().await.unwrap()).unwrap();
        let number = |name: &str| usize::try_from(counts[name].as_u64().unwrap()).unwrap();
        Counts { total: number("total"), writes: number("writes"), peak: number("peak") }
    }

    pub async fn reset_counts(&self) {
        let reset = self.client.post(format!("{}/_control/reset", self.url)).send().await.unwrap();
        assert!(reset.status().is_success());
    }
}

impl Drop for Rest {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// What the server was asked.
pub struct Counts {
    pub total: usize,
    pub writes: usize,
    pub peak: usize,
}

/// The floor: sends what `request` makes of each number below `count`, `concurrency` at once, and reads the whole
/// bodies. Nothing is decoded.
pub async fn send_all(
    count: usize,
    concurrency: usize,
    request: impl Fn(usize) -> RequestBuilder + Send + Sync + 'static,
) {
    let (request, next) = (Arc::new(request), Arc::new(AtomicUsize::new(0)));
    let mut senders = JoinSet::new();
    for _ in 0..concurrency {
        let (request, next) = (Arc::clone(&request), Arc::clone(&next));
        senders.spawn(async move {
            loop {
                let index = next.fetch_add(1, Ordering::Relaxed);
                if index >= count {
                    return;
                }
                read(request(index)).await;
            }
        });
    }
    senders.join_all().await;
}

/// Reads the body of one answer.
pub async fn read(request: RequestBuilder) -> bytes::Bytes {
    let response = request.send().await.unwrap();
    assert!(response.status().is_success(), "{}: {}", response.url(), response.status());
    response.bytes().await.unwrap()
}
