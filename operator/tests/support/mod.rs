//! What the tests of the operator share.

pub mod admission;
pub mod cluster;
mod control_plane;
