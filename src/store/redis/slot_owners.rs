//! Which server of a Cluster has which slots.

use redis::Value;

/// The number of hash slots of a Cluster.
const SLOTS: u16 = 16_384;

/// The name of the owner of slots that no server has.
const NO_SERVER: &str = "none";

/// The masters of a Cluster and their slots.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct SlotOwners {
    /// In order.
    ranges: Vec<SlotRange>,
    /// The addresses of the masters.
    names: Vec<String>,
}

/// Consecutive slots of one owner.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct SlotRange {
    first: u16,
    last: u16,
    owner: usize,
}

// === impl SlotOwners ===

impl SlotOwners {
    /// Reads the reply to `CLUSTER SLOTS`. `None` if it makes no sense.
    pub(super) fn read(reply: &Value) -> Option<Self> {
        let mut owners = Self::default();
        let Value::Array(ranges) = reply else {
            return None;
        };
        for range in ranges {
            let Value::Array(range) = range else {
                return None;
            };
            let [first, last, Value::Array(master), ..] = range.as_slice() else {
                return None;
            };
            let (first, last) = (slot(first)?, slot(last)?);
            let owner = owners.add_name(name(master)?);
            owners.ranges.push(SlotRange { first, last, owner });
        }
        owners.ranges.sort_unstable();
        Some(owners)
    }

    /// The number of owners. The last one stands for the slots that no server has.
    pub(super) fn count(&self) -> usize {
        self.names.len() + 1
    }

    /// The address of an owner.
    pub(super) fn name(&self, owner: usize) -> String {
        self.names
            .get(owner)
            .map_or(NO_SERVER, String::as_str)
            .to_owned()
    }

    /// The owner of a key.
    pub(super) fn owner(&self, key: &[u8]) -> usize {
        let slot = slot_of(key);
        let after = self.ranges.partition_point(|range| range.first <= slot);
        let range = after
            .checked_sub(1)
            .and_then(|index| self.ranges.get(index));
        let range = range.filter(|range| slot <= range.last);
        range.map_or(self.names.len(), |range| range.owner)
    }

    fn add_name(&mut self, name: String) -> usize {
        let known = self.names.iter().position(|known| *known == name);
        known.unwrap_or_else(|| {
            self.names.push(name);
            self.names.len() - 1
        })
    }
}

fn slot(value: &Value) -> Option<u16> {
    let Value::Int(slot) = value else {
        return None;
    };
    u16::try_from(*slot).ok().filter(|slot| *slot < SLOTS)
}

/// The address of a server. The host can be empty.
fn name(server: &[Value]) -> Option<String> {
    let [host, Value::Int(port), ..] = server else {
        return None;
    };
    let host = match host {
        Value::BulkString(host) => String::from_utf8_lossy(host),
        Value::SimpleString(host) => host.into(),
        _ => "".into(),
    };
    Some(format!("{host}:{port}"))
}

/// The slot of a key: the CRC-16 of the part in braces, or of the whole key if there is none.
fn slot_of(key: &[u8]) -> u16 {
    let braced = key.iter().position(|byte| *byte == b'{').and_then(|open| {
        let rest = key.get(open + 1..)?;
        let end = rest.iter().position(|byte| *byte == b'}')?;
        rest.get(..end).filter(|braced| !braced.is_empty())
    });
    let bytes = braced.unwrap_or(key).iter();
    let crc = bytes.fold(0_u16, |crc, byte| {
        (0..8).fold(crc ^ u16::from(*byte) << 8, |crc, _| {
            let shifted = crc << 1;
            if crc & 0x8000 == 0 {
                shifted
            } else {
                shifted ^ 0x1021
            }
        })
    });
    crc % SLOTS
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(first: i64, last: i64, host: &str, port: i64) -> Value {
        let host = Value::BulkString(host.into());
        let master = Value::Array(vec![host, Value::Int(port), Value::BulkString("id".into())]);
        Value::Array(vec![Value::Int(first), Value::Int(last), master])
    }

    #[test]
    fn keys_have_the_slots_of_redis() {
        assert_eq!(slot_of(b"123456789"), 12_739);
        assert_eq!(slot_of(b"foo"), 12_182);
        assert_eq!(slot_of(b"a{foo}b"), slot_of(b"foo"));
        assert_eq!(slot_of(b"a{}b"), slot_of(b"a{}b"));
        assert_ne!(slot_of(b"{}foo"), slot_of(b"foo"));
    }

    #[test]
    fn a_key_belongs_to_the_server_of_its_slot() {
        let ranges = [
            range(12_182, 12_200, "10.0.0.2", 7),
            range(0, 99, "10.0.0.1", 6),
            range(12_739, 12_739, "10.0.0.1", 6),
        ];
        let owners = SlotOwners::read(&Value::Array(ranges.into())).unwrap();
        let owner = |key: &str| owners.name(owners.owner(key.as_bytes()));
        assert_eq!(owner("foo"), "10.0.0.2:7");
        assert_eq!(owner("123456789"), "10.0.0.1:6");
        assert_eq!(owner("bar"), "none");
        assert_eq!(owners.count(), 3);
    }

    #[test]
    fn replies_that_make_no_sense_are_refused() {
        let nothing = Value::Array(vec![Value::Nil]);
        for reply in [
            Value::Nil,
            nothing,
            Value::Array(vec![range(0, 16_384, "a", 1)]),
        ] {
            assert_eq!(SlotOwners::read(&reply), None);
        }
    }
}
