//! Plans in files, which are reviewed and then executed exactly as they are, or not at all.
//!
//! A file shows the actions of its plan, without secrets. It also contains a seal, which is a digest of the server, the
//! revision, the actions with their reasons, the differences, and the requests. To execute the file, the run plans
//! again and compares the seals. It also compares the actions that the file shows, because people approve those.
//!
//! The seal covers secrets, so that a changed secret is detected. It is salted and stretched, so that a reader of the
//! file can test guesses of a secret only slowly, and without precomputed tables.

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
/// The number of hash rounds for each guess of a secret.
const ROUNDS: NonZeroU32 = NonZeroU32::MIN.saturating_add(99_999);
/// The maximum number of resources in a refusal.
const NAMED: usize = 3;

/// The numbers of resources for each step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// Resources to create.
    pub create: usize,
    /// Resources to update.
    pub update: usize,
    /// Resources to delete.
    pub delete: usize,
    /// Resources that are not changed.
    pub unchanged: usize,
}

impl Summary {
    /// Whether the plan has no resource at all.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl std::fmt::Display for Summary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { create, update, delete, unchanged } = self;
        write!(f, "{create} to create, {update} to update, {delete} to delete, {unchanged} unchanged")
    }
}

impl Plan {
    /// Returns the numbers of resources that the plan creates, updates, deletes and does not change. Those whose request
    /// cannot be made are among the failures instead.
    pub fn summary(&self) -> Summary {
        let possible = || self.actions.iter().filter(|action| !action.is_impossible());
        let count = |step| possible().filter(|action| action.step == step).count();
        let [create, update, delete, skipped] =
            [Step::Create, Step::Update, Step::Delete, Step::Skip].map(count);
        // A replacement is a deletion and a create.
        let replaced = possible().filter(|action| action.replaces() && action.step == Step::Delete).count();
        Summary { create: create + replaced, update, delete, unchanged: self.unchanged + skipped }
    }

    /// Whether the plan changes nothing.
    pub fn is_empty(&self) -> bool {
        self.actions.iter().all(|action| action.step == Step::Skip)
    }
}

/// The server and the path of a plan in a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Subject {
    /// The base URL of the managed server.
    pub server: String,
    /// The planned path.
    pub path: String,
    /// Whether the plan includes everything below the path.
    pub recursive: bool,
    /// Whether the plan deletes resources that Git no longer declares.
    #[serde(default)]
    pub prune: bool,
    /// The revision after which Git removed what the plan deletes; without it, the whole history counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prune_base: Option<String>,
}

/// The content of a plan file; `P` is the type of the steps.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SavedPlan<P = Steps> {
    format: u32,
    /// The server and the path.
    #[serde(flatten)]
    pub subject: Subject,
    #[serde(skip_deserializing)]
    summary: Summary,
    salt: String,
    hash: String,
    plan: P,
}

/// The parts of a saved plan that a refusal compares.
#[derive(Clone, Debug, Deserialize)]
pub struct Steps {
    revision: Option<String>,
    actions: Vec<SavedAction>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
struct SavedAction {
    path: String,
    step: Step,
    reason: Reason,
    /// What else the file shows, such as the differences.
    #[serde(flatten)]
    shown: serde_json::Map<String, serde_json::Value>,
}

/// The reason why a plan file is not written or not executed.
#[derive(Debug, thiserror::Error)]
pub enum SavedPlanError {
    /// The file is not a plan that this version can read.
    #[error("{0}: {1}")]
    Unreadable(String, String),
    /// The input of the plan has changed.
    #[error("the plan is stale: {0}; create a new one")]
    Moved(String),
    /// The file does not show the actions that it was made with.
    #[error("the plan file was edited: {0}; a plan is only applied as a whole, so create a new one")]
    Edited(String),
    /// The plan does not have the input of a seal.
    #[error("the plan cannot be saved: {0}")]
    Unsealable(&'static str),
}

impl Categorized for SavedPlanError {
    fn category(&self) -> Category {
        match self {
            Self::Unreadable(..) | Self::Edited(_) => Category::Validation,
            Self::Moved(_) => Category::Conflict,
            Self::Unsealable(_) => Category::Internal,
        }
    }
}

impl SavedPlan {
    /// Returns the content of the file for `plan`, which must have been made with
    /// [`Options::sealable`](crate::sync::Options::sealable) and without failures.
    pub fn encode(subject: &Subject, plan: &Plan) -> Result<Vec<u8>, SavedPlanError> {
        let mut salt = [0; 16];
        let random = SystemRandom::new().fill(&mut salt);
        random.map_err(|_| SavedPlanError::Unsealable("the system does not return random numbers"))?;
        let salt = hex(&salt);
        let (hash, subject, summary) = (seal(subject, plan, &salt)?, subject.clone(), plan.summary());
        let file = SavedPlan { format: FORMAT, subject, summary, salt, hash, plan };
        let encoded = serde_json::to_vec_pretty(&file);
        let mut encoded = encoded.map_err(|_| SavedPlanError::Unsealable("it cannot be encoded as JSON"))?;
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

    /// Fails unless this plan equals `plan` for `subject`, which was made just now with
    /// [`Options::sealable`](crate::sync::Options::sealable).
    pub fn check(&self, subject: &Subject, plan: &Plan) -> Result<(), SavedPlanError> {
        if self.subject != *subject || seal(subject, plan, &self.salt)? != self.hash {
            return Err(SavedPlanError::Moved(self.difference(subject, plan)));
        }
        self.check_shown(plan)
    }

    /// Fails unless the file shows the actions of `plan`, whose seal it has.
    fn check_shown(&self, plan: &Plan) -> Result<(), SavedPlanError> {
        let edited = |what: String| Err(SavedPlanError::Edited(what));
        if self.plan.revision != plan.revision.as_ref().map(ToString::to_string) {
            return edited("it shows another revision".to_owned());
        }
        let unsealable = |_| SavedPlanError::Unsealable("it cannot be encoded as JSON");
        // Both were text, which rounds numbers in the same way.
        let text = serde_json::to_string(&plan.actions).map_err(unsealable)?;
        let made: Vec<SavedAction> = serde_json::from_str(&text).map_err(unsealable)?;
        let lacks = |some: &[SavedAction], action: &SavedAction| !some.contains(action);
        if let Some(action) = made.iter().find(|action| lacks(&self.plan.actions, action)) {
            return edited(format!("it does not show the action for {} as it was planned", action.path));
        }
        match self.plan.actions.iter().find(|action| lacks(&made, action)) {
            Some(action) => edited(format!("it shows an action for {} that was not planned", action.path)),
            None if self.plan.actions.len() > made.len() => edited("it shows an action twice".to_owned()),
            None => Ok(()),
        }
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
            return "the steps are the same, but the content on the server or a request has changed"
                .to_owned();
        }
        let more = if moved.len() > NAMED { ", …" } else { "" };
        format!("{}{more}", moved[..moved.len().min(NAMED)].join(", "))
    }

    /// Returns the resources whose step would now be another one, in path order.
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
            (_, None) => Some(format!("{path} is no longer selected")),
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
        Step::Skip => "skipped",
    }
}

/// Returns the digest of an action and its input, secrets included. Never show it as it is.
pub fn content(action: &Action) -> [u8; 32] {
    let mut hash = Sha256::new();
    let mut add = |part: &[u8]| {
        hash.update(part.len().to_le_bytes());
        hash.update(part);
    };
    add(action.path.as_str().as_bytes());
    add(format!("{:?} {:?}", action.step, action.reason).as_bytes());
    add(&serde_json::to_vec(&action.differences).unwrap_or_default());
    for call in action.call().into_iter().chain(action.recreation()) {
        let request = &call.request;
        add(format!("{} {} {:?} {:?}", request.method, request.path, request.query, request.accept)
            .as_bytes());
        add(&[u8::from(request.encoded)]);
        // A version from a read adds no information to the differences.
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
        hash.update(
            content.ok_or(SavedPlanError::Unsealable(
                "it was made without the digests that a saved plan needs",
            ))?,
        );
    }
    let mut sealed = [0; 32];
    pbkdf2::derive(pbkdf2::PBKDF2_HMAC_SHA256, ROUNDS, salt.as_bytes(), &hash.finalize(), &mut sealed);
    Ok(hex(&sealed))
}
