//! The series of metrics: their names, labels and registration.

use std::collections::HashMap;

use prometheus::core::{Collector, MetricVec, MetricVecBuilder};
use prometheus::{HistogramOpts, HistogramVec, IntCounterVec, IntGaugeVec, Opts, Registry};

const PREFIX: &str = "declarest_operator";

/// The object that a series is about.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    pub namespace: &'a str,
    pub name: &'a str,
}

impl Subject<'_> {
    /// Returns the namespace and the name.
    pub fn key(self) -> (String, String) {
        (self.namespace.to_owned(), self.name.to_owned())
    }
}

/// Returns the value of a gauge that counts.
pub fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Returns the name and help of a metric.
pub fn opts(name: &str, help: &str) -> Opts {
    Opts::new(name, help).namespace(PREFIX)
}

fn labels<'a>(more: &[&'a str]) -> Vec<&'a str> {
    ["namespace", "name"].iter().chain(more).copied().collect()
}

/// Creates and registers a counter with series by object and `more` labels.
pub fn counter(
    registry: &Registry,
    name: &str,
    help: &str,
    more: &[&str],
) -> Result<IntCounterVec, prometheus::Error> {
    registered(registry, IntCounterVec::new(opts(name, help), &labels(more))?)
}

/// Creates and registers a gauge with series by object and `more` labels.
pub fn gauge(
    registry: &Registry,
    name: &str,
    help: &str,
    more: &[&str],
) -> Result<IntGaugeVec, prometheus::Error> {
    registered(registry, IntGaugeVec::new(opts(name, help), &labels(more))?)
}

/// Creates and registers a histogram with series by object and `more` labels.
pub fn histogram(
    registry: &Registry,
    name: &str,
    help: &str,
    more: &[&str],
    buckets: Vec<f64>,
) -> Result<HistogramVec, prometheus::Error> {
    let opts = HistogramOpts::new(name, help).namespace(PREFIX).buckets(buckets);
    registered(registry, HistogramVec::new(opts, &labels(more))?)
}

/// Registers `collector`.
pub fn registered<C: Collector + Clone + 'static>(
    registry: &Registry,
    collector: C,
) -> Result<C, prometheus::Error> {
    registry.register(Box::new(collector.clone()))?;
    Ok(collector)
}

/// Removes the series of one object. The vector removes exact label sets only, so they are read first.
pub fn remove_series<B>(vector: &MetricVec<B>, subject: Subject<'_>, kind: Option<&str>)
where
    B: MetricVecBuilder,
    MetricVec<B>: Collector,
{
    for family in vector.collect() {
        for metric in family.get_metric() {
            let labels: HashMap<&str, &str> =
                metric.get_label().iter().map(|pair| (pair.name(), pair.value())).collect();
            let is_subject = labels.get("namespace") == Some(&subject.namespace)
                && labels.get("name") == Some(&subject.name)
                && kind.is_none_or(|kind| labels.get("kind") == Some(&kind));
            if is_subject {
                // Another task may have removed the series, which is not an error.
                let _ = vector.remove(&labels);
            }
        }
    }
}
