//! The smallest forwarder: `forwarder ENDPOINT... [PREFIX=ENDPOINT...]` listens until killed.

use byname_node::{Node, NodeConfig};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut config = NodeConfig::default();
    for argument in std::env::args().skip(1) {
        match argument.split_once('=') {
            Some((prefix, endpoint)) => {
                config.routes.push((prefix.parse()?, endpoint.parse()?).into())
            }
            None => config.listen.push(argument.parse()?),
        }
    }
    let mut node = Node::new(config)?;
    for endpoint in node.listening() {
        eprintln!("listening on {endpoint}");
    }
    let stop = node.stop_handle();
    Ok(node.run(&stop)?)
}
