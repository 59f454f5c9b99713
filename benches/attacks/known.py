"""Known-client cookies of users that logged in before the run, made with the gateway's secret (docs and contract: the
layout `version · id · first success · last renewal · n · user hashes · MAC`)."""

import base64
import hashlib
import hmac

COOKIE = "__Host-lockgate-client"


def cookie(secret, host, users, identity, first, renewed):
    """The value of a cookie with up to four users; `identity` are its eight bytes, the times are seconds."""
    hashes = b"".join(hmac.digest(derive(secret, "user"), identity + user.encode(), "sha256")[:6] for user in users)
    plain = b"\x01" + identity + first.to_bytes(4, "big") + renewed.to_bytes(4, "big") + bytes([len(users)]) + hashes
    mac = hmac.digest(derive(secret, "known"), host.encode() + b"\0" + plain, "sha256")[:16]
    return base64.urlsafe_b64encode(plain + mac).rstrip(b"=").decode()


def derive(secret, label):
    """HKDF-SHA-256 (RFC 5869) without salt, one block."""
    extracted = hmac.digest(bytes(32), secret, "sha256")
    return hmac.digest(extracted, b"lockgate/1/" + label.encode() + b"\x01", hashlib.sha256)


def check():
    """The design's test vector."""
    made = cookie(bytes(range(32)), "shop.example", ["alice@example.com"], bytes(range(1, 9)), 1_800_000_000, 1_800_000_000)
    assert made == "AQECAwQFBgcIa0nSAGtJ0gAB6P6k0je3A4dhExc34oPvZlYVos4fEQ", made


if __name__ == "__main__":
    check()
