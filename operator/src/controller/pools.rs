//! The mirrors, clients, artifacts and stores in use. All controllers share them, and they outlive a round.

use super::artifacts::Artifacts;
use super::contracts::Contracts;
use super::mirrors::Mirrors;
use super::servers::Servers;
use super::stores::Stores;

/// The mirrors, clients, artifacts and stores in use.
#[derive(Default)]
pub struct Pools {
    pub mirrors: Mirrors,
    pub servers: Servers,
    pub artifacts: Artifacts,
    pub contracts: Contracts,
    pub stores: Stores,
}
