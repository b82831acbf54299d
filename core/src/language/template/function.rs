//! The functions of the language: their names and numbers of operands.

/// A function that a command can call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Function {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    Not,
    And,
    Or,
    Index,
    Len,
    Slice,
    Print,
    Printf,
    Println,
    UrlQuery,
    Html,
    Js,
    PayloadType,
    PayloadMediaType,
    PayloadExtension,
    JsonPointer,
    Uppercase,
    Lowercase,
    Trim,
    Substring,
    Default,
    Ref,
}

/// A name, its function, and its minimum and maximum number of operands.
type Row = (&'static str, Function, usize, usize);

/// No upper limit of operands.
const MANY: usize = usize::MAX;

const FUNCTIONS: [Row; 22] = [
    ("eq", Function::Eq, 2, MANY),
    ("ne", Function::Ne, 2, 2),
    ("lt", Function::Lt, 2, 2),
    ("le", Function::Le, 2, 2),
    ("gt", Function::Gt, 2, 2),
    ("ge", Function::Ge, 2, 2),
    ("not", Function::Not, 1, 1),
    ("and", Function::And, 1, MANY),
    ("or", Function::Or, 1, MANY),
    ("index", Function::Index, 1, MANY),
    ("len", Function::Len, 1, 1),
    ("slice", Function::Slice, 1, 3),
    ("print", Function::Print, 1, MANY),
    ("printf", Function::Printf, 1, MANY),
    ("println", Function::Println, 1, MANY),
    ("urlquery", Function::UrlQuery, 1, MANY),
    ("html", Function::Html, 1, MANY),
    ("js", Function::Js, 1, MANY),
    ("payload_type", Function::PayloadType, 1, 1),
    ("payload_media_type", Function::PayloadMediaType, 1, 1),
    ("payload_extension", Function::PayloadExtension, 1, 1),
    ("json_pointer", Function::JsonPointer, 1, 1),
];

/// The helpers of identity templates, and `ref`. Alone in an action, their names are names of fields, for compatibility
/// with templates from before these helpers existed.
const HELPERS: [Row; 8] = [
    ("uppercase", Function::Uppercase, 1, 1),
    ("to_uppercase", Function::Uppercase, 1, 1),
    ("lowercase", Function::Lowercase, 1, 1),
    ("to_lowercase", Function::Lowercase, 1, 1),
    ("trim", Function::Trim, 1, 1),
    ("substring", Function::Substring, 2, 3),
    ("default", Function::Default, 2, MANY),
    ("ref", Function::Ref, 2, 2),
];

/// Words that start a control action.
const KEYWORDS: [&str; 10] =
    ["if", "else", "with", "range", "end", "define", "template", "block", "break", "continue"];

/// A function, and its minimum and maximum number of operands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Signature {
    pub(super) function: Function,
    least: usize,
    most: usize,
}

impl Signature {
    /// Returns the function called `name`.
    pub(super) fn find(name: &str) -> Option<Self> {
        let row = FUNCTIONS.iter().chain(&HELPERS).find(|row| row.0 == name)?;
        Some(Self { function: row.1, least: row.2, most: row.3 })
    }

    /// Checks the number of operands of a call. The error is the fault.
    pub(super) fn check_count(&self, name: &str, count: usize) -> Result<(), String> {
        if count < self.least {
            return Err(format!(
                "`{name}` requires {}; for a field with this name, write /{name}",
                operands(self.least)
            ));
        }
        if count > self.most {
            return Err(format!("`{name}` takes at most {}", operands(self.most)));
        }
        Ok(())
    }
}

fn operands(count: usize) -> String {
    if count == 1 { "1 operand".to_owned() } else { format!("{count} operands") }
}

/// Returns whether `name` alone in an action refers to the field with this name.
pub(super) fn is_field_name(name: &str) -> bool {
    !KEYWORDS.contains(&name)
        && !matches!(name, "true" | "false" | "nil" | "call")
        && !FUNCTIONS.iter().any(|row| row.0 == name)
}

/// Returns the reason why `name` cannot start a command, and the correction.
pub(super) fn unknown(name: &str) -> String {
    match name {
        "define" | "template" | "block" => format!(
            "`{name}` is not available: write the text where it is used; for a field with this name, write /{name}"
        ),
        "call" => "`call` is not available: values are not functions; for a field with this name, write /call"
            .to_owned(),
        "break" | "continue" => {
            format!("`{name}` is not available: use {{{{if}}}} inside of the range")
        }
        "include" => {
            "`include` is available in payloads and defaults, not in requests; include the file there and \
             refer to the field, such as {{/script}}"
                .to_owned()
        }
        "secret" => {
            "`secret` is available in payloads, not in requests; put the placeholder into a payload field and \
             refer to that field, such as {{/password}}"
                .to_owned()
        }
        "if" | "else" | "with" | "range" | "end" => {
            format!("`{name}` must be the first word of an action; for a field with this name, write /{name}")
        }
        _ => format!("unknown function `{name}`; for a field with this name, write /{name}"),
    }
}
