//! The global flags and their environment variables. A flag takes precedence over a variable, and a variable over the
//! default.

use std::time::Duration;

use clap::{ArgAction, Args, ValueEnum};

use crate::environment::{Environment, parse_boolean};

/// The highest level of `--verbose`.
const LOUDEST: u8 = 3;

/// The flags of every command.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Global Flags")]
pub struct GlobalFlags {
    /// Name of the context
    #[arg(short, long, global = true, value_name = "NAME")]
    context: Option<String>,

    /// Catalogue of contexts, relative to the working directory
    #[arg(long, global = true, value_name = "FILE")]
    pub contexts_file: Option<String>,

    /// Format of the result: auto, text, json, yaml, wide, name, ndjson, jq=EXPRESSION or jsonpath=TEMPLATE
    #[arg(short, long, global = true, value_name = "FORMAT")]
    output: Option<String>,

    /// Print more: 1 results of quiet commands, 2 requests and timing, 3 headers and bodies
    #[arg(short, long, global = true, value_name = "N", num_args = 0..=1, require_equals = true,
        default_missing_value = "+", value_parser = parse_verbose, action = ArgAction::Append)]
    verbose: Vec<Verbose>,

    /// Same as -vvv
    #[arg(short, long, global = true, hide = true, action = ArgAction::SetTrue)]
    debug: bool,

    /// Show credentials in the output of --verbose
    #[arg(long, global = true, value_name = "BOOL", num_args = 0..=1, require_equals = true,
        default_missing_value = "true", value_parser = parse_boolean, hide_possible_values = true)]
    verbose_insecure: Option<bool>,

    /// Do not print a final line with success or failure
    #[arg(short = 'n', long, global = true, value_name = "BOOL", num_args = 0..=1, require_equals = true,
        default_missing_value = "true", value_parser = parse_boolean)]
    skip_result_message: Option<bool>,

    /// Do not print warnings; results are still printed
    #[arg(long, global = true, value_name = "BOOL", num_args = 0..=1, require_equals = true,
        default_missing_value = "true", value_parser = parse_boolean)]
    ignore_warnings: Option<bool>,

    /// Do not prompt, and read standard input only if an argument names it
    #[arg(long, global = true, value_name = "BOOL", num_args = 0..=1, require_equals = true,
        default_missing_value = "true", value_parser = parse_boolean)]
    no_input: Option<bool>,

    /// Do not use colours
    #[arg(long, global = true, value_name = "BOOL", num_args = 0..=1, require_equals = true,
        default_missing_value = "true", value_parser = parse_boolean)]
    no_color: Option<bool>,

    /// How to show progress on standard error: as a bar on a terminal, as lines, or not
    #[arg(
        long,
        global = true,
        value_enum,
        default_value = "auto",
        value_name = "FORM",
        hide_default_value = true
    )]
    progress: ProgressForm,

    /// Time limit of each attempt of a request to the managed server, such as 5s or 2m; default is 30s
    #[arg(long, global = true, value_name = "TIME", value_parser = parse_interval)]
    timeout: Option<Duration>,

    /// How often a request to the managed server is repeated if that is safe; default is 3
    #[arg(long, global = true, value_name = "N")]
    retries: Option<u32>,

    /// Override a value of the context, such as managedServer.http.url=URL; may be repeated
    #[arg(long, global = true, value_name = "KEY=VALUE")]
    set: Vec<String>,

    /// Do not show long text in a pager
    #[arg(long, global = true, value_name = "BOOL", num_args = 0..=1, require_equals = true,
        default_missing_value = "true", value_parser = parse_boolean)]
    no_pager: Option<bool>,

    /// How to print failures: as text, or as JSON on one line
    #[arg(long, global = true, value_enum, value_name = "FORMAT")]
    error_format: Option<ErrorFormat>,

    /// Print help
    #[arg(short, long, global = true, action = ArgAction::Help)]
    help: Option<bool>,
}

impl GlobalFlags {
    /// Returns whether the process has more `--set` than were read: those before the command are lost if it has some.
    pub fn loses_overrides(&self) -> bool {
        let is_set = |word: &std::ffi::OsString| {
            word.to_str().is_some_and(|word| word == "--set" || word.starts_with("--set="))
        };
        !self.set.is_empty() && std::env::args_os().filter(is_set).count() > self.set.len()
    }

    /// Returns the flags for a run that prints nothing to standard error.
    pub fn without_messages(self) -> Self {
        let (verbose, debug) = (vec![Verbose::Exactly(0)], false);
        Self { verbose, debug, ignore_warnings: Some(true), no_input: Some(true), ..self }
    }
}

/// The form of progress.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ProgressForm {
    #[default]
    Auto,
    Plain,
    Off,
}

/// The form of failures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ErrorFormat {
    #[default]
    Text,
    Json,
}

/// One use of `--verbose`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verbose {
    More,
    Exactly(u8),
}

fn parse_verbose(text: &str) -> Result<Verbose, String> {
    if text == "+" {
        return Ok(Verbose::More);
    }
    match text.parse() {
        Ok(level) if level <= LOUDEST => Ok(Verbose::Exactly(level)),
        _ => Err(format!("use a number from 0 to {LOUDEST}")),
    }
}

/// The format that a user requested. Commands with a single form reject a different flag and ignore the environment
/// variable.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wish {
    pub flag: Option<String>,
    pub variable: Option<String>,
}

/// The settings from flags and environment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own on the command line")]
pub struct Settings {
    /// The name of the context, if one is chosen.
    pub context: Option<String>,
    /// The level of `--verbose`, 0 to 3.
    pub verbosity: u8,
    /// Whether messages may contain credentials.
    pub verbose_insecure: bool,
    /// Whether the final line with success or failure is omitted.
    pub skip_result_message: bool,
    /// Whether warnings are omitted.
    pub ignore_warnings: bool,
    /// Whether prompts are disabled, and standard input is read only if an argument names it.
    pub no_input: bool,
    /// Whether colours are used on a terminal.
    pub colour: bool,
    /// Whether a terminal can move its cursor.
    pub is_smart: bool,
    /// Whether long text is not shown in a pager.
    pub no_pager: bool,
    /// How failures are printed.
    pub errors: ErrorFormat,
    /// How progress is shown.
    pub progress: ProgressForm,
    /// The time limit of each attempt of a request, if it is not the default.
    pub timeout: Option<Duration>,
    /// How often a request is repeated, if it is not the default.
    pub retries: Option<u32>,
    /// Overrides of the context, of the form `key=value`.
    pub overrides: Vec<String>,
    /// The format of the result.
    pub output: Wish,
}

impl Settings {
    /// Combines flags, environment and defaults.
    pub fn new(flags: &GlobalFlags, environment: &Environment) -> Self {
        let flagged = flags.context.as_deref().map(str::trim).filter(|name| !name.is_empty());
        let context = flagged.or(environment.get("DECLAREST_CONTEXT")).map(str::to_owned);
        let is_set = |flag: Option<bool>, names: &[&str]| {
            flag.or_else(|| names.iter().find_map(|name| environment.boolean(name))).unwrap_or_default()
        };
        let no_status = ["DECLAREST_SKIP_RESULT_MESSAGE", "DECLAREST_NO_STATUS"];
        let no_color = flags.no_color.or_else(|| environment.boolean("DECLAREST_NO_COLOR"));
        let no_color = no_color.unwrap_or_else(|| environment.get("NO_COLOR").is_some());
        let dumb = matches!(environment.get("TERM"), None | Some("dumb"));
        Self {
            context,
            verbosity: verbosity(flags, environment),
            verbose_insecure: is_set(flags.verbose_insecure, &["DECLAREST_VERBOSE_INSECURE"]),
            skip_result_message: is_set(flags.skip_result_message, &no_status),
            ignore_warnings: is_set(flags.ignore_warnings, &["DECLAREST_IGNORE_WARNINGS"]),
            no_input: flags.no_input.unwrap_or_default(),
            colour: !no_color && !dumb,
            is_smart: !dumb,
            no_pager: flags.no_pager.unwrap_or_default(),
            errors: flags.error_format.unwrap_or_default(),
            progress: flags.progress,
            timeout: flags.timeout,
            retries: flags.retries,
            overrides: flags.set.clone(),
            output: Wish {
                flag: flags.output.clone(),
                variable: environment.get("DECLAREST_OUTPUT").map(str::to_owned),
            },
        }
    }
}

/// Returns the level: that of the variable; each use of the flag adds one, up to 3, and `=N` sets it.
fn verbosity(flags: &GlobalFlags, environment: &Environment) -> u8 {
    if flags.debug {
        return LOUDEST;
    }
    let level = environment.get("DECLAREST_VERBOSE").and_then(|text| text.parse::<u8>().ok());
    flags.verbose.iter().fold(level.unwrap_or_default().min(LOUDEST), |level, verbose| match verbose {
        Verbose::More => (level + 1).min(LOUDEST),
        Verbose::Exactly(level) => *level,
    })
}

/// Parses an interval such as `30s`, `5m` or `10`, which is in seconds.
pub fn parse_interval(text: &str) -> Result<Duration, String> {
    let (number, unit) =
        text.split_at(text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len()));
    let seconds = match unit {
        "" | "s" => 1,
        "m" => 60,
        "h" => 3600,
        _ => 0,
    };
    let interval = number.parse::<u32>().ok().map(|number| u64::from(number) * seconds);
    let interval = interval.filter(|seconds| *seconds > 0).map(Duration::from_secs);
    interval.ok_or_else(|| "use an interval such as 30s or 5m".to_owned())
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use rstest::rstest;

    use super::*;

    #[derive(Parser)]
    #[command(disable_help_flag = true)]
    struct Line {
        #[command(flatten)]
        flags: GlobalFlags,
    }

    fn settings(line: &str, variables: &[(&str, &str)]) -> Settings {
        let line = Line::parse_from(std::iter::once("x").chain(line.split_whitespace()));
        Settings::new(&line.flags, &variables.iter().copied().collect())
    }

    #[rstest]
    #[case("", "", 0)]
    #[case("-v", "", 1)]
    #[case("-vvv", "", 3)]
    #[case("-vvvvv", "", 3)]
    #[case("-v --verbose", "", 2)]
    #[case("-v=2", "", 2)]
    #[case("--verbose=2 -v", "", 3)]
    #[case("-v --verbose=0", "3", 0)]
    #[case("-d", "", 3)]
    #[case("", " 2 ", 2)]
    #[case("", "9", 3)]
    #[case("", "loud", 0)]
    #[case("", "-1", 0)]
    #[case("-v", "3", 3)]
    #[case("-v", "1", 2)]
    #[case("-v=1", "3", 1)]
    fn verbosity_counts(#[case] line: &str, #[case] variable: &str, #[case] expected: u8) {
        assert_eq!(settings(line, &[("DECLAREST_VERBOSE", variable)]).verbosity, expected);
    }

    #[rstest]
    #[case("--verbose=4")]
    #[case("-v=-1")]
    #[case("--no-color=maybe")]
    fn invalid_flags_are_rejected(#[case] line: &str) {
        assert!(Line::try_parse_from(["x", line]).is_err());
    }

    #[rstest]
    #[case("", &[], None)]
    #[case("-c a", &[("DECLAREST_CONTEXT", "b")], Some("a"))]
    #[case("-ca", &[], Some("a"))]
    #[case("-c=a", &[], Some("a"))]
    #[case("--context=a", &[], Some("a"))]
    #[case("", &[("DECLAREST_CONTEXT", " b ")], Some("b"))]
    #[case("", &[("DECLAREST_CONTEXT", "  ")], None)]
    fn the_context(#[case] line: &str, #[case] variables: &[(&str, &str)], #[case] expected: Option<&str>) {
        assert_eq!(settings(line, variables).context.as_deref(), expected);
    }

    #[rstest]
    #[case("", &[], true)]
    #[case("", &[("TERM", "dumb")], false)]
    #[case("", &[("TERM", "")], false)]
    #[case("", &[("NO_COLOR", "yes")], false)]
    #[case("", &[("NO_COLOR", "")], true)]
    #[case("", &[("NO_COLOR", "1"), ("DECLAREST_NO_COLOR", "false")], true)]
    #[case("", &[("NO_COLOR", "1"), ("DECLAREST_NO_COLOR", "perhaps")], false)]
    #[case("--no-color", &[], false)]
    #[case("--no-color=false", &[("DECLAREST_NO_COLOR", "1"), ("NO_COLOR", "1")], true)]
    fn colours(#[case] line: &str, #[case] variables: &[(&str, &str)], #[case] expected: bool) {
        let variables: Vec<_> = std::iter::once(("TERM", "xterm")).chain(variables.iter().copied()).collect();
        assert_eq!(settings(line, &variables).colour, expected);
    }

    #[rstest]
    #[case("", false)]
    #[case("--no-input", true)]
    #[case("--no-input=false", false)]
    fn input(#[case] line: &str, #[case] expected: bool) {
        assert_eq!(settings(line, &[]).no_input, expected);
    }

    #[rstest]
    #[case("", &[], false)]
    #[case("-n", &[], true)]
    #[case("-n=false", &[("DECLAREST_SKIP_RESULT_MESSAGE", "1")], false)]
    #[case("", &[("DECLAREST_SKIP_RESULT_MESSAGE", "t")], true)]
    #[case("", &[("DECLAREST_NO_STATUS", "true")], true)]
    #[case("", &[("DECLAREST_NO_STATUS", "1"), ("DECLAREST_SKIP_RESULT_MESSAGE", "0")], false)]
    fn footers(#[case] line: &str, #[case] variables: &[(&str, &str)], #[case] expected: bool) {
        assert_eq!(settings(line, variables).skip_result_message, expected);
    }
}
