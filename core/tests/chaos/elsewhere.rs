//! Another origin, to which redirects lead. It must see neither credentials nor writes.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::AbortHandle;

use crate::wire::{self, Message};

pub struct Elsewhere {
    pub address: SocketAddr,
    seen: Arc<Mutex<Vec<Message>>>,
    accepting: AbortHandle,
}

impl Elsewhere {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let seen: Arc<Mutex<Vec<Message>>> = Arc::default();
        let noted = Arc::clone(&seen);
        let accepting = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(answer(stream, Arc::clone(&noted)));
            }
        });
        Self { address, seen, accepting: accepting.abort_handle() }
    }

    /// What should not have come here.
    pub fn leaks(&self) -> Vec<String> {
        let seen = self.seen.lock().unwrap();
        let leaked = seen.iter().filter(|request| {
            request.method() != "GET"
                || !request.body.is_empty()
                || request.field("authorization").is_some()
                || request.field("x-team").is_some()
        });
        leaked
            .map(|request| format!("{} was sent elsewhere: {:?}", request.first_line, request.fields))
            .collect()
    }
}

impl Drop for Elsewhere {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// Half of all requests meet a page to log in at, the others a page that says that nothing is there.
async fn answer(stream: TcpStream, seen: Arc<Mutex<Vec<Message>>>) {
    let mut stream = BufReader::new(stream);
    while let Ok(Some(request)) = wire::read(&mut stream).await {
        let count = {
            let mut seen = seen.lock().unwrap();
            seen.push(request);
            seen.len()
        };
        let status = if count.is_multiple_of(2) { "404 Not Found" } else { "200 OK" };
        let page = Message::response(
            status,
            &[("content-type", "text/html")],
            "<!doctype html><title>Elsewhere</title>",
        );
        if stream.write_all(&page.bytes()).await.is_err() {
            return;
        }
    }
}
