//! Waits until the status of objects is as a test wants it.

use declarest_operator::crd::{
    ManagedServer, ManagedServerStatus, ResourceRepository, ResourceRepositoryStatus, SyncPolicy,
    SyncPolicyStatus,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use super::{World, condition, is_true, ready};

impl World {
    /// Waits until the policy is as `wanted`; otherwise shows its status and the end of the log.
    pub async fn policy(&self, what: &str, wanted: impl Fn(&SyncPolicyStatus) -> bool) -> SyncPolicyStatus {
        let api = self.api::<SyncPolicy>();
        self.until(what, async || api.get("policy").await.ok()?.status, wanted).await
    }

    /// Waits until the policy applied `revision` without a failure.
    pub async fn applied(&self, revision: &str) -> SyncPolicyStatus {
        self.policy(&format!("{revision} is applied"), |status| {
            status.last_applied_repo_revision.as_deref() == Some(revision)
                && is_true(&status.conditions, "Ready")
        })
        .await
    }

    /// Waits until a run with this trigger has ended.
    pub async fn finished(&self, trigger: &str) -> SyncPolicyStatus {
        self.policy(&format!("a run triggered by {trigger} ends"), |status| {
            status.last_trigger.as_deref() == Some(trigger) && !is_true(&status.conditions, "Reconciling")
        })
        .await
    }

    /// Waits until Ready of the policy has this reason.
    pub async fn policy_reason(&self, reason: &str) -> (SyncPolicyStatus, String) {
        let status = self
            .policy(&format!("Ready says {reason}"), |status| ready(&status.conditions).reason == reason)
            .await;
        let message = ready(&status.conditions).message;
        (status, message)
    }

    /// Waits until the repository is as `wanted`.
    pub async fn repository(
        &self,
        what: &str,
        wanted: impl Fn(&ResourceRepositoryStatus) -> bool,
    ) -> ResourceRepository {
        let api = self.api::<ResourceRepository>();
        self.until(
            what,
            async || api.get("repo").await.ok(),
            |object| object.status.as_ref().is_some_and(&wanted),
        )
        .await
    }

    /// Waits until the repository is ready with `revision` fetched.
    pub async fn fetched(&self, revision: &str) -> ResourceRepository {
        self.repository(&format!("{revision} is fetched"), |status| {
            status.last_fetched_revision.as_deref() == Some(revision) && is_true(&status.conditions, "Ready")
        })
        .await
    }

    /// Waits until Ready of the repository has this reason, and returns its message.
    pub async fn repository_reason(&self, reason: &str) -> String {
        let what = format!("Ready of the repository says {reason}");
        let object = self.repository(&what, |status| ready(&status.conditions).reason == reason).await;
        ready(&object.status.unwrap().conditions).message
    }

    /// Waits until Ready of the server has this reason, and returns its message.
    pub async fn server_reason(&self, reason: &str) -> String {
        let api = self.api::<ManagedServer>();
        let conditions = async || Some(api.get("server").await.ok()?.status?.conditions);
        let what = format!("Ready of the server says {reason}");
        ready(&self.until(&what, conditions, |conditions| ready(conditions).reason == reason).await).message
    }

    /// Waits until `ArtifactsCached` of the server has this reason.
    pub async fn artifacts_cached(&self, reason: &str) -> (ManagedServerStatus, Condition) {
        let api = self.api::<ManagedServer>();
        let status = async || {
            let status = api.get("server").await.ok()?.status?;
            status.conditions.iter().any(|condition| condition.type_ == "ArtifactsCached").then_some(status)
        };
        let wanted =
            |status: &ManagedServerStatus| condition(&status.conditions, "ArtifactsCached").reason == reason;
        let status = self.until(&format!("ArtifactsCached is {reason}"), status, wanted).await;
        let reported = condition(&status.conditions, "ArtifactsCached");
        (status, reported)
    }
}
