//! Durations in specs, such as `30s`.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::validation::or_placeholder;

/// A limit that can be added to any point in time.
const MAX: Duration = Duration::from_hours(100 * 365 * 24);
const PATTERN: &str = r"([0-9]+(\.[0-9]+)?(ms|s|m|h))+";

/// A duration as users write it: `30s`, `1h30m`.
///
/// Keeps the original text, because writing an object back must not change the text of its owner. Also keeps a
/// text that is not a duration: a malformed object is an error of that object, not of its watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interval {
    text: String,
    duration: Option<Duration>,
}

impl Interval {
    /// Wraps `text`, whether or not it is a duration.
    pub fn new(text: impl Into<String>) -> Self {
        let text = text.into();
        Self { duration: parse_duration(&text).filter(|duration| !duration.is_zero()), text }
    }

    /// Returns the duration, longer than zero, or `None` if the text is not a duration.
    pub const fn duration(&self) -> Option<Duration> {
        self.duration
    }

    /// Checks that this is a duration of at least `minimum`.
    pub(super) fn at_least(&self, minimum: Duration) -> Result<Duration, String> {
        match self.duration {
            None => {
                Err(format!("{:?} is not a duration above zero; write for example 30s or 1h30m", self.text))
            }
            Some(duration) if duration < minimum => {
                Err(format!("{:?} is too short; the minimum is {}s", self.text, minimum.as_secs()))
            }
            Some(duration) if duration > MAX => {
                Err(format!("{:?} is too long; the maximum is {}h", self.text, MAX.as_secs() / 3600))
            }
            Some(duration) => Ok(duration),
        }
    }
}

impl fmt::Display for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Serialize for Interval {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

impl<'de> Deserialize<'de> for Interval {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self::new)
    }
}

impl JsonSchema for Interval {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Interval".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": or_placeholder(PATTERN) })
    }
}

/// Parses a duration such as `1h30m`.
pub fn parse_duration(text: &str) -> Option<Duration> {
    if text.is_empty() {
        return None;
    }
    let mut rest = text;
    let mut total = Duration::ZERO;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, tail) = rest.split_at(digits);
        let (whole, fraction) = number.split_once('.').map_or((number, None), |(w, f)| (w, Some(f)));
        if whole.is_empty() || fraction.is_some_and(|f| f.is_empty() || f.contains('.')) {
            return None;
        }
        let unit_end = tail.find(|c: char| c.is_ascii_digit()).unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(unit_end);
        let seconds = match unit {
            "ms" => 0.001,
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3600.0,
            _ => return None,
        };
        let part = Duration::try_from_secs_f64(number.parse::<f64>().ok()? * seconds).ok()?;
        total = total.checked_add(part)?;
        rest = tail;
    }
    Some(total)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("30s", 30_000)]
    #[case("1h30m", 5_400_000)]
    #[case("1.5h", 5_400_000)]
    #[case("250ms", 250)]
    #[case("1m0.5s", 60_500)]
    #[case("5m5m", 600_000)]
    fn reads_durations(#[case] text: &str, #[case] millis: u64) {
        let interval: Interval = serde_json::from_value(text.into()).unwrap();
        assert_eq!(interval.duration(), Some(Duration::from_millis(millis)));
        assert_eq!(serde_json::to_value(&interval).unwrap(), text);
    }

    #[rstest]
    #[case("")]
    #[case("0s")]
    #[case("30")]
    #[case("s")]
    #[case("1.s")]
    #[case(".5s")]
    #[case("1.2.3s")]
    #[case("1d")]
    #[case("-1s")]
    #[case("1 s")]
    #[case("1e3s")]
    #[case("${POLL}")]
    #[case("99999999999999999999h")]
    fn keeps_other_text_without_a_duration(#[case] text: &str) {
        let interval = Interval::new(text);
        assert_eq!((interval.duration(), interval.to_string().as_str()), (None, text));
    }

    #[test]
    fn names_the_minimum() {
        let error = Interval::new("5s").at_least(Duration::from_secs(30)).unwrap_err();
        assert_eq!(error, r#""5s" is too short; the minimum is 30s"#);
        let error = Interval::new("5000000000000000h").at_least(Duration::from_secs(30)).unwrap_err();
        assert_eq!(error, r#""5000000000000000h" is too long; the maximum is 876000h"#);
    }
}
