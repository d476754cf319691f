//! The benchmarked operations.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::name::named;

named! {
    /// An operation over all pages.
    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    "operation"
    pub enum Operation {
        /// The only mm unmaps the memory.
        Munmap = "munmap",
        /// The mm forks.
        Fork = "fork",
        /// The parent writes a byte to each page after a fork.
        CowByte = "cow-byte",
        /// The parent writes a byte to each page after the child has exited.
        ReuseByte = "reuse-byte",
        /// The child writes a byte to each page after the parent has exited.
        ChildReuseByte = "child-reuse-byte",
        /// One child per CPU writes to its pages sequentially.
        AnonCowSeq = "anon-cow-seq",
        /// One child per CPU writes to its pages in random order.
        AnonCowRand = "anon-cow-rand",
    }
}

impl Operation {
    /// Operations of one thread, in the order of the published tables.
    pub const SINGLE_THREADED: [Operation; 5] = [
        Operation::Munmap,
        Operation::Fork,
        Operation::CowByte,
        Operation::ReuseByte,
        Operation::ChildReuseByte,
    ];

    /// Whether it runs on one thread instead of several children.
    pub const fn is_single_threaded(self) -> bool {
        !matches!(self, Operation::AnonCowSeq | Operation::AnonCowRand)
    }

    /// Whether it writes to each page.
    pub const fn writes(self) -> bool {
        !matches!(self, Operation::Munmap | Operation::Fork)
    }

    /// Whether it writes to pages with a single remaining owner, which can be reused.
    pub const fn reuses(self) -> bool {
        matches!(self, Operation::ReuseByte | Operation::ChildReuseByte)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn single_threaded_operations_are_listed() {
        let all = Operation::ALL.iter().copied();
        assert!(
            all.filter(|operation| operation.is_single_threaded()).eq(Operation::SINGLE_THREADED)
        );
    }

    #[test]
    fn records_use_the_names_of_the_command_line() {
        for operation in Operation::ALL {
            let json = serde_json::to_value(operation).unwrap();
            assert_eq!(json, operation.name());
            assert_eq!(serde_json::from_value::<Operation>(json).unwrap(), *operation);
        }
    }
}
