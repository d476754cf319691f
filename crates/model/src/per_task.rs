//! Something that tasks have, each one or none.

/// By task.
#[derive(Debug)]
pub struct PerTask<T> {
    of: Vec<Option<T>>,
    count: usize,
}

impl<T> Default for PerTask<T> {
    /// No task has one.
    fn default() -> PerTask<T> {
        PerTask { of: Vec::new(), count: 0 }
    }
}

impl<T> PerTask<T> {
    /// `task` has one from now on.
    ///
    /// # Panics
    /// Where it has one already.
    pub fn insert(&mut self, task: usize, own: T) {
        if self.of.len() <= task {
            self.of.resize_with(task + 1, || None);
        }
        let before = self.of[task].replace(own);
        assert!(before.is_none(), "a task has one at a time");
        self.count += 1;
    }

    /// Takes that of `task`, if it has one.
    #[inline]
    pub fn take(&mut self, task: usize) -> Option<T> {
        if self.count == 0 {
            return None;
        }
        let own = self.of.get_mut(task)?.take();
        self.count -= usize::from(own.is_some());
        own
    }

    /// Whether `task` has one.
    pub fn has(&self, task: usize) -> bool {
        self.of.get(task).is_some_and(Option::is_some)
    }

    /// Whether no task has one.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Those of all tasks.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.of.iter().flatten()
    }
}
