//! Reads the value of a header field from its start to its end.

/// The text that has not been read yet.
pub(crate) struct FieldText<'v>(pub &'v str);

/// Whether `c` is white space in header fields (RFC 9110, section 5.6.3).
pub(crate) const fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t')
}

impl<'v> FieldText<'v> {
    /// Reads the text before the first character that `ends` accepts.
    pub fn until(&mut self, ends: impl Fn(char) -> bool) -> &'v str {
        let (found, rest) = self.0.split_at(self.0.find(ends).unwrap_or(self.0.len()));
        self.0 = rest;
        found
    }

    /// Reads the characters that `skipped` accepts.
    pub fn skip(&mut self, skipped: impl Fn(char) -> bool) {
        self.0 = self.0.trim_start_matches(skipped);
    }

    /// Reads `wanted`, and returns whether it is there.
    pub fn take(&mut self, wanted: char) -> bool {
        let rest = self.0.strip_prefix(wanted);
        self.0 = rest.unwrap_or(self.0);
        rest.is_some()
    }

    /// Reads a parameter: `name=value`, `name="value"`, or a name, whose value is then empty. Returns `None` if the
    /// quotes are not closed.
    pub fn parameter(&mut self) -> Option<(&'v str, String)> {
        self.skip(is_space);
        let name = self.until(|c| is_space(c) || matches!(c, '=' | ';' | ','));
        self.skip(is_space);
        Some((name, if self.take('=') { self.value()? } else { String::new() }))
    }

    fn value(&mut self) -> Option<String> {
        self.skip(is_space);
        if !self.take('"') {
            return Some(self.until(|c| is_space(c) || matches!(c, ';' | ',')).to_owned());
        }
        let mut value = String::new();
        let mut characters = self.0.chars();
        loop {
            match characters.next()? {
                '"' => break,
                '\\' => value.push(characters.next()?),
                c => value.push(c),
            }
        }
        self.0 = characters.as_str();
        Some(value)
    }
}
