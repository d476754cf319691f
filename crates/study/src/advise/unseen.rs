//! Touches that the recorder may have missed: figures are given without and with them, and an
//! answer that depends on them is withdrawn.

use filemap_report::units::{number, time};

use super::answer::Answer;
use super::{AdviseRecord, MostTouches, UnseenAdvice, for_all};

/// How to record without missing touches.
const REMEDY: &str = "Record the program again with --change-settings (as root), which makes every \
                      first touch fault.";

impl AdviseRecord {
    /// Adds the advice `most` for the same program with all of the `pages` touched that the
    /// recorder may have missed. An answer that is another one there is not given.
    pub fn with_unseen(mut self, most: &AdviseRecord, pages: u64) -> Self {
        let files = self.files.iter().all(|file| {
            let other = most.files.iter().find(|other| other.name == file.name);
            other.is_some_and(|other| self.is_same(&file.answer, most, &other.answer))
        });
        let (own, own_most) = (self.own_answer(), most.own_answer());
        let is_decisive = !files || !self.is_same(&own, most, &own_most);
        let settings = self.sorted_labels(&for_all::named(&self));
        let is_setting_decisive = settings != most.sorted_labels(&for_all::named(most));
        let figures = MostTouches {
            pages_used: most.pages_used,
            now: most.now.clone(),
            answer: own
                .best
                .and_then(|at| self.position_in(most, at))
                .map(|at| most.tried[at].outcome.clone()),
            best: own_most.best.map(|at| most.tried[at].label()),
        };
        let sentence = self.unseen_text(pages, &figures, is_decisive, is_setting_decisive);
        if is_setting_decisive {
            self.withdraw_settings(own);
        }
        if is_decisive {
            self.withdraw_answer();
        }
        self.words.insert(0, sentence);
        self.unseen = Some(UnseenAdvice { pages, is_decisive, most: Some(figures) });
        self
    }

    /// Withdraws the answer, as `pages` may have been touched unseen, and nothing is known of them.
    pub fn with_unknown(mut self, pages: u64) -> Self {
        self.withdraw_answer();
        self.words.insert(
            0,
            format!(
                "{} pages may have been touched unseen while the program was recorded, and it is \
                 not known which, so the figures are lower limits and nothing is recommended. \
                 {REMEDY}",
                number(pages as f64)
            ),
        );
        self.unseen = Some(UnseenAdvice { pages, is_decisive: true, most: None });
        self
    }

    /// Whether `answer` holds in `most`, where `other` is the answer.
    fn is_same(&self, answer: &Answer, most: &AdviseRecord, other: &Answer) -> bool {
        match answer.best {
            None => other.best.is_none() || other.ties_with_now,
            Some(at) => self
                .position_in(most, at)
                .is_some_and(|at| other.best == Some(at) || other.ties.contains(&at)),
        }
    }

    /// Index in `most` of the trial `at` of this record: the one with the same changes.
    fn position_in(&self, most: &AdviseRecord, at: usize) -> Option<usize> {
        let own = self.sorted_labels(&[at]);
        (0..most.tried.len()).find(|other| most.sorted_labels(&[*other]) == own)
    }

    /// The changes of trials, in the order of their names.
    fn sorted_labels(&self, trials: &[usize]) -> Vec<&str> {
        let changes = trials.iter().flat_map(|at| &self.tried[*at].changes);
        let mut changes: Vec<&str> = changes.map(String::as_str).collect();
        changes.sort_unstable();
        changes
    }

    /// The figures without and with the touches.
    fn unseen_text(
        &self,
        pages: u64,
        most: &MostTouches,
        is_decisive: bool,
        is_setting_decisive: bool,
    ) -> String {
        let mut text = format!(
            "{} pages may have been touched unseen while the program was recorded. If none of them \
             was, it touches {} pages and reads {} in {}; if all were, {} pages, {} in {}.",
            number(pages as f64),
            number(self.pages_used as f64),
            number(self.now.data_pages_read as f64),
            time(self.now.elapsed_ns as f64),
            number(most.pages_used as f64),
            number(most.now.data_pages_read as f64),
            time(most.now.elapsed_ns as f64)
        );
        let best = self.own_answer().best.map(|at| &self.tried[at]);
        if is_decisive {
            let named = |label: Option<String>| label.map_or("nothing".to_string(), |own| own);
            let (least, other) = (named(best.map(|best| best.label())), named(most.best.clone()));
            let depends = if least == other {
                "The answer for a file depends on them".to_string()
            } else {
                format!("If none was touched, {least} helps most; if all were, {other}")
            };
            return text + &format!(" {depends}, so nothing is recommended. {REMEDY}");
        }
        if let (Some(best), Some(answer)) = (best, &most.answer) {
            text += &format!(
                " With {} it reads {} in {}, or {} in {}.",
                best.label(),
                number(best.outcome.data_pages_read as f64),
                time(best.outcome.elapsed_ns as f64),
                number(answer.data_pages_read as f64),
                time(answer.elapsed_ns as f64)
            );
        }
        if is_setting_decisive {
            text += " The best readahead size depends on them, so none is named.";
        }
        text + " The figures below are those without these touches."
    }

    /// Withdraws machine-wide settings. The answer becomes `own`, the program's, if it has one.
    fn withdraw_settings(&mut self, own: Answer) {
        let lines = for_all::lines(self);
        let settings: Vec<String> =
            for_all::named(self).iter().map(|at| self.tried[*at].label()).collect();
        self.words.retain(|line| !lines.contains(line));
        self.to_write.retain(|written| !settings.contains(&written.change));
        if self.answer.best.is_some_and(|at| self.tried[at].is_for_all()) {
            self.answer = own;
        }
    }

    /// Removes every recommendation.
    fn withdraw_answer(&mut self) {
        self.answer = Answer::default();
        self.files.iter_mut().for_each(|file| file.answer = Answer::default());
        for trial in &mut self.tried {
            if ["best", "tied"].contains(&trial.verdict.as_str()) {
                trial.verdict = "helps".to_string();
            }
        }
        // They say what would change the answer.
        self.conditions.clear();
        self.words.clear();
        self.to_write.clear();
        self.governed = None;
    }
}

#[cfg(test)]
mod tests {
    use filemap_core::address::vma::ReadHint;

    use super::super::AdviceChange;
    use super::super::tests::{on, outcome, tried};
    use super::*;

    fn advice(now: u64, random: u64, sequential: u64) -> AdviseRecord {
        let advise = |hint| AdviceChange::Madvise(on("data.mdb"), hint);
        let trials = vec![
            (advise(ReadHint::Random), outcome(random, random / 10)),
            (advise(ReadHint::Sequential), outcome(sequential, sequential / 10)),
        ];
        tried(outcome(now, now / 10), trials).with_conclusions("r", None)
    }

    fn assert_withdrawn(advice: &AdviseRecord) {
        assert!(advice.best().is_none() && advice.to_write.is_empty());
        assert!(advice.conditions.is_empty() && advice.files[0].answer.best.is_none());
        assert!(advice.tried.iter().all(|trial| !["best", "tied"].contains(&&*trial.verdict)));
        assert!(advice.unseen.as_ref().unwrap().is_decisive);
    }

    #[test]
    fn figures_are_given_without_and_with_unseen_touches() {
        let most = AdviseRecord { pages_used: 4000, ..advice(9000, 4000, 9000) };
        let advice = advice(8000, 3000, 8000).with_unseen(&most, 1000);
        assert_eq!(
            advice.words[0],
            "1000 pages may have been touched unseen while the program was recorded. If none of \
             them was, it touches 3000 pages and reads 8000 in 800 ms; if all were, 4000 pages, \
             9000 in 900 ms. With MADV_RANDOM on data.mdb it reads 3000 in 300 ms, or 4000 in 400 \
             ms. The figures below are those without these touches."
        );
        assert_eq!(advice.best().unwrap().label(), "MADV_RANDOM on data.mdb");
        let most = advice.unseen.unwrap().most.unwrap();
        assert_eq!(most.answer.unwrap().data_pages_read, 4000);
    }

    #[test]
    fn an_answer_that_depends_on_unseen_touches_is_withdrawn() {
        let most = advice(9000, 9000, 4000);
        let advice = advice(8000, 3000, 8000).with_unseen(&most, 1000);
        let [words] = &advice.words[..] else { panic!("{:?}", advice.words) };
        let expected = "If none was touched, MADV_RANDOM on data.mdb helps most; if all were, \
                        MADV_SEQUENTIAL on data.mdb, so nothing is recommended.";
        assert!(words.contains(expected), "{words}");
        assert_withdrawn(&advice);
    }

    #[test]
    fn an_answer_beside_unknown_touches_is_withdrawn() {
        let advice = advice(8000, 3000, 8000).with_unknown(500);
        assert!(advice.words[0].starts_with("500 pages may have been"), "{:?}", advice.words);
        assert_withdrawn(&advice);
    }

    /// The same two changes, in the order in which each was better.
    #[test]
    fn changes_are_the_same_in_any_order() {
        let mut one = advice(8000, 3000, 2000);
        let mut pair = one.tried[0].clone();
        pair.changes = vec!["x".to_string(), "y".to_string()];
        one.tried.push(pair);
        let mut other = one.clone();
        other.tried[2].changes.reverse();
        assert_eq!(one.position_in(&other, 2), Some(2));
    }
}
