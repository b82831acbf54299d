//! What the server has. Each file uses those above it, and `Remote` has a part in each from `server` to `remote`:
//!
//! ```text
//! desired          what Git declares, complete with defaults and secrets
//! lookup           a declared resource by the names that it has on the server
//! server           one request, and one answer decoded
//! pages, lists     lists, read to their end once per run
//! parents          where the parents of a resource are on the server
//! remote           one resource, decided by `model::absence`; the jq of lists may read it, too
//! bulk             many resources by the list of their collection
//! recheck          all that a settled run asked, once more
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
