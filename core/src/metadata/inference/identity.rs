//! Infers the attributes that identify the resources of a collection.

use std::collections::BTreeSet;

use super::Example;
use super::shape::Shape;
use super::target::{Target, field_name};
use crate::language::template::IdentityTemplate;
use crate::metadata::openapi::{ApiOperation, OpenApi, PathItem, only};
use crate::payload::pointer::Pointer;
use crate::secret::is_secret_name;

/// Attributes that identify a resource if the path does not name one, in order.
const WELL_KNOWN: [&str; 7] = ["clientId", "alias", "name", "id", "key", "uuid", "uid"];

/// Attributes that name a resource whose id the server assigns, in order.
const STATED: [&str; 8] = ["clientId", "alias", "name", "slug", "key", "uid", "username", "title"];

/// Attributes that are ids themselves, and not the id of something else.
const OWN_IDS: [&str; 4] = ["iid", "uid", "uuid", "guid"];

/// The attributes that hold id and alias.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdentityFields {
    pub id: String,
    pub alias: String,
    /// How much of this the document shows.
    pub basis: Basis,
    /// The attributes that hold secrets, if the name of the collection suggests that its resources have some.
    pub secrets: Vec<String>,
}

/// What shows the attributes of an identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// The schema of a resource in the document, which has the attribute.
    Schema,
    /// The variable in the path of a resource in the document.
    Variable,
    /// Nothing but the name of the collection.
    Name,
}

impl IdentityFields {
    /// Returns the attributes for id and alias that declared resources show: the alias is the last segment of the path
    /// of each of them. An attribute that they do not show is `None`.
    pub fn shown_by(&self, examples: &[Example]) -> (Option<&str>, Option<&str>) {
        let text = |name: &str, example: &Example| {
            IdentityTemplate::of_pointer(Pointer::from_token(name)).evaluate(&example.payload).ok()
        };
        let names = |attribute: &&str| {
            examples.iter().all(|example| text(attribute, example).as_ref() == Some(&example.name))
        };
        let alias = [self.alias.as_str()].into_iter().chain(WELL_KNOWN).find(names);
        let by_variable = self.basis == Basis::Variable && alias == Some(&self.alias);
        let id = if by_variable { &self.id } else { "id" };
        let is_shown = examples.iter().all(|example| text(id, example).is_some());
        (alias.filter(|_| is_shown).map(|_| id), alias)
    }
}

/// Infers the attributes from the last variable of a resource's path and from the attributes of its schema in answers,
/// otherwise from the name of the collection.
pub fn fields(
    target: &Target,
    document: Option<&OpenApi>,
    create: Option<&ApiOperation>,
    item: Option<&PathItem>,
    shape: &Shape,
) -> IdentityFields {
    let answer = shape.resource.as_ref();
    let mut attributes = document.and_then(|document| Some(document.properties(answer?))).unwrap_or_default();
    if shape.is_linked {
        attributes.insert("id".to_owned());
    }
    let variable = item.and_then(PathItem::last_variable).filter(|name| is_attribute(name));
    let mut chosen = choose(variable, &attributes, target.last_literal());
    if let Some(alias) =
        document.and_then(|document| stated_alias(document, create?, shape, &attributes, &chosen.alias))
    {
        chosen = IdentityFields { alias, basis: Basis::Schema, ..chosen };
    }
    // The server assigns the keys of the list. Its entries do not state them, and their names may differ from them.
    let is_key = |name: &str| {
        name.to_ascii_lowercase().ends_with("id")
            && !letters(name).eq(letters(&chosen.id))
            && create.is_some()
    };
    if shape.is_keyed && !attributes.contains("id") && variable.is_some_and(is_key) {
        "id".clone_into(&mut chosen.id);
    }
    IdentityFields { secrets: secrets(target, &attributes), ..chosen }
}

/// Returns the attribute that names a resource if a create cannot state `alias`, because the server assigns it, or if it
/// may state `alias` as a UUID and must state a name.
fn stated_alias(
    document: &OpenApi,
    create: &ApiOperation,
    shape: &Shape,
    attributes: &BTreeSet<String>,
    alias: &str,
) -> Option<String> {
    let schema = &shape.sent(document, create)?;
    let required = document.required_properties(schema);
    let mut writable = document.writable_properties(schema);
    if shape.is_linked {
        // The server assigns the id that it only shows in a link.
        writable.remove("id");
    }
    if writable.is_empty() {
        return None;
    }
    let known = || STATED.into_iter().filter(|name| writable.contains(*name) && attributes.contains(*name));
    let required_name = known().find(|name| required.contains(*name));
    if writable.contains(alias) {
        let is_optional_uuid = !required.contains(alias) && document.uuids(schema).contains(alias);
        return required_name.filter(|_| is_optional_uuid).map(str::to_owned);
    }
    let usual = required_name.or_else(|| known().next());
    // Such as `template_name` of a template, if no other attribute is a name.
    let only_name = || {
        let is_name = |name: &&String| name.to_ascii_lowercase().ends_with("name");
        only(writable.intersection(attributes).filter(is_name)).map(String::as_str)
    };
    usual.or_else(only_name).map(str::to_owned)
}

/// Chooses the attributes for id and alias.
fn choose(
    variable: Option<&str>,
    attributes: &BTreeSet<String>,
    last_literal: Option<&str>,
) -> IdentityFields {
    let spelled = |wanted: &'_ str| {
        attributes.iter().map(String::as_str).find(|name| letters(name).eq(letters(wanted)))
    };
    let by_variable = if attributes.is_empty() { variable } else { variable.and_then(spelled) };
    let well_known = || WELL_KNOWN.into_iter().find(|name| attributes.contains(*name));
    let guessed = || {
        let name = last_literal.and_then(field_name).unwrap_or_else(|| "id".to_owned());
        let name = if name == "client" { "clientId".to_owned() } else { name };
        spelled(&name).map(str::to_owned).unwrap_or(name)
    };
    let alias = by_variable.or_else(well_known).map_or_else(guessed, str::to_owned);
    let is_variable = by_variable == Some(alias.as_str());
    // A name such as `clientId` is the id itself if the schema has no `id`.
    let is_stated = attributes.contains(&alias) && !attributes.contains("id");
    let is_own = OWN_IDS.contains(&alias.to_ascii_lowercase().as_str());
    let names_an_id = alias.to_ascii_lowercase().ends_with("id") && alias != "id" && !is_own && !is_stated;
    let id = if (!is_variable && attributes.contains("id")) || names_an_id { "id" } else { &alias };
    let basis = match by_variable {
        _ if attributes.contains(&alias) => Basis::Schema,
        Some(_) => Basis::Variable,
        None => Basis::Name,
    };
    IdentityFields { id: id.to_owned(), alias, basis, secrets: Vec::new() }
}

/// Returns the letters of a name, which are equal in `clientId`, `client_id` and `client-id`.
pub fn letters(name: &str) -> impl Iterator<Item = u8> {
    name.bytes().filter(|byte| !matches!(byte, b'_' | b'-')).map(|byte| byte.to_ascii_lowercase())
}

/// Returns the attributes that hold secrets, if the name of the collection suggests that its resources have some.
fn secrets(target: &Target, attributes: &BTreeSet<String>) -> Vec<String> {
    let name = target.last_literal().unwrap_or_default().to_ascii_lowercase();
    // A token is often in an attribute whose name does not show a secret elsewhere.
    let is_token = letters(&name).eq(*b"apikeys") || name.ends_with("tokens");
    if !is_token && name != "clients" && !name.contains("secret") && !name.contains("credential") {
        return Vec::new();
    }
    if attributes.is_empty() && !is_token {
        return vec!["secret".to_owned()];
    }
    let is_secret = |name: &&String| is_secret_name(name) || is_token && name.as_str() == "key";
    attributes.iter().filter(is_secret).cloned().collect()
}

/// Returns whether an identity template can refer to this attribute.
fn is_attribute(name: &str) -> bool {
    !name.is_empty()
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::payload::PayloadType;

    #[rstest]
    #[case::no_attributes(Some("shop"), &[], Some("shops"), "shop", "shop")]
    #[case::no_attributes_but_an_id(Some("shopId"), &[], Some("shops"), "id", "shopId")]
    #[case::id_itself(Some("id"), &[], Some("shops"), "id", "id")]
    #[case::variable_is_an_attribute(Some("code"), &["code", "id"], Some("shops"), "code", "code")]
    #[case::variable_ignoring_case(Some("CODE"), &["code"], Some("shops"), "code", "code")]
    #[case::variable_names_an_id(Some("shopId"), &["shopId", "id"], Some("shops"), "id", "shopId")]
    #[case::variable_beside_an_id(Some("iid"), &["id", "iid", "title"], Some("issues"), "iid", "iid")]
    #[case::variable_is_the_only_id(Some("shopId"), &["shopId", "name"], Some("shops"), "shopId", "shopId")]
    #[case::well_known(Some("x"), &["uid", "name"], Some("shops"), "name", "name")]
    #[case::well_known_with_id(Some("shopId"), &["id", "name"], Some("shops"), "id", "name")]
    #[case::well_known_order(None, &["clientId", "alias", "name", "key"], None, "clientId", "clientId")]
    #[case::alias_first(None, &["alias", "name", "key"], None, "alias", "alias")]
    #[case::only_id(None, &["id"], None, "id", "id")]
    #[case::key(None, &["key", "uuid", "uid"], None, "key", "key")]
    #[case::uuid(None, &["uuid", "uid"], None, "uuid", "uuid")]
    #[case::uid(None, &["uid"], None, "uid", "uid")]
    #[case::singular(None, &["color"], Some("shops"), "shop", "shop")]
    #[case::singular_ies(None, &[], Some("api-keys"), "key", "key")]
    #[case::client(None, &[], Some("clients"), "id", "clientId")]
    #[case::client_in_snake_case(Some("id"), &["client_id", "client_name"], Some("clients"), "client_id", "client_id")]
    #[case::snake_case_with_id(Some("clientId"), &["client_id", "id"], Some("clients"), "id", "client_id")]
    #[case::singular_in_snake_case(None, &["api_key"], Some("apiKeys"), "api_key", "api_key")]
    #[case::no_literal(None, &[], None, "id", "id")]
    #[case::no_plural(None, &[], Some("staff"), "staff", "staff")]
    fn chooses(
        #[case] variable: Option<&str>,
        #[case] attributes: &[&str],
        #[case] last_literal: Option<&str>,
        #[case] id: &str,
        #[case] alias: &str,
    ) {
        let attributes = attributes.iter().map(|name| (*name).to_owned()).collect();
        let found = choose(variable, &attributes, last_literal);
        assert_eq!((found.id.as_str(), found.alias.as_str()), (id, alias));
    }

    #[rstest]
    #[case::guessed(None, &[("rio", r#"{"shop": "rio"}"#)], None, Some("shop"))]
    #[case::guessed_with_id(None, &[("rio", r#"{"shop": "rio", "id": 7}"#)], Some("id"), Some("shop"))]
    #[case::well_known(None, &[("rio", r#"{"id": 7, "name": "rio"}"#)], Some("id"), Some("name"))]
    #[case::not_in_all(None, &[("rio", r#"{"id": 7, "name": "rio"}"#), ("oslo", r#"{"name": "oslo"}"#)], None, Some("name"))]
    #[case::number(None, &[("7", r#"{"id": 7}"#)], Some("id"), Some("id"))]
    #[case::other_value(None, &[("rio", r#"{"name": "Rio"}"#)], None, None)]
    #[case::other_in_one(None, &[("rio", r#"{"id": "rio"}"#), ("oslo", r#"{"id": 7}"#)], None, None)]
    #[case::not_an_object(None, &[("rio", "[]")], None, None)]
    #[case::variable(Some("code"), &[("rio", r#"{"code": "rio", "id": 7}"#)], Some("code"), Some("code"))]
    #[case::wrong_variable(Some("shopId"), &[("rio", r#"{"id": "rio"}"#)], Some("id"), Some("id"))]
    fn declared_resources_show_the_identity(
        #[case] variable: Option<&str>,
        #[case] examples: &[(&str, &str)],
        #[case] id: Option<&str>,
        #[case] alias: Option<&str>,
    ) {
        let example = |(name, payload): &(&str, &str)| Example {
            name: (*name).to_owned(),
            payload: crate::payload::decode(PayloadType::Json, payload.as_bytes()).unwrap(),
        };
        let examples: Vec<Example> = examples.iter().map(example).collect();
        let fields = choose(variable, &BTreeSet::new(), Some("shops"));
        assert_eq!(fields.shown_by(&examples), (id, alias));
    }
}
