//! Log lines, metrics, traces and probes.

mod concealed;
mod gates;
mod health;
mod logs;
mod metrics;
mod otlp;
mod queues;
mod readers;
mod series;
mod server;

pub use concealed::{conceal, remember};
pub use health::{Health, probes};
pub use logs::install as install_logs;
pub use metrics::{Metrics, SyncCounts, scrape};
pub use otlp::{
    Exporters, MetricsExporter, OtlpError, conclude as conclude_span, propagate as propagate_trace,
};
pub use readers::Readers;
pub use series::Subject;
pub use server::server;
