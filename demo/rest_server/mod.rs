//! An in-memory REST server: what tests and the demo let `DeclaREST` manage.
//!
//! Every path is a collection, a resource, or both. A collection takes the id of a new entry from the
//! body (`id`, else `name`) or assigns one, see [`Config::server_ids`]. The server counts and logs
//! what it is asked, can be edited by hand behind the client's back, and can be set to fail, to be
//! slow or to ask for credentials. It runs on a thread of its own, so that a test may block.
#![allow(dead_code, reason = "each binary that includes this module uses a part of it")]

mod faults;
mod http;
mod journal;
mod pace;
mod pattern;
mod store;
mod versions;

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::Value;
use tokio::net::TcpSocket;
use tokio::sync::oneshot;

pub use faults::{Held, Matcher};
pub use journal::{Counts, Request};
pub use store::{Duplicate, Requirement};

/// How the server behaves. [`Config::default`] suits most tests.
#[derive(Clone, Debug)]
#[allow(clippy::struct_excessive_bools, reason = "independent switches, off by default")]
pub struct Config {
    /// Port 0 lets the system choose one.
    pub listen: SocketAddr,
    /// Collections that exist without any entry; `*` stands for one segment. A collection below a `*`
    /// exists as soon as the resource matched there does. Others come to exist with their first entry.
    pub collections: Vec<String>,
    /// Collections, in the same notation, that assign the ids of their entries.
    pub server_ids: Vec<String>,
    /// Collections, in the same notation, whose entries carry a `version` that the server counts up with
    /// every write.
    pub versioned: Vec<String>,
    /// Collections, in the same notation, whose lists show nothing of an entry but its id.
    pub summaries: Vec<String>,
    /// Whether reads state entity tags, and writes may ask for one.
    pub etags: bool,
    /// Put before the number of an assigned id.
    pub id_prefix: String,
    /// Whether a PUT creates what is absent instead of answering 404.
    pub upsert: bool,
    /// Whether a DELETE of a resource with children answers 409 instead of deleting them too.
    pub refuse_delete_with_children: bool,
    /// Whether a list is `{"items": [...]}` instead of an array.
    pub items_envelope: bool,
    /// What the entries of a collection must have; a body without it gets 422.
    pub requirements: Vec<Requirement>,
    /// Whether the log keeps request bodies.
    pub log_bodies: bool,
    /// Whether `/_control/...` is served, for users without access to the Rust API.
    pub control: bool,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            collections: Vec::new(),
            server_ids: Vec::new(),
            versioned: Vec::new(),
            summaries: Vec::new(),
            etags: false,
            id_prefix: "w-".to_owned(),
            upsert: false,
            refuse_delete_with_children: false,
            items_envelope: false,
            requirements: Vec::new(),
            log_bodies: false,
            control: false,
        }
    }
}

/// What the request handlers share with the handle.
struct Shared {
    config: Config,
    store: Mutex<store::Store>,
    journal: Mutex<journal::Journal>,
    rules: Mutex<faults::Rules>,
    pace: pace::Pace,
}

/// A poisoned lock only means that another test thread failed while it held it.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A running server; dropping it closes the listener and every connection.
pub struct RestServer {
    shared: Arc<Shared>,
    address: SocketAddr,
    running: Option<Running>,
    /// Keeps the port of a stopped server, which the system may give to the next server that asks for any port.
    reserved: Option<TcpSocket>,
}

struct Running {
    stop: oneshot::Sender<()>,
    thread: JoinHandle<()>,
}

impl RestServer {
    /// Binds the address and serves until dropped.
    pub fn start(config: Config) -> io::Result<RestServer> {
        let listener = TcpListener::bind(config.listen)?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            store: Mutex::new(store::Store::new(&config)),
            journal: Mutex::new(journal::Journal::default()),
            rules: Mutex::new(faults::Rules::default()),
            pace: pace::Pace::default(),
            config,
        });
        let running = Some(serve(listener, shared.clone())?);
        Ok(RestServer { shared, address, running, reserved: None })
    }

    /// Refuses connections and cuts open ones until [`RestServer::resume`]; nothing stored is lost.
    pub fn stop(&mut self) {
        if let Some(running) = self.running.take() {
            // The thread may have ended by itself, then there is no receiver.
            let _ = running.stop.send(());
            let _ = running.thread.join();
            // Connections to a socket that does not listen are refused.
            self.reserved = reserve(self.address).ok();
        }
    }

    /// Listens again, on the same port.
    pub fn resume(&mut self) -> io::Result<()> {
        if self.running.is_none() {
            self.running = Some(serve(TcpListener::bind(self.address)?, self.shared.clone())?);
            self.reserved = None;
        }
        Ok(())
    }

    /// The base URL, without a trailing slash.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The resource as stored; not a request.
    pub fn get(&self, path: &str) -> Option<Value> {
        lock(&self.shared.store).get(path)
    }

    /// All resources by path, in path order; not a request.
    pub fn resources(&self) -> Vec<(String, Value)> {
        lock(&self.shared.store).all()
    }

    /// Creates or replaces a resource as another client would, without a check; not a request.
    #[allow(clippy::needless_pass_by_value, reason = "callers make the body in place")]
    pub fn put_by_hand(&self, path: &str, body: Value) {
        lock(&self.shared.store).put_by_hand(path, &body);
    }

    /// Deletes a resource and what is below it; not a request. Returns whether it existed.
    pub fn delete_by_hand(&self, path: &str) -> bool {
        lock(&self.shared.store).delete_by_hand(path)
    }

    /// Names that occur more than once in a collection with assigned ids: the trace of a create that
    /// was sent twice.
    pub fn duplicates(&self) -> Vec<Duplicate> {
        lock(&self.shared.store).duplicates()
    }

    /// How often each method and path was asked since the start or the last reset.
    pub fn counts(&self) -> Counts {
        lock(&self.shared.journal).counts()
    }

    /// Forgets counts, log and peak. Sequence numbers go on.
    pub fn reset_counts(&self) {
        lock(&self.shared.journal).reset();
    }

    /// Every request since the start or the last reset, in the order of arrival.
    pub fn log(&self) -> Vec<Request> {
        lock(&self.shared.journal).log()
    }

    /// The part of the log that changes something, or tried to.
    pub fn writes(&self) -> Vec<Request> {
        self.log().into_iter().filter(Request::is_write).collect()
    }

    /// The most requests that were open at one moment.
    pub fn peak_concurrency(&self) -> usize {
        lock(&self.shared.journal).peak()
    }

    /// How many requests are open now.
    pub fn open(&self) -> usize {
        lock(&self.shared.journal).open()
    }

    /// Lets matching requests wait, before they have any effect, until the returned value is dropped.
    pub fn hold(&self, matcher: Matcher) -> Held {
        lock(&self.shared.rules).hold(matcher)
    }

    /// Answers the next `times` matching requests with `status` and does nothing else.
    pub fn fail(&self, matcher: Matcher, status: u16, times: usize) {
        lock(&self.shared.rules).add_failure(matcher, status, times, faults::Moment::Before);
    }

    /// Like [`RestServer::fail`], but the request takes effect first: the answer that got lost.
    pub fn fail_after_effect(&self, matcher: Matcher, status: u16, times: usize) {
        lock(&self.shared.rules).add_failure(matcher, status, times, faults::Moment::After);
    }

    /// Cuts the answers to the next `times` matching requests off; they do nothing else.
    pub fn cut(&self, matcher: Matcher, times: usize) {
        self.fail(matcher, faults::CUT, times);
    }

    /// Like [`RestServer::cut`], but the request takes effect first.
    pub fn cut_after_effect(&self, matcher: Matcher, times: usize) {
        self.fail_after_effect(matcher, faults::CUT, times);
    }

    /// Ends all failures.
    pub fn clear_failures(&self) {
        lock(&self.shared.rules).clear_failures();
    }

    /// Waits this long before each answer.
    pub fn latency(&self, latency: Duration) {
        lock(&self.shared.rules).latency = latency;
    }

    /// Lets the list of a collection show an empty first page and say that there is more, but not where.
    pub fn paginate(&self, collection: &str) {
        lock(&self.shared.rules).paginated = Some(collection.to_owned());
    }

    /// Takes requests without credentials again.
    pub fn require_nothing(&self) {
        lock(&self.shared.rules).require_nothing();
    }

    /// Answers 401 to requests without these basic credentials.
    pub fn require_basic(&self, user: &str, password: &str) {
        lock(&self.shared.rules).require_basic(user, password);
    }

    /// Answers 401 to requests without this header and value. A second call for the same name replaces
    /// the value.
    pub fn require_header(&self, name: &str, value: &str) {
        lock(&self.shared.rules).require_header(name, value);
    }
}

impl Drop for RestServer {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Binds the address, and does not listen.
fn reserve(address: SocketAddr) -> io::Result<TcpSocket> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    // Some connections of the server before may not be closed yet.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    Ok(socket)
}

fn serve(listener: TcpListener, shared: Arc<Shared>) -> io::Result<Running> {
    listener.set_nonblocking(true)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let listener = {
        let _entered = runtime.enter();
        tokio::net::TcpListener::from_std(listener)?
    };
    let (stop, stopped) = oneshot::channel::<()>();
    let thread = std::thread::Builder::new().name("rest-server".to_owned()).spawn(move || {
        // Ends on a message and also when the handle is gone. Dropping the runtime cuts connections.
        runtime.block_on(async {
            tokio::select! {
                _ = axum::serve(listener, http::router(shared)) => {}
                _ = stopped => {}
            }
        });
    })?;
    Ok(Running { stop, thread })
}
