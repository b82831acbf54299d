//! What the server has. Each file uses those above it:
//!
//! ```text
//! secrets, desired, load   what Git declares, complete with defaults and secrets
//! lookup                   a declared resource by the names that it has on the server
//! server                   one request, and one answer decoded
//! pages, lists             lists, read to their end once per run
//! parents                  where the parents of a resource are on the server
//! remote                   one resource, decided by `model::absence`
//! bulk                     many resources by the list of their collection
//! recheck                  all that a settled run asked, once more
//! ```

pub(super) mod bulk;
pub(super) mod desired;
pub(super) mod lists;
pub(super) mod load;
pub(super) mod lookup;
mod pages;
mod parents;
pub(super) mod recheck;
pub(super) mod remote;
pub(super) mod secrets;
pub(super) mod server;
