//! HAProxy with the shipped configuration.

use std::net::TcpListener;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use super::client::eventually;

/// HAProxy in front of one or two servers, killed when it is dropped.
pub struct Haproxy {
    process: Child,
    address: String,
    _folder: TempDir,
}

impl Haproxy {
    /// Start the proxy and wait until it has a ready server.
    pub async fn start(servers: &[&str]) -> Self {
        let port = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("it");
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("haproxy.cfg");
        std::fs::write(&file, configuration(port.port(), servers)).expect("to write");
        let path = std::env::var("PATH").unwrap_or_default();
        let process = Command::new("haproxy")
            .args(["-db", "-f"])
            .arg(&file)
            .env("PATH", format!("{path}:/usr/sbin"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("haproxy: run scripts/install-packages");
        let this = Self { process, address: port.to_string(), _folder: folder };
        eventually("the proxy to have a ready server", async || {
            this.has_ready_server().await.then_some(())
        })
        .await;
        this
    }

    /// `ADDRESS:PORT`.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Whether the proxy has a server that it sends requests to.
    pub async fn has_ready_server(&self) -> bool {
        let answer = reqwest::get(format!("http://{}/proxyz", self.address)).await;
        answer.is_ok_and(|answer| answer.status() == 200)
    }
}

impl Drop for Haproxy {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The shipped configuration, with this port and servers that need no name service.
fn configuration(port: u16, servers: &[&str]) -> String {
    let shipped = include_str!("../../deploy/haproxy.cfg");
    let mut replicas = 0;
    let mut lines = Vec::new();
    let mut in_resolvers = false;
    for line in shipped.lines() {
        if !line.starts_with(' ') {
            in_resolvers = line.starts_with("resolvers ");
        }
        if in_resolvers {
            continue;
        }
        if line.trim() == "bind :7171" {
            lines.push(format!("    bind 127.0.0.1:{port}"));
        } else if line.trim().starts_with("server rankduel-") {
            let server = servers[replicas % servers.len()];
            replicas += 1;
            lines.push(format!("    server rankduel-{replicas} {server}"));
        } else if let Some((before, _)) = line.split_once(" resolvers ") {
            lines.push(before.to_owned());
        } else {
            lines.push(line.to_owned());
        }
    }
    assert_eq!(replicas, 2, "the shipped configuration has changed");
    lines.join("\n") + "\n"
}
