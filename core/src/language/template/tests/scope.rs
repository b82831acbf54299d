//! Tests of the lookup of names.

use rstest::rstest;

use super::*;

/// Returns a till with a plural field `shop`.
fn till(payload: &str) -> Resource {
    Resource::new(payload).derive(&[])
}

#[rstest]
#[case("{{/logicalPath}}", "/shops/rio/tills/t1")]
#[case("{{/logicalCollectionPath}}", "/shops/rio/tills")]
#[case("{{/remoteCollectionPath}}", "/shops/rio/tills")]
#[case("{{/alias}} {{/remoteID}} {{/id}}", "t1 7 7")]
#[case("{{/shop}}", "rio")]
#[case("{{/payload/name}} {{/value/name}} {{.payload.name}}", "pos pos pos")]
#[case("{{/payload/shop}} {{.value.shop}} {{index .payload \"shop\"}}", "rio rio rio")]
#[case("{{range $k, $v := .payload}}{{$k}}={{$v}};{{end}}", "name=pos;shop=rio;")]
#[case("{{payloadType}} {{payloadMediaType}} {{payloadExtension}}", "json application/json .json")]
#[case("{{payload_type .}} {{payload_media_type $}} {{payload_extension .}}", "json application/json .json")]
fn fields_of_a_resource(#[case] template: &str, #[case] expected: &str) {
    assert_eq!(till("{name: pos}").render(Kind::Query, template).unwrap(), expected);
}

#[rstest]
#[case("{payload: x, name: pos}", "{{/payload/name}}", "pos")]
#[case("{payloadType: x}", "{{/payloadType}}", "json")]
#[case("{remoteCollectionPath: x}", "{{/remoteCollectionPath}}", "/shops/rio/tills")]
#[case("{logicalPath: x}", "{{/logicalPath}}", "x")]
#[case("{id: own, alias: mine}", "{{/id}} {{/alias}} {{/remoteID}}", "own mine 7")]
#[case("{shop: own}", "{{/shop}} {{/payload/shop}}", "own own")]
#[case("{descendantPath: own}", "{{/descendantPath}}", "own")]
fn the_first_match_of_a_name_applies(#[case] payload: &str, #[case] template: &str, #[case] expected: &str) {
    assert_eq!(till(payload).render(Kind::Query, template).unwrap(), expected);
}

#[test]
fn a_null_member_hides_what_comes_after_it() {
    let hidden = till("{id: null}").render(Kind::Query, "{{/id}}").unwrap_err();
    assert!(matches!(hidden, TemplateError::NotScalar { kind: "null", .. }), "{hidden:?}");
}

#[test]
fn the_rendered_remote_collection_applies_after_it_is_known() {
    let mut resource = till("{}");
    resource.remote_collection = Some("/v2/rio/tills".to_owned());
    assert_eq!(resource.render(Kind::Path, "{{/remoteCollectionPath}}/x").unwrap(), "/v2/rio/tills/x");
}

#[rstest]
#[case("7", "{{/id}}", Some("7"))]
#[case("", "{{/id}}", None)]
#[case(" ", "{{/id}}", None)]
#[case("", "{{/remoteID}}", Some(""))]
fn a_blank_remote_id_is_not_an_id(#[case] id: &str, #[case] template: &str, #[case] expected: Option<&str>) {
    let mut resource = till("{}");
    id.clone_into(&mut resource.remote_id);
    assert_eq!(resource.render(Kind::Query, template).ok().as_deref(), expected);
}

#[test]
fn fields_of_templates_hide_fields_of_plural_names() {
    let collection =
        Template::parse("/shops/{{/shop}}/tills/{{/shop_till}}", Kind::RemoteCollectionPath).unwrap();
    let other = Template::parse("/{{/shop}}", Kind::Path).unwrap();
    let operations = [("get", OperationSources { path: Some(&other), ..OperationSources::default() })].into();
    let sources =
        PatternSources { remote_collection: Some(&collection), operations, ..PatternSources::default() };
    let resource = Resource::new("{}").derive(&path_patterns(&sources));
    assert_eq!(resource.render(Kind::Query, "{{/shop}} {{/shop_till}}").unwrap(), "rio t1");
}

/// A template before these objects existed may derive fields with their names.
#[rstest]
#[case("/shops", "rio")]
#[case("/shops/{{/aliases}}", "rio")]
#[case("/shops/{{/ids}}", "rio")]
fn derived_fields_hide_names_of_parents(#[case] collection: &str, #[case] expected: &str) {
    let parsed = Template::parse(collection, Kind::RemoteCollectionPath).unwrap();
    let sources = PatternSources { remote_collection: Some(&parsed), ..PatternSources::default() };
    let resource = Resource::new("{}").derive(&path_patterns(&sources));
    for name in ["aliases", "ids"] {
        let is_derived = collection.contains(name);
        let field = resource.render(Kind::Query, &format!("{{{{/{name}}}}}"));
        assert_eq!(field.ok().as_deref(), is_derived.then_some(expected));
        let of_parent = resource.render(Kind::Query, &format!("{{{{/{name}/shop}}}}"));
        assert_eq!(of_parent.ok().as_deref(), (!is_derived).then_some("rio"));
    }
}

#[rstest]
#[case(None, Value::from("text"), "text text/plain .txt")]
#[case(None, Value::Bytes(vec![1]), "octet-stream application/octet-stream .bin")]
#[case(None, Value::Array(vec![]), "json application/json .json")]
#[case(Some(".yml"), Value::Array(vec![]), "yaml application/yaml .yml")]
#[case(Some(".csv"), Value::from("a,b"), "text text/csv .csv")]
fn the_active_descriptor(#[case] extension: Option<&str>, #[case] payload: Value, #[case] expected: &str) {
    let mut resource = till("{}");
    resource.payload = Some(payload);
    resource.descriptor = extension.map(Descriptor::from_extension);
    let template = "{{payload_type .}} {{payload_media_type .}} {{payload_extension .}}";
    assert_eq!(resource.render(Kind::Query, template).unwrap(), expected);
    let media_type = expected.split(' ').nth(1);
    assert_eq!(resource.render(Kind::Header, "{{/contentType}}").ok().as_deref(), media_type);
}

#[test]
fn an_object_has_no_content_type_of_its_own() {
    assert!(matches!(till("{}").render(Kind::Header, "{{/contentType}}"), Err(TemplateError::Missing(_))));
}

#[test]
fn a_payload_that_is_not_an_object_is_available() {
    let resource = Resource::new("[a, b]").derive(&[]);
    assert_eq!(resource.render(Kind::Query, "{{/payload/1}}{{len .value}}{{/shop}}").unwrap(), "b2rio");
}

#[test]
fn a_list_has_only_its_path() {
    let resource = Resource::list("/shops/rio/tills").derive(&[]);
    let template = "{{/logicalPath}} {{/logicalCollectionPath}} {{/shop}} {{/payload/shop}}";
    assert_eq!(resource.render(Kind::Query, template).unwrap(), "/shops/rio/tills /shops/rio/tills rio rio");
    assert!(resource.render(Kind::Path, "./{{/id}}").is_err());
    assert!(resource.render(Kind::Path, "./{{/alias}}").is_err());
}

#[test]
fn the_root_can_be_ranged_over() {
    let fields = till("{name: pos}").render(Kind::Query, "{{range $k, $v := .}}{{$k}} {{end}}").unwrap();
    assert_eq!(
        fields,
        "alias id logicalCollectionPath logicalPath name payload payloadExtension payloadMediaType payloadType \
         remoteCollectionPath remoteID shop value "
    );
}
