//! `import --infer-metadata`.

use rstest::rstest;
use serde_json::{Value, json};

use crate::api_server::{Answer, ApiServer, Ids, Request, Store};
use crate::safety::Place;

/// The document of a server with numbers as ids, envelopes, lists with two arrays, attributes of its own, and paths that
/// end with a slash.
const OPENAPI: &str = "openapi: 3.0.3
paths:
  /api/boards/:
    get: {responses: {'200': {content: {application/json: {schema: {$ref: '#/components/schemas/Boards'}}}}}}
    post: {requestBody: {content: {application/json: {schema: {$ref: '#/components/schemas/NewBoard'}}}}}
  /api/boards/{id}/:
    get: {responses: {'200': {content: {application/json: {schema: {properties: {result: {$ref: '#/components/schemas/Board'}}}}}}}}
    put: {requestBody: {content: {application/json: {schema: {$ref: '#/components/schemas/NewBoard'}}}}}
    delete: {}
  /api/boards/{id}/cards/:
    get: {responses: {'200': {content: {application/json: {schema: {$ref: '#/components/schemas/Boards'}}}}}}
    post: {requestBody: {content: {application/json: {schema: {$ref: '#/components/schemas/NewBoard'}}}}}
  /api/boards/{id}/cards/{card}/:
    get: {responses: {'200': {content: {application/json: {schema: {properties: {result: {$ref: '#/components/schemas/Board'}}}}}}}}
    put: {requestBody: {content: {application/json: {schema: {$ref: '#/components/schemas/NewBoard'}}}}}
  /api/boards/export/: {get: {}}
  /api/logs/: {get: {}}
  /api/logs/{id}/: {get: {}}
components:
  schemas:
    Boards: {properties: {columns: {items: {type: string}}, result: {items: {$ref: '#/components/schemas/Board'}}}}
    Board: {properties: {id: {}, title: {}, size: {}, changed: {}}}
    NewBoard: {properties: {title: {}, size: {}}, required: [title], additionalProperties: false}
";

fn shown(mut resource: Value) -> Value {
    resource["changed"] = json!("just now");
    resource
}

/// Boards with cards. Reads have an envelope, lists lack the size, and requests with other attributes are rejected.
fn boards(request: &Request, store: &mut Store) -> Answer {
    let Some(path) = request.path.strip_suffix('/') else {
        return Answer::redirect(&format!("{}/", request.path));
    };
    let request = Request { path: path.to_owned(), ..request.clone() };
    let ids = request.segments();
    if ids.iter().skip(2).step_by(2).any(|id| !id.starts_with('n')) {
        return Answer::missing();
    }
    if request.method != "GET" {
        let known = |name: &String| ["title", "size"].contains(&name.as_str());
        let is_known = request.body.as_object().is_none_or(|body| body.keys().all(known));
        return if is_known { request.rest(store, Ids::Given) } else { Answer::empty(422) };
    }
    match store.get(path).cloned() {
        Some(resource) => Answer::json(200, &json!({"id": resource["id"], "result": shown(resource)})),
        None if store.is_collection(path) => {
            let mut listed: Vec<Value> = store.members(path).into_iter().map(shown).collect();
            listed.iter_mut().filter_map(Value::as_object_mut).for_each(|entry| drop(entry.remove("size")));
            Answer::json(200, &json!({"columns": ["id", "title"], "result": listed}))
        }
        None => Answer::missing(),
    }
}

fn place() -> Place {
    let server = ApiServer::start(&["/api/boards", "/api/boards/*/cards", "/api/logs"], boards);
    server.put("/api/boards/n1", json!({"id": "n1", "title": "Rio", "size": 3}));
    server.put("/api/boards/n1/cards/n2", json!({"id": "n2", "title": "Open", "size": 1}));
    Place::with_openapi(server, OPENAPI, &[("README.md", "boards")])
}

#[test]
fn a_server_with_conventions_of_its_own_is_imported_without_work() {
    let place = place();
    let run = place.run(&["import"]);
    assert!(
        run.stdout.contains("several arrays: columns, result; select the entries in operations.list"),
        "{run}"
    );
    insta::assert_snapshot!(place.run(&["import", "--infer-metadata"]), @r#"
    exit 0
    --- stdout
    Metadata: inferred for 2 collections
    /api/boards          1 saved
    /api/boards/_/cards  1 saved
    /api/logs            read-only: the OpenAPI document describes no request that changes it
    Import: 2 resources saved, 0 existing, 0 collections not imported.
    --- stderr
    "#);
    insta::assert_snapshot!(place.home.read("repo/api/boards/Rio/resource.json"), @r#"
    {
      "id": "n1",
      "size": 3,
      "title": "Rio"
    }
    "#);
    insta::assert_snapshot!(place.home.read("repo/api/boards/_/metadata.yaml"), @r#"
    operations:
        create:
            path: ../boards/
            transforms:
                - excludeAttributes:
                    - /id
            validate:
                requiredAttributes:
                    - /title
                schemaRef: openapi:request-body
        delete:
            path: ./{{/id}}/
        get:
            path: ./{{/id}}/
            transforms:
                - jqExpression: .result
                - excludeAttributes:
                    - /changed
        list:
            path: ../boards/
            transforms:
                - jqExpression: .result
        update:
            path: ./{{/id}}/
            transforms:
                - excludeAttributes:
                    - /id
            validate:
                requiredAttributes:
                    - /title
                schemaRef: openapi:request-body
    resource:
        alias: '{{/title}}'
        id: '{{/id}}'
    "#);
    let card = place.home.read("repo/api/boards/Rio/cards/Open/resource.json");
    assert!(card.contains("\"size\": 1"), "a read below the id of the parent shows it: {card}");
    let beside = |request: &Request| request.path.contains("export/cards");
    assert!(!place.server.log().iter().any(beside), "the cards are those of boards, not of their export");
    let run = place.run(&["plan", "/", "--exit-code"]);
    assert_eq!(run.code, 0, "{run}");
    // Created and changed resources converge.
    place.home.write("repo/api/boards/Rio/cards/Closed/resource.json", r#"{"title": "Closed", "size": 2}"#);
    place.home.write("repo/api/boards/Rio/resource.json", r#"{"id": "n1", "title": "Rio", "size": 4}"#);
    let run = place.run(&["resource", "apply", "/", "-r"]);
    assert_eq!(run.code, 0, "{run}");
    assert_eq!(place.server.get("/api/boards/n1"), Some(json!({"id": "n1", "title": "Rio", "size": 4})));
    assert_eq!(
        place.server.paths(),
        ["/api/boards/n1", "/api/boards/n1/cards/n2", "/api/boards/n1/cards/n7"]
    );
}

/// Metadata that a user wrote is not changed, and `PATH` limits the collections.
#[test]
fn existing_metadata_is_kept() {
    let place = place();
    let own =
        "resource: {id: /id, alias: /title}\noperations: {list: {transforms: [{jqExpression: .result}]}}\n";
    place.home.write("repo/api/boards/_/metadata.yaml", own);
    let run = place.run(&["import", "/api/boards", "--infer-metadata", "-o", "jq=.inferred"]);
    assert_eq!(run.stdout, "[\"/api/boards/_/cards\"]\n", "{run}");
    assert_eq!(place.home.read("repo/api/boards/_/metadata.yaml"), own);
    let run = place.run(&["import", "/api/logs", "--infer-metadata"]);
    assert!(!run.stdout.contains("Metadata"), "{run}");
}

/// The document states the title as the name, but titles are not unique, empty or have slashes.
#[rstest]
#[case::duplicates(&[json!("Rio"), json!("Rio")])]
#[case::slashes(&[json!("Rio"), json!("Lima/Callao")])]
#[case::no_name(&[json!("Rio"), json!("")])]
#[case::absent(&[json!("Rio"), json!(null)])]
fn files_have_the_names_of_ids_if_other_names_are_not_usable(#[case] titles: &[Value]) {
    let place = place();
    for (number, title) in titles.iter().enumerate() {
        let id = format!("n{}", number + 3);
        let mut board = json!({"id": id, "size": 1});
        if !title.is_null() {
            board["title"] = title.clone();
        }
        place.server.put(&format!("/api/boards/{id}"), board);
    }
    let run = place.run(&["import", "--infer-metadata"]);
    assert_eq!(run.code, 0, "{run}");
    assert_eq!(
        run.stderr,
        "/api/boards: not all members have a name of their own, so the directories are named by the ids\n"
    );
    assert!(run.stdout.contains("/api/boards          3 saved\n/api/boards/_/cards  1 saved"), "{run}");
    assert!(place.home.read("repo/api/boards/n3/resource.json").contains("Rio"));
    assert!(place.home.read("repo/api/boards/n1/cards/Open/resource.json").contains("Open"));
    let run = place.run(&["plan", "/", "--exit-code"]);
    assert_eq!(run.code, 0, "{run}");
}

/// The paths of the document begin with the path of the base URL.
#[test]
fn paths_that_repeat_the_base_url_are_relative_to_it() {
    let place = place();
    let url = format!("managedServer.http.url={}/api", place.server.url());
    let run = place.run(&["import", "--infer-metadata", "--set", &url]);
    assert!(run.stdout.contains("/boards          1 saved\n/boards/_/cards  1 saved"), "{run}");
    place.home.write("repo/boards/Rio/resource.json", r#"{"id": "n1", "title": "Rio", "size": 5}"#);
    let run = place.run(&["resource", "apply", "/", "-r", "--set", &url]);
    assert_eq!(place.server.get("/api/boards/n1").unwrap()["size"], 5, "{run}");
}

/// The list is in `_embedded`, and the id is only in a link (HAL), as in services with Spring Data REST.
fn hal(request: &Request, store: &mut Store) -> Answer {
    fn linked(mut team: Value) -> Value {
        let id = team["id"].as_str().unwrap().to_owned();
        team.as_object_mut().unwrap().remove("id");
        team["_links"] = json!({"self": {"href": format!("http://teams.example/api/teams/{id}{{?view}}")}});
        team
    }
    let is_id = |id: &&str| id.starts_with('n');
    if !request.segments().get(1).is_none_or(is_id) || request.body.get("id").is_some() {
        return Answer::json(500, &json!({"message": "failed to convert"}));
    }
    if request.method != "GET" {
        let answer = request.rest(store, Ids::Given);
        return if request.method == "POST" { Answer::empty(201) } else { answer };
    }
    match store.get(&request.path).cloned() {
        Some(team) => Answer::json(200, &linked(team)),
        None if request.path == "/teams" => {
            let teams: Vec<Value> = store.members("/teams").into_iter().map(linked).collect();
            let embedded = if teams.is_empty() { json!({}) } else { json!({"_embedded": {"teams": teams}}) };
            Answer::json(200, &embedded)
        }
        None => Answer::missing(),
    }
}

const HAL: &str = "openapi: 3.1.0
paths:
  /teams:
    get: {responses: {'200': {content: {application/hal+json: {schema: {$ref: '#/components/schemas/Teams'}}}}}}
    post: {requestBody: {content: {application/json: {schema: {$ref: '#/components/schemas/NewTeam'}}}}}
  /teams/{id}:
    get: {responses: {'200': {content: {application/hal+json: {schema: {$ref: '#/components/schemas/Team'}}}}}}
    put: {requestBody: {content: {application/json: {schema: {$ref: '#/components/schemas/NewTeam'}}}}}
    delete: {}
components:
  schemas:
    Teams: {properties: {_embedded: {properties: {teams: {type: array, items: {$ref: '#/components/schemas/Team'}}}}, _links: {}}}
    Team: {properties: {name: {}, size: {}, _links: {}}}
    NewTeam: {properties: {id: {}, name: {}, size: {}}}
";

#[test]
fn a_server_with_hal_is_imported_without_work() {
    let server = ApiServer::start(&["/teams"], hal);
    let place = Place::with_openapi(server, HAL, &[("README.md", "teams")]);
    let run = place.run(&["import", "--infer-metadata"]);
    assert!(run.code == 0 && run.stdout.contains("/teams  0 saved"), "{run}");
    place.server.put("/teams/n1", json!({"id": "n1", "name": "red", "size": 3}));
    let run = place.run(&["import"]);
    assert!(run.code == 0 && run.stdout.contains("/teams  1 saved"), "{run}");
    place.home.write("repo/teams/red/resource.json", r#"{"id": "n1", "name": "red", "size": 4}"#);
    place.home.write("repo/teams/blue/resource.json", r#"{"name": "blue", "size": 1}"#);
    let run = place.run(&["resource", "apply", "/", "-r"]);
    assert_eq!(run.code, 0, "{run}");
    assert_eq!(place.server.get("/teams/n1").unwrap()["size"], 4);
    assert_eq!(place.server.get("/teams/n7").unwrap()["name"], "blue");
    let run = place.run(&["plan", "/", "--exit-code"]);
    assert_eq!(run.code, 0, "{run}");
    let run = place.run(&["resource", "delete", "/teams/blue", "--yes"]);
    assert_eq!((run.code, place.server.paths()), (0, vec!["/teams/n1".to_owned()]), "{run}");
}

const SITES: &str = "openapi: 3.0.3
paths:
  /sites:
    get: {responses: {'200': {content: {application/json: {schema: {type: array, items: {$ref: '#/components/schemas/Site'}}}}}}}
    post: {requestBody: {content: {application/json: {schema: {$ref: '#/components/schemas/NewSite'}}}}}
  /sites/{id}:
    get: {responses: {'200': {content: {application/json: {schema: {$ref: '#/components/schemas/Site'}}}}}}
    put: {requestBody: {content: {application/json: {schema: {$ref: '#/components/schemas/NewSite'}}}}}
components:
  schemas:
    Site: {properties: {id: {type: string}, slug: {type: string}, status: {$ref: '#/components/schemas/Choice'}, role: {nullable: true, type: object, properties: {value: {}, label: {}}}}}
    Choice: {type: object, properties: {value: {enum: [active, planned]}, label: {type: string}}}
    NewSite: {required: [slug], properties: {slug: {type: string}, status: {enum: [active, planned]}, role: {enum: [a]}}}
";

/// Like `NetBox`, the server shows the label of a choice beside its value, and rejects both in a request.
#[test]
fn choices_are_saved_as_requests_state_them() {
    let labelled = |mut site: Value| {
        let value = site["status"].clone();
        site["status"] = json!({"label": format!("{value:?}"), "value": value});
        site
    };
    let server = ApiServer::start(&["/sites"], move |request, store| {
        if request.is_write() {
            let is_choice = request.body["status"].is_object();
            return if is_choice { Answer::empty(400) } else { request.rest(store, Ids::Given) };
        }
        match store.get(&request.path) {
            Some(site) => Answer::json(200, &labelled(site.clone())),
            None if request.path == "/sites" => {
                Answer::json(200, &store.members("/sites").into_iter().map(labelled).collect())
            }
            None => Answer::missing(),
        }
    });
    server.put("/sites/n1", json!({"id": "n1", "slug": "rio", "status": "active", "role": null}));
    let place = Place::with_openapi(server, SITES, &[("README.md", "sites")]);
    let run = place.run(&["import", "--infer-metadata"]);
    assert!(run.code == 0 && run.stdout.contains("/sites  1 saved"), "{run}");
    let saved: Value = serde_json::from_str(&place.home.read("repo/sites/rio/resource.json")).unwrap();
    assert_eq!(saved, json!({"id": "n1", "slug": "rio", "status": "active", "role": null}));
    let planned = json!({"id": "n1", "slug": "rio", "status": "planned", "role": null});
    place.home.write("repo/sites/rio/resource.json", &planned.to_string());
    place.home.write("repo/sites/lima/resource.json", r#"{"slug": "lima", "status": "active"}"#);
    let run = place.run(&["resource", "apply", "/", "-r"]);
    assert_eq!(run.code, 0, "{run}");
    assert_eq!(place.server.get("/sites/n1").unwrap()["status"], "planned", "{run}");
    let run = place.run(&["plan", "/", "--exit-code"]);
    assert_eq!(run.code, 0, "{run}");
}
