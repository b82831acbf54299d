//! `declarest repository history`.

use declarest_core::control::one_line;
use declarest_core::repository::{Author, HistoryFilter, LoggedCommit};
use jiff::civil::{Date, DateTime};
use jiff::tz::{Offset, TimeZone};
use jiff::{Timestamp, Zoned};
use serde::Serialize;

use super::HistoryArguments;
use crate::error::Failure;
use crate::invocation::Invocation;
use crate::output::OutputPolicy;
use crate::pager;
use crate::repository::{Contact, Repository};

/// A commit in structured output.
#[derive(Debug, Serialize)]
struct Record {
    hash: String,
    author: String,
    email: String,
    date: String,
    subject: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    body: String,
}

/// `repository history`.
pub fn history(arguments: &HistoryArguments, invocation: &Invocation) -> Result<(), Failure> {
    let output = invocation.output(OutputPolicy::TextDefault)?;
    let filter = arguments.filter()?;
    let Repository::Git(worktree) = Repository::open(invocation.context()?, Contact::None)? else {
        let text = "repository history is not supported by filesystem repositories";
        return Ok(output.show(&Vec::<Record>::new(), Some(text))?);
    };
    let commits = worktree.history(&filter)?;
    let form = if arguments.oneline { oneline } else { paragraph };
    let text: String = commits.iter().map(form).collect();
    let records: Vec<_> = commits.into_iter().map(Record::from).collect();
    pager::show(&output, &[], &records, &text, invocation)
}

impl HistoryArguments {
    fn filter(&self) -> Result<HistoryFilter, Failure> {
        let date = |flag, text: &Option<String>| text.as_deref().map(|text| seconds(flag, text)).transpose();
        Ok(HistoryFilter {
            author: self.author.clone(),
            grep: self.grep.clone(),
            since: date("--since", &self.since)?,
            until: date("--until", &self.until)?,
            paths: self.path.clone(),
            // As in v0.3.8, 0 does not limit.
            max_count: self.max_count.filter(|count| *count > 0),
            reverse: self.reverse,
        })
    }
}

/// Returns a time in seconds since 1970. For a day, this is its first second. Times without an offset are in UTC.
fn seconds(flag: &'static str, text: &str) -> Result<i64, Failure> {
    let refused = |_| {
        let format = "YYYY-MM-DD, or RFC 3339 like 2026-01-31T12:00:00Z";
        Failure::invalid(format!("{flag} \"{text}\" is not a date; write {format}"))
    };
    let trimmed = text.trim();
    if let Ok(time) = trimmed.parse::<Timestamp>() {
        return Ok(time.as_second());
    }
    let time = match DateTime::strptime("%Y-%m-%d %H:%M:%S", trimmed) {
        Ok(time) => time,
        Err(_) => Date::strptime("%Y-%m-%d", trimmed).map_err(refused)?.at(0, 0, 0, 0),
    };
    Ok(time.to_zoned(TimeZone::UTC).map_err(refused)?.timestamp().as_second())
}

/// Returns the time in the author's time zone, or `None` if it is out of range.
fn local_time(author: &Author) -> Option<Zoned> {
    let offset = Offset::from_seconds(author.offset_minutes.checked_mul(60)?).ok()?;
    Some(Timestamp::from_second(author.at).ok()?.to_zoned(TimeZone::fixed(offset)))
}

/// Returns the time in the author's time zone, as RFC 3339. A time out of range is shown in seconds since 1970.
fn date(author: &Author) -> String {
    let format = if author.offset_minutes == 0 { "%Y-%m-%dT%H:%M:%SZ" } else { "%Y-%m-%dT%H:%M:%S%:z" };
    local_time(author).map_or_else(|| format!("@{}", author.at), |time| time.strftime(format).to_string())
}

impl From<LoggedCommit> for Record {
    fn from(commit: LoggedCommit) -> Self {
        Self {
            hash: commit.revision.to_string(),
            date: date(&commit.author),
            author: commit.author.name,
            email: commit.author.email,
            subject: commit.subject,
            body: commit.body,
        }
    }
}

fn oneline(commit: &LoggedCommit) -> String {
    /// Enough digits to be unique in practice.
    const DIGITS: usize = 12;
    let hash = commit.revision.as_str();
    format!("{} {}\n", hash.get(..DIGITS).unwrap_or(hash), one_line(&commit.subject))
}

/// Returns the commit in the format of git-log(1), with the date as RFC 3339.
fn paragraph(commit: &LoggedCommit) -> String {
    let LoggedCommit { revision, author, subject, body, .. } = commit;
    let date = date(author);
    let mut text = format!(
        "commit {revision}\nAuthor: {} <{}>\nDate:   {date}\n\n    {}\n",
        one_line(&author.name),
        one_line(&author.email),
        one_line(subject)
    );
    if !body.is_empty() {
        text.push('\n');
    }
    for line in body.lines() {
        text.push_str(format!("    {}", one_line(line)).trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("2026-01-31", 1_769_817_600)]
    #[case(" 1970-01-01 ", 0)]
    #[case("2026-01-31 00:00:01", 1_769_817_601)]
    #[case("2026-01-31T00:00:00Z", 1_769_817_600)]
    #[case("2026-01-31T01:00:00+01:00", 1_769_817_600)]
    #[case("2026-01-31t00:00:00.75z", 1_769_817_600)]
    fn dates(#[case] text: &str, #[case] expected: i64) {
        assert_eq!(seconds("--since", text).unwrap(), expected);
    }

    #[rstest]
    #[case("")]
    #[case("yesterday")]
    #[case("2026-13-01")]
    #[case("2026-02-30")]
    #[case("31.01.2026")]
    #[case("2026-01-31T00:00:00")]
    fn invalid_dates_are_rejected(#[case] text: &str) {
        assert!(seconds("--until", text).is_err());
    }

    #[test]
    fn a_time_out_of_range_is_shown_in_seconds() {
        let author = Author { name: String::new(), email: String::new(), at: i64::MAX, offset_minutes: 0 };
        assert_eq!(date(&author), "@9223372036854775807");
    }
}
