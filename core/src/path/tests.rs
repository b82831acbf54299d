//! Tests of logical paths.

use proptest::prelude::*;
use rstest::rstest;

use super::*;

#[rstest]
#[case("/shops//rio/", "/shops/rio")]
#[case("\\shops\\rio", "/shops/rio")]
#[case("/shops/./rio", "/shops/rio")]
#[case("/", "/")]
#[case("/shops/..ava", "/shops/..ava")]
#[case("/shops/__", "/shops/__")]
#[case("/shops/São Paulo 1.5", "/shops/São Paulo 1.5")]
#[case("/shops/a%2Fb", "/shops/a%2Fb")]
fn accepts(#[case] input: &str, #[case] expected: &str) {
    assert_eq!(LogicalPath::parse(input).unwrap().as_str(), expected);
}

#[rstest]
#[case("", PathError::Blank)]
#[case("  ", PathError::Blank)]
#[case("shops/rio", PathError::Relative("shops/rio".into()))]
#[case("/shops/../ava", PathError::Traversal("/shops/../ava".into()))]
#[case("/shops/_/rio", PathError::Reserved("/shops/_/rio".into()))]
#[case("/shops/.GIT/x", PathError::Forbidden("/shops/.GIT/x".into()))]
#[case("/a\0b", PathError::Forbidden("/a\\0b".into()))]
fn rejects(#[case] input: &str, #[case] expected: PathError) {
    assert_eq!(LogicalPath::parse(input), Err(expected));
}

#[rstest]
#[case("/shops/", "/shops", true)]
#[case(" /shops/_/tills ", "/shops/_/tills", false)]
#[case("/", "/", false)]
#[case("/v2/{{/a/b}}/x/", "/v2/{{/a/b}}/x", true)]
#[case("/v2/{{/a", "/v2/{{/a", false)]
fn raw(#[case] input: &str, #[case] text: &str, #[case] explicit: bool) {
    let raw = RawPath::parse(input).unwrap();
    assert_eq!((raw.as_str(), raw.explicit_collection), (text, explicit));
}

#[rstest]
#[case("/shops", "/shops/rio", true)]
#[case("/shop", "/shops", false)]
#[case("/", "/x", true)]
#[case("/a", "/a", true)]
fn overlap(#[case] a: &str, #[case] b: &str, #[case] expected: bool) {
    let (a, b) = (LogicalPath::parse(a).unwrap(), LogicalPath::parse(b).unwrap());
    assert_eq!(a.overlaps(&b), expected);
    assert_eq!(b.overlaps(&a), expected);
}

#[test]
fn children_and_joins() {
    let shops = LogicalPath::parse("/shops").unwrap();
    assert_eq!(LogicalPath::root().child_of(&shops), Some("shops"));
    assert_eq!(shops.child_of(&LogicalPath::parse("/shops/rio/tills").unwrap()), None);
    assert_eq!(shops.join("eu/rio").unwrap().as_str(), "/shops/eu/rio");
    assert_eq!(shops.join(" "), Err(PathError::Blank));
    assert_eq!(LogicalPath::parse_scope("shops/").unwrap(), shops);
    assert_eq!(shops.join("../x"), Err(PathError::Traversal("/shops/../x".into())));
    assert_eq!(shops.join("_"), Err(PathError::Reserved("/shops/_".into())));
    assert_eq!(LogicalPath::root().child("a").unwrap().as_str(), "/a");
    assert_eq!(shops.child(" ").unwrap(), LogicalPath::parse("/shops/ ").unwrap());
    assert_eq!(shops.child("_"), Err(PathError::NotASegment("_".into())));
    assert_eq!(shops.child(".Git"), Err(PathError::Forbidden(".Git".into())));
}

#[rstest]
#[case("rio", true)]
#[case(" rio ", true)]
#[case("", false)]
#[case("..", false)]
#[case("_", false)]
#[case("a/b", false)]
#[case("a\\b", false)]
fn single_segment(#[case] text: &str, #[case] ok: bool) {
    assert_eq!(PathNames::Literal.check(text).is_ok(), ok);
}

#[rstest]
#[case("/", "_/metadata")]
#[case("/_", "_/metadata")]
#[case("/shops/", "shops/_/metadata")]
#[case("/shops/_", "shops/_/metadata")]
#[case("/shops/rio", "shops/rio/metadata")]
#[case("/shops/_/tills", "shops/_/tills/_/metadata")]
#[case("/shops/r*", "shops/r*/_/metadata")]
#[case("/_/_", "_/_/metadata")]
#[case(" /shops\\rio ", "shops/rio/metadata")]
fn selector_files(#[case] selector: &str, #[case] stem: &str) {
    assert_eq!(Selector::parse(selector).unwrap().document_stem(), stem);
}

#[rstest]
#[case("/shops/_/tills", "/shops/rio/tills", true)]
#[case("/shops/_/tills", "/shops/tills", false)]
#[case("/shops/r*/", "/shops/rio", true)]
#[case("/shops/r*/", "/shops/ava", false)]
#[case("/shops/r[h-j]?/", "/shops/rio", true)]
#[case("/", "/", true)]
#[case("/", "/shops", false)]
#[case("/shops/{a,b}*/", "/shops/{a,b}c", true)]
#[case("/shops/{a,b}*/", "/shops/bc", false)]
#[case("/shops/[{]*/", "/shops/{a", true)]
#[case("/shops/[]{]*/", "/shops/{a", true)]
#[case("/shops/[!]{]*/", "/shops/{a", false)]
#[case("/shops/*", "/shops/rio/tills", false)]
#[case("/shops/*", "/shops/.hidden", true)]
#[case("/shops/R*", "/shops/rio", false)]
fn selector_matches(#[case] selector: &str, #[case] path: &str, #[case] expected: bool) {
    let selector = Selector::parse(selector).unwrap();
    assert_eq!(selector.matches(&LogicalPath::parse(path).unwrap()), expected);
}

#[rstest]
#[case("", "_/metadata")]
#[case("shops", "shops/_/metadata")]
#[case("shops/_", "shops/_/_/metadata")]
#[case("shops/r*", "shops/r*/_/metadata")]
fn the_selector_of_a_directory_addresses_the_document_in_it(#[case] directory: &str, #[case] stem: &str) {
    assert_eq!(Selector::of_directory(directory).unwrap().document_stem(), stem);
}

#[test]
fn bad_glob_is_an_error() {
    assert!(matches!(Selector::parse("/shops/[r"), Err(PathError::BadPattern { .. })));
}

#[test]
fn templates_are_split_in_selectors() {
    let leaves = Selector::parse("/shops/{{/../../etc}}/x");
    assert!(matches!(leaves, Err(PathError::Traversal(_))), "{leaves:?}");
    assert!(matches!(Selector::parse("/{{/.git}}/{{/.git/x}}"), Err(PathError::Forbidden(_))));
    assert_eq!(Selector::parse("/{{//./a}}").unwrap().document_stem(), "{{/a}}/metadata");
}

#[test]
fn the_longest_glob_is_as_long_as_a_file_name() {
    let name = format!("/{}", "a".repeat(10_000));
    let selector = Selector::parse(&format!("/{}b", "*a".repeat(127))).unwrap();
    assert!(!selector.matches(&LogicalPath::parse(&name).unwrap()));
    assert!(selector.matches(&LogicalPath::parse(&format!("{name}b")).unwrap()));
    let error = Selector::parse(&format!("/{}b", "*a".repeat(5000))).unwrap_err();
    assert!(error.to_string().ends_with("a segment with wildcards may have 255 bytes, not 10001"), "{error}");
}

proptest! {
    #[test]
    fn parsing_is_idempotent(text in "[/\\\\a-c._ ]{0,24}") {
        if let Ok(path) = LogicalPath::parse(&text) {
            prop_assert_eq!(LogicalPath::parse(path.as_str()).unwrap(), path);
        }
    }

    #[test]
    fn a_parent_contains_and_precedes_its_child(text in "/[a-c/-]{1,20}") {
        if let Ok(path) = LogicalPath::parse(&text) {
            for ancestor in path.ancestors() {
                prop_assert!(path.is_within(&ancestor));
                prop_assert!(ancestor < path);
            }
            prop_assert_eq!(path.segments().count(), path.ancestors().count());
        }
    }

    #[test]
    fn never_panics(text in any::<String>()) {
        let _ = LogicalPath::parse(&text);
        let _ = RawPath::parse(&text);
        let _ = Selector::parse(&text);
    }
}
