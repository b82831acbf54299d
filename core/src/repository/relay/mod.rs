//! A relay to http and https remotes, for features that libgit2 lacks with OpenSSL: a client certificate, configured
//! CAs for the server's certificate chain, and plain http through a proxy.
//!
//! libgit2 talks plain HTTP to a [`Relay`] on the loopback interface, which talks to the remote. A relay serves one
//! fetch or push. Its random token must be in the path of every request, so that other users of the machine cannot
//! use the credentials that the relay adds.

mod failure;
mod forward;

use std::net::TcpListener;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Instant;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use ring::rand::{SecureRandom, SystemRandom};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;
use url::{Position, Url};

use self::forward::Forwarder;
use super::{Remote, RepositoryError};

/// The length of the random token in bytes: 128 bits.
const TOKEN_BYTES: usize = 16;

/// Forwards the requests of one fetch or push to its remote, until it is dropped or its deadline passes.
pub(super) struct Relay {
    /// The address in place of the remote's origins, see [`forward::Origin`]: `http://127.0.0.1:PORT/TOKEN`.
    base: String,
    target: Url,
    forwarder: Arc<Forwarder>,
    running: Option<(oneshot::Sender<()>, JoinHandle<()>)>,
}

impl Relay {
    /// Starts a relay to `remote`, whose URL is `target`. `timeout` is the error for an expired deadline.
    pub fn start(
        remote: &Remote,
        target: &Url,
        deadline: Instant,
        timeout: RepositoryError,
    ) -> Result<Self, RepositoryError> {
        let failed = |reason: String| RepositoryError::Git {
            action: format!("start the relay to {}", remote.url),
            reason,
        };
        let mut token = [0; TOKEN_BYTES];
        SystemRandom::new().fill(&mut token).map_err(|_| failed("no random numbers".to_owned()))?;
        let listener = TcpListener::bind("127.0.0.1:0").map_err(|error| failed(error.to_string()))?;
        let address = listener.local_addr().map_err(|error| failed(error.to_string()))?;
        let base = format!("http://{address}/{}", URL_SAFE_NO_PAD.encode(token));
        let forwarder = Forwarder::new(remote, target, &base).map_err(failed)?;
        let forwarder = Arc::new(forwarder);
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| failed(error.to_string()))?;
        let (stop, stopped) = oneshot::channel();
        let served = Arc::clone(&forwarder);
        let thread = thread::Builder::new().name("git-relay".to_owned()).spawn(move || {
            run(runtime, listener, &served, deadline, timeout, stopped);
        });
        let thread = thread.map_err(|error| failed(error.to_string()))?;
        Ok(Self { base, target: target.clone(), forwarder, running: Some((stop, thread)) })
    }

    /// Returns the address of the remote for libgit2.
    pub fn address(&self) -> Url {
        let path = &self.target[Position::BeforePath..];
        let address = format!("{}/{}{path}", self.base, self.target.scheme());
        // Both parts come from URLs, so the result is a URL.
        Url::parse(&address).unwrap_or_else(|_| self.target.clone())
    }

    /// Returns the first error of a forwarded request, once.
    pub fn failure(&self) -> Option<RepositoryError> {
        self.forwarder.failure.take()
    }

    /// Replaces the relay's addresses with those of the remote in a text of libgit2.
    pub fn hide(&self, text: &str) -> String {
        self.forwarder.hide(text)
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        if let Some((stop, thread)) = self.running.take() {
            // After the deadline the thread has already ended.
            let _ = stop.send(());
            let _ = thread.join();
        }
    }
}

/// Serves until `stopped` or the deadline. All connections end then.
fn run(
    runtime: Runtime,
    listener: TcpListener,
    forwarder: &Arc<Forwarder>,
    deadline: Instant,
    timeout: RepositoryError,
    stopped: oneshot::Receiver<()>,
) {
    runtime.block_on(async {
        tokio::select! {
            served = accept(listener, forwarder) => {
                if let Err(error) = served {
                    forwarder.failure.keep(forwarder.network(&error.to_string()));
                }
            }
            _ = stopped => {}
            () = tokio::time::sleep_until(deadline.into()) => forwarder.failure.keep(timeout),
        }
    });
    // Does not wait for running DNS lookups.
    runtime.shutdown_background();
}

async fn accept(listener: TcpListener, forwarder: &Arc<Forwarder>) -> std::io::Result<()> {
    listener.set_nonblocking(true)?;
    let listener = tokio::net::TcpListener::from_std(listener)?;
    loop {
        let (stream, _) = listener.accept().await?;
        let forwarder = Arc::clone(forwarder);
        let service = service_fn(move |request| {
            let forwarder = Arc::clone(&forwarder);
            async move { Ok::<_, std::convert::Infallible>(forwarder.answer(request).await) }
        });
        tokio::spawn(async move {
            // libgit2 reports broken connections.
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

#[cfg(test)]
mod tests;
