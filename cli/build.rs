//! Stamps the commit and the date into the binary.
//!
//! The same sources give the same binary: the date is `SOURCE_DATE_EPOCH` or that of the commit, never that of the
//! build. A build for development is not stamped from Git, because each commit would build the crate again.

use std::env;
use std::process::Command;

const SECONDS_PER_DAY: i64 = 86_400;

fn main() {
    let variables = ["DECLAREST_BUILD_COMMIT", "DECLAREST_BUILD_DATE", "SOURCE_DATE_EPOCH"];
    for variable in variables {
        println!("cargo:rerun-if-env-changed={variable}");
    }
    println!("cargo:rerun-if-changed=build.rs");
    let [commit, date, epoch] = variables.map(|name| env::var(name).ok().filter(|value| !value.is_empty()));
    let is_release = env::var("PROFILE").is_ok_and(|profile| profile == "release");
    if is_release && let Some(head) = git(&["rev-parse", "--git-path", "logs/HEAD"]) {
        println!("cargo:rerun-if-changed={head}");
    }
    let of_commit = |args: &[&str]| if is_release { git(args) } else { None };
    let commit = commit.or_else(|| of_commit(&["rev-parse", "--short=12", "HEAD"]));
    let epoch = epoch.or_else(|| of_commit(&["log", "-1", "--format=%ct"]));
    let date = date.or_else(|| epoch?.trim().parse().ok().map(day));
    stamp("DECLAREST_BUILD_COMMIT", commit.as_deref());
    stamp("DECLAREST_BUILD_DATE", date.as_deref());
}

fn stamp(variable: &str, value: Option<&str>) {
    println!("cargo:rustc-env={variable}={}", value.unwrap_or("unknown"));
}

/// Returns the output of `git`, or `None` if the sources are not in a checkout.
fn git(args: &[&str]) -> Option<String> {
    let output = Command::new("git").args(args).output().ok().filter(|output| output.status.success())?;
    String::from_utf8(output.stdout).ok().map(|text| text.trim().to_owned())
}

/// Returns the day of a Unix time in UTC, such as 2026-01-31.
fn day(epoch: i64) -> String {
    // Counts from 1 March of year 0, so that a leap day is the last one of a year.
    let days = epoch.div_euclid(SECONDS_PER_DAY) + 719_468;
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}
