//! The times of `fullResyncCron`.

use croner::Cron;
use croner::parser::{CronParser, Seconds, Year};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};

const FIELDS: [&str; 5] = ["minute", "hour", "day of the month", "month", "day of the week"];

/// `fullResyncCron`: five fields in UTC. Sunday is 0 or 7; when day of month and day of week are both
/// restricted, either matches (POSIX crontab(5)).
#[derive(Clone, Debug)]
pub struct Schedule(Cron);

impl Schedule {
    /// Parses numbers, `*`, lists, ranges and steps. A schedule without a time in the next five years is an error.
    pub fn parse(text: &str, now: Timestamp) -> Result<Self, String> {
        let fields: Vec<&str> = text.split_whitespace().collect();
        if fields.len() != 5 {
            return Err(format!(
                "\"{text}\" has {} fields; write five: minute hour day month weekday",
                fields.len()
            ));
        }
        if let Some(odd) = text.chars().find(|c| !matches!(c, '0'..='9' | '*' | ',' | '-' | '/' | ' ' | '\t'))
        {
            return Err(format!(
                "\"{text}\" contains \"{odd}\"; use numbers, *, lists, ranges and steps (times are UTC)"
            ));
        }
        // With an empty list, the search for a time does not end for years.
        if fields.iter().any(|field| field.split(',').any(str::is_empty)) {
            return Err(format!("\"{text}\" has a list with an empty entry; remove a comma"));
        }
        let parser = CronParser::builder().seconds(Seconds::Disallowed).year(Year::Disallowed).build();
        // Errors do not name the field, so each is parsed alone first.
        for (index, name) in FIELDS.into_iter().enumerate() {
            let mut alone = ["*"; FIELDS.len()];
            alone[index] = fields[index];
            let parsed = parser.parse(&alone.join(" "));
            parsed.map_err(|_| format!("\"{text}\": \"{}\" is not valid for the {name}", fields[index]))?;
        }
        let cron = parser.parse(&fields.join(" ")).map_err(|error| format!("\"{text}\": {error}"))?;
        let schedule = Self(cron);
        let horizon =
            now.to_zoned(TimeZone::UTC).checked_add(5.years()).map_err(|error| error.to_string())?;
        match schedule.next_after(now) {
            Some(next) if next <= horizon.timestamp() => Ok(schedule),
            _ => Err(format!("\"{text}\" does not match a time in the next five years")),
        }
    }

    /// Returns the first tick after `time`.
    pub fn next_after(&self, time: Timestamp) -> Option<Timestamp> {
        let next = self.0.find_next_occurrence(&time.to_zoned(TimeZone::UTC), false).ok()?;
        Some(next.timestamp())
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[rstest]
    // 2026-11-21 is a Saturday.
    #[case("0 3 * * *", "2026-11-21T02:59:59Z", "2026-11-21T03:00:00Z")]
    #[case("0 3 * * *", "2026-11-21T03:00:00Z", "2026-11-22T03:00:00Z")]
    #[case("0 0 * * 0", "2026-11-21T00:00:00Z", "2026-11-22T00:00:00Z")]
    #[case("0 0 * * 7", "2026-11-21T00:00:00Z", "2026-11-22T00:00:00Z")]
    #[case("0 0 * * 1", "2026-11-21T00:00:00Z", "2026-11-23T00:00:00Z")]
    #[case("0 0 13 * 5", "2026-11-21T00:00:00Z", "2026-11-27T00:00:00Z")]
    #[case("0 0 23 * 5", "2026-11-21T00:00:00Z", "2026-11-23T00:00:00Z")]
    #[case("*/15 8-10,20 * * *", "2026-11-21T10:45:00Z", "2026-11-21T20:00:00Z")]
    #[case("0 0 29 2 *", "2026-11-21T00:00:00Z", "2028-02-29T00:00:00Z")]
    fn ticks(#[case] cron: &str, #[case] from: &str, #[case] expected: &str) {
        let schedule = Schedule::parse(cron, at(from)).unwrap();
        assert_eq!(schedule.next_after(at(from)), Some(at(expected)));
    }

    #[rstest]
    #[case("0 3 * *", "4 fields")]
    #[case("0 0 3 * * *", "6 fields")]
    #[case("@daily", "1 fields")]
    #[case("0 0 L * *", "contains \"L\"")]
    #[case("0 0 * * MON", "contains \"M\"")]
    #[case("61 0 * * *", "\"61\" is not valid for the minute")]
    #[case("0 0 * 1-13 *", "\"1-13\" is not valid for the month")]
    #[case("0 0 30 2 *", "does not match")]
    #[case(", * * * *", "an empty entry")]
    #[case("0, * * * *", "an empty entry")]
    #[case("* * *  ,,1 *", "an empty entry")]
    fn invalid_schedules_are_rejected(#[case] cron: &str, #[case] expected: &str) {
        let error = Schedule::parse(cron, at("2026-11-21T00:00:00Z")).unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
}
