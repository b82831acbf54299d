//! Tests of fields that are derived from paths.

use std::collections::BTreeMap;

use rstest::rstest;

use super::*;

fn path(text: &str) -> LogicalPath {
    LogicalPath::parse(text).unwrap()
}

/// Returns the fields as `a=b c=d`, sorted.
fn shown(fields: &BTreeMap<String, String>) -> String {
    fields.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(" ")
}

fn derive(target: &str, patterns: &[PathPattern]) -> DerivedFields {
    let target = path(target);
    let collection = target.parent().unwrap();
    derive_fields(
        &Target { path: &target, collection: &collection, descendants: None, names: PathNames::Literal },
        patterns,
    )
}

fn collection_pattern(template: &str) -> Vec<PathPattern> {
    let template = Template::parse(template, Kind::RemoteCollectionPath).unwrap();
    path_patterns(&PatternSources { remote_collection: Some(&template), ..PatternSources::default() })
}

fn jq_patterns(jq: &str) -> Vec<PathPattern> {
    let template = Template::parse(jq, Kind::Jq).unwrap();
    path_patterns(&PatternSources { default_steps: vec![&template], ..PatternSources::default() })
}

fn operation_patterns(collection: Option<&str>, operation: &str) -> Vec<PathPattern> {
    let collection = collection.map(|text| Template::parse(text, Kind::RemoteCollectionPath).unwrap());
    let operation = Template::parse(operation, Kind::Path).unwrap();
    let sources = OperationSources { path: Some(&operation), ..OperationSources::default() };
    let all = path_patterns(&PatternSources {
        remote_collection: collection.as_ref(),
        operations: [("get", sources)].into(),
        ..PatternSources::default()
    });
    all.into_iter().skip(usize::from(collection.is_some())).collect()
}

#[rstest]
#[case("/regions/{{/area}}/points", "area=eu")]
#[case("/regions/{{area}}/shops/{{.till}}", "area=eu till=rio")]
#[case("/regions/{{$.area}}", "area=eu")]
#[case("/regions/{{json_pointer \"/area\"}}", "area=eu")]
#[case("/{{/kind}}/{{/area}}", "area=eu kind=regions")]
#[case("/{{/region}}", "")]
#[case("/{{/id}}/{{/alias}}", "alias=eu")]
#[case("/{{/region}}/{{/area}}", "area=eu")]
#[case("regions//./{{/area}}/", "area=eu")]
#[case("/v2/{{/region}}/shops", "")]
#[case("/regions/{{/a/b}}/shops/{{/x}}", "")]
#[case("/regions/x{{/area}}/shops/{{/x}}", "")]
#[case("/regions/{{/area}}{{/b}}/shops/{{/x}}", "")]
#[case("/regions/{{lowercase /area}}/shops/{{/x}}", "")]
#[case("/regions/{{if 1}}eu{{end}}/shops/{{/x}}", "")]
#[case("/regions/{{/x}}/shops/{{/x}}", "")]
#[case("{{/remoteCollectionPath}}/{{/x}}", "")]
#[case("/regions/{{/area}}/shops/{{/x}}/more/{{/y}}", "area=eu x=rio")]
fn fields_of_a_matched_path(#[case] template: &str, #[case] expected: &str) {
    let fields = derive("/regions/eu/shops/rio", &collection_pattern(template));
    assert_eq!(shown(fields.from_patterns()), expected);
    assert_eq!(fields.plural().get("region").map(String::as_str), Some("eu"));
}

#[rstest]
#[case("resource(\"/regions/{{/region}}/pools/{{/name}}/\")", "name=p1 region=eu")]
#[case(". + (resource ( \"/regions/{{/r}}\" ) | .x)", "r=eu")]
#[case("[resource(\"/other\"), resource(\"/regions/{{/r}}\")]", "r=eu")]
#[case("{{if /x}}resource(\"/regions/{{/r}}\"){{end}}", "r=eu")]
#[case("{{range /x}}resource(\"/regions/{{.r}}/pools/{{/p}}\"){{end}}", "p=p1 r=eu")]
#[case("{{range /x}}resource(\"/regions/{{print .r}}/pools/{{/p}}\"){{end}}", "")]
#[case("{{with /x}}resource(\"/regions/{{/r}}/pools/{{/p}}\"){{end}}", "p=p1 r=eu")]
#[case("resource(\"/regions/{{if 1}}eu{{end}}/pools/{{/p}}\")", "")]
#[case("resource(\"/regions/{{/r}}\" + .x)", "")]
#[case("resource(.x + \"/regions/{{/r}}\")", "")]
#[case("my_resource(\"/regions/{{/r}}\")", "")]
#[case("\"resource(\\\"/regions/{{/r}}\\\")\"", "")]
#[case("resource(\"/regions/\\(.x)/pools/{{/p}}\")", "")]
fn resource_calls(#[case] jq: &str, #[case] expected: &str) {
    let fields = derive("/regions/eu/pools/p1/maps/m1", &jq_patterns(jq));
    assert_eq!(shown(fields.from_patterns()), expected);
}

#[rstest]
#[case(None, "./{{/uid}}", "uid=t1")]
#[case(None, ".", "")]
#[case(None, "../{{/x}}/{{/y}}", "x=tills y=t1")]
#[case(None, "../../{{/shop}}/tills/{{/y}}", "shop=rio y=t1")]
#[case(None, "../../../../../../shops/{{/shop}}", "shop=rio")]
#[case(None, "shops/{{/shop}}", "shop=rio")]
#[case(None, "/shops/{{/shop}}", "shop=rio")]
#[case(Some("/shops/{{/shop}}/tills"), "./{{/uid}}", "shop=rio uid=t1")]
#[case(Some("/shops/{{/shop}}/tills"), "../tills/{{/uid}}", "shop=rio uid=t1")]
#[case(Some("/v2/{{/shop}}/tills"), "./{{/uid}}", "")]
#[case(Some("/v2/{{/shop}}/tills"), "/shops/{{/x}}", "x=rio")]
fn paths_of_operations(#[case] collection: Option<&str>, #[case] operation: &str, #[case] expected: &str) {
    let fields = derive("/shops/rio/tills/t1", &operation_patterns(collection, operation));
    assert_eq!(shown(fields.from_patterns()), expected);
}

#[test]
fn the_first_template_takes_precedence() {
    let path_template = |text: &str| Template::parse(text, Kind::Path).unwrap();
    let jq = |text: &str| Template::parse(text, Kind::Jq).unwrap();
    let collection = path_template("/{{/a}}");
    let default_step = jq("resource(\"/{{/b}}/{{/a}}\")");
    let (create_step, create) =
        (jq("resource(\"/x/{{/c}}\"), resource(\"/{{/c}}\")"), path_template("/r/{{/c}}"));
    let get = path_template("/r/{{/c}}/{{/d}}");
    let update = path_template("/{{/d}}/{{/e}}");
    let operation = |path, steps| OperationSources { path: Some(path), steps };
    let patterns = path_patterns(&PatternSources {
        remote_collection: Some(&collection),
        default_steps: vec![&default_step],
        operations: BTreeMap::from([
            ("update", operation(&update, vec![])),
            ("get", operation(&get, vec![])),
            ("create", operation(&create, vec![&create_step])),
        ]),
    });
    assert_eq!(shown(derive("/r/s/t", &patterns).from_patterns()), "a=r b=r c=r d=t e=s");
}

#[rstest]
#[case("/api-keys/k1/uses/u1", "key=k1")]
#[case("/regions/eu/shops/rio", "region=eu")]
#[case("/regions/eu/pools/p1/maps/m1", "pool=p1 region=eu")]
#[case("/policies/p/x/y", "policy=p")]
#[case("/big_boxes/b/old.tills/t/x/y", "boxe=b till=t")]
#[case("/shops/rio/shops/ava/x/y", "shop=rio")]
#[case("/shops/rio", "")]
#[case("/s/a/x-s/b/x/y", "")]
#[case("/staff/a/x/y", "")]
fn plural_names(#[case] target: &str, #[case] expected: &str) {
    assert_eq!(shown(derive(target, &[]).plural()), expected);
}

#[test]
fn with_descendants_plural_names_are_taken_from_the_path_of_the_root() {
    let resource =
        Resource::at("/projects/p/secrets/teams/b/k", "{}").below("/projects/p/secrets").derive(&[]);
    assert_eq!(shown(resource.derived.plural()), "project=p");
}

#[rstest]
#[case("/regions/eu/vaults/a/b/key", false, "/regions/eu/vaults", "/a/b/key", "/a/b")]
#[case("/regions/eu/vaults/key", false, "/regions/eu/vaults", "/key", "")]
#[case("/regions/eu/vaults/a", true, "/regions/eu/vaults", "/a", "/a")]
#[case("/regions/eu/vaults", true, "/regions/eu/vaults", "", "")]
#[case("/regions/eu/vaults", false, "/regions/eu/vaults", "", "")]
#[case("/a/b", false, "/", "/a/b", "/a")]
#[case("/a", false, "/", "/a", "")]
fn places_below_a_root(
    #[case] target: &str,
    #[case] list: bool,
    #[case] root: &str,
    #[case] below: &str,
    #[case] collection_below: &str,
) {
    let target = path(target);
    let collection = if list { target.clone() } else { target.parent().unwrap() };
    let descendants = Descendants::new(&path(root), &target, &collection);
    assert_eq!((descendants.path(), descendants.collection()), (below, collection_below));
}

const VAULTS: &str = "/kv/{{/region}}{{/descendantCollectionPath}}";
const KEYS: &str = "/storage/keys/project/{{/project}}{{/descendantCollectionPath}}";

#[rstest]
#[case(VAULTS, "/regions/eu/vaults", Some("/regions/eu/vaults/a/b/key"), "", "/kv/eu/a/b/key")]
#[case(VAULTS, "/regions/eu/vaults", None, "/a", "/kv/eu/a")]
#[case(VAULTS, "/regions/eu/vaults", None, "", "/kv/eu")]
#[case(KEYS, "/projects/p/secrets", Some("/projects/p/secrets/a/b/k"), "", "/storage/keys/project/p/a/b/k")]
#[case(KEYS, "/projects/p/secrets", None, "", "/storage/keys/project/p")]
fn remote_paths_of_descendants(
    #[case] template: &str,
    #[case] root: &str,
    #[case] target: Option<&str>,
    #[case] list: &str,
    #[case] expected: &str,
) {
    let patterns = collection_pattern(template);
    let resource = match target {
        Some(target) => Resource::at(target, "{}"),
        None => Resource::list(&format!("{root}{list}")),
    };
    let resource = resource.below(root).derive(&patterns);
    let collection = resource.render(Kind::RemoteCollectionPath, template).unwrap();
    let name = target.map(|_| format!("/{}", resource.path.name())).unwrap_or_default();
    assert_eq!(collection + &name, expected);
}
