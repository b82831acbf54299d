//! What is ours alone: manifests, state files, the listener, and the bounds of the in-process API. How it
//! behaves as a Kubernetes API is stated in `tests/conformance`, which a real one has to pass, too.

mod collect;
mod definitions;
mod manifests;
mod namespaces;
mod secrets;
mod state;
mod watch;
#[path = "../../../tests/support/widgets.rs"]
mod widgets;
mod wire;

use super::Api;

fn api() -> Api {
    Api::new(vec![widgets::crd()]).expect("the definition compiles")
}
