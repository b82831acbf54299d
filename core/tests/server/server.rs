//! A REST server on loopback that answers as configured and counts its requests.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use declarest_core::server::{BaseUrl, Client, Gate, Request, RequestObserver, Settings, Throttling};
use declarest_core::transport::{Pem, TlsConfig, TlsSettings};
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt};
use http::{Method, Response, StatusCode, Version};
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio_rustls::TlsAcceptor;

type Answer = Response<String>;
type Behaviour = dyn Fn(usize) -> BoxFuture<'static, Answer> + Send + Sync;

/// Runs until it is dropped.
pub struct Server {
    pub address: SocketAddr,
    seen: Arc<Seen>,
    certificate: Option<String>,
    accepting: tokio::task::JoinHandle<()>,
}

#[derive(Default)]
struct Seen {
    connections: AtomicUsize,
    broken: AtomicBool,
    requests: Mutex<Requests>,
}

#[derive(Default)]
struct Requests {
    /// When each one arrived, and in which version of HTTP.
    arrived: Vec<(Instant, Version)>,
    running: usize,
    peak: usize,
}

pub fn status(code: u16) -> Answer {
    let mut answer = Response::new("{}".to_owned());
    *answer.status_mut() = StatusCode::from_u16(code).unwrap();
    answer
}

impl Server {
    /// Answers the n-th request, from 0, with what `behave` says.
    pub async fn start<F>(behave: impl Fn(usize) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Answer> + Send + 'static,
    {
        Self::with_tls(None, behave).await
    }

    /// The same over TLS, offering these protocols (RFC 7301).
    pub async fn start_tls<F>(protocols: &[&str], behave: impl Fn(usize) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Answer> + Send + 'static,
    {
        Self::with_tls(Some(protocols), behave).await
    }

    async fn with_tls<F>(tls: Option<&[&str]>, behave: impl Fn(usize) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Answer> + Send + 'static,
    {
        // Fails where another test was first, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let (acceptor, certificate) = tls.map(acceptor).unzip();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Seen::default());
        let behave: Arc<Behaviour> = Arc::new(move |sequence| behave(sequence).boxed());
        let accepting = tokio::spawn(accept(listener, acceptor, Arc::clone(&seen), behave));
        Self { address, seen, certificate, accepting }
    }

    pub fn client(&self, gate: &Arc<Gate>) -> Client {
        self.observed(gate, None)
    }

    pub fn observed(&self, gate: &Arc<Gate>, observer: Option<Arc<dyn RequestObserver>>) -> Client {
        let scheme = if self.certificate.is_some() { "https" } else { "http" };
        let settings = Settings {
            tls: self.certificate.as_deref().map_or_else(TlsSettings::default, |pem| {
                TlsConfig::trusting(Pem { origin: "ca", text: pem.as_bytes() }).unwrap().into()
            }),
            ..Settings::new(BaseUrl::parse(&format!("{scheme}://{}", self.address)).unwrap())
        };
        Client::new(settings, Arc::clone(gate), observer).unwrap()
    }

    /// Whether each connection is closed as soon as something is asked over it.
    pub fn break_connections(&self, broken: bool) {
        self.seen.broken.store(broken, Ordering::SeqCst);
    }

    pub fn connections(&self) -> usize {
        self.seen.connections.load(Ordering::SeqCst)
    }

    pub fn arrivals(&self) -> Vec<Instant> {
        self.seen.requests.lock().unwrap().arrived.iter().map(|(at, _)| *at).collect()
    }

    pub fn versions(&self) -> Vec<Version> {
        self.seen.requests.lock().unwrap().arrived.iter().map(|(_, version)| *version).collect()
    }

    /// The most requests at once since the start or the last call.
    pub fn take_peak(&self) -> usize {
        let mut requests = self.seen.requests.lock().unwrap();
        let running = requests.running;
        std::mem::replace(&mut requests.peak, running)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

fn acceptor(protocols: &[&str]) -> (TlsAcceptor, String) {
    let pair = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(pair.signing_key.serialize_der()));
    let mut config = rustls::ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![pair.cert.der().clone()], key)
        .unwrap();
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
    (TlsAcceptor::from(Arc::new(config)), pair.cert.pem())
}

async fn accept(
    listener: TcpListener,
    acceptor: Option<TlsAcceptor>,
    seen: Arc<Seen>,
    behave: Arc<Behaviour>,
) {
    // Aborted with this task.
    let mut open = tokio::task::JoinSet::new();
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        seen.connections.fetch_add(1, Ordering::SeqCst);
        open.spawn(connection(stream, acceptor.clone(), Arc::clone(&seen), Arc::clone(&behave)));
    }
}

async fn connection(
    stream: TcpStream,
    acceptor: Option<TlsAcceptor>,
    seen: Arc<Seen>,
    behave: Arc<Behaviour>,
) {
    let Some(acceptor) = acceptor else { return converse(stream, false, seen, behave).await };
    let Ok(stream) = acceptor.accept(stream).await else { return };
    let http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
    converse(stream, http2, seen, behave).await;
}

/// Clients end conversations as they like, so how one ended does not matter.
async fn converse(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    http2: bool,
    seen: Arc<Seen>,
    behave: Arc<Behaviour>,
) {
    let service = service_fn(move |request: hyper::Request<Incoming>| {
        let (seen, behave) = (Arc::clone(&seen), Arc::clone(&behave));
        async move { seen.answer(request.version(), &*behave).await }
    });
    let stream = TokioIo::new(stream);
    if http2 {
        let _ = http2::Builder::new(TokioExecutor::new()).serve_connection(stream, service).await;
    } else {
        let _ = http1::Builder::new().serve_connection(stream, service).await;
    }
}

/// Ends the connection instead of answering.
#[derive(Debug, thiserror::Error)]
#[error("broken on purpose")]
struct Broken;

impl Seen {
    async fn answer(&self, version: Version, behave: &Behaviour) -> Result<Answer, Broken> {
        if self.broken.load(Ordering::SeqCst) {
            return Err(Broken);
        }
        let sequence = {
            let mut requests = self.requests.lock().unwrap();
            requests.arrived.push((Instant::now(), version));
            requests.running += 1;
            requests.peak = requests.peak.max(requests.running);
            requests.arrived.len() - 1
        };
        let answer = behave(sequence).await;
        self.requests.lock().unwrap().running -= 1;
        Ok(answer)
    }
}

/// Counts attempts, answers that ask to slow down, and how often a request was delayed.
pub struct Ear {
    pub attempts: AtomicUsize,
    pub held_back: AtomicUsize,
    pushed_back: mpsc::UnboundedSender<()>,
}

impl Ear {
    pub fn new() -> (Arc<Self>, mpsc::UnboundedReceiver<()>) {
        let (pushed_back, heard) = mpsc::unbounded_channel();
        let (attempts, held_back) = Default::default();
        (Arc::new(Self { attempts, held_back, pushed_back }), heard)
    }
}

impl RequestObserver for Ear {
    fn completed(&self, _: &Method, _: Option<StatusCode>, _: Duration) {
        self.attempts.fetch_add(1, Ordering::SeqCst);
    }

    fn throttled(&self, by_server: bool) {
        if by_server {
            // The test may have heard enough.
            let _ = self.pushed_back.send(());
        } else {
            self.held_back.fetch_add(1, Ordering::SeqCst);
        }
    }
}

pub fn gate(max_concurrent_requests: Option<usize>) -> Arc<Gate> {
    Arc::new(Gate::new(&Throttling { max_concurrent_requests, ..Throttling::default() }).unwrap())
}

/// Sends so many requests, as many at once as the gate could ever allow; how many succeeded.
pub async fn send(client: &Client, method: &Method, requests: usize) -> usize {
    let sent = (0..requests).map(|number| {
        let request = Request::new(method.clone(), format!("/items/{number}"));
        async move { client.send(&request).await.is_ok() }
    });
    let width = client.max_concurrency();
    futures::stream::iter(sent).buffer_unordered(width).filter(|ok| std::future::ready(*ok)).count().await
}
