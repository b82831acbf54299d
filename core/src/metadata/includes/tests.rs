//! Tests of externalized attributes.

use std::collections::BTreeMap;

use proptest::prelude::*;
use rstest::rstest;

use super::matching::concrete_file;
use super::*;
use crate::error::{Categorized, Category};
use crate::metadata::document::Document;
use crate::payload::{PayloadType, decode};

fn value(yaml: &str) -> Value {
    decode(PayloadType::Yaml, yaml.as_bytes()).unwrap()
}

fn attributes(entries: &str) -> Vec<ExternalizedAttribute> {
    let document = format!("resource: {{externalizedAttributes: [{entries}]}}");
    let document = Document::decode(PayloadType::Yaml, document.as_bytes()).unwrap();
    document.resource.unwrap().externalized_attributes.unwrap()
}

/// Reads a sidecar: each contains its own name between newlines.
fn content(file: &str) -> Result<Option<Vec<u8>>, RepositoryError> {
    match file {
        "latin1.txt" => Ok(Some(b"caf\xe9".to_vec())),
        "escape.txt" => Err(RepositoryError::SymlinkEscape(file.to_owned())),
        file if file.starts_with("no") => Ok(None),
        file => Ok(Some(format!("\n{file}\n").into_bytes())),
    }
}

fn expanded(payload: &str, entries: &str) -> Result<Value, IncludeError> {
    expand(value(payload), &attributes(entries), &content)
}

fn externalized(payload: &str, entries: &str) -> Result<Externalized, IncludeError> {
    externalize(value(payload), &attributes(entries), &content)
}

#[rstest]
#[case("open.sh", &[0], "open-0.sh")]
#[case("open.sh", &[2], "open-2.sh")]
#[case("open.sh", &[], "open.sh")]
#[case("s/run.tar.gz", &[1, 4], "s/run.tar-1-4.gz")]
#[case(".env", &[3], ".env-3")]
#[case("s/.env", &[3], "s/.env-3")]
#[case("s.d/run", &[0], "s.d/run-0")]
#[case("s.d/é.sh", &[10], "s.d/é-10.sh")]
fn indexes_precede_the_extension(#[case] file: &str, #[case] indexes: &[usize], #[case] expected: &str) {
    assert_eq!(concrete_file(file, indexes), expected);
}

const RUN: &str = "{path: /steps/*/run, file: run.sh}";

#[rstest]
#[case::key("{a: '{{include a}}'}", "{path: /a, file: a}", "{a: \"\\na\\n\"}")]
#[case::escaped_key("{'a/b': '{{include a}}'}", "{path: /a~1b, file: ./a}", "{'a/b': \"\\na\\n\"}")]
#[case::index("{a: [x, '{{include a}}']}", "{path: /a/1, file: a}", "{a: [x, \"\\na\\n\"]}")]
#[case::elements(
    "{steps: [{run: '{{include run-0.sh}}'}, {wait: 1}, {run: '{{include run-2.sh}}'}]}",
    RUN,
    "{steps: [{run: \"\\nrun-0.sh\\n\"}, {wait: 1}, {run: \"\\nrun-2.sh\\n\"}]}"
)]
#[case::elements_of_elements(
    "[[{a: '{{include x-0-0.b}}'}], [{}, {a: '{{include x-1-1.b}}'}]]",
    "{path: /*/*/a, file: x.b}",
    "[[{a: \"\\nx-0-0.b\\n\"}], [{}, {a: \"\\nx-1-1.b\\n\"}]]"
)]
#[case::star_is_a_key_of_an_object(
    "{steps: {'*': {run: '{{include run.sh}}'}, a: {run: '{{include run.sh}}'}}}",
    RUN,
    "{steps: {'*': {run: \"\\nrun.sh\\n\"}, a: {run: '{{include run.sh}}'}}}"
)]
#[case::template("{a: '<a>'}", "{path: /a, file: a, template: '<%s>'}", "{a: \"\\na\\n\"}")]
#[case::missing_key("{b: 1}", "{path: /a/b, file: no}", "{b: 1}")]
#[case::missing_index("{a: [x]}", "{path: /a/1, file: no}", "{a: [x]}")]
#[case::no_elements("{steps: []}", RUN, "{steps: []}")]
#[case::other_text("{a: text}", "{path: /a, file: no}", "{a: text}")]
#[case::other_kinds("{a: {b: 1}}", "{path: /a, file: no}", "{a: {b: 1}}")]
#[case::null_value("{a: null}", "{path: /a, file: no}", "{a: null}")]
#[case::spaced("{a: '{{ include open.sh }}'}", "{path: /a, file: open.sh}", "{a: '{{ include open.sh }}'}")]
#[case::around("{a: ' {{include a}}'}", "{path: /a, file: a}", "{a: ' {{include a}}'}")]
#[case::other_file("{a: '{{include b}}'}", "{path: /a, file: a}", "{a: '{{include b}}'}")]
#[case::other_index(
    "[{run: '{{include run-1.sh}}'}]",
    "{path: /*/run, file: run.sh}",
    "[{run: '{{include run-1.sh}}'}]"
)]
#[case::undeclared("{b: '{{include a}}'}", "{path: /a, file: a}", "{b: '{{include a}}'}")]
#[case::disabled("{a: '{{include a}}'}", "{path: /a, file: a, enabled: false}", "{a: '{{include a}}'}")]
#[case::other_template(
    "{a: '{{include a}}'}",
    "{path: /a, file: a, template: '<%s>'}",
    "{a: '{{include a}}'}"
)]
fn expanding(#[case] payload: &str, #[case] entries: &str, #[case] expected: &str) {
    assert_eq!(expanded(payload, entries).unwrap(), value(expected));
}

#[rstest]
#[case::null("null", RUN, "externalized attribute /steps/*/run: the payload is null, which has no members")]
#[case::text("x", RUN, "externalized attribute /steps/*/run: the payload is a string, which has no members")]
#[case::scalar(
    "{steps: [{run: x}, 1]}",
    RUN,
    "externalized attribute /steps/*/run: /steps/1 is an integer, which has no members"
)]
#[case::null_below(
    "{steps: null}",
    RUN,
    "externalized attribute /steps/*/run: /steps is null, which has no members"
)]
#[case::name_for_an_array(
    "{a: [x]}",
    "{path: /a/b, file: a}",
    "externalized attribute /a/b: /a is an array, and \"b\" is neither an index nor \"*\""
)]
#[case::no_canonical_index(
    "{a: [x]}",
    "{path: /a/00, file: a}",
    "externalized attribute /a/00: /a is an array, and \"00\" is neither an index nor \"*\""
)]
#[case::past_the_end(
    "{a: [x]}",
    "{path: /a/-, file: a}",
    "externalized attribute /a/-: /a is an array, and \"-\" is neither an index nor \"*\""
)]
#[case::one_place(
    "{a: [x]}",
    "{path: /a/*, file: a}, {path: /a/0, file: b}",
    "externalized attributes /a/* and /a/0both refer to /a/0; keep one of them"
)]
#[case::one_file(
    "{a: [x], b: y}",
    "{path: /a/*, file: a.sh}, {path: /b, file: s/../a-0.sh}",
    "/a/0 and /b are both stored in a-0.sh; give them different files"
)]
#[case::bad_file(
    "{}",
    "{path: /a, file: ../a}",
    "externalized attribute /a: file \"../a\" leaves the directory of the payload"
)]
fn unusable_entries(#[case] payload: &str, #[case] entries: &str, #[case] message: &str) {
    for error in [expanded(payload, entries).unwrap_err(), externalized(payload, entries).unwrap_err()] {
        assert_eq!((error.to_string().as_str(), error.category()), (message, Category::Validation));
    }
}

#[rstest]
#[case::missing("no.sh", "/a includes no.sh, which does not exist next to the payload")]
#[case::bytes("latin1.txt", "/a includes latin1.txt, which is not UTF-8 text")]
#[case::refused(
    "escape.txt",
    "/a: cannot include escape.txt: \"escape.txt\" leads outside of the repository through a symbolic link; \
     replace it with a file"
)]
fn unusable_sidecars(#[case] file: &str, #[case] message: &str) {
    let payload = format!("{{a: '{{{{include {file}}}}}'}}");
    let error = expanded(&payload, &format!("{{path: /a, file: {file}}}")).unwrap_err();
    assert_eq!((error.to_string().as_str(), error.category()), (message, Category::Validation));
}

#[test]
fn a_read_that_fails_keeps_its_category() {
    let failed = |_: &str| {
        Err(RepositoryError::Io { action: "read", file: "a".to_owned(), reason: "broken disk".to_owned() })
    };
    let payload = value("{a: '{{include a}}'}");
    let error = expand(payload, &attributes("{path: /a, file: a}"), &failed).unwrap_err();
    assert_eq!(error.category(), Category::Internal);
}

#[rstest]
#[case::elements(
    "{steps: [{run: a}, {wait: 1}, {run: c}]}",
    RUN,
    "{steps: [{run: '{{include run-0.sh}}'}, {wait: 1}, {run: '{{include run-2.sh}}'}]}",
    &[("run-0.sh", "a"), ("run-2.sh", "c")],
    &[]
)]
#[case::verbatim("{a: \"\\n x \\n\"}", "{path: /a, file: s/a}", "{a: '{{include s/a}}'}", &[("s/a", "\n x \n")], &[])]
#[case::empty("{a: ''}", "{path: /a, file: a}", "{a: '{{include a}}'}", &[("a", "")], &[])]
#[case::null_stays("{a: null}", "{path: /a, file: a}", "{a: null}", &[], &[])]
#[case::own_placeholder("{a: '{{include a}}'}", "{path: /a, file: a}", "{a: '{{include a}}'}", &[], &["a"])]
#[case::other_placeholder(
    "{a: '{{include b}}'}",
    "{path: /a, file: a}",
    "{a: '{{include a}}'}",
    &[("a", "{{include b}}")],
    &[]
)]
#[case::disabled("{a: x}", "{path: /a, file: a, enabled: false}", "{a: x}", &[], &[])]
#[case::missing("{b: x}", "{path: /a, file: a}", "{b: x}", &[], &[])]
fn externalizing(
    #[case] payload: &str,
    #[case] entries: &str,
    #[case] stored: &str,
    #[case] sidecars: &[(&str, &str)],
    #[case] kept: &[&str],
) {
    let sidecars = sidecars
        .iter()
        .map(|(file, content)| Sidecar { file: (*file).to_owned(), content: content.as_bytes().to_vec() });
    let expected = Externalized {
        payload: value(stored),
        sidecars: sidecars.collect(),
        kept: kept.iter().map(|file| (*file).to_owned()).collect(),
    };
    assert_eq!(externalized(payload, entries).unwrap(), expected);
}

#[rstest]
#[case("{a: 1}", "/a is stored in s/a, so it must be a string or null, not an integer")]
#[case("{a: [x]}", "/a is stored in s/a, so it must be a string or null, not an array")]
#[case("{a: '{{include s/a}}'}", "/a includes s/a, which does not exist next to the payload")]
fn unusable_values(#[case] payload: &str, #[case] message: &str) {
    let attributes = attributes("{path: /a, file: s/a}");
    let error = externalize(value(payload), &attributes, &|_| Ok(None)).unwrap_err();
    assert_eq!((error.to_string().as_str(), error.category()), (message, Category::Validation));
}

#[rstest]
#[case("{steps: [{run: '{{include run-0.sh}}'}, {run: text}]}", RUN, &["run-0.sh"])]
#[case("{a: '{{include a}}', b: '{{include b}}'}", "{path: /b, file: b}, {path: /a, file: a}", &["a", "b"])]
#[case::undeclared("{b: '{{include a}}'}", "{path: /a, file: a}", &[])]
#[case::disabled("{a: '{{include a}}'}", "{path: /a, file: a, enabled: false}", &[])]
#[case::entries_that_do_not_match("{a: '{{include a}}', steps: 1}", "{path: /a, file: a}, {path: /steps/*/run, file: b}", &["a"])]
#[case::null("null", RUN, &[])]
fn references(#[case] stored: &str, #[case] entries: &str, #[case] expected: &[&str]) {
    assert_eq!(referenced(&value(stored), &attributes(entries)), expected);
}

#[rstest]
#[case::shorter("{steps: [{run: x}]}", &["run-1.sh"])]
#[case::same("{steps: [{run: x}, {run: y}]}", &[])]
#[case::kept("{steps: [{run: '{{include run-0.sh}}'}, {run: y}]}", &[])]
#[case::inline_again("{steps: [{run: null}, {run: y}]}", &["run-0.sh"])]
fn stale_sidecars(#[case] payload: &str, #[case] expected: &[&str]) {
    let before =
        value("{steps: [{run: '{{include run-0.sh}}'}, {run: '{{include run-1.sh}}'}, {run: text}]}");
    assert_eq!(externalized(payload, RUN).unwrap().stale(&before, &attributes(RUN)), expected);
}

/// Returns payloads in which the entries of [`ENTRIES`] often match and never continue below a scalar.
fn payloads() -> impl Strategy<Value = Value> {
    let text = prop_oneof!["[a-z\n é{}]{0,8}", Just("{{include b.sh}}".to_owned()), any::<String>()];
    let leaf = prop_oneof![text.prop_map(Value::String), Just(Value::Null)];
    let steps = prop::collection::vec(prop::option::of(leaf.clone()), 0..4);
    (prop::option::of(leaf), steps).prop_map(|(a, steps)| {
        let member = |name: &str, value: Option<Value>| value.map(|value| (name.to_owned(), value));
        let step = |run| Value::Object(member("run", run).into_iter().collect());
        let steps = Value::Array(steps.into_iter().map(step).collect());
        Value::Object(member("a", a).into_iter().chain(member("steps", Some(steps))).collect())
    })
}

const ENTRIES: &str = "{path: /a, file: a.sh}, {path: /steps/*/run, file: s/b.sh, template: '<%s>'}";

proptest! {
    #[test]
    fn externalized_payloads_are_expanded_to_the_original(payload in payloads()) {
        let attributes = attributes(ENTRIES);
        // No file exists, so a placeholder in the payload would be an error.
        let saved = externalize(payload.clone(), &attributes, &|_| Ok(None)).unwrap();
        let files: BTreeMap<_, _> =
            saved.sidecars.iter().map(|sidecar| (sidecar.file.as_str(), &sidecar.content)).collect();
        let read = |file: &str| Ok(files.get(file).copied().cloned());
        prop_assert_eq!(expand(saved.payload.clone(), &attributes, &read).unwrap(), payload);
        prop_assert_eq!(referenced(&saved.payload, &attributes), files.keys().copied().collect::<Vec<_>>());
        // Saving the stored payload again changes nothing.
        let again = externalize(saved.payload.clone(), &attributes, &read).unwrap();
        prop_assert_eq!((&again.payload, again.sidecars.len()), (&saved.payload, 0));
        prop_assert_eq!(again.kept.len(), saved.sidecars.len());
    }

    #[test]
    fn expanding_never_panics(path in "(/[a-c*01~/]{0,2}){1,3}", file in "[a./_*%-]{0,8}") {
        if let Ok(path) = path.parse() {
            let attribute = ExternalizedAttribute {
                path, file, template: None, mode: None, save_behavior: None, render_behavior: None, enabled: None,
            };
            let payload = value("{a: [x, {b: y}], b: {'*': z}, c: null}");
            let _ = expand(payload.clone(), std::slice::from_ref(&attribute), &content);
            let _ = externalize(payload, &[attribute], &content);
        }
    }
}
