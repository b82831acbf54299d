//! A receiver of traces and metrics.

use std::io::Read as _;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value};
use opentelemetry_proto::tonic::metrics::v1::Metric;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;

/// What the receiver does with each request.
#[derive(Clone, Copy)]
pub enum Behavior {
    Accept,
    Fail,
    Hang,
}

pub struct Receiver {
    pub port: u16,
    shared: Arc<Shared>,
}

struct Shared {
    behavior: Behavior,
    received: Mutex<Received>,
}

/// All that was received, in order.
#[derive(Clone, Default)]
pub struct Received {
    pub spans: Vec<Span>,
    pub metrics: Vec<Metric>,
    /// The attributes of the resources, as text.
    pub resources: Vec<String>,
    pub headers: Vec<HeaderMap>,
    /// The decompressed bodies.
    pub bodies: Vec<Vec<u8>>,
}

impl Receiver {
    pub async fn start(behavior: Behavior) -> Self {
        let shared = Arc::new(Shared { behavior, received: Mutex::default() });
        let router = Router::new()
            .route("/v1/traces", post(traces))
            .route("/v1/metrics", post(metrics))
            .with_state(Arc::clone(&shared));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async { axum::serve(listener, router).await });
        Self { port, shared }
    }

    pub fn received(&self) -> Received {
        self.shared.received.lock().unwrap().clone()
    }
}

async fn traces(State(shared): State<Arc<Shared>>, headers: HeaderMap, body: Bytes) -> StatusCode {
    let decode = |body: &[u8], received: &mut Received| {
        for resource in ExportTraceServiceRequest::decode(body).unwrap().resource_spans {
            received.resources.push(texts(&resource.resource.unwrap().attributes));
            received.spans.extend(resource.scope_spans.into_iter().flat_map(|scope| scope.spans));
        }
    };
    shared.receive(headers, &body, decode).await
}

async fn metrics(State(shared): State<Arc<Shared>>, headers: HeaderMap, body: Bytes) -> StatusCode {
    let decode = |body: &[u8], received: &mut Received| {
        for resource in ExportMetricsServiceRequest::decode(body).unwrap().resource_metrics {
            received.resources.push(texts(&resource.resource.unwrap().attributes));
            received.metrics.extend(resource.scope_metrics.into_iter().flat_map(|scope| scope.metrics));
        }
    };
    shared.receive(headers, &body, decode).await
}

impl Shared {
    async fn receive(
        &self,
        headers: HeaderMap,
        body: &[u8],
        decode: impl Fn(&[u8], &mut Received),
    ) -> StatusCode {
        let mut decompressed = Vec::new();
        if headers.get("content-encoding").is_some_and(|encoding| encoding == "gzip") {
            flate2::read::GzDecoder::new(body).read_to_end(&mut decompressed).unwrap();
        } else {
            decompressed.extend_from_slice(body);
        }
        {
            let mut received = self.received.lock().unwrap();
            decode(&decompressed, &mut received);
            received.headers.push(headers);
            received.bodies.push(decompressed);
        }
        match self.behavior {
            Behavior::Accept => StatusCode::OK,
            Behavior::Fail => StatusCode::INTERNAL_SERVER_ERROR,
            Behavior::Hang => std::future::pending().await,
        }
    }
}

/// The value of an attribute; empty if there is none.
pub fn attribute(attributes: &[KeyValue], name: &str) -> String {
    let found = attributes.iter().find(|attribute| attribute.key == name);
    match found.and_then(|attribute| attribute.value.clone()?.value) {
        Some(any_value::Value::StringValue(text)) => text,
        Some(any_value::Value::IntValue(number)) => number.to_string(),
        Some(other) => format!("{other:?}"),
        None => String::new(),
    }
}

fn texts(attributes: &[KeyValue]) -> String {
    let text = |pair: &KeyValue| format!("{}={}", pair.key, attribute(attributes, &pair.key));
    attributes.iter().map(text).collect::<Vec<_>>().join("\n")
}
