//! Writes the reference of all fields in Markdown from the definitions.

use std::fmt::Write as _;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};

const HEADER: &str = "\
# Fields of the kinds

`make manifests` writes this page from the definitions of the kinds. [The operator](operator.md) explains them. A field
with the type `{key, name}` names a key of a Secret in the namespace of the object, and `{name}` names an object there.
";

/// Returns the page about the fields of `crds`.
pub fn markdown(crds: &[CustomResourceDefinition]) -> String {
    let mut page = HEADER.to_owned();
    for crd in crds {
        let names = &crd.spec.names;
        let short = names.short_names.iter().flatten().map(|name| format!("`{name}`")).collect::<Vec<_>>();
        let schemas = crd.spec.versions.iter().filter_map(|version| version.schema.as_ref());
        let Some(schema) = schemas.filter_map(|schema| schema.open_api_v3_schema.as_ref()).next_back() else {
            continue;
        };
        let about = schema.description.as_deref().unwrap_or_default();
        let _ = write!(page, "\n## {}\n\n{about} Short name: {}.\n", names.kind, short.join(", "));
        for part in ["spec", "status"] {
            let Some(fields) = schema.properties.as_ref().and_then(|fields| fields.get(part)) else {
                continue;
            };
            let _ =
                write!(page, "\n### {} {part}\n\n| field | type | meaning |\n|---|---|---|\n", names.kind);
            describe(fields, "", &mut page);
        }
    }
    page
}

/// Appends a row for each field of an object, and the rows of the fields below it.
fn describe(object: &JSONSchemaProps, at: &str, page: &mut String) {
    for (name, field) in object.properties.iter().flatten() {
        let is_required = object.required.iter().flatten().any(|required| required == name);
        let path = format!("{at}{name}");
        let _ = writeln!(
            page,
            "| `{path}` | {} | {} |",
            cell(&type_of(field, is_required)),
            cell(&meaning(field))
        );
        match below(field) {
            Some((below, mark)) if !is_reference(below) => describe(below, &format!("{path}{mark}."), page),
            _ => {}
        }
    }
}

/// Returns the schema of the object that `field` contains, and the mark of its place: `[]` for the entries of a list,
/// `.*` for the values of a map.
fn below(field: &JSONSchemaProps) -> Option<(&JSONSchemaProps, &'static str)> {
    let (below, mark) = match (&field.items, &field.additional_properties) {
        (Some(JSONSchemaPropsOrArray::Schema(entry)), _) => (&**entry, "[]"),
        (_, Some(JSONSchemaPropsOrBool::Schema(value))) => (&**value, ".*"),
        _ => (field, ""),
    };
    below.properties.is_some().then_some((below, mark))
}

/// Whether the object names another one and nothing else.
fn is_reference(object: &JSONSchemaProps) -> bool {
    let names: Vec<&str> = object.properties.iter().flatten().map(|(name, _)| name.as_str()).collect();
    matches!(names[..], ["name"] | ["key", "name"])
}

fn type_of(field: &JSONSchemaProps, is_required: bool) -> String {
    let single = |schema: &JSONSchemaProps| match &schema.properties {
        Some(fields) if is_reference(schema) => {
            format!("`{{{}}}`", fields.keys().map(String::as_str).collect::<Vec<_>>().join(", "))
        }
        _ => schema.type_.clone().unwrap_or_else(|| "any".to_owned()),
    };
    let of = match (&field.items, &field.additional_properties) {
        (Some(JSONSchemaPropsOrArray::Schema(entry)), _) => format!("list of {}", single(entry)),
        (_, Some(JSONSchemaPropsOrBool::Schema(value))) => format!("map of {}", single(value)),
        _ => single(field),
    };
    if is_required { format!("{of}, required") } else { of }
}

/// Returns the description of `field`, with its values and its default.
fn meaning(field: &JSONSchemaProps) -> String {
    let mut text = field.description.clone().unwrap_or_default();
    let values = field.enum_.iter().flatten().filter(|value| !value.0.is_null());
    let values: Vec<String> = values.map(|value| format!("`{}`", plain(&value.0))).collect();
    if !values.is_empty() {
        let _ = write!(text, " Values: {}.", values.join(", "));
    }
    if let Some(default) = &field.default {
        let _ = write!(text, " Default: `{}`.", plain(&default.0));
    }
    text.trim().to_owned()
}

fn plain(value: &serde_json::Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Returns a text as a cell of a table.
fn cell(text: &str) -> String {
    text.replace('\n', " ").replace('|', "\\|").replace('<', "\\<")
}
