//! How often each algorithm is wrong, on a trace from a seed: against the exact log of the same
//! requests. Prints a line for each algorithm, mode and kind of source; `run` makes a report of
//! them.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "not part of the gateway"
)]

mod measure;
mod trace;

use std::thread;

use lockgate::limit::Limiter;

use measure::{Mode, Score, limiters, measure};
use trace::{MIX, SOURCES, source};

const MODES: [Mode; 2] = [Mode::Throttle, Mode::Count];

/// The scores by mode, algorithm and kind.
type Scores = Vec<Vec<Vec<Score>>>;

fn main() {
    let limiters = limiters();
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let scores = thread::scope(|scope| {
        let parts: Vec<_> = (0..threads)
            .map(|first| {
                scope.spawn({
                    let limiters = &limiters;
                    move || run(limiters, (first..SOURCES).step_by(threads))
                })
            })
            .collect();
        let mut parts = parts.into_iter().map(|part| part.join().unwrap());
        let mut scores = parts.next().unwrap();
        parts.for_each(|part| add(&mut scores, part));
        scores
    });
    print(&limiters, &scores);
}

fn run(limiters: &[(&str, Limiter)], numbers: impl Iterator<Item = usize>) -> Scores {
    let mut scores = vec![vec![vec![Score::default(); MIX.len()]; limiters.len()]; MODES.len()];
    for number in numbers {
        let (kind, moments) = source(number);
        let kind = MIX.iter().position(|(known, _)| *known == kind).unwrap();
        for (mode, scores) in MODES.iter().zip(&mut scores) {
            for ((_, limiter), scores) in limiters.iter().zip(scores) {
                scores[kind] += measure(limiter, *mode, &moments);
            }
        }
    }
    scores
}

fn add(scores: &mut Scores, other: Scores) {
    let ours = scores.iter_mut().flatten().flatten();
    ours.zip(other.into_iter().flatten().flatten())
        .for_each(|(ours, theirs)| *ours += theirs);
}

fn print(limiters: &[(&str, Limiter)], scores: &Scores) {
    for (mode, scores) in MODES.iter().zip(scores) {
        for ((name, _), scores) in limiters.iter().zip(scores) {
            let mut whole = Score::default();
            for ((kind, _), score) in MIX.iter().zip(scores) {
                line(&format!("{mode:?} {name} {kind:?}"), score);
                whole += *score;
            }
            line(&format!("{mode:?} {name} All"), &whole);
        }
    }
}

#[allow(clippy::print_stdout, reason = "this program is for its output")]
fn line(head: &str, score: &Score) {
    println!(
        "{head} {} {} {} {} {} {} {} {}",
        score.sources,
        score.requests,
        score.wrongly_admitted,
        score.wrongly_refused,
        score.far_off,
        score.limited_below,
        score.spared_above,
        score.mean_error(),
    );
}
