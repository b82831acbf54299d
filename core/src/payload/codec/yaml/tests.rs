//! Tests of the YAML codec.

use insta::assert_snapshot;
use rstest::rstest;

use super::*;
use crate::payload::{PayloadType, Value, decode as decode_as};

fn json(text: &str) -> Value {
    decode_as(PayloadType::Json, text.as_bytes()).unwrap()
}

fn written(json_text: &str) -> String {
    String::from_utf8(encode(&json(json_text)).unwrap()).unwrap()
}

#[rstest]
#[case::empty("", "null")]
#[case::comment_only("# a\n", "null")]
#[case::marker_only("---\n", "null")]
#[case::marked("%YAML 1.2\n---\na: 1\n...\n", r#"{"a":1}"#)]
#[case::byte_order_mark("\u{feff}a: 1", r#"{"a":1}"#)]
#[case::blocks("a:\n- 1\n- b: ~\n  c:\n", r#"{"a":[1,{"b":null,"c":null}]}"#)]
#[case::flow("{a: [1, 'x', \"\\u00e9\"], b: {}}", r#"{"a":[1,"x","é"],"b":{}}"#)]
#[case::quoted_scalars_are_strings("['1', \"true\", 'null']", r#"["1","true","null"]"#)]
#[case::block_scalars("a: |\n  x\n   y\nb: >-\n  p\n  q\n", r#"{"a":"x\n y\n","b":"p q"}"#)]
#[case::dates_are_strings("[2024-01-31, 2024-01-31T10:00:00Z]", r#"["2024-01-31","2024-01-31T10:00:00Z"]"#)]
#[case::date_keys("2024-01-31: 1", r#"{"2024-01-31":1}"#)]
#[case::legacy_booleans_are_strings("[yes, No, on]", r#"["yes","No","on"]"#)]
#[case::anchors("a: &x {p: 1}\nb: *x\nc: [*x]", r#"{"a":{"p":1},"b":{"p":1},"c":[{"p":1}]}"#)]
#[case::alias_as_key("a: &x k\n*x : 1", r#"{"a":"k","k":1}"#)]
#[case::anchor_defined_again("[&x 1, *x, &x 2, *x]", "[1,1,2,2]")]
#[case::merge(
    "a: &a {x: 1, y: 1}\nb:\n  y: 2\n  <<: *a\n  z: 3",
    r#"{"a":{"x":1,"y":1},"b":{"x":1,"y":2,"z":3}}"#
)]
#[case::merge_list(
    "a: &a {x: 1}\nb: &b {x: 2, y: 2}\nc:\n  <<: [*a, *b]",
    r#"{"a":{"x":1},"b":{"x":2,"y":2},"c":{"x":1,"y":2}}"#
)]
#[case::merge_is_shallow(
    "a: &a {m: {x: 1}}\nb: {<<: *a, m: {y: 2}}",
    r#"{"a":{"m":{"x":1}},"b":{"m":{"y":2}}}"#
)]
#[case::quoted_merge_key_is_a_key("{'<<': {a: 1}}", r#"{"<<":{"a":1}}"#)]
#[case::merge_word_as_value("a: <<", r#"{"a":"<<"}"#)]
#[case::tags(
    "[!!str 1, !!int '0x10', !!float 1, !!bool 'true', !!null '', ! 12, !!timestamp 2024-01-31]",
    r#"["1",16,1.0,true,null,"12","2024-01-31"]"#
)]
#[case::collection_tags("!!map {a: !!seq [1]}", r#"{"a":[1]}"#)]
fn decodes(#[case] yaml: &str, #[case] expected: &str) {
    assert_eq!(decode_as(PayloadType::Yaml, yaml.as_bytes()).unwrap(), json(expected));
}

#[rstest]
#[case::duplicate_key("a: 1\nb: 2\na: 3\n", "line 3, column 1: duplicate key \"a\"; keep one of them")]
#[case::duplicate_by_quoting("{a: 1, 'a': 2}", "line 1, column 8: duplicate key \"a\"; keep one of them")]
#[case::duplicate_merge(
    "a: &a {}\nb:\n  <<: *a\n  <<: *a\n",
    "line 4, column 3: duplicate key \"<<\"; keep one of them"
)]
#[case::second_document(
    "a: 1\n---\nb: 2\n",
    "line 2, column 1: a second document; there must be exactly one"
)]
#[case::empty_second_document(
    "a: 1\n---\n",
    "line 2, column 1: a second document; there must be exactly one"
)]
#[case::integer_key("1: a", "line 1, column 1: an integer cannot be a key; put it in quotes")]
#[case::boolean_key("true: a", "line 1, column 1: a boolean cannot be a key; put it in quotes")]
#[case::null_key("~: a", "line 1, column 1: null cannot be a key; put it in quotes")]
#[case::list_key(
    "[a]: b",
    "line 1, column 1: a collection cannot be a key; put text that begins with \"{\" or \"[\" in quotes"
)]
#[case::wide_integer(
    "a:\n  - 18446744073709551616",
    "line 2, column 5: an integer outside of the 64-bit range; write it as a string"
)]
#[case::infinite("a: .inf", "line 1, column 4: a number that is not finite as a 64-bit float")]
#[case::not_a_number("a: .nan", "line 1, column 4: a number that is not finite as a 64-bit float")]
#[case::merged_scalar("<<: s3cret", "line 1, column 5: \"<<\" merges only mappings or a list of them")]
#[case::within_itself("&a [*a]", "line 1, column 5: the alias refers to the node that it is part of")]
#[case::unknown_alias(
    "*a",
    "line 1, column 1: while parsing node, found unknown anchor; an alias needs its anchor (&name) above it"
)]
#[case::unknown_tag(
    "a: !Ref s3cret",
    "line 1, column 9: the tag is not one of the YAML core schema; put text that begins with \"!\" in quotes"
)]
#[case::binary(
    "!!binary czNjcmV0",
    "line 1, column 10: the tag is not one of the YAML core schema; put text that begins with \"!\" in quotes"
)]
#[case::tag_of_another_kind("!!int s3cret", "line 1, column 7: the tag \"!!int\" does not fit a string")]
#[case::collection_tag_of_another_kind(
    "!!seq {a: 1}",
    "line 1, column 7: the tag is not one of the YAML core schema; put text that begins with \"!\" in quotes"
)]
fn rejects(#[case] yaml: &str, #[case] message: &str) {
    let error = decode_as(PayloadType::Yaml, yaml.as_bytes()).unwrap_err();
    assert_eq!(error.to_string(), format!("cannot decode yaml, {message}"));
}

#[rstest]
#[case::flow("apiKey: {s3cret: 1, s3cret: 2}", "line 1, column 21")]
#[case::deeper("client_secret:\n  - a: {s3cret, s3cret}", "line 2, column 17")]
#[case::anchored("a: &b {password: {s3cret: 1, s3cret: 2}}", "line 1, column 30")]
fn keys_within_a_secret_are_not_shown(#[case] yaml: &str, #[case] place: &str) {
    assert_eq!(
        decode_as(PayloadType::Yaml, yaml.as_bytes()).unwrap_err().to_string(),
        format!(
            "cannot decode yaml, {place}: duplicate key, not shown because it may be part of a secret; put text \
             with braces in quotes, or keep one of the keys"
        )
    );
}

#[rstest]
#[case("password: !s3cret")]
#[case("password: !s3cret 1")]
#[case("password: !!s3cret")]
#[case("password: !s3cret {a: 1}")]
#[case("password: !s3cret [a]")]
#[case("password: !<s3cret> a")]
#[case("!s3cret a: b")]
#[case("a: \"s3cret")]
#[case("a: s3cret: b")]
#[case("a: [s3cret")]
#[case("a: \"s3cret\\q\"")]
#[case("a: 'b' s3cret")]
fn syntax_errors_do_not_quote_the_document(#[case] yaml: &str) {
    let message = decode_as(PayloadType::Yaml, yaml.as_bytes()).unwrap_err().to_string();
    assert!(!message.contains("s3cret"), "{message}");
}

#[test]
fn alias_bombs_are_bounded() {
    let mut yaml = format!("a0: &a0 [{}]\n", "x,".repeat(9));
    for level in 1..12 {
        let alias = format!("*a{},", level - 1);
        yaml.extend([format!("a{level}: &a{level} ["), alias.repeat(9), "]\n".to_owned()]);
    }
    let message = decode_as(PayloadType::Yaml, yaml.as_bytes()).unwrap_err().to_string();
    assert!(message.ends_with("anchors and aliases expand to more than 64 MiB"), "{message}");
}

#[test]
fn aliases_do_not_exceed_the_nesting_limit() {
    let half = "[".repeat(100) + &"]".repeat(100);
    let yaml = format!("a: &a {half}\nb: {}*a{}\n", "[".repeat(100), "]".repeat(100));
    let message = decode_as(PayloadType::Yaml, yaml.as_bytes()).unwrap_err().to_string();
    assert!(message.ends_with("arrays and objects nested deeper than 127 levels"), "{message}");
}

#[test]
fn block_style() {
    let text = written(
        r#"{"item10":1,"item9":{"b":{"c":null},"a":true},"_x":[],"empty":{},
            "list":[1,{"k":"v","sub":{"x":1,"y":[2]}},[1,[2,3]],{"only":{}}],"float":1.5,"whole":2.0}"#,
    );
    assert_snapshot!(text, @r##"
    _x: []
    empty: {}
    float: 1.5
    item9:
        a: true
        b:
            c: null
    item10: 1
    list:
        - 1
        - k: v
          sub:
            x: 1
            "y":
                - 2
        - - 1
          - - 2
            - 3
        - only: {}
    whole: 2
    "##);
}

#[test]
fn strings() {
    let text = written(
        r##"["plain text","http://a/b?c=d","", "true","12","0x1f","1_0","~","no","2024-01-31","<<","- a","-a","a: b","a:",
            "a #b","#a"," a","it's","'a'","{{include x.sh}}","*a","@a","tab\there","bell\u0007","é","\ufeff","...","---"]"##,
    );
    assert_snapshot!(text, @r##"
    - plain text
    - http://a/b?c=d
    - ""
    - "true"
    - "12"
    - "0x1f"
    - "1_0"
    - "~"
    - "no"
    - "2024-01-31"
    - "<<"
    - '- a'
    - -a
    - 'a: b'
    - 'a:'
    - 'a #b'
    - '#a'
    - ' a'
    - it's
    - '''a'''
    - '{{include x.sh}}'
    - '*a'
    - '@a'
    - "tab\there"
    - "bell\u0007"
    - é
    - "\uFEFF"
    - '...'
    - "---"
    "##);
}

#[test]
fn several_lines() {
    let text = written(
        r#"{"a":"x\n  y\n\nz","b":"x\n","c":"x\n\n","d":" x\ny","e":"\n","f":"x\n \ny","g":["x\ny",{"k\nl":"x\ny\n"}],"h":"x\r\n"}"#,
    );
    assert_snapshot!(text, @r##"
    a: |-
        x
          y

        z
    b: |
        x
    c: |+
        x

    d: " x\ny"
    e: "\n"
    f: "x\n \ny"
    g:
        - |-
            x
            y
        - "k\nl": |
            x
            y
    h: "x\r\n"
    "##);
    assert_snapshot!(written(r#""x\ny""#), @r##"
    |-
        x
        y
    "##);
}

#[test]
fn too_long_keys_are_explicit() {
    let key = "k".repeat(1100);
    let value = json(&format!(r#"{{"a":{{"{key}":{{"b":1}},"{key}2":"x\ny"}}}}"#));
    let bytes = encode(&value).unwrap();
    assert_eq!(decode_as(PayloadType::Yaml, &bytes).unwrap(), value);
}
