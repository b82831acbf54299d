//! Segments of path templates.

/// A segment of a path of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Segment {
    /// A literal text. A segment that contains a variable and other text is also literal.
    Literal(String),
    /// `{name}`, which matches any segment.
    Variable(String),
}

impl Segment {
    /// Returns the segments of a template; repeated and trailing slashes are ignored.
    pub fn all_of(template: &str) -> Vec<Self> {
        template.split('/').filter(|text| !text.is_empty()).map(Self::parse).collect()
    }

    /// Returns the name of the variable.
    pub fn variable(&self) -> Option<&str> {
        match self {
            Self::Variable(name) => Some(name),
            Self::Literal(_) => None,
        }
    }

    /// Returns the literal text.
    pub fn literal(&self) -> Option<&str> {
        match self {
            Self::Literal(text) => Some(text),
            Self::Variable(_) => None,
        }
    }

    fn parse(text: &str) -> Self {
        let name = text.strip_prefix('{').and_then(|text| text.strip_suffix('}'));
        match name.filter(|name| !name.is_empty() && !name.contains(['{', '}'])) {
            Some(name) => Self::Variable(name.to_owned()),
            None => Self::Literal(text.to_owned()),
        }
    }
}
