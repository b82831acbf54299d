//! The functions of regular expressions, in place of those of jaq: one search of theirs may take hours, and a native
//! function cannot be stopped.
//!
//! A search takes at most a time that is proportional to the length of the text, and to the size of the expression with its
//! groups. If the product exceeds a limit of the meter, the search is not begun. The clock is read before each search.

use jaq_core::box_iter::box_once;
use jaq_core::{Cv, Error, Exn, ValT as _, ValX, ValXs};
use jaq_json::Val;
use jaq_std::ValT as _;
use regex_bites::bytes::{Captures, Regex, RegexBuilder};

use super::machine::Machine;
use super::meter::{Meter, PIECE};

/// The sizes of compiled expressions, in bytes, that are tried in this order. The first one that is sufficient is the
/// bound for the size of the expression.
const SIZES: [usize; 5] = [1 << 10, 4 << 10, 16 << 10, 64 << 10, LARGEST];

/// The largest expression, as text and when it is compiled.
const LARGEST: usize = 256 << 10;

/// The start of the message about an expression that exceeds [`LARGEST`].
pub(super) const TOO_LARGE: &str = "invalid regex: compiled regex exceeded size limit";

/// The most groups of an expression, with the whole match. A search allocates memory for each group of each state.
const MOST_GROUPS: usize = 100;

/// So many groups need as much time as the expression without groups.
const GROUPS: usize = 8;

/// The parts of a text that a function returns.
#[derive(Clone, Copy, PartialEq)]
enum Wanted {
    Matches,
    Rest,
    Both,
}

/// `matches(re; flags)`: the groups of each match.
pub(super) fn matches(call: Cv<'_, Machine>) -> ValXs<'_, Val> {
    run(call, Wanted::Matches)
}

/// `split_(re; flags)`: the texts between the matches.
pub(super) fn split(call: Cv<'_, Machine>) -> ValXs<'_, Val> {
    run(call, Wanted::Rest)
}

/// `split_matches(re; flags)`: the texts between the matches, and the groups of each match.
pub(super) fn split_matches(call: Cv<'_, Machine>) -> ValXs<'_, Val> {
    run(call, Wanted::Both)
}

fn run((mut context, text): Cv<'_, Machine>, wanted: Wanted) -> ValXs<'_, Val> {
    let (flags, expression) = (context.pop_var(), context.pop_var());
    let search = Flags::read(&flags).and_then(|flags| Search::new(&expression, flags));
    box_once(search.map_err(Exn::from).and_then(|search| search.run(context.data().meter, &text, wanted)))
}

/// Returns a text value.
fn text_of(value: &Val) -> Result<&[u8], Error<Val>> {
    value.as_utf8_bytes().ok_or_else(|| Error::typ(value.clone(), "string"))
}

fn string_of(value: &Val) -> Result<&str, Error<Val>> {
    std::str::from_utf8(text_of(value)?).map_err(Error::str)
}

/// The flags of a search, as in jq: `g` searches for all matches, `n` ignores empty ones, and the others change the
/// meaning of the expression.
struct Flags(String);

impl Flags {
    fn read(flags: &Val) -> Result<Self, Error<Val>> {
        let flags = string_of(flags)?;
        match flags.chars().find(|flag| !"gnimslxp".contains(*flag)) {
            Some(unknown) => Err(Error::str(format_args!("invalid regex flag: {unknown}"))),
            None => Ok(Self(flags.to_owned())),
        }
    }

    fn has(&self, flag: char) -> bool {
        self.0.contains(flag)
    }

    fn builder(&self, expression: &str) -> RegexBuilder {
        let mut builder = RegexBuilder::new(expression);
        builder
            .case_insensitive(self.has('i'))
            .multi_line(self.has('m') || self.has('p'))
            .dot_matches_new_line(self.has('s') || self.has('p'))
            .swap_greed(self.has('l'))
            .ignore_whitespace(self.has('x'));
        builder
    }
}

/// A compiled expression with its flags.
struct Search {
    regex: Regex,
    flags: Flags,
    /// The work for each byte of the text: a bound for the size of the expression, and for the groups that each state
    /// keeps.
    cost: usize,
}

impl Search {
    fn new(expression: &Val, flags: Flags) -> Result<Self, Error<Val>> {
        let expression = string_of(expression)?;
        if expression.len() > LARGEST {
            return Err(Error::str(TOO_LARGE));
        }
        let mut builder = flags.builder(expression);
        let mut failure = None;
        for size in SIZES {
            match builder.size_limit(size).build() {
                Ok(regex) if regex.captures_len() > MOST_GROUPS => return Err(Error::str(TOO_LARGE)),
                Ok(regex) => {
                    let cost = size.saturating_mul(GROUPS + regex.captures_len()) / GROUPS;
                    return Ok(Self { regex, flags, cost });
                }
                Err(error) => failure = Some(error),
            }
        }
        let reason = failure.map(|error| error.to_string()).unwrap_or_default();
        Err(Error::str(format_args!("invalid regex: {reason}")))
    }

    fn run<'a>(&self, meter: &Meter<'_>, value: &Val, wanted: Wanted) -> ValX<'a, Val> {
        let text = text_of(value)?;
        let work = (self.cost as u64).saturating_mul(text.len() as u64);
        let mut found = self.regex.captures_iter(text);
        // The end of the last match, and the number of characters before the start of the last match.
        let (mut end, mut counted, mut characters) = (0, 0, 0);
        let mut parts = Vec::new();
        loop {
            meter.search(work).map_err(|_| Exn::halt(0))?;
            let Some((captures, whole)) = found.next().and_then(|it| it.get(0).map(|whole| (it, whole)))
            else {
                break;
            };
            if self.flags.has('n') && whole.is_empty() {
                continue;
            }
            if wanted != Wanted::Matches {
                parts.push(value.as_sub_str(&text[end..whole.start()]));
                end = whole.end();
            }
            if wanted != Wanted::Rest {
                characters += length(&text[counted..whole.start()]);
                counted = whole.start();
                meter.charge(PIECE.saturating_mul(captures.len())).map_err(|_| Exn::halt(0))?;
                parts.push(self.groups(value, text, &captures, characters)?);
            }
            if !self.flags.has('g') {
                break;
            }
        }
        if wanted != Wanted::Matches {
            parts.push(value.as_sub_str(&text[end..]));
        }
        Ok(parts.into_iter().collect())
    }

    /// Returns the groups of a match that begins after so many `characters`, first the whole match.
    fn groups(
        &self,
        value: &Val,
        text: &[u8],
        captures: &Captures<'_>,
        characters: usize,
    ) -> Result<Val, Error<Val>> {
        let start = captures.get(0).map_or(0, |whole| whole.start());
        let groups = captures.iter().zip(self.regex.capture_names());
        let groups = groups.filter_map(|(group, name)| Some((group?, name)));
        let objects = groups.map(|(group, name)| {
            let before = text.get(start..group.start()).unwrap_or_default();
            let mut members = vec![
                ("offset", Val::from(characters + length(before))),
                ("length", Val::from(length(group.as_bytes()))),
                ("string", value.as_sub_str(group.as_bytes())),
            ];
            members.extend(name.map(|name| ("name", Val::from(name.to_owned()))));
            Val::from_map(members.into_iter().map(|(key, value)| (Val::from(key.to_owned()), value)))
        });
        objects.collect()
    }
}

/// Returns the number of characters.
fn length(text: &[u8]) -> usize {
    String::from_utf8_lossy(text).chars().count()
}
