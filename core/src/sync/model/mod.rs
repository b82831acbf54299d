//! What runs work with and leave behind: values and pure decisions about them. Nothing here does I/O.

mod absence;
mod action;
mod answers;
mod call;
mod confidential;
mod error;
mod identity;
mod knowledge;
mod options;
mod recurrence;
mod report;
mod resource;
mod selection;
mod session;
mod stop;
mod version;

pub use absence::*;
pub use action::*;
pub use answers::*;
pub(super) use call::*;
pub use error::*;
pub use identity::*;
pub use knowledge::*;
pub use options::*;
pub use recurrence::*;
pub use report::*;
pub use resource::*;
pub use selection::*;
pub use session::*;
pub use stop::*;
pub use version::*;
