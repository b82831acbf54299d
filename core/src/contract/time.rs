//! Times as Kubernetes writes them: RFC 3339 in UTC, with seconds.

/// Returns the seconds since 1970 of a time such as `2026-01-31T12:00:00Z`; `None` if it has another form.
pub fn parse(text: &str) -> Option<i64> {
    let (date, time) = text.strip_suffix('Z')?.split_once('T')?;
    // Fractions of seconds are ignored.
    let time = time.split('.').next()?;
    let [year, month, day] = numbers(date, '-')?;
    let [hour, minute, second] = numbers(time, ':')?;
    let valid = (1..=12).contains(&month)
        && (1..=31).contains(&day)
        && (1970..=9999).contains(&year)
        && (0..24).contains(&hour)
        && (0..60).contains(&minute)
        && (0..=60).contains(&second);
    valid.then(|| days(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second)
}

/// Returns the text of a time in seconds since 1970.
pub fn format(seconds: i64) -> String {
    let (days, rest) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let (year, month, day) = civil(days);
    format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z", rest / 3600, rest / 60 % 60, rest % 60)
}

fn numbers(text: &str, separator: char) -> Option<[i64; 3]> {
    let mut parts = text.split(separator).map(|part| part.parse::<i64>().ok().filter(|number| *number >= 0));
    let three = [parts.next()??, parts.next()??, parts.next()??];
    parts.next().is_none().then_some(three)
}

/// Returns the days since 1970 of a date in the Gregorian calendar. The year begins in March, so that the leap day is
/// its last day.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// The inverse of [`days`].
fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let of_era = days.rem_euclid(146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    (year + era * 400 + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("1970-01-01T00:00:00Z", Some(0))]
    #[case("2000-02-29T12:30:15Z", Some(951_827_415))]
    #[case("2026-11-23T04:57:38.123456Z", Some(1_795_409_858))]
    #[case("2026-11-23T04:57:38+01:00", None)]
    #[case("2026-13-01T00:00:00Z", None)]
    #[case("2026-01-01", None)]
    #[case("", None)]
    fn times(#[case] text: &str, #[case] expected: Option<i64>) {
        assert_eq!(parse(text), expected);
    }

    proptest! {
        #[test]
        fn a_formatted_time_is_parsed_again(seconds in 0_i64..253_402_300_799) {
            prop_assert_eq!(parse(&format(seconds)), Some(seconds));
        }
    }
}
