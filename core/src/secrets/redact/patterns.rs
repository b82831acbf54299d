//! What is looked for in texts, all of it at once.

use std::ops::Range;

use zeroize::Zeroizing;

/// Shorter beginnings of values are too much like other words.
const SHORTEST_BEGINNING: usize = 3;
/// So many bytes of a pattern are hashed; shorter ones are not looked for.
const BEGINNING: usize = 3;
/// So many marks of a cut, from the end of a text, are looked at. Ours are the last ones.
const CUTS: usize = 8;
/// What stands where a text was cut off.
const CUT: &[u8] = "…".as_bytes();

/// Byte strings, found in time that hardly depends on how many they are.
#[derive(Clone, Default)]
pub(super) struct Patterns {
    sorted: Vec<Pattern>,
    longest: usize,
    beginnings: Beginnings,
}

#[derive(Clone)]
struct Pattern {
    bytes: Zeroizing<Vec<u8>>,
    /// The longest other one that this begins with.
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

    /// Where in `text` they are, and their beginnings where `text` was cut off. From each place the longest one.
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

    /// The length of the longest one that `text` begins with.
    fn longest_at(&self, text: &[u8]) -> Option<usize> {
        if !self.beginnings.may_have(text) {
            return None;
        }
        // All that `text` begins with stand before it in the order, each the beginning of what follows it.
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

    /// Whether one of them begins with `beginning`.
    fn begins_with(&self, beginning: &[u8]) -> bool {
        let at = self.sorted.partition_point(|pattern| pattern.bytes.as_slice() < beginning);
        beginning.len() >= SHORTEST_BEGINNING
            && self.sorted.get(at).is_some_and(|pattern| pattern.bytes.starts_with(beginning))
    }
}

/// With which bytes patterns begin, as a set of their hashes: at most places in a text nothing has to be looked for.
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

    /// The word and the bit of what begins like `text`.
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
