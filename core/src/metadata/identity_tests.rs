//! Tests of identity rules.

use rstest::rstest;

use super::*;
use crate::payload::{PayloadType, decode};

fn json(text: &str) -> Value {
    decode(PayloadType::Json, text.as_bytes()).unwrap()
}

fn template(text: &str) -> IdentityTemplate {
    IdentityTemplate::parse(text).unwrap()
}

fn shop() -> LogicalPath {
    LogicalPath::parse("/shops/rio").unwrap()
}

#[rstest]
#[case(None, Some("rio"))]
#[case(Some(Value::from(" 17 ")), Some("17"))]
#[case(Some(Value::Int(17)), Some("17"))]
#[case(Some(Value::from("  ")), Some("rio"))]
#[case(Some(Value::Null), Some("rio"))]
#[case(Some(Value::Array(vec![])), Some("rio"))]
#[case(Some(Value::from("a/b")), None)]
#[case(Some(Value::from("..")), None)]
fn conventions(#[case] id: Option<Value>, #[case] expected: Option<&str>) {
    let path = LogicalPath::parse("/shops/rio").unwrap();
    let payload = Value::Object(id.map(|id| ("id".to_owned(), id)).into_iter().collect());
    let identity = IdentityRules::default().identify(&path, &payload).ok();
    assert_eq!(identity.map(|identity| identity.remote_id).as_deref(), expected);
}

#[rstest]
#[case::nothing_explicit(None, None, "{}", "rio", "rio")]
#[case::default_is_id(None, None, r#"{"id": 17}"#, "17", "17")]
#[case::separate(Some("/uid"), Some("/name"), r#"{"uid": 8, "name": "b"}"#, "b", "8")]
#[case::simple_keeps_the_segment(Some("/uid"), Some("/name"), r#"{"name": []}"#, "rio", "rio")]
#[case::one_explicit(Some("/uid"), None, r#"{"uid": 8, "id": "x"}"#, "x", "8")]
#[case::complex(None, Some("{{lowercase name}}"), r#"{"name": "B"}"#, "b", "rio")]
fn identifies(
    #[case] id: Option<&str>,
    #[case] alias: Option<&str>,
    #[case] payload: &str,
    #[case] expected_alias: &str,
    #[case] expected_id: &str,
) {
    let rules = IdentityRules::new(id.map(template), alias.map(template));
    let identity = rules.identify(&shop(), &json(payload)).unwrap();
    assert_eq!((identity.alias.as_str(), identity.remote_id.as_str()), (expected_alias, expected_id));
    assert_eq!(rules.any_explicit(), id.is_some() || alias.is_some());
}

/// The payload of settings may have a member `id`.
#[rstest]
#[case(None, "rio")]
#[case(Some("/id"), "7")]
fn a_singleton_has_the_name_in_its_path(#[case] id: Option<&str>, #[case] expected: &str) {
    let rules = IdentityRules::new(id.map(template), None).of_singleton();
    let identity = rules.identify(&shop(), &json(r#"{"id": 7}"#)).unwrap();
    assert_eq!((identity.alias.as_str(), identity.remote_id.as_str()), ("rio", expected));
}

#[rstest]
#[case("{{lowercase name}}", "{}", "/name has no value")]
#[case("/name", r#"{"name": "a/b"}"#, "identity template \"/name\" renders an invalid name")]
#[case(
    "/name",
    r#"{"name": "a/b"}"#,
    "not allowed); if names may have slashes, state resource.pathNames: percentEncoded"
)]
#[case("/name", r#"{"name": ".."}"#, "not a single path segment")]
#[case("/name", r#"{"name": "_"}"#, "not a single path segment")]
fn invalid_names_are_rejected(#[case] alias: &str, #[case] payload: &str, #[case] expected: &str) {
    let rules = IdentityRules::new(None, Some(template(alias)));
    let error = rules.identify(&shop(), &json(payload)).unwrap_err().to_string();
    assert!(error.contains(expected), "{error}");
}

#[test]
fn the_root_is_named_by_a_slash() {
    let rules = IdentityRules::default();
    let root =
        rules.identify(&LogicalPath::root(), &rules.seed(&LogicalPath::root(), Object::new())).unwrap();
    assert_eq!(root, Identity { alias: "/".to_owned(), remote_id: "/".to_owned() });
}

#[rstest]
#[case::defaults(None, None, "{}", r#"{"id": "rio"}"#)]
#[case::both(Some("/uid"), Some("/meta/name"), "{}", r#"{"uid": "rio", "meta": {"name": "rio"}}"#)]
#[case::nothing_overwritten(
    Some("/area"),
    Some("/name"),
    r#"{"area": "eu"}"#,
    r#"{"area": "eu", "name": "rio"}"#
)]
#[case::in_the_way(Some("/area/id"), Some("/name"), r#"{"area": "eu"}"#, r#"{"area": "eu", "name": "rio"}"#)]
#[case::complex_is_not_reversed(Some("{{trim uid}}"), Some("x-{{name}}"), "{}", "{}")]
fn seeds(
    #[case] id: Option<&str>,
    #[case] alias: Option<&str>,
    #[case] derived: &str,
    #[case] expected: &str,
) {
    let rules = IdentityRules::new(id.map(template), alias.map(template));
    let Value::Object(derived) = json(derived) else { unreachable!() };
    assert_eq!(rules.seed(&shop(), derived), json(expected));
}

#[rstest]
#[case::nothing_explicit(None, None, "{}", false, &[])]
#[case::update(Some("/uid"), Some("/name"), "{}", false, &["/name", "/uid"])]
#[case::create_may_lack_the_id(Some("/uid"), Some("/name"), r#"{"name": null}"#, true, &["/name"])]
#[case::each_once(Some("{{uppercase name}}"), Some("{{/name}}-{{/name}}"), "{}", false, &["/name"])]
#[case::blank_is_there(None, Some("/name"), r#"{"name": ""}"#, false, &[])]
#[case::default_resolves(None, Some("{{default a b}}-{{c}}"), r#"{"b": 1, "c": 2}"#, false, &[])]
#[case::default_does_not(None, Some("{{default a b}}-{{c}}"), "{}", false, &["default /a /b", "/c"])]
fn required_values(
    #[case] id: Option<&str>,
    #[case] alias: Option<&str>,
    #[case] payload: &str,
    #[case] creating: bool,
    #[case] missing: &[&str],
) {
    let rules = IdentityRules::new(id.map(template), alias.map(template));
    assert_eq!(rules.missing_in(&json(payload), creating), missing);
}

#[rstest]
#[case::number("17", true)]
#[case::uuid("6f1c2b9e-4d0a-4a7e-9a52-0b6f4f2d8c11", true)]
#[case::object_id("507f1f77bcf86cd799439011", true)]
#[case::nothing("", false)]
#[case::name("ana", false)]
#[case::hexadecimal_word("cafe", false)]
#[case::letters_only("deadbeef-deadbeef-deadbeef", false)]
#[case::name_with_number("node-17", false)]
fn assigned_ids(#[case] id: &str, #[case] expected: bool) {
    assert_eq!(is_assigned(id), expected);
}
