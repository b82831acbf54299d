//! Properties of all formats.

use proptest::prelude::*;
use rstest::rstest;

use super::*;
use crate::payload::Object;

/// Texts that stress quoting: other types, syntax, white space, line ends, unprintable characters.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z0-9]{0,6}",
        "[-?:,\\[\\]{}#&*!|>'\"%@`=~<. \\t\\n\\\\a1_+]{0,8}",
        "[ \\n\\ta#]{0,8}",
        "(true|null|yes|1_0|0x1f|1e3|\\.inf|<<|---|2024-01-31)\\n{0,2}",
        any::<String>(),
        prop::collection::vec(
            prop::char::ranges(
                (&[
                    '\u{0}'..='\u{a1}',
                    '\u{2027}'..='\u{202a}',
                    '\u{fefe}'..='\u{ff00}',
                    '\u{fffd}'..='\u{10000}'
                ][..])
                    .into()
            ),
            0..6
        )
        .prop_map(|chars| chars.into_iter().collect()),
    ]
}

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(Value::Int),
        any::<f64>().prop_filter("finite", |number| number.is_finite()).prop_map(Value::Float),
        (-1000_i32..1000).prop_map(|number| Value::Float(f64::from(number) / 4.0)),
        text().prop_map(Value::String),
    ]
}

fn tree() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(4, 32, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            prop::collection::btree_map(text(), inner, 0..4).prop_map(Value::Object),
        ]
    })
}

fn flat() -> impl Strategy<Value = Object> {
    prop::collection::btree_map(text(), text().prop_map(Value::String), 0..4)
}

fn again(payload_type: PayloadType, value: &Value) -> Value {
    let bytes = encode(payload_type, value).unwrap();
    decode(payload_type, &bytes)
        .unwrap_or_else(|error| panic!("{error} in {:?}", String::from_utf8_lossy(&bytes)))
}

proptest! {
    #[test]
    fn json_and_yaml_preserve_every_tree(value in tree()) {
        prop_assert_eq!(&again(PayloadType::Json, &value), &value);
        prop_assert_eq!(&again(PayloadType::Yaml, &value), &value);
    }

    #[test]
    fn yaml_preserves_every_string(text in text()) {
        let value = Value::String(text);
        prop_assert_eq!(&again(PayloadType::Yaml, &value), &value);
    }

    #[test]
    fn properties_preserve_every_flat_map(members in flat()) {
        let value = Value::Object(members);
        prop_assert_eq!(&again(PayloadType::Properties, &value), &value);
    }

    #[test]
    fn ini_preserves_what_it_accepts(root in flat(), sections in prop::collection::btree_map(text(), flat(), 0..3)) {
        let mut members = root;
        members.extend(sections.into_iter().map(|(name, section)| (name, Value::Object(section))));
        let value = Value::Object(members);
        if encode(PayloadType::Ini, &value).is_ok() {
            prop_assert_eq!(&again(PayloadType::Ini, &value), &value);
        }
    }

    #[test]
    fn ini_accepts_plain_words(
        root in prop::collection::btree_map("[a-z]{1,4}( [a-z]{1,3})?", "([a-z=:;#]{1,3}( [a-z]{1,3})?)?", 0..4),
        section in prop::collection::btree_map("[a-z.]{1,4}", "[a-z]{0,4}", 0..4),
    ) {
        let strings = |(key, value): (String, String)| (key, Value::String(value));
        let mut members: Object = root.into_iter().map(strings).collect();
        members.insert("A.B".to_owned(), Value::Object(section.into_iter().map(strings).collect()));
        let value = Value::Object(members);
        prop_assert_eq!(&again(PayloadType::Ini, &value), &value);
    }

    #[test]
    fn text_and_bytes_survive(bytes in prop_oneof![any::<Vec<u8>>(), any::<String>().prop_map(String::into_bytes)]) {
        for payload_type in [PayloadType::Xml, PayloadType::Hcl, PayloadType::Text, PayloadType::OctetStream] {
            let value = decode(payload_type, &bytes).unwrap();
            prop_assert_eq!(&encode(payload_type, &value).unwrap(), &bytes);
        }
    }

    #[test]
    fn decoding_never_panics_and_its_result_can_be_written(bytes in prop_oneof![
        any::<Vec<u8>>(),
        text().prop_map(String::into_bytes),
        "([-?:,\\[\\]{}#&*!|>'\"%= \n]|\\\\u?|a|1|&a|\\*a|<<: |- |: |---\n){0,12}".prop_map(String::into_bytes),
    ]) {
        for payload_type in PayloadType::ALL {
            let Ok(value) = decode(payload_type, &bytes) else { continue };
            prop_assert_eq!(again(payload_type, &value), value);
        }
    }
}

#[rstest]
#[case(PayloadType::Json)]
#[case(PayloadType::Yaml)]
#[case(PayloadType::Ini)]
#[case(PayloadType::Properties)]
fn structured_types_reject_bytes_and_name_the_place(#[case] payload_type: PayloadType) {
    let value = Value::Object(Object::from([("a/b".to_owned(), Value::Bytes(vec![1]))]));
    let error = encode(payload_type, &value).unwrap_err();
    assert!(error.to_string().contains("\"/a~1b\""), "{error}");
}

#[rstest]
#[case(PayloadType::Json)]
#[case(PayloadType::Yaml)]
#[case(PayloadType::Ini)]
#[case(PayloadType::Properties)]
fn structured_types_reject_floats_that_are_not_finite(#[case] payload_type: PayloadType) {
    for number in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let value = Value::Object(Object::from([("a".to_owned(), Value::Float(number))]));
        assert!(matches!(encode(payload_type, &value), Err(PayloadError::Encode { .. })));
    }
}

#[rstest]
#[case(PayloadType::Json)]
#[case(PayloadType::Yaml)]
fn encoding_and_decoding_have_the_same_nesting_limit(#[case] payload_type: PayloadType) {
    let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
    let deepest = decode(payload_type, nested(MAX_DEPTH).as_bytes()).unwrap();
    assert_eq!(again(payload_type, &deepest), deepest);
    assert!(decode(payload_type, nested(MAX_DEPTH + 1).as_bytes()).is_err());
    assert!(encode(payload_type, &Value::Array(vec![deepest])).is_err());
}

#[rstest]
#[case(PayloadType::Json)]
#[case(PayloadType::Yaml)]
#[case(PayloadType::Ini)]
#[case(PayloadType::Properties)]
fn structured_types_are_utf8(#[case] payload_type: PayloadType) {
    let error = decode(payload_type, b"{\n\"a\": \"\xff\"}").unwrap_err();
    assert!(error.to_string().contains("line 2"), "{error}");
}

#[rstest]
#[case(PayloadType::Xml, Value::Null)]
#[case(PayloadType::Hcl, Value::Object(Object::new()))]
#[case(PayloadType::Text, Value::Int(1))]
#[case(PayloadType::Text, Value::Bytes(b"would become a string".to_vec()))]
#[case(PayloadType::OctetStream, Value::from("text"))]
fn unstructured_types_reject_other_kinds(#[case] payload_type: PayloadType, #[case] value: Value) {
    assert!(matches!(encode(payload_type, &value), Err(PayloadError::Encode { .. })));
}

#[test]
fn text_is_verbatim() {
    let xml = "\u{feff}<a>\r\n <b/> </a>";
    assert_eq!(decode(PayloadType::Xml, xml.as_bytes()).unwrap(), Value::from(xml));
    assert_eq!(encode(PayloadType::Xml, &Value::from(xml)).unwrap(), xml.as_bytes());
}

/// Small documents with many values, which need much more memory than their text.
#[rstest]
#[case::items(PayloadType::Json, "[", "0,", "0]")]
#[case::objects(PayloadType::Json, "[", "{\"a\":0},", "0]")]
#[case::flow(PayloadType::Yaml, "[", "0,", "0]")]
#[case::blocks(PayloadType::Yaml, "", "- a: 0\n", "")]
#[case::sections(PayloadType::Ini, "", "[N]\n", "")]
#[case::keys(PayloadType::Properties, "", "N=\n", "")]
#[case::text(PayloadType::Text, "", "xxxxxxxxxx", "")]
fn a_document_with_too_many_values_is_rejected(
    #[case] payload_type: PayloadType,
    #[case] start: &str,
    #[case] item: &str,
    #[case] end: &str,
) {
    let items: String = (0..20_000).map(|number| item.replace('N', &number.to_string())).collect();
    let text = format!("{start}{items}{end}");
    let weight = decode(payload_type, text.as_bytes()).unwrap().weight();
    let error = decode_within(payload_type, text.as_bytes(), weight / 2).unwrap_err();
    assert!(error.is_too_heavy(), "{error}");
    decode_within(payload_type, text.as_bytes(), weight + weight / 2).unwrap();
}

#[test]
fn aliases_count_with_their_content() {
    let text = format!("a: &a [{}0]\nb: [*a, *a, *a, *a]", "0,".repeat(1000));
    assert!(decode_within(PayloadType::Yaml, text.as_bytes(), 100 << 10).unwrap_err().is_too_heavy());
}
