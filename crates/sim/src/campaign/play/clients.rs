//! The clients of a scenario: production downloads that crash, over disks that fail.

use std::collections::BTreeMap;
use std::path::PathBuf;

use byname_client::{ClientConfig, DownloadOptions};

use super::{END_NS, SitePlan, Stage, site_name};
use crate::program::Crash;
use crate::programs::local_disk::Content;
use crate::programs::{Client, ClientOrder, DiskFaults, Publisher};
use crate::world::{Fault, Incident, ProgramId, SECOND};

/// After a failure. Longer than what counts as asking for the same in one go.
const AGAIN_NS: u64 = 10 * SECOND;
const TARGET: &str = "file";
const TREE: &str = "tree";

/// Contents that may come to stand where, the newest last.
fn wanted(site: &SitePlan, is_tree: bool) -> BTreeMap<PathBuf, Vec<Content>> {
    if is_tree {
        let files = site.tree.iter().flat_map(|tree| &tree.files);
        return files.map(|(path, seed, size)| (path.into(), vec![(*seed, *size)])).collect();
    }
    let versions = site.versions.iter().map(|it| (it.seed, it.size)).collect();
    [(TARGET.into(), versions)].into()
}

impl Stage<'_> {
    pub(super) fn employ_clients(&mut self) {
        for (number, planned) in self.plan.clients.iter().enumerate() {
            let prefix = site_name(planned.site);
            let publisher = self.publishers[planned.site][0];
            let publisher = self.world.program::<Publisher>(publisher).expect("a publisher");
            let target = if planned.is_tree { TREE } else { TARGET };
            let order = ClientOrder {
                name: prefix.clone().with_generic(target.as_bytes()),
                anchor: (prefix, publisher.key_id()),
                target: target.into(),
                is_tree: planned.is_tree,
                versions: wanted(&self.plan.sites[planned.site], planned.is_tree),
                options: DownloadOptions { sync: planned.sync, ..DownloadOptions::default() },
                config: ClientConfig::default(),
                start_ns: planned.start_ns,
                again_ns: Some(AGAIN_NS),
            };
            let client = Client::new(order, self.plan.seed ^ (0x100 + number as u64));
            client.disk().set_faults(planned.disk);
            let client = self.world.add_program(self.hosts[planned.host], client);
            for (from_ns, until_ns, is_power) in &planned.crashes {
                let how = if *is_power { Crash::Power } else { Crash::Process };
                self.world.plan(*from_ns, Incident::CrashProgram { program: client, how });
                self.world.plan(*until_ns, Incident::RestartProgram { program: client });
            }
            self.clients.push(client);
        }
    }

    /// From now on their disks do what disks should.
    pub(super) fn mend_disks(&mut self) {
        for client in &self.clients {
            self.client(*client).disk().set_faults(DiskFaults::default());
        }
    }

    pub(super) fn order_again(&mut self, at_ns: u64) {
        for client in self.clients.clone() {
            let one = self.world.program_mut::<Client>(client).expect("a client");
            one.order_again(at_ns);
            self.world.wake(client);
        }
    }

    /// Every client comes to its end within the time there is.
    pub(super) fn wait_for_clients(&mut self, promise: &str) -> Result<(), Fault> {
        let limit_ns = self.world.now_ns() + END_NS;
        while let Some(number) = self.unfinished_client() {
            if self.world.now_ns() >= limit_ns {
                let client = self.client(self.clients[number]);
                let (tally, errors) = (client.tally(), client.errors());
                let last = errors.last().cloned().unwrap_or_default();
                let what = format!("{promise}: client {number} has not, {tally:?}: {last}");
                return Err(self.client_fault(number, what));
            }
            self.slice(limit_ns)?;
        }
        Ok(())
    }

    /// Checks that their directories hold the versions published now.
    pub(super) fn expect_newest(&mut self) -> Result<(), Fault> {
        for number in 0..self.clients.len() {
            let planned = &self.plan.clients[number];
            let client = self.client(self.clients[number]);
            let (directory, disk) = (client.directory(), client.disk());
            let wanted = wanted(&self.plan.sites[planned.site], planned.is_tree);
            let is_missing = |(path, versions): &(&PathBuf, &Vec<Content>)| {
                let newest = versions.last().expect("a version");
                !disk.is_there(&directory.join(path), *newest)
            };
            if let Some((path, _)) = wanted.iter().find(is_missing) {
                let path = path.display();
                let what =
                    format!("a download brings what is published now: client {number}, {path}");
                return Err(self.client_fault(number, what));
            }
            self.completed += 1;
            self.failed += self.client(self.clients[number]).tally().failed;
        }
        Ok(())
    }

    fn unfinished_client(&self) -> Option<usize> {
        let is_unfinished = |client: &ProgramId| self.client(*client).finished_ns().is_none();
        self.clients.iter().position(is_unfinished)
    }

    fn client(&self, client: ProgramId) -> &Client {
        self.world.program(client).expect("a client")
    }

    fn client_fault(&self, number: usize, what: String) -> Fault {
        let host = self.hosts[self.plan.clients[number].host];
        Fault { at_ns: self.world.now_ns(), host: self.world.host(host).name.clone(), what }
    }
}
