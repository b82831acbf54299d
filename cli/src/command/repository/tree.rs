//! `declarest repository tree`.

use std::collections::BTreeMap;

use declarest_core::control::one_line;

use crate::error::Failure;
use crate::invocation::Invocation;
use crate::output::OutputPolicy;
use crate::repository::{Contact, Repository};

/// `repository tree`.
pub fn tree(invocation: &Invocation) -> Result<(), Failure> {
    let output = invocation.output(OutputPolicy::Text)?;
    let store = Repository::open(invocation.context()?, Contact::None)?.store()?;
    let mut root = Directory::default();
    for directory in store.directories()? {
        root.insert(&directory);
    }
    let mut text = String::new();
    root.draw_roots(&mut text);
    Ok(output.show(&(), Some(&text))?)
}

/// The directories below a directory, by name.
#[derive(Default)]
struct Directory(BTreeMap<String, Directory>);

impl Directory {
    fn insert(&mut self, path: &str) {
        let mut place = self;
        for name in path.split('/') {
            place = place.0.entry(one_line(name).into_owned()).or_default();
        }
    }

    /// Draws all directories. Those of the root have no connector.
    fn draw_roots(&self, text: &mut String) {
        for (name, below) in &self.0 {
            text.extend([name, "\n"]);
            below.draw("", text);
        }
    }

    /// Draws all directories below. `margin` is the text before each line.
    fn draw(&self, margin: &str, text: &mut String) {
        for (place, (name, below)) in (1..).zip(&self.0) {
            let (branch, under) =
                if place == self.0.len() { ("└── ", "    ") } else { ("├── ", "│   ") };
            text.extend([margin, branch, name, "\n"]);
            below.draw(&format!("{margin}{under}"), text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_are_sorted_within_their_parent() {
        let mut root = Directory::default();
        // In byte order, "a b" is between "a" and "a/x".
        for path in ["a", "a b", "a/x", "a/x/y", "a/z", "b", "b/c"] {
            root.insert(path);
        }
        let mut text = String::new();
        root.draw_roots(&mut text);
        insta::assert_snapshot!(text, @r"
        a
        ├── x
        │   └── y
        └── z
        a b
        b
        └── c
        ");
    }
}
