//! Plans in files: made now, reviewed, and carried out later exactly as they are, or not at all.
//!
//! A file shows what its plan does, without secrets, and holds a seal over everything that the plan is made
//! of: the server, the revision, what is done to each resource and why, how the server departs from what is
//! desired, and the requests to be sent. To carry it out, the run plans again and compares the seals.
//!
//! Secrets take part in the seal, so that a changed one is noticed. The seal is salted and stretched: who has
//! the file can test a guess of a secret only slowly, and nothing that was computed before helps.

use std::num::NonZeroU32;

use http::header::IF_MATCH;
use ring::pbkdf2;
use ring::rand::{SecureRandom as _, SystemRandom};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::Plan;
use crate::digest::hex;
use crate::error::{Categorized, Category};
use crate::path::LogicalPath;
use crate::sync::model::{Action, Reason, Step};

/// The version of the file format.
const FORMAT: u32 = 1;
/// Each guess at a secret costs this many rounds.
const ROUNDS: NonZeroU32 = NonZeroU32::MIN.saturating_add(99_999);
/// How many resources a refusal names.
const NAMED: usize = 3;

/// What becomes of how many resources.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// Resources to create.
    pub create: usize,
    /// Resources to update.
    pub update: usize,
    /// Resources to delete.
    pub delete: usize,
    /// Resources that stay as they are.
    pub unchanged: usize,
}

impl std::fmt::Display for Summary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { create, update, delete, unchanged } = self;
        write!(f, "Plan: {create} to create, {update} to update, {delete} to delete, {unchanged} unchanged.")
    }
}

impl Plan {
    /// How many resources it creates, updates, deletes and leaves alone.
    pub fn summary(&self) -> Summary {
        let mut summary = Summary { unchanged: self.unchanged, ..Summary::default() };
        for action in &self.actions {
            *match action.step {
                Step::Create => &mut summary.create,
                Step::Update => &mut summary.update,
                Step::Delete => &mut summary.delete,
                Step::Skip => &mut summary.unchanged,
            } += 1;
        }
        summary
    }

    /// Whether it changes anything.
    pub fn is_empty(&self) -> bool {
        self.actions.iter().all(|action| action.step == Step::Skip)
    }
}

/// What a plan in a file is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Subject {
    /// The base URL of the managed server.
    pub server: String,
    /// The path that was planned for.
    pub path: String,
    /// Whether everything below the path belongs to it.
    pub recursive: bool,
}

/// A plan as a file shows it.
#[derive(Clone, Debug, Deserialize)]
pub struct SavedPlan {
    format: u32,
    /// What it is about.
    #[serde(flatten)]
    pub subject: Subject,
    salt: String,
    hash: String,
    plan: Recorded,
}

#[derive(Clone, Debug, Deserialize)]
struct Recorded {
    revision: Option<String>,
    actions: Vec<RecordedAction>,
}

#[derive(Clone, Debug, Deserialize)]
struct RecordedAction {
    path: String,
    step: Step,
    reason: Reason,
}

#[derive(Serialize)]
struct File<'a> {
    format: u32,
    #[serde(flatten)]
    subject: &'a Subject,
    summary: Summary,
    salt: String,
    hash: String,
    plan: &'a Plan,
}

/// Why a plan in a file is not made or not carried out.
#[derive(Debug, thiserror::Error)]
pub enum SavedPlanError {
    /// The file is not a plan.
    #[error("{file}: not a plan of \"declarest plan --out\": {reason}")]
    Unreadable {
        /// The file.
        file: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The file has a format that this version does not know.
    #[error("{file}: plan format {format} is not known to this version; make the plan again")]
    Format {
        /// The file.
        file: String,
        /// The format it says it has.
        format: u32,
    },
    /// What the plan was made from is not so any more.
    #[error("the plan is stale: {what}; create a new one")]
    Moved {
        /// What is different now.
        what: String,
    },
    /// The plan lacks what a seal is made of.
    #[error("the plan cannot be saved: {reason}")]
    Unsealable {
        /// What is missing.
        reason: &'static str,
    },
}

impl Categorized for SavedPlanError {
    fn category(&self) -> Category {
        match self {
            Self::Unreadable { .. } | Self::Format { .. } => Category::Validation,
            Self::Moved { .. } => Category::Conflict,
            Self::Unsealable { .. } => Category::Internal,
        }
    }
}

impl SavedPlan {
    /// The content of the file for `plan`, which must have been made with
    /// [`Options::sealable`](crate::sync::Options::sealable) and without failures.
    pub fn encode(subject: &Subject, plan: &Plan) -> Result<Vec<u8>, SavedPlanError> {
        let mut salt = [0; 16];
        let random = SystemRandom::new().fill(&mut salt);
        random.map_err(|_| SavedPlanError::Unsealable { reason: "the system gives no random numbers" })?;
        let salt = hex(&salt);
        let hash = seal(subject, plan, &salt)?;
        let file = File { format: FORMAT, subject, summary: plan.summary(), salt, hash, plan };
        let mut encoded = serde_json::to_vec_pretty(&file)
            .map_err(|_| SavedPlanError::Unsealable { reason: "it does not serialise" })?;
        encoded.push(b'\n');
        Ok(encoded)
    }

    /// Reads the content of `file`.
    pub fn decode(file: &str, content: &[u8]) -> Result<Self, SavedPlanError> {
        let unreadable = |error: serde_json::Error| SavedPlanError::Unreadable {
            file: file.to_owned(),
            reason: error.to_string(),
        };
        let saved: Self = serde_json::from_slice(content).map_err(unreadable)?;
        if saved.format != FORMAT {
            return Err(SavedPlanError::Format { file: file.to_owned(), format: saved.format });
        }
        Ok(saved)
    }

    /// Fails unless `plan` for `subject`, made just now with [`Options::sealable`](crate::sync::Options::sealable),
    /// is this one.
    pub fn check(&self, subject: &Subject, plan: &Plan) -> Result<(), SavedPlanError> {
        if self.subject == *subject && seal(subject, plan, &self.salt)? == self.hash {
            return Ok(());
        }
        Err(SavedPlanError::Moved { what: self.difference(subject, plan) })
    }

    fn difference(&self, subject: &Subject, plan: &Plan) -> String {
        if self.subject.server != subject.server {
            return format!("it was made for {}, and this is {}", self.subject.server, subject.server);
        }
        let revision = plan.revision.as_ref().map(ToString::to_string);
        if self.plan.revision != revision {
            let shown =
                |revision: &Option<String>| revision.clone().unwrap_or_else(|| "no commit".to_owned());
            return format!(
                "it was made from {}, and the repository is at {}",
                shown(&self.plan.revision),
                shown(&revision)
            );
        }
        let moved = self.moved(plan);
        if moved.is_empty() {
            return "the steps are the same, but what the server has or what is to be sent is not".to_owned();
        }
        let more = if moved.len() > NAMED { ", …" } else { "" };
        format!("{}{more}", moved[..moved.len().min(NAMED)].join(", "))
    }

    /// Resources to which something else would be done now. Both sides are sorted by path.
    fn moved(&self, plan: &Plan) -> Vec<String> {
        let mut now = plan.actions.iter().peekable();
        let mut moved = Vec::new();
        let mut before = self
            .plan
            .actions
            .iter()
            .filter_map(|action| Some((LogicalPath::parse(&action.path).ok()?, action)))
            .peekable();
        loop {
            let order = match (before.peek(), now.peek()) {
                (None, None) => return moved,
                (Some(_), None) => std::cmp::Ordering::Less,
                (None, Some(_)) => std::cmp::Ordering::Greater,
                (Some((path, _)), Some(action)) => path.cmp(&action.path),
            };
            let was = if order.is_le() { before.next() } else { None };
            let is = if order.is_ge() { now.next() } else { None };
            match (was, is) {
                (Some((path, was)), Some(is)) if (was.step, was.reason) != (is.step, is.reason) => {
                    moved.push(format!(
                        "{path}: was to be {}, is now to be {}",
                        done(was.step),
                        done(is.step)
                    ));
                }
                (Some((path, _)), None) => moved.push(format!("{path} is not selected any more")),
                (None, Some(is)) => moved.push(format!("{} is selected now", is.path)),
                _ => {}
            }
        }
    }
}

const fn done(step: Step) -> &'static str {
    match step {
        Step::Create => "created",
        Step::Update => "updated",
        Step::Delete => "deleted",
        Step::Skip => "left alone",
    }
}

/// What an action does and rests on, secrets included; never to be shown as it is.
pub fn content(action: &Action) -> [u8; 32] {
    let mut hash = Sha256::new();
    let mut add = |part: &[u8]| {
        hash.update(part.len().to_le_bytes());
        hash.update(part);
    };
    add(action.path.as_str().as_bytes());
    add(format!("{:?} {:?}", action.step, action.reason).as_bytes());
    add(&serde_json::to_vec(&action.differences).unwrap_or_default());
    if let Some(call) = action.call() {
        let request = &call.request;
        add(format!("{} {} {:?} {:?}", request.method, request.path, request.query, request.accept)
            .as_bytes());
        // A version that was asked for on account of a read says no more than the differences do.
        let stated = request.headers.iter().filter(|(name, _)| call.guarded.is_none() || *name != IF_MATCH);
        for (name, value) in stated {
            add(name.as_str().as_bytes());
            add(value.as_bytes());
        }
        if let Some(body) = &request.body {
            add(body.media_type.as_bytes());
            add(&body.bytes);
        }
    }
    hash.finalize().into()
}

fn seal(subject: &Subject, plan: &Plan, salt: &str) -> Result<String, SavedPlanError> {
    let mut hash = Sha256::new();
    let revision = plan.revision.as_ref().map(ToString::to_string);
    hash.update(format!("{subject:?} {revision:?} {}", plan.prune_refused.is_some()));
    for action in &plan.actions {
        let content = action.content.as_deref();
        hash.update(content.ok_or(SavedPlanError::Unsealable { reason: "it was not made for that" })?);
    }
    let mut sealed = [0; 32];
    pbkdf2::derive(pbkdf2::PBKDF2_HMAC_SHA256, ROUNDS, salt.as_bytes(), &hash.finalize(), &mut sealed);
    Ok(hex(&sealed))
}
