//! What may stand between a client and a server: TLS, and a proxy.
#![allow(dead_code, reason = "no test uses all of it")]

use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use declarest_core::transport::{Pem, TlsConfig};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, SanType};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::WebPkiClientVerifier;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, copy_bidirectional};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio_rustls::TlsAcceptor;

/// A server on a port and a thread of its own; dropping it stops it.
pub struct Server {
    pub address: SocketAddr,
    running: Option<(oneshot::Sender<()>, JoinHandle<()>)>,
}

impl Server {
    fn start<F>(handle: impl Fn(TcpStream) -> F + Send + 'static) -> Server
    where
        F: Future<Output = std::io::Result<()>> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let accept = async move {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                tokio::spawn(handle(stream));
            }
        };
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                tokio::select! {
                    () = accept => {}
                    _ = stopped => {}
                }
            });
        });
        Server { address, running: Some((stop, thread)) }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some((stop, thread)) = self.running.take() {
            // The thread may have ended by itself, then there is no receiver.
            let _ = stop.send(());
            let _ = thread.join();
        }
    }
}

async fn splice(mut client: impl AsyncRead + AsyncWrite + Unpin, to: SocketAddr) -> std::io::Result<()> {
    let mut server = TcpStream::connect(to).await?;
    copy_bidirectional(&mut client, &mut server).await.map(|_| ())
}

/// The authority of servers and clients.
pub struct Authority(CertifiedIssuer<'static, KeyPair>);

/// A certificate with its key: who a server or a client is.
pub struct Identity {
    chain: Vec<CertificateDer<'static>>,
    pem: String,
    key: KeyPair,
}

impl Identity {
    /// The certificate, in PEM.
    pub fn pem(&self) -> &str {
        &self.pem
    }

    /// The key, in PEM.
    pub fn key(&self) -> String {
        self.key.serialize_pem()
    }

    /// `tls`, presenting this.
    pub fn presented(&self, tls: TlsConfig) -> TlsConfig {
        let key = self.key();
        let certificate = Pem { origin: "certificate", text: self.pem().as_bytes() };
        tls.presenting(certificate, Pem { origin: "key", text: key.as_bytes() }).unwrap()
    }

    /// Speaks TLS as this server, and plain text to what is behind. With `clients`, only clients with
    /// a certificate of that authority are admitted.
    pub fn serve(&self, clients: Option<&Authority>, behind: SocketAddr) -> Server {
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(self.key.serialize_der()));
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .unwrap();
        let config = match clients {
            None => config.with_no_client_auth(),
            Some(authority) => {
                let mut roots = rustls::RootCertStore::empty();
                roots.add(authority.0.der().clone()).unwrap();
                let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
                config.with_client_cert_verifier(verifier.build().unwrap())
            }
        };
        let config = config.with_single_cert(self.chain.clone(), key).unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        Server::start(move |stream| {
            let acceptor = acceptor.clone();
            async move {
                match acceptor.accept(stream).into_fallible().await {
                    Ok(client) => splice(client, behind).await,
                    // Reads on until the client leaves: closing over unread data would lose it the alert.
                    Err((_, mut refused)) => {
                        refused.shutdown().await?;
                        tokio::io::copy(&mut refused, &mut tokio::io::sink()).await.map(|_| ())
                    }
                }
            }
        })
    }
}

impl Authority {
    pub fn new() -> Authority {
        Authority(CertifiedIssuer::self_signed(authority_params(), KeyPair::generate().unwrap()).unwrap())
    }

    pub fn pem(&self) -> String {
        self.0.pem()
    }

    /// Settings that trust only this authority.
    pub fn trusted(&self) -> TlsConfig {
        TlsConfig::trusting(Pem { origin: "ca", text: self.pem().as_bytes() }).unwrap()
    }

    /// An authority with a certificate from this one.
    pub fn intermediate(&self) -> Authority {
        let key = KeyPair::generate().unwrap();
        Authority(CertifiedIssuer::signed_by(authority_params(), key, &self.0).unwrap())
    }

    /// Who has this name. The certificates of `between` come with it.
    pub fn identity(&self, name: &str, between: &[&Authority]) -> Identity {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &self.0).unwrap();
        let between = between.iter().map(|authority| authority.0.der().clone());
        let chain = std::iter::once(certificate.der().clone()).chain(between).collect();
        Identity { chain, pem: certificate.pem(), key }
    }

    /// A server whose certificate is that of an authority, and settings that trust only this one.
    pub fn of_server(name: &str) -> (Identity, TlsConfig) {
        let (key, mut params) = (KeyPair::generate().unwrap(), authority_params());
        params.subject_alt_names = vec![SanType::DnsName(name.try_into().unwrap())];
        let certificate = params.self_signed(&key).unwrap();
        let pem = certificate.pem();
        let trusted = TlsConfig::trusting(Pem { origin: "ca", text: pem.as_bytes() }).unwrap();
        (Identity { chain: vec![certificate.der().clone()], pem, key }, trusted)
    }

    /// Speaks TLS under this name, and plain text to what is behind.
    pub fn serve(&self, name: &str, behind: SocketAddr) -> Server {
        self.identity(name, &[]).serve(None, behind)
    }
}

/// How many authorities there have been.
static AUTHORITIES: AtomicUsize = AtomicUsize::new(0);

fn authority_params() -> CertificateParams {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    // Issuers are found by name.
    let number = AUTHORITIES.fetch_add(1, Ordering::Relaxed);
    params.distinguished_name.push(DnType::CommonName, format!("authority {number}"));
    params
}

/// A proxy that notes what it is asked and leads every tunnel and every request to the same server.
pub struct RecordingProxy {
    pub server: Server,
    requests: Arc<Mutex<Vec<String>>>,
}

impl RecordingProxy {
    /// With `login`, as `user:password`, everything else is refused.
    pub fn start(behind: SocketAddr, login: Option<&str>) -> RecordingProxy {
        let requests = Arc::new(Mutex::new(Vec::new()));
        let expected = login.map(|login| format!("Basic {}", STANDARD.encode(login)));
        let noted = Arc::clone(&requests);
        let server = Server::start(move |stream| {
            let (noted, expected) = (Arc::clone(&noted), expected.clone());
            async move { answer(stream, behind, &noted, expected.as_deref()).await }
        });
        RecordingProxy { server, requests }
    }

    /// The first line of each connection that was let through, in order.
    pub fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

async fn answer(
    mut client: TcpStream,
    behind: SocketAddr,
    noted: &Mutex<Vec<String>>,
    expected: Option<&str>,
) -> std::io::Result<()> {
    let head = read_head(&mut client).await?;
    let text = String::from_utf8_lossy(&head).into_owned();
    let login = text.lines().filter_map(|line| line.split_once(": "));
    let mut login = login.filter(|(name, _)| name.eq_ignore_ascii_case("Proxy-Authorization"));
    if expected.is_some() && login.next().map(|(_, value)| value) != expected {
        let refusal = "HTTP/1.1 407 Proxy Authentication Required\r\n\
                       Proxy-Authenticate: Basic realm=\"proxy\"\r\n\
                       Content-Length: 0\r\nConnection: close\r\n\r\n";
        client.write_all(refusal.as_bytes()).await?;
        return client.shutdown().await;
    }
    let line = text.lines().next().unwrap_or_default();
    noted.lock().unwrap().push(line.to_owned());
    if line.starts_with("CONNECT ") {
        client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await?;
        return splice(client, behind).await;
    }
    hand_on(client, &head, behind).await
}

/// Gives the server what was read already, and then the rest.
async fn hand_on(mut client: TcpStream, head: &[u8], to: SocketAddr) -> std::io::Result<()> {
    let mut server = TcpStream::connect(to).await?;
    server.write_all(head).await?;
    copy_bidirectional(&mut client, &mut server).await.map(|_| ())
}

/// The first line and the headers of a request.
async fn read_head(client: &mut TcpStream) -> std::io::Result<Vec<u8>> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(client.read_u8().await?);
    }
    Ok(head)
}

/// Redirects the first request of each connection to `location` if its path starts with `/old`, and leaves the
/// rest to what is behind.
pub fn redirecting(location: String, behind: SocketAddr) -> Server {
    Server::start(move |mut client| {
        let location = location.clone();
        async move {
            let head = read_head(&mut client).await?;
            if head.starts_with(b"GET /old") || head.starts_with(b"GET http://git.test/old") {
                let answer = format!(
                    "HTTP/1.1 301 Moved Permanently\r\nLocation: {location}\r\n\
                     Content-Length: 0\r\nConnection: close\r\n\r\n"
                );
                client.write_all(answer.as_bytes()).await?;
                return client.shutdown().await;
            }
            hand_on(client, &head, behind).await
        }
    })
}
