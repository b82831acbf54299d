#[allow(dead_code, unused_imports, reason = "the run command composes it")]
mod standalone;

fn main() {}
