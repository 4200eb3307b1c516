//! Versions of the exported symbols: `byname_open@@BYNAME_1`, so that a later interface can offer
//! both an old function and its successor.
//!
//! The compiler gives the linker a list of exported symbols, to which versions cannot be added;
//! the assembler can name them, in the module that has the functions. `byname.map` declares them.
//! The linker of this target takes the two together; elsewhere the symbols have no version.

/// Gives functions of the same module a version.
macro_rules! versioned {
    ($version:literal: $($function:ident)*) => {
        $(
            #[cfg(all(not(test), target_arch = "x86_64", target_env = "gnu"))]
            std::arch::global_asm!(concat!(
                ".symver ", stringify!($function), ", ", stringify!($function), "@@@", $version
            ));
        )*
    };
}

pub(crate) use versioned;
