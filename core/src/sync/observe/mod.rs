//! Reads the state of the server. Each file uses those above it. `Remote` is implemented in the files `server` to
//! `remote`:
//!
//! ```text
//! desired          desired resources, with defaults and secrets
//! lookup           a declared resource by its names on the server
//! server           one request and its decoded answer
//! pages, lists     complete lists, read once per run
//! parents          the addresses of the parents of a resource on the server
//! remote           one resource, decided by `model::absence`; the jq of lists may also read it
//! bulk             many resources by the list of their collection
//! recheck          repeats the requests of a settled run
//! ```

mod bulk;
mod desired;
mod lists;
mod lookup;
mod pages;
mod parents;
mod recheck;
mod remote;
mod server;

pub use bulk::*;
pub use desired::*;
pub use lookup::*;
pub use recheck::*;
pub use remote::*;
pub use server::*;
