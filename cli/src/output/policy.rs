//! The forms of a command's result, and the choice of the form to print.

use super::OutputError;
use super::query::Query;
use crate::settings::Wish;

/// A format that a user can request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::EnumString, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase", const_into_str)]
enum Format {
    Auto,
    Text,
    Json,
    Yaml,
    Markdown,
    Wide,
    Name,
    Ndjson,
    #[strum(to_string = "jq or jsonpath")]
    Query,
}

impl Format {
    fn parse(text: &str) -> Result<Self, OutputError> {
        match text.trim() {
            "" => Ok(Self::Auto),
            query if query.starts_with("jq=") || query.starts_with("jsonpath=") => Ok(Self::Query),
            name => {
                let format = name.parse().ok().filter(|format| *format != Self::Query);
                format.ok_or_else(|| OutputError::UnknownFormat(name.to_owned()))
            }
        }
    }
}

/// Returns an error if the flag `--output` is not a format.
pub fn check_flag(wish: &Wish) -> Result<(), OutputError> {
    wish.flag.as_deref().map(Format::parse).transpose()?;
    query(wish).map(drop)
}

/// Returns the query that the user asked for.
pub fn query(wish: &Wish) -> Result<Option<Query>, OutputError> {
    let text = wish.flag.as_deref().or(wish.variable.as_deref()).unwrap_or_default().trim();
    if let Some(text) = text.strip_prefix("jq=") {
        return Query::jq(text).map(Some);
    }
    text.strip_prefix("jsonpath=").map(Query::json_path).transpose()
}

fn requested(wish: &Wish) -> Result<Format, OutputError> {
    Format::parse(wish.flag.as_deref().or(wish.variable.as_deref()).unwrap_or_default())
}

/// The forms that the result of a command has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputPolicy {
    /// Text only.
    Text,
    /// Text, also when piped, unless a structured form is requested.
    TextDefault,
    /// Like [`Self::TextDefault`], and also Markdown.
    Plan,
    /// JSON, unless another form is requested.
    JsonDefault,
    /// Text on a terminal, JSON for programs.
    Adaptive,
    /// YAML only.
    Yaml,
    /// A payload in its own format.
    Payload,
    /// A payload in its own format, but YAML as JSON.
    PayloadNoYaml,
}

/// The form that a run prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Text,
    Json,
    Yaml,
    Markdown,
    /// Text with more columns.
    Wide,
    /// The paths of resources.
    Name,
    /// Each item of a list as JSON on one line.
    Ndjson,
    /// The outputs of a query.
    Query,
    /// The payload's own format.
    Natural {
        /// Whether YAML stays YAML.
        yaml: bool,
        /// Whether a newline is added to texts.
        newline: bool,
    },
}

impl OutputPolicy {
    pub(super) fn form(self, command: &str, wish: &Wish, terminal: bool) -> Result<Form, OutputError> {
        let only = match self {
            Self::Text => Some((Form::Text, "text", Format::Text)),
            Self::Yaml => Some((Form::Yaml, "YAML", Format::Yaml)),
            _ => None,
        };
        if let Some((form, only, format)) = only {
            return match wish.flag.as_deref().map(Format::parse).transpose()? {
                None | Some(Format::Auto) => Ok(form),
                Some(asked) if asked == format => Ok(form),
                // YAML is also text.
                Some(Format::Text) => Ok(form),
                Some(asked) => Err(OutputError::Unsupported {
                    command: command.to_owned(),
                    only,
                    format: asked.into_str(),
                }),
            };
        }
        let natural = |newline| Form::Natural { yaml: self == Self::Payload, newline };
        Ok(match (requested(wish)?, self) {
            (Format::Json, _) | (Format::Auto, Self::JsonDefault) => Form::Json,
            (Format::Yaml, _) => Form::Yaml,
            (Format::Markdown, Self::Plan) => Form::Markdown,
            (Format::Wide, _) => Form::Wide,
            (Format::Name, _) => Form::Name,
            (Format::Ndjson, _) => Form::Ndjson,
            (Format::Query, _) => Form::Query,
            (Format::Markdown, _) => {
                let (command, only) = (command.to_owned(), "text, JSON and YAML");
                return Err(OutputError::Unsupported { command, only, format: Format::Markdown.into_str() });
            }
            (format, Self::Payload | Self::PayloadNoYaml) => natural(format == Format::Text),
            (Format::Auto, Self::Adaptive) if !terminal => Form::Json,
            (Format::Text | Format::Auto, _) => Form::Text,
        })
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    const NATURAL: Form = Form::Natural { yaml: true, newline: false };
    const NATURAL_TEXT: Form = Form::Natural { yaml: true, newline: true };

    fn wish(flag: &str, variable: &str) -> Wish {
        let given = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        Wish { flag: given(flag), variable: given(variable) }
    }

    /// The table of policies and formats: automatic piped, automatic on a terminal, text, json, yaml.
    #[rstest]
    #[case(OutputPolicy::Text, [Some(Form::Text), Some(Form::Text), Some(Form::Text), None, None])]
    #[case(OutputPolicy::TextDefault, [Some(Form::Text), Some(Form::Text), Some(Form::Text), Some(Form::Json), Some(Form::Yaml)])]
    #[case(OutputPolicy::JsonDefault, [Some(Form::Json), Some(Form::Json), Some(Form::Text), Some(Form::Json), Some(Form::Yaml)])]
    #[case(OutputPolicy::Adaptive, [Some(Form::Json), Some(Form::Text), Some(Form::Text), Some(Form::Json), Some(Form::Yaml)])]
    #[case(OutputPolicy::Yaml, [Some(Form::Yaml), Some(Form::Yaml), Some(Form::Yaml), None, Some(Form::Yaml)])]
    #[case(OutputPolicy::Payload, [Some(NATURAL), Some(NATURAL), Some(NATURAL_TEXT), Some(Form::Json), Some(Form::Yaml)])]
    fn policies(#[case] policy: OutputPolicy, #[case] expected: [Option<Form>; 5]) {
        let asked = [("", false), ("auto", true), ("text", false), ("json", true), ("yaml", false)];
        let forms = asked.map(|(flag, terminal)| policy.form("x", &wish(flag, ""), terminal).ok());
        assert_eq!(forms, expected);
    }

    #[rstest]
    #[case("", "yaml", true, Form::Yaml)]
    #[case("", " text ", false, Form::Text)]
    #[case("auto", "yaml", false, Form::Json)]
    #[case("json", "yaml", true, Form::Json)]
    fn the_flag_takes_precedence_over_the_environment(
        #[case] flag: &str,
        #[case] variable: &str,
        #[case] terminal: bool,
        #[case] expected: Form,
    ) {
        assert_eq!(OutputPolicy::Adaptive.form("x", &wish(flag, variable), terminal).unwrap(), expected);
    }

    #[test]
    fn unknown_formats_are_rejected_in_flag_and_environment() {
        for wish in [wish("xml", ""), wish("", "xml")] {
            let refused = OutputPolicy::Adaptive.form("x", &wish, true);
            assert!(matches!(refused, Err(OutputError::UnknownFormat(_))));
        }
    }

    #[test]
    fn commands_with_one_form_ignore_the_environment() {
        for variable in ["json", "xml"] {
            assert_eq!(OutputPolicy::Text.form("x", &wish("", variable), true).unwrap(), Form::Text);
            assert_eq!(OutputPolicy::Yaml.form("x", &wish("", variable), true).unwrap(), Form::Yaml);
        }
    }
}
