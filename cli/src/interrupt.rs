//! Ctrl-C. Work that only reads ends at once. Work that changes something completes the request in flight and then
//! ends. A second Ctrl-C always ends the process at once.

use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};

use declarest_core::sync::Stop;
use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::error::{Failure, INTERRUPTED};
use crate::output::to_stderr;

/// The reason of [`Stop`] after Ctrl-C.
pub const REASON: &str = "the command was interrupted";

/// What Ctrl-C does now. A global of the process, like the signal.
static RESPONSE: Mutex<Response> = Mutex::new(Response::End);

/// Whether Ctrl-C was pressed, so that scripts can end, too.
static PRESSED: AtomicBool = AtomicBool::new(false);

enum Response {
    /// The work ends at once.
    End,
    /// The work ends after the requests in flight.
    Finish(Stop),
    /// Another program on the terminal handles Ctrl-C.
    Ignore,
}

/// Restores the response to Ctrl-C when it is dropped.
struct Section(Option<Response>);

impl Section {
    fn enter(response: Response) -> Self {
        Self(Some(std::mem::replace(&mut *RESPONSE.lock(), response)))
    }
}

impl Drop for Section {
    fn drop(&mut self) {
        if let Some(before) = self.0.take() {
            *RESPONSE.lock() = before;
        }
    }
}

/// Runs asynchronous work to its end, or until Ctrl-C.
pub fn block_on<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::internal(format!("cannot start threads: {error}")))?;
    let (ended, end) = oneshot::channel();
    let context = runtime.enter();
    // A task of its own, because `work` may block its thread. If the signal cannot be caught, it ends the process.
    let listening = presses().map(|presses| runtime.spawn(listen(presses, ended)));
    drop(context);
    let done = runtime.block_on(async {
        tokio::select! {
            biased;
            done = work => done,
            Ok(()) = end => Err(Failure::Interrupted("interrupted".to_owned())),
        }
    });
    drop(listening);
    // Blocking work that was given up, such as a fetch, must not delay the end.
    runtime.shutdown_background();
    match done {
        Ok(_) if PRESSED.load(Ordering::Relaxed) => {
            Err(Failure::Interrupted("interrupted; the requests in flight were completed".to_owned()))
        }
        done => done,
    }
}

/// Runs asynchronous work that changes nothing, and normally only reads files, on this thread alone. Ctrl-C ends it.
pub fn block_on_local<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::internal(format!("cannot start the runtime: {error}")))?;
    let done = runtime.block_on(work);
    runtime.shutdown_background();
    done
}

/// Catches the signal from now on.
#[cfg(unix)]
fn presses() -> std::io::Result<tokio::signal::unix::Signal> {
    tokio::signal::unix::signal(tokio::signal::unix::SignalKind::interrupt())
}

/// Catches the signal from now on.
#[cfg(windows)]
fn presses() -> std::io::Result<tokio::signal::windows::CtrlC> {
    tokio::signal::windows::ctrl_c()
}

#[cfg(unix)]
type Presses = tokio::signal::unix::Signal;
#[cfg(windows)]
type Presses = tokio::signal::windows::CtrlC;

/// Responds to each Ctrl-C until the process ends.
async fn listen(mut presses: Presses, ended: oneshot::Sender<()>) {
    let mut ended = Some(ended);
    while presses.recv().await.is_some() {
        let response = RESPONSE.lock();
        PRESSED.fetch_or(!matches!(*response, Response::Ignore), Ordering::Relaxed);
        let at_once = match &*response {
            Response::Ignore => false,
            Response::Finish(stop) if stop.reason().is_none() => {
                stop.request(REASON);
                to_stderr("interrupted; waiting for the requests in flight (Ctrl-C again ends at once)");
                false
            }
            Response::Finish(_) => true,
            // The receiver exists as long as the work.
            Response::End => ended.take().is_none_or(|ended| ended.send(()).is_err()),
        };
        drop(response);
        if at_once {
            std::process::exit(i32::from(INTERRUPTED));
        }
    }
}

/// Runs work that changes something to its end. Ctrl-C only requests `stop`.
pub async fn finish<T>(stop: &Stop, work: impl Future<Output = T>) -> T {
    let _section = Section::enter(Response::Finish(stop.clone()));
    work.await
}

/// Runs `work` while another program, which handles Ctrl-C, uses the terminal.
pub fn ignored<T>(work: impl FnOnce() -> T) -> T {
    let _section = Section::enter(Response::Ignore);
    if tokio::runtime::Handle::try_current().is_ok() {
        // `block_on` catches the signal.
        return work();
    }
    // Tokio catches a signal until the process ends. If it cannot, the signal has its usual effect.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let caught = runtime.as_ref().ok().map(|runtime| {
        let _context = runtime.enter();
        presses()
    });
    let done = work();
    drop(caught);
    done
}
