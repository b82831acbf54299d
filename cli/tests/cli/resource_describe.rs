//! `resource describe` and `resource template`.

use rstest::rstest;

use crate::world::World;

fn shops() -> World {
    World::with_store(
        &["/shops"],
        &[
            (
                "shops/_/metadata.yaml",
                "resource: {id: /id, alias: /name, format: json, requiredAttributes: [/name], secretAttributes: [/pin], \
                 remoteCollectionPath: /v2/shops}\n\
                 operations: {update: {method: PATCH, transforms: [{excludeAttributes: [/note]}], validate: {requiredAttributes: [/name]}}}\n",
            ),
            ("shops/rio/resource.json", r#"{"id": "7", "name": "rio", "pin": "{{secret .}}"}"#),
        ],
    )
}

#[test]
fn a_resource_is_described() {
    insta::assert_snapshot!(shops().run(&["resource", "describe", "/shops/rio"]), @r#"
    exit 0
    --- stdout
    {
      "path": "/shops/rio",
      "collection": false,
      "identity": {
        "id": "/id",
        "alias": "/name"
      },
      "format": "json",
      "collectionPath": "/v2/shops",
      "requiredFields": [
        "/name"
      ],
      "secretFields": [
        "/pin"
      ],
      "operations": [
        {
          "name": "create",
          "method": "POST",
          "path": "/v2/shops"
        },
        {
          "name": "get",
          "method": "GET",
          "path": "/v2/shops/rio"
        },
        {
          "name": "update",
          "method": "PATCH",
          "path": "/v2/shops/rio"
        },
        {
          "name": "delete",
          "method": "DELETE",
          "path": "/v2/shops/rio"
        },
        {
          "name": "list",
          "method": "GET",
          "path": "/v2/shops"
        }
      ],
      "schemas": []
    }
    --- stderr
    "#);
}

#[test]
fn a_collection_is_described_as_text() {
    insta::assert_snapshot!(shops().run(&["resource", "describe", "/shops/", "-o", "text"]), @r"
    exit 0
    --- stdout
    /shops (collection)
    id /id  alias /name  format json
    collection on the server: /v2/shops
    required: /name
    secret: /pin
    create  POST   /v2/shops
    get     -      -
    update  PATCH  -
    delete  -      -
    list    GET    /v2/shops
    --- stderr
    ");
}

#[test]
fn a_template_is_the_body_of_an_update() {
    let payload = r#"{"id": "7", "name": "rio", "note": "x", "pin": "{{secret .}}"}"#;
    let run = shops().run_with(&["resource", "template", "/shops/rio"], payload);
    insta::assert_snapshot!(run, @r#"
    exit 0
    --- stdout
    {
      "id": "7",
      "name": "rio",
      "pin": "{{secret .}}"
    }
    --- stderr
    "#);
}

#[test]
fn a_template_of_yaml_is_yaml() {
    let world = shops();
    world.home.write("new.yaml", "id: '7'\nname: rio\nnote: x\n");
    let template = ["resource", "template", "/shops/rio", "-f", "<home>/new.yaml"];
    let run = world.run(&template);
    assert_eq!((run.code, run.stdout.as_str()), (0, "id: \"7\"\nname: rio\n"), "{run}");
    let run = world.run(&[&template[..], &["--envelope", "-o", "jq=.Descriptor.Extension"]].concat());
    assert_eq!((run.code, run.stdout.as_str()), (0, ".yaml\n"), "{run}");
    assert_eq!(world.run(&[&template[..], &["-o", "jq=.name"]].concat()).stdout, "rio\n");
}

#[rstest]
#[case::no_path(&["resource", "describe"], 2, "path is required")]
#[case::no_input(&["resource", "template", "/shops/rio"], 2, "input is required: provide --payload <path|-> or stdin")]
#[case::other_name(&["resource", "template", "/shops/rio", "-f", "<home>/other.json"], 2, "update requires /id in the payload")]
#[case::metadata(&["resource", "describe", "/bad/x"], 2, "bad/_/metadata.yaml")]
fn failures(#[case] args: &[&str], #[case] code: i32, #[case] message: &str) {
    let world = shops();
    world.home.write("other.json", r#"{"name": ["rio"]}"#);
    world.declare("bad/_/metadata.yaml", "resource: {nonsense: 1}\n");
    let run = world.run(args);
    assert_eq!((run.code, run.stdout.as_str()), (code, ""), "{run}");
    assert!(run.stderr.contains(message), "{run}");
}
