//! Whether the workload runs the declared image.

use super::super::image::{ImageRef, digest_of_id};
use super::super::model::Contract;
use super::super::objects::{Container, Pod, PodSpec, Template};
use super::super::snapshot::{FoundWorkload, Read, Snapshot};
use super::super::target::Target;
use super::judged::{Judged, listed, workload};

/// The annotation that names the main container (Kubernetes, "Well-Known Labels, Annotations and Taints").
const DEFAULT_CONTAINER: &str = "kubectl.kubernetes.io/default-container";

/// The image of a container, with the digest that a pod reports.
struct Running {
    image: String,
    reported: Option<String>,
}

/// `ImageMatches`
pub fn image_matches(contract: &Contract, target: &Target, snapshot: &Snapshot) -> Judged {
    let Some(declared) = &contract.image else { return Judged::not_declared() };
    let expected = declared.to_string();
    let found = match workload(snapshot) {
        Ok(found) => found,
        Err(judged) => return judged.expecting(expected),
    };
    let Some(main) = main_container(contract, declared, target, found.template()) else {
        return Judged::not_applicable("the workload has no container").expecting(expected);
    };
    let running = match running(main, found, snapshot) {
        Ok(running) => running,
        Err(reason) => return Judged::failed(&reason).expecting(expected),
    };
    let observed = listed(running.iter().map(|running| match (&declared.digest, &running.reported) {
        (Some(_), Some(digest)) if !running.image.contains('@') => format!("{}@{digest}", running.image),
        _ => running.image.clone(),
    }));
    let results: Vec<Option<bool>> = running.iter().map(|running| agrees(declared, running)).collect();
    if results.contains(&Some(false)) {
        return Judged::differs("Mismatch", "image", expected, observed);
    }
    if results.contains(&None) {
        let message = format!("the image {observed} does not show whether it is {expected}");
        return Judged::not_applicable(&message).expecting(expected);
    }
    Judged::matches(expected, observed)
}

/// Returns the container that the contract is about.
fn main_container<'t>(
    contract: &Contract,
    declared: &ImageRef,
    target: &Target,
    template: &'t Template,
) -> Option<&'t Container> {
    let containers = &template.spec.containers;
    let named = |name: &str| containers.iter().find(|container| container.name == name);
    let annotated = template.metadata.annotations.get(DEFAULT_CONTAINER);
    annotated
        .and_then(|name| named(name))
        .or_else(|| named(&contract.name))
        .or_else(|| named(target.workload_name().unwrap_or_default()))
        .or_else(|| {
            let of_repository = |container: &&Container| {
                ImageRef::parse(&container.image).is_some_and(|image| image.repository == declared.repository)
            };
            containers.iter().find(of_repository)
        })
        .or_else(|| containers.first())
}

/// Returns the images of the container in all pods; that of the template during a rollout, and if there are no pods.
fn running(main: &Container, found: &FoundWorkload, snapshot: &Snapshot) -> Result<Vec<Running>, String> {
    let of_template = || vec![Running { image: main.image.clone(), reported: None }];
    if found.is_rolling_out() {
        return Ok(of_template());
    }
    let pods = match &snapshot.pods {
        Read::Found(pods) => pods,
        Read::Absent => return Ok(of_template()),
        Read::Failed(reason) => return Err(reason.clone()),
    };
    let of_pod = |pod: &Pod| {
        let PodSpec { containers, .. } = &pod.spec;
        let container = containers.iter().find(|container| container.name == main.name)?;
        let status = pod.status.containers.iter().find(|status| status.name == main.name);
        let reported = status.and_then(|status| digest_of_id(&status.image_id)).map(str::to_owned);
        Some(Running { image: container.image.clone(), reported })
    };
    let running: Vec<Running> = pods.iter().filter(|pod| pod.stays()).filter_map(of_pod).collect();
    Ok(if running.is_empty() { of_template() } else { running })
}

/// Returns whether an image is the declared one; `None` if that cannot be known.
fn agrees(declared: &ImageRef, running: &Running) -> Option<bool> {
    let Some(image) = ImageRef::parse(&running.image) else { return Some(false) };
    if image.repository != declared.repository {
        return Some(false);
    }
    if let Some(wanted) = &declared.digest {
        let digests = [image.digest.as_ref(), running.reported.as_ref()];
        let mut known = digests.into_iter().flatten().peekable();
        known.peek()?;
        if !known.any(|digest| digest == wanted) {
            return Some(false);
        }
        // The digest identifies the image. A tag beside it is only a name.
        return Some(true);
    }
    match (&declared.tag, &image.tag, &image.digest) {
        (None, _, _) => Some(true),
        (Some(_), None, Some(_)) => None,
        // Without a tag, container runtimes pull `latest`.
        (Some(wanted), None, None) => Some(wanted == "latest"),
        (Some(wanted), Some(tag), _) => Some(wanted == tag),
    }
}
