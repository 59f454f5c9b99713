//! The load: requests at random times for keys whose popularity follows Zipf's law, from a seed.

/// SplitMix64.
pub struct Random(u64);

/// Keys of which the k-th is requested in proportion to 1/k.
pub struct ZipfKeys {
    /// The sum of the shares up to each key.
    cumulative: Vec<f64>,
}

// === impl Random ===

impl Random {
    /// A generator with this seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A number of 64 random bits.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// At least 0, below 1.
    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A whole number below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        (self.unit() * end as f64) as u64
    }

    /// An exponentially distributed wait, in whole microseconds.
    pub fn wait(&mut self, mean: f64) -> u64 {
        (-mean * (1.0 - self.unit()).ln()) as u64
    }
}

/// Distributes the bits of a number evenly.
pub fn mix(number: u64) -> u64 {
    let mut z = number;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

// === impl ZipfKeys ===

impl ZipfKeys {
    /// The given number of keys.
    pub fn new(keys: usize) -> Self {
        let mut sum = 0.0;
        let shares = (1..=keys).map(|rank| {
            sum += 1.0 / rank as f64;
            sum
        });
        let cumulative: Vec<f64> = shares.collect();
        Self {
            cumulative: cumulative.iter().map(|part| part / sum).collect(),
        }
    }

    /// Draws a key.
    pub fn draw(&self, random: &mut Random) -> usize {
        let point = random.unit();
        let key = self.cumulative.partition_point(|part| *part <= point);
        key.min(self.cumulative.len() - 1)
    }
}
