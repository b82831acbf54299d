//! What of the operator's memory others may get to see.

use crate::support::world::World;

#[tokio::test]
async fn there_are_no_core_dumps_with_secrets_in_them() {
    let world = World::start().await;
    let limits = world.process("limits");
    let core = limits.lines().find_map(|line| line.strip_prefix("Max core file size")).unwrap();
    assert_eq!(core.split_whitespace().take(2).collect::<Vec<_>>(), ["0", "0"], "soft and hard limit");
}
