//! Searches a text for many patterns at once.

use std::ops::Range;

use zeroize::Zeroizing;

/// The shortest beginning of a value that is searched for. Shorter ones are too similar to other words.
const SHORTEST_BEGINNING: usize = 3;
/// The number of bytes that are hashed. Shorter patterns are ignored.
const BEGINNING: usize = 3;
/// The number of cuts that are checked, from the end of a text. The redactor's own cut is among the last ones.
const CUTS: usize = 8;
/// The mark at the place where a text was cut off.
const CUT: &[u8] = "…".as_bytes();

/// Byte strings. The time of a search hardly depends on their number.
#[derive(Clone, Default)]
pub(super) struct Patterns {
    sorted: Vec<Pattern>,
    longest: usize,
    beginnings: Beginnings,
}

#[derive(Clone)]
struct Pattern {
    bytes: Zeroizing<Vec<u8>>,
    /// The index of the longest other pattern that is a prefix of this one.
    shorter: Option<usize>,
}

impl Patterns {
    pub fn new(patterns: impl IntoIterator<Item = Zeroizing<Vec<u8>>>) -> Self {
        let mut patterns: Vec<_> = patterns.into_iter().filter(|bytes| bytes.len() >= BEGINNING).collect();
        patterns.sort_unstable_by(|a, b| a.as_slice().cmp(b.as_slice()));
        patterns.dedup();
        let mut sorted: Vec<Pattern> = Vec::with_capacity(patterns.len());
        for bytes in patterns {
            let mut shorter = sorted.len().checked_sub(1);
            while let Some(at) = shorter
                && !bytes.starts_with(&sorted[at].bytes)
            {
                shorter = sorted[at].shorter;
            }
            sorted.push(Pattern { bytes, shorter });
        }
        let longest = sorted.iter().map(|pattern| pattern.bytes.len()).max().unwrap_or_default();
        Self { beginnings: Beginnings::of(&sorted), sorted, longest }
    }

    pub fn len(&self) -> usize {
        self.sorted.len()
    }

    /// Calls `found` with the places in `text` of each pattern, and of a pattern's beginning before a cut. Of several
    /// patterns at one place only the longest counts.
    pub fn find(&self, text: &[u8], mut found: impl FnMut(Range<usize>)) {
        if self.sorted.is_empty() {
            return;
        }
        for start in 0..text.len() {
            if let Some(length) = self.longest_at(&text[start..]) {
                found(start..start + length);
            }
        }
        let cuts = (0..text.len()).rev().filter(|at| text[*at..].starts_with(CUT));
        for end in cuts.take(CUTS) {
            let mut starts = end.saturating_sub(self.longest)..=end.saturating_sub(SHORTEST_BEGINNING);
            let start = starts.find(|start| self.begins_with(&text[*start..end]));
            found(start.unwrap_or(end)..end);
        }
    }

    /// Returns the length of the longest pattern at the start of `text`.
    fn longest_at(&self, text: &[u8]) -> Option<usize> {
        if !self.beginnings.may_have(text) {
            return None;
        }
        // All patterns that are a prefix of `text` sort before it, and each is a prefix of the next.
        let before = self.sorted.partition_point(|pattern| pattern.bytes.as_slice() <= text);
        let mut at = before.checked_sub(1);
        while let Some(pattern) = at.map(|at| &self.sorted[at]) {
            if text.starts_with(&pattern.bytes) {
                return Some(pattern.bytes.len());
            }
            at = pattern.shorter;
        }
        None
    }

    /// Whether a pattern begins with `beginning`.
    fn begins_with(&self, beginning: &[u8]) -> bool {
        let at = self.sorted.partition_point(|pattern| pattern.bytes.as_slice() < beginning);
        beginning.len() >= SHORTEST_BEGINNING
            && self.sorted.get(at).is_some_and(|pattern| pattern.bytes.starts_with(beginning))
    }
}

/// The set of hashes of the first bytes of all patterns. It excludes most places of a text without a search.
#[derive(Clone, Default)]
struct Beginnings {
    bits: Vec<u64>,
}

impl Beginnings {
    fn of(patterns: &[Pattern]) -> Self {
        let words = (patterns.len() / 4).next_power_of_two();
        let mut beginnings = Self { bits: vec![0; words] };
        for pattern in patterns {
            if let Some((word, bit)) = beginnings.place(&pattern.bytes) {
                beginnings.bits[word] |= bit;
            }
        }
        beginnings
    }

    fn may_have(&self, text: &[u8]) -> bool {
        self.place(text).is_some_and(|(word, bit)| self.bits[word] & bit != 0)
    }

    /// Returns the word and the bit for the first bytes of `text`.
    fn place(&self, text: &[u8]) -> Option<(usize, u64)> {
        let &[first, second, third] = text.first_chunk::<BEGINNING>()?;
        let hash = u32::from_be_bytes([0, first, second, third]).wrapping_mul(0x9e37_79b1) >> 8;
        let hash = usize::try_from(hash).ok()?;
        Some(((hash >> 6) & (self.bits.len() - 1), 1 << (hash & 63)))
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::longest("xabcdy", &[(1, 5)])]
    #[case::shorter("abcx", &[(0, 3)])]
    #[case::neither_is_it_nor_begins_it("abcz abd", &[(0, 3)])]
    #[case::overlapping("abcdef", &[(0, 4), (2, 6)])]
    #[case::cut("x long va…", &[(2, 9)])]
    #[case::cut_too_early("x lo…", &[])]
    fn finds_all(#[case] text: &str, #[case] expected: &[(usize, usize)]) {
        let patterns = ["abc", "abcd", "cdef", "abczz", "long value"];
        let patterns = Patterns::new(patterns.map(|text| Zeroizing::new(text.as_bytes().to_vec())));
        let mut found = Vec::new();
        patterns.find(text.as_bytes(), |range| found.push((range.start, range.end)));
        found.retain(|(start, end)| start < end);
        assert_eq!(found, expected);
    }
}
