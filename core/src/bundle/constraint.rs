//! Version constraints of bundle manifests.
//!
//! The language is a superset of Cargo's: comparators that must all hold are separated by commas or blanks, and
//! alternatives by `||`. It adds `!=` and ranges `a - b`, and a version without an operator means equality. The
//! `semver` crate evaluates single comparators.

use semver::{BuildMetadata, Comparator, Op, Prerelease, Version, VersionReq};

/// A condition on versions.
///
/// A pre-release satisfies it only if a comparator of the same alternative names a pre-release of the same
/// `major.minor.patch`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Constraint {
    text: String,
    alternatives: Vec<Alternative>,
}

/// Comparators that must all hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Alternative {
    required: Vec<Comparator>,
    excluded: Vec<Comparator>,
}

/// A version whose trailing parts may be missing or wildcards.
struct Partial {
    /// Major, minor and patch; trailing ones may be missing.
    numbers: Vec<u64>,
    pre: Prerelease,
}

impl Constraint {
    /// Parses a constraint. The error is the reason why it is not valid.
    pub fn parse(text: &str) -> Result<Self, String> {
        let alternatives = text.split("||").map(alternative).collect::<Result<_, _>>();
        let alternatives =
            alternatives.map_err(|reason| format!("\"{text}\" is not a version constraint: {reason}"))?;
        Ok(Self { text: text.trim().to_owned(), alternatives })
    }

    /// Returns whether `version` satisfies the constraint.
    pub fn matches(&self, version: &Version) -> bool {
        self.alternatives.iter().any(|alternative| {
            let required = VersionReq { comparators: alternative.required.clone() };
            required.matches(version)
                && !alternative.excluded.iter().any(|comparator| comparator.matches(version))
        })
    }

    /// The constraint as written.
    pub fn text(&self) -> &str {
        &self.text
    }
}

fn alternative(text: &str) -> Result<Alternative, String> {
    let mut alternative = Alternative::default();
    let mut rest = text.trim();
    loop {
        rest = comparator(rest, &mut alternative)?.trim_start();
        if rest.is_empty() {
            return Ok(alternative);
        }
        rest = rest.strip_prefix(',').map_or(rest, str::trim_start);
    }
}

/// Reads the first comparator or range of `text`, and returns the rest.
fn comparator<'t>(text: &'t str, alternative: &mut Alternative) -> Result<&'t str, String> {
    let operator_end = text.find(|c: char| !"=!<>~^".contains(c)).unwrap_or(text.len());
    let (operator, rest) = text.split_at(operator_end);
    let (version, rest) = word(rest.trim_start());
    let version = partial(version)?;
    let op = match operator {
        "" | "=" | "!=" => Op::Exact,
        ">" => Op::Greater,
        ">=" => Op::GreaterEq,
        "<" => Op::Less,
        "<=" => Op::LessEq,
        "~" => Op::Tilde,
        "^" => Op::Caret,
        other => return Err(format!("\"{other}\" is not an operator; use = != > >= < <= ~ or ^")),
    };
    if operator.is_empty()
        && let Some(upper) = upper_end(rest)
    {
        let (upper, rest) = word(upper);
        alternative.required.extend(version.compared(Op::GreaterEq)?);
        alternative.required.extend(partial(upper)?.compared(Op::LessEq)?);
        return Ok(rest);
    }
    if operator == "!=" {
        let excluded = version.compared(op)?.ok_or("\"!=\" any version excludes all versions")?;
        alternative.excluded.push(excluded);
    } else {
        alternative.required.extend(version.compared(op)?);
    }
    Ok(rest)
}

/// Returns the text from the upper end of a range on, if `text` continues with one: ` - 2.0`.
fn upper_end(text: &str) -> Option<&str> {
    let dash = text.trim_start();
    let upper = dash.strip_prefix('-')?;
    let parted = dash.len() < text.len() && upper.starts_with(char::is_whitespace);
    parted.then(|| upper.trim_start())
}

/// Splits the text at the next blank, comma or operator.
fn word(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| c.is_whitespace() || ",=!<>~^".contains(c)).unwrap_or(text.len());
    text.split_at(end)
}

fn partial(text: &str) -> Result<Partial, String> {
    if text.is_empty() {
        return Err("a version is missing".to_owned());
    }
    let invalid = || format!("\"{text}\" is not a version");
    let plain = text.strip_prefix(['v', 'V']).unwrap_or(text);
    let (plain, build) = plain.split_once('+').map_or((plain, None), |(plain, build)| (plain, Some(build)));
    let (numbers, pre) = plain.split_once('-').map_or((plain, None), |(numbers, pre)| (numbers, Some(pre)));
    let mut parts = numbers.split('.').map(|part| match part {
        "x" | "X" | "*" => Ok(None),
        digits => Ok(Some(number(digits).ok_or_else(invalid)?)),
    });
    let parts: Vec<Option<u64>> = parts.by_ref().collect::<Result<_, String>>()?;
    let numbers: Vec<u64> = parts.iter().map_while(|part| *part).collect();
    // After a wildcard, only wildcards may follow.
    let after_wildcard = parts.iter().skip(numbers.len()).any(Option::is_some);
    let suffixed = pre.is_some() || build.is_some();
    if parts.len() > 3 || after_wildcard || (suffixed && numbers.len() < 3) {
        return Err(invalid());
    }
    build.map_or(Ok(BuildMetadata::EMPTY), BuildMetadata::new).map_err(|_| invalid())?;
    let pre = match pre {
        Some("") => return Err(invalid()),
        Some(pre) => Prerelease::new(pre).map_err(|_| invalid())?,
        None => Prerelease::EMPTY,
    };
    Ok(Partial { numbers, pre })
}

fn number(digits: &str) -> Option<u64> {
    let plain =
        digits.bytes().all(|byte| byte.is_ascii_digit()) && (digits == "0" || !digits.starts_with('0'));
    if plain { digits.parse().ok() } else { None }
}

impl Partial {
    /// Returns the comparator for this version; `None` if it holds for all versions.
    fn compared(self, op: Op) -> Result<Option<Comparator>, String> {
        let mut numbers = self.numbers.into_iter();
        let Some(major) = numbers.next() else {
            return match op {
                Op::Greater | Op::Less => Err("a wildcard cannot follow > or <".to_owned()),
                _ => Ok(None),
            };
        };
        let (minor, patch) = (numbers.next(), numbers.next());
        Ok(Some(Comparator { op, major, minor, patch, pre: self.pre }))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(">=26.0.0 <27.0.0", &["26.0.0", "26.9.9"], &["25.9.9", "27.0.0"])]
    #[case(">=26.0.0,<27.0.0", &["26.0.0"], &["27.0.0"])]
    #[case(" >= 26.0.0 , < 27 ", &["26.0.0"], &["27.0.0"])]
    #[case(">=1<2", &["1.5.0"], &["2.0.0"])]
    #[case(">=0.1.0", &["0.1.0", "9.0.0"], &["0.0.9"])]
    #[case("1.2.3", &["1.2.3"], &["1.2.4"])]
    #[case("=1.2.3", &["1.2.3"], &["1.2.4"])]
    #[case("v1.2.3", &["1.2.3"], &["1.2.4"])]
    #[case("1.2.3+build", &["1.2.3"], &["1.2.4"])]
    #[case("1.2", &["1.2.0", "1.2.9"], &["1.3.0"])]
    #[case("!=1.2.3", &["1.2.4"], &["1.2.3"])]
    #[case("!=1.2.x", &["1.3.0"], &["1.2.0", "1.2.9"])]
    #[case(">=1 !=1.5.0", &["1.4.0"], &["1.5.0", "0.9.0"])]
    #[case(">1.2.3", &["1.2.4"], &["1.2.3"])]
    #[case(">1.2", &["1.3.0"], &["1.2.9"])]
    #[case("<1.2.3", &["1.2.2"], &["1.2.3"])]
    #[case("<=1.2.3", &["1.2.3"], &["1.2.4"])]
    #[case("<=1.2", &["1.2.9"], &["1.3.0"])]
    #[case("~1.2.3", &["1.2.3", "1.2.9"], &["1.2.2", "1.3.0"])]
    #[case("~1", &["1.9.0"], &["2.0.0"])]
    #[case("^1.2.3", &["1.2.3", "1.9.0"], &["1.2.2", "2.0.0"])]
    #[case("^0.2.3", &["0.2.9"], &["0.3.0"])]
    #[case("^0.0.3", &["0.0.3"], &["0.0.4"])]
    #[case("1.x", &["1.0.0", "1.9.9"], &["2.0.0"])]
    #[case("1.2.*", &["1.2.0"], &["1.3.0"])]
    #[case("1.X.x", &["1.9.0"], &["2.0.0"])]
    #[case("*", &["0.0.1", "9.0.0"], &["1.0.0-rc.1"])]
    #[case("x", &["1.0.0"], &[])]
    #[case(">=*", &["1.0.0"], &[])]
    #[case("1.2 - 2.3.4", &["1.2.0", "2.3.4"], &["1.1.9", "2.3.5"])]
    #[case("1.2.3 - 2", &["2.9.9"], &["1.2.2", "3.0.0"])]
    #[case("1.0.0 - 2.0.0 !=1.5.0", &["1.4.0"], &["1.5.0"])]
    #[case("<1 || >=2 <3", &["0.9.0", "2.5.0"], &["1.5.0", "3.0.0"])]
    #[case(">=1.0.0", &["1.0.1"], &["1.0.0-rc.1", "2.0.0-rc.1"])]
    #[case(">=1.0.0-rc.1", &["1.0.0-rc.2", "1.0.0"], &["1.0.0-beta", "1.1.0-rc.1"])]
    #[case("1.0.0-rc.1", &["1.0.0-rc.1"], &["1.0.0"])]
    #[case("!=1.0.0", &["1.0.1"], &["1.0.1-rc.1"])]
    fn constraints(#[case] text: &str, #[case] holds: &[&str], #[case] fails: &[&str]) {
        let constraint = Constraint::parse(text).unwrap();
        for (versions, expected) in [(holds, true), (fails, false)] {
            for version in versions {
                assert_eq!(constraint.matches(&version.parse().unwrap()), expected, "{version}");
            }
        }
    }

    #[rstest]
    #[case("", "a version is missing")]
    #[case("1 ||", "a version is missing")]
    #[case(">=", "a version is missing")]
    #[case("1,,2", "a version is missing")]
    #[case("1,", "a version is missing")]
    #[case("=>1", "\"=>\" is not an operator; use = != > >= < <= ~ or ^")]
    #[case("one", "\"one\" is not a version")]
    #[case("1.2.3.4", "\"1.2.3.4\" is not a version")]
    #[case("1.x.3", "\"1.x.3\" is not a version")]
    #[case("1.2-rc", "\"1.2-rc\" is not a version")]
    #[case("01.2.3", "\"01.2.3\" is not a version")]
    #[case("1.2.3-", "\"1.2.3-\" is not a version")]
    #[case("1.2.3-01", "\"1.2.3-01\" is not a version")]
    #[case("1 -2", "\"-2\" is not a version")]
    #[case("1 - ", "\"-\" is not a version")]
    #[case("1 - x.2", "\"x.2\" is not a version")]
    #[case(">*", "a wildcard cannot follow > or <")]
    #[case("!=*", "\"!=\" any version excludes all versions")]
    #[case("99999999999999999999", "\"99999999999999999999\" is not a version")]
    fn invalid_constraints(#[case] text: &str, #[case] reason: &str) {
        assert_eq!(
            Constraint::parse(text).unwrap_err(),
            format!("\"{text}\" is not a version constraint: {reason}")
        );
    }

    proptest! {
        #[test]
        fn parsing_never_panics(text in "[ ,|=!<>~^xX*v0-9.a-z+-]{0,24}") {
            if let Ok(constraint) = Constraint::parse(&text) {
                constraint.matches(&Version::new(1, 2, 3));
                prop_assert_eq!(Constraint::parse(constraint.text()), Ok(constraint));
            }
        }

        #[test]
        fn any_text_is_parsed_or_rejected(text in ".{0,40}") {
            let _ = Constraint::parse(&text);
        }

        #[test]
        fn a_version_matches_itself(major in 0u64..9, minor in 0u64..9, patch in 0u64..9) {
            let version = Version::new(major, minor, patch);
            for text in [format!("={version}"), format!("{version} - {version}"), format!("!=0.0.10 ^{version}")] {
                prop_assert!(Constraint::parse(&text).unwrap().matches(&version));
            }
            let other = Constraint::parse(&format!("!={version}")).unwrap();
            prop_assert!(!other.matches(&version));
        }
    }
}
