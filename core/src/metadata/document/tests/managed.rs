//! Tests of defaults files, and of inferring defaults.

use proptest::prelude::*;
use rstest::rstest;

use super::super::*;
use super::decode::yaml;
use super::defaults::any_value;
use crate::payload::{Object, PayloadType, Value, decode};
use crate::repository::DefaultsEdit;

fn value(text: &str) -> Value {
    decode(PayloadType::Yaml, text.as_bytes()).unwrap()
}

fn object(text: &str) -> Object {
    value(text).as_object().unwrap().clone()
}

fn document(defaults: &str) -> Document {
    yaml(&format!("resource: {{id: /uid, defaults: {defaults}}}"))
}

/// Returns the name and the content of the file to write.
fn written(edit: &DefaultsEdit) -> (&str, &str) {
    let file = edit.write.as_ref().unwrap();
    (&file.name, std::str::from_utf8(&file.content).unwrap())
}

#[rstest]
#[case::included("{value: '{{include defaults.json}}'}", None, ".yaml", "defaults.json", "{\n  \"a\": 1\n}")]
#[case::inline("{value: {b: 2}}", None, ".yaml", "defaults.yaml", "a: 1\n")]
#[case::none("{}", None, ".yml", "defaults.yml", "a: 1\n")]
#[case::upper_case("{}", None, ".JSON", "defaults.json", "{\n  \"a\": 1\n}")]
#[case::properties("{}", None, ".properties", "defaults.properties", "a=1\n")]
#[case::no_format_of_defaults("{}", None, ".ini", "defaults.yaml", "a: 1\n")]
#[case::no_format_of_defaults_either("{}", None, ".props", "defaults.yaml", "a: 1\n")]
#[case::profile("{}", Some("prod"), ".json", "defaults-prod.json", "{\n  \"a\": 1\n}")]
#[case::included_profile(
    "{profiles: {prod: '{{include defaults-prod.yml}}'}}",
    Some("prod"),
    ".json",
    "defaults-prod.yml",
    "a: 1\n"
)]
#[case::other_profile(
    "{profiles: {dev: '{{include defaults-dev.yml}}'}}",
    Some("prod"),
    "",
    "defaults-prod.yaml",
    "a: 1\n"
)]
#[case::dotted_profile("{}", Some("prod.eu-1"), ".yaml", "defaults-prod.eu-1.yaml", "a: 1\n")]
fn defaults_go_to_a_file(
    #[case] before: &str,
    #[case] profile: Option<&str>,
    #[case] extension: &str,
    #[case] file: &str,
    #[case] content: &str,
) {
    let mut document = document(before);
    let edit = document.keep_defaults(profile, object("{a: 1}"), extension).unwrap();
    assert_eq!(written(&edit), (file, content));
    let (stem, own) = file.rsplit_once('.').unwrap();
    let others = ["json", "yaml", "yml", "properties"].into_iter().filter(|extension| *extension != own);
    assert_eq!(edit.obsolete, others.map(|extension| format!("{stem}.{extension}")).collect::<Vec<_>>());
    assert!(document.defaults_files().contains(&file.to_owned()));
    assert_eq!(Document::decode(PayloadType::Yaml, &document.encode_yaml().unwrap()).unwrap(), document);
}

#[rstest]
#[case::baseline("{value: {a: 1}, useProfiles: [p]}", None, "{useProfiles: [p]}", "defaults")]
#[case::profile(
    "{profiles: {p: '{{include defaults-p.yml}}', q: {}}}",
    Some("p"),
    "{profiles: {q: {}}}",
    "defaults-p"
)]
#[case::last_profile("{value: {a: 1}, profiles: {p: {}}}", Some("p"), "{value: {a: 1}}", "defaults-p")]
#[case::no_such_profile("{profiles: {}}", Some("p"), "{profiles: {}}", "defaults-p")]
#[case::nothing_else("{value: {a: 1}}", None, "null", "defaults")]
fn empty_defaults_have_no_file(
    #[case] before: &str,
    #[case] profile: Option<&str>,
    #[case] after: &str,
    #[case] stem: &str,
) {
    let mut edited = document(before);
    let edit = edited.keep_defaults(profile, Object::new(), ".yaml").unwrap();
    assert_eq!(edit.write, None);
    let siblings = ["json", "yaml", "yml", "properties"].map(|extension| format!("{stem}.{extension}"));
    assert_eq!(edit.obsolete, siblings);
    assert_eq!(edited, document(after));
}

#[test]
fn an_empty_document_stays_empty() {
    let mut empty = Document::default();
    empty.keep_defaults(Some("p"), Object::new(), "").unwrap();
    assert_eq!(empty, Document::default());
    empty.keep_defaults(None, object("{a: 1}"), "").unwrap();
    empty.keep_defaults(None, Object::new(), "").unwrap();
    assert_eq!(empty, Document::default());
}

#[rstest]
#[case("../x", "resource.defaults.profiles: \"../x\" is not a profile name")]
#[case("", "resource.defaults.profiles: \"\" is not a profile name")]
fn profile_names_are_checked(#[case] profile: &str, #[case] message: &str) {
    let error = Document::default().keep_defaults(Some(profile), object("{a: 1}"), "").unwrap_err();
    assert_eq!(error.to_string(), message);
}

#[test]
fn members_that_the_file_cannot_represent_change_nothing() {
    let before = document("{value: '{{include defaults.properties}}'}");
    let mut document = before.clone();
    let error = document.keep_defaults(None, object("{a: {b: 1}}"), ".yaml").unwrap_err();
    assert_eq!(error.to_string(), "cannot encode as properties, \"/a\": an object is not allowed here");
    assert_eq!(document, before);
}

#[rstest]
#[case::all("null", &["defaults-p.yml", "defaults.yaml"])]
#[case::some("{profiles: {p: '{{include defaults-p.yml}}'}}", &["defaults.yaml"])]
#[case::none("{mode: replace, value: '{{include defaults.yaml}}', profiles: {p: '{{include defaults-p.yml}}'}}", &[])]
#[case::other_format("{value: '{{include defaults.json}}', profiles: {p: '{{include defaults-p.yml}}'}}", &["defaults.yaml"])]
fn replaced_defaults_make_their_files_obsolete(#[case] after: &str, #[case] obsolete: &[&str]) {
    let mut edited =
        document("{value: '{{include defaults.yaml}}', profiles: {p: '{{include defaults-p.yml}}', q: {}}}");
    let after = document(after);
    let edit = edited.replace_defaults(after.resource.clone().unwrap().defaults);
    let obsolete: Vec<_> = obsolete.iter().map(|file| (*file).to_owned()).collect();
    assert_eq!(edit, DefaultsEdit { write: None, obsolete });
    assert_eq!(edited, after);
}

#[rstest]
#[case::no_sample("[]", "{}")]
#[case::one_sample("[{a: 1}]", "{}")]
#[case::numbers("[{a: 1, b: 2}, {a: 1.0}]", "{a: 1}")]
#[case::scalars(
    "[{a: x, b: x, c: null, d: true}, {a: x, b: y, c: null, d: true}]",
    "{a: x, c: null, d: true}"
)]
#[case::absent_is_not_null("[{a: null}, {}]", "{}")]
#[case::arrays("[{a: [1, {b: 1}], c: [1]}, {a: [1, {b: 1}], c: [1, 2]}]", "{a: [1, {b: 1}]}")]
#[case::recursive("[{a: {b: {c: 1, d: 1}}}, {a: {b: {c: 1, d: 2}, e: 1}}]", "{a: {b: {c: 1}}}")]
#[case::empty_objects("[{a: {}, b: {}}, {a: {}, b: {c: 1}}]", "{a: {}}")]
#[case::nothing_shared_below("[{a: {b: 1}}, {a: {c: 1}}]", "{}")]
#[case::other_kinds("[{a: {b: 1}}, {a: [1]}]", "{}")]
#[case::all_of_them("[{a: 1, b: 1}, {a: 1, b: 1}, {b: 1}]", "{b: 1}")]
fn inferring(#[case] samples: &str, #[case] expected: &str) {
    let samples = value(samples);
    let samples = samples.as_array().unwrap().iter().filter_map(|sample| sample.as_object().cloned());
    assert_eq!(Value::Object(infer_defaults(&samples.collect::<Vec<_>>())), value(expected));
}

proptest! {
    #[test]
    fn inferred_defaults_change_no_sample(samples in prop::collection::vec(any_value(), 0..4)) {
        let samples: Vec<_> = samples.iter().filter_map(|sample| sample.as_object().cloned()).collect();
        let defaults = Value::Object(infer_defaults(&samples));
        for sample in samples.into_iter().map(Value::Object) {
            prop_assert_eq!(merge(defaults.clone(), sample.clone()), sample.clone());
            // The defaults restore the omitted members.
            prop_assert_eq!(merge(defaults.clone(), compact(sample.clone(), &defaults)), sample);
        }
    }
}
