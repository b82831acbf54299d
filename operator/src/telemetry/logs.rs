//! Log lines on stderr.

use tracing::level_filters::LevelFilter;
use tracing_subscriber::Layer as _;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::args::{LogFormat, LogLevel};

/// Starts logging for the whole process; a second call has no effect.
///
/// Only our own crates follow `level`. Libraries log warnings and errors, whatever the level: at debug
/// some of them print headers and URLs, which may carry credentials.
pub fn install(level: LogLevel, format: LogFormat) {
    let level = level_filter(level);
    let filter = Targets::new()
        .with_default(level.min(LevelFilter::WARN))
        .with_target("declarest_operator", level)
        .with_target("declarest_core", level);
    let layer = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    let layer = match format {
        LogFormat::Json => layer.json().flatten_event(true).with_span_list(false).boxed(),
        LogFormat::Text => layer.with_ansi(false).boxed(),
    };
    // Fails only if logging is already on, which is what was asked for.
    let _ = tracing_subscriber::registry().with(layer.with_filter(filter)).try_init();
}

fn level_filter(level: LogLevel) -> LevelFilter {
    match level {
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    }
}
