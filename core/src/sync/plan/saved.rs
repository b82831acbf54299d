//! Plans in files: made now, reviewed, and carried out later exactly as they are, or not at all.
//!
//! A file shows what its plan does, without secrets, and holds a seal over everything that the plan is made
//! of: the server, the revision, what is done to each resource and why, how the server departs from what is
//! desired, and the requests to be sent. To carry it out, the run plans again and compares the seals.
//!
//! Secrets take part in the seal, so that a changed one is noticed. The seal is salted and stretched: who has
//! the file can test a guess of a secret only slowly, and nothing that was computed before helps.

use std::collections::BTreeMap;
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
        let count = |step| self.actions.iter().filter(|action| action.step == step).count();
        let [create, update, delete, skipped] =
            [Step::Create, Step::Update, Step::Delete, Step::Skip].map(count);
        Summary { create, update, delete, unchanged: self.unchanged + skipped }
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

/// A plan as a file shows it; `P` is what the file holds of the steps.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SavedPlan<P = Steps> {
    format: u32,
    /// What it is about.
    #[serde(flatten)]
    pub subject: Subject,
    #[serde(skip_deserializing)]
    summary: Summary,
    salt: String,
    hash: String,
    plan: P,
}

/// What a refusal to carry out a saved plan compares.
#[derive(Clone, Debug, Deserialize)]
pub struct Steps {
    revision: Option<String>,
    actions: Vec<SavedAction>,
}

#[derive(Clone, Debug, Deserialize)]
struct SavedAction {
    path: String,
    step: Step,
    reason: Reason,
}

/// Why a plan in a file is not made or not carried out.
#[derive(Debug, thiserror::Error)]
pub enum SavedPlanError {
    /// The file is not a plan that this version can read.
    #[error("{0}: {1}")]
    Unreadable(String, String),
    /// What the plan was made from is not so any more.
    #[error("the plan is stale: {0}; create a new one")]
    Moved(String),
    /// The plan lacks what a seal is made of.
    #[error("the plan cannot be saved: {0}")]
    Unsealable(&'static str),
}

impl Categorized for SavedPlanError {
    fn category(&self) -> Category {
        match self {
            Self::Unreadable(..) => Category::Validation,
            Self::Moved(_) => Category::Conflict,
            Self::Unsealable(_) => Category::Internal,
        }
    }
}

impl SavedPlan {
    /// The content of the file for `plan`, which must have been made with
    /// [`Options::sealable`](crate::sync::Options::sealable) and without failures.
    pub fn encode(subject: &Subject, plan: &Plan) -> Result<Vec<u8>, SavedPlanError> {
        let mut salt = [0; 16];
        let random = SystemRandom::new().fill(&mut salt);
        random.map_err(|_| SavedPlanError::Unsealable("the system gives no random numbers"))?;
        let salt = hex(&salt);
        let (hash, subject, summary) = (seal(subject, plan, &salt)?, subject.clone(), plan.summary());
        let file = SavedPlan { format: FORMAT, subject, summary, salt, hash, plan };
        let encoded = serde_json::to_vec_pretty(&file);
        let mut encoded = encoded.map_err(|_| SavedPlanError::Unsealable("it does not serialise"))?;
        encoded.push(b'\n');
        Ok(encoded)
    }

    /// Reads the content of `file`.
    pub fn decode(file: &str, content: &[u8]) -> Result<Self, SavedPlanError> {
        let unreadable = |reason| SavedPlanError::Unreadable(file.to_owned(), reason);
        let not_a_plan = |error| unreadable(format!("not a plan of \"declarest plan --out\": {error}"));
        let saved: Self = serde_json::from_slice(content).map_err(not_a_plan)?;
        let format = saved.format;
        if format == FORMAT {
            return Ok(saved);
        }
        Err(unreadable(format!("plan format {format} is not known to this version; make the plan again")))
    }

    /// Fails unless `plan` for `subject`, made just now with [`Options::sealable`](crate::sync::Options::sealable),
    /// is this one.
    pub fn check(&self, subject: &Subject, plan: &Plan) -> Result<(), SavedPlanError> {
        if self.subject == *subject && seal(subject, plan, &self.salt)? == self.hash {
            return Ok(());
        }
        Err(SavedPlanError::Moved(self.difference(subject, plan)))
    }

    fn difference(&self, subject: &Subject, plan: &Plan) -> String {
        if self.subject.server != subject.server {
            return format!("it was made for {}, and this is {}", self.subject.server, subject.server);
        }
        let revision = plan.revision.as_ref().map(ToString::to_string);
        if self.plan.revision != revision {
            let [before, now] =
                [&self.plan.revision, &revision].map(|commit| commit.as_deref().unwrap_or("no commit"));
            return format!("it was made from {before}, and the repository is at {now}");
        }
        let moved = self.moved(plan);
        if moved.is_empty() {
            return "the steps are the same, but what the server has or what is to be sent is not".to_owned();
        }
        let more = if moved.len() > NAMED { ", …" } else { "" };
        format!("{}{more}", moved[..moved.len().min(NAMED)].join(", "))
    }

    /// Resources to which something else would be done now, in path order.
    fn moved(&self, plan: &Plan) -> Vec<String> {
        let mut steps: BTreeMap<LogicalPath, (Option<&SavedAction>, Option<&Action>)> = BTreeMap::new();
        for was in &self.plan.actions {
            if let Ok(path) = LogicalPath::parse(&was.path) {
                steps.entry(path).or_default().0 = Some(was);
            }
        }
        for is in &plan.actions {
            steps.entry(is.path.clone()).or_default().1 = Some(is);
        }
        let moved = steps.into_iter().filter_map(|(path, steps)| match steps {
            (Some(was), Some(is)) if (was.step, was.reason) == (is.step, is.reason) => None,
            (Some(SavedAction { step: was, .. }), Some(Action { step: is, .. })) => {
                Some(format!("{path}: was to be {}, is now to be {}", done(*was), done(*is)))
            }
            (_, None) => Some(format!("{path} is not selected any more")),
            (None, Some(_)) => Some(format!("{path} is selected now")),
        });
        moved.collect()
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
        hash.update(content.ok_or(SavedPlanError::Unsealable("it was not made for that"))?);
    }
    let mut sealed = [0; 32];
    pbkdf2::derive(pbkdf2::PBKDF2_HMAC_SHA256, ROUNDS, salt.as_bytes(), &hash.finalize(), &mut sealed);
    Ok(hex(&sealed))
}
