//! Tests of what the schemas of a document show: attributes of one direction, envelopes and lists.

use insta::assert_snapshot;
use rstest::rstest;

use super::tests::{document, yaml};
use super::*;
use crate::metadata::document::Numbered;

/// The document of a server whose answers show more than a create can state, and whose updates cannot change the name.
fn pools(answer: &str, create: &str, update: &str) -> OpenApi {
    let schema = |schema: &str| format!("{{content: {{application/json: {{schema: {schema}}}}}}}");
    let (answer, create, update) = (schema(answer), schema(create), schema(update));
    let document = format!(
        "paths: {{/pools: {{post: {{requestBody: {create}}}}}, '/pools/{{id}}': {{get: {{responses: {{'200': {answer}}}}}, \
         patch: {{requestBody: {update}}}}}}}"
    );
    OpenApi::parse(document.as_bytes()).unwrap()
}

#[test]
fn attributes_that_no_request_can_set_are_excluded() {
    let document = pools(
        "{properties: {id: {readOnly: true}, name: {}, slots: {}, created: {readOnly: true}, size: {readOnly: true}}}",
        "{properties: {name: {}, slots: {}, size: {}, password: {writeOnly: true}, note: {writeOnly: true}}}",
        "{properties: {slots: {}}, additionalProperties: false}",
    );
    assert_snapshot!(yaml(&infer("/pools/", Some(&document)).unwrap()), @"
    operations:
        create:
            validate:
                schemaRef: openapi:request-body
        get:
            transforms:
                - excludeAttributes:
                    - /created
        update:
            transforms:
                - excludeAttributes:
                    - /id
                    - /name
                    - /note
                    - /password
                    - /size
            validate:
                schemaRef: openapi:request-body
    resource:
        alias: '{{/name}}'
        id: '{{/id}}'
        secretAttributes:
            - /password
        writeOnlyAttributes:
            - /note
            - /password
    ");
}

/// Documents of `OpenAPI` 3.1 describe optional values by an alternative for null, or by a reference.
#[rstest]
#[case::any_of("{anyOf: [{SCHEMA}, {type: 'null'}]}")]
#[case::one_of("{oneOf: [{type: 'null'}, {SCHEMA}]}")]
#[case::all_of("{allOf: [{SCHEMA}]}")]
#[case::itself("{SCHEMA}")]
fn optional_values_have_the_same_flags(#[case] form: &str) {
    let of = |schema: &str| form.replace("SCHEMA", schema);
    let document = pools(
        &format!("{{properties: {{id: {{}}, name: {{}}, used: {}}}}}", of("format: date-time")),
        &format!(
            "{{required: [name], properties: {{id: {}, name: {{}}, pin: {}, note: {}, made: {}}}}}",
            of("format: uuid"),
            of("format: password"),
            of("writeOnly: true"),
            of("readOnly: true")
        ),
        "{}",
    );
    let inferred = infer("/pools/", Some(&document)).unwrap();
    let resource = inferred.resource.clone().unwrap();
    let texts = |attributes: Option<Vec<Pointer>>| {
        attributes.unwrap_or_default().iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(resource.alias.as_deref(), Some("{{/name}}"));
    assert_eq!(texts(resource.secret_attributes), ["/pin"]);
    assert_eq!(texts(resource.write_only_attributes), ["/note"]);
    assert_eq!(steps(inferred, OperationName::Get), "[/used]");
}

#[rstest]
#[case::closed(
    "{properties: {id: {}, name: {}, used: {}}}",
    "{properties: {name: {}}, additionalProperties: false}",
    "[/used]"
)]
#[case::open("{properties: {id: {}, name: {}, used: {}}}", "{properties: {name: {}}}", "")]
#[case::another_answer(
    "{properties: {data: {}}}",
    "{properties: {pool: {}}, additionalProperties: false}",
    ""
)]
fn a_create_that_forbids_other_attributes_shows_those_of_the_server(
    #[case] answer: &str,
    #[case] create: &str,
    #[case] expected: &str,
) {
    let inferred = infer("/pools/", Some(&pools(answer, create, "{}"))).unwrap();
    assert_eq!(steps(inferred, OperationName::Get), expected);
}

/// An id that a create may state is a good name only if it is not a UUID.
#[rstest]
#[case::uuid("{properties: {id: {format: uuid}, name: {}}, required: [name]}", "{{/name}}")]
#[case::required_uuid("{properties: {id: {format: uuid}, name: {}}, required: [id, name]}", "{{/id}}")]
#[case::optional_name("{properties: {id: {format: uuid}, name: {}}}", "{{/id}}")]
#[case::other_id("{properties: {id: {}, name: {}}, required: [name]}", "{{/id}}")]
fn resources_are_named_by_required_names(#[case] create: &str, #[case] alias: &str) {
    let document = pools("{properties: {id: {format: uuid}, name: {}}}", create, "{}");
    let resource = infer("/pools/", Some(&document)).unwrap().resource.unwrap();
    assert_eq!(resource.alias.as_deref(), Some(alias));
    assert_eq!(resource.id.as_deref(), Some("{{/id}}"));
}

#[rstest]
#[case("/users/tokens/", &["/key"])]
#[case("/api-keys/", &["/key"])]
#[case("/ssh-keys/", &[])]
#[case("/settings/", &[])]
fn the_key_of_a_token_is_a_secret(#[case] path: &str, #[case] secrets: &[&str]) {
    let schema = "{content: {application/json: {schema: {properties: {id: {}, key: {}, note: {}}}}}}";
    let list = path.trim_end_matches('/');
    let document = format!(
        "paths: {{{list}: {{post: {{requestBody: {schema}}}}}, '{list}/{{id}}': {{get: {{responses: {{'200': {schema}}}}}}}}}"
    );
    let document = OpenApi::parse(document.as_bytes()).unwrap();
    let resource = infer(path, Some(&document)).unwrap().resource.unwrap();
    let found: Vec<_> =
        resource.secret_attributes.unwrap_or_default().iter().map(ToString::to_string).collect();
    assert_eq!(found, secrets);
}

/// Many documents do not name all attributes of a request.
#[rstest]
#[case::author_in_a_request(
    "{properties: {name: {}}}",
    "{properties: {modified_by: {}}}",
    "[/modified_by, /used]"
)]
#[case::author_that_a_request_needs(
    "{properties: {name: {}}}",
    "{required: [modified_by], properties: {name: {}}}",
    "[/used]"
)]
#[case::neither("{properties: {name: {}}}", "{properties: {size: {}}}", "[/modified_by, /used]")]
#[case::updated("{properties: {name: {}}}", "{properties: {used: {}}}", "[/modified_by]")]
#[case::without_the_name("{properties: {size: {}}}", "{properties: {size: {}}}", "[/modified_by, /used]")]
#[case::of_another("{properties: {pool: {}}}", "{properties: {pool: {}}}", "[/modified_by]")]
fn times_that_no_request_names_are_those_of_the_server(
    #[case] create: &str,
    #[case] update: &str,
    #[case] expected: &str,
) {
    let answer =
        "{properties: {id: {}, name: {}, size: {}, colour: {}, modified_by: {}, used: {format: date-time}}}";
    let inferred = infer("/pools/", Some(&pools(answer, create, update))).unwrap();
    assert_eq!(steps(inferred, OperationName::Get), expected);
}

/// The transforms of an operation, in short.
fn steps(inferred: Document, operation: OperationName) -> String {
    let operations = inferred.operations.map(|operations| operations.operations).unwrap_or_default();
    let steps = operations.get(&operation).and_then(|operation| operation.transforms.clone());
    let text = |step: Step| match step {
        Step::Exclude(names) => {
            format!("[{}]", names.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))
        }
        Step::Jq(expression) => expression,
        Step::Select(_) => format!("{step:?}"),
    };
    steps.into_iter().flatten().map(text).collect()
}

#[rstest]
#[case::envelope(
    "{properties: {version: {}, pool: {properties: {id: {}, name: {}, used: {readOnly: true}}}}}",
    ".pool[/used]",
    "id",
    "name"
)]
#[case::referred("{properties: {data: {$ref: '#/components/schemas/Pool'}}}", ".data[/used]", "id", "name")]
#[case::all_of(
    "{allOf: [{properties: {data: {allOf: [{$ref: '#/components/schemas/Pool'}]}}}]}",
    ".data[/used]",
    "id",
    "name"
)]
#[case::several(
    "{properties: {a: {properties: {name: {}}}, b: {properties: {name: {}}}}}",
    "",
    "pool",
    "pool"
)]
#[case::none("{properties: {name: {}, pool: {properties: {name: {}}}}}", "", "name", "name")]
fn the_envelope_of_a_read_is_removed(
    #[case] answer: &str,
    #[case] expected: &str,
    #[case] id: &str,
    #[case] alias: &str,
) {
    let body = "{properties: {name: {}, size: {}}}";
    let schemas = "components: {schemas: {Pool: {properties: {id: {}, name: {}, used: {readOnly: true}}}}}";
    let content = |schema: &str| format!("{{content: {{application/json: {{schema: {schema}}}}}}}");
    let (answer, body) = (content(answer), content(body));
    let document = format!(
        "paths: {{/pools: {{post: {{requestBody: {body}}}}}, '/pools/{{id}}': {{get: {{responses: {{'200': {answer}}}}}, \
         put: {{requestBody: {body}}}}}}}\n{schemas}"
    );
    let inferred = infer("/pools/", Some(&OpenApi::parse(document.as_bytes()).unwrap())).unwrap();
    let resource = inferred.resource.clone().unwrap();
    let template = |name| Some(format!("{{{{/{name}}}}}"));
    assert_eq!((resource.id, resource.alias), (template(id), template(alias)));
    assert_eq!(steps(inferred, OperationName::Get), expected);
}

/// Resources of a Django server may be addressed by their slug, although they have an `id`, too.
#[rstest]
#[case::slug("{id: {}, slug: {}}", "slug", "", Some("./{{/remoteID}}"))]
#[case::slug_with_a_slash("{id: {}, slug: {}}", "slug", "/", Some("./{{/remoteID}}/"))]
#[case::no_other_id("{slug: {}, size: {}}", "slug", "", None)]
#[case::the_id("{id: {}, slug: {}}", "id", "/", Some("./{{/id}}/"))]
fn paths_have_the_id_that_the_document_names(
    #[case] attributes: &str,
    #[case] variable: &str,
    #[case] slash: &str,
    #[case] expected: Option<&str>,
) {
    let answer = format!("{{content: {{application/json: {{schema: {{properties: {attributes}}}}}}}}}");
    let item = format!(
        "'/pools/{{{variable}}}{slash}': {{get: {{responses: {{'200': {answer}}}}}, put: {{}}, delete: {{}}}}"
    );
    let document =
        OpenApi::parse(format!("paths: {{/pools{slash}: {{get: {{}}}}, {item}}}").as_bytes()).unwrap();
    let inferred = infer("/pools/", Some(&document)).unwrap();
    let operations = inferred.operations.map(|operations| operations.operations).unwrap_or_default();
    for name in [OperationName::Get, OperationName::Update, OperationName::Delete] {
        let path = operations.get(&name).and_then(|operation| operation.path.as_deref());
        assert_eq!(path, expected, "{name:?}");
    }
    assert!(!operations.contains_key(&OperationName::Compare));
}

/// Requests of `NetBox` state the value of a choice, and answers show its label, too.
#[rstest]
#[case::choice("{properties: {value: {}, label: {}}}", "{enum: [a]}", "(.size | objects) |= .value")]
#[case::with_a_number("{properties: {value: {}, label: {}, id: {}}}", "{}", "(.size | objects) |= .value")]
#[case::an_object_in_requests(
    "{properties: {value: {}, label: {}}}",
    "{properties: {value: {}, label: {}}}",
    ""
)]
#[case::with_others("{properties: {value: {}, label: {}, unit: {}}}", "{}", "")]
#[case::without_a_label("{properties: {value: {}, unit: {}}}", "{}", "")]
fn choices_are_shown_as_requests_state_them(#[case] shown: &str, #[case] sent: &str, #[case] expected: &str) {
    let answer = format!("{{properties: {{id: {{}}, name: {{}}, size: {shown}, kind: {shown}}}}}");
    let request = format!("{{properties: {{name: {{}}, size: {sent}}}}}");
    let inferred = infer("/pools/", Some(&pools(&answer, &request, "{}"))).unwrap();
    assert_eq!(steps(inferred, OperationName::Get), expected);
}

#[rstest]
#[case::array("{type: array, items: {$ref: '#/components/schemas/Pool'}}", "")]
#[case::one("{properties: {count: {}, found: {items: {$ref: '#/components/schemas/Pool'}}}}", "")]
#[case::of_reads(
    "{properties: {roles: {items: {}}, found: {items: {$ref: '#/components/schemas/Pool'}}}}",
    ".found"
)]
#[case::named(
    "{properties: {roles: {items: {properties: {x: {}}}}, pools: {items: {properties: {name: {}}}}}}",
    ".pools"
)]
#[case::objects("{properties: {ids: {items: {}}, result: {items: {properties: {id: {}}}}}}", ".result")]
#[case::of_a_resource(
    "{properties: {id: {}, names: {items: {}}, wallets: {items: {properties: {id: {}}}}}}",
    ""
)]
#[case::keyed(
    "{type: object, additionalProperties: {$ref: '#/components/schemas/Pool'}}",
    r#"[to_entries[] | {"id": .key} + .value]"#
)]
#[case::keyed_counts("{type: object, additionalProperties: {type: integer}}", "")]
#[case::any_object("{type: object, additionalProperties: {type: object}}", "")]
#[case::unknown("{properties: {roles: {items: {}}, found: {items: {}}}}", "")]
fn the_entries_of_a_list_with_several_arrays_are_selected(#[case] list: &str, #[case] expected: &str) {
    let content =
        |schema: &str| format!("{{'200': {{content: {{application/json: {{schema: {schema}}}}}}}}}");
    let (list, pool) = (content(list), content("{$ref: '#/components/schemas/Pool'}"));
    let document = format!(
        "paths: {{/pools: {{get: {{responses: {list}}}}}, '/pools/{{id}}': {{get: {{responses: {pool}}}}}}}\n\
         components: {{schemas: {{Pool: {{properties: {{id: {{}}, name: {{}}}}}}}}}}"
    );
    let inferred = infer("/pools/", Some(&OpenApi::parse(document.as_bytes()).unwrap())).unwrap();
    assert_eq!(steps(inferred, OperationName::List), expected);
}

/// The server assigns the keys, which are ids, and the entries state only their names.
#[rstest]
#[case::id("id", ["{{/id}}", "{{/name}}"], r#"[to_entries[] | {"id": .key} + .value]"#)]
#[case::of_the_collection("poolId", ["{{/id}}", "{{/name}}"], r#"[to_entries[] | {"id": .key} + .value]"#)]
#[case::spelled("NaMe", ["{{/name}}", "{{/name}}"], r#"[to_entries[] | {"name": .key} + .value]"#)]
#[case::name("name", ["{{/name}}", "{{/name}}"], r#"[to_entries[] | {"name": .key} + .value]"#)]
#[case::of_the_name("pool", ["{{/name}}", "{{/name}}"], r#"[to_entries[] | {"name": .key} + .value]"#)]
fn keys_of_a_list_are_ids(#[case] variable: &str, #[case] names: [&str; 2], #[case] expected: &str) {
    let document = format!(
        "paths: {{/pools: {{get: {{responses: {{'200': {{content: {{application/json: {{schema: {{type: object, \
         additionalProperties: {{properties: {{name: {{}}, size: {{}}}}}}}}}}}}}}}}}}, post: {{}}}}, '/pools/{{{variable}}}': {{get: {{}}}}}}"
    );
    let inferred = infer("/pools/", Some(&OpenApi::parse(document.as_bytes()).unwrap())).unwrap();
    let resource = inferred.resource.clone().unwrap_or_default();
    assert_eq!([resource.id, resource.alias].map(Option::unwrap), names);
    assert_eq!(steps(inferred, OperationName::List), expected);
    // If no POST creates resources, the client states the keys.
    let document = OpenApi::parse(document.replace("post:", "put:").as_bytes()).unwrap();
    let resource = infer("/pools/", Some(&document)).unwrap().resource.unwrap_or_default();
    assert_eq!([resource.id, resource.alias].map(Option::unwrap), ["{{/name}}", "{{/name}}"]);
}

#[rstest]
#[case::texts("{type: array, items: {$ref: '#/components/schemas/Name'}}", true)]
#[case::texts_in_an_object("{properties: {count: {}, keys: {items: {type: string}}}}", true)]
#[case::objects("{type: array, items: {properties: {name: {}}}}", false)]
#[case::texts_beside_objects(
    "{properties: {roles: {items: {type: string}}, pools: {items: {properties: {name: {}}}}}}",
    false
)]
fn lists_of_names_are_recognised(#[case] list: &str, #[case] expected: bool) {
    let document = format!(
        "paths: {{/pools: {{get: {{responses: {{'200': {{content: {{application/json: {{schema: {list}}}}}}}}}}}, post: {{}}}}}}\n\
         components: {{schemas: {{Name: {{type: string, enum: [a, b]}}}}}}"
    );
    let inferred = infer("/pools/", Some(&OpenApi::parse(document.as_bytes()).unwrap())).unwrap();
    let operations = inferred.operations.map(|operations| operations.operations).unwrap_or_default();
    let mode = operations.get(&OperationName::List).and_then(|list| list.mode);
    assert_eq!(mode, expected.then_some(OperationMode::Names));
}

/// Without a path of the members, the entries of the list describe them.
#[test]
fn entries_of_a_list_describe_its_members() {
    let list = "{properties: {version: {}, projects: {items: {properties: {id: {}, name: {}}}}}}";
    let document = format!(
        "paths: {{/projects: {{get: {{responses: {{'200': {{content: {{application/json: {{schema: {list}}}}}}}}}}}}}, \
         '/projects/{{projectId}}/features': {{get: {{}}, post: {{}}}}}}"
    );
    let document = OpenApi::parse(document.as_bytes()).unwrap();
    let resource = infer("/projects/", Some(&document)).unwrap().resource.unwrap();
    assert_eq!((resource.id.as_deref(), resource.alias.as_deref()), (Some("{{/id}}"), Some("{{/name}}")));
}

#[test]
fn collections_that_a_request_can_change() {
    let document = document(&[
        "GET,POST /shops",
        "GET,PUT /shops/{id}",
        "GET,POST /shops/{id}/tills/",
        "GET /shops/{id}/tills/{till}/",
        "GET /logs",
        "GET /logs/{id}",
        "GET,PUT /settings",
        "GET /staff",
        "GET,DELETE /staff/{name}",
        "GET,POST /{tenant}/users",
        "GET,POST /search/shops",
    ]);
    let found: Vec<_> = collections(&document).into_iter().collect();
    assert_eq!(found, ["/_/users", "/shops", "/shops/_/tills", "/staff"]);
}

#[rstest]
#[case::cursor(
    "[{name: offset, in: query, schema: {type: string}}, {name: limit, in: query, schema: {type: integer}}]",
    "{type: array}",
    None
)]
#[case::offset(
    "[{name: offset, in: query}, {name: limit, in: query, schema: {maximum: 500}}]",
    "{}",
    Some("offset by limit, 500 entries")
)]
#[case::of_version_2(
    "[{name: skip, in: query}, {name: max, in: query, maximum: 50}]",
    "{}",
    Some("skip by max, 50 entries")
)]
#[case::without_maximum(
    "[{name: offset, in: query}, {name: limit, in: query}]",
    "{}",
    Some("offset by limit, 100 entries")
)]
#[case::huge_maximum(
    "[{name: offset, in: query}, {name: limit, in: query, schema: {maximum: 999999}}]",
    "{}",
    Some("offset by limit, 1000 entries")
)]
#[case::referred(
    "[{name: offset, in: query}, {$ref: '#/components/parameters/Limit'}]",
    "{}",
    Some("offset by limit, 20 entries")
)]
#[case::next_page(
    "[{name: offset, in: query}, {name: limit, in: query}]",
    "{properties: {next: {}, results: {items: {}}}}",
    None
)]
#[case::page("[{name: page, in: query}, {name: limit, in: query}]", "{}", None)]
#[case::page_with_default(
    "[{name: page, in: query, schema: {default: 1, minimum: 0}}, {name: size, in: query, schema: {maximum: 50}}]",
    "{}",
    Some("page from 1 by size, 50 entries")
)]
#[case::page_with_minimum(
    "[{name: page, in: query, schema: {minimum: 0}}, {name: per_page, in: query}]",
    "{}",
    Some("page from 0 by per_page, 100 entries")
)]
#[case::page_with_another_default(
    "[{name: page, in: query, schema: {default: 2, minimum: 1}}, {name: size, in: query}]",
    "{}",
    None
)]
#[case::page_as_text(
    "[{name: page, in: query, schema: {type: string, minimum: 1}}, {name: size, in: query}]",
    "{}",
    None
)]
#[case::without_size("[{name: offset, in: query}]", "{}", None)]
#[case::header("[{name: offset, in: header}, {name: limit, in: query}]", "{}", None)]
fn pages_of_lists(#[case] parameters: &str, #[case] answer: &str, #[case] expected: Option<&str>) {
    let (of_path, of_list) = parameters.split_once("}, {").map_or((parameters, "[]"), |_| ("[]", parameters));
    let document = format!(
        "paths: {{/pools: {{parameters: {of_path}, post: {{}}, get: {{parameters: {of_list}, responses: \
         {{'200': {{content: {{application/json: {{schema: {answer}}}}}}}}}}}}}}}\n\
         components: {{parameters: {{Limit: {{name: limit, in: query, schema: {{maximum: 20}}}}}}}}"
    );
    let document = OpenApi::parse(document.as_bytes()).unwrap();
    let inferred = infer("/pools/", Some(&document)).unwrap();
    let operations = inferred.operations.map(|operations| operations.operations).unwrap_or_default();
    let pagination = operations.get(&OperationName::List).and_then(|list| list.pagination.clone());
    let text = pagination.map(|pagination| match pagination {
        Pagination::Offset(Numbered { parameter, size_parameter, size, start: 0, items: None }) => {
            format!("{parameter} by {}, {size} entries", size_parameter.unwrap())
        }
        Pagination::Page(Numbered { parameter, size_parameter, size, start, items: None }) => {
            format!("{parameter} from {start} by {}, {size} entries", size_parameter.unwrap())
        }
        other => format!("{other:?}"),
    });
    assert_eq!(text.as_deref(), expected);
}

/// The document of a server with HAL. `list` and `entry` are the schemas of the list and of a resource in answers.
fn hal(list: &str, entry: &str) -> OpenApi {
    let document = format!(
        "paths:
  /teams:
    get: {{responses: {{'200': {{content: {{application/hal+json: {{schema: {list}}}}}}}}}}}
    post: {{requestBody: {{content: {{application/json: {{schema: {{properties: {{id: {{}}, name: {{}}}}}}}}}}}}}}
  /teams/{{id}}:
    get: {{responses: {{'200': {{content: {{application/hal+json: {{schema: {entry}}}}}}}}}}}
    put: {{requestBody: {{content: {{application/json: {{schema: {{properties: {{id: {{}}, name: {{}}}}}}}}}}}}}}"
    );
    OpenApi::parse(document.as_bytes()).unwrap()
}

const EMBEDDED: &str =
    "{properties: {_embedded: {properties: {teams: {type: array, items: {}}}}, _links: {}, page: {}}}";

#[test]
fn the_id_of_hal_is_the_end_of_a_link() {
    let document = hal(EMBEDDED, "{properties: {name: {}, _links: {}}}");
    assert_snapshot!(yaml(&infer("/teams/", Some(&document)).unwrap()), @r#"
    operations:
        create:
            transforms:
                - excludeAttributes:
                    - /id
            validate:
                schemaRef: openapi:request-body
        get:
            transforms:
                - jqExpression: '. + {id: (._links.self.href | split("{")[0] | split("?")[0] | rtrimstr("/") | split("/")[-1] | @urid)}'
                - excludeAttributes:
                    - /_links
        list:
            transforms:
                - jqExpression: '[._embedded.teams[]? | . + {id: (._links.self.href | split("{")[0] | split("?")[0] | rtrimstr("/") | split("/")[-1] | @urid)} | del(._links, ._embedded)]'
        update:
            transforms:
                - excludeAttributes:
                    - /id
            validate:
                schemaRef: openapi:request-body
    resource:
        alias: '{{/name}}'
        id: '{{/id}}'
    "#);
}

#[test]
fn a_link_to_a_resource_with_a_named_path_is_not_an_id() {
    let document = "paths:
  /teams:
    get: {responses: {'200': {content: {application/json: {schema: {type: array, items: {$ref: '#/team'}}}}}}}
    post: {requestBody: {content: {application/json: {schema: {properties: {name: {}}}}}}}
  /teams/{name}:
    get: {responses: {'200': {content: {application/json: {schema: {$ref: '#/team'}}}}}}
    put: {requestBody: {content: {application/json: {schema: {properties: {name: {}}}}}}}
team: {properties: {name: {}, _links: {}}}
";
    let document = OpenApi::parse(document.as_bytes()).unwrap();
    assert_snapshot!(yaml(&infer("/teams/", Some(&document)).unwrap()), @"
    operations:
        create:
            validate:
                schemaRef: openapi:request-body
        get:
            transforms:
                - excludeAttributes:
                    - /_links
        update:
            validate:
                schemaRef: openapi:request-body
    resource:
        alias: '{{/name}}'
        id: '{{/name}}'
    ");
}

#[rstest]
#[case::embedded(EMBEDDED, "{properties: {id: {}, name: {}, _links: {}}}", "[._embedded.teams[]?]")]
#[case::array(
    "{type: array, items: {}}",
    "{properties: {name: {}, _links: {}}}",
    r#"[.[] | . + {id: (._links.self.href | split("{")[0] | split("?")[0] | rtrimstr("/") | split("/")[-1] | @urid)} | del(._links, ._embedded)]"#
)]
#[case::no_list("{properties: {first: {}}}", "{properties: {name: {}, _links: {}}}", "")]
#[case::several(
    "{properties: {_embedded: {properties: {a: {type: array, items: {}}, b: {type: array, items: {}}}}}}",
    "{properties: {name: {}, _links: {}}}",
    ""
)]
fn lists_of_hal(#[case] list: &str, #[case] entry: &str, #[case] expected: &str) {
    let inferred = infer("/teams/", Some(&hal(list, entry))).unwrap();
    let resource = inferred.resource.clone().unwrap();
    assert_eq!(steps(inferred.clone(), OperationName::List), expected);
    assert!(steps(inferred, OperationName::Get).contains("_links"), "links are not compared");
    assert_eq!(resource.id.as_deref(), Some(if expected.is_empty() { "{{/name}}" } else { "{{/id}}" }));
}

/// JSON:API, `OpenStack` and Rails have one member around a resource in answers and in requests.
#[test]
fn the_wrapper_of_reads_and_requests_is_removed_and_added() {
    let wrapped = |pool: &str| format!("{{properties: {{data: {pool}, meta: {{type: object}}}}}}");
    let answer = wrapped("{properties: {id: {readOnly: true}, name: {}, slots: {}, used: {readOnly: true}}}");
    let body = "{properties: {data: {properties: {name: {}, slots: {}}}}}";
    let document = pools(&answer, body, body);
    assert_snapshot!(yaml(&infer("/pools/", Some(&document)).unwrap()), @r#"
    operations:
        create:
            transforms:
                - jqExpression: '{"data": .}'
            validate:
                schemaRef: openapi:request-body
        get:
            transforms:
                - jqExpression: .data
                - excludeAttributes:
                    - /used
        update:
            transforms:
                - jqExpression: '{"data": .}'
            validate:
                schemaRef: openapi:request-body
    resource:
        alias: '{{/name}}'
        id: '{{/id}}'
    "#);
}

/// A resource may have one attribute that requests can set, and that is an object.
#[rstest]
#[case("{properties: {id: {}, config: {properties: {name: {}, size: {}}}}}")]
#[case("{properties: {poolId: {}, size: {}, config: {properties: {id: {}, name: {}}}}}")]
#[case("{properties: {config: {properties: {read: {}, size: {}}}}}")]
fn an_attribute_is_not_a_wrapper(#[case] answer: &str) {
    let body = "{properties: {config: {properties: {name: {}, size: {}}}}}";
    let inferred = yaml(&infer("/pools/", Some(&pools(answer, body, body))).unwrap());
    assert!(!inferred.contains("jqExpression"), "{inferred}");
}
