//! An HTTP proxy in front of a server that injects faults.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::AbortHandle;

use crate::elsewhere::Elsewhere;
use crate::fault::{Chance, Fault, Injection};
use crate::traffic::{Open, Traffic};
use crate::wire::{self, Message};

const HTML: &str = "<!doctype html><html><title>Welcome</title><p>Please accept our terms of use.</html>";

/// Pieces of an answer that trickles, and the pause between them: together shorter than any timeout here.
const PIECES: usize = 8;
const PAUSE: Duration = Duration::from_millis(10);

type Connection = BufReader<TcpStream>;

pub struct Proxy {
    pub address: SocketAddr,
    shared: Arc<Shared>,
    accepting: AbortHandle,
}

struct Shared {
    server: SocketAddr,
    chance: Chance,
    calm: AtomicBool,
    traffic: Arc<Traffic>,
    elsewhere: Elsewhere,
}

impl Proxy {
    /// Forwards to `server`. `timeout` is how long the client waits for an answer.
    pub async fn start(server: SocketAddr, timeout: Duration, chance: Chance) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            server,
            chance,
            calm: AtomicBool::new(false),
            traffic: Arc::new(Traffic::new(timeout / 2)),
            elsewhere: Elsewhere::start().await,
        });
        let accepting = tokio::spawn(accept(listener, Arc::clone(&shared)));
        Self { address, shared, accepting: accepting.abort_handle() }
    }

    /// No more faults.
    pub fn calm(&self) {
        self.shared.calm.store(true, Ordering::SeqCst);
    }

    pub fn traffic(&self) -> &Traffic {
        &self.shared.traffic
    }

    /// What was sent elsewhere and should not have been.
    pub fn leaks(&self) -> Vec<String> {
        self.shared.elsewhere.leaks()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    while let Ok((stream, _)) = listener.accept().await {
        tokio::spawn(converse(stream, Arc::clone(&shared)));
    }
}

/// Answers the requests of one connection until one side ends it.
async fn converse(stream: TcpStream, shared: Arc<Shared>) {
    let _ = stream.set_nodelay(true);
    let mut client = BufReader::new(stream);
    while let Ok(Some(request)) = wire::read(&mut client).await {
        if is_abandoned(&client) {
            return;
        }
        let open = shared.traffic.arrive();
        let calm = shared.calm.load(Ordering::SeqCst);
        let injection = if calm { None } else { shared.chance.draw(&request) };
        let answered = match injection {
            None => match shared.forward(&request).await {
                Some(answer) => send(&mut client, open, &answer.bytes()).await,
                None => None,
            },
            Some(injection) => {
                shared.traffic.inject();
                shared.inject(&mut client, open, &request, injection).await
            }
        };
        if answered.is_none() {
            return;
        }
    }
}

/// Whether the client has given up: this machine was too busy to read its request in time.
fn is_abandoned(client: &Connection) -> bool {
    matches!(client.get_ref().try_read(&mut [0]), Ok(0))
}

/// Sends an answer; the request counts as answered from its first byte on. `None` if the client does not take it.
async fn send(client: &mut Connection, open: Open, bytes: &[u8]) -> Option<()> {
    drop(open);
    client.write_all(bytes).await.ok()
}

/// Ends the connection with RST instead of FIN.
fn reset(client: &Connection, open: Open) {
    drop(open);
    client.get_ref().set_zero_linger().unwrap();
}

impl Shared {
    /// The server's answer; `None` where it does not give one, which ends the conversation.
    async fn forward(&self, request: &Message) -> Option<Message> {
        let mut server = BufReader::new(TcpStream::connect(self.server).await.ok()?);
        server.write_all(&request.bytes()).await.ok()?;
        wire::read(&mut server).await.ok()?
    }

    /// Mishandles `request`; `None` if the connection can no longer be used.
    async fn inject(
        &self,
        client: &mut Connection,
        open: Open,
        request: &Message,
        Injection { fault, mut rng }: Injection,
    ) -> Option<()> {
        match fault {
            Fault::Unavailable => {
                if rng.bool() {
                    self.forward(request).await?;
                }
                let answer = Message::response("503 Service Unavailable", &[], "no backend");
                send(client, open, &answer.bytes()).await
            }
            Fault::TooManyRequests => {
                let after = if rng.u8(..8) == 0 { "1" } else { "0" };
                let answer =
                    Message::response("429 Too Many Requests", &[("retry-after", after)], "slow down");
                send(client, open, &answer.bytes()).await
            }
            Fault::ResetBefore => {
                reset(client, open);
                None
            }
            Fault::ResetAfter => {
                self.forward(request).await?;
                reset(client, open);
                None
            }
            Fault::Timeout => {
                if rng.bool() {
                    self.forward(request).await?;
                }
                // Returns when the client hangs up; it has nothing to say before.
                let _ = client.read(&mut [0]).await;
                None
            }
            Fault::Truncated => {
                let answer = self.forward(request).await?;
                let _ = send(client, open, &truncated(answer)).await;
                None
            }
            Fault::WrongContent => {
                let answer = mislabelled(self.forward(request).await?, rng.bool());
                send(client, open, &answer.bytes()).await
            }
            Fault::Trickle => {
                let answer = self.forward(request).await?;
                trickle(client, open, &answer.bytes()).await
            }
            Fault::Redirect => {
                let location = format!("http://{}{}", self.elsewhere.address, request.target());
                let status = if rng.bool() { "302 Found" } else { "307 Temporary Redirect" };
                let answer =
                    Message::response(status, &[("location", &location), ("content-length", "0")], "");
                send(client, open, &answer.bytes()).await
            }
        }
    }
}

/// The first half of an answer that announces the whole; an empty one becomes the half of a short one.
fn truncated(mut answer: Message) -> Vec<u8> {
    if answer.body.is_empty() {
        answer = Message::response("200 OK", &[("content-type", "application/json")], "{}");
    }
    let bytes = answer.bytes();
    bytes[..bytes.len() - answer.body.len().div_ceil(2)].to_vec()
}

/// The answer as something in between shows it that takes everything for a web site; its status stays.
fn mislabelled(mut answer: Message, page: bool) -> Message {
    if page {
        answer.fields.clear();
        HTML.as_bytes().clone_into(&mut answer.body);
    }
    if !answer.body.is_empty() {
        answer.set("content-type", "text/html; charset=utf-8");
    }
    answer
}

async fn trickle(client: &mut Connection, open: Open, bytes: &[u8]) -> Option<()> {
    let (most, last) = bytes.split_at(bytes.len() - 1);
    for piece in most.chunks(most.len().div_ceil(PIECES)) {
        client.write_all(piece).await.ok()?;
        client.flush().await.ok()?;
        tokio::time::sleep(PAUSE).await;
    }
    send(client, open, last).await
}
