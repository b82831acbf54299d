//! Detects the names of secrets.

/// Words that name a secret.
const CORE: [&str; 6] = ["password", "passwd", "pwd", "passphrase", "secret", "token"];

/// Pairs of words that name a secret.
const PAIRS: [(&str, &str); 7] = [
    ("api", "key"),
    ("client", "secret"),
    ("access", "key"),
    ("access", "token"),
    ("private", "key"),
    ("bearer", "token"),
    ("refresh", "token"),
];

/// The same pairs written as one word.
const JOINED: [&str; 7] =
    ["apikey", "clientsecret", "accesskey", "accesstoken", "privatekey", "bearertoken", "refreshtoken"];

/// The first words of pairs.
const PREFIX: [&str; 6] = ["api", "client", "access", "private", "bearer", "refresh"];

/// Words that make a name describe a property of a secret, such as `passwordPolicy`.
const QUALIFIERS: [&str; 57] = [
    "mode", "type", "policy", "method", "strategy", "preference", "delivery", "conveyance", "endpoint",
    "url", "uri", "path", "lifetime", "lifespan", "ttl", "timeout", "duration", "expiry", "expires",
    "expiration", "validity", "issuer", "name", "id", "length", "size", "count", "min", "max", "enabled",
    "enable", "required", "supported", "allowed", "algorithm", "alg", "version", "scheme", "file", "ref",
    "reference", "claim", "claims", "header", "response", "exchange", "creation", "created", "time",
    "timestamp", "requested", "request", "use", "lower", "upper", "case", "format",
];

/// Whether a member of this name probably holds a secret.
pub fn is_secret_name(name: &str) -> bool {
    let words = words(name);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    holds_pair(&words) || JOINED.contains(&words.concat().as_str()) || holds_core(&words)
}

/// Whether two adjacent words are a pair without a qualifier beside them.
fn holds_pair(words: &[&str]) -> bool {
    words.windows(2).enumerate().any(|(at, pair)| {
        let before = at.checked_sub(1).and_then(|before| words.get(before));
        let beside = [before, words.get(at + 2)];
        PAIRS.contains(&(pair[0], pair[1])) && !beside.into_iter().flatten().any(is_qualifier)
    })
}

fn holds_core(words: &[&str]) -> bool {
    (0..words.len()).any(|at| CORE.contains(&words[at]) && is_secret_core(words, at))
}

/// Whether the word at `at`, one of [`CORE`], makes the name that of a secret.
fn is_secret_core(words: &[&str], at: usize) -> bool {
    let before = at.checked_sub(1).map(|before| words[before]);
    if before.is_some_and(|word| is_qualifier(&word)) {
        return false;
    }
    let Some(next) = words.get(at + 1) else {
        let qualified = at >= 2 && is_qualifier(&words[at - 2]);
        return !(qualified && before.is_some_and(|word| CORE.contains(&word) || PREFIX.contains(&word)));
    };
    if is_qualifier(next) {
        return false;
    }
    let decisive = words[at + 2..].iter().find(|word| CORE.contains(word) || is_qualifier(word));
    decisive.is_none_or(|word| CORE.contains(word))
}

fn is_qualifier(word: &&str) -> bool {
    QUALIFIERS.contains(word)
}

/// Returns the words of a name in lower case. It is split at all characters except letters and digits, before a
/// capital after a small letter or digit, and before the last of several capitals if a small letter follows.
fn words(name: &str) -> Vec<String> {
    let characters: Vec<char> = name.chars().collect();
    let mut words = vec![String::new()];
    for (at, &character) in characters.iter().enumerate() {
        if !character.is_alphanumeric() {
            words.push(String::new());
            continue;
        }
        let before = at.checked_sub(1).map(|before| characters[before]);
        let after = characters.get(at + 1);
        let starts = character.is_uppercase()
            && before.is_some_and(|before| {
                before.is_lowercase()
                    || before.is_numeric()
                    || (before.is_uppercase() && after.is_some_and(|after| after.is_lowercase()))
            });
        if starts {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut() {
            word.extend(character.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("APIToken", &["api", "token"])]
    #[case("x-api-key", &["x", "api", "key"])]
    #[case("sha256Sum", &["sha256", "sum"])]
    #[case("file.password", &["file", "password"])]
    #[case("tokenTTL", &["token", "ttl"])]
    #[case("__a__b", &["a", "b"])]
    #[case("MotDePasseÉlevé", &["mot", "de", "passe", "élevé"])]
    #[case("", &[])]
    fn names_split_into_words(#[case] name: &str, #[case] expected: &[&str]) {
        assert_eq!(words(name), expected);
    }

    #[rstest]
    fn secret_names(
        #[values(
            "dbPassword",
            "webhookSecret",
            "authToken",
            "x-api-key",
            "passwordHash",
            "tokenValue",
            "privateKeyPem",
            "secretAccessKey",
            "sessionTokenSecret",
            "clientSecretPost",
            "oauthClientSecretBasicMode",
            "apiKey",
            "APIToken",
            "apikey",
            "retryToken",
            "password",
            "PWD"
        )]
        name: &str,
    ) {
        assert!(is_secret_name(name));
    }

    #[rstest]
    fn other_names(
        #[values(
            "passwords", "credentials", "signingKey", "jwt", "secretRef", "tokenTTL", "passphraseFile",
            "accessKeyId", "idToken", "usePassword", "file.password", "nameTokenSecret",
            "refreshTokenMaxReuse", "tokenSigningPolicy", "name", ""
        )]
        name: &str,
    ) {
        assert!(!is_secret_name(name));
    }

    /// A second copy of the list, so that accidental changes fail.
    const AGREED: &str = "mode type policy method strategy preference delivery conveyance endpoint url uri path \
        lifetime lifespan ttl timeout duration expiry expires expiration validity issuer name id length size count \
        min max enabled enable required supported allowed algorithm alg version scheme file ref reference claim \
        claims header response exchange creation created time timestamp requested request use lower upper case format";

    #[test]
    fn every_qualifier_applies_on_either_side() {
        let agreed: Vec<&str> = AGREED.split_whitespace().collect();
        assert_eq!(agreed, QUALIFIERS);
        for word in agreed {
            for name in ["{}_password", "password_{}", "{}_api_key", "api_key_{}", "password_x_{}"] {
                let name = name.replace("{}", word);
                assert!(!is_secret_name(&name), "{name}");
            }
            // A word for a secret after the qualifier, or after another word, counts.
            for name in ["password_x_secret_{}", "{}_x_password", "api_key_x_{}"] {
                let name = name.replace("{}", word);
                assert!(is_secret_name(&name), "{name}");
            }
        }
    }

    #[rstest]
    fn every_word_for_a_secret_is_detected(
        #[values("password", "passwd", "pwd", "passphrase", "secret", "token")] word: &str,
    ) {
        for name in [word.to_owned(), word.to_uppercase(), format!("my-{word}"), format!("{word}_of_mine")] {
            assert!(is_secret_name(&name), "{name}");
        }
        // Plurals and longer words that contain it do not count.
        for name in [format!("{word}s"), format!("x{word}")] {
            assert!(!is_secret_name(&name), "{name}");
        }
        for before in ["secret", "api", "client", "access", "private", "bearer", "refresh"] {
            assert!(!is_secret_name(&format!("id_{before}_{word}")), "{before} {word}");
            assert!(is_secret_name(&format!("id_x_{before}_{word}")), "{before} {word}");
        }
    }

    #[rstest]
    #[case("api", "key")]
    #[case("client", "secret")]
    #[case("access", "key")]
    #[case("access", "token")]
    #[case("private", "key")]
    #[case("bearer", "token")]
    #[case("refresh", "token")]
    fn every_pair_is_detected(#[case] first: &str, #[case] second: &str) {
        for name in [
            format!("{first}_{second}"),
            format!("{first}{second}"),
            format!("x-{first}-{second}"),
            format!("{first} {second} x"),
        ] {
            assert!(is_secret_name(&name), "{name}");
        }
        let apart = format!("{first}_x_{second}");
        assert_eq!(is_secret_name(&apart), CORE.contains(&second), "{apart}");
    }

    proptest! {
        #[test]
        fn never_panics(name in any::<String>()) {
            let _ = is_secret_name(&name);
        }
    }
}
