//! The formats of results: wide, name, ndjson, jq and jsonpath.

use rstest::rstest;

use crate::world::World;

fn shops() -> World {
    let world = World::new(&["/shops"], &[("shops/_/metadata.yaml", "resource: {id: /id, alias: /name}\n")]);
    world.declare("shops/rio/resource.yaml", "id: '7'\nname: rio\ntier: gold\n");
    world.live("/shops/7", r#"{"id": "7", "name": "rio", "tier": "free"}"#);
    world.live("/shops/8", r#"{"id": "8", "name": "são paulo"}"#);
    world
}

#[rstest]
#[case::names(&["list", "/shops", "-o", "name"], "/shops/rio\n/shops/são paulo\n")]
#[case::names_of_one(&["get", "/shops/rio", "-o", "name"], "/shops/rio\n")]
#[case::names_of_members(&["get", "/shops/", "-o", "name"], "/shops/rio\n/shops/são paulo\n")]
#[case::names_that_differ(&["diff", "/shops", "-o", "name"], "/shops/rio\n")]
#[case::wide(&["list", "/shops", "-o", "wide"], "ALIAS      ID  PATH\nrio        7   /shops/rio\nsão paulo  8   /shops/são paulo\n")]
#[case::ndjson(&["list", "/shops", "-o", "ndjson"], "{\"id\":\"7\",\"name\":\"rio\",\"tier\":\"free\"}\n{\"id\":\"8\",\"name\":\"são paulo\"}\n")]
#[case::jq(&["list", "/shops", "-o", "jq=.[] | .name, .tier"], "rio\nfree\nsão paulo\nnull\n")]
#[case::jq_of_one(&["get", "/shops/rio", "-o", "jq=.tier"], "free\n")]
#[case::jsonpath(&["list", "/shops", "-o", "jsonpath={[*].id}"], "7 8\n")]
#[case::jsonpath_of_differences(&["diff", "/shops", "-o", "jsonpath={[0].Local}"], "gold\n")]
fn results(#[case] args: &[&str], #[case] expected: &str) {
    let run = shops().run(&[&["resource"], args].concat());
    assert_eq!((run.code, run.stdout.as_str(), run.stderr.as_str()), (0, expected, ""), "{run}");
}

#[rstest]
#[case::jq(&["resource", "list", "/shops", "-o", "jq=.["], "--output jq: ")]
#[case::jq_fails(&["resource", "list", "/shops", "-o", "jq=.a.b"], "--output jq: jq failed: ")]
#[case::jsonpath(&["resource", "list", "/shops", "-o", "jsonpath={.a"], "--output jsonpath: a \"}\" is missing")]
#[case::names(&["version", "-o", "name"], "the result has no resources to name; remove --output name")]
#[case::names_of_no_resources(&["import", "/shops", "-o", "name"], "the result has no resources to name; remove --output name")]
#[case::text_only(&["repository", "tree", "-o", "ndjson"], "prints text only; remove --output ndjson")]
fn other_formats_are_refused(#[case] args: &[&str], #[case] message: &str) {
    let run = shops().run(args);
    assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{run}");
    assert!(run.stderr.contains(message), "{run}");
}

#[test]
fn the_variable_chooses_a_format() {
    let world = shops();
    let run = world.home.run_with(
        &["resource", "list", "/shops"],
        &[("DECLAREST_OUTPUT", "jq=length"), ("DECLAREST_IGNORE_WARNINGS", "1")],
        "",
    );
    assert_eq!(run.stdout, "2\n", "{run}");
}
