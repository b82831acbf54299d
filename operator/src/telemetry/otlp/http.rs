//! Requests to the receiver of one signal.

use std::time::{Duration, Instant};

use async_trait::async_trait;
use bytes::Bytes;
use declarest_core::error::with_causes;
use declarest_core::transport::{TransportError, unrestricted_client_builder};
use http::{Request, Response};
use opentelemetry_http::{HttpClient, HttpError};
use parking_lot::Mutex;
use tokio::runtime::Handle;

use super::settings::Endpoint;

/// After a failure is logged, further ones are not logged for this time.
const QUIET: Duration = Duration::from_mins(5);

/// The longest answer that is read.
const ANSWER_LIMIT: usize = 64 << 10;

/// Sends requests to the receiver of one signal. May be used outside of the runtime.
#[derive(Debug)]
pub struct Http {
    client: reqwest::Client,
    runtime: Handle,
    signal: &'static str,
    logged: Mutex<Option<Instant>>,
}

impl Http {
    pub fn new(signal: &'static str, endpoint: &Endpoint, runtime: &Handle) -> Result<Self, TransportError> {
        let builder = unrestricted_client_builder(&endpoint.tls, &endpoint.proxy)
            .default_headers(endpoint.headers.clone())
            .timeout(endpoint.timeout)
            .redirect(reqwest::redirect::Policy::none());
        let client = builder.build().map_err(|error| TransportError::Client(with_causes(&error)))?;
        Ok(Self { client, runtime: runtime.clone(), signal, logged: Mutex::default() })
    }

    fn log(&self, failure: &str) {
        let mut logged = self.logged.lock();
        if logged.is_none_or(|at| at.elapsed() >= QUIET) {
            *logged = Some(Instant::now());
            let quiet = QUIET.as_secs() / 60;
            tracing::warn!(
                signal = self.signal,
                error = failure,
                "cannot export telemetry; further failures are not logged for {quiet} minutes"
            );
        }
    }
}

#[async_trait]
impl HttpClient for Http {
    /// Sends a request. The body of the answer is not needed.
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let client = self.client.clone();
        let request = reqwest::Request::try_from(request)?;
        let sent = self.runtime.spawn(async move {
            let mut answer = client.execute(request).await?;
            let mut length = 0;
            // A connection whose answer was read can be used again.
            while let Some(chunk) = answer.chunk().await?
                && length < ANSWER_LIMIT
            {
                length += chunk.len();
            }
            Ok::<_, reqwest::Error>(answer)
        });
        let answer = sent.await?.map_err(reqwest::Error::without_url);
        let mut answer = answer.inspect_err(|error| self.log(&with_causes(error)))?;
        if !answer.status().is_success() {
            self.log(&format!("the receiver answered with status {}", answer.status().as_u16()));
        }
        let mut response = Response::new(Bytes::new());
        *response.status_mut() = answer.status();
        *response.headers_mut() = std::mem::take(answer.headers_mut());
        Ok(response)
    }
}
