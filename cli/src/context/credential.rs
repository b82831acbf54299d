//! Users and passwords: stored in the catalogue, or asked for when they are first needed.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use declarest_core::digest::hex;
use declarest_core::error::categories;
use declarest_core::repository::{Mode, write_atomically};
use declarest_core::secrets::Secret;
use sha2::{Digest as _, Sha256};

use super::mode::protect;
use super::model::Credential;
use super::value::CredentialValue;
use crate::environment::Environment;
use crate::output::Messages;
use crate::terminal::{self, TerminalError};

const SESSION_VARIABLE: &str = "DECLAREST_PROMPT_AUTH_SESSION_ID";

/// A credential is not available.
#[derive(Debug, thiserror::Error)]
pub enum CredentialError {
    #[error("there is no credential \"{0}\" under credentials")]
    Unknown(String),
    #[error(
        "the credentials \"{0}\" and \"{1}\" prompt for their values and have the same environment variables; rename one"
    )]
    SharedVariables(String, String),
    #[error("credential \"{name}\": {part} is empty; set it, or the variable that it refers to")]
    Empty { name: String, part: &'static str },
    #[error("credential \"{name}\": {source}{}", alternative(.source, .variable))]
    Prompt {
        name: String,
        variable: String,
        #[source]
        source: TerminalError,
    },
    #[error("cannot {action} {}: {reason}", file.display())]
    Session { action: &'static str, file: PathBuf, reason: String },
}

/// Returns the alternative if a prompt is not possible.
fn alternative(source: &TerminalError, variable: &str) -> String {
    match source {
        TerminalError::None(_) | TerminalError::Refused(_) => format!("; set {variable}"),
        TerminalError::Interrupted | TerminalError::NotUtf8 | TerminalError::Read(_) => String::new(),
    }
}

categories!(CredentialError {
    .source: Prompt;
    Validation: Unknown, SharedVariables, Empty;
    Internal: Session;
});

/// A user and a password.
#[derive(Clone, Debug)]
pub struct Login {
    pub username: Secret,
    pub password: Secret,
}

/// Returns the prefix of the variables that replace prompts.
pub fn variable_stem(name: &str) -> String {
    let name = name.to_uppercase();
    let plain = |character: char| if character.is_alphanumeric() { character } else { '_' };
    format!("DECLAREST_CONTEXT_CREDENTIAL_{}", name.chars().map(plain).collect::<String>())
}

/// The credentials of a catalogue. Each value is prompted for once.
#[derive(Debug)]
pub struct Credentials {
    list: Vec<Credential>,
    environment: Environment,
    messages: Messages,
    session: Option<Session>,
    known: RefCell<BTreeMap<String, Secret>>,
}

impl Credentials {
    pub fn new(list: Vec<Credential>, environment: &Environment, messages: &Messages) -> Self {
        Self {
            list,
            session: Session::of(environment),
            environment: environment.clone(),
            messages: messages.clone(),
            known: RefCell::default(),
        }
    }

    /// Returns the user and password of a credential. Prompts for them if necessary.
    pub fn login(&self, name: &str) -> Result<Login, CredentialError> {
        let credential = self.list.iter().find(|credential| credential.name.0 == name);
        let credential = credential.ok_or_else(|| CredentialError::Unknown(name.to_owned()))?;
        let login = Login {
            username: self.part(name, "username", &credential.username)?,
            password: self.part(name, "password", &credential.password)?,
        };
        self.messages.hide([login.password.clone()]);
        Ok(login)
    }

    fn part(
        &self,
        name: &str,
        part: &'static str,
        value: &CredentialValue,
    ) -> Result<Secret, CredentialError> {
        let found = match value {
            CredentialValue::Literal(secret) => secret.0.clone(),
            CredentialValue::Prompt(prompt) => self.answer(name, part, prompt.persist_in_session)?,
        };
        let trimmed = found.expose().trim();
        if trimmed.is_empty() {
            return Err(CredentialError::Empty { name: name.to_owned(), part });
        }
        Ok(Secret::from(trimmed.to_owned()))
    }

    fn answer(&self, name: &str, part: &'static str, persist: bool) -> Result<Secret, CredentialError> {
        let stem = variable_stem(name);
        let is_prompt = |other: &Credential| {
            let value = if part == "username" { &other.username } else { &other.password };
            matches!(value, CredentialValue::Prompt(_))
        };
        let mut others = self.list.iter().filter(|other| other.name.0 != name && is_prompt(other));
        if let Some(other) = others.find(|other| variable_stem(&other.name.0) == stem) {
            return Err(CredentialError::SharedVariables(name.to_owned(), other.name.0.clone()));
        }
        let variable = format!("{stem}_{}", part.to_uppercase());
        if let Some(known) = self.known.borrow().get(&variable) {
            return Ok(known.clone());
        }
        let session = self.session.as_ref().filter(|_| persist);
        let answer = match session.map(|session| session.read(&variable)).transpose()?.flatten() {
            Some(remembered) => remembered,
            None => match self.environment.get(&variable) {
                Some(value) => Secret::from(value.to_owned()),
                None => self.ask(name, part, &variable, session)?,
            },
        };
        self.known.borrow_mut().insert(variable, answer.clone());
        Ok(answer)
    }

    fn ask(
        &self,
        name: &str,
        part: &'static str,
        variable: &str,
        session: Option<&Session>,
    ) -> Result<Secret, CredentialError> {
        let label = if part == "username" { "Username" } else { "Password" };
        let answer = terminal::ask(&format!("{label} of credential \"{name}\""), part == "password")
            .map_err(|source| CredentialError::Prompt {
                name: name.to_owned(),
                variable: variable.to_owned(),
                source,
            })?;
        if let Some(session) = session {
            session.remember(variable, &answer)?;
            self.messages.warn(&format!(
                "the {part} of credential \"{name}\" is kept for this session ({SESSION_VARIABLE}) and used \
                 again without asking"
            ));
        }
        Ok(answer)
    }
}

/// The prompted values of a session, in a file of the user's runtime directory.
#[derive(Clone, Debug)]
pub struct Session {
    file: PathBuf,
}

impl Session {
    /// Returns the session that the environment names, if there is one.
    pub fn of(environment: &Environment) -> Option<Self> {
        let (id, directory) = (environment.get(SESSION_VARIABLE)?, environment.get("XDG_RUNTIME_DIR")?);
        let digest = Sha256::digest(id.as_bytes());
        let hex = hex(&digest[..8]);
        let directory = Path::new(directory);
        let file = directory.join("declarest/prompt-auth").join(format!("prompt-auth-{hex}.json"));
        directory.is_dir().then_some(Self { file })
    }

    fn failed(&self, action: &'static str) -> impl Fn(&dyn std::fmt::Display) -> CredentialError {
        let file = self.file.clone();
        move |error| CredentialError::Session { action, file: file.clone(), reason: error.to_string() }
    }

    fn read_all(&self) -> Result<BTreeMap<String, String>, CredentialError> {
        match fs::read(&self.file) {
            Ok(bytes) => serde_json::from_slice(&bytes)
                .map_err(|_| self.failed("decode")(&"it is not a JSON object of strings; delete it")),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(BTreeMap::new()),
            Err(error) => Err(self.failed("read")(&error)),
        }
    }

    fn read(&self, variable: &str) -> Result<Option<Secret>, CredentialError> {
        Ok(self.read_all()?.remove(variable).map(Secret::from))
    }

    fn remember(&self, variable: &str, answer: &Secret) -> Result<(), CredentialError> {
        let mut answers = self.read_all()?;
        answers.insert(variable.to_owned(), answer.expose().to_owned());
        let failed = self.failed("write");
        let directory = self.file.parent().unwrap_or(&self.file);
        let created = fs::create_dir_all(directory).and_then(|()| protect(directory, 0o700));
        created.map_err(|error| failed(&error))?;
        let bytes = serde_json::to_vec(&answers).map_err(|error| failed(&error))?;
        write_atomically(&self.file, &bytes, Mode::Private).map_err(|error| failed(&error))
    }

    /// Removes the file of the session, and the files of earlier versions below the home directory. Returns the number
    /// of removed files.
    pub fn clean(environment: &Environment) -> Result<usize, CredentialError> {
        let mut files: Vec<PathBuf> = Self::of(environment).map(|session| session.file).into_iter().collect();
        let earlier = environment.home().map(|home| home.join(".declarest/sessions"));
        if let Some(listing) = earlier.and_then(|directory| fs::read_dir(directory).ok()) {
            let prompts = listing.filter_map(Result::ok).map(|entry| entry.path());
            files.extend(prompts.filter(|path| {
                path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("prompt-auth-"))
            }));
        }
        let mut removed = 0;
        for file in files {
            match fs::remove_file(&file) {
                Ok(()) => removed += 1,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => return Err(Self { file }.failed("remove")(&error)),
            }
        }
        Ok(removed)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use declarest_core::error::{Categorized, Category};
    use rstest::rstest;

    use super::super::value::{Prompt, SecretText, Text};
    use super::*;
    use crate::settings::Settings;

    fn credentials(password: CredentialValue, environment: &Environment) -> Credentials {
        let literal = |text: &str| CredentialValue::Literal(SecretText(Secret::from(text.to_owned())));
        let ops = Credential { name: Text("ops-1".to_owned()), username: literal(" alice "), password };
        Credentials::new(vec![ops], environment, &Messages::new(&Settings::default()))
    }

    #[rstest]
    #[case("ops", "DECLAREST_CONTEXT_CREDENTIAL_OPS")]
    #[case("ops-1.eu", "DECLAREST_CONTEXT_CREDENTIAL_OPS_1_EU")]
    fn variables(#[case] name: &str, #[case] expected: &str) {
        assert_eq!(variable_stem(name), expected);
    }

    #[test]
    fn a_variable_replaces_a_prompt() {
        let variables = [("DECLAREST_CONTEXT_CREDENTIAL_OPS_1_PASSWORD", " s3cret ")];
        let environment = Environment::from_iter(variables);
        let prompt = CredentialValue::Prompt(Prompt { prompt: true, persist_in_session: false });
        let login = credentials(prompt, &environment).login("ops-1").unwrap();
        assert_eq!((login.username.expose(), login.password.expose()), ("alice", "s3cret"));
    }

    #[test]
    fn the_session_takes_precedence_over_the_environment_if_enabled() {
        let directory = tempfile::tempdir().unwrap();
        let environment = Environment::from_iter([
            ("XDG_RUNTIME_DIR", directory.path().to_str().unwrap()),
            ("DECLAREST_PROMPT_AUTH_SESSION_ID", "bash:1"),
            ("DECLAREST_CONTEXT_CREDENTIAL_OPS_1_PASSWORD", "variable"),
        ]);
        let session = Session::of(&environment).unwrap();
        let name = session.file.file_name().unwrap().to_str().unwrap();
        assert_eq!(name, "prompt-auth-2eddf0a274b6f6ca.json");
        let remembered = Secret::from("remembered".to_owned());
        session.remember("DECLAREST_CONTEXT_CREDENTIAL_OPS_1_PASSWORD", &remembered).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&session.file), mode(session.file.parent().unwrap())), (0o600, 0o700));
        for (persist_in_session, expected) in [(true, "remembered"), (false, "variable")] {
            let prompt = CredentialValue::Prompt(Prompt { prompt: true, persist_in_session });
            let login = credentials(prompt, &environment).login("ops-1").unwrap();
            assert_eq!(login.password.expose(), expected);
        }
        assert_eq!(Session::clean(&environment).unwrap(), 1);
        assert_eq!(Session::clean(&environment).unwrap(), 0);
    }

    #[test]
    fn the_error_without_a_terminal_names_the_variable() {
        let prompt = CredentialValue::Prompt(Prompt { prompt: true, persist_in_session: true });
        let error = credentials(prompt, &Environment::default()).login("ops-1").unwrap_err();
        assert!(error.to_string().ends_with("; set DECLAREST_CONTEXT_CREDENTIAL_OPS_1_PASSWORD"), "{error}");
        assert_eq!(error.category(), Category::Validation);
    }

    /// The value of one would be sent to the server of the other.
    #[test]
    fn credentials_with_the_same_variables_are_not_used() {
        let environment = Environment::from_iter([("DECLAREST_CONTEXT_CREDENTIAL_OPS_1_PASSWORD", "x")]);
        let prompt = CredentialValue::Prompt(Prompt { prompt: true, persist_in_session: false });
        let mut credentials = credentials(prompt, &environment);
        credentials.list.push(Credential { name: Text("ops_1".to_owned()), ..credentials.list[0].clone() });
        let error = credentials.login("ops-1").unwrap_err();
        assert!(matches!(error, CredentialError::SharedVariables(..)), "{error}");
        // A value in the file reads no variable.
        credentials.list[1].password = CredentialValue::Literal(SecretText(Secret::from("y".to_owned())));
        assert_eq!(credentials.login("ops-1").unwrap().password.expose(), "x");
    }

    #[test]
    fn an_empty_value_is_an_error() {
        let blank = CredentialValue::Literal(SecretText(Secret::from("  ".to_owned())));
        let error = credentials(blank, &Environment::default()).login("ops-1").unwrap_err();
        assert!(matches!(error, CredentialError::Empty { part: "password", .. }));
    }
}
