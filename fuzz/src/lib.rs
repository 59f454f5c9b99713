//! What must hold of lockgate for every input: see [`checks`].

pub mod checks;
