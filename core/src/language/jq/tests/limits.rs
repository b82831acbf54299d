//! Tests of the limits of evaluations.

use super::*;

#[rstest]
#[case::range("[range(1e12)]")]
#[case::range_as_outputs("range(1e12)")]
#[case::range_counted("reduce range(1e12) as $x (0; . + 1)")]
#[case::range_last("last(range(1e12))")]
#[case::range_skipped("first(skip(1e12; range(1e13)))")]
#[case::range_none("isempty(range(1e12) | select(. < 0))")]
#[case::range_caught("try [range(1e12)] catch 1")]
#[case::loop_of_nothing("def f: f; f")]
#[case::loop_of_two("def f: def g: f; g; f")]
#[case::loop_caught("def f: try f catch f; f")]
#[case::loop_of_closures("def f(g): f(g | g); f(.)")]
#[case::loop_with_parameter("def f($n): f($n + 1); f(0)")]
#[case::recursion("def f: 1 + f; f")]
#[case::recursion_in_arrays("def f: [f]; f")]
#[case::recursion_in_conditions("def f: if f then 1 else 2 end; f")]
#[case::recursion_in_paths("def f: .a | f; path(f)")]
#[case::recursion_in_long_paths("def f: ., (.a | f); [path(f)]")]
#[case::recursion_in_updates("def f: .a |= f; f")]
#[case::recursion_in_functions("def f: [1, 2] | sort_by(f); f")]
#[case::repeat("repeat(.)")]
#[case::repeat_nothing("repeat(empty)")]
#[case::repeat_in_array("[repeat(1)]")]
#[case::recurse("[recurse([.])]")]
#[case::recurse_last("last(recurse(. + 1))")]
#[case::until("until(false; .)")]
#[case::while_true("[while(true; .)]")]
#[case::limit("[limit(1e12; repeat(1))]")]
#[case::foreach("foreach repeat(1) as $x (0; . + $x; empty)")]
#[case::alternatives("(repeat(null)) // 1")]
#[case::product_of_sums("last(0 X(+ (0,1)))")]
#[case::product_of_pipes("last(0 X(| (., .)))")]
#[case::product_of_paths("last(null X(| .[0,0]))")]
#[case::product_of_keys("last(null | .[0,0]X([0,0]))")]
#[case::product_of_conditions("last(X(if (true,true) then ) 1 Y( else 0 end))")]
#[case::product_of_logic("last(true X(and (true,true)))")]
#[case::product_of_objects("last({a0: (1,2) X(, a: (1,2))})")]
#[case::product_of_texts("last(\"X(\\(0,1))\")")]
#[case::product_of_variables("last(0 X(| (0,1) as $x | .))")]
#[case::product_of_updates("last({} X(| .a = (1,2)))")]
#[case::product_of_negations("all(0 X(| -(., .)); . == 0)")]
#[case::text_repeated("\"x\" * 1e12")]
#[case::text_repeated_often("\"x\" * 1000000 | [range(100000) as $i | . + \"y\"]")]
#[case::text_repeated_by_update("\"x\" | reduce range(64) as $i (.; . *= 1000)")]
#[case::text_doubled("def f: . + . | f; \"x\" | f")]
#[case::text_doubled_by_reduce("reduce range(64) as $i (\"x\"; . + .)")]
#[case::text_doubled_by_interpolation("reduce range(64) as $i (\"x\"; \"\\(.)\\(.)\")")]
#[case::text_escaped("reduce range(64) as $i (\"\\\"\"; tojson)")]
#[case::text_split("\"x\" * 100000000 | split(\"\")")]
#[case::text_exploded("\"x\" * 100000000 | explode")]
#[case::text_replaced("reduce range(64) as $i (\"x\"; gsub(\"x\"; \"xx\"))")]
#[case::array_doubled("reduce range(64) as $i ([0]; . + .)")]
#[case::array_filled("[] | .[1e12] = 1")]
#[case::array_filled_from_null(".[4e9] = 1")]
#[case::tree_of_shared_parts("reduce range(64) as $i (0; [., .]) | tojson")]
#[case::tree_by_assignment("reduce range(64) as $i (0; . as $x | {} | .a = $x | .b = $x)")]
#[case::tree_by_many_paths("reduce range(64) as $i ([0]; . as $x | [range(9)] | .[] = $x)")]
#[case::tree_by_alternative("reduce range(64) as $i ([0]; . as $x | [range(9) | null] | .[] //= $x)")]
#[case::tree_by_sum("reduce range(64) as $i ([0]; . as $x | [range(9) | []] | .[] += [$x])")]
#[case::tree_by_objects("reduce range(64) as $i (0; {a: ., b: .})")]
#[case::tree_by_setpath("reduce range(64) as $i (0; . as $x | [] | setpath([0]; $x) | setpath([1]; $x))")]
#[case::tree_compared("[reduce range(64) as $i (0; [., .])] | . == .")]
#[case::tree_in_an_error("try (reduce range(64) as $i (0; [., .]) | .a) catch .")]
#[case::tree_by_groups("reduce range(64) as $i ([0]; [.[], .[]] | group_by(.) | [., .])")]
#[case::nesting("reduce range(100000) as $i (0; [.])")]
#[case::nesting_by_update("reduce range(100000) as $i (0; {a: 1} * {a: .})")]
#[case::nesting_by_path("setpath([range(100000) | \"a\"]; 1)")]
#[case::copies_kept("[range(1000000)] | def f: (.[0] = 1) as $x | f | $x; f")]
#[case::copies_iterated("[range(1000000)] as $x | def f: first($x[] | f); f")]
#[case::copies_by_fold("[reduce range(100000) as $i ([range(1000000)]; (.[0] = 1), (.[0] = 2))]")]
#[case::copies_by_parameter("[range(1000000)] | def f($x): ($x | .[0] = 1) as $y | f($y) | $y; f(.)")]
#[case::integers("reduce range(100000) as $i (3; . * .) | . == 1 | until(.; .)")]
#[case::combinations("[range(9)] | [., ., ., ., ., ., ., ., ., ., .] | combinations")]
#[case::paths_of_everything("[limit(1e12; path(repeat(.)))]")]
#[case::searches("[range(100000)] | contains([range(100000) | -1 - .])")]
#[case::searches_for_itself("[range(100000)] | inside(.)")]
#[case::searches_in_texts("\"a\" * 1000000 | indices(\"a\" * 500000 + \"b\")")]
#[case::searches_by_index("[range(100000) | 0] | .[.[:50000]]")]
#[case::recursion_with_a_filter("def f(x): f(x); f(1)")]
#[case::recursion_with_filters_of_filters("def f(x; $y): f(x | x; $y); f(.; 1)")]
#[case::recursion_by_an_inner_definition("def f(x): def g(y): f(y); g(x); f(1)")]
#[case::recursion_by_an_inner_definition_without_parameters("def f(x): def g: f(x); g; f(1)")]
#[case::recursion_by_an_argument("def f(x): x; def g: f(g); g")]
#[case::recursion_with_many_filters(
    "def f(a; b; c; d; e; g; h; i): f(a; b; c; d; e; g; h; i); f(1; 1; 1; 1; 1; 1; 1; 1)"
)]
#[case::recursion_with_many_variables("def f(x): X(. as $v | )label $out | f(x); f(1)")]
#[case::argument_within_arguments("def f(x; $n): if $n == 0 then x else f(x + 1; $n - 1) end; f(0; 100000)")]
#[case::recursion_by_a_library_function("def f(x): select(f(x)); f(1)")]
#[case::recursion_in_an_argument("def g(h): h; def f(x): g(f(x)); f(1)")]
#[case::recursion_in_a_path("path(def f(x): f(x); f(.))")]
#[case::recursion_with_a_variable("def f(x): . as $v | f($v); f(1)")]
fn everything_ends(#[case] text: &str) {
    let limit = Duration::from_millis(100);
    let start = Instant::now();
    let result = within(limit, &expand(text), &Value::Null);
    assert!(matches!(result, Err(EvaluationError::Stopped(_))), "{result:.200?}");
    // In debug builds and on busy machines, one native function on 256 MiB takes long.
    assert!(start.elapsed() < Duration::from_mins(2), "{:?}", start.elapsed());
}

/// Replaces `X(…)` and `Y(…)` with 60 copies of their content.
fn expand(text: &str) -> String {
    let Some(at) = text.find(['X', 'Y']) else { return text.to_owned() };
    let mut depth = 0;
    let close = text[at..].find(|c| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        c == ')' && depth == 0
    });
    let close = at + close.unwrap();
    format!("{}{}{}", &text[..at], text[at + 2..close].repeat(60), expand(&text[close + 1..]))
}

#[rstest]
#[case("[range(200000)] | map(. + 1) | add", "20000100000")]
#[case("reduce range(20000) as $i ([]; . + [$i]) | length", "20000")]
#[case("reduce range(20000) as $i ({}; .[$i | tostring] = $i) | length", "20000")]
#[case("reduce range(20000) as $i ({}; .x += [$i]) | .x | length", "20000")]
#[case("reduce range(20000) as $i (\"\"; . + \"0123456789\") | length", "200000")]
#[case("[range(20000) | tostring] | join(\",\") | split(\",\") | length", "20000")]
#[case(
    "[range(3000) | {key: tostring, value: .}] | from_entries | with_entries(.value += 1) | length",
    "3000"
)]
#[case("reduce range(120) as $i (0; [.]) | flatten", "[0]")]
#[case("def count(f): def rec: if f then . else . + 1 | rec end; rec; 0 | count(. > 200000)", "200001")]
#[case(
    "def w(f): if type == \"array\" then map(w(f)) else f end; [range(40000)] | w(. + 1) | add",
    "800020000"
)]
#[case("[range(20000) | tostring] | contains([range(100) | tostring])", "true")]
#[case(
    "def walk(f): . as $in | if type == \"object\" then reduce keys[] as $k ({}; . + {($k): ($in[$k] | walk(f))}) | f elif type == \"array\" then map(walk(f)) | f else f end; [range(6000) | {id: ., tags: [., .], name: {first: ., last: .}}] | walk(if type == \"number\" then . + 1 else . end) | length",
    "6000"
)]
fn ordinary_work_fits_the_limits(#[case] text: &str, #[case] expected: &str) {
    let result = within(Duration::from_mins(1), text, &Value::Null);
    assert_eq!(result.unwrap(), json(expected));
}

#[test]
fn reasons_name_the_exceeded_limit() {
    let reason_within = |time, text: &str| match within(time, text, &Value::Null) {
        Err(EvaluationError::Stopped(reason)) => reason,
        other => panic!("{other:?}"),
    };
    let reason = |text: &str| reason_within(Duration::from_mins(1), text);
    assert_eq!(reason_within(Duration::from_millis(200), "def f: f; f"), StopReason::Time);
    assert_eq!(reason("def f: 1 + f; f"), StopReason::Depth);
    assert_eq!(reason("reduce range(600) as $i (0; [.])"), StopReason::Depth);
    assert_eq!(reason("reduce range(200) as $i (0; [.])"), StopReason::Depth);
    assert_eq!(reason("\"x\" * 1000000000"), StopReason::Memory);
    assert_eq!(reason("\"x\" * 40000000"), StopReason::Output);
    assert_eq!(StopReason::Time.to_string(), "it took longer than 5 s");
}
