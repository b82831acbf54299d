//! The key material and the key derivation of secret files.

use std::fmt;
use std::path::Path;

use argon2::{Algorithm, Argon2, Params, Version};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use parking_lot::Mutex;
use zeroize::Zeroizing;

use super::FileStoreError;
use crate::memory;
use crate::secrets::Secret;

/// The length of AES-256 keys in bytes.
const KEY_BYTES: usize = 32;

/// Upper limits for the parameters in a file. Higher ones would be a denial of service, not a real file.
const MOST_TIME: i64 = 100;
const MOST_MEMORY: i64 = 4 * 1024 * 1024;
const MOST_THREADS: i64 = 255;

/// The most memory of a derivation in a process with a [budget](memory::limit), in KiB.
const MOST_MEMORY_WITHIN_BUDGET: u32 = 128 * 1024;

/// Held during a derivation: the memory of several at once could exceed that of the process.
static DERIVING: Mutex<()> = Mutex::new(());

/// A key of AES-256. It is zeroed on drop.
pub(in crate::secrets) type Key = Zeroizing<[u8; KEY_BYTES]>;

/// The key of a secret file, or the passphrase that keys are derived from.
#[derive(Clone)]
pub struct KeyMaterial(pub(in crate::secrets) Material);

#[derive(Clone)]
pub(in crate::secrets) enum Material {
    Key(Key),
    Passphrase(Secret),
}

impl KeyMaterial {
    /// Parses a key. It is tried as 64 hexadecimal digits, padded base64, unpadded base64 and 32 plain bytes, in this
    /// order. White space around it is ignored.
    pub fn key(text: &Secret) -> Result<Self, FileStoreError> {
        Self::of_key(text.expose().as_bytes())
    }

    /// [`KeyMaterial::key`] from a file. Blocks.
    pub fn key_file(file: &Path) -> Result<Self, FileStoreError> {
        Self::of_key(&read("key file", file)?)
    }

    /// Returns a passphrase, without the white space around it.
    pub fn passphrase(text: &Secret) -> Result<Self, FileStoreError> {
        match text.expose().trim() {
            "" => Err(FileStoreError::EmptyKey("passphrase")),
            trimmed => Ok(Self(Material::Passphrase(Secret::from(trimmed.to_owned())))),
        }
    }

    /// [`KeyMaterial::passphrase`] from a file. Blocks.
    pub fn passphrase_file(file: &Path) -> Result<Self, FileStoreError> {
        const WHAT: &str = "passphrase file";
        let bytes = read(WHAT, file)?;
        let text = std::str::from_utf8(&bytes).map_err(|_| FileStoreError::KeyFile {
            what: WHAT,
            file: file.to_owned(),
            reason: "it is not UTF-8".to_owned(),
        })?;
        Self::passphrase(&Secret::from(text.to_owned()))
    }

    fn of_key(bytes: &[u8]) -> Result<Self, FileStoreError> {
        // Raw bytes may begin or end with the code of white space.
        let is_raw = bytes.len() == KEY_BYTES && std::str::from_utf8(bytes).is_err();
        let text = if is_raw { bytes } else { bytes.trim_ascii() };
        if text.is_empty() {
            return Err(FileStoreError::EmptyKey("key"));
        }
        let readings = [hexadecimal(text), STANDARD.decode(text).ok(), STANDARD_NO_PAD.decode(text).ok()];
        let readings = readings.map(|bytes| bytes.map(Zeroizing::new));
        let mut readings = readings.iter().flatten().map(|bytes| bytes.as_slice()).chain([text]);
        let key = readings.find_map(|bytes| <[u8; KEY_BYTES]>::try_from(bytes).ok());
        key.map(|key| Self(Material::Key(Zeroizing::new(key)))).ok_or(FileStoreError::KeyLength)
    }
}

impl fmt::Debug for KeyMaterial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("<redacted>")
    }
}

fn read(what: &'static str, file: &Path) -> Result<Zeroizing<Vec<u8>>, FileStoreError> {
    let read = std::fs::read(file).map(Zeroizing::new);
    read.map_err(|error| FileStoreError::KeyFile { what, file: file.to_owned(), reason: error.to_string() })
}

fn hexadecimal(text: &[u8]) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    if !text.len().is_multiple_of(2) {
        return None;
    }
    text.chunks_exact(2).map(|pair| Some(digit(pair[0])? * 16 + digit(pair[1])?)).collect()
}

/// The parameters of Argon2id (RFC 9106).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kdf {
    pub(super) time: u32,
    pub(super) memory: u32,
    pub(super) threads: u32,
}

impl Default for Kdf {
    fn default() -> Self {
        Self { time: 3, memory: 64 * 1024, threads: 4 }
    }
}

impl Kdf {
    /// Returns parameters for `time` passes over `memory` KiB in `threads` lanes. 0 selects the default: 3 passes
    /// over 65536 KiB in 4 lanes. The limits are 100 passes, 4 GiB and 255 lanes, with at least 8 KiB for each lane.
    pub fn new(time: i64, memory: i64, threads: i64) -> Result<Self, FileStoreError> {
        let default = Self::default();
        let or = |value: i64, default: u32| if value == 0 { i64::from(default) } else { value };
        Self::exactly(or(time, default.time), or(memory, default.memory), or(threads, default.threads))
    }

    /// [`Kdf::new`] without defaults.
    pub(super) fn exactly(time: i64, memory: i64, threads: i64) -> Result<Self, FileStoreError> {
        let within = |parameter, value: i64, least: i64, most: i64| match u32::try_from(value) {
            Ok(number) if (least..=most).contains(&value) => Ok(number),
            _ => {
                let rule = format!("between {least} and {most}");
                Err(FileStoreError::Kdf { parameter, value, rule })
            }
        };
        Ok(Self {
            time: within("time", time, 1, MOST_TIME)?,
            threads: within("threads", threads, 1, MOST_THREADS)?,
            memory: within("memory", memory, 8 * threads, MOST_MEMORY)?,
        })
    }

    /// Derives the key of a passphrase, one at a time in this process. This is slow and needs `memory` KiB.
    pub(super) fn derive(self, passphrase: &Secret, salt: &[u8]) -> Result<Key, String> {
        if memory::is_limited() && self.memory > MOST_MEMORY_WITHIN_BUDGET {
            let (asked, most) = (self.memory >> 10, MOST_MEMORY_WITHIN_BUDGET >> 10);
            return Err(format!(
                "its header asks for {asked} MiB of memory, more than {most} MiB; write the file with other parameters"
            ));
        }
        let _only = DERIVING.lock();
        self.derive_now(passphrase, salt).map_err(|error| error.to_string())
    }

    fn derive_now(self, passphrase: &Secret, salt: &[u8]) -> Result<Key, argon2::Error> {
        let params = Params::new(self.memory, self.time, self.threads, Some(KEY_BYTES))?;
        let mut key = Zeroizing::new([0; KEY_BYTES]);
        Argon2::new(Algorithm::Argon2id, Version::V0x13, params).hash_password_into(
            passphrase.expose().as_bytes(),
            salt,
            key.as_mut_slice(),
        )?;
        Ok(key)
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::error::Categorized as _;
    use crate::error::Category;

    const COUNTING: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";

    #[rstest]
    #[case::hexadecimal(COUNTING, 1)]
    #[case::upper_case("000102030405060708090A0B0C0D0E0F101112131415161718191A1B1C1D1E1F", 1)]
    #[case::padded("AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=", 1)]
    #[case::unpadded("AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8", 1)]
    #[case::trimmed(" AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n", 1)]
    #[case::plain("!123456789abcdef0123456789abcdef", b'1')]
    // 32 hexadecimal digits would be 16 bytes, and as base64 24, so they are used as plain bytes.
    #[case::plain_hexadecimal("0123456789abcdef0123456789abcdef", b'1')]
    fn keys(#[case] text: &str, #[case] second: u8) {
        let KeyMaterial(Material::Key(key)) = KeyMaterial::key(&Secret::from(text.to_owned())).unwrap()
        else {
            panic!("a passphrase");
        };
        assert_eq!(key[1], second);
    }

    #[test]
    fn raw_bytes_may_look_like_white_space() {
        let mut raw = [0x80; KEY_BYTES];
        (raw[0], raw[KEY_BYTES - 1]) = (b' ', b'\n');
        let KeyMaterial(Material::Key(key)) = KeyMaterial::of_key(&raw).unwrap() else { panic!("not a key") };
        assert_eq!(*key, raw);
    }

    #[rstest]
    #[case("", "the key of the secret file is empty")]
    #[case(" \n", "the key of the secret file is empty")]
    #[case("short", "the key of the secret file must be 32 bytes")]
    #[case(&COUNTING[2..], "the key of the secret file must be 32 bytes")]
    fn bad_keys(#[case] text: &str, #[case] message: &str) {
        let error = KeyMaterial::key(&Secret::from(text.to_owned())).unwrap_err();
        assert_eq!(error.category(), Category::Validation);
        assert!(error.to_string().starts_with(message), "{error}");
    }

    #[test]
    fn files() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("key");
        let bytes = [200; 32];
        std::fs::write(&file, bytes).unwrap();
        assert!(matches!(KeyMaterial::key_file(&file), Ok(KeyMaterial(Material::Key(key))) if *key == bytes));
        let error = KeyMaterial::passphrase_file(&file).unwrap_err().to_string();
        assert!(error.ends_with("key: it is not UTF-8"), "{error}");
        std::fs::write(&file, " blue kettle \n").unwrap();
        let material = KeyMaterial::passphrase_file(&file).unwrap();
        assert_eq!(format!("{material:?}"), "<redacted>");
        assert!(
            matches!(material, KeyMaterial(Material::Passphrase(text)) if text.expose() == "blue kettle")
        );
        for read in [KeyMaterial::key_file, KeyMaterial::passphrase_file] {
            let error = read(&directory.path().join("none")).unwrap_err();
            assert_eq!(error.category(), Category::Validation);
        }
    }

    #[rstest]
    #[case(0, 0, 0, Some((3, 65536, 4)))]
    #[case(1, 8, 1, Some((1, 8, 1)))]
    #[case(100, 4_194_304, 255, Some((100, 4_194_304, 255)))]
    #[case(-1, 0, 0, None)]
    #[case(0, -1, 0, None)]
    #[case(0, 0, -1, None)]
    #[case(101, 0, 0, None)]
    #[case(0, 4_194_305, 0, None)]
    #[case(0, 0, 256, None)]
    #[case(0, 31, 4, None)]
    #[case(0, i64::MAX, 0, None)]
    fn parameters(
        #[case] time: i64,
        #[case] memory: i64,
        #[case] threads: i64,
        #[case] expected: Option<(u32, u32, u32)>,
    ) {
        let kdf = Kdf::new(time, memory, threads);
        assert!(kdf.as_ref().err().is_none_or(|error| error.category() == Category::Validation));
        assert_eq!(kdf.ok().map(|kdf| (kdf.time, kdf.memory, kdf.threads)), expected);
    }
}
