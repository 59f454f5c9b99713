//! The continent of a country, for databases that know only countries.
//!
//! ISO 3166-1 alpha-2, and two further codes that databases use: `XK` for Kosovo, `EU` for a European network
//! without a country. A country on two continents has the one that GeoNames and MaxMind assign. Codes without a
//! location have no continent: `T1`, which is Tor, or `ZZ`.

/// Returns the continent of `country`, both as two capital letters. `None` if it has no continent.
pub fn of(country: [u8; 2]) -> Option<[u8; 2]> {
    let found = TABLE.binary_search_by_key(&country, |(country, _)| **country);
    let (_, continent) = TABLE.get(found.ok()?)?;
    Some(**continent)
}

/// Sorted by country.
#[rustfmt::skip]
pub(super) const TABLE: &[(&[u8; 2], &[u8; 2])] = &[
    (b"AD", b"EU"), (b"AE", b"AS"), (b"AF", b"AS"), (b"AG", b"NA"), (b"AI", b"NA"), (b"AL", b"EU"),
    (b"AM", b"AS"), (b"AO", b"AF"), (b"AQ", b"AN"), (b"AR", b"SA"), (b"AS", b"OC"), (b"AT", b"EU"),
    (b"AU", b"OC"), (b"AW", b"NA"), (b"AX", b"EU"), (b"AZ", b"AS"), (b"BA", b"EU"), (b"BB", b"NA"),
    (b"BD", b"AS"), (b"BE", b"EU"), (b"BF", b"AF"), (b"BG", b"EU"), (b"BH", b"AS"), (b"BI", b"AF"),
    (b"BJ", b"AF"), (b"BL", b"NA"), (b"BM", b"NA"), (b"BN", b"AS"), (b"BO", b"SA"), (b"BQ", b"NA"),
    (b"BR", b"SA"), (b"BS", b"NA"), (b"BT", b"AS"), (b"BV", b"AN"), (b"BW", b"AF"), (b"BY", b"EU"),
    (b"BZ", b"NA"), (b"CA", b"NA"), (b"CC", b"AS"), (b"CD", b"AF"), (b"CF", b"AF"), (b"CG", b"AF"),
    (b"CH", b"EU"), (b"CI", b"AF"), (b"CK", b"OC"), (b"CL", b"SA"), (b"CM", b"AF"), (b"CN", b"AS"),
    (b"CO", b"SA"), (b"CR", b"NA"), (b"CU", b"NA"), (b"CV", b"AF"), (b"CW", b"NA"), (b"CX", b"OC"),
    (b"CY", b"EU"), (b"CZ", b"EU"), (b"DE", b"EU"), (b"DJ", b"AF"), (b"DK", b"EU"), (b"DM", b"NA"),
    (b"DO", b"NA"), (b"DZ", b"AF"), (b"EC", b"SA"), (b"EE", b"EU"), (b"EG", b"AF"), (b"EH", b"AF"),
    (b"ER", b"AF"), (b"ES", b"EU"), (b"ET", b"AF"), (b"EU", b"EU"), (b"FI", b"EU"), (b"FJ", b"OC"),
    (b"FK", b"SA"), (b"FM", b"OC"), (b"FO", b"EU"), (b"FR", b"EU"), (b"GA", b"AF"), (b"GB", b"EU"),
    (b"GD", b"NA"), (b"GE", b"AS"), (b"GF", b"SA"), (b"GG", b"EU"), (b"GH", b"AF"), (b"GI", b"EU"),
    (b"GL", b"NA"), (b"GM", b"AF"), (b"GN", b"AF"), (b"GP", b"NA"), (b"GQ", b"AF"), (b"GR", b"EU"),
    (b"GS", b"AN"), (b"GT", b"NA"), (b"GU", b"OC"), (b"GW", b"AF"), (b"GY", b"SA"), (b"HK", b"AS"),
    (b"HM", b"AN"), (b"HN", b"NA"), (b"HR", b"EU"), (b"HT", b"NA"), (b"HU", b"EU"), (b"ID", b"AS"),
    (b"IE", b"EU"), (b"IL", b"AS"), (b"IM", b"EU"), (b"IN", b"AS"), (b"IO", b"AS"), (b"IQ", b"AS"),
    (b"IR", b"AS"), (b"IS", b"EU"), (b"IT", b"EU"), (b"JE", b"EU"), (b"JM", b"NA"), (b"JO", b"AS"),
    (b"JP", b"AS"), (b"KE", b"AF"), (b"KG", b"AS"), (b"KH", b"AS"), (b"KI", b"OC"), (b"KM", b"AF"),
    (b"KN", b"NA"), (b"KP", b"AS"), (b"KR", b"AS"), (b"KW", b"AS"), (b"KY", b"NA"), (b"KZ", b"AS"),
    (b"LA", b"AS"), (b"LB", b"AS"), (b"LC", b"NA"), (b"LI", b"EU"), (b"LK", b"AS"), (b"LR", b"AF"),
    (b"LS", b"AF"), (b"LT", b"EU"), (b"LU", b"EU"), (b"LV", b"EU"), (b"LY", b"AF"), (b"MA", b"AF"),
    (b"MC", b"EU"), (b"MD", b"EU"), (b"ME", b"EU"), (b"MF", b"NA"), (b"MG", b"AF"), (b"MH", b"OC"),
    (b"MK", b"EU"), (b"ML", b"AF"), (b"MM", b"AS"), (b"MN", b"AS"), (b"MO", b"AS"), (b"MP", b"OC"),
    (b"MQ", b"NA"), (b"MR", b"AF"), (b"MS", b"NA"), (b"MT", b"EU"), (b"MU", b"AF"), (b"MV", b"AS"),
    (b"MW", b"AF"), (b"MX", b"NA"), (b"MY", b"AS"), (b"MZ", b"AF"), (b"NA", b"AF"), (b"NC", b"OC"),
    (b"NE", b"AF"), (b"NF", b"OC"), (b"NG", b"AF"), (b"NI", b"NA"), (b"NL", b"EU"), (b"NO", b"EU"),
    (b"NP", b"AS"), (b"NR", b"OC"), (b"NU", b"OC"), (b"NZ", b"OC"), (b"OM", b"AS"), (b"PA", b"NA"),
    (b"PE", b"SA"), (b"PF", b"OC"), (b"PG", b"OC"), (b"PH", b"AS"), (b"PK", b"AS"), (b"PL", b"EU"),
    (b"PM", b"NA"), (b"PN", b"OC"), (b"PR", b"NA"), (b"PS", b"AS"), (b"PT", b"EU"), (b"PW", b"OC"),
    (b"PY", b"SA"), (b"QA", b"AS"), (b"RE", b"AF"), (b"RO", b"EU"), (b"RS", b"EU"), (b"RU", b"EU"),
    (b"RW", b"AF"), (b"SA", b"AS"), (b"SB", b"OC"), (b"SC", b"AF"), (b"SD", b"AF"), (b"SE", b"EU"),
    (b"SG", b"AS"), (b"SH", b"AF"), (b"SI", b"EU"), (b"SJ", b"EU"), (b"SK", b"EU"), (b"SL", b"AF"),
    (b"SM", b"EU"), (b"SN", b"AF"), (b"SO", b"AF"), (b"SR", b"SA"), (b"SS", b"AF"), (b"ST", b"AF"),
    (b"SV", b"NA"), (b"SX", b"NA"), (b"SY", b"AS"), (b"SZ", b"AF"), (b"TC", b"NA"), (b"TD", b"AF"),
    (b"TF", b"AN"), (b"TG", b"AF"), (b"TH", b"AS"), (b"TJ", b"AS"), (b"TK", b"OC"), (b"TL", b"OC"),
    (b"TM", b"AS"), (b"TN", b"AF"), (b"TO", b"OC"), (b"TR", b"AS"), (b"TT", b"NA"), (b"TV", b"OC"),
    (b"TW", b"AS"), (b"TZ", b"AF"), (b"UA", b"EU"), (b"UG", b"AF"), (b"UM", b"OC"), (b"US", b"NA"),
    (b"UY", b"SA"), (b"UZ", b"AS"), (b"VA", b"EU"), (b"VC", b"NA"), (b"VE", b"SA"), (b"VG", b"NA"),
    (b"VI", b"NA"), (b"VN", b"AS"), (b"VU", b"OC"), (b"WF", b"OC"), (b"WS", b"OC"), (b"XK", b"EU"),
    (b"YE", b"AS"), (b"YT", b"AF"), (b"ZA", b"AF"), (b"ZM", b"AF"), (b"ZW", b"AF"),
];
