//! Which forms the result of a command has, and which of them a run prints.

use super::OutputError;

/// A format that a user can ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Auto,
    Text,
    Json,
    Yaml,
}

impl Format {
    fn parse(text: &str) -> Result<Self, OutputError> {
        match text.trim() {
            "" | "auto" => Ok(Self::Auto),
            "text" => Ok(Self::Text),
            "json" => Ok(Self::Json),
            "yaml" => Ok(Self::Yaml),
            other => Err(OutputError::UnknownFormat(other.to_owned())),
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Text => "text",
            Self::Json => "json",
            Self::Yaml => "yaml",
        }
    }
}

/// The format that a user asked for: on the command line, which is an order, or in the environment, which
/// is a wish that commands with one form ignore.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wish {
    pub flag: Option<String>,
    pub variable: Option<String>,
}

impl Wish {
    /// Whether the flag, if there is one, names a format.
    pub fn check_flag(&self) -> Result<(), OutputError> {
        self.flag.as_deref().map(Format::parse).transpose().map(drop)
    }

    fn format(&self) -> Result<Format, OutputError> {
        Format::parse(self.flag.as_deref().or(self.variable.as_deref()).unwrap_or_default())
    }
}

/// The forms that the result of a command has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputPolicy {
    /// Text and nothing else.
    Text,
    /// Text, also when piped, unless a structured form is asked for.
    TextDefault,
    /// JSON, unless another form is asked for.
    JsonDefault,
    /// Text on a terminal, JSON for programs.
    Adaptive,
    /// YAML and nothing else.
    Yaml,
    /// A payload as what it is.
    Payload,
    /// A payload as what it is, but YAML as JSON.
    PayloadNoYaml,
}

/// The form that a run prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Text,
    Json,
    Yaml,
    /// What suits the payload.
    Natural {
        /// Whether YAML stays YAML.
        yaml: bool,
        /// Whether texts end with a newline of ours.
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
                // YAML is text as well.
                Some(Format::Text) => Ok(form),
                Some(asked) => {
                    Err(OutputError::Unsupported { command: command.to_owned(), only, format: asked.name() })
                }
            };
        }
        let natural = |newline| Form::Natural { yaml: self == Self::Payload, newline };
        Ok(match (wish.format()?, self) {
            (Format::Json, _) | (Format::Auto, Self::JsonDefault) => Form::Json,
            (Format::Yaml, _) => Form::Yaml,
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
    fn the_flag_goes_before_the_environment(
        #[case] flag: &str,
        #[case] variable: &str,
        #[case] terminal: bool,
        #[case] expected: Form,
    ) {
        assert_eq!(OutputPolicy::Adaptive.form("x", &wish(flag, variable), terminal).unwrap(), expected);
    }

    #[test]
    fn unknown_formats_are_refused_wherever_they_count() {
        for wish in [wish("xml", ""), wish("", "xml")] {
            let refused = OutputPolicy::Adaptive.form("x", &wish, true);
            assert!(matches!(refused, Err(OutputError::UnknownFormat(_))));
        }
    }

    #[test]
    fn the_environment_does_not_bind_commands_with_one_form() {
        for variable in ["json", "xml"] {
            assert_eq!(OutputPolicy::Text.form("x", &wish("", variable), true).unwrap(), Form::Text);
            assert_eq!(OutputPolicy::Yaml.form("x", &wish("", variable), true).unwrap(), Form::Yaml);
        }
    }
}
