//! A server as a process of its own, and what it has used.

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, bail};

/// A server that ends with this value.
#[derive(Debug)]
pub struct Server {
    child: Child,
    /// Where it listens.
    pub address: SocketAddr,
}

impl Server {
    /// This program with these arguments, once it says where it listens.
    pub fn start(arguments: &[&str], environment: &[(&str, &str)], log: Stdio) -> anyhow::Result<Self> {
        let program = std::env::current_exe().context("this program's own path")?;
        let mut child = Command::new(program)
            .args(arguments)
            .envs(environment.iter().copied())
            .env_remove("RANKDUEL_API_KEYS")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .context("a server cannot be started")?;
        let stdout = child.stdout.take().context("a server without an output")?;
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line).context("reading where the server listens")?;
        let Some(address) = line.trim().strip_prefix("listening on http://") else {
            let _ = child.kill();
            let _ = child.wait();
            bail!("the server did not start");
        };
        let address = address.parse().context("the server's address")?;
        Ok(Self { child, address })
    }

    /// A server of the API.
    pub fn of_api(database_url: &str, filter: &str, log: Stdio) -> anyhow::Result<Self> {
        Self::start(
            &["serve", "--listen", "127.0.0.1:0", "--log", filter, "--log-format", "json"],
            &[("RANKDUEL_DATABASE_URL", database_url)],
            log,
        )
    }

    /// Processor time so far, of all its threads; `None` where the system does not tell in `/proc`.
    pub fn processor_time(&self) -> Option<Duration> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).ok()?;
        // after the name, which may hold anything: fields 3, 4, …; user and system time are 14 and 15, in ticks
        let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
        let mut ticks = || fields.next()?.parse::<u64>().ok();
        let ticks = ticks()? + ticks()?;
        Some(Duration::from_secs_f64(ticks as f64 / rustix::param::clock_ticks_per_second() as f64))
    }

    /// Memory of its own in bytes (anonymous, resident); `None` where the system does not tell in `/proc`.
    pub fn memory(&self) -> Option<f64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"))?;
        Some(line.split_whitespace().next()?.parse::<f64>().ok()? * 1024.0)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
