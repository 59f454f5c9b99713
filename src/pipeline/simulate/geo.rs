//! The geo data of a simulated request.

use std::net::IpAddr;

use super::Simulation;
use crate::facts::GeoSource;
use crate::geo::continent;

/// The geo data of the client: that of the simulation, or else of the databases.
pub(super) struct SimulatedGeo<'a>(pub(super) &'a Simulation, pub(super) &'a dyn GeoSource);

// === impl SimulatedGeo ===

impl GeoSource for SimulatedGeo<'_> {
    fn asn(&self, ip: IpAddr) -> Option<u32> {
        self.0.asn.or_else(|| self.1.asn(ip))
    }

    fn country(&self, ip: IpAddr) -> Option<[u8; 2]> {
        self.0.country.or_else(|| self.1.country(ip))
    }

    /// Returns the continent. A simulated country implies it, as an override in the configuration does.
    fn continent(&self, ip: IpAddr) -> Option<[u8; 2]> {
        let found = || self.1.continent(ip);
        self.0.country.map_or_else(found, continent::of)
    }
}
