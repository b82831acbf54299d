//! Tests of taking secrets out of drafts.

use std::fs;

use rstest::rstest;

use super::super::*;
use super::{Fixture, draft, path, yaml};
use crate::error::{Categorized, Category};
use crate::payload::pointer::Pointer;

const PIN: (&str, &str) = ("apps/_/metadata.yaml", "resource: {secretAttributes: [/pin]}");

fn pointer(text: &str) -> Pointer {
    Pointer::parse(text).unwrap()
}

fn options(attributes: Attributes) -> SecretOptions {
    SecretOptions { attributes, has_store: true, ..SecretOptions::default() }
}

fn listed(pointers: &[&str]) -> Attributes {
    Attributes::Listed(pointers.iter().map(|text| pointer(text)).collect())
}

fn single(at: &str, payload: &str) -> Vec<Batch> {
    vec![Batch { collection: None, drafts: vec![draft(at, payload)], observed: false }]
}

fn items(collection: &str, items: &[(&str, &str)]) -> Vec<Batch> {
    let drafts = items.iter().map(|(at, payload)| draft(at, payload)).collect();
    vec![Batch { collection: Some(path(collection)), drafts, observed: false }]
}

impl Fixture {
    fn conceal(&self, batches: Vec<Batch>, options: &SecretOptions) -> Result<Concealed, AuthoringError> {
        conceal(&self.store, &self.metadata, batches, options)
    }

    /// Carries out all steps except storing the secrets.
    fn carry_out(&self, concealed: Concealed) {
        concealed.attributes.iter().for_each(|declaration| declaration.write(&self.store).unwrap());
        for draft in concealed.drafts {
            Prepared::new(&self.store, &self.metadata, draft).unwrap().write(&self.store).unwrap();
        }
        concealed.whole.iter().for_each(|declaration| declaration.write(&self.store).unwrap());
    }
}

fn stored(concealed: &Concealed) -> Vec<(&str, &str)> {
    concealed.secrets.iter().map(|(key, secret)| (key.as_str(), secret.expose())).collect()
}

fn refused(outcome: Result<Concealed, AuthoringError>) -> String {
    let error = outcome.unwrap_err();
    assert_eq!(error.category(), Category::Validation);
    error.to_string()
}

#[rstest]
#[case::plain(Attributes::Declared, "detected in /apps/a: /apiKey, /retryToken; --secret-attributes keeps")]
#[case::listed(listed(&["/apiKey"]), "detected in /apps/a: /retryToken; ")]
fn undeclared_secrets_are_reported(#[case] attributes: Attributes, #[case] message: &str) {
    let fixture = Fixture::new(&[PIN]);
    let payload = "{apiKey: k1, retryToken: r1, pin: '0420'}";
    let text = refused(fixture.conceal(single("/apps/a", payload), &options(attributes)));
    assert!(text.contains(message) && text.contains("--allow-plaintext"), "{text}");
}

#[test]
fn all_candidates_go_to_the_store() {
    let fixture = Fixture::new(&[PIN]);
    let payload = "{apiKey: k1, retryToken: r1, pin: '0420'}";
    let concealed = fixture.conceal(single("/apps/a", payload), &options(Attributes::Likely)).unwrap();
    let expected = [("apps/a:/apiKey", "k1"), ("apps/a:/pin", "0420"), ("apps/a:/retryToken", "r1")];
    assert_eq!(stored(&concealed), expected);
    fixture.carry_out(concealed);
    let file = yaml(&fixture.read("apps/a/resource.json").unwrap());
    assert_eq!(file, yaml("{apiKey: '{{secret .}}', retryToken: '{{secret .}}', pin: '{{secret .}}'}"));
    let metadata = yaml(&fixture.read("apps/a/metadata.yaml").unwrap());
    assert_eq!(metadata, yaml("{resource: {secretAttributes: [/apiKey, /pin, /retryToken]}}"));
}

#[rstest]
#[case::undeclared("{apiKey: k1, retryToken: r1}", false, "in /apps/a: /apiKey, /retryToken; ")]
#[case::undeclared_before_declared("{apiKey: k1, pin: '0420'}", false, "in /apps/a: /apiKey; ")]
#[case::declared("{pin: '0420'}", false, "secret provider is not configured: /apps/a has the secret /pin")]
#[case::declared_whatever_is_allowed("{pin: '0420', apiKey: k}", true, "secret provider is not configured")]
#[case::declared_number("{pin: 420}", false, "/apps/a: the secret /pin is an integer")]
#[case::declared_object("{pin: {a: 1}}", false, "/apps/a: the secret /pin is an object")]
#[case::allowed("{apiKey: k1}", true, "")]
#[case::allowed_number("{pin: 420}", true, "")]
#[case::placeholders("{pin: '{{secret .}}', apiKey: '{{secret ci}}'}", false, "")]
#[case::nothing("{pin: null}", false, "")]
#[case::empty("{pin: ''}", false, "")]
#[case::harmless("{name: a, tokenTTL: '5m'}", false, "")]
fn without_a_store(#[case] payload: &str, #[case] allow_plaintext: bool, #[case] message: &str) {
    let fixture = Fixture::new(&[PIN]);
    let options = SecretOptions { allow_plaintext, ..SecretOptions::default() };
    match fixture.conceal(single("/apps/a", payload), &options) {
        Ok(concealed) => {
            assert_eq!(message, "");
            assert_eq!(concealed.drafts[0].payload, yaml(payload));
        }
        error => {
            let text = refused(error);
            assert!(!message.is_empty() && text.contains(message), "{text}");
        }
    }
}

#[rstest]
#[case::switch("{pin: 'yes'}", &[("apps/a:/pin", "yes")], "{pin: '{{secret .}}'}")]
#[case::digits("{pin: '0420'}", &[("apps/a:/pin", "0420")], "{pin: '{{secret .}}'}")]
#[case::other_key("{pin: '{{secret ci}}'}", &[], "{pin: '{{secret ci}}'}")]
#[case::empty("{pin: ''}", &[], "{pin: ''}")]
#[case::null("{pin: null}", &[], "{pin: null}")]
fn declared_strings_are_stored_regardless_of_their_value(
    #[case] payload: &str,
    #[case] secrets: &[(&str, &str)],
    #[case] expected: &str,
) {
    let fixture = Fixture::new(&[PIN]);
    let concealed = fixture.conceal(single("/apps/a", payload), &options(Attributes::Declared)).unwrap();
    assert_eq!(stored(&concealed), secrets);
    assert_eq!(concealed.drafts[0].payload, yaml(expected));
    assert!(concealed.attributes.is_empty() && concealed.whole.is_empty());
}

#[rstest]
#[case::no_candidate("{name: a}", listed(&["/name"]), "/apps/a: --secret-attributes names /name, which neither")]
#[case::absent("{name: a}", listed(&["/apiKey"]), "names /apiKey")]
#[case::text("just text", Attributes::Likely, "the payload for /apps/a is not an object")]
#[case::alternative("just text", Attributes::Likely, "--secret")]
#[case::array("[1]", Attributes::Likely, "the payload for /apps/a is not an object")]
#[case::no_key("{token: {'': {password: x}}, pin: '1', password: {'': 1}}", listed(&["/password/"]), "names /password/")]
fn bad_attributes(#[case] payload: &str, #[case] attributes: Attributes, #[case] message: &str) {
    let fixture = Fixture::new(&[PIN]);
    let text = refused(fixture.conceal(single("/apps/a", payload), &options(attributes)));
    assert!(text.contains(message), "{text}");
}

#[test]
fn a_declared_attribute_may_be_listed_and_absent() {
    let fixture = Fixture::new(&[PIN]);
    let concealed = fixture.conceal(single("/apps/a", "{a: 1}"), &options(listed(&["/pin"]))).unwrap();
    assert!(concealed.secrets.is_empty() && concealed.attributes.is_empty());
}

#[test]
fn members_without_a_name_have_no_key() {
    let fixture = Fixture::new(&[("apps/_/metadata.yaml", "resource: {secretAttributes: [/a/]}")]);
    let outcome = fixture.conceal(single("/apps/a", "{a: {'': x}}"), &options(Attributes::Declared));
    assert!(refused(outcome).contains("secret key"));
}

#[test]
fn secrets_in_arrays_are_reported() {
    let fixture = Fixture::new(&[]);
    let payload = "{users: [{password: a}], '0': {password: b}}";
    let concealed = fixture.conceal(single("/apps/a", payload), &options(Attributes::Likely)).unwrap();
    assert_eq!(concealed.in_arrays, [(path("/apps/a"), pointer("/users/0/password"))]);
    assert_eq!(stored(&concealed), [("apps/a:/0/password", "b"), ("apps/a:/users/0/password", "a")]);
}

#[test]
fn items_share_their_candidates() {
    let fixture = Fixture::new(&[("shops/rio/metadata.yaml", "resource: {secretAttributes: [/pin]}")]);
    let payloads = [("/shops/lima", "{apiKey: k1}"), ("/shops/rio", "{apiKey: '42', pin: '1', x: y}")];
    let concealed =
        fixture.conceal(items("/shops", &payloads), &options(listed(&["/apiKey", "/absent"]))).unwrap();
    let expected = [("shops/lima:/apiKey", "k1"), ("shops/rio:/apiKey", "42"), ("shops/rio:/pin", "1")];
    assert_eq!(stored(&concealed), expected);
    fixture.carry_out(concealed);
    let metadata = |file: &str| yaml(&fixture.read(file).unwrap());
    let both = yaml("{resource: {secretAttributes: [/apiKey, /pin]}}");
    assert_eq!(metadata("shops/_/metadata.yaml"), both);
    // The list of rio's own metadata replaces the list of its collection.
    assert_eq!(metadata("shops/rio/metadata.yaml"), both);
}

#[rstest]
#[case::itself("/shops", &[], "shops/_/metadata.yaml")]
#[case::realm("/realms/acme/clients", &[], "realms/_/clients/_/metadata.yaml")]
#[case::realms("/realms", &[], "realms/_/metadata.yaml")]
#[case::existing("/realms/acme/clients", &["realms/acme/clients/_/metadata.yaml", "realms/_/clients/_/metadata.yaml"], "realms/acme/clients/_/metadata.yaml")]
#[case::existing_wildcard("/shops/rio/tills", &["shops/_/tills/_/metadata.yaml"], "shops/_/tills/_/metadata.yaml")]
#[case::other_wildcards("/shops/rio/tills", &["shops/_/_/_/metadata.yaml"], "shops/_/_/_/metadata.yaml")]
#[case::no_match("/shops/rio/tills", &["malls/_/tills/_/metadata.yaml"], "shops/rio/tills/_/metadata.yaml")]
fn a_collection_is_declared_in_its_most_specific_document(
    #[case] collection: &str,
    #[case] existing: &[&str],
    #[case] expected: &str,
) {
    let files: Vec<(&str, &str)> = existing.iter().map(|file| (*file, "resource: {id: /id}\n")).collect();
    let fixture = Fixture::new(&files);
    let item = format!("{collection}/a");
    let batch = items(collection, &[(&item, "{password: x}")]);
    let concealed = fixture.conceal(batch, &options(Attributes::Likely)).unwrap();
    fixture.carry_out(concealed);
    let text = fixture.read(expected).unwrap_or_else(|| panic!("{expected} was not written"));
    assert_eq!(yaml(&text).get("resource").unwrap().get("secretAttributes"), Some(&yaml("[/password]")));
    assert_eq!(text.contains("id: "), existing.contains(&expected));
}

#[test]
fn undeclared_secrets_of_all_items_are_reported() {
    let fixture = Fixture::new(&[]);
    let payloads = [("/a/x", "{password: pw}"), ("/a/y", "{ok: 1}"), ("/a/z", "{apiKey: k}")];
    let text = refused(fixture.conceal(items("/a", &payloads), &options(Attributes::Declared)));
    assert!(text.contains("detected in /a/x: /password, /a/z: /apiKey; "), "{text}");
}

#[rstest]
#[case::json(&[], "{a: [1]}", "{\n  \"a\": [\n    1\n  ]\n}", "notes/n/resource.json", "\"{{secret .}}\"")]
#[case::yaml(&[("notes/_/metadata.yaml", "resource: {format: yaml}")], "{a: {b: 1}}", "a:\n    b: 1\n", "notes/n/resource.yaml", "'{{secret .}}'")]
#[case::existing(&[("notes/n/resource.properties", "old=1\n")], "{a: b}", "a=b\n", "notes/n/resource.properties", "{{secret .}}")]
#[case::text(&[("notes/n/resource.txt", "old")], "hush", "hush", "notes/n/resource.txt", "{{secret .}}")]
fn whole_resources(
    #[case] files: &[(&str, &str)],
    #[case] payload: &str,
    #[case] secret: &str,
    #[case] file: &str,
    #[case] content: &str,
) {
    let fixture = Fixture::new(files);
    let options = SecretOptions { whole: true, has_store: true, ..SecretOptions::default() };
    let concealed = fixture.conceal(single("/notes/n", payload), &options).unwrap();
    let [(key, value)] = stored(&concealed)[..] else { panic!("{concealed:?}") };
    assert_eq!((key, value.trim_end()), ("notes/n:.", secret.trim_end()));
    fixture.carry_out(concealed);
    assert_eq!(fixture.read(file).unwrap().trim_end().replace('"', "'"), content.replace('"', "'"));
    assert_eq!(fixture.read("notes/n/metadata.yaml").unwrap(), "resource:\n    secret: true\n");
    let (_, stored) = fixture.store.get(&path("/notes/n")).unwrap();
    assert_eq!(stored, yaml("'{{secret .}}'"));
}

#[test]
fn binary_resources_are_stored_as_base64() {
    let fixture = Fixture::new(&[]);
    let payload = Value::Bytes(vec![0xff, 0]);
    let drafts = vec![Draft::new(path("/keys/k"), payload)];
    let options = SecretOptions { whole: true, has_store: true, ..SecretOptions::default() };
    let concealed =
        fixture.conceal(vec![Batch { collection: None, drafts, observed: false }], &options).unwrap();
    assert_eq!(stored(&concealed), [("keys/k:.", "declarest:whole-resource:v1:base64:/wA=")]);
    fixture.carry_out(concealed);
    assert_eq!(fixture.read("keys/k/resource.bin").unwrap(), "{{secret .}}");
}

#[test]
fn resources_declared_as_a_whole_are_stored_as_a_whole() {
    let metadata = ("apps/_/metadata.yaml", "resource: {secret: true, defaults: {value: {a: 1}}}");
    let fixture = Fixture::new(&[metadata]);
    let concealed =
        fixture.conceal(single("/apps/a", "{password: x}"), &options(Attributes::Declared)).unwrap();
    assert_eq!(concealed.secrets.len(), 1);
    fixture.carry_out(concealed);
    assert!(fixture.read("apps/a/metadata.yaml").is_none());
    let error = refused(fixture.conceal(single("/apps/a", "{a: x}"), &options(Attributes::Likely)));
    assert!(error.contains("remove --secret-attributes"), "{error}");
    let placeholder =
        fixture.conceal(single("/apps/a", "'{{secret .}}'"), &SecretOptions::default()).unwrap();
    assert!(placeholder.secrets.is_empty());
    let no_store = refused(fixture.conceal(single("/apps/a", "{a: 1}"), &SecretOptions::default()));
    assert!(no_store.contains("/apps/a is a secret as a whole"), "{no_store}");
}

#[test]
fn a_whole_secret_replaces_the_list_of_attributes() {
    let own = ("apps/a/metadata.yaml", "resource: {secretAttributes: [/x], id: /id}\n");
    let fixture = Fixture::new(&[own]);
    let options = SecretOptions { whole: true, has_store: true, ..SecretOptions::default() };
    let concealed = fixture.conceal(single("/apps/a", "{id: a}"), &options).unwrap();
    fixture.carry_out(concealed);
    let metadata = yaml(&fixture.read("apps/a/metadata.yaml").unwrap());
    assert_eq!(metadata, yaml("{resource: {id: /id, secret: true}}"));
}

#[test]
fn stored_payloads_are_searched() {
    let fixture = Fixture::new(&[
        ("apps/b/resource.yaml", "password: x\nlist: [{apiKey: k}]\n"),
        ("apps/a/resource.json", r#"{"password": "{{secret .}}", "token": "t"}"#),
        ("other/resource.json", r#"{"token": "t"}"#),
        ("apps/c/resource.txt", "password"),
    ]);
    let found = |scope: &str, only: Option<&str>| {
        let only = only.map(pointer);
        detect_stored(fixture.store.tree(), &path(scope), only.as_ref())
    };
    let texts = |found: Vec<Detected>| -> Vec<String> {
        let line = |hit: Detected| {
            let attributes: Vec<String> = hit.attributes.iter().map(ToString::to_string).collect();
            format!("{} {}", hit.path, attributes.join(" "))
        };
        found.into_iter().map(line).collect()
    };
    assert_eq!(texts(found("/apps", None).unwrap()), ["/apps/a /token", "/apps/b /list/0/apiKey /password"]);
    assert_eq!(texts(found("/", Some("/token")).unwrap()), ["/apps/a /token", "/other /token"]);
    assert_eq!(texts(found("/apps/c", None).unwrap()), Vec::<String>::new());
    let error = found("/apps", Some("/nothing")).unwrap_err();
    assert_eq!(error.category(), Category::Validation);
    assert!(error.to_string().starts_with("--secret-attribute /nothing was not detected"), "{error}");
    fs::write(fixture.root.path().join("apps/b/resource.yaml"), "{").unwrap();
    assert!(found("/apps", None).is_err());
}
