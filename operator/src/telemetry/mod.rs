//! Log lines, metrics and probes.

mod gates;
mod health;
mod logs;
mod metrics;
mod queues;
mod series;
mod server;

pub use health::{Health, probes};
pub use logs::install as install_logs;
pub use metrics::{Metrics, SyncCounts, scrape};
pub use series::Subject;
pub use server::server;
