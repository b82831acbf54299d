//! Segments of path templates.

/// A segment of a path of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Segment {
    /// Stands for itself. A segment that is a variable only in part is text, too: it fits no plain segment.
    Literal(String),
    /// `{name}`: stands for any segment.
    Variable(String),
}

impl Segment {
    /// The segments of a template; repeated and trailing slashes make none.
    pub fn all_of(template: &str) -> Vec<Self> {
        template.split('/').filter(|text| !text.is_empty()).map(Self::parse).collect()
    }

    /// The name of the variable.
    pub fn variable(&self) -> Option<&str> {
        match self {
            Self::Variable(name) => Some(name),
            Self::Literal(_) => None,
        }
    }

    /// The text that stands for itself.
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
