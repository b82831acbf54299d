//! The input and the results of runs: values, and pure decisions about them. Nothing here does I/O.

mod absence;
mod action;
mod call;
mod error;
mod failure;
mod identity;
mod knowledge;
mod options;
mod recurrence;
mod report;
mod resource;
mod selection;
mod session;
mod stop;

pub use absence::*;
pub use action::*;
pub(super) use call::*;
pub use error::*;
pub use failure::*;
pub use identity::*;
pub use knowledge::*;
pub use options::*;
pub use recurrence::*;
pub use report::*;
pub use resource::*;
pub use selection::*;
pub use session::*;
pub use stop::*;
