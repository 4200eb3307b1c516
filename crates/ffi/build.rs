//! Linker options of the shared library: its name, symbol versions, and that it stays loaded.

fn main() {
    let folder = env!("CARGO_MANIFEST_DIR");
    println!("cargo::rerun-if-changed=byname.map");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libbyname.so.1");
    // Its threads may run when a program calls dlclose.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
    let target = |part| std::env::var(format!("CARGO_CFG_TARGET_{part}")).unwrap_or_default();
    // Where src/symbols.rs names versions.
    if target("ARCH") == "x86_64" && target("ENV") == "gnu" {
        println!("cargo::rustc-cdylib-link-arg=-Wl,--version-script={folder}/byname.map");
    }
}
