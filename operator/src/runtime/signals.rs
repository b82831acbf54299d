//! Handles SIGTERM and SIGINT.

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::RuntimeError;

/// Returns a token that the first SIGTERM or SIGINT cancels. The second signal ends the process at once.
pub fn stop_on_signal() -> Result<CancellationToken, RuntimeError> {
    let mut terminate = signal(SignalKind::terminate()).map_err(RuntimeError::Signals)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(RuntimeError::Signals)?;
    let stop = CancellationToken::new();
    tokio::spawn({
        let stop = stop.clone();
        async move {
            either(&mut terminate, &mut interrupt).await;
            tracing::info!("stopping; a second signal ends the process at once");
            stop.cancel();
            either(&mut terminate, &mut interrupt).await;
            std::process::exit(1);
        }
    });
    Ok(stop)
}

async fn either(first: &mut Signal, second: &mut Signal) {
    tokio::select! {
        _ = first.recv() => {}
        _ = second.recv() => {}
    }
}
