//! Results on standard output.

use std::io::{ErrorKind, IsTerminal as _, Write as _};

use serde::Serialize;

use crate::error::Failure;

/// The variable that holds the default of `--output`.
const VARIABLE: &str = "DECLAREST_OUTPUT";

/// A format that a user can ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Auto,
    Text,
    Json,
    Yaml,
}

impl Format {
    fn parse(text: &str) -> Result<Self, Failure> {
        match text.trim() {
            "" | "auto" => Ok(Self::Auto),
            "text" => Ok(Self::Text),
            "json" => Ok(Self::Json),
            "yaml" => Ok(Self::Yaml),
            other => Err(Failure::OutputFormat(other.to_owned())),
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

/// The format of a command that prints text for people and JSON for programs: `flag`, else the
/// environment, else whether standard output is a terminal.
pub fn adaptive(flag: Option<&str>) -> Result<Format, Failure> {
    let from_environment = std::env::var(VARIABLE).unwrap_or_default();
    resolve(flag, &from_environment, std::io::stdout().is_terminal())
}

fn resolve(flag: Option<&str>, variable: &str, terminal: bool) -> Result<Format, Failure> {
    Ok(match Format::parse(flag.unwrap_or(variable))? {
        Format::Auto if terminal => Format::Text,
        Format::Auto => Format::Json,
        chosen => chosen,
    })
}

/// Checks the flag of a command that prints text only. The environment does not bind such a command.
pub fn text_only(command: &'static str, flag: Option<&str>) -> Result<(), Failure> {
    match flag.map(Format::parse).transpose()? {
        None | Some(Format::Auto | Format::Text) => Ok(()),
        Some(format) => Err(Failure::TextOnly { command, format: format.name() }),
    }
}

/// Prints `value` as JSON or YAML, else `text`; each with one final newline.
pub fn print_value<T: Serialize>(value: &T, text: &str, format: Format) -> Result<(), Failure> {
    let failed = |reason: String| Failure::Encode { format: format.name(), reason };
    let mut printed = match format {
        Format::Json => serde_json::to_string_pretty(value).map_err(|error| failed(error.to_string()))?,
        Format::Yaml => serde_saphyr::to_string(value).map_err(|error| failed(error.to_string()))?,
        Format::Auto | Format::Text => text.to_owned(),
    };
    if !printed.ends_with('\n') {
        printed.push('\n');
    }
    print(printed.as_bytes())
}

/// Prints bytes as they are. A reader that has seen enough and went away is no failure.
pub fn print(bytes: &[u8]) -> Result<(), Failure> {
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(None, "", true, Format::Text)]
    #[case(None, "", false, Format::Json)]
    #[case(None, "yaml", true, Format::Yaml)]
    #[case(None, " text ", false, Format::Text)]
    #[case(Some("auto"), "yaml", false, Format::Json)]
    #[case(Some("json"), "yaml", true, Format::Json)]
    fn the_flag_goes_before_the_environment(
        #[case] flag: Option<&str>,
        #[case] variable: &str,
        #[case] terminal: bool,
        #[case] expected: Format,
    ) {
        assert_eq!(resolve(flag, variable, terminal).unwrap(), expected);
    }

    #[test]
    fn unknown_formats_are_refused_wherever_they_come_from() {
        assert!(matches!(resolve(Some("xml"), "", true), Err(Failure::OutputFormat(_))));
        assert!(matches!(resolve(None, "xml", true), Err(Failure::OutputFormat(_))));
    }
}
