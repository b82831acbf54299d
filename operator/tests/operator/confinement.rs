//! What of the operator's memory others may get to see.

use crate::support::world::World;

#[tokio::test]
async fn there_are_no_core_dumps_with_secrets_in_them() {
    let world = World::start().await;
    // It has only just been started.
    let limited = || async {
        let limits = world.process("limits");
        let core = limits.lines().find_map(|line| line.strip_prefix("Max core file size")).unwrap();
        let (soft_and_hard, zero) = (core.split_whitespace().take(2), ["0", "0"]);
        soft_and_hard.eq(zero).then_some(())
    };
    world.eventually("core dumps are forbidden", limited).await;
}
