//! Tests of paths and settings.

use rstest::rstest;

use super::*;
use crate::error::{Categorized as _, Category};
use crate::secrets::vault::KvVersion;
use crate::secrets::vault::address::Address;
use crate::secrets::vault::place::Place;

fn settings() -> VaultSettings {
    VaultSettings::new("https://vault.example.test:8200/", VaultAuth::Token(secret(TOKEN)))
}

#[rstest]
#[case(KvVersion::V2, "team/x", "/db/main:/pw", "/v1/secret/data/team/x/db/main:/pw")]
#[case(KvVersion::V1, "team/x", "/db/main:/pw", "/v1/secret/team/x/db/main:/pw")]
#[case(KvVersion::V2, "", "certs/a:.", "/v1/secret/data/certs/a:.")]
#[case(KvVersion::V1, " /x/ ", "db pass", "/v1/secret/x/db%20pass")]
#[case(KvVersion::V2, "", "a:/b~1c?d#e%2Ff", "/v1/secret/data/a:/b~1c%3Fd%23e%252Ff")]
#[case(KvVersion::V2, "", "käse:/π", "/v1/secret/data/k%C3%A4se:/%CF%80")]
#[case(KvVersion::V2, "", r"a\b+c;d=e", "/v1/secret/data/a%5Cb+c;d=e")]
fn keys_become_paths(
    #[case] kv_version: KvVersion,
    #[case] prefix: &str,
    #[case] name: &str,
    #[case] expected: &str,
) {
    let settings = VaultSettings { kv_version, path_prefix: prefix.to_owned(), ..settings() };
    let call = Place::new(&settings).unwrap().read(&key(name)).unwrap();
    let url = Address::parse(&settings.address).unwrap().url(&call.request).unwrap();
    assert_eq!(url.as_str(), format!("https://vault.example.test:8200{expected}"));
}

#[rstest]
#[case(KvVersion::V2, "team", "secret/metadata/team/db/")]
#[case(KvVersion::V1, "", "secret/db/")]
fn folders_become_paths(#[case] kv_version: KvVersion, #[case] prefix: &str, #[case] expected: &str) {
    let settings = VaultSettings { kv_version, path_prefix: prefix.to_owned(), ..settings() };
    assert_eq!(Place::new(&settings).unwrap().list("db/").unwrap().path, expected);
}

#[test]
fn an_address_may_have_a_path() {
    let request = http::Request::get("http://vault/a/b?list=true").body(()).unwrap();
    let url = Address::parse(" http://gate.example.test/vault/ ").unwrap().url(&request);
    assert_eq!(url.unwrap().as_str(), "http://gate.example.test/vault/v1/a/b?list=true");
}

#[rstest]
#[case::scheme("ftp://vault.example.test", "vault address: must be an http:// or https:// URL with a host")]
#[case::relative("vault.example.test", "vault address: must be an http:// or https:// URL with a host")]
#[case::userinfo(
    "https://ops:canary@vault.example.test",
    "vault address: must not contain credentials; configure them in the login"
)]
#[case::query("https://vault.example.test?a=canary", "vault address: must not have a query or a fragment")]
fn invalid_addresses_are_rejected(#[case] address: &str, #[case] message: &str) {
    let error = VaultStore::new(VaultSettings { address: address.to_owned(), ..settings() }).unwrap_err();
    assert_eq!((error.to_string().as_str(), error.category()), (message, Category::Validation));
}

#[rstest]
#[case::no_mount(VaultSettings { mount: " / ".to_owned(), ..settings() }, "mount")]
#[case::empty_segment(VaultSettings { mount: "a//b".to_owned(), ..settings() }, "mount")]
#[case::parent(VaultSettings { path_prefix: "a/../b".to_owned(), ..settings() }, "pathPrefix")]
#[case::current(VaultSettings { path_prefix: ".".to_owned(), ..settings() }, "pathPrefix")]
#[case::namespace(VaultSettings { namespace: Some("a/../b".to_owned()), ..settings() }, "namespace")]
#[case::no_token(VaultSettings { auth: VaultAuth::Token(secret(" \n")), ..settings() }, "auth.token")]
#[case::token_of_two_lines(
    VaultSettings { auth: VaultAuth::Token(secret("canary\r\nX: y")), ..settings() }, "auth.token"
)]
#[case::user_elsewhere(VaultSettings { auth: userpass("userpass", "a/../b"), ..settings() }, "auth.userpass")]
#[case::login_elsewhere(VaultSettings { auth: userpass("../sys", "a"), ..settings() }, "auth.userpass.mount")]
#[case::no_secret_id(
    VaultSettings {
        auth: VaultAuth::AppRole {
            mount: "approle".to_owned(), role_id: secret("r"), secret_id: secret("")
        },
        ..settings()
    },
    "auth.appRole.secretID"
)]
fn the_error_names_the_invalid_setting(#[case] settings: VaultSettings, #[case] setting: &str) {
    let error = VaultStore::new(settings).unwrap_err();
    let text = error.to_string();
    assert!(text.starts_with(&format!("vault {setting}: ")) && !text.contains("canary"), "{text}");
    assert_eq!(error.category(), Category::Validation);
}

fn userpass(mount: &str, username: &str) -> VaultAuth {
    let password = secret("canary");
    VaultAuth::Userpass { mount: mount.to_owned(), username: username.to_owned(), password }
}

#[rstest]
#[case(0, Some(KvVersion::V2))]
#[case(1, Some(KvVersion::V1))]
#[case(2, Some(KvVersion::V2))]
#[case(3, None)]
fn engines_have_two_versions(#[case] number: i64, #[case] expected: Option<KvVersion>) {
    assert_eq!(KvVersion::from_number(number).ok(), expected);
}

#[test]
fn debug_texts_hide_credentials() {
    let settings = VaultSettings { auth: userpass("userpass", "ops"), ..settings() };
    let text = format!("{settings:?} {:?}", store(settings.clone()));
    assert!(!text.contains("canary"), "{text}");
    assert!(text.ends_with("VaultStore(secret/)"), "{text}");
}
