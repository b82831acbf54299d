//! The languages in which metadata is written: templates and jq expressions. Payloads and
//! templates have references.
//!
//! Expressions and templates are compiled once and evaluated for each resource, within limits of time, size and depth.

pub mod jq;
pub mod reference;
pub mod referred;
pub mod template;
