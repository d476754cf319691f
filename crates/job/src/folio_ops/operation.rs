//! What is timed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::name::named;

named! {
    /// An operation over all pages.
    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    "operation"
    pub enum Operation {
        /// The only mm unmaps everything.
        Munmap = "munmap",
        /// It is forked.
        Fork = "fork",
        /// It was forked, and writes a byte to each page.
        CowByte = "cow-byte",
        /// The same, after the child is gone.
        ReuseByte = "reuse-byte",
        /// The child writes, after the parent is gone.
        ChildReuseByte = "child-reuse-byte",
        /// A child for each CPU writes to its pages in order.
        AnonCowSeq = "anon-cow-seq",
        /// A child for each CPU writes to its pages in random order.
        AnonCowRand = "anon-cow-rand",
    }
}

impl Operation {
    /// The operations of one thread, in the order of the published tables.
    pub const OF_ONE_THREAD: [Operation; 5] = [
        Operation::Munmap,
        Operation::Fork,
        Operation::CowByte,
        Operation::ReuseByte,
        Operation::ChildReuseByte,
    ];

    /// Whether one thread does it, and no children at once.
    pub const fn is_of_one_thread(self) -> bool {
        !matches!(self, Operation::AnonCowSeq | Operation::AnonCowRand)
    }

    /// Whether it writes to each page.
    pub const fn writes(self) -> bool {
        !matches!(self, Operation::Munmap | Operation::Fork)
    }

    /// Whether the pages that it writes to have one owner left, so that they may be reused.
    pub const fn reuses(self) -> bool {
        matches!(self, Operation::ReuseByte | Operation::ChildReuseByte)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_of_one_thread_are_listed() {
        let own = Operation::ALL.iter().copied().filter(|operation| operation.is_of_one_thread());
        assert!(own.eq(Operation::OF_ONE_THREAD));
    }

    #[test]
    fn names_in_records_are_those_of_the_command_line() {
        for operation in Operation::ALL {
            let json = serde_json::to_value(operation).unwrap();
            assert_eq!(json, operation.name());
            assert_eq!(serde_json::from_value::<Operation>(json).unwrap(), *operation);
        }
    }
}
