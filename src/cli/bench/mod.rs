//! `rankduel bench`: the speed of the service on this machine, compared with the limits of the
//! machine.

mod answers;
mod command;
mod context;
mod disk;
mod duels;
mod feedback;
mod load;
mod postgres;
mod process;
mod replicas;
mod report;
mod reports;
mod share;
mod start;
mod stock;

pub(super) use command::{Arguments, run};
