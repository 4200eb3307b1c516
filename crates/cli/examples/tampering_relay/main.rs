//! A TCP relay that flips one bit of one kind of Data on its way to the reader.
//!
//! For the demo and the tests: what a broken cache or a hostile hop looks like to a client.
//! `tampering_relay LISTEN_PORT TARGET_PORT data|node|metadata|listing`, or `--free-ports N` to
//! print ports that nobody listens on.

mod relay;

use std::net::TcpListener;

fn main() -> std::io::Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let [flag, count] = &args[..]
        && flag == "--free-ports"
    {
        return print_free_ports(count.parse().unwrap_or(1));
    }
    let [listen, target, kind] = &args[..] else {
        eprintln!("usage: tampering_relay LISTEN_PORT TARGET_PORT data|node|metadata|listing");
        std::process::exit(2);
    };
    let listener = TcpListener::bind(format!("127.0.0.1:{listen}"))?;
    println!("listening");
    relay::serve(&listener, &format!("127.0.0.1:{target}"), kind);
    Ok(())
}

fn print_free_ports(count: usize) -> std::io::Result<()> {
    let listeners: std::io::Result<Vec<TcpListener>> =
        (0..count).map(|_| TcpListener::bind("127.0.0.1:0")).collect();
    for listener in listeners? {
        print!("{} ", listener.local_addr()?.port());
    }
    println!();
    Ok(())
}
