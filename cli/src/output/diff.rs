//! Differences between the repository and the server, as text and as records.

use std::fmt::Write as _;

use declarest_core::control::{one_line, visible};
use declarest_core::metadata::{Change, Comparison, Difference};
use declarest_core::payload::pointer::Pointer;
use declarest_core::payload::{PayloadType, Value, encode};
use declarest_core::secrets::is_placeholder;
use serde::Serialize;
use similar::{ChangeTag, TextDiff};

use super::render::without_bytes;

/// The colours of a section (SGR parameters of ECMA-48).
const BOLD: &str = "1";
const RED: &str = "31";
const GREEN: &str = "32";
const CYAN: &str = "36";

/// A Unicode noncharacter, which is reserved for internal use, so payloads do not contain it.
const MARK: char = '\u{fdd0}';

/// More equal lines around a difference than a payload has. The sum of two such numbers does not overflow.
pub const ALL: usize = usize::MAX / 2;

/// How differences are shown.
#[derive(Clone, Copy, Debug)]
pub struct DiffStyle {
    pub colour: bool,
    /// Number of equal lines around a difference, at most [`ALL`].
    pub context: usize,
}

/// One difference in structured output.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct DiffRecord {
    resource_path: String,
    path: String,
    operation: Change,
    local: Value,
    remote: Value,
}

/// The drift of a resource, relative to the repository.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "UPPERCASE", const_into_str)]
pub enum Drift {
    Changed,
    /// Only the server has it.
    Added,
    /// Only the repository has it.
    Removed,
    Unchanged,
}

impl DiffRecord {
    pub fn new(resource: &str, difference: &Difference) -> Self {
        Self {
            resource_path: resource.to_owned(),
            path: difference.path.clone(),
            operation: difference.change,
            local: without_bytes(&difference.desired),
            remote: without_bytes(&difference.observed),
        }
    }

    /// Returns the record as one line, such as `replace /shops/rio/tier`.
    pub fn line(&self) -> String {
        one_line(&format!("{} {}{}", self.operation(), self.resource_path, self.path)).into_owned()
    }

    /// Returns the path of the resource.
    pub fn resource_path(&self) -> &str {
        &self.resource_path
    }

    /// Returns the change in the resource, such as `replace /tier`.
    pub fn change(&self) -> String {
        format!(
            "{} {}",
            self.operation(),
            if self.path.is_empty() { "the whole resource" } else { &self.path }
        )
    }

    const fn operation(&self) -> &'static str {
        match self.operation {
            Change::Add => "add",
            Change::Remove => "remove",
            Change::Replace => "replace",
        }
    }
}

impl Drift {
    pub fn of(compared: &Comparison) -> Self {
        match &compared.observed {
            _ if compared.differences.is_empty() => Self::Unchanged,
            None => Self::Removed,
            Some(_) if compared.desired.is_null() => Self::Added,
            Some(_) => Self::Changed,
        }
    }
}

/// Returns the section of a resource: its path, its drift, and a unified diff of its payloads in `format`.
pub fn section(path: &str, compared: &Comparison, format: PayloadType, style: DiffStyle) -> String {
    let mut text = String::new();
    let title = format!("{} [{}]", one_line(path), Drift::of(compared).into_str());
    for line in [title.as_str(), "--- repository", "+++ managed-server"] {
        add(&mut text, style, BOLD, line);
    }
    let desired = document(Some(&compared.desired), format);
    let mut observed = document(with_marks(compared).as_ref(), format);
    if desired == observed && !compared.differences.is_empty() {
        // Binary payloads of the same size.
        observed.insert(observed.trim_end_matches('\n').len(), MARK);
    }
    let diff = TextDiff::from_lines(&desired, &observed);
    let mut unified = diff.unified_diff();
    let unified = unified.context_radius(style.context.min(ALL)).missing_newline_hint(false);
    for hunk in unified.iter_hunks() {
        add(&mut text, style, CYAN, &hunk.header().to_string());
        for change in hunk.ops().iter().flat_map(|operation| diff.iter_inline_changes(operation)) {
            let (sign, colour) = match change.tag() {
                ChangeTag::Equal => (' ', ""),
                ChangeTag::Delete => ('-', RED),
                ChangeTag::Insert => ('+', GREEN),
            };
            let parts = change.iter_strings_lossy().map(|(emphasized, part)| {
                let part = part.trim_end_matches('\n').replace(MARK, "");
                let part = visible(&part);
                // Reverse video shows the words that differ from the line on the other side.
                if style.colour && emphasized { format!("\x1b[7m{part}\x1b[27m") } else { part.into_owned() }
            });
            add(&mut text, style, colour, &format!("{sign}{}", parts.collect::<String>()));
        }
    }
    text
}

/// Adds a line.
fn add(text: &mut String, style: DiffStyle, colour: &str, line: &str) {
    let _ = if style.colour && !colour.is_empty() {
        writeln!(text, "\x1b[{colour}m{line}\x1b[0m")
    } else {
        writeln!(text, "{line}")
    };
}

/// Returns the observed side with marked placeholders of secrets that differ. Without a mark, both sides would be
/// equal in the diff.
fn with_marks(compared: &Comparison) -> Option<Value> {
    let mut observed = compared.observed.clone()?;
    for Difference { path, desired, observed: shown, .. } in &compared.differences {
        if desired == shown
            && let Some(hidden) = Pointer::parse(path).ok().and_then(|at| at.get_mut(&mut observed))
        {
            mark(hidden);
        }
    }
    Some(observed)
}

fn mark(value: &mut Value) {
    match value {
        Value::String(text) if is_placeholder(text) => text.push(MARK),
        Value::Array(items) => items.iter_mut().for_each(mark),
        Value::Object(members) => members.values_mut().for_each(mark),
        _ => {}
    }
}

/// Returns a summary such as `Summary: 1 changed, 3 unchanged`. Zero counts are omitted.
pub fn summary(drifts: &[Drift], failed: usize) -> String {
    let kinds = [Drift::Changed, Drift::Added, Drift::Removed, Drift::Unchanged];
    let counts = kinds.into_iter().filter_map(|kind| {
        let count = drifts.iter().filter(|drift| **drift == kind).count();
        (count > 0).then(|| format!("{count} {}", kind.into_str().to_lowercase()))
    });
    let counts = counts.chain((failed > 0).then(|| format!("{failed} failed")));
    format!("Summary: {}", counts.collect::<Vec<_>>().join(", "))
}

/// Returns a value, such as a side of the diff, as lines.
pub(super) fn document(side: Option<&Value>, format: PayloadType) -> String {
    let mut text = match side {
        None | Some(Value::Null) => return String::new(),
        Some(Value::Bytes(bytes)) => {
            format!("<binary {}, {} bytes>", PayloadType::OctetStream.media_type(), bytes.len())
        }
        Some(Value::String(text)) => text.clone(),
        Some(value) => {
            let format = if format == PayloadType::Yaml { format } else { PayloadType::Json };
            // Neither can represent bytes within a structure. No supported format contains them.
            let encoded = encode(format, value).unwrap_or_default();
            String::from_utf8_lossy(&encoded).into_owned()
        }
    };
    if !text.ends_with('\n') {
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use declarest_core::metadata::differences;
    use declarest_core::payload::decode;
    use declarest_core::secrets::DeclaredSecrets;
    use rstest::rstest;

    use super::*;

    const PLAIN: DiffStyle = DiffStyle { colour: false, context: 3 };

    fn yaml(text: &str) -> Value {
        decode(PayloadType::Yaml, text.as_bytes()).unwrap()
    }

    fn compared(desired: Value, observed: Option<Value>) -> Comparison {
        let differences = differences(&desired, observed.as_ref().unwrap_or(&Value::Null));
        Comparison { desired, observed, differences }
    }

    #[test]
    fn a_changed_resource() {
        let sides = compared(
            yaml("{a: 1, b: 2, c: 3, d: 4, e: 5, f: 6}"),
            Some(yaml("{a: 1, b: 2, c: 3, d: 4, e: 50, f: 6}")),
        );
        insta::assert_snapshot!(section("/x", &sides, PayloadType::Json, PLAIN), @r#"
        /x [CHANGED]
        --- repository
        +++ managed-server
        @@ -3,6 +3,6 @@
           "b": 2,
           "c": 3,
           "d": 4,
        -  "e": 5,
        +  "e": 50,
           "f": 6
         }
        "#);
        let all = section("/x", &sides, PayloadType::Json, DiffStyle { context: ALL, ..PLAIN });
        assert!(all.contains("@@ -1,8 +1,8 @@\n {\n   \"a\": 1,"), "{all}");
        let none = section("/x", &sides, PayloadType::Json, DiffStyle { context: 0, ..PLAIN });
        assert!(none.contains("@@ -6 +6 @@\n-  \"e\": 5,\n+  \"e\": 50,\n"), "{none}");
    }

    #[rstest]
    #[case::text("a\nb\n".into(), Some("a\nc".into()), "@@ -1,2 +1,2 @@\n a\n-b\n+c\n")]
    #[case::binary(
        Value::Bytes(vec![0]),
        Some(Value::Bytes(vec![0, 1])),
        "@@ -1 +1 @@\n-<binary application/octet-stream, 1 bytes>\n+<binary application/octet-stream, 2 bytes>\n"
    )]
    #[case::binary_of_the_same_size(
        Value::Bytes(vec![0]),
        Some(Value::Bytes(vec![1])),
        "@@ -1 +1 @@\n-<binary application/octet-stream, 1 bytes>\n+<binary application/octet-stream, 1 bytes>\n"
    )]
    #[case::absent_on_the_server(Value::Int(1), None, "@@ -1 +0,0 @@\n-1\n")]
    #[case::absent_in_the_repository(Value::Null, Some(Value::Int(1)), "@@ -0,0 +1 @@\n+1\n")]
    fn other_sides(#[case] desired: Value, #[case] observed: Option<Value>, #[case] hunk: &str) {
        let section = section("/x", &compared(desired, observed), PayloadType::Json, PLAIN);
        assert!(section.ends_with(&format!("+++ managed-server\n{hunk}")), "{section}");
    }

    #[rstest]
    #[case(Value::Int(1), None, Drift::Removed)]
    #[case(Value::Null, Some(Value::Int(1)), Drift::Added)]
    #[case(Value::Int(1), Some(Value::Int(2)), Drift::Changed)]
    #[case(Value::Int(1), Some(Value::Int(1)), Drift::Unchanged)]
    fn drift(#[case] desired: Value, #[case] observed: Option<Value>, #[case] expected: Drift) {
        assert_eq!(Drift::of(&compared(desired, observed)), expected);
    }

    #[test]
    fn colours() {
        let sides = compared(Value::Int(1), Some(Value::Int(2)));
        let section = section("/x", &sides, PayloadType::Json, DiffStyle { colour: true, context: 3 });
        assert_eq!(
            section,
            "\x1b[1m/x [CHANGED]\x1b[0m\n\x1b[1m--- repository\x1b[0m\n\x1b[1m+++ managed-server\x1b[0m\n\
             \x1b[36m@@ -1 +1 @@\x1b[0m\n\x1b[31m-\x1b[7m1\x1b[27m\x1b[0m\n\x1b[32m+\x1b[7m2\x1b[27m\x1b[0m\n"
        );
    }

    #[test]
    fn words_that_differ_are_emphasized_in_colour() {
        let (desired, observed) = ("a long line with gold in it", "a long line with free in it");
        let sides = compared(desired.into(), Some(observed.into()));
        let coloured = section("/x", &sides, PayloadType::Text, DiffStyle { colour: true, context: 3 });
        assert!(coloured.contains("a long line with \x1b[7mgold\x1b[27m in it"), "{coloured:?}");
        let plain = section("/x", &sides, PayloadType::Text, PLAIN);
        assert!(plain.ends_with("-a long line with gold in it\n+a long line with free in it\n"), "{plain}");
    }

    #[test]
    fn yaml_resources_are_shown_as_yaml() {
        let sides = compared(yaml("{a: 1, b: [x]}"), Some(yaml("{a: 2, b: [x]}")));
        let section = section("/x", &sides, PayloadType::Yaml, PLAIN);
        assert!(section.ends_with("@@ -1,3 +1,3 @@\n-a: 1\n+a: 2\n b:\n     - x\n"), "{section}");
    }

    #[rstest]
    #[case::member(
        "{pin: x, size: 1}",
        "{pin: y, size: 1}",
        "/pin",
        "@@ -1,4 +1,4 @@\n {\n-  \"pin\": \"{{secret .}}\",\n+  \"pin\": \"{{secret .}}\",\n   \"size\": 1\n }\n"
    )]
    #[case::beside_another(
        "{pin: x, size: 1}",
        "{pin: y, size: 2}",
        "/pin",
        "@@ -1,4 +1,4 @@\n {\n-  \"pin\": \"{{secret .}}\",\n-  \"size\": 1\n+  \"pin\": \"{{secret .}}\",\n+  \
         \"size\": 2\n }\n"
    )]
    #[case::equal("{pin: x, size: 1}", "{pin: x, size: 2}", "/pin", "-  \"size\": 1\n+  \"size\": 2\n }\n")]
    #[case::in_an_array(
        "{users: [{pin: x}]}",
        "{users: [{pin: y}]}",
        "/users/0/pin",
        "-      \"pin\": \"{{secret .}}\"\n+      \"pin\": \"{{secret .}}\"\n     }\n   ]\n }\n"
    )]
    #[case::whole("x", "y", "", "@@ -1 +1 @@\n-{{secret .}}\n+{{secret .}}\n")]
    fn secrets_that_differ_are_placeholders_on_both_sides(
        #[case] desired: &str,
        #[case] observed: &str,
        #[case] secret: &str,
        #[case] hunk: &str,
    ) {
        let mut sides = compared(yaml(desired), Some(yaml(observed)));
        let mut secrets = DeclaredSecrets::default();
        secrets.add(&[Pointer::parse(secret).unwrap()]);
        for difference in &mut sides.differences {
            let at = Pointer::parse(&difference.path).unwrap();
            difference.desired = secrets.conceal_at(&at, std::mem::take(&mut difference.desired));
            difference.observed = secrets.conceal_at(&at, std::mem::take(&mut difference.observed));
        }
        sides.desired = secrets.conceal(sides.desired);
        sides.observed = sides.observed.map(|observed| secrets.conceal(observed));
        let section = section("/x", &sides, PayloadType::Json, PLAIN);
        assert!(section.ends_with(hunk), "{section}");
        assert_eq!(section.matches(MARK).count(), 0);
    }

    #[test]
    fn summaries_omit_zero_counts() {
        let drifts = [Drift::Unchanged, Drift::Changed, Drift::Removed, Drift::Unchanged];
        assert_eq!(summary(&drifts, 0), "Summary: 1 changed, 1 removed, 2 unchanged");
        assert_eq!(summary(&drifts[..1], 2), "Summary: 1 unchanged, 2 failed");
    }
}
