//! Metrics: the Prometheus registry, converted to OTLP at each export. So there is one source of all metrics.

use std::io::Write as _;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::Request;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use opentelemetry_http::HttpClient as _;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::common::v1::{InstrumentationScope, KeyValue};
use opentelemetry_proto::tonic::metrics::v1::{
    AggregationTemporality, Gauge, Histogram, HistogramDataPoint, Metric, NumberDataPoint, ResourceMetrics,
    ScopeMetrics, Sum, metric, number_data_point,
};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::transform::common::tonic::ResourceAttributesWithSchema;
use prometheus::proto::{self, MetricFamily, MetricType};
use prost::Message as _;
use tokio::runtime::Handle;
use tokio::time::Instant;

use super::http::Http;
use super::settings::{Endpoint, OtlpError};
use crate::telemetry::Metrics;

/// Exports the metrics of the process. Clones share it.
#[derive(Clone)]
pub struct MetricsExporter(Arc<Exporter>);

struct Exporter {
    http: Http,
    endpoint: Endpoint,
    interval: Duration,
    resource: Resource,
    started: SystemTime,
    metrics: OnceLock<Arc<Metrics>>,
}

impl MetricsExporter {
    pub fn new(
        endpoint: Endpoint,
        interval: Duration,
        resource: &opentelemetry_sdk::Resource,
        runtime: &Handle,
    ) -> Result<Self, OtlpError> {
        let attributes = ResourceAttributesWithSchema::from(resource).attributes.0;
        Ok(Self(Arc::new(Exporter {
            http: Http::new("metrics", &endpoint, runtime)?,
            endpoint,
            interval,
            resource: Resource { attributes, ..Resource::default() },
            started: SystemTime::now(),
            metrics: OnceLock::new(),
        })))
    }

    /// Exports `metrics` at each interval; does not end.
    pub async fn run(self, metrics: Arc<Metrics>) {
        // The process has one registry.
        let _ = self.0.metrics.set(metrics);
        let mut ticks = tokio::time::interval_at(Instant::now() + self.0.interval, self.0.interval);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            self.export().await;
        }
    }

    /// Exports the current values. They are totals, so the next export makes up for one that fails.
    pub async fn export(&self) {
        let Some(metrics) = self.0.metrics.get() else { return };
        let scope = ScopeMetrics {
            scope: Some(InstrumentationScope {
                name: "declarest-operator".to_owned(),
                version: env!("CARGO_PKG_VERSION").to_owned(),
                ..InstrumentationScope::default()
            }),
            metrics: converted(&metrics.gather(), self.0.started, SystemTime::now()),
            ..ScopeMetrics::default()
        };
        let resource_metrics = ResourceMetrics {
            resource: Some(self.0.resource.clone()),
            scope_metrics: vec![scope],
            ..ResourceMetrics::default()
        };
        let request = ExportMetricsServiceRequest { resource_metrics: vec![resource_metrics] };
        // The client logs failures.
        if let Ok(request) = self.0.request(&request.encode_to_vec()) {
            let _ = self.0.http.send_bytes(request).await;
        }
    }
}

impl Exporter {
    fn request(&self, body: &[u8]) -> Result<Request<Bytes>, http::Error> {
        let request = Request::post(self.endpoint.url.as_str());
        let request = request.header(CONTENT_TYPE, "application/x-protobuf");
        if self.endpoint.gzip
            && let Ok(compressed) = gzip(body)
        {
            return request.header(CONTENT_ENCODING, "gzip").body(compressed.into());
        }
        request.body(Bytes::copy_from_slice(body))
    }
}

fn gzip(body: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(body)?;
    encoder.finish()
}

/// Converts families of metrics, with the names that Prometheus shows.
fn converted(families: &[MetricFamily], started: SystemTime, now: SystemTime) -> Vec<Metric> {
    let times = Times { start: nanoseconds(started), now: nanoseconds(now) };
    let one = |family: &MetricFamily| {
        let points = family.get_metric().iter();
        let data = match family.get_field_type() {
            MetricType::COUNTER => metric::Data::Sum(Sum {
                data_points: points
                    .map(|point| times.number(point, point.get_counter().get_value()))
                    .collect(),
                aggregation_temporality: AggregationTemporality::Cumulative.into(),
                is_monotonic: true,
            }),
            MetricType::GAUGE => metric::Data::Gauge(Gauge {
                data_points: points.map(|point| times.number(point, point.get_gauge().get_value())).collect(),
            }),
            MetricType::HISTOGRAM => metric::Data::Histogram(Histogram {
                data_points: points.map(|point| times.histogram(point)).collect(),
                aggregation_temporality: AggregationTemporality::Cumulative.into(),
            }),
            // The registry has none.
            MetricType::SUMMARY | MetricType::UNTYPED => return None,
        };
        let (name, description) = (family.name().to_owned(), family.help().to_owned());
        Some(Metric { name, description, data: Some(data), ..Metric::default() })
    };
    families.iter().filter_map(one).collect()
}

fn nanoseconds(time: SystemTime) -> u64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// The times of data points, in nanoseconds since the epoch.
struct Times {
    start: u64,
    now: u64,
}

impl Times {
    fn number(&self, point: &proto::Metric, value: f64) -> NumberDataPoint {
        NumberDataPoint {
            attributes: attributes(point),
            start_time_unix_nano: self.start,
            time_unix_nano: self.now,
            value: Some(number_data_point::Value::AsDouble(value)),
            ..NumberDataPoint::default()
        }
    }

    /// Converts a histogram. The buckets of Prometheus are cumulative and end before infinity.
    fn histogram(&self, point: &proto::Metric) -> HistogramDataPoint {
        let histogram = point.get_histogram();
        let finite = histogram.get_bucket().iter().filter(|bucket| bucket.upper_bound().is_finite());
        let (explicit_bounds, mut cumulative): (Vec<f64>, Vec<u64>) =
            finite.map(|bucket| (bucket.upper_bound(), bucket.cumulative_count())).unzip();
        cumulative.push(histogram.get_sample_count());
        let below = std::iter::once(0).chain(cumulative.iter().copied());
        HistogramDataPoint {
            attributes: attributes(point),
            start_time_unix_nano: self.start,
            time_unix_nano: self.now,
            count: histogram.get_sample_count(),
            sum: Some(histogram.get_sample_sum()),
            bucket_counts: cumulative
                .iter()
                .zip(below)
                .map(|(count, below)| count.saturating_sub(below))
                .collect(),
            explicit_bounds,
            ..HistogramDataPoint::default()
        }
    }
}

fn attributes(point: &proto::Metric) -> Vec<KeyValue> {
    let label = |label: &proto::LabelPair| {
        let value = opentelemetry::Value::from(label.value().to_owned());
        KeyValue { key: label.name().to_owned(), value: Some(value.into()), ..KeyValue::default() }
    };
    point.get_label().iter().map(label).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::Subject;

    #[test]
    fn buckets_of_histograms_count_their_own_values() {
        let metrics = Metrics::new().unwrap();
        let policy = Subject { namespace: "team", name: "p" };
        for milliseconds in [1, 15, 16, 700_000] {
            metrics.policy_reconciled(policy, true, "Ready", Duration::from_millis(milliseconds));
        }
        let all = converted(&metrics.gather(), SystemTime::UNIX_EPOCH, SystemTime::UNIX_EPOCH);
        let named = |name: &str| all.iter().find(|metric| metric.name.ends_with(name)).unwrap().data.as_ref();
        let Some(metric::Data::Histogram(found)) = named("syncpolicy_reconcile_duration_seconds") else {
            unreachable!("it is a histogram")
        };
        let point = &found.data_points[0];
        assert_eq!(point.explicit_bounds.len() + 1, point.bucket_counts.len());
        assert_eq!(point.bucket_counts[..3], [1, 2, 0]);
        assert_eq!((point.bucket_counts.last(), point.count), (Some(&1), 4));
        let Some(metric::Data::Sum(found)) = named("syncpolicy_reconcile_total") else {
            unreachable!("it is a counter")
        };
        assert_eq!(found.data_points[0].value, Some(number_data_point::Value::AsDouble(4.0)));
        assert!(matches!(named("leader"), Some(metric::Data::Gauge(_))));
    }
}
