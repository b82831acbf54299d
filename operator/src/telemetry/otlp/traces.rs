//! Traces: spans of `tracing` that OpenTelemetry exports, and their propagation to managed servers.

use declarest_core::spans;
use http::{HeaderMap, HeaderValue};
use opentelemetry::trace::{Status, TraceContextExt as _, TracerProvider as _};
use opentelemetry_otlp::{Compression, Protocol, SpanExporter, WithExportConfig as _, WithHttpConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{Sampler, SdkTracerProvider};
use tokio::runtime::Handle;
use tracing::{Metadata, Span};
use tracing_opentelemetry::OpenTelemetrySpanExt as _;
use tracing_subscriber::Layer as _;
use tracing_subscriber::filter::filter_fn;

use super::http::Http;
use super::settings::{Endpoint, OtlpError};
use crate::telemetry::logs::SpanLayer;

pub fn provider(
    endpoint: &Endpoint,
    sampler: Sampler,
    resource: &Resource,
    runtime: &Handle,
) -> Result<SdkTracerProvider, OtlpError> {
    let exporter = SpanExporter::builder()
        .with_http()
        .with_http_client(Http::new("traces", endpoint, runtime)?)
        .with_endpoint(endpoint.url.as_str())
        .with_protocol(Protocol::HttpBinary)
        .with_timeout(endpoint.timeout);
    let exporter = if endpoint.gzip { exporter.with_compression(Compression::Gzip) } else { exporter };
    Ok(SdkTracerProvider::builder()
        .with_sampler(sampler)
        .with_resource(resource.clone())
        .with_batch_exporter(exporter.build()?)
        .build())
}

/// Returns the layer that exports spans. It takes no events, because log lines may be long.
pub fn layer(provider: &SdkTracerProvider) -> SpanLayer {
    let tracer = provider.tracer("declarest-operator");
    tracing_opentelemetry::layer()
        .with_tracer(tracer)
        .with_location(false)
        .with_threads(false)
        .with_tracked_inactivity(false)
        .with_context_activation(false)
        .with_filter(filter_fn(is_exported))
        .boxed()
}

fn is_exported(metadata: &Metadata<'_>) -> bool {
    metadata.is_span()
        && (metadata.target() == spans::TARGET || metadata.target().starts_with("declarest_operator"))
}

/// Records the result of the work of the current span.
pub fn conclude(reason: &'static str, failed: bool) {
    let span = Span::current();
    span.set_attribute("declarest.reason", reason);
    if failed {
        span.set_status(Status::error(reason));
    }
}

/// Adds the header of the current span (W3C Trace Context), if traces are exported.
pub fn propagate(headers: &mut HeaderMap) {
    let context = Span::current().context();
    let span = context.span();
    let span = span.span_context();
    if !span.is_valid() {
        return;
    }
    let parent = format!("00-{}-{}-{:02x}", span.trace_id(), span.span_id(), span.trace_flags());
    if let Ok(parent) = HeaderValue::try_from(parent) {
        headers.insert("traceparent", parent);
    }
}
