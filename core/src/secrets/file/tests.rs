//! Tests of secret files.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use rstest::rstest;
use serde_json::json;

use super::*;
use crate::error::{Categorized as _, Category};

/// Files of earlier versions, which must stay readable.
const WITH_KEY: &str = r#"{"version":1,"nonce":"AAECAwQFBgcICQoL","ciphertext":"PCClfqaXp2/+Y63wk4gIHfD55V2cFzYSX13K4X85YcFyZ8GOy+MougeXHJ+78wUJzCQd78AjQECiqX/x1ARpzihIQQ=="}"#;
const WITH_PASSPHRASE: &str = r#"{"version":1,"salt":"EBESExQVFhcYGRobHB0eHw==","nonce":"AAECAwQFBgcICQoL","ciphertext":"Oc3eIyiIHH+c9/+5m06R1EDlyyjkR1FZgZmvAf0ZGfqFp9yKwBifr1IzpGcmI0MhmiHrtUHtGy61YNIho093s1r7dA==","kdf_time":3,"kdf_memory":65536,"kdf_threads":4}"#;

const KEY: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
const PASSPHRASE: &str = "blue kettle 42";

/// A directory with a secret file.
struct Fixture {
    directory: tempfile::TempDir,
}

impl Fixture {
    fn new(content: Option<&str>) -> Self {
        let fixture = Self { directory: tempfile::tempdir().unwrap() };
        if let Some(content) = content {
            fs::write(fixture.file(), content).unwrap();
        }
        fixture
    }

    fn file(&self) -> PathBuf {
        self.directory.path().join("secrets.json")
    }

    fn with_key(&self) -> FileStore {
        self.store(KeyMaterial::key(&secret(KEY)).unwrap())
    }

    fn with_passphrase(&self, passphrase: &str) -> FileStore {
        self.store(KeyMaterial::passphrase(&secret(passphrase)).unwrap())
    }

    fn store(&self, key: KeyMaterial) -> FileStore {
        FileStore::new(FileStoreSettings { beneath: None, path: self.file(), key, kdf: quick() })
    }

    fn envelope(&self) -> serde_json::Value {
        serde_json::from_slice(&fs::read(self.file()).unwrap()).unwrap()
    }

    fn mode(&self) -> u32 {
        fs::metadata(self.file()).unwrap().permissions().mode() & 0o777
    }
}

/// The fastest key derivation that is allowed.
fn quick() -> Kdf {
    Kdf::new(1, 8, 1).unwrap()
}

fn secret(text: &str) -> Secret {
    Secret::from(text.to_owned())
}

fn key(text: &str) -> SecretKey {
    SecretKey::parse(text).unwrap()
}

async fn value(store: &FileStore, at: &str) -> Option<String> {
    match store.get(&key(at)).await {
        Ok(value) => Some(value.expose().to_owned()),
        Err(error) => {
            assert_eq!(error.category(), Category::NotFound, "{error}");
            None
        }
    }
}

#[tokio::test]
async fn existing_files_decrypt() {
    let by_key = Fixture::new(Some(WITH_KEY));
    let by_passphrase = Fixture::new(Some(WITH_PASSPHRASE));
    for store in [by_key.with_key(), by_passphrase.with_passphrase(PASSPHRASE)] {
        store.init().await.unwrap();
        assert_eq!(value(&store, "apps/billing:/dbPassword").await.as_deref(), Some("s3cr3t-1"));
        assert_eq!(store.list().await.unwrap(), [key("apps/billing:/dbPassword")]);
    }
    assert_eq!(fs::read_to_string(by_key.file()).unwrap(), WITH_KEY);
}

#[test]
fn the_key_of_a_passphrase_is_that_of_argon2id() {
    let salt: Vec<u8> = (0x10..0x20).collect();
    let derived = Kdf::default().derive(&secret(PASSPHRASE), &salt).unwrap();
    let digits = crate::digest::hex(derived.as_slice());
    assert!(digits.starts_with("4c7b24b9") && digits.ends_with("76f6bf4c"), "{digits}");
}

/// Decrypts by the description of the format only.
fn decrypt(envelope: &serde_json::Value, key: &[u8]) -> serde_json::Value {
    let field = |name: &str| STANDARD.decode(envelope[name].as_str().unwrap()).unwrap();
    let (nonce, mut content) = (field("nonce"), field("ciphertext"));
    let nonce = Nonce::try_assume_unique_for_key(&nonce).unwrap();
    let cipher = LessSafeKey::new(UnboundKey::new(&AES_256_GCM, key).unwrap());
    serde_json::from_slice(cipher.open_in_place(nonce, Aad::empty(), &mut content).unwrap()).unwrap()
}

#[tokio::test]
async fn files_are_written_in_the_documented_format() {
    let fixture = Fixture::new(None);
    let store = fixture.with_key();
    store.set(&key("/a:/pw"), &secret("p\"\u{1}é\n")).await.unwrap();
    let first = fixture.envelope();
    let names: Vec<&String> = first.as_object().unwrap().keys().collect();
    assert_eq!(names, ["ciphertext", "nonce", "version"]);
    assert_eq!(first["version"], 1);
    let bytes: Vec<u8> = (0..32).collect();
    assert_eq!(decrypt(&first, &bytes), json!({"secrets": {"a:/pw": "p\"\u{1}é\n"}}));
    store.set(&key("b"), &secret("")).await.unwrap();
    let second = fixture.envelope();
    assert_eq!(decrypt(&second, &bytes), json!({"secrets": {"a:/pw": "p\"\u{1}é\n", "b": ""}}));
    assert_ne!(first["nonce"], second["nonce"]);
    assert_eq!(fixture.mode(), 0o600);
    let mut names: Vec<_> = fs::read_dir(fixture.directory.path()).unwrap().collect();
    names.sort_by_key(|entry| entry.as_ref().unwrap().file_name());
    let names: Vec<_> = names.into_iter().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["secrets.json", "secrets.json.lock"]);
}

#[tokio::test]
async fn each_write_uses_a_new_salt_and_the_configured_parameters() {
    let fixture = Fixture::new(Some(WITH_PASSPHRASE));
    let store = fixture.with_passphrase(PASSPHRASE);
    store.set(&key("b"), &secret("v")).await.unwrap();
    let first = fixture.envelope();
    assert_eq!(
        (&first["kdf_time"], &first["kdf_memory"], &first["kdf_threads"]),
        (&1.into(), &8.into(), &1.into())
    );
    let kept = fixture.with_passphrase(PASSPHRASE);
    assert_eq!(value(&kept, "apps/billing:/dbPassword").await.as_deref(), Some("s3cr3t-1"));
    kept.set(&key("b"), &secret("v")).await.unwrap();
    let second = fixture.envelope();
    assert_ne!(first["salt"], second["salt"]);
    let salt = STANDARD.decode(second["salt"].as_str().unwrap()).unwrap();
    assert_eq!(salt.len(), 16);
    let derived = quick().derive(&secret(PASSPHRASE), &salt).unwrap();
    assert_eq!(decrypt(&second, derived.as_slice())["secrets"]["b"], "v");
}

#[tokio::test]
async fn a_missing_file_has_no_secrets_and_stays_missing() {
    let fixture = Fixture::new(None);
    let store = fixture.with_key();
    assert_eq!(value(&store, "a").await, None);
    assert_eq!(store.list().await.unwrap(), []);
    assert!(!fixture.file().exists());
}

#[tokio::test]
async fn a_change_creates_missing_directories_and_the_file() {
    let fixture = Fixture::new(None);
    let nested = fixture.directory.path().join("x/y/secrets.json");
    let key_material = KeyMaterial::key(&secret(KEY)).unwrap();
    let store = FileStore::new(FileStoreSettings {
        beneath: None,
        path: nested.clone(),
        key: key_material,
        kdf: quick(),
    });
    store.delete(&key("a")).await.unwrap();
    assert_eq!(store.list().await.unwrap(), []);
    assert_eq!(fs::metadata(nested.parent().unwrap()).unwrap().permissions().mode() & 0o777, 0o700);
    assert!(nested.exists());
}

#[tokio::test]
async fn secrets_are_set_replaced_and_deleted() {
    let fixture = Fixture::new(None);
    let store = fixture.with_key();
    store.init().await.unwrap();
    store.set(&key("b"), &secret("1")).await.unwrap();
    store.set(&key("a:/x"), &secret("2")).await.unwrap();
    store.set(&key("b"), &secret("3")).await.unwrap();
    assert_eq!(store.list().await.unwrap(), [key("a:/x"), key("b")]);
    assert_eq!(value(&fixture.with_key(), "b").await.as_deref(), Some("3"));
    store.delete(&key("b")).await.unwrap();
    store.delete(&key("b")).await.unwrap();
    assert_eq!(value(&store, "b").await, None);
    assert_eq!(format!("{store:?}"), format!("FileStore({})", fixture.file().display()));
}

#[tokio::test]
async fn changes_of_other_processes_are_seen() {
    let fixture = Fixture::new(None);
    let (ours, theirs) = (fixture.with_key(), fixture.with_key());
    for round in 0..20 {
        let text = (round % 10).to_string();
        theirs.set(&key("a"), &secret(&text)).await.unwrap();
        assert_eq!(value(&ours, "a").await, Some(text));
    }
    fs::remove_file(fixture.file()).unwrap();
    assert_eq!(value(&ours, "a").await, None);
}

#[tokio::test]
async fn many_reads_derive_the_key_once() {
    let fixture = Fixture::new(Some(WITH_PASSPHRASE));
    let store = fixture.with_passphrase(PASSPHRASE);
    let started = std::time::Instant::now();
    store.list().await.unwrap();
    let once = started.elapsed();
    let again = std::time::Instant::now();
    let reads = (0..1000).map(|_| async { value(&store, "apps/billing:/dbPassword").await });
    assert!(futures::future::join_all(reads).await.into_iter().all(|value| value.is_some()));
    // A second derivation would take as long as the first, and a thousand of them a thousand times as long.
    assert!(again.elapsed() < once * 100, "{:?} after {once:?}", again.elapsed());
    let known = store.0.known.lock();
    assert!(known.derived.is_some());
}

#[tokio::test]
async fn the_mode_of_a_file_that_others_may_read_is_corrected() {
    let fixture = Fixture::new(Some(WITH_KEY));
    fs::set_permissions(fixture.file(), fs::Permissions::from_mode(0o644)).unwrap();
    fixture.with_key().list().await.unwrap();
    assert_eq!(fixture.mode(), 0o600);
}

fn edited(content: &str, change: impl FnOnce(&mut serde_json::Map<String, serde_json::Value>)) -> String {
    let mut envelope: serde_json::Value = serde_json::from_str(content).unwrap();
    change(envelope.as_object_mut().unwrap());
    envelope.to_string()
}

#[rstest]
#[case::version(edited(WITH_KEY, |e| { e["version"] = 2.into(); }), Category::Validation, "has version 2")]
#[case::nonce(edited(WITH_KEY, |e| { e["nonce"] = "AAEC".into(); }), Category::Validation, "nonce is not 12 bytes")]
#[case::base64(edited(WITH_KEY, |e| { e["nonce"] = "!".into(); }), Category::Validation, "nonce is not padded")]
#[case::ciphertext(edited(WITH_KEY, |e| { e["ciphertext"] = "!".into(); }), Category::Validation, "ciphertext is not padded")]
#[case::damaged(edited(WITH_KEY, |e| { e["ciphertext"] = "PCClfqaXp2/+Y63wk4gIHfD5".into(); }), Category::Auth, "cannot decrypt")]
#[case::json("{".to_owned(), Category::Internal, "the envelope is not valid")]
#[case::empty(String::new(), Category::Internal, "line 1, column 0")]
#[case::no_object("[]".to_owned(), Category::Internal, "the envelope is not valid")]
#[tokio::test]
async fn broken_files(#[case] content: String, #[case] category: Category, #[case] message: &str) {
    let fixture = Fixture::new(Some(&content));
    let store = fixture.with_key();
    for error in [
        store.get(&key("a")).await.unwrap_err(),
        store.set(&key("a"), &secret("v")).await.unwrap_err(),
        store.init().await.unwrap_err(),
    ] {
        assert_eq!(error.category(), category, "{error}");
        assert!(error.to_string().contains(message), "{error}");
    }
    assert_eq!(fs::read_to_string(fixture.file()).unwrap(), content);
}

#[rstest]
#[case::no_salt(edited(WITH_PASSPHRASE, |e| { e.remove("salt"); }), "salt is missing")]
#[case::no_time(edited(WITH_PASSPHRASE, |e| { e.remove("kdf_time"); }), "kdf_time is missing")]
#[case::no_memory(edited(WITH_PASSPHRASE, |e| { e.remove("kdf_memory"); }), "kdf_memory is missing")]
#[case::no_threads(edited(WITH_PASSPHRASE, |e| { e.remove("kdf_threads"); }), "kdf_threads is missing")]
#[case::short_salt(edited(WITH_PASSPHRASE, |e| { e["salt"] = "AAEC".into(); }), "salt is shorter")]
#[case::salt(edited(WITH_PASSPHRASE, |e| { e["salt"] = "!".into(); }), "salt is not padded")]
#[case::memory(edited(WITH_PASSPHRASE, |e| { e["kdf_memory"] = 4_194_305.into(); }), "memory is 4194305")]
#[case::time(edited(WITH_PASSPHRASE, |e| { e["kdf_time"] = 101.into(); }), "time is 101")]
#[case::nothing_to_do(edited(WITH_PASSPHRASE, |e| { e["kdf_time"] = 0.into(); }), "time is 0")]
#[case::threads(edited(WITH_PASSPHRASE, |e| { e["kdf_threads"] = i64::MAX.into(); }), "it must be between 1 and 255")]
#[tokio::test]
async fn invalid_parameters_are_rejected(#[case] content: String, #[case] message: &str) {
    let fixture = Fixture::new(Some(&content));
    let error = fixture.with_passphrase(PASSPHRASE).get(&key("a")).await.unwrap_err();
    assert_eq!(error.category(), Category::Validation);
    assert!(error.to_string().contains(message), "{error}");
}

#[rstest]
#[case::other_fields(edited(WITH_KEY, |e| { e.insert("later".into(), json!({"x": 1})); }))]
#[tokio::test]
async fn unknown_fields_are_ignored(#[case] content: String) {
    let fixture = Fixture::new(Some(&content));
    assert!(value(&fixture.with_key(), "apps/billing:/dbPassword").await.is_some());
}

#[tokio::test]
async fn a_wrong_key_is_an_auth_error() {
    let fixture = Fixture::new(Some(WITH_KEY));
    let other = KeyMaterial::key(&secret(&KEY.replace("1f", "2f"))).unwrap();
    let error = fixture.store(other).list().await.unwrap_err();
    assert_eq!(error.category(), Category::Auth);
    let quick = Fixture::new(None);
    quick.with_passphrase("right").init().await.unwrap();
    let error = quick.with_passphrase("wrong").init().await.unwrap_err();
    assert_eq!(error.category(), Category::Auth);
}

/// Encrypts any text, as another program may have done.
fn sealed(plain: &str) -> String {
    let (bytes, nonce): (Vec<u8>, Vec<u8>) = ((0..32).collect(), (0..12).collect());
    let mut content = plain.as_bytes().to_vec();
    let cipher = LessSafeKey::new(UnboundKey::new(&AES_256_GCM, &bytes).unwrap());
    let once = Nonce::try_assume_unique_for_key(&nonce).unwrap();
    cipher.seal_in_place_append_tag(once, Aad::empty(), &mut content).unwrap();
    json!({"version": 1, "nonce": STANDARD.encode(nonce), "ciphertext": STANDARD.encode(content)}).to_string()
}

#[rstest]
#[case("{}")]
#[case(r#"{"secrets":null}"#)]
#[case(r#"{"secrets":{}}"#)]
#[case(r#"{"secrets":{"../x":"1"}}"#)]
#[tokio::test]
async fn contents_without_secrets(#[case] plain: &str) {
    let fixture = Fixture::new(Some(&sealed(plain)));
    assert_eq!(fixture.with_key().list().await.unwrap(), []);
}

#[rstest]
#[case("canary-value")]
#[case(r#"{"secrets":{"a":["canary-value"]}}"#)]
#[case(r#"{"secrets":"canary-value"}"#)]
#[tokio::test]
async fn errors_do_not_quote_invalid_content(#[case] plain: &str) {
    let fixture = Fixture::new(Some(&sealed(plain)));
    let error = fixture.with_key().list().await.unwrap_err();
    assert_eq!(error.category(), Category::Internal);
    assert!(!format!("{error} {error:?}").contains("canary"), "{error}");
}

#[tokio::test]
async fn many_entries_are_written_in_one_change() {
    let fixture = Fixture::new(None);
    let store = fixture.with_passphrase(PASSPHRASE);
    let entries = (0..300).map(|n| (key(&format!("a:{n:03}")), secret(&n.to_string()))).collect();
    store.set_all(entries).await.unwrap();
    assert_eq!(store.list().await.unwrap().len(), 300);
    assert_eq!(value(&store, "a:299").await.as_deref(), Some("299"));
}
