//! The `OpenAPI` document that a context names.

use crate::world::World;

const DOCUMENT: &str = r#"{"openapi": "3.0.3", "paths": {
    "/shops": {"get": {}, "post": {}},
    "/shops/{id}": {"get": {}, "patch": {}}
}}"#;

/// A context with a document in a file, which is not there yet.
fn shops() -> World {
    let world = World::new(&["/shops"], &[("shops/rio/resource.yaml", "id: rio\ntier: gold\n")]);
    let catalogue = world.home.catalogue();
    let named = catalogue.replace("auth: {", "openapi: '<home>/openapi.json', auth: {");
    assert_ne!(named, catalogue);
    world.home.write(".declarest/configs/contexts.yaml", &named);
    world.live("/shops/rio", r#"{"id": "rio", "tier": "free"}"#);
    world
}

#[test]
fn the_document_supplies_methods() {
    let world = shops();
    world.home.write("openapi.json", DOCUMENT);
    let run = world.run(&["resource", "apply", "/shops/rio"]);
    assert_eq!((run.code, world.writes()), (0, vec!["PATCH /shops/rio".to_owned()]), "{run}");
    let run = world.run(&["resource", "delete", "-y", "/shops/rio"]);
    assert_eq!(run.code, 2, "{run}");
    assert!(run.stderr.contains("has no DELETE for /shops/{id}; it has GET, PATCH"), "{run}");
    assert_eq!(world.writes().len(), 1, "nothing is sent");
}

/// It may restore or restart something.
#[test]
fn a_post_without_a_body_is_no_update() {
    let world = shops();
    let document = DOCUMENT.replace(r#""patch": {}"#, r#""post": {}"#);
    world.home.write("openapi.json", &document);
    let run = world.run(&["resource", "apply", "/shops/rio"]);
    assert_eq!((run.code, world.writes().len()), (2, 0), "{run}");
    assert!(
        run.stderr.contains("has no PUT for /shops/{id}; it has GET, POST; set operations.update.method"),
        "{run}"
    );
    let body = r#""post": {"requestBody": {"content": {"application/json": {}}}}"#;
    world.home.write(
        "openapi.json",
        &document.replacen(
            r#""/shops/{id}": {"get": {}, "post": {}"#,
            &format!(r#""/shops/{{id}}": {{"get": {{}}, {body}"#),
            1,
        ),
    );
    let run = world.run(&["plan", "/shops/rio"]);
    assert_eq!(run.code, 0, "{run}");
}

#[test]
fn whole_entries_of_lists_are_advised_if_members_cannot_be_read() {
    let world = shops();
    world.home.write("openapi.json", r#"{"paths": {"/shops": {"get": {}}, "/shops/{id}": {"delete": {}}}}"#);
    let run = world.run(&["resource", "get", "/shops/rio"]);
    assert_eq!(run.code, 2, "{run}");
    let advice = "it has DELETE; set operations.get.method or path, or operations.get.from: list if lists show whole resources";
    assert!(run.stderr.contains(advice), "{run}");
    world.declare("shops/_/metadata.yaml", "operations: {get: {method: GET}}");
    let run = world.run(&["resource", "get", "/shops/rio"]);
    let advice = "it has DELETE; metadata states the method; add it to the document that http.openapi names";
    assert!(run.stderr.contains(advice), "{run}");
}

#[test]
fn without_a_document_no_request_is_sent() {
    let world = shops();
    for args in [&["resource", "apply", "/shops/rio"][..], &["resource", "get", "/shops/rio"]] {
        let run = world.run(args);
        assert_eq!(run.code, 3, "{run}");
        assert!(
            run.stderr.contains("cannot read the OpenAPI document ") && run.stderr.contains("openapi.json")
        );
    }
    assert!(world.server.log().is_empty());
    world.home.write("openapi.json", "[]");
    assert_eq!(world.run(&["resource", "get", "/shops/rio"]).code, 2);
}

/// These paths differ only in the names of their variables.
#[test]
fn paths_of_the_same_shape_are_one_path() {
    let world = shops();
    let document = r#"{"openapi": "3.0.3", "paths": {
        "/shops": {"get": {}, "post": {}},
        "/shops/{id}": {"get": {}},
        "/shops/{shop}": {"patch": {}, "delete": {}}
    }}"#;
    world.home.write("openapi.json", document);
    let run = world.run(&["resource", "apply", "/shops/rio"]);
    assert_eq!((run.code, world.writes()), (0, vec!["PATCH /shops/rio".to_owned()]), "{run}");
    let run = world.run(&["resource", "delete", "-y", "/shops/rio"]);
    assert_eq!((run.code, world.observed("/shops/rio")), (0, None), "{run}");
}

/// The schema of the answer has none of the attributes of a shop.
#[test]
fn a_guess_from_the_name_of_the_collection_is_not_stored() {
    let world = shops();
    let envelope = r#"{"responses": {"200": {"content": {"application/json": {"schema": {
        "properties": {"data": {"type": "object"}, "meta": {"type": "object"}}
    }}}}}}"#;
    let document = format!(
        r#"{{"openapi": "3.0.3", "paths": {{"/roles": {{"get": {envelope}}}, "/roles/{{x}}": {{"get": {envelope}}}}}}}"#
    );
    world.home.write("openapi.json", &document);
    let run = world.run(&["resource", "metadata", "infer", "/roles/", "--apply", "-o", "yaml"]);
    assert_eq!((run.code, run.stdout.as_str()), (0, "{}\n"), "{run}");
    assert!(world.declared("roles/_/metadata.yaml").is_none());
}
