//! Export of traces and metrics by OTLP over HTTP. Without the variables that enable it, nothing here exists.
//!
//! ```text
//! settings   the environment variables
//! http       requests to the receiver, and a log line about failures now and then
//! traces     spans: the layer of `tracing`, and `traceparent`
//! metrics    the Prometheus registry as OTLP
//! ```

mod http;
mod metrics;
mod settings;
mod traces;

use std::time::Duration;

use opentelemetry::KeyValue;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::resource::{EnvResourceDetector, ResourceDetector, TelemetryResourceDetector};
use opentelemetry_sdk::trace::SdkTracerProvider;
use tokio::runtime::Handle;

use super::logs::SpanLayer;
use settings::Settings;

pub use metrics::MetricsExporter;
pub use settings::OtlpError;
pub use traces::{conclude, propagate};

/// The time that the last export has at shutdown.
const FLUSH: Duration = Duration::from_secs(5);

/// The exporters of the process.
pub struct Exporters {
    traces: Option<SdkTracerProvider>,
    metrics: Option<MetricsExporter>,
}

impl Exporters {
    /// Creates the exporters that the environment enables. They send requests on `runtime`.
    pub fn from_environment(runtime: &Handle) -> Result<Self, OtlpError> {
        let variable = |name: &str| std::env::var(name).ok();
        let settings = Settings::read(&variable)?;
        let resource = resource(&variable);
        let traces =
            settings.traces.map(|endpoint| traces::provider(&endpoint, settings.sampler, &resource, runtime));
        let interval = settings.metrics_interval;
        let metrics =
            settings.metrics.map(|endpoint| MetricsExporter::new(endpoint, interval, &resource, runtime));
        Ok(Self { traces: traces.transpose()?, metrics: metrics.transpose()? })
    }

    /// Returns the layer that makes traces of spans.
    pub fn layer(&self) -> Option<SpanLayer> {
        self.traces.as_ref().map(traces::layer)
    }

    pub fn metrics(&self) -> Option<MetricsExporter> {
        self.metrics.clone()
    }

    /// Exports the rest, for at most 5 s.
    pub async fn flush(self) {
        let traces = tokio::task::spawn_blocking(move || {
            self.traces.map_or(Ok(()), |provider| provider.shutdown_with_timeout(FLUSH))
        });
        let metrics = async {
            if let Some(metrics) = &self.metrics {
                metrics.export().await;
            }
        };
        let all = async { tokio::join!(traces, metrics) };
        let flushed = tokio::time::timeout(FLUSH, all).await;
        if !matches!(flushed, Ok((Ok(Ok(())), ()))) {
            tracing::warn!("the last traces and metrics could not be exported");
        }
    }
}

/// Returns the description of this process. The environment takes precedence over the defaults.
fn resource(variable: &impl Fn(&str) -> Option<String>) -> Resource {
    let set = |name: &str| variable(name).filter(|value| !value.is_empty());
    // The name of the pod, so that the series of replicas differ.
    let instance = set("HOSTNAME").unwrap_or_else(|| uuid::Uuid::new_v4().to_string());
    let defaults = [
        KeyValue::new("service.name", "declarest-operator"),
        KeyValue::new("service.version", env!("CARGO_PKG_VERSION")),
        KeyValue::new("service.instance.id", instance),
    ];
    let detectors: [Box<dyn ResourceDetector>; 2] =
        [Box::new(TelemetryResourceDetector), Box::new(EnvResourceDetector::new())];
    let name = set("OTEL_SERVICE_NAME").map(|name| KeyValue::new("service.name", name));
    Resource::builder_empty()
        .with_attributes(defaults)
        .with_detectors(&detectors)
        .with_attributes(name)
        .build()
}
