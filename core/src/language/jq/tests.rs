//! Tests of jq expressions.

mod limits;

use std::sync::Arc;
use std::time::Instant;

use proptest::prelude::*;
use rstest::rstest;

use super::*;
use crate::payload::{PayloadType, decode};

fn json(text: &str) -> Value {
    decode(PayloadType::Json, text.as_bytes()).unwrap()
}

/// Evaluates with the time limit `time`.
fn within(time: Duration, text: &str, input: &Value) -> Result<Value, EvaluationError> {
    let program = Program::compile(text, Origin::Metadata).unwrap();
    on_large_stack(|| program.run_metered(input, None, &Meter::start(None, time))).unwrap()
}

fn evaluate(text: &str, input: &str) -> Result<Value, EvaluationError> {
    within(TIME_LIMIT, text, &json(input))
}

fn message(text: &str, input: &str) -> String {
    match evaluate(text, input).unwrap_err() {
        EvaluationError::Failed(reason) => reason,
        other => format!("{other:?}"),
    }
}

#[rstest]
#[case::identity(".", r#"{"a":1}"#, r#"{"a":1}"#)]
#[case::no_output("empty", "1", "null")]
#[case::several_outputs(".[]", "[1,2]", "[1,2]")]
#[case::one_of_several(".[]", "[[1]]", "[1]")]
#[case::add_member(". + {n: (.tags|length)}", r#"{"tags":[1,2]}"#, r#"{"tags":[1,2],"n":2}"#)]
#[case::wrap("{till: .}", "1", r#"{"till":1}"#)]
#[case::text_is_a_string("ascii_upcase", r#""rio""#, r#""RIO""#)]
#[case::shorthand("{a, \"b\"}", r#"{"a":1,"b":2}"#, r#"{"a":1,"b":2}"#)]
fn outputs(#[case] text: &str, #[case] input: &str, #[case] expected: &str) {
    assert_eq!(evaluate(text, input).unwrap(), json(expected));
}

#[rstest]
#[case("9223372036854775807", "9223372036854775807")]
#[case(". - 1", "9223372036854775806")]
#[case("[., -9223372036854775808]", "[9223372036854775807,-9223372036854775808]")]
#[case("[. == 9223372036854775806]", "[false]")]
#[case("tostring", r#""9223372036854775807""#)]
#[case("tostring | tonumber", "9223372036854775807")]
#[case("[.] | tojson | fromjson | .[0]", "9223372036854775807")]
fn integers_stay_exact(#[case] text: &str, #[case] expected: &str) {
    assert_eq!(evaluate(text, "9223372036854775807").unwrap(), json(expected));
}

#[rstest]
#[case(".a", "18446744073709551615")]
#[case("del(.b)", r#"{"a":18446744073709551615}"#)]
#[case(".a | tostring", r#""18446744073709551615""#)]
fn unsigned_integers_stay_exact(#[case] text: &str, #[case] expected: &str) {
    assert_eq!(evaluate(text, r#"{"a": 18446744073709551615, "b": 1}"#).unwrap(), json(expected));
}

#[rstest]
#[case(". + 1", 9_223_372_036_854_775_808.0)]
#[case(". * .", 8.507_059_173_023_462e37)]
#[case("100000000000000000000", 1e20)]
#[case("1.5 * 3", 4.5)]
fn beyond_64_bits_numbers_are_floats(#[case] text: &str, #[case] expected: f64) {
    let result = evaluate(text, "9223372036854775807").unwrap();
    assert!(
        matches!(result, Value::Float(float) if (float - expected).abs() <= expected * 1e-15),
        "{result:?}"
    );
}

#[rstest]
#[case("6 / 3 | tostring", r#""2""#)]
#[case("1.0 | tostring", r#""1""#)]
#[case("pow(2; 3) | tostring", r#""8""#)]
#[case("[10, 20] | .[4 / 4]", "20")]
#[case(r#""ab" * 2"#, r#""abab""#)]
#[case(r#""ab" * 0"#, "null")]
#[case(r#""a,b" / ",""#, r#"["a","b"]"#)]
#[case("{a: {b: 1}} * {a: {c: 2}}", r#"{"a":{"b":1,"c":2}}"#)]
#[case("7 % 3", "1")]
#[case("5.7 % 2", "1")]
#[case("-5.7 % 2.9", "-1")]
#[case("try (5 % 0.5) catch \"zero\"", "\"zero\"")]
#[case("[1, 2, 3] | .[1.7]", "2")]
#[case("[1, 2, 3] | .[length / 2]", "2")]
#[case("[1, 2, 3] | .[1.2] = 9", "[1, 9, 3]")]
#[case(r#""10:20" | strptime("%H:%M")"#, "[1900,0,1,10,20,0,1,0]")]
#[case(r#""2020-05" | strptime("%Y-%m") | mktime"#, "1588291200")]
#[case(r#""2020-01-02T03:04:05Z" | strptime("%Y-%m-%dT%H:%M:%SZ") | mktime"#, "1577934245")]
#[case(r#"try ("x" | strptime("%H:%M")) catch "invalid""#, "\"invalid\"")]
#[case("[1,2,1] - [1]", "[2]")]
fn arithmetic(#[case] text: &str, #[case] expected: &str) {
    assert_eq!(evaluate(text, "null").unwrap(), json(expected));
}

#[rstest]
#[case::null_becomes_an_object(".a.b = 1", "{}", r#"{"a":{"b":1}}"#)]
#[case::null_becomes_an_array(".a[1] = 1", "null", r#"{"a":[null,1]}"#)]
#[case::update(".a |= . + 1", r#"{"a":1}"#, r#"{"a":2}"#)]
#[case::update_each(".[] |= . * 2", "[1,2]", "[2,4]")]
#[case::update_nothing(".a |= empty", r#"{"a":1,"b":2}"#, r#"{"b":2}"#)]
#[case::update_some_away(".[] |= select(. > 1)", "[1,2,1,3]", "[2,3]")]
#[case::add_to(".n += 1", "{}", r#"{"n":1}"#)]
#[case::multiply_by(".n *= 3", r#"{"n":2}"#, r#"{"n":6}"#)]
#[case::divide_by(".n /= 2", r#"{"n":4}"#, r#"{"n":2}"#)]
#[case::right_side_sees_the_input(".a += .b", r#"{"a":1,"b":2}"#, r#"{"a":3,"b":2}"#)]
#[case::alternative(".a //= 5", r#"{"a":null}"#, r#"{"a":5}"#)]
#[case::alternative_kept(".a //= 5", r#"{"a":1}"#, r#"{"a":1}"#)]
#[case::several_assignments(".a = (1,2)", "{}", r#"[{"a":1},{"a":2}]"#)]
#[case::slice(".[1:3] = [9]", "[0,1,2,3]", "[0,9,3]")]
#[case::slice_update(".[:2] |= map(. + 1)", "[0,1,2]", "[1,2,2]")]
#[case::negative_index(".[-1] = 9", "[1,2]", "[1,9]")]
#[case::conditional(
    "(.[] | select(.a) | .b) = 1",
    r#"[{"a":true},{"a":false}]"#,
    r#"[{"a":true,"b":1},{"a":false}]"#
)]
#[case::nested("(.a, .b) |= (.c = 1)", "{}", r#"{"a":{"c":1},"b":{"c":1}}"#)]
#[case::setpath(r#"setpath(["a",0]; 1)"#, "null", r#"{"a":[1]}"#)]
#[case::delete("del(.a)", r#"{"a":1,"b":2}"#, r#"{"b":2}"#)]
#[case::delete_missing("del(.a.b)", "{}", "{}")]
#[case::delete_several_items("del(.[0,2])", "[0,1,2,3]", "[1,3]")]
#[case::delete_by_pattern(
    "del(.items[].x)",
    r#"{"items":[{"x":1,"y":2},{"x":3}]}"#,
    r#"{"items":[{"y":2},{}]}"#
)]
#[case::delete_slice("del(.[1:])", "[0,1,2]", "[0]")]
#[case::delete_selected("del(.[] | select(. > 1))", "[1,2,3]", "[1]")]
#[case::delete_everything("del(.)", "1", "null")]
#[case::delpaths(r#"delpaths([["a"],["b",0]])"#, r#"{"a":1,"b":[1,2]}"#, r#"{"b":[2]}"#)]
fn updates(#[case] text: &str, #[case] input: &str, #[case] expected: &str) {
    assert_eq!(evaluate(text, input).unwrap(), json(expected));
}

/// The expected values are those of jq.
#[rstest]
#[case::first("[1] as [$a] ?// $a | [$a]", "[1]")]
#[case::second(r#"{"a":1} as [$a] ?// {$a} ?// $a | [$a]"#, "[1]")]
#[case::last("3 as [$a] ?// {$a} ?// $a | [$a]", "[3]")]
#[case::others_are_null("[[3]] | .[] as [$a] ?// {$b} | {$a, $b}", r#"{"a":3,"b":null}"#)]
#[case::body_fails(
    r#"[[3]] | .[] as [$a] ?// [$b] | if $a != null then error("x") else {$a, $b} end"#,
    r#"{"a":null,"b":3}"#
)]
#[case::all_fail(r#"try ([[3]] | .[] as [$a] ?// [$b] | error("x")) catch ."#, r#""x""#)]
#[case::input("7 | [1] as {$a} ?// [$a] | [., $a]", "[7,1]")]
#[case::functions_stay("[[1,2]] | .[] as {$length} ?// $length | [length, $length]", "[1,[1,2]]")]
#[case::nested("[[1]] as {$a} ?// [$a] | $a as {$b} ?// [$b] | [$a, $b]", "[[1],1]")]
#[case::in_parts(r#"["\([1] as {$a} ?// [$a] | $a)", ([2] as {$a} ?// [$a] | $a)]"#, r#"["1",2]"#)]
#[case::break_out("[label $out | [1] as {$a} ?// [$a] | $a, break $out]", "[1]")]
#[case::several("[(1, [2]) as [$a] ?// $a | $a]", "[1,2]")]
#[case::alternative_operator("[.x? // 5]", "[5]")]
#[case::reduce("reduce ([1], 2) as [$a] ?// $a (0; . + $a)", "3")]
#[case::reduce_others_are_null("reduce ([[3]] | .[]) as [$a] ?// {$b} (0; [$a, $b])", "[3,null]")]
#[case::reduce_all_fail(r#"try reduce ([1], [2]) as [$a] ?// [$b] (10; error("x")) catch ."#, r#""x""#)]
#[case::foreach("[foreach ([1], 2) as [$a] ?// $a (0; . + $a)]", "[1,3]")]
#[case::foreach_extracts("[foreach ([1], 2) as [$a] ?// $a (0; . + $a; [., $a])]", "[[1,1],[3,2]]")]
#[case::foreach_extracts_several("[foreach [1] as [$a] ?// $a ((0, 5); . + $a; ., $a)]", "[1,1,6,1]")]
#[case::foreach_without_updates("[foreach ([1], [2]) as [$a] ?// [$b] (10; empty; 1)]", "[]")]
#[case::folds_nest("reduce ([1], 2) as [$a] ?// $a (0; reduce ($a, [$a]) as [$b] ?// $b (.; . + $b))", "6")]
fn alternatives_of_patterns(#[case] text: &str, #[case] expected: &str) {
    assert_eq!(evaluate(text, "null").unwrap(), json(expected));
}

#[rstest]
#[case(". as [$a] ?// | $a")]
#[case(". as [$a] ? $b | $a")]
#[case(". as ?// $b | $b")]
#[case("reduce . as [$a] ?// (0; 1)")]
#[case(". as [$a] ?// $a (0; 1)")]
fn an_incomplete_alternative_is_a_syntax_error(#[case] text: &str) {
    assert!(Program::compile(text, Origin::Metadata).is_err());
}

#[rstest]
#[case("map(.n) | add", r#"[{"n":1},{"n":2}]"#, "3")]
#[case("[.[] | select(.on) | .n]", r#"[{"on":true,"n":1},{"n":2}]"#, "[1]")]
#[case("with_entries(.value += 1)", r#"{"a":1}"#, r#"{"a":2}"#)]
#[case("to_entries", r#"{"b":1,"a":2}"#, r#"[{"key":"a","value":2},{"key":"b","value":1}]"#)]
#[case(
    "from_entries",
    r#"[{"name":"a","value":1},{"k":"b","v":2},{"key":null},{"key":3,"value":false}]"#,
    r#"{"a":1,"b":2,"null":null,"3":false}"#
)]
#[case("map_values(. + 1)", r#"{"a":1}"#, r#"{"a":2}"#)]
#[case("walk(if type == \"number\" then . + 1 else . end)", r#"{"a":[1,{"b":2}]}"#, r#"{"a":[2,{"b":3}]}"#)]
#[case("group_by(.g) | map(length)", r#"[{"g":1},{"g":2},{"g":1}]"#, "[2,1]")]
#[case("sort_by(-.)", "[1,3,2]", "[3,2,1]")]
#[case("unique", "[2,1,2]", "[1,2]")]
#[case("join(\"-\")", r#"["a",null,1,true]"#, r#""a--1-true""#)]
#[case("join(\",\")", "[]", r#""""#)]
#[case("[paths]", r#"{"a":[1]}"#, r#"[["a"],["a",0]]"#)]
#[case("[leaf_paths]", r#"{"a":[1]}"#, r#"[["a",0]]"#)]
#[case("[limit(2; .[])], first(.[]), [skip(2; .[])]", "[1,2,3]", "[[1,2],1,[3]]")]
#[case("reduce .[] as $x (0; . + $x)", "[1,2]", "3")]
#[case("[foreach .[] as $x (0; . + $x; [$x, .])]", "[1,2]", "[[1,1],[2,3]]")]
#[case("try error(\"x\") catch .", "null", r#""x""#)]
#[case(".a?", "1", "null")]
#[case(".a // \"none\"", "{}", r#""none""#)]
#[case("def f(g; $n): [g] + [$n]; f(.a; 2)", r#"{"a":1}"#, "[1,2]")]
#[case("def f: if . > 100000 then . else . + 1 | f end; f", "0", "100001")]
#[case("[.[] as [$a, {b: $c}] | $a + $c]", r#"[[1,{"b":2}]]"#, "[3]")]
#[case("label $out | .[] | if . > 1 then ., break $out else . end", "[1,2,3]", "[1,2]")]
#[case("\"\\(.a)-\\(.b)\"", r#"{"a":1,"b":["x"]}"#, r#""1-[\"x\"]""#)]
#[case("@base64, (@base64 | @base64d)", r#""rio""#, r#"["cmlv","rio"]"#)]
#[case("@uri \"/x?\\(.)\"", r#""a b""#, r#""/x?a%20b""#)]
#[case("@csv, @tsv", r#"["a\"b",1,null,"c\td"]"#, r#"["\"a\"\"b\",1,,\"c\td\"","a\"b\t1\t\tc\\td"]"#)]
#[case("test(\"^r\"), sub(\"i\"; \"e\"), (split(\"\") | length)", r#""rio""#, r#"[true,"reo",3]"#)]
#[case("capture(\"(?<l>[a-z]+)(?<d>[0-9]+)\")", r#""ab12""#, r#"{"l":"ab","d":"12"}"#)]
#[case(
    "[.[] | ltrimstr(\"é\") | rtrimstr(1) | rtrimstr(\"\")]",
    r#"[1, null, "éa", "é"]"#,
    r#"[1,null,"a",""]"#
)]
#[case("[.[] | rtrimstr(\"é\") | ltrimstr([])]", r#"[1, {}, "aé", "éa"]"#, r#"[1,{},"a","éa"]"#)]
#[case("ltrimstr(\"a\") | rtrimstr(\"c\") | explode | implode", r#""abc""#, r#""b""#)]
#[case("fromdate | todate", r#""2026-11-21T00:00:00Z""#, r#""2026-11-21T00:00:00Z""#)]
#[case("[tostream]", r#"{"a":[1]}"#, r#"[[["a",0],1],[["a",0]],[["a"]]]"#)]
#[case("fromstream(tostream)", r#"{"a":[1,{"b":2}],"c":[]}"#, r#"{"a":[1,{"b":2}],"c":[]}"#)]
#[case("[1|truncate_stream([[0],1],[[1,0],2],[[1,0]],[[1]])]", "null", "[[[0],2],[[0]]]")]
#[case("INDEX(.id)", r#"[{"id":1}]"#, r#"{"1":{"id":1}}"#)]
#[case("IN(1, 2), (.[] | IN(1))", "[1]", "[false,true]")]
#[case("debug | debug(\"x\") | stderr", "1", "1")]
#[case("pick(.a[1])", r#"{"a":[1,2,3]}"#, r#"{"a":[null,2]}"#)]
#[case("pick(.a.b)", r#"{"a":{"b":1,"c":2}}"#, r#"{"a":{"b":1}}"#)]
#[case("[splits(\", *\")] | tojson", r#""a, b""#, r#""[\"a\",\"b\"]""#)]
#[case("getpath([\"a\",\"b\"]), has(\"a\"), (keys|length), (.a|type)", "{}", r#"[null,false,0,"null"]"#)]
#[case("[.[] | tojson] | map(fromjson)", r#"[1,"a",{"b":null}]"#, r#"[1,"a",{"b":null}]"#)]
#[case("infinite > 1, (nan | isnan), ([nan] | length)", "null", "[true,true,1]")]
#[case("combinations", "[[1,2],[3]]", "[[1,3],[2,3]]")]
#[case(
    "[contains(\"éb\"), contains(\"\"), contains(\"x\"), indices(\"b\"), indices(\"\"), index(\"éb\"), rindex(\"b\")]",
    r#""abéb""#,
    "[true,true,false,[1,3],[],2,3]"
)]
#[case(
    "[indices(1), indices([1, 2]), indices([]), .[[2, 1]], contains([[5]]), inside([1, 2, 1, [5, 6], 3]), index(7)]",
    "[1,2,1,[5,6]]",
    "[[0,2],[0],[],[1],true,true,null]"
)]
#[case(
    "[contains({a: {b: \"o\"}}), contains({c: 1}), ([{a: 1, b: 2}] | contains([{a: 1}]))]",
    r#"{"a":{"b":"foo"}}"#,
    "[true,false,true]"
)]
#[case("flatten, transpose", "[[1,2],[3]]", "[[1,2,3],[[1,3],[2,null]]]")]
fn language(#[case] text: &str, #[case] input: &str, #[case] expected: &str) {
    assert_eq!(evaluate(text, input).unwrap(), json(expected));
}

#[rstest]
#[case("env", "function")]
#[case("$ENV", "variable")]
#[case("input", "function")]
#[case("inputs", "function")]
#[case("halt", "function")]
#[case("halt_error", "function")]
#[case("localtime", "function")]
#[case("$x", "variable")]
#[case("break $x", "label")]
#[case("x::y", "module")]
#[case("map(1; 2)", "function")]
fn expressions_cannot_access_the_environment(#[case] text: &str, #[case] kind: &str) {
    let error = Program::compile(text, Origin::Metadata).unwrap_err().to_string();
    assert!(error.contains(&format!("refers to an unknown {kind} at line 1")), "{error}");
}

#[rstest]
#[case("", "is blank")]
#[case(" \n", "is blank")]
#[case(". |", "not valid at line 1, column 4: expected term")]
#[case("{\n  a: (1", "line 2")]
#[case(". . )", "line 1, column 5")]
#[case("import \"a\" as a; .", "not valid at line 1, column 8")]
#[case("include \"a\"; .", "not valid at line 1, column 9")]
#[case("!step", "not valid at line 1, column 1")]
#[case("\"é\" | foo", "an unknown function at line 1, column 7")]
fn rejects(#[case] text: &str, #[case] expected: &str) {
    let error = Program::compile(text, Origin::Metadata).unwrap_err().to_string();
    assert!(error.contains(expected), "{error}");
}

#[rstest]
#[case::parentheses("(", "1", ")")]
#[case::arrays("[", "1", "]")]
#[case::objects("{a:", "1", "}")]
#[case::texts("\"\\(", "1", ")\"")]
#[case::signs("-", "1", "")]
#[case::pipes(".|", ".", "")]
#[case::trials("try ", ".", "")]
#[case::definitions("def a:", "1", ";1")]
#[case::conditions("if ", "1", " then 1 end")]
#[case::variables(". as $x|", "1", "")]
#[case::unclosed("(", "", "")]
fn nesting_is_bounded(#[case] open: &str, #[case] core: &str, #[case] close: &str) {
    let count = (compile::MAX_LENGTH - core.len()) / (open.len() + close.len());
    let text = format!("{}{core}{}", open.repeat(count), close.repeat(count));
    // Parentheses are not part of the syntax tree, so they may compile.
    if let Err(error) = Program::compile(&text, Origin::Metadata) {
        assert!(matches!(error, ExpressionError::TooDeep | ExpressionError::Syntax { .. }), "{error}");
    }
    let longer = format!("{text}{open}");
    let error = Program::compile(&format!("{longer}{longer}"), Origin::Metadata).unwrap_err();
    assert!(matches!(error, ExpressionError::TooLong(_)), "{error}");
}

#[rstest]
#[case("nan", "the number nan")]
#[case("[infinite]", "infinite number")]
#[case("-infinite", "infinite number")]
#[case("{(\"a\" | tobytes | tostring): 1} | {a: (\"a\" | tobytes)}", "bytes")]
#[case("[{(1, null | tojson | tonumber? // 1): 2}]", "a key that is not text")]
fn results_outside_of_the_model(#[case] text: &str, #[case] expected: &str) {
    let failure = evaluate(text, "null").unwrap_err();
    assert!(matches!(failure, EvaluationError::Result(reason) if reason.contains(expected)), "{failure:?}");
}

#[rstest]
#[case(".a", r#""hush""#, "cannot index a string with a string")]
#[case(".[\"a\"]", "[\"hush\"]", "cannot index an array with a string")]
#[case(".[]", "7001", "cannot use a number as iterable (array or object)")]
#[case(". + {}", r#""hush""#, "cannot calculate with a string and an object")]
#[case("sort", r#"{"hush":1}"#, "cannot use an object as array")]
#[case("1 / 0", "null", "cannot divide by zero")]
#[case(". / (. - .)", "7001", "cannot divide by zero")]
#[case("fromjson", r#""{hush""#, "cannot parse the text as JSON")]
#[case("error(\"size must be positive\")", "null", "size must be positive")]
#[case("error(\"bad: \" + .)", r#""hush""#, "the expression raised an error")]
#[case("error", r#"{"hush":1}"#, "the expression raised an object as an error")]
#[case("error(null)", "null", "the expression raised null as an error")]
#[case("length", "true", "a boolean has no length")]
#[case("test(.)", r#""(hush""#, "a regular expression, or its flags, are not valid")]
#[case(".[-5] = 1", "[7001]", "an array index is out of bounds")]
#[case("(. + 1) = 1", "7001", "is not a path")]
#[case(".a = 1", "7001", "cannot index a number with a string")]
#[case("resource(\"/a\")", "null", "NoReader")]
fn messages_do_not_contain_values(#[case] text: &str, #[case] input: &str, #[case] expected: &str) {
    let message = message(text, input);
    assert!(message.contains(expected), "{message}");
    assert!(!message.contains("hush") && !message.contains("7001"), "{message}");
}

#[test]
fn rendered_expressions_are_not_quoted() {
    let program = Program::compile("error(\"hush\")", Origin::Rendered).unwrap();
    let failure = on_large_stack(|| program.run(&Value::Null, Context::default())).unwrap().unwrap_err();
    assert!(matches!(&failure, EvaluationError::Failed(reason) if !reason.contains("hush")), "{failure:?}");
    assert!(!format!("{program:?}").contains("hush"));
}

/// Expressions that would run forever or use all memory. They must not end the process, and must end soon after the
/// time limit.
#[rstest]
#[case::all(
    "[match(\"(?<l>l)|(o)\"; \"g\") | [.offset, .length, .string, (.captures | map([.name, .string]))]]",
    r#"[[2,1,"l",[["l","l"]]],[3,1,"o",[[null,"o"]]]]"#
)]
#[case::one("[match(\"(o)\") | .offset, .string]", r#"[3,"o"]"#)]
#[case::groups_in_any_order("[match(\"(?:(o)|(l))*$\").captures[].offset]", "[3,2]")]
#[case::empty("[match(\"\"; \"g\").offset]", "[0,1,2,3,4]")]
#[case::not_empty("[match(\"l*\"; \"gn\").string]", r#"["l"]"#)]
#[case::flags(
    "[test(\"L\"; \"i\"), test(\"h # \u{e9}\"; \"x\"), test(\"O$\"), (\"a\nb\" | test(\"a.b\"; \"s\"), test(\"^b\"; \"m\"), test(\"^a.b\"; \"p\"))]",
    "[true,true,false,true,true,true]"
)]
#[case::lazy("[match(\".+\"; \"l\").string]", r#"["h"]"#)]
#[case::rest("[splits(\"[\u{e9}l]\")]", r#"["h","","o"]"#)]
#[case::replaced(
    "[sub(\"(?<x>l)\"; \"<\\(.x)>\"), gsub(\"l|o\"; \"-\"), gsub(\"^\"; \"+\")]",
    r#"["hé<l>o","hé--","+hélo"]"#
)]
#[case::captured("[capture(\"(?<a>h).(?<b>x)?\")]", r#"[{"a":"h"}]"#)]
#[case::scanned("[scan(\"[a-z]\")]", r#"["h","l","o"]"#)]
fn regular_expressions(#[case] text: &str, #[case] expected: &str) {
    assert_eq!(evaluate(text, "\"hélo\"").unwrap(), json(expected));
}

#[test]
fn regular_expressions_are_bounded() {
    assert_eq!(message("test(\"(?:a?){100000}b\")", "\"a\""), "a regular expression is too large");
    assert_eq!(message("test(\"()\" * 100)", "\"a\""), "a regular expression is too large");
    assert_eq!(evaluate("test(\"()\" * 99)", "\"a\"").unwrap(), json("true"));
    let stopped = |time, text: &str| match within(time, text, &Value::Null) {
        Err(EvaluationError::Stopped(reason)) => reason,
        other => panic!("{other:?}"),
    };
    let begun = Instant::now();
    let large = stopped(TIME_LIMIT, "try ((\"a\" * 3000000) | test(\"(?:a?){900}b\")) catch false");
    assert_eq!(large, StopReason::Search);
    // Each search reads to the end of the text, and finds one character.
    let repeated = "(\"a\" * 100000) | [match(\"a.*z|a\"; \"g\")] | length";
    assert_eq!(stopped(Duration::from_millis(200), repeated), StopReason::Time);
    assert!(begun.elapsed() < TIME_LIMIT, "{:?}", begun.elapsed());
}

#[test]
fn the_cache_is_bounded_and_removes_the_least_recently_used() {
    let cache = ProgramCache::new(2);
    let first = cache.program("1").unwrap();
    cache.program("2").unwrap();
    assert!(Arc::ptr_eq(&first, &cache.program("1").unwrap()));
    cache.program("3").unwrap();
    assert_eq!(cache.len(), 2);
    assert!(Arc::ptr_eq(&first, &cache.program("1").unwrap()));
    assert!(cache.program("(").is_err());
    assert_eq!(cache.len(), 2);
    assert!(!format!("{cache:?}").contains("\"1\""));
}

fn values() -> impl Strategy<Value = Value> {
    let scalar = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(Value::Int),
        (-1e300..1e300).prop_map(Value::Float),
        "[a-zé\"\\\\\u{1}]{0,4}".prop_map(Value::String),
    ];
    scalar.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            prop::collection::btree_map("[a-z/]{0,3}", inner, 0..4).prop_map(Value::Object),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn values_pass_unchanged(value in values()) {
        let converted = convert::from_jq(&convert::to_jq(&value).unwrap(), &mut OUTPUT_LIMIT.clone());
        prop_assert_eq!(converted.unwrap(), value);
    }

    #[test]
    fn json_of_jq_is_json(value in values()) {
        prop_assert_eq!(within(TIME_LIMIT, "tojson | fromjson", &value).unwrap(), value);
    }

    #[test]
    fn compiling_never_panics(text in "[ .a$|()\\[\\]{}:,\"\\\\;0-9@?/*+=<-]{0,16}|(def|if|then|else|end|reduce|as|try|\\.| |\\$x|;|:){0,8}") {
        let compiled = compile::filter(&text);
        prop_assert!(!matches!(compiled, Err(ExpressionError::Panicked(_))), "{text}");
    }
}
