//! The HTTP client of one managed server: addresses, authentication, throttling, retries and decoding.

mod auth;
mod client;
mod error;
mod exchange_trace;
mod gate;
mod header;
mod oauth2;
mod observer;
mod openapi;
mod redaction;
mod request;
mod response;
pub mod trace;
mod wire;

pub use auth::{Auth, HeaderCredential};
pub use client::{Client, Settings};
pub use error::{Sent, ServerError};
pub use gate::{DEFAULT_CONCURRENCY, Gate, GateStatus, MAX_CONCURRENCY, Throttling};
pub use oauth2::{Grant, OAuth2, TokenRenewal};
pub use observer::{RequestObserver, TokenNeed};
pub use openapi::{FetchedOpenApi, OpenApiLoadError, OpenApiSource, download};
pub(crate) use request::percent_decoded;
pub use request::{BaseUrl, Body, Request};
pub use response::{Detour, Paging, Response};
pub use trace::Trace;

pub use crate::transport::NextLink;
