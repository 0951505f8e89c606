//! Metrics of the process that the system keeps, under the names that every program uses. Linux
//! alone: elsewhere there are none.

use std::fmt;
use std::fs;
use std::sync::atomic::AtomicU64;

use prometheus_client::encoding::text::encode_registry;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

/// Ticks of a second in `/proc`: the same on every Linux.
const TICKS: f64 = 100.0;

/// The numbers at one moment.
#[derive(Debug, PartialEq)]
struct Process {
    cpu_seconds: f64,
    start_seconds: f64,
    resident_bytes: u64,
    virtual_bytes: u64,
    open_fds: u64,
    max_fds: u64,
}

impl Process {
    fn read() -> Option<Self> {
        let stat = fs::read_to_string("/proc/self/stat").ok()?;
        // the name of the program, in brackets, may contain blanks; the third field follows it
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        let field = |number: usize| fields.get(number - 3)?.parse::<f64>().ok();
        let in_proc = |file: &str, name: &str| {
            let text = fs::read_to_string(file).ok()?;
            let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
            rest.split_whitespace().next()?.parse::<u64>().ok()
        };
        Some(Self {
            cpu_seconds: (field(14)? + field(15)?) / TICKS,
            start_seconds: in_proc("/proc/stat", "btime")? as f64 + field(22)? / TICKS,
            resident_bytes: in_proc("/proc/self/status", "VmRSS:")? * 1024,
            virtual_bytes: in_proc("/proc/self/status", "VmSize:")? * 1024,
            open_fds: fs::read_dir("/proc/self/fd").ok()?.count() as u64,
            // the soft limit comes first; one without an end is not a number
            max_fds: in_proc("/proc/self/limits", "Max open files").unwrap_or(u64::MAX),
        })
    }
}

/// Write the metrics of this process.
pub(crate) fn encode(text: &mut String) -> fmt::Result {
    let Some(of) = Process::read() else { return Ok(()) };
    let mut registry = Registry::default();
    let cpu = Counter::<f64, AtomicU64>::default();
    cpu.inc_by(of.cpu_seconds);
    registry.register("process_cpu_seconds", "Processor time in seconds", cpu);
    for (name, help, value) in [
        ("process_start_time_seconds", "Start of the process in Unix seconds", of.start_seconds),
        ("process_resident_memory_bytes", "Resident memory in bytes", of.resident_bytes as f64),
        ("process_virtual_memory_bytes", "Virtual memory in bytes", of.virtual_bytes as f64),
        ("process_open_fds", "Open file descriptors", of.open_fds as f64),
        ("process_max_fds", "Most open file descriptors", of.max_fds as f64),
    ] {
        let gauge = Gauge::<f64, AtomicU64>::default();
        gauge.set(value);
        registry.register(name, help, gauge);
    }
    encode_registry(text, &registry)
}
