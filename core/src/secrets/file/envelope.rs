//! The format of a secret file.

use std::collections::BTreeMap;
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::rand::{SecureRandom, SystemRandom};
use serde::de::Deserializer;
use serde::ser::{SerializeMap, Serializer};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use super::FileStoreError;
use super::key::{Kdf, Key};
use crate::secrets::Secret;

const VERSION: i64 = 1;
const SALT_BYTES: usize = 16;

/// The largest number of bytes that JSON writes for one byte.
const ESCAPED: usize = 6;

/// The content of a secret file: values by stored key.
pub(super) type Secrets = BTreeMap<String, Secret>;

/// The envelope, whose ciphertext is `base64(AES-256-GCM(key, nonce, plaintext) ‖ tag)`. The order of the fields is
/// that of existing files.
#[derive(Serialize, Deserialize)]
pub(super) struct Envelope {
    version: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    salt: Option<String>,
    nonce: String,
    ciphertext: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    kdf_time: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    kdf_memory: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    kdf_threads: Option<i64>,
}

/// The parameters that derive a key from a passphrase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Derivation {
    pub salt: Vec<u8>,
    pub kdf: Kdf,
}

impl Derivation {
    /// Returns parameters with a new random salt.
    pub fn fresh(kdf: Kdf, file: &Path) -> Result<Self, FileStoreError> {
        Ok(Self { salt: random::<SALT_BYTES>(file)?.to_vec(), kdf })
    }
}

impl Envelope {
    /// Parses the file; an error for unsupported versions.
    pub fn parse(file: &Path, bytes: &[u8]) -> Result<Self, FileStoreError> {
        let envelope: Self =
            serde_json::from_slice(bytes).map_err(|error| malformed(file, "the envelope", &error))?;
        match envelope.version {
            VERSION => Ok(envelope),
            version => Err(FileStoreError::Version { file: file.to_owned(), version }),
        }
    }

    /// Returns the bytes of the file.
    pub fn encode(&self, file: &Path) -> Result<Vec<u8>, FileStoreError> {
        let mut bytes = serde_json::to_vec(self).map_err(|error| malformed(file, "the envelope", &error))?;
        bytes.push(b'\n');
        Ok(bytes)
    }

    /// Returns the parameters that derive the key from the passphrase.
    pub fn derivation(&self, file: &Path) -> Result<Derivation, FileStoreError> {
        let missing =
            |field| bad_field(file, field, "is missing, so the file cannot be opened with a passphrase");
        let salt = self.salt.as_ref().ok_or_else(|| missing("salt"))?;
        let salt = STANDARD.decode(salt).map_err(|_| not_base64(file, "salt"))?;
        if salt.len() < argon2::MIN_SALT_LEN {
            return Err(bad_field(file, "salt", "is shorter than 8 bytes"));
        }
        let time = self.kdf_time.ok_or_else(|| missing("kdf_time"))?;
        let memory = self.kdf_memory.ok_or_else(|| missing("kdf_memory"))?;
        let threads = self.kdf_threads.ok_or_else(|| missing("kdf_threads"))?;
        let kdf = Kdf::exactly(time, memory, threads);
        Ok(Derivation { salt, kdf: kdf.map_err(|error| bad_field(file, "kdf", &error.to_string()))? })
    }

    /// Decrypts the content.
    pub fn open(&self, file: &Path, key: &Key) -> Result<Secrets, FileStoreError> {
        let nonce = STANDARD.decode(&self.nonce).map_err(|_| not_base64(file, "nonce"))?;
        let nonce = Nonce::try_assume_unique_for_key(&nonce)
            .map_err(|_| bad_field(file, "nonce", "is not 12 bytes"))?;
        let ciphertext = STANDARD.decode(&self.ciphertext).map_err(|_| not_base64(file, "ciphertext"))?;
        let mut content = Zeroizing::new(ciphertext);
        let refused = |_| FileStoreError::Decrypt(file.to_owned());
        let cipher = LessSafeKey::new(UnboundKey::new(&AES_256_GCM, key.as_slice()).map_err(refused)?);
        let plain = cipher.open_in_place(nonce, Aad::empty(), content.as_mut_slice()).map_err(refused)?;
        let plain: Plaintext =
            serde_json::from_slice(plain).map_err(|error| malformed(file, "the content", &error))?;
        Ok(plain.secrets.unwrap_or_default().into_iter().map(|(key, value)| (key, value.0)).collect())
    }

    /// Encrypts `secrets` with a new random nonce. `derivation` is stored if `key` was derived from a passphrase.
    pub fn seal(
        file: &Path,
        secrets: &Secrets,
        key: &Key,
        derivation: Option<&Derivation>,
    ) -> Result<Self, FileStoreError> {
        let mut content = plaintext(file, secrets)?;
        let nonce = random::<NONCE_LEN>(file)?;
        let refused = |_| FileStoreError::Encrypt(file.to_owned());
        let cipher = LessSafeKey::new(UnboundKey::new(&AES_256_GCM, key.as_slice()).map_err(refused)?);
        cipher
            .seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::empty(), &mut *content)
            .map_err(refused)?;
        let number = |of: fn(&Kdf) -> u32| derivation.map(|derivation| i64::from(of(&derivation.kdf)));
        Ok(Self {
            version: VERSION,
            salt: derivation.map(|derivation| STANDARD.encode(&derivation.salt)),
            nonce: STANDARD.encode(nonce),
            ciphertext: STANDARD.encode(&*content),
            kdf_time: number(|kdf| kdf.time),
            kdf_memory: number(|kdf| kdf.memory),
            kdf_threads: number(|kdf| kdf.threads),
        })
    }
}

/// The decrypted content. The secrets of an empty store may be null.
#[derive(Deserialize)]
struct Plaintext {
    #[serde(default)]
    secrets: Option<BTreeMap<String, Value>>,
}

struct Value(Secret);

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(|text| Self(Secret::from(text)))
    }
}

/// Returns the secrets as JSON. The buffer is never reallocated, so that no copy stays in memory.
fn plaintext(file: &Path, secrets: &Secrets) -> Result<Zeroizing<Vec<u8>>, FileStoreError> {
    struct Exposed<'s>(&'s Secrets);

    impl Serialize for Exposed<'_> {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            let mut map = serializer.serialize_map(Some(self.0.len()))?;
            for (key, value) in self.0 {
                map.serialize_entry(key, value.expose())?;
            }
            map.end()
        }
    }

    let lengths = secrets.iter().map(|(key, value)| ESCAPED * (key.len() + value.expose().len()) + 6);
    let mut content = Zeroizing::new(Vec::with_capacity(lengths.sum::<usize>() + 64));
    let all = BTreeMap::from([("secrets", Exposed(secrets))]);
    serde_json::to_writer(&mut *content, &all).map_err(|error| malformed(file, "the content", &error))?;
    Ok(content)
}

fn random<const N: usize>(file: &Path) -> Result<[u8; N], FileStoreError> {
    let mut bytes = [0; N];
    SystemRandom::new().fill(&mut bytes).map_err(|_| FileStoreError::Encrypt(file.to_owned()))?;
    Ok(bytes)
}

fn not_base64(file: &Path, field: &'static str) -> FileStoreError {
    bad_field(file, field, "is not padded standard base64")
}

fn bad_field(file: &Path, field: &'static str, reason: &str) -> FileStoreError {
    FileStoreError::Field { file: file.to_owned(), field, reason: reason.to_owned() }
}

/// Returns an error with the place only, because serde's message may quote a value.
fn malformed(file: &Path, part: &'static str, error: &serde_json::Error) -> FileStoreError {
    FileStoreError::Malformed { file: file.to_owned(), part, line: error.line(), column: error.column() }
}
