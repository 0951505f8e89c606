//! A server as a separate process, and the resources that processes have used.

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, bail};

use super::share::Share;

/// A server process. Dropping this value kills it.
#[derive(Debug)]
pub struct Server {
    child: Child,
    /// The listening address.
    pub address: SocketAddr,
    /// Dropped after the process has ended.
    _share: Option<Share>,
}

impl Server {
    /// Starts this program with these arguments, and waits until it listens. With `share`, the
    /// process is in the control group from its first instruction, so that it detects the number of
    /// its processors as in a container.
    pub fn start(
        arguments: &[&str],
        environment: &[(&str, &str)],
        share: Option<Share>,
        log: Stdio,
    ) -> anyhow::Result<Self> {
        let program = std::env::current_exe().context("the path of this program is unknown")?;
        let mut command = match &share {
            None => Command::new(program),
            Some(share) => {
                let mut command = Command::new("/bin/sh");
                command
                    .args(["-c", "echo $$ >\"$0\" && exec \"$@\""])
                    .arg(share.entrance())
                    .arg(program);
                command
            }
        };
        let mut child = command
            .args(arguments)
            .envs(environment.iter().copied())
            .env_remove("RANKDUEL_API_KEYS")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .context("a server cannot be started")?;
        let stdout = child.stdout.take().context("the server has no standard output")?;
        let mut line = String::new();
        BufReader::new(stdout)
            .read_line(&mut line)
            .context("the address of the server cannot be read")?;
        let Some(address) = line.trim().strip_prefix("listening on http://") else {
            let _ = child.kill();
            let _ = child.wait();
            bail!("the server did not start");
        };
        let address = address.parse().context("the address of the server is invalid")?;
        Ok(Self { child, address, _share: share })
    }

    /// Processor time of all threads so far; `None` without `/proc`.
    pub fn processor_time(&self) -> Option<Duration> {
        Process::read(self.child.id()).map(|process| process.time)
    }

    /// Anonymous resident memory in bytes; `None` without `/proc`.
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

/// The entry of a process in `/proc`.
#[derive(Debug, Clone)]
pub struct Process {
    /// The name of the program.
    pub name: String,
    /// The id of the parent process.
    pub parent: u32,
    /// Processor time of its threads.
    pub time: Duration,
    /// Processor time of its children that have ended.
    pub time_of_ended_children: Duration,
}

impl Process {
    /// The process with this id; `None` if it is not in `/proc`.
    pub fn read(id: u32) -> Option<Self> {
        let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
        let (start, rest) = stat.rsplit_once(')')?;
        // The fields 3, 4, … follow the name, which may contain any character. The parent is field
        // 4. User and system time are 14 and 15, those of ended children 16 and 17, in ticks.
        let fields: Vec<_> = rest.split_whitespace().collect();
        let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
        let seconds = |ticks: u64| {
            Duration::from_secs_f64(ticks as f64 / rustix::param::clock_ticks_per_second() as f64)
        };
        Some(Self {
            name: start.split_once('(')?.1.to_owned(),
            parent: u32::try_from(field(4)?).ok()?,
            time: seconds(field(14)? + field(15)?),
            time_of_ended_children: seconds(field(16)? + field(17)?),
        })
    }
}
