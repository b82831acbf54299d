//! Finds string literals in jq text.

/// Reads jq text, and tracks whether its end is inside of a string literal.
#[derive(Default)]
pub(super) struct JqLexer {
    around: Vec<Around>,
    comment: bool,
    /// Whether the last character of a comment is a backslash that continues it on the next line.
    continues: bool,
    /// Whether the last character is a backslash that escapes the next one.
    escaped: bool,
}

enum Around {
    String,
    /// `\(` … `)` inside of a string, with the number of its open parentheses.
    Interpolation(usize),
}

impl JqLexer {
    /// Reads `text`.
    pub(super) fn feed(&mut self, text: &str) {
        for char in text.chars() {
            self.step(char);
        }
    }

    pub(super) fn is_in_string(&self) -> bool {
        matches!(self.around.last(), Some(Around::String))
    }

    pub(super) fn is_after_backslash(&self) -> bool {
        self.escaped
    }

    fn step(&mut self, char: char) {
        if self.comment {
            self.comment = char != '\n' || self.continues;
            // A line may end with a carriage return, too.
            self.continues = match char {
                '\\' => !self.continues,
                '\r' => self.continues,
                _ => false,
            };
            return;
        }
        match (self.around.last_mut(), char) {
            (Some(Around::String), _) if self.escaped => {
                self.escaped = false;
                if char == '(' {
                    self.around.push(Around::Interpolation(0));
                }
            }
            (Some(Around::String), '\\') => self.escaped = true,
            (Some(Around::String), '"') | (Some(Around::Interpolation(0)), ')') => {
                self.around.pop();
            }
            (Some(Around::String), _) => {}
            (_, '"') => self.around.push(Around::String),
            (_, '#') => self.comment = true,
            (Some(Around::Interpolation(open)), '(') => *open += 1,
            (Some(Around::Interpolation(open)), ')') => *open -= 1,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(".a", false)]
    #[case("\"a", true)]
    #[case("\"a\"", false)]
    #[case("\"a\\\"", true)]
    #[case("\"a\\\\\"", false)]
    #[case("\"a\\(.b", false)]
    #[case("\"a\\(.b | (1) | \"c", true)]
    #[case("\"a\\((.b)", false)]
    #[case("\"a\\((.b))", true)]
    #[case("# don't \"quote\n.a", false)]
    #[case("# \"\n\"", true)]
    #[case("# a\\\n\"", false)]
    #[case("# a\\\r\n\"", false)]
    #[case("# a\\\\\n\"", true)]
    #[case("# a\\b\n\"", true)]
    #[case("\"#", true)]
    fn strings_are_found(#[case] text: &str, #[case] inside: bool) {
        let mut lexer = JqLexer::default();
        lexer.feed(text);
        assert_eq!(lexer.is_in_string(), inside);
    }
}
