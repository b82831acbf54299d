//! Log lines on stderr.

use std::{fmt, io};

use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Map, Value};
use tracing::level_filters::LevelFilter;
use tracing::{Event, Subscriber};
use tracing_serde::fields::AsMap as _;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::format::{JsonFields, Writer};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, FormattedFields};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{Layer, Registry};

use super::concealed::{LogWriter, conceal_in_log};
use crate::args::LogFormat;

/// A layer that exports spans.
pub type SpanLayer = Box<dyn Layer<Registry> + Send + Sync>;

/// Starts logging for the whole process, and `spans` with it; a second call has no effect.
///
/// Only the crates of DeclaREST use `level`. Other libraries always log warnings and errors only, because some of
/// them print headers and URLs at debug level, which may contain credentials.
pub fn install(level: LevelFilter, format: LogFormat, spans: Option<SpanLayer>) {
    // Fails only if logging has already started.
    let _ = subscriber(level, format, spans).try_init();
}

fn subscriber(
    level: LevelFilter,
    format: LogFormat,
    spans: Option<SpanLayer>,
) -> impl Subscriber + Send + Sync {
    let filter = Targets::new()
        .with_default(level.min(LevelFilter::WARN))
        .with_target("declarest_operator", level)
        .with_target("declarest_core", level);
    let layer = tracing_subscriber::fmt::layer();
    let layer = match format {
        // A value that equals a number or a level of a line would make it invalid, so only texts are concealed.
        LogFormat::Json => {
            layer.with_writer(io::stderr).fmt_fields(JsonFields::new()).event_format(JsonLines).boxed()
        }
        LogFormat::Text => layer.with_writer(|| LogWriter).with_ansi(false).boxed(),
    };
    let logs = layer.with_filter(filter).boxed();
    let layers: Vec<SpanLayer> = [Some(logs), spans].into_iter().flatten().collect();
    tracing_subscriber::registry().with(layers)
}

/// Prints one flat JSON object per line, with the fields of the event and of its spans. `name` is then the name of
/// the object only; in the standard format it is also that of the span.
struct JsonLines;

impl<S, N> FormatEvent<S, N> for JsonLines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let metadata = event.metadata();
        let mut fields = Map::new();
        for span in context.event_scope().into_iter().flat_map(tracing_subscriber::registry::Scope::from_root)
        {
            let extensions = span.extensions();
            let of_span = extensions.get::<FormattedFields<N>>().map(|formatted| formatted.fields.as_str());
            if let Some(Ok(Value::Object(of_span))) = of_span.map(serde_json::from_str) {
                fields.extend(of_span);
            }
        }
        if let Ok(Value::Object(of_event)) = serde_json::to_value(event.field_map()) {
            fields.extend(of_event);
        }
        // Before they are encoded: a value may have characters that JSON escapes. The fields that name an object are not
        // from its spec, and users select lines by them.
        for (name, field) in &mut fields {
            if let Value::String(text) = field
                && !["controller", "namespace", "name"].contains(&name.as_str())
            {
                *text = conceal_in_log(text).into_owned();
            }
        }
        let line = Line {
            timestamp: Timestamp::now().to_string(),
            level: metadata.level().as_str().to_lowercase(),
            message: fields.remove("message").unwrap_or_default(),
            fields,
            target: metadata.target(),
        };
        writeln!(writer, "{}", serde_json::to_string(&line).map_err(|_| fmt::Error)?)
    }
}

/// A line, with the fields in reading order.
#[derive(Serialize)]
struct Line<'a> {
    timestamp: String,
    level: String,
    message: Value,
    #[serde(flatten)]
    fields: Map<String, Value>,
    target: &'a str,
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::{Arc, Mutex};

    use serde_json::json;
    use tracing::subscriber::Interest;

    use super::super::remember;
    use super::*;

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    /// What a subscriber answers for a span, before any other subscriber of the process is asked. `is_disabled` of a
    /// span would depend on the subscribers of tests that run at the same time.
    fn interest(subscriber: &impl Subscriber, span: fn() -> tracing::Span) -> Interest {
        let metadata =
            tracing::subscriber::with_default(tracing_subscriber::registry(), || span().metadata());
        subscriber.register_callsite(metadata.expect("a registry enables all spans"))
    }

    #[test]
    fn spans_of_traces_are_disabled_unless_they_are_exported() {
        let trace = || tracing::span!(target: declarest_core::spans::TARGET, tracing::Level::INFO, "plan");
        let log = || tracing::info_span!("reconcile");
        let off = subscriber(LevelFilter::TRACE, LogFormat::Json, None);
        assert!(interest(&off, trace).is_never());
        assert!(interest(&off, log).is_always());
        let exporter = tracing_subscriber::layer::Identity::new().boxed();
        let exporting = subscriber(LevelFilter::ERROR, LogFormat::Json, Some(exporter));
        assert!(!interest(&exporting, trace).is_never());
        assert!(!interest(&exporting, log).is_never());
    }

    #[test]
    fn a_line_holds_the_fields_of_event_and_spans_side_by_side() {
        let lines = Lines::default();
        let sink = lines.clone();
        let layer = tracing_subscriber::fmt::layer()
            .with_writer(move || sink.clone())
            .fmt_fields(JsonFields::new())
            .event_format(JsonLines);
        remember("logs", "PHRASE", "open \"sesame\"");
        remember("logs", "NAME", "policy-of-logs");
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || {
            let span = tracing::info_span!("reconcile", controller = "SyncPolicy", name = "policy-of-logs");
            let text = "\nopen \"sesame\"";
            span.in_scope(|| tracing::warn!(applied = 3_u64, ok = false, text, "half \"done\""));
        });
        let text = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
        let mut line: Value = serde_json::from_str(&text).unwrap();
        assert!(line["timestamp"].as_str().unwrap().parse::<Timestamp>().is_ok());
        line.as_object_mut().unwrap().remove("timestamp");
        assert_eq!(
            line,
            json!({
                "level": "warn", "message": "half \"done\"", "controller": "SyncPolicy", "name": "policy-of-logs",
                "applied": 3, "ok": false, "text": "\n${PHRASE}", "target": "declarest_operator::telemetry::logs::tests",
            })
        );
    }
}
