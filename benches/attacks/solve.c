/* Solves proof-of-work challenges: a line "SALT ITERATIONS BITS PARTS" in, "MICROSECONDS I0 I1 …" out.
 *
 * For each part j it looks for an integer i such that PBKDF2-HMAC-SHA-256("SALT.j.i", SALT, ITERATIONS)
 * starts with BITS zero bits. Sixteen candidates are tried at once in the lanes of GCC vectors, as an
 * attacker would do it. The time is CPU time.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define LANES 16
typedef uint32_t vec __attribute__((vector_size(4 * LANES)));

static const uint32_t K[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};
static const uint32_t INITIAL[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                    0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};

static inline vec rotate(vec x, int n) { return (x >> n) | (x << (32 - n)); }

/* One compression of SHA-256 in every lane (FIPS 180-4, section 6.2.2). */
static void compress(vec state[8], const vec block[16]) {
    vec w[16], a = state[0], b = state[1], c = state[2], d = state[3];
    vec e = state[4], f = state[5], g = state[6], h = state[7];
    memcpy(w, block, sizeof w);
#pragma GCC unroll 64
    for (int i = 0; i < 64; i++) {
        if (i >= 16) {
            vec x = w[(i + 1) & 15], y = w[(i + 14) & 15];
            w[i & 15] += w[(i + 9) & 15] + (rotate(x, 7) ^ rotate(x, 18) ^ (x >> 3)) +
                         (rotate(y, 17) ^ rotate(y, 19) ^ (y >> 10));
        }
        vec one = h + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) + ((e & f) ^ (~e & g)) + K[i] + w[i & 15];
        vec two = (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
        h = g, g = f, f = e, e = d + one, d = c, c = b, b = a, a = one + two;
    }
    state[0] += a, state[1] += b, state[2] += c, state[3] += d;
    state[4] += e, state[5] += f, state[6] += g, state[7] += h;
}

static void put(vec block[16], int lane, int at, uint8_t byte) {
    block[at / 4][lane] |= (uint32_t)byte << (24 - 8 * (at % 4));
}

static void start(vec state[8]) {
    for (int i = 0; i < 8; i++) state[i] = INITIAL[i] - (vec){0};
}

/* The second and last block of an HMAC over 32 bytes: the digest, padding and the length, 96 bytes. */
static void digest_block(vec block[16], const vec digest[8]) {
    memset(block, 0, 16 * sizeof(vec));
    memcpy(block, digest, 8 * sizeof(vec));
    block[8] += 0x80000000u, block[15] += 96 * 8;
}

/* The first word of the derived keys of LANES candidates, beginning with `first`. */
static vec derive(const char *salt, int part, uint32_t first, int iterations) {
    vec inner[8], outer[8], block[16], pad[16], state[8], sum[8];
    char password[64];
    memset(block, 0, sizeof block);
    for (int lane = 0; lane < LANES; lane++) {
        int length = snprintf(password, sizeof password, "%s.%d.%u", salt, part, first + lane);
        for (int i = 0; i < length; i++) put(block, lane, i, password[i]);
    }
    start(inner), start(outer);
    for (int i = 0; i < 16; i++) pad[i] = block[i] ^ 0x36363636u;
    compress(inner, pad);
    for (int i = 0; i < 16; i++) pad[i] = block[i] ^ 0x5c5c5c5cu;
    compress(outer, pad);
    memset(block, 0, sizeof block);
    int length = strlen(salt);
    for (int lane = 0; lane < LANES; lane++) {
        for (int i = 0; i < length; i++) put(block, lane, i, salt[i]);
        put(block, lane, length + 3, 1), put(block, lane, length + 4, 0x80);
    }
    block[15] += (64 + length + 4) * 8;
    memset(sum, 0, sizeof sum);
    for (int round = 0; round < iterations; round++) {
        memcpy(state, inner, sizeof state);
        compress(state, block);
        digest_block(block, state);
        memcpy(state, outer, sizeof state);
        compress(state, block);
        digest_block(block, state);
        sum[0] ^= state[0];
    }
    return sum[0];
}

static uint32_t solve(const char *salt, int part, int iterations, int bits) {
    for (uint32_t first = 0;; first += LANES) {
        vec found = derive(salt, part, first, iterations);
        for (int lane = 0; lane < LANES; lane++)
            if (found[lane] >> (32 - bits) == 0) return first + lane;
    }
}

int main(void) {
    char salt[32];
    int iterations, bits, parts;
    while (scanf("%31s %d %d %d", salt, &iterations, &bits, &parts) == 4) {
        uint32_t found[64];
        clock_t before = clock();
        for (int part = 0; part < parts && part < 64; part++) found[part] = solve(salt, part, iterations, bits);
        printf("%ld", (long)((clock() - before) * 1000000 / CLOCKS_PER_SEC));
        for (int part = 0; part < parts && part < 64; part++) printf(" %u", found[part]);
        puts("");
        fflush(stdout);
    }
    return 0;
}
