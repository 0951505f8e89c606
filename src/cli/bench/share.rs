//! A control group that limits the processor time of a process, so that each server of a bench has
//! its own share.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};

/// The folder of the control groups.
const SYSTEM: &str = "/sys/fs/cgroup";
/// The period of the limit. It is short, so that a server that has used its share pauses briefly.
const PERIOD_MICROSECONDS: f64 = 20_000.0;

/// A new control group. Dropping this value removes it, after its processes have ended.
#[derive(Debug)]
pub struct Share(PathBuf);

impl Share {
    /// A group with `processors` seconds of processor time per second. The minimum is 0.05, because
    /// the kernel gives at least one millisecond of each period.
    pub fn of_processors(processors: f64, name: &str) -> anyhow::Result<Self> {
        Self::below(Path::new(SYSTEM), processors, name).context(
            "--server-cpus needs a control group: root on Linux, and cpu.cfs_quota_us (version 1) or cpu.max (version 2) \
             below /sys/fs/cgroup",
        )
    }

    fn below(system: &Path, processors: f64, name: &str) -> anyhow::Result<Self> {
        let quota = (processors * PERIOD_MICROSECONDS).round();
        let (parent, limits) = if system.join("cpu/cpu.cfs_quota_us").exists() {
            let limits = [
                ("cpu.cfs_period_us", PERIOD_MICROSECONDS.to_string()),
                ("cpu.cfs_quota_us", quota.to_string()),
            ];
            (system.join("cpu"), limits.to_vec())
        } else {
            // In a plain folder, writing would create a file that limits nothing.
            ensure!(system.join("cgroup.controllers").exists(), "neither exists");
            write(&system.join("cgroup.subtree_control"), "+cpu")?;
            (system.to_owned(), vec![("cpu.max", format!("{quota} {PERIOD_MICROSECONDS}"))])
        };
        let folder = parent.join(name);
        std::fs::create_dir(&folder)
            .with_context(|| format!("{} cannot be created", folder.display()))?;
        let share = Self(folder);
        for (file, limit) in limits {
            write(&share.0.join(file), &limit)?;
        }
        Ok(share)
    }

    /// The file into which a process writes its id to join the group.
    pub fn entrance(&self) -> PathBuf {
        self.0.join("cgroup.procs")
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.0);
    }
}

fn write(file: &Path, text: &str) -> anyhow::Result<()> {
    std::fs::write(file, text).with_context(|| format!("{} cannot be written", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder with these files, like the one of the system.
    fn system(files: &[&str]) -> tempfile::TempDir {
        let system = tempfile::tempdir().expect("a folder");
        for file in files {
            let file = system.path().join(file);
            std::fs::create_dir_all(file.parent().expect("a parent")).expect("a folder");
            std::fs::write(file, "").expect("a file");
        }
        system
    }

    fn read(system: &tempfile::TempDir, file: &str) -> String {
        std::fs::read_to_string(system.path().join(file)).expect("a file")
    }

    #[test]
    fn version_1_gets_a_quota_and_its_period() {
        let system = system(&["cpu/cpu.cfs_quota_us"]);
        let share = Share::below(system.path(), 0.25, "bench").expect("a share");
        assert_eq!(read(&system, "cpu/bench/cpu.cfs_period_us"), "20000");
        assert_eq!(read(&system, "cpu/bench/cpu.cfs_quota_us"), "5000");
        assert_eq!(share.entrance(), system.path().join("cpu/bench/cgroup.procs"));
    }

    #[test]
    fn version_2_gets_both_in_one_file_of_a_group_with_the_controller() {
        let system = system(&["cgroup.controllers"]);
        let share = Share::below(system.path(), 1.5, "bench").expect("a share");
        assert_eq!(read(&system, "cgroup.subtree_control"), "+cpu");
        assert_eq!(read(&system, "bench/cpu.max"), "30000 20000");
        assert_eq!(share.entrance(), system.path().join("bench/cgroup.procs"));
    }

    #[test]
    fn a_folder_without_control_groups_is_not_changed() {
        let system = system(&["cpu/tasks"]);
        let refused = Share::below(system.path(), 1.0, "bench").expect_err("no control groups");
        assert_eq!(refused.to_string(), "neither exists");
        assert!(
            !system.path().join("bench").exists()
                && !system.path().join("cgroup.subtree_control").exists()
        );
    }
}
