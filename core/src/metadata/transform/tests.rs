//! Tests of transform pipelines.

use std::sync::Mutex;

use rstest::rstest;

use super::*;
use crate::error::{Categorized, Category};
use crate::language::jq::{ResourceError, ResourceReader};
use crate::path::LogicalPath;
use crate::payload::pointer::Pointer;
use crate::payload::{PayloadType, decode};

fn json(text: &str) -> Value {
    decode(PayloadType::Json, text.as_bytes()).unwrap()
}

fn pointers(texts: &[&str]) -> Vec<Pointer> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

fn jq(text: &str) -> Pipeline {
    Pipeline::compile([Step::Jq(text.to_owned())]).unwrap()
}

#[test]
fn steps_run_on_the_result_of_the_previous_one() {
    let steps = || {
        [
            Step::Exclude(pointers(&["/etag"])),
            Step::Jq(". + {n: (.tags|length)}".to_owned()),
            Step::Select(pointers(&["/name", "/n"])),
        ]
    };
    let input = json(r#"{"name":"Rio","etag":"x","tags":["a","b"]}"#);
    let expected = json(r#"{"n":2,"name":"Rio"}"#);
    let pipeline = Pipeline::compile(steps()).unwrap();
    assert_eq!(pipeline.apply(input.clone(), Context::default()).unwrap(), expected);

    let cache = ProgramCache::default();
    for _ in 0..2 {
        let rendered = Pipeline::compile_rendered(steps(), &cache).unwrap();
        assert_eq!(rendered.apply(input.clone(), Context::default()).unwrap(), expected);
    }
    assert_eq!(cache.len(), 1);
}

#[test]
fn without_steps_values_are_unchanged() {
    let pipeline = Pipeline::compile([]).unwrap();
    assert!(pipeline.is_empty());
    let bytes = Value::Bytes(vec![0, 255]);
    assert_eq!(pipeline.apply(bytes.clone(), Context::default()).unwrap(), bytes);
}

#[rstest]
#[case(Step::Select(vec![]))]
#[case(Step::Exclude(vec![]))]
#[case(Step::Jq(".".to_owned()))]
fn bytes_are_an_error_of_each_step(#[case] step: Step) {
    let result = Pipeline::compile([step]).unwrap().apply(Value::Bytes(vec![0]), Context::default());
    assert!(matches!(result, Err(TransformError::BytesInput)), "{result:?}");
}

#[test]
fn errors_name_the_step() {
    let bad = |text: &str| [Step::Select(vec![]), Step::Jq(text.to_owned())];
    let error = Pipeline::compile(bad(".a |")).unwrap_err();
    assert_eq!(error.category(), Category::Validation);
    insta::assert_snapshot!(error, @r#"transform step 1: the jq expression is not valid at line 1, column 5: expected term"#);
    let error = Pipeline::compile(bad("shout")).unwrap_err();
    insta::assert_snapshot!(error, @"transform step 1: the jq expression refers to an unknown function at line 1, column 1");
    let error = Pipeline::compile(bad(".[]|keys")).unwrap().apply(json("[7]"), Context::default());
    assert!(error.is_ok(), "nothing was selected, so nothing is iterated: {error:?}");
    let error = jq(".a").apply(json("[7]"), Context::default()).unwrap_err();
    assert_eq!(error.category(), Category::Validation);
    insta::assert_snapshot!(error, @"transform step 0: jq failed: cannot index an array with a string");
    let error = jq("def f: 1 + f; f").apply(Value::Null, Context::default()).unwrap_err();
    assert_eq!(error.category(), Category::Validation);
    insta::assert_snapshot!(error, @"transform step 0: jq was stopped: its recursion or nesting is too deep");
    let error = jq("nan").apply(Value::Null, Context::default()).unwrap_err();
    insta::assert_snapshot!(error, @"transform step 0: the result of jq is not a payload: it contains the number nan");
}

/// Returns a payload with the name of the path, and records the paths.
#[derive(Default)]
struct Shops(Mutex<Vec<String>>);

#[derive(Debug, thiserror::Error)]
#[error("the shop is closed")]
struct Closed;

impl Categorized for Closed {
    fn category(&self) -> Category {
        Category::Transport
    }
}

impl ResourceReader for Shops {
    fn read(&self, path: &LogicalPath) -> Result<Value, ResourceError> {
        self.0.lock().unwrap().push(path.to_string());
        match path.name() {
            "closed" => Err(Arc::new(Closed)),
            "picture" => Ok(Value::Bytes(vec![0])),
            name => Ok(Value::Object([("name".to_owned(), Value::from(name))].into())),
        }
    }
}

fn list(text: &str, shops: &Shops) -> Result<Value, TransformError> {
    jq(text).apply(json(r#"["rio","lima"]"#), Context { resources: Some(shops), ..Context::default() })
}

#[test]
fn lists_read_other_resources() {
    let shops = Shops::default();
    let result = list(r#"[.[] | resource("/shops/\(.)/").name]"#, &shops).unwrap();
    assert_eq!(result, json(r#"["rio","lima"]"#));
    assert_eq!(*shops.0.lock().unwrap(), ["/shops/rio", "/shops/lima"]);
}

#[rstest]
#[case(
    "resource(\"/shops/closed\")",
    "resource(\"/shops/closed\") failed: the shop is closed",
    Category::Transport
)]
#[case("try resource(\"/closed\") catch 1", "resource(\"/closed\") failed", Category::Transport)]
#[case("resource(\"/picture\")", "resource(\"/picture\") is not structured", Category::Validation)]
#[case("resource(\" \")", "must be a path, but it is blank", Category::Validation)]
#[case("resource(.[1])", "must be an absolute logical path", Category::Validation)]
#[case("resource(.)", "must be one string", Category::Validation)]
#[case("resource(1)?", "must be one string", Category::Validation)]
fn failing_reads_fail_the_list(#[case] text: &str, #[case] expected: &str, #[case] category: Category) {
    let error = list(text, &Shops::default()).unwrap_err();
    assert!(error.to_string().contains(expected), "{error}");
    assert!(!error.to_string().contains("lima"), "{error}");
    assert_eq!(error.category(), category);
}

#[test]
fn other_operations_read_no_resources() {
    let error = jq("try resource(\"/a\") catch 1").apply(Value::Null, Context::default()).unwrap_err();
    insta::assert_snapshot!(error, @"transform step 0: resource() cannot be used here, because the server is not read");
    assert_eq!(error.category(), Category::Validation);
}

#[test]
fn many_threads_can_share_a_pipeline() {
    let pipeline = jq(".n + 1");
    std::thread::scope(|scope| {
        for n in 0..8 {
            let pipeline = &pipeline;
            scope.spawn(move || {
                let input = Value::Object([("n".to_owned(), Value::Int(n))].into());
                assert_eq!(pipeline.apply(input, Context::default()).unwrap(), Value::Int(n + 1));
            });
        }
    });
}
