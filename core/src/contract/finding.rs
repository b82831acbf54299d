//! Findings of the validation of a document.

// Texts for kubectl explain, which prints backticks as they are.
#![allow(clippy::doc_markdown)]

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The longest message, in characters.
const MAX_MESSAGE: usize = 256;
/// The longest path, in characters.
const MAX_PATH: usize = 128;
/// The maximum number of errors, and of warnings, that are collected.
const MAX_FINDINGS: usize = 100;

/// A finding of the validation of a contract document.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Finding {
    /// The kind of the finding, such as REQUIRED_FIELD.
    pub code: String,
    /// The path of the field, such as `interfaces[0].port`; empty for the whole document.
    pub path: String,
    /// The fault and the correction.
    pub message: String,
}

impl Finding {
    /// Creates a finding. Long texts are shortened.
    pub fn new(code: Code, path: &str, message: &str) -> Self {
        Self {
            code: code.as_str().to_owned(),
            path: clip(path, MAX_PATH),
            message: clip(message, MAX_MESSAGE),
        }
    }
}

/// The findings so far.
#[derive(Debug, Default)]
pub(super) struct Findings {
    pub errors: Vec<Finding>,
    pub warnings: Vec<Finding>,
}

impl Findings {
    pub fn error(&mut self, code: Code, path: &str, message: &str) {
        if self.errors.len() < MAX_FINDINGS {
            self.errors.push(Finding::new(code, path, message));
        }
    }

    pub fn warn(&mut self, code: Code, path: &str, message: &str) {
        if self.warnings.len() < MAX_FINDINGS {
            self.warnings.push(Finding::new(code, path, message));
        }
    }
}

/// Returns the text with at most `limit` characters and without control characters.
pub(super) fn clip(text: &str, limit: usize) -> String {
    let mut clean = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    let mut clipped: String = clean.by_ref().take(limit).collect();
    if clean.next().is_some() {
        clipped.pop();
        clipped.push('…');
    }
    clipped
}

macro_rules! codes {
    ($($variant:ident $text:literal),* $(,)?) => {
        /// The kind of a finding. The set is that of the format, and is closed.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Code {
            $(#[doc = concat!("`", $text, "`")] $variant,)*
        }

        impl Code {
            /// Returns its name.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }
        }
    };
}

codes! {
    ParseError "PARSE_ERROR",
    UnsupportedVersion "UNSUPPORTED_VERSION",
    RequiredField "REQUIRED_FIELD",
    InvalidType "INVALID_TYPE",
    InvalidValue "INVALID_VALUE",
    UnknownField "UNKNOWN_FIELD",
    InvalidSemver "INVALID_SEMVER",
    DuplicateInterfaceName "DUPLICATE_INTERFACE_NAME",
    PortRequired "PORT_REQUIRED",
    PortIgnored "PORT_IGNORED",
    ContractRequired "CONTRACT_REQUIRED",
    HealthInterfaceNotFound "HEALTH_INTERFACE_NOT_FOUND",
    HealthInterfaceInvalid "HEALTH_INTERFACE_INVALID",
    HealthPathRequired "HEALTH_PATH_REQUIRED",
    HealthPathIgnored "HEALTH_PATH_IGNORED",
    MetricsInterfaceNotFound "METRICS_INTERFACE_NOT_FOUND",
    MetricsInterfaceInvalid "METRICS_INTERFACE_INVALID",
    MetricsPathRequired "METRICS_PATH_REQUIRED",
    MetricsPathIgnored "METRICS_PATH_IGNORED",
    FileNotFound "FILE_NOT_FOUND",
    InvalidImageRef "INVALID_IMAGE_REF",
    ScalingForm "SCALING_FORM",
    ScalingMinExceedsMax "SCALING_MIN_EXCEEDS_MAX",
    JobScalingNotAllowed "JOB_SCALING_NOT_ALLOWED",
    StatelessPersistentConflict "STATELESS_PERSISTENT_CONFLICT",
    UpgradeStrategyStateMismatch "UPGRADE_STRATEGY_STATE_MISMATCH",
}
