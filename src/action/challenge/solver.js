// Solves a challenge: for each part, finds the first number whose PBKDF2 hash starts with enough zero bits.
const HASHES_AT_ONCE = 16, RETRIES = 3, BUSY_RETRIES = 30;
async function findSolution(challenge, onProgress, signal) {
  const text = new TextEncoder(), salt = text.encode(challenge.salt), limit = 2 ** (32 - challenge.bits);
  const derivation = { name: "PBKDF2", hash: "SHA-256", salt, iterations: challenge.iterations };
  const hash = async (password) => {
    const key = await crypto.subtle.importKey("raw", text.encode(password), "PBKDF2", false, ["deriveBits"]);
    return new DataView(await crypto.subtle.deriveBits(derivation, key, 256)).getUint32(0);
  };
  const solution = [];
  for (let first = 0; solution.length < challenge.parts; first += HASHES_AT_ONCE) {
    if (signal && signal.aborted) throw signal.reason;
    const passwords = Array.from({ length: HASHES_AT_ONCE }, (_, n) => `${challenge.salt}.${solution.length}.${first + n}`);
    const found = (await Promise.all(passwords.map(hash))).findIndex((start) => start < limit);
    if (found < 0) continue;
    solution.push(first + found);
    first = -HASHES_AT_ONCE;
    onProgress(solution.length, challenge.parts);
  }
  return solution;
}
async function postSolution(url, body, credentials, signal) {
  const pause = (seconds) => new Promise((resolve) => setTimeout(resolve, 1000 * seconds));
  const headers = { "content-type": "application/json" };
  for (let failures = 0, busy = 0; ; ) {
    try {
      const response = await fetch(url, { method: "POST", headers, credentials, signal, body: JSON.stringify(body) });
      if (response.status !== 503 || ++busy > BUSY_RETRIES) return response;
      await pause(Math.max(1, parseInt(response.headers.get("retry-after"), 10) || 1));
    } catch (error) {
      if ((signal && signal.aborted) || ++failures > RETRIES) throw error;
      await pause(2);
    }
  }
}
