//! Checks that the modules of a crate are layers: imports between them have one direction.
//!
//! [`violations`] reads the sources from the file of the crate root. An import is a `use` declaration or a path in code.
//! It is resolved to the file that defines the item, so a re-export does not hide a circle. Code for tests is ignored.
//!
//! - The documentation of the crate root may state the order of its modules as names that `→` separates. A module may
//!   import only the modules before it.
//! - In each module, its children must not form a circle. A directory counts as one child.
//!
//! A file may import its own descendants, and these may import it.

mod imports;
mod sources;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt;
use std::path::Path;

use sources::{Crate, File};

/// One import between two files.
struct Import<'a> {
    from: &'a File,
    to: &'a File,
    line: usize,
    text: String,
}

impl fmt::Display for Import<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{} imports `{}`", self.from.path.display(), self.line, self.text)
    }
}

/// The children of one module: the imports of each pair of which the first imports the second.
type Level<'a> = BTreeMap<(&'a str, &'a str), Vec<Import<'a>>>;

/// Returns a message for each import in the wrong direction and for each circle. `root` is the file of the crate root.
/// Fails if a source cannot be read or parsed.
pub fn violations(root: &Path) -> Result<Vec<String>, String> {
    let sources = Crate::read(root)?;
    let mut levels: BTreeMap<&[String], Level<'_>> = BTreeMap::new();
    for import in sources.imports() {
        let common =
            import.from.place.iter().zip(&import.to.place).take_while(|(from, to)| from == to).count();
        let (level, from) = import.from.place.split_at(common);
        let to = &import.to.place[common..];
        // Otherwise one of the files is an ancestor of the other.
        if let ([from, ..], [to, ..]) = (from, to) {
            levels.entry(level).or_default().entry((from, to)).or_default().push(import);
        }
    }
    let mut found = Vec::new();
    if let Some(order) = &sources.order
        && let Some(level) = levels.remove(&[][..])
    {
        found.extend(wrong_directions(order, &level));
        found.extend(differences(order, &sources.children()));
    }
    for (place, level) in &levels {
        found.extend(circles(place, level));
    }
    Ok(found)
}

/// Reports imports of modules that are not before the importing module in `order`.
fn wrong_directions(order: &[String], level: &Level<'_>) -> Vec<String> {
    let position = |name: &str| order.iter().position(|module| module == name);
    let is_wrong =
        |from: &str, to: &str| position(from).zip(position(to)).is_some_and(|(from, to)| from <= to);
    let wrong = level.iter().filter(|((from, to), _)| is_wrong(from, to));
    let message =
        |from: &str, to: &str, import: &Import| format!("{import}, but `{to}` comes after `{from}`");
    let mut messages: Vec<String> = wrong
        .flat_map(|((from, to), imports)| imports.iter().map(|import| message(from, to, import)))
        .collect();
    messages.dedup();
    messages
}

/// Reports modules that `order` lacks, and names in it that are not modules.
fn differences(order: &[String], modules: &[&str]) -> Vec<String> {
    let lacking = modules.iter().filter(|module| !order.iter().any(|name| name == *module));
    let unknown = order.iter().filter(|name| !modules.contains(&name.as_str()));
    let lacking = lacking.map(|module| format!("the order of the modules lacks `{module}`"));
    lacking.chain(unknown.map(|name| format!("`{name}` in the order is not a module"))).collect()
}

/// Reports a shortest circle through each child that is in a circle, and each child in one report only.
fn circles(place: &[String], level: &Level<'_>) -> Vec<String> {
    let mut reported: Vec<&str> = Vec::new();
    let mut found = Vec::new();
    for start in level.keys().map(|(from, _)| *from) {
        if reported.contains(&start) {
            continue;
        }
        let Some(circle) = shortest_circle(start, level) else { continue };
        reported.extend(&circle);
        let steps = circle.iter().zip(circle.iter().cycle().skip(1));
        let imports: Vec<String> =
            steps.map(|(from, to)| format!("\n    {}", level[&(*from, *to)][0])).collect();
        let names = [&*circle, &[start]].concat().join(" -> ");
        let place = [&["crate".to_owned()], place].concat().join("::");
        found.push(format!("circle in `{place}`: {names}{}", imports.concat()));
    }
    found
}

fn shortest_circle<'a>(start: &'a str, level: &Level<'a>) -> Option<Vec<&'a str>> {
    let mut previous: HashMap<&str, &str> = HashMap::new();
    let mut queue = VecDeque::from([start]);
    while let Some(at) = queue.pop_front() {
        for to in level.keys().filter(|(from, _)| *from == at).map(|(_, to)| *to) {
            if to == start {
                let mut circle = vec![at];
                while let Some(before) = previous.get(circle[circle.len() - 1]) {
                    circle.push(before);
                }
                circle.reverse();
                return Some(circle);
            }
            if !previous.contains_key(to) {
                previous.insert(to, at);
                queue.push_back(to);
            }
        }
    }
    None
}
