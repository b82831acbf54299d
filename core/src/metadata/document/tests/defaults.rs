//! Tests of merging and compacting defaults.

use proptest::prelude::*;
use rstest::rstest;

use super::super::*;
use super::decode::yaml;
use crate::payload::PayloadType::{Json, Yaml};
use crate::payload::{Object, PayloadType, Value, decode};

fn value(text: &str) -> Value {
    decode(Yaml, text.as_bytes()).unwrap()
}

const ROOT: &str = "{owner: ops, limits: {cpu: 1, mem: 256}}";

/// Returns the included file of the second layer.
fn included(file: &str) -> Result<Value, IncludeError> {
    match file {
        "defaults.yaml" => Ok(value("{tier: silver, limits: {mem: 512}}")),
        "defaults-list.json" => Ok(value("[1]")),
        _ => Err(format!("{file} does not exist").into()),
    }
}

fn effective(resource: &str) -> Result<Object, DocumentError> {
    let mut layers = Layers::default();
    for defaults in [
        &format!("{{value: {ROOT}, profiles: {{prod: {{limits: {{cpu: 4}}}}}}}}"),
        "{useProfiles: [prod], value: '{{include defaults.yaml}}'}",
        resource,
    ] {
        layers.push(&yaml(&format!("resource: {{defaults: {defaults}}}")), &included)?;
    }
    layers.resolve().map(|resolved| resolved.defaults)
}

#[rstest]
#[case::none("null", "{owner: ops, tier: silver, limits: {cpu: 4, mem: 512}}")]
#[case::no_profile("{useProfiles: []}", "{owner: ops, tier: silver, limits: {cpu: 1, mem: 512}}")]
#[case::the_profile_wins(
    "{value: {limits: {cpu: 2}}}",
    "{owner: ops, tier: silver, limits: {cpu: 4, mem: 512}}"
)]
#[case::ignore("{mode: ignore, value: {tier: gold}}", "{tier: gold}")]
#[case::ignore_but_select("{mode: ignore, useProfiles: [prod]}", "{limits: {cpu: 4}}")]
#[case::inherit(
    "{mode: inherit, value: {tier: gold}, useProfiles: []}",
    "{owner: ops, tier: gold, limits: {cpu: 1, mem: 512}}"
)]
#[case::replace("{mode: replace, value: {tier: gold}}", "{tier: gold}")]
#[case::own_profile(
    "{mode: replace, useProfiles: [b, a], profiles: {a: {x: 1}, b: {x: 2, y: 2}}}",
    "{x: 1, y: 2}"
)]
#[case::catalog_entries_merge(
    "{mode: ignore, useProfiles: [prod], profiles: {prod: {limits: {mem: 9}}}}",
    "{limits: {cpu: 4, mem: 9}}"
)]
#[case::null_stays(
    "{value: {owner: null}, useProfiles: []}",
    "{owner: null, tier: silver, limits: {cpu: 1, mem: 512}}"
)]
fn three_levels(#[case] resource: &str, #[case] expected: &str) {
    assert_eq!(Value::Object(effective(resource).unwrap()), value(expected));
}

#[rstest]
#[case(
    "{mode: replace, useProfiles: [prod]}",
    "resource.defaults.useProfiles: unknown profile \"prod\"; no document defines a profile"
)]
#[case("{useProfiles: [dev]}", "resource.defaults.useProfiles: unknown profile \"dev\"; known are prod")]
#[case(
    "{profiles: {dev: '{{include defaults-dev.yml}}'}}",
    "resource.defaults.profiles.dev: cannot include defaults-dev.yml"
)]
#[case(
    "{profiles: {list: '{{include defaults-list.json}}'}}",
    "resource.defaults.profiles.list: defaults-list.json must hold an object, not an array"
)]
fn unusable_layers(#[case] resource: &str, #[case] message: &str) {
    assert_eq!(effective(resource).unwrap_err().to_string(), message);
}

#[test]
fn a_failed_include_keeps_its_reason() {
    let error = effective("{value: '{{include defaults.json}}'}").unwrap_err();
    let source = std::error::Error::source(&error).unwrap();
    assert_eq!(source.to_string(), "defaults.json does not exist");
}

#[rstest]
#[case("{{include defaults.yaml}}", Some("defaults.yaml"))]
#[case("  {{include defaults.properties}}\n", Some("defaults.properties"))]
#[case("{{include  defaults.yaml}}", None)]
#[case("{{ include defaults.yaml }}", None)]
#[case("{{include defaults.toml}}", None)]
#[case("{{include defaults.YAML}}", None)]
#[case("{{include a/defaults.yaml}}", None)]
#[case("{{include defaults-prod.yaml}}", None)]
#[case("{{include resource.yaml}}", None)]
#[case("x {{include defaults.yaml}}", None)]
#[case("silver", None)]
fn includes_are_exact(#[case] text: &str, #[case] file: Option<&str>) {
    let found = DefaultsSource::parse_include(text, "defaults").ok();
    assert_eq!(found, file.map(|file| DefaultsSource::Include(file.to_owned())));
}

#[test]
fn an_invalid_include_is_explained() {
    let error = Document::decode(Yaml, b"resource: {defaults: {profiles: {a: silver}}}").unwrap_err();
    assert_eq!(
        error.to_string(),
        "line 1, column 34: resource.defaults.profiles.a: a string here must be exactly \
         \"{{include defaults-a.<extension>}}\", with the extension json, yaml, yml, properties"
    );
}

#[rstest]
#[case("{a: 1, b: {c: 1}}", "{b: {d: 2}}", "{a: 1, b: {c: 1, d: 2}}")]
#[case("{a: [1, 2]}", "{a: [3]}", "{a: [3]}")]
#[case("{a: {b: 1}}", "{a: x}", "{a: x}")]
#[case("{a: x}", "{a: {b: 1}}", "{a: {b: 1}}")]
#[case("{a: 1}", "{a: null}", "{a: null}")]
#[case("{a: {b: 1}}", "{a: {}}", "{a: {b: 1}}")]
#[case("{a: 1}", "null", "{a: 1}")]
#[case("{a: 1}", "[]", "[]")]
fn merging(#[case] defaults: &str, #[case] over: &str, #[case] expected: &str) {
    assert_eq!(merge(value(defaults), value(over)), value(expected));
}

#[rstest]
#[case("{a: 1, b: 2}", "{a: 1.0, b: 3}", "{b: 2}")]
#[case("{a: [1, 2]}", "{a: [1, 3]}", "{a: [1, 2]}")]
#[case("{a: {b: {c: 1}}}", "{a: {b: {c: 1, d: 2}}}", "{}")]
#[case("{a: {}}", "{a: {b: 1}}", "{}")]
#[case("{a: {}}", "{a: 1}", "{a: {}}")]
#[case("{a: {}}", "{}", "{a: {}}")]
#[case("{a: null}", "{a: 1}", "{a: null}")]
#[case("{a: null}", "{a: null}", "{}")]
#[case("null", "{a: 1}", "null")]
#[case(
    "{name: Rio, owner: ops, tier: gold, limits: {cpu: 4, mem: 1024}}",
    "{owner: ops, tier: silver, limits: {cpu: 4, mem: 512}}",
    "{name: Rio, tier: gold, limits: {mem: 1024}}"
)]
fn compacting(#[case] full: &str, #[case] defaults: &str, #[case] expected: &str) {
    assert_eq!(compact(value(full), &value(defaults)), value(expected));
}

/// Small alphabets, so that values and defaults have common members.
pub(super) fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        (0_i64..3).prop_map(Value::Int),
        (0_u8..3).prop_map(|number| Value::Float(f64::from(number))),
        "[ab]".prop_map(Value::String),
    ];
    leaf.prop_recursive(4, 40, 4, |inner| {
        prop_oneof![
            1 => proptest::collection::vec(inner.clone(), 0..3).prop_map(Value::Array),
            4 => proptest::collection::btree_map("[a-c]", inner, 0..4).prop_map(Value::Object),
        ]
    })
}

fn any_object() -> impl Strategy<Value = Value> {
    proptest::collection::btree_map("[a-c]", any_value(), 0..4).prop_map(Value::Object)
}

proptest! {
    #[test]
    fn merging_restores_a_compacted_value(full in any_value(), defaults in any_object()) {
        let stored = compact(full.clone(), &defaults);
        prop_assert_eq!(merge(defaults.clone(), stored.clone()), merge(defaults.clone(), full));
        // Compacting the merged value again returns the same result.
        let read = merge(defaults.clone(), stored.clone());
        prop_assert_eq!(merge(defaults.clone(), compact(read.clone(), &defaults)), read);
    }

    #[test]
    fn the_defaults_themselves_are_compacted_to_nothing(defaults in any_object()) {
        prop_assert_eq!(compact(defaults.clone(), &defaults), Value::Object(Object::new()));
    }

    #[test]
    fn a_document_never_panics(text in "[a-z{}\\[\\]:, \"\n/~*&-]{0,60}", json in any::<bool>()) {
        let format: PayloadType = if json { Json } else { Yaml };
        let _ = Document::decode(format, text.as_bytes());
    }
}
