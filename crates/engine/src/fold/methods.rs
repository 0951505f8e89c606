//! The interleaving methods that an experiment has had.

/// How rankings are interleaved, from a log position on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MethodVersion {
    /// Position of the entry that introduced it; 0 for the initial method.
    pub since: u64,
    /// The method.
    pub method: interleaving::Spec,
}

/// The method with this version number, counted from 1.
pub(super) fn method_of(methods: &[MethodVersion], version: u32) -> Option<interleaving::Spec> {
    let index = (version as usize).checked_sub(1)?;
    methods.get(index).map(|version| version.method)
}
