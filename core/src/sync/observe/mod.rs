//! Reads the state of the server. Each file uses those above it. `Remote` is implemented in the files `server` to
//! `saved`:
//!
//! ```text
//! desired          desired resources, with defaults and secrets
//! lookup           a declared resource by its names on the server
//! listed           the members of a list
//! asked            answers that the reads of a run share
//! once, contents   values that tasks share; contents that were read, for references
//! server           one request and its decoded answer
//! references       the contents of other resources, for references and jq
//! pages, lists     complete lists, read once per run
//! parents          the addresses of the parents of a resource on the server
//! redirects        redirects to another resource
//! other_id         resources whose member `id` is not the id in their address
//! remote           one resource, decided by `model::absence`; references and jq may also read it
//! saved            the members of a list, for files
//! bulk             many resources by the list of their collection
//! recheck          repeats the requests of a settled run
//! ```

mod asked;
mod bulk;
mod contents;
mod desired;
mod listed;
mod lists;
mod lookup;
mod once;
mod other_id;
mod pages;
mod parents;
mod recheck;
mod redirects;
mod references;
mod remote;
mod saved;
mod server;

pub use bulk::*;
pub(crate) use contents::{Expected, References};
pub use desired::*;
pub use lookup::*;
pub use recheck::*;
pub(crate) use references::{Lacking, refers};
pub use remote::*;
pub use server::*;
