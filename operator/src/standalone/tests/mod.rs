//! Tests of manifests, state files, the listener, and the limits of the in-process API. `tests/conformance` tests
//! its behavior as a Kubernetes API, and also runs against a real API server.

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
