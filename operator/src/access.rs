//! Asks the API server for the rights of users.

use k8s_openapi::api::authentication::v1::UserInfo;
use k8s_openapi::api::authorization::v1::{
    NonResourceAttributes, ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec,
};
use kube::api::PostParams;
use kube::{Api, Client};

/// A right that a user may have.
#[derive(Clone, Copy, Debug)]
pub enum Right<'a> {
    /// To get a path that is not one of resources, such as `/metrics`.
    GetPath(&'a str),
    /// To create `PersistentVolumeClaims` in this namespace.
    CreateClaims(&'a str),
}

/// Returns whether a user has a right. `client` must have the right to create `SubjectAccessReviews`.
///
/// # Errors
/// The API server cannot be reached, or rejects the review.
pub async fn is_allowed(client: &Client, user: UserInfo, right: Right<'_>) -> Result<bool, kube::Error> {
    let mut spec = SubjectAccessReviewSpec {
        user: user.username,
        uid: user.uid,
        groups: user.groups,
        extra: user.extra,
        ..Default::default()
    };
    match right {
        Right::GetPath(path) => {
            spec.non_resource_attributes =
                Some(NonResourceAttributes { path: Some(path.to_owned()), verb: Some("get".to_owned()) });
        }
        Right::CreateClaims(namespace) => {
            spec.resource_attributes = Some(ResourceAttributes {
                namespace: Some(namespace.to_owned()),
                verb: Some("create".to_owned()),
                version: Some("v1".to_owned()),
                resource: Some("persistentvolumeclaims".to_owned()),
                ..Default::default()
            });
        }
    }
    let review = SubjectAccessReview { spec, ..Default::default() };
    let reviews = Api::<SubjectAccessReview>::all(client.clone());
    let status = reviews.create(&PostParams::default(), &review).await?.status;
    Ok(status.is_some_and(|status| status.allowed))
}
