//! Gradient-boosted trees of depth two, and the area under the curve.

/// Thresholds that are tried for a feature.
const BINS: usize = 32;
const ROUNDS: usize = 80;
const RATE: f64 = 0.15;

/// A sum of trees.
pub struct Model(Vec<Tree>);

struct Tree {
    root: Split,
    left: Leaf,
    right: Leaf,
}

/// Which side: at most the threshold, or more.
#[derive(Clone, Copy)]
struct Split {
    feature: usize,
    threshold: f64,
}

enum Leaf {
    Value(f64),
    Split(Split, f64, f64),
}

struct Data<'a> {
    rows: &'a [Vec<f64>],
    thresholds: Vec<Vec<f64>>,
    gradients: Vec<f64>,
    weights: Vec<f64>,
}

impl Model {
    /// Learns to tell the labels of the rows in `train`.
    pub fn train(rows: &[Vec<f64>], labels: &[bool], train: &[usize]) -> Self {
        let mut data = Data {
            rows,
            thresholds: thresholds(rows, train),
            gradients: vec![0.0; rows.len()],
            weights: vec![0.0; rows.len()],
        };
        let mut scores = vec![0.0; rows.len()];
        let mut trees = Vec::new();
        for _ in 0..ROUNDS {
            for &at in train {
                let chance = 1.0 / (1.0 + f64::exp(-scores[at]));
                data.gradients[at] = f64::from(labels[at]) - chance;
                data.weights[at] = (chance * (1.0 - chance)).max(1e-6);
            }
            let Some(tree) = data.tree(train) else { break };
            for &at in train {
                scores[at] += tree.value(&rows[at]);
            }
            trees.push(tree);
        }
        Self(trees)
    }

    fn score(&self, row: &[f64]) -> f64 {
        self.0.iter().map(|tree| tree.value(row)).sum()
    }
}

impl Tree {
    fn value(&self, row: &[f64]) -> f64 {
        let leaf = if self.root.is_left(row) {
            &self.left
        } else {
            &self.right
        };
        match leaf {
            Leaf::Value(value) => *value,
            Leaf::Split(split, left, _) if split.is_left(row) => *left,
            Leaf::Split(_, _, right) => *right,
        }
    }
}

impl Split {
    fn is_left(&self, row: &[f64]) -> bool {
        row[self.feature] <= self.threshold
    }
}

impl Data<'_> {
    fn tree(&self, train: &[usize]) -> Option<Tree> {
        let root = self.split(train)?;
        let (left, right): (Vec<usize>, Vec<usize>) =
            train.iter().partition(|at| root.is_left(&self.rows[**at]));
        Some(Tree {
            root,
            left: self.leaf(&left),
            right: self.leaf(&right),
        })
    }

    fn leaf(&self, rows: &[usize]) -> Leaf {
        let Some(split) = self.split(rows) else {
            return Leaf::Value(self.value(rows));
        };
        let (left, right): (Vec<usize>, Vec<usize>) =
            rows.iter().partition(|at| split.is_left(&self.rows[**at]));
        Leaf::Split(split, self.value(&left), self.value(&right))
    }

    fn value(&self, rows: &[usize]) -> f64 {
        let sum = |of: &[f64]| rows.iter().map(|at| of[*at]).sum::<f64>();
        RATE * sum(&self.gradients) / (sum(&self.weights) + 1.0)
    }

    /// The split that gains most.
    fn split(&self, rows: &[usize]) -> Option<Split> {
        let sum = |of: &[f64]| rows.iter().map(|at| of[*at]).sum::<f64>();
        let (all, weight) = (sum(&self.gradients), sum(&self.weights));
        let gain = |gradient: f64, weight: f64| gradient * gradient / (weight + 1.0);
        let mut best: Option<(f64, Split)> = None;
        for (feature, thresholds) in self.thresholds.iter().enumerate() {
            let mut bins = vec![(0.0, 0.0, 0usize); thresholds.len() + 1];
            for at in rows {
                let value = self.rows[*at][feature];
                let bin = &mut bins[thresholds.partition_point(|threshold| *threshold < value)];
                bin.0 += self.gradients[*at];
                bin.1 += self.weights[*at];
                bin.2 += 1;
            }
            let (mut gradient, mut left, mut count) = (0.0, 0.0, 0);
            for (bin, threshold) in bins.iter().zip(thresholds) {
                (gradient, left, count) = (gradient + bin.0, left + bin.1, count + bin.2);
                if count < 20 || rows.len() - count < 20 {
                    continue;
                }
                let gained = gain(gradient, left) + gain(all - gradient, weight - left);
                if best.is_none_or(|(most, _)| gained > most) {
                    let threshold = *threshold;
                    best = Some((gained, Split { feature, threshold }));
                }
            }
        }
        best.map(|(_, split)| split)
    }
}

fn thresholds(rows: &[Vec<f64>], train: &[usize]) -> Vec<Vec<f64>> {
    let features = rows.first().map_or(0, Vec::len);
    let of = |feature: usize| {
        let mut values: Vec<f64> = train.iter().map(|at| rows[*at][feature]).collect();
        values.sort_by(f64::total_cmp);
        let at = |bin: usize| values[bin * (values.len() - 1) / BINS];
        let mut found: Vec<f64> = (0..BINS).map(at).collect();
        found.dedup();
        found
    };
    (0..features).map(of).collect()
}

/// The area under the curve for the rows in `test`.
pub fn area(model: &Model, rows: &[Vec<f64>], labels: &[bool], test: &[usize]) -> f64 {
    area_of(
        test.iter()
            .map(|at| (model.score(&rows[*at]), labels[*at]))
            .collect(),
    )
}

/// How likely a shadow has a higher score than a real one; ties count half.
pub fn area_of(mut scores: Vec<(f64, bool)>) -> f64 {
    scores.sort_by(|a, b| a.0.total_cmp(&b.0));
    let positives = scores.iter().filter(|(_, label)| *label).count() as f64;
    let negatives = scores.len() as f64 - positives;
    let (mut below, mut won) = (0.0, 0.0);
    for tied in scores.chunk_by(|a, b| a.0 == b.0) {
        let here = tied.iter().filter(|(_, label)| *label).count() as f64;
        let others = tied.len() as f64 - here;
        won += here * (below + others / 2.0);
        below += others;
    }
    won / (positives * negatives)
}
