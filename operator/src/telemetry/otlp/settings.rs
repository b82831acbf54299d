//! The environment variables of OTLP, as OpenTelemetry specifies them.

use std::str::FromStr;
use std::time::Duration;

use declarest_core::proxy::{Proxy, ProxyError};
use declarest_core::transport::{Pem, TlsConfig, TlsError, TransportError};
use http::{HeaderMap, HeaderName, HeaderValue};
use opentelemetry_sdk::trace::Sampler;
use percent_encoding::percent_decode_str;
use url::Url;

const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);
const DEFAULT_INTERVAL: Duration = Duration::from_mins(1);

/// Settings that cannot be used. Values are not shown if they may contain credentials.
#[derive(Debug, thiserror::Error)]
pub enum OtlpError {
    #[error("{variable}: {reason}")]
    Setting { variable: String, reason: String },
    #[error("cannot read the file of {variable}: {source}")]
    File { variable: String, source: std::io::Error },
    #[error(transparent)]
    Tls(#[from] TlsError),
    #[error(transparent)]
    Proxy(#[from] ProxyError),
    #[error(transparent)]
    Client(#[from] TransportError),
    #[error("cannot export traces: {0}")]
    Exporter(#[from] opentelemetry_otlp::ExporterBuildError),
}

/// What to export, and where to.
pub struct Settings {
    pub traces: Option<Endpoint>,
    pub metrics: Option<Endpoint>,
    pub sampler: Sampler,
    pub metrics_interval: Duration,
}

/// The receiver of one signal.
pub struct Endpoint {
    pub url: Url,
    pub headers: HeaderMap,
    pub timeout: Duration,
    pub gzip: bool,
    pub tls: TlsConfig,
    pub proxy: Proxy,
}

impl Settings {
    pub fn read(variable: &impl Fn(&str) -> Option<String>) -> Result<Self, OtlpError> {
        let variables = Variables(variable);
        let interval = variables.first(&["OTEL_METRIC_EXPORT_INTERVAL".to_owned()]);
        let interval = interval.map(|(name, value)| milliseconds(&name, &value)).transpose()?;
        Ok(Self {
            traces: variables.endpoint("TRACES")?,
            metrics: variables.endpoint("METRICS")?,
            sampler: variables.sampler()?,
            metrics_interval: interval.unwrap_or(DEFAULT_INTERVAL),
        })
    }
}

struct Variables<'a, F>(&'a F);

impl<F: Fn(&str) -> Option<String>> Variables<'_, F> {
    /// Returns the first variable with a value, and the value.
    fn first(&self, names: &[String]) -> Option<(String, String)> {
        let mut set = names.iter().filter_map(|name| Some((name.clone(), self.0(name)?.trim().to_owned())));
        set.find(|(_, value)| !value.is_empty())
    }

    fn value(&self, name: &str) -> Option<String> {
        self.first(&[name.to_owned()]).map(|(_, value)| value)
    }

    /// Returns a setting of the exporter: the variable of the signal, otherwise that of all signals.
    fn of(&self, signal: &str, name: &str) -> Option<(String, String)> {
        self.first(&[format!("OTEL_EXPORTER_OTLP_{signal}_{name}"), format!("OTEL_EXPORTER_OTLP_{name}")])
    }

    /// Returns the receiver of a signal; `None` if the signal is not exported.
    fn endpoint(&self, signal: &str) -> Result<Option<Endpoint>, OtlpError> {
        let disabled =
            self.value("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true"));
        let none = self.value(&format!("OTEL_{signal}_EXPORTER")).is_some_and(|value| value == "none");
        let Some((name, url)) = self.of(signal, "ENDPOINT").filter(|_| !disabled && !none) else {
            return Ok(None);
        };
        // The variable of the signal is the complete URL.
        let path =
            if name.contains(signal) { String::new() } else { format!("/v1/{}", signal.to_lowercase()) };
        let url = format!("{}{path}", if path.is_empty() { &url } else { url.trim_end_matches('/') });
        let url =
            Url::parse(&url).ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
        let url = url.ok_or_else(|| invalid(&name, "it is not an http or https URL"))?;
        if let Some((name, protocol)) =
            self.of(signal, "PROTOCOL").filter(|(_, value)| value != "http/protobuf")
        {
            let reason = format!(
                "the protocol {protocol:?} is not supported; use http/protobuf, for which receivers usually listen on \
                 port 4318"
            );
            return Err(invalid(&name, reason));
        }
        let timeout =
            self.of(signal, "TIMEOUT").map(|(name, value)| milliseconds(&name, &value)).transpose()?;
        let headers = self.of(signal, "HEADERS").map(|(name, value)| headers(&name, &value)).transpose()?;
        Ok(Some(Endpoint {
            url,
            headers: headers.unwrap_or_default(),
            timeout: timeout.unwrap_or(DEFAULT_TIMEOUT),
            gzip: self.gzip(signal)?,
            tls: self.tls(signal)?,
            proxy: Proxy::from_environment(self.0)?,
        }))
    }

    fn gzip(&self, signal: &str) -> Result<bool, OtlpError> {
        let Some((name, value)) = self.of(signal, "COMPRESSION") else { return Ok(false) };
        match value.as_str() {
            "none" => Ok(false),
            "gzip" => Ok(true),
            _ => Err(invalid(&name, format!("the compression {value:?} is not supported; use gzip or none"))),
        }
    }

    fn tls(&self, signal: &str) -> Result<TlsConfig, OtlpError> {
        let file = |name| {
            let Some((variable, path)) = self.of(signal, name) else { return Ok(None) };
            match std::fs::read(&path) {
                Ok(text) => Ok(Some((variable, text))),
                Err(source) => Err(OtlpError::File { variable, source }),
            }
        };
        let tls = match file("CERTIFICATE")? {
            Some((origin, text)) => TlsConfig::trusting(Pem { origin: &origin, text: &text })?,
            None => TlsConfig::default(),
        };
        match (file("CLIENT_CERTIFICATE")?, file("CLIENT_KEY")?) {
            (Some((name, text)), Some((key_name, key))) => {
                let certificate = Pem { origin: &name, text: &text };
                Ok(tls.presenting(certificate, Pem { origin: &key_name, text: &key })?)
            }
            (None, None) => Ok(tls),
            (Some((name, _)), None) | (None, Some((name, _))) => {
                Err(invalid(&name, "a client certificate needs its key; set both or neither"))
            }
        }
    }

    fn sampler(&self) -> Result<Sampler, OtlpError> {
        const NAME: &str = "OTEL_TRACES_SAMPLER";
        let Some(sampler) = self.value(NAME) else {
            return Ok(Sampler::ParentBased(Box::new(Sampler::AlwaysOn)));
        };
        let (based, root) = match sampler.strip_prefix("parentbased_") {
            Some(root) => (true, root),
            None => (false, sampler.as_str()),
        };
        let root = match root {
            "always_on" => Sampler::AlwaysOn,
            "always_off" => Sampler::AlwaysOff,
            "traceidratio" => Sampler::TraceIdRatioBased(self.ratio()?),
            _ => return Err(invalid(NAME, format!("the sampler {sampler:?} is not supported"))),
        };
        Ok(if based { Sampler::ParentBased(Box::new(root)) } else { root })
    }

    fn ratio(&self) -> Result<f64, OtlpError> {
        const NAME: &str = "OTEL_TRACES_SAMPLER_ARG";
        let Some(ratio) = self.value(NAME) else { return Ok(1.0) };
        let parsed = f64::from_str(&ratio).ok().filter(|ratio| (0.0..=1.0).contains(ratio));
        parsed.ok_or_else(|| invalid(NAME, format!("expected a number from 0 to 1, not {ratio:?}")))
    }
}

fn invalid(variable: &str, reason: impl Into<String>) -> OtlpError {
    OtlpError::Setting { variable: variable.to_owned(), reason: reason.into() }
}

fn milliseconds(variable: &str, value: &str) -> Result<Duration, OtlpError> {
    let parsed = value.parse().ok().filter(|milliseconds| *milliseconds > 0).map(Duration::from_millis);
    parsed.ok_or_else(|| invalid(variable, format!("expected milliseconds above zero, not {value:?}")))
}

/// Parses `name=value,...` with percent-encoded values.
fn headers(variable: &str, text: &str) -> Result<HeaderMap, OtlpError> {
    let entries = text.split(',').map(str::trim).filter(|entry| !entry.is_empty());
    let parsed = entries.enumerate().map(|(index, entry)| {
        let header = entry.split_once('=').and_then(|(name, value)| {
            let value = percent_decode_str(value.trim()).collect::<Vec<u8>>();
            let mut value = HeaderValue::from_bytes(&value).ok()?;
            value.set_sensitive(true);
            Some((HeaderName::from_str(name.trim()).ok()?, value))
        });
        header.ok_or_else(|| invalid(variable, format!("entry {} is not a header: name=value", index + 1)))
    });
    parsed.collect()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<Settings, OtlpError> {
        let value = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        Settings::read(&value)
    }

    fn urls(variables: &[(&str, &str)]) -> (Option<String>, Option<String>) {
        let settings = read(variables).unwrap();
        (
            settings.traces.map(|endpoint| endpoint.url.into()),
            settings.metrics.map(|endpoint| endpoint.url.into()),
        )
    }

    #[rstest]
    #[case::off(&[], None, None)]
    #[case::blank(&[("OTEL_EXPORTER_OTLP_ENDPOINT", " ")], None, None)]
    #[case::both(
        &[("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318/")],
        Some("http://c:4318/v1/traces"),
        Some("http://c:4318/v1/metrics")
    )]
    #[case::below_a_path(
        &[("OTEL_EXPORTER_OTLP_ENDPOINT", "https://c/otlp"), ("OTEL_METRICS_EXPORTER", "none")],
        Some("https://c/otlp/v1/traces"),
        None
    )]
    #[case::one(&[("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "http://c/m")], None, Some("http://c/m"))]
    #[case::disabled(
        &[("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c"), ("OTEL_SDK_DISABLED", "True")],
        None,
        None
    )]
    fn endpoints(
        #[case] variables: &[(&str, &str)],
        #[case] traces: Option<&str>,
        #[case] metrics: Option<&str>,
    ) {
        assert_eq!(urls(variables), (traces.map(str::to_owned), metrics.map(str::to_owned)));
    }

    #[rstest]
    #[case("ENDPOINT", "c:4317", "it is not an http or https URL")]
    #[case(
        "PROTOCOL",
        "grpc",
        "the protocol \"grpc\" is not supported; use http/protobuf, for which receivers usually listen on port 4318"
    )]
    #[case("COMPRESSION", "zstd", "the compression \"zstd\" is not supported; use gzip or none")]
    #[case("TIMEOUT", "10s", "expected milliseconds above zero, not \"10s\"")]
    #[case("HEADERS", "a=1,hunter2", "entry 2 is not a header: name=value")]
    fn invalid_settings_are_errors(#[case] name: &str, #[case] value: &str, #[case] reason: &str) {
        let variable = format!("OTEL_EXPORTER_OTLP_{name}");
        let error = read(&[(&variable, value), ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c")]).err().unwrap();
        assert_eq!(error.to_string(), format!("{variable}: {reason}"));
    }

    #[rstest]
    #[case("always_on", "", Ok("AlwaysOn"))]
    #[case("traceidratio", "0.25", Ok("TraceIdRatioBased(0.25)"))]
    #[case("parentbased_traceidratio", "", Ok("ParentBased(TraceIdRatioBased(1.0))"))]
    #[case("parentbased_always_off", "", Ok("ParentBased(AlwaysOff)"))]
    #[case("jaeger_remote", "", Err("OTEL_TRACES_SAMPLER: the sampler \"jaeger_remote\" is not supported"))]
    #[case("traceidratio", "2", Err("OTEL_TRACES_SAMPLER_ARG: expected a number from 0 to 1, not \"2\""))]
    fn samplers(#[case] name: &str, #[case] argument: &str, #[case] expected: Result<&str, &str>) {
        let read = read(&[("OTEL_TRACES_SAMPLER", name), ("OTEL_TRACES_SAMPLER_ARG", argument)]);
        let found = read.map(|settings| format!("{:?}", settings.sampler)).map_err(|error| error.to_string());
        assert_eq!(found.as_deref().map_err(String::as_str), expected);
    }

    #[test]
    fn the_variables_of_a_signal_take_precedence() {
        let settings = read(&[
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "x-key=a%20b, x-other = c"),
            ("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "x-key=t"),
            ("OTEL_EXPORTER_OTLP_METRICS_TIMEOUT", "250"),
            ("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip"),
            ("OTEL_EXPORTER_OTLP_TRACES_COMPRESSION", "none"),
        ])
        .unwrap();
        let (traces, metrics) = (settings.traces.unwrap(), settings.metrics.unwrap());
        assert_eq!((traces.headers["x-key"].as_bytes(), traces.headers.len()), (b"t".as_slice(), 1));
        assert_eq!((metrics.headers["x-key"].as_bytes(), metrics.headers.len()), (b"a b".as_slice(), 2));
        assert_eq!((traces.timeout, metrics.timeout), (DEFAULT_TIMEOUT, Duration::from_millis(250)));
        assert_eq!((traces.gzip, metrics.gzip), (false, true));
    }
}
