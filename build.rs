//! The migrations are embedded in the program: a new file among them must rebuild it.

fn main() {
    println!("cargo:rerun-if-changed=migrations");
}
