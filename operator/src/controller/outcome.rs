//! The outcome of a round, and its consequences for conditions and retries.

use std::time::Duration;

/// The reason of an outcome. The set is fixed, because reasons are used in conditions, events and metric labels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, strum::IntoStaticStr)]
#[strum(const_into_str)]
pub enum Reason {
    Ready,
    Reconciling,
    SpecInvalid,
    Suspended,
    OverlappingPolicy,
    DependencyInvalid,
    DependencyNotReady,
    RepositoryUnavailable,
    SessionBootstrapFailed,
    ManagedServerUnavailable,
    PartialFailure,
    ManagedServerAuthFailed,
    PruneRefused,
    NeverConverges,
    FetchFailed,
    AuthFailed,
    ArtifactUnavailable,
    StoreUnavailable,
    DecryptFailed,
    ReconcileFailed,
}

/// A summary of the three conditions that every object has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Usable now.
    Usable,
    /// Work is in progress; Ready keeps its previous status.
    Working,
    /// Not usable on purpose.
    Idle,
    /// Not usable; a retry may succeed.
    Retrying,
    /// Not usable until a user changes something.
    Stuck,
}

/// When to reconcile the object again if it does not change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// After the object's own interval.
    Interval,
    /// After a wait that increases with each failure.
    Backoff,
    /// After this time.
    After(Duration),
    /// Only after a change.
    OnChange,
}

impl Reason {
    pub const fn standing(self) -> Standing {
        match self {
            Self::Ready => Standing::Usable,
            Self::Reconciling => Standing::Working,
            Self::Suspended => Standing::Idle,
            Self::SpecInvalid
            | Self::OverlappingPolicy
            | Self::DependencyInvalid
            | Self::ManagedServerAuthFailed
            | Self::PruneRefused
            | Self::NeverConverges
            | Self::AuthFailed
            | Self::DecryptFailed => Standing::Stuck,
            Self::DependencyNotReady
            | Self::RepositoryUnavailable
            | Self::SessionBootstrapFailed
            | Self::ManagedServerUnavailable
            | Self::PartialFailure
            | Self::FetchFailed
            | Self::ArtifactUnavailable
            | Self::StoreUnavailable
            | Self::ReconcileFailed => Standing::Retrying,
        }
    }

    pub const fn retry(self) -> Retry {
        match self {
            Self::Ready | Self::PruneRefused | Self::NeverConverges => Retry::Interval,
            Self::SpecInvalid | Self::Suspended | Self::OverlappingPolicy => Retry::OnChange,
            Self::Reconciling | Self::DependencyNotReady => Retry::After(Duration::from_secs(30)),
            Self::DependencyInvalid
            | Self::RepositoryUnavailable
            | Self::SessionBootstrapFailed
            | Self::ManagedServerUnavailable
            | Self::PartialFailure
            | Self::ManagedServerAuthFailed
            | Self::FetchFailed
            | Self::AuthFailed
            | Self::ArtifactUnavailable
            | Self::StoreUnavailable
            | Self::DecryptFailed
            | Self::ReconcileFailed => Retry::Backoff,
        }
    }

    /// Returns whether this reason is a failure.
    pub const fn is_failure(self) -> bool {
        matches!(self.standing(), Standing::Retrying | Standing::Stuck)
    }
}

/// The outcome of a round.
#[derive(Clone, Debug)]
pub struct Outcome {
    pub reason: Reason,
    /// The message of the Ready condition: the fault and the correction. Never holds secret material.
    pub message: String,
    /// Conditions in addition to the three that every object has. They replace those of the last round.
    pub conditions: Vec<Fact>,
    /// Events that are not implied by a change of the Ready condition.
    pub notices: Vec<Notice>,
    /// A more specific event, which is published together with that of the reason.
    pub event: Option<&'static str>,
    /// The wait before the next round; overrides that of the reason.
    pub requeue: Option<Duration>,
    /// Consecutive failures, if the object counts them itself; otherwise failed rounds are counted.
    pub failures: Option<u32>,
    /// Whether nothing is written, because the object is about to change.
    pub quiet: bool,
    /// Whether this is the outcome of an earlier round, which has logged it.
    pub recalled: bool,
}

/// An additional condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fact {
    pub type_: &'static str,
    pub truth: Truth,
    pub reason: &'static str,
    pub message: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(const_into_str)]
pub enum Truth {
    True,
    False,
    Unknown,
}

impl From<bool> for Truth {
    fn from(value: bool) -> Self {
        if value { Self::True } else { Self::False }
    }
}

/// An event to publish.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    pub warning: bool,
    pub reason: &'static str,
    pub note: String,
}

impl Notice {
    pub fn normal(reason: &'static str, note: impl Into<String>) -> Self {
        Self { warning: false, reason, note: note.into() }
    }

    pub fn warning(reason: &'static str, note: impl Into<String>) -> Self {
        Self { warning: true, reason, note: note.into() }
    }
}

impl Outcome {
    pub fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self {
            reason,
            message: message.into(),
            conditions: Vec::new(),
            notices: Vec::new(),
            event: None,
            requeue: None,
            failures: None,
            quiet: false,
            recalled: false,
        }
    }

    pub fn ready(message: impl Into<String>) -> Self {
        Self::new(Reason::Ready, message)
    }

    #[must_use]
    pub fn with_condition(mut self, fact: Fact) -> Self {
        self.conditions.push(fact);
        self
    }

    #[must_use]
    pub fn with_notice(mut self, notice: Notice) -> Self {
        self.notices.push(notice);
        self
    }

    #[must_use]
    pub fn with_failures(mut self, failures: u32) -> Self {
        self.failures = Some(failures);
        self
    }

    /// Leaves the status as it is, and publishes no events.
    #[must_use]
    pub fn quietly(mut self) -> Self {
        self.quiet = true;
        self
    }

    #[must_use]
    pub fn with_requeue(mut self, after: Duration) -> Self {
        self.requeue = Some(after);
        self
    }
}
