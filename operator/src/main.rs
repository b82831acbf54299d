mod args;
mod controller;
mod directories;
mod leader;
mod telemetry;
fn main() {}
