//! The trace: one hour of a site that allows each source 100 requests a minute, made from a seed.
//!
//! | kind | sources | what they do |
//! | --- | ---: | --- |
//! | steady | 88 % | people and feed readers: at random moments, all hour long, at a rate of their own; the rates have a heavy tail (log-normal, median 0.2 a minute) that ends at 30 a minute |
//! | bursty | 10 % | browsers: a visit of 20 minutes on average, a page every two minutes on average; a page is 5 requests or more within two seconds, heavy-tailed (Pareto, exponent 1.3), at most 90 |
//! | aligned | 0.98 % | jobs that start with the minute, every 1, 5 or 15 minutes: a batch of 3 requests or more within two seconds, heavy-tailed (Pareto, exponent 1.2), at most 95 |
//! | seam | 0.02 % | those who play the window: 100 requests in the last second of a minute and 100 in the first of the next, all hour long |
//! | near | 0.9 % | clients that keep just below the limit: evenly paced, 80 to 99 a minute, a tenth of jitter, for ten minutes on average |
//! | above | 0.1 % | scrapers and loops: at random moments, at 1.1 times the limit or more, heavy-tailed (Pareto, exponent 1.5), at most 50 times, for five minutes on average |
//!
//! The mix was fixed before the first measurement: nearly all sources of a site are far below any
//! limit, a few are near it, and the few that are above it send far more than their share. It has
//! more of what is hard to judge than a quiet site would have.

/// How many sources there are.
pub const SOURCES: usize = 270_000;
/// How many requests a source may send in a [`PERIOD`].
pub const LIMIT: u64 = 100;
/// The window.
pub const PERIOD: u64 = 60 * SECOND;

const SECOND: u64 = 1_000_000_000;
const MINUTE: f64 = 60.0;
const HOUR: f64 = 3600.0;
/// Thursday 2026-01-01, 00:00 UTC.
const START: u64 = 1_767_225_600 * SECOND;
const SEED: u64 = 0x006c_6f63_6b67_6174;

/// How a source behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Steady,
    Bursty,
    Aligned,
    Seam,
    Near,
    Above,
}

/// The kinds with their sources in 10,000.
pub const MIX: [(Kind, u64); 6] = [
    (Kind::Steady, 8_800),
    (Kind::Bursty, 1_000),
    (Kind::Aligned, 98),
    (Kind::Seam, 2),
    (Kind::Near, 90),
    (Kind::Above, 10),
];

/// A source's requests, in seconds since the start while they are made.
struct Source {
    random: Random,
    moments: Vec<f64>,
}

/// SplitMix64.
struct Random(u64);

/// The moments of the requests of the source with this number, in nanoseconds since the epoch, in
/// order, with its kind.
pub fn source(number: usize) -> (Kind, Vec<u64>) {
    let mut source = Source {
        random: Random(SEED.wrapping_add((number as u64) << 20)),
        moments: Vec::new(),
    };
    let kind = source.kind();
    source.fill(kind);
    (kind, source.into_moments())
}

// === impl Source ===

impl Source {
    fn kind(&mut self) -> Kind {
        let mut ticket = self.random.next() % 10_000;
        for (kind, share) in MIX {
            if ticket < share {
                return kind;
            }
            ticket -= share;
        }
        Kind::Steady
    }

    fn fill(&mut self, kind: Kind) {
        match kind {
            Kind::Steady => self.steady(),
            Kind::Bursty => self.bursty(),
            Kind::Aligned => self.aligned(),
            Kind::Seam => self.seam(),
            Kind::Near => self.near(),
            Kind::Above => self.above(),
        }
    }

    fn steady(&mut self) {
        let a_minute = (0.2 * (1.2 * self.random.normal()).exp()).min(30.0);
        self.at_random(0.0, HOUR, a_minute);
    }

    fn bursty(&mut self) {
        let begin = self.random.between(0.0, HOUR);
        let end = begin + self.random.wait(20.0 * MINUTE);
        let mut page = begin;
        while page < end {
            let size = self.random.pareto(5.0, 1.3).min(90.0);
            self.batch(page, 2.0, size as usize);
            page += self.random.wait(2.0 * MINUTE);
        }
    }

    fn aligned(&mut self) {
        let every = [1.0, 5.0, 15.0][(self.random.next() % 3) as usize] * MINUTE;
        let size = self.random.pareto(3.0, 1.2).min(95.0) as usize;
        let mut begin = 0.0;
        while begin < HOUR {
            self.batch(begin, 2.0, size);
            begin += every;
        }
    }

    fn seam(&mut self) {
        for minute in 1..60 {
            let seam = f64::from(minute) * MINUTE;
            self.batch(seam - 1.0, 1.0, LIMIT as usize);
            self.batch(seam, 1.0, LIMIT as usize);
        }
    }

    fn near(&mut self) {
        let begin = self.random.between(0.0, HOUR);
        let end = begin + self.random.wait(10.0 * MINUTE);
        let gap = MINUTE / self.random.between(80.0, 99.0);
        let mut turn = begin;
        while turn < end {
            let late = self.random.between(0.0, 0.1 * gap);
            self.moments.push(turn + late);
            turn += gap;
        }
    }

    fn above(&mut self) {
        let begin = self.random.between(0.0, HOUR);
        let end = begin + self.random.wait(5.0 * MINUTE);
        let times = self.random.pareto(1.1, 1.5).min(50.0);
        self.at_random(begin, end, LIMIT as f64 * times);
    }

    fn at_random(&mut self, begin: f64, end: f64, a_minute: f64) {
        let mut moment = begin + self.random.wait(MINUTE / a_minute);
        while moment < end {
            self.moments.push(moment);
            moment += self.random.wait(MINUTE / a_minute);
        }
    }

    fn batch(&mut self, begin: f64, length: f64, size: usize) {
        for _ in 0..size {
            let moment = self.random.between(begin, begin + length);
            self.moments.push(moment);
        }
    }

    fn into_moments(self) -> Vec<u64> {
        let inside = self.moments.into_iter().filter(|moment| *moment < HOUR);
        let mut moments: Vec<u64> = inside.map(|moment| START + (moment * 1e9) as u64).collect();
        moments.sort_unstable();
        moments
    }
}

// === impl Random ===

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Above 0, at most 1.
    fn unit(&mut self) -> f64 {
        ((self.next() >> 11) + 1) as f64 / (1u64 << 53) as f64
    }

    fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.unit()
    }

    /// Exponential: how long until the next of what comes `mean` apart on average.
    fn wait(&mut self, mean: f64) -> f64 {
        -mean * self.unit().ln()
    }

    fn pareto(&mut self, least: f64, exponent: f64) -> f64 {
        least / self.unit().powf(1.0 / exponent)
    }

    /// Box and Muller's.
    fn normal(&mut self) -> f64 {
        let radius = (-2.0 * self.unit().ln()).sqrt();
        radius * (std::f64::consts::TAU * self.unit()).cos()
    }
}
