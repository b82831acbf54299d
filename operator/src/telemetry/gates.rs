//! Gauges of the gates of managed servers. A gate is read when metrics are scraped.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use declarest_core::server::Gate;
use parking_lot::Mutex;
use prometheus::IntGaugeVec;
use prometheus::core::{Collector, Desc};
use prometheus::proto::MetricFamily;

use super::series::{Subject, count, opts};

/// The known gates. Clones share them.
#[derive(Clone, Debug)]
pub struct Gates {
    known: Arc<Mutex<Known>>,
    limit: IntGaugeVec,
    in_flight: IntGaugeVec,
    breaker_open: IntGaugeVec,
}

/// Gates by namespace and name of the server. A gate that is no longer in use has no series.
type Known = HashMap<(String, String), Weak<Gate>>;

impl Gates {
    pub fn new() -> Result<Self, prometheus::Error> {
        let gauge = |name, help| IntGaugeVec::new(opts(name, help), &["namespace", "name"]);
        Ok(Self {
            known: Arc::default(),
            limit: gauge("managed_server_concurrency_limit", "Requests that may run at once now")?,
            in_flight: gauge("managed_server_requests_in_flight", "Requests that run")?,
            breaker_open: gauge(
                "managed_server_breaker_open",
                "1 while requests fail without contacting the server, because it could not be reached",
            )?,
        })
    }

    /// Publishes this gate as the gate of `server`, in place of a previous one.
    pub fn show(&self, server: Subject<'_>, gate: &Arc<Gate>) {
        self.known.lock().insert(server.key(), Arc::downgrade(gate));
    }

    pub fn forget(&self, server: Subject<'_>) {
        self.known.lock().remove(&server.key());
    }

    fn gauges(&self) -> [&IntGaugeVec; 3] {
        [&self.limit, &self.in_flight, &self.breaker_open]
    }
}

impl Collector for Gates {
    fn desc(&self) -> Vec<&Desc> {
        self.gauges().into_iter().flat_map(Collector::desc).collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        // The lock is held to the end, because concurrent scrapes would remove each other's series.
        let known = self.known.lock();
        self.gauges().into_iter().for_each(IntGaugeVec::reset);
        for ((namespace, name), gate) in known.iter() {
            let Some(gate) = gate.upgrade() else { continue };
            let status = gate.status();
            let labels = [namespace, name];
            self.limit.with_label_values(&labels).set(count(status.concurrency_limit));
            self.in_flight.with_label_values(&labels).set(count(status.in_flight));
            self.breaker_open.with_label_values(&labels).set(i64::from(status.breaker_open));
        }
        self.gauges().into_iter().flat_map(Collector::collect).collect()
    }
}
