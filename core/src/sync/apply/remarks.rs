//! The texts about resources that differ after a successful write.

use std::fmt;

use crate::metadata::{Change, Difference};
use crate::payload::Value;
use crate::payload::pointer::array_index;
use crate::sync::model::abridged;

/// The advice about a server that shows other values than it received.
pub const CORRECTION: &str = "correct the file, or state operations.compare.transforms";

/// What the server shows in place of the declared values.
#[derive(Debug)]
pub struct Shown {
    fact: String,
    advice: Option<String>,
}

impl Shown {
    /// Returns the text. `advice` replaces advice that is missing.
    pub fn with_advice(self, advice: &str) -> String {
        format!("{}; {}", self.fact, self.advice.as_deref().unwrap_or(advice))
    }
}

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.fact)?;
        self.advice.iter().try_for_each(|advice| write!(f, "; {advice}"))
    }
}

/// Returns what the server shows in place of the declared values. If only attributes are too many, the server probably
/// sets them itself. It may never show those that it lacks, or the transforms of reads remove them.
pub fn shown_instead(differences: &[Difference], transforms: bool) -> Shown {
    let with = |change: Change| differences.iter().filter(move |difference| difference.change == change);
    let with = |change| with(change).collect::<Vec<_>>();
    let (other, lacking) = (with(Change::Replace), with(Change::Remove));
    if let Some(array) = reordered(&other) {
        let advice =
            format!("if the order does not matter, state {{{array}: set}} in operations.compare.arrays");
        let fact = format!("shows the entries of {array} in another order");
        return Shown { fact, advice: Some(advice) };
    }
    if !other.is_empty() {
        return Shown { fact: format!("shows other values at {}", places(&other)), advice: None };
    }
    if !lacking.is_empty() {
        let removed = if transforms {
            "if operations.get.transforms remove them, remove them in the file, too; "
        } else {
            ""
        };
        let advice = format!(
            "{removed}if the server never shows such attributes, state them in resource.writeOnlyAttributes"
        );
        return Shown { fact: format!("does not show {}", places(&lacking)), advice: Some(advice) };
    }
    let fact = format!("still shows {}, which the file does not state", places(&with(Change::Add)));
    let advice = "if the server sets such attributes, state operations.compare.mode: declared";
    Shown { fact, advice: Some(advice.to_owned()) }
}

/// Returns the pointer of the array if all `differences` are entries of one, and both sides have the same ones.
fn reordered(differences: &[&Difference]) -> Option<String> {
    let array_of = |difference: &Difference| {
        let (array, entry) = difference.path.rsplit_once('/').filter(|(array, _)| !array.is_empty())?;
        array_index(entry).map(|_| array.to_owned())
    };
    let array = array_of(differences.first()?)?;
    let is_entry = |difference: &&Difference| array_of(difference).as_ref() == Some(&array);
    let mut observed: Vec<&Value> = differences.iter().map(|difference| &difference.observed).collect();
    let is_shown = differences.iter().all(|difference| {
        let place = observed.iter().position(|shown| **shown == difference.desired);
        place.map(|place| observed.swap_remove(place)).is_some()
    });
    (differences.len() > 1 && differences.iter().all(is_entry) && is_shown).then_some(array)
}

/// Returns the places of the differences, of which some are named.
fn places(differences: &[&Difference]) -> String {
    let name = |difference: &&Difference| match difference.path.as_str() {
        "" => "the whole resource".to_owned(),
        path => path.to_owned(),
    };
    abridged(&differences.iter().map(name).collect::<Vec<_>>())
}
