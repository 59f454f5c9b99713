//! The `lockgate` program: arguments → [`lockgate::cli`] → exit code.

use std::process::ExitCode;

// A request allocates some twenty times, and this costs a third of the system's allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    lockgate::cli::main()
}
