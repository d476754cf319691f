//! Touches that the recorder may have missed: every figure becomes an interval, and an answer that
//! depends on them is withdrawn.

use filemap_report::units::{number, time};

use super::answer::Answer;
use super::{AdviseRecord, TrialOutcome, UnseenAdvice, for_all};

impl AdviseRecord {
    /// Adds the advice `most` for the same program with all of the `pages` touched that the
    /// recorder may have missed. An answer that is another one there is not given.
    pub fn with_unseen(mut self, most: &AdviseRecord, pages: u64) -> Self {
        let trial_of = |most: &AdviseRecord, at: usize| {
            most.tried.iter().position(|trial| trial.label() == self.tried[at].label())
        };
        let (own, own_most) = (self.own_answer(), most.own_answer());
        let is_stable = match own.best {
            None => own_most.best.is_none() || own_most.ties_with_now,
            Some(at) => trial_of(most, at)
                .is_some_and(|at| own_most.best == Some(at) || own_most.ties.contains(&at)),
        };
        let label = |advice: &AdviseRecord, at: usize| advice.tried[at].label();
        let named = |advice: &AdviseRecord| {
            for_all::named(advice).into_iter().map(|at| label(advice, at)).collect::<Vec<_>>()
        };
        let settings = named(&self);
        let is_setting_stable = settings == named(most);
        let unseen = UnseenAdvice {
            pages,
            pages_used: most.pages_used,
            now: most.now.clone(),
            answer: own
                .best
                .and_then(|at| trial_of(most, at))
                .map(|at| most.tried[at].outcome.clone()),
            best: own_most.best.map(|at| label(most, at)),
        };
        let sentence = self.unseen_text(&unseen, (is_stable, is_setting_stable));
        if !is_setting_stable {
            let lines = for_all::lines(&self);
            self.words.retain(|line| !lines.contains(line));
            self.to_write.retain(|written| !settings.contains(&written.change));
            if self.answer.best.is_some_and(|at| self.tried[at].is_for_all()) {
                self.answer = own;
            }
        }
        if !is_stable {
            self.withdraw_answer();
        }
        self.words.insert(0, sentence);
        self.unseen = Some(unseen);
        self
    }

    /// The intervals in words. The two flags say whether the program's own answer and the settings
    /// of the machine are the same either way.
    fn unseen_text(
        &self,
        unseen: &UnseenAdvice,
        (is_stable, is_setting_stable): (bool, bool),
    ) -> String {
        let mut text = format!(
            "{} pages may have been touched unseen while the program was recorded: it touches {} \
             pages, and reads {} in {}.",
            number(unseen.pages as f64),
            range(self.pages_used, unseen.pages_used, number),
            pages_range(&self.now, &unseen.now),
            range(self.now.elapsed_ns, unseen.now.elapsed_ns, time)
        );
        let best = self.own_answer().best.map(|at| &self.tried[at]);
        if !is_stable {
            let nothing = "to change nothing";
            let [least, most] = [best.map(|best| best.label()), unseen.best.clone()]
                .map(|label| label.unwrap_or_else(|| nothing.to_string()));
            return text
                + &format!(
                    " What is best depends on these pages: {least} without touches of them, \
                     {most} with touches of all. So nothing is recommended; record the program \
                     again on a less busy machine, or as root with --change-settings."
                );
        }
        if let (Some(best), Some(answer)) = (best, &unseen.answer) {
            text += &format!(
                " With {} it reads {} in {}.",
                best.label(),
                pages_range(&best.outcome, answer),
                range(best.outcome.elapsed_ns, answer.elapsed_ns, time)
            );
        }
        if !is_setting_stable {
            text += " The best readahead size depends on these pages, so none is named.";
        }
        text + " The figures below are those without touches of these pages."
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
        self.words.clear();
        self.to_write.clear();
        self.governed = None;
    }
}

fn pages_range(least: &TrialOutcome, most: &TrialOutcome) -> String {
    range(least.data_pages_read, most.data_pages_read, number)
}

/// `3000 to 4000`, or one figure where both are shown alike.
fn range(one: u64, other: u64, show: impl Fn(f64) -> String) -> String {
    let [least, most] = [one.min(other), one.max(other)].map(|figure| show(figure as f64));
    if least == most { least } else { format!("{least} to {most}") }
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

    #[test]
    fn figures_become_intervals() {
        let most = AdviseRecord { pages_used: 4000, ..advice(9000, 4000, 9000) };
        let advice = advice(8000, 3000, 8000).with_unseen(&most, 1000);
        assert_eq!(
            advice.words[0],
            "1000 pages may have been touched unseen while the program was recorded: it touches \
             3000 to 4000 pages, and reads 8000 to 9000 in 800 ms to 900 ms. With MADV_RANDOM on \
             data.mdb it reads 3000 to 4000 in 300 ms to 400 ms. The figures below are those \
             without touches of these pages."
        );
        assert_eq!(advice.best().unwrap().label(), "MADV_RANDOM on data.mdb");
        assert_eq!(advice.unseen.unwrap().answer.unwrap().data_pages_read, 4000);
    }

    #[test]
    fn an_answer_that_depends_on_unseen_touches_is_withdrawn() {
        let most = advice(9000, 9000, 4000);
        let advice = advice(8000, 3000, 8000).with_unseen(&most, 1000);
        let [words] = &advice.words[..] else { panic!("{:?}", advice.words) };
        assert!(words.contains("MADV_RANDOM on data.mdb without touches of them, "), "{words}");
        assert!(words.contains("MADV_SEQUENTIAL on data.mdb with touches of all"), "{words}");
        assert!(advice.best().is_none() && advice.to_write.is_empty());
        assert!(advice.tried.iter().all(|trial| !["best", "tied"].contains(&&*trial.verdict)));
    }
}
