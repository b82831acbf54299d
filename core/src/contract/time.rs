//! Times as Kubernetes writes them: RFC 3339 in UTC, with seconds.

use jiff::Timestamp;

/// Returns the seconds since 1970 of a time such as `2026-01-31T12:00:00Z`; `None` if it has another form.
pub fn parse(text: &str) -> Option<i64> {
    text.parse().ok().map(Timestamp::as_second)
}

/// Returns the text of a time in seconds since 1970.
pub fn format(seconds: i64) -> String {
    Timestamp::from_second(seconds).unwrap_or_default().to_string()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("1970-01-01T00:00:00Z", Some(0))]
    #[case("2026-11-23T04:57:38.123456Z", Some(1_795_409_858))]
    #[case("2026-13-01T00:00:00Z", None)]
    #[case("2026-01-01", None)]
    #[case("", None)]
    fn times(#[case] text: &str, #[case] expected: Option<i64>) {
        assert_eq!(parse(text), expected);
    }

    #[test]
    fn a_time_has_seconds_and_is_in_utc() {
        assert_eq!(format(951_827_415), "2000-02-29T12:30:15Z");
    }
}
