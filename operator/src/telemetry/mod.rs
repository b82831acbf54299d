//! Log lines, metrics and probes.

mod gates;
mod health;
mod listener;
mod logs;
mod metrics;
mod series;

pub use health::{Health, probes};
pub use listener::{ListenError, listen, serve};
pub use logs::install as install_logs;
pub use metrics::{Metrics, SyncCounts, scrape};
pub use series::Subject;
