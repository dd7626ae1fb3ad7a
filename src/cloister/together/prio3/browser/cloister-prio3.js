/**
 * A report of a joint survey, in a browser: the twin of the Python package cloister.together.prio3.
 *
 *     digestOf      what a survey's shares are bound to: its text, as both servers have it
 *     reportOf      one report: reportOf(survey, values, helper); values by question, as whole numbers from 0
 *     shard         one value in shares for two servers, with the proof that it is valid (draft-irtf-cfrg-vdaf-20)
 *     seal          HPKE (RFC 9180) to the helper's key: DHKEM(P-256, HKDF-SHA256), HKDF-SHA256, AES-128-GCM
 *
 * The same random bytes give the same shares in both (tests/together/prio3/browser.test.mjs). No dependencies; nothing is sent.
 */

const SEED = 32;
const USAGE = { value: 1, proof: 2, joint: 3, prove: 4, jointSeed: 6, jointPart: 7 };
const P64 = { modulus: (1n << 32n) * 4294967295n + 1n, size: 8, seventh: 4294967295n, order: 1n << 32n };
const P128 = { modulus: (1n << 66n) * 4611686018427387897n + 1n, size: 16, seventh: 4611686018427387897n, order: 1n << 66n };
const bytesOf = (text) => new TextEncoder().encode(text);

// Bytes

export function joined(...parts) {
  const made = new Uint8Array(parts.reduce((sum, each) => sum + each.length, 0));
  let at = 0;
  for (const each of parts) {
    made.set(each, at);
    at += each.length;
  }
  return made;
}

export const hex = (bytes) => Array.from(bytes, (each) => each.toString(16).padStart(2, "0")).join("");
export const unhex = (text) => Uint8Array.from(text.match(/../g) ?? [], (each) => Number.parseInt(each, 16));

// TurboSHAKE128: Keccak's last twelve rounds (RFC 9861)

const ONES = (1n << 64n) - 1n;
const ROUNDS = [
  0x8000808bn, 0x800000000000008bn, 0x8000000000008089n, 0x8000000000008003n, 0x8000000000008002n, 0x8000000000000080n,
  0x800an, 0x800000008000000an, 0x8000000080008081n, 0x8000000000008080n, 0x80000001n, 0x8000000080008008n,
];
const RATE = 168;
const turned = (word, by) => ((word << by) | (word >> (64n - by))) & ONES;
const TURNS = [];
{ // ρ and π: the lane that stands at (x, y) goes to (y, 2x + 3y), turned by a triangular number
  let [x, y] = [1, 0];
  for (let step = 1; step <= 24; step += 1) {
    const [nx, ny] = [y, (2 * x + 3 * y) % 5];
    TURNS.push([x + 5 * y, nx + 5 * ny, BigInt(((step * (step + 1)) / 2) % 64)]);
    [x, y] = [nx, ny];
  }
}

function permute(state) {
  for (const constant of ROUNDS) {
    const columns = [0, 1, 2, 3, 4].map((x) => state[x] ^ state[x + 5] ^ state[x + 10] ^ state[x + 15] ^ state[x + 20]);
    for (let x = 0; x < 5; x += 1) {
      const parity = columns[(x + 4) % 5] ^ turned(columns[(x + 1) % 5], 1n);
      for (let lane = x; lane < 25; lane += 5) state[lane] ^= parity;
    }
    const moved = [...state];
    for (const [from, to, by] of TURNS) moved[to] = by ? turned(state[from], by) : state[from];
    for (let row = 0; row < 25; row += 5) {
      for (let x = 0; x < 5; x += 1) {
        state[row + x] = moved[row + x] ^ (~moved[row + ((x + 1) % 5)] & ONES & moved[row + ((x + 2) % 5)]);
      }
    }
    state[0] ^= constant;
  }
}

/** A stream of bytes that follows from a message: called with a number, it gives the next ones. */
export function turboShake128(message) {
  const padded = new Uint8Array(Math.ceil((message.length + 1) / RATE) * RATE);
  padded.set(message);
  padded[message.length] = 1;
  padded[padded.length - 1] ^= 0x80;
  const state = Array(25).fill(0n);
  const view = new DataView(padded.buffer);
  for (let block = 0; block < padded.length; block += RATE) {
    for (let lane = 0; lane < RATE / 8; lane += 1) state[lane] ^= view.getBigUint64(block + 8 * lane, true);
    permute(state);
  }
  const out = new Uint8Array(RATE);
  const into = new DataView(out.buffer);
  let used = RATE;
  let first = true;
  return (count) => {
    const found = new Uint8Array(count);
    for (let at = 0; at < count; at += 1) {
      if (used === RATE) {
        if (!first) permute(state);
        first = false;
        for (let lane = 0; lane < RATE / 8; lane += 1) into.setBigUint64(8 * lane, state[lane], true);
        used = 0;
      }
      found[at] = out[used];
      used += 1;
    }
    return found;
  };
}

// Numbers of a field

const rest = (value, field) => ((value % field.modulus) + field.modulus) % field.modulus;

function power(base, exponent, field) {
  let [found, square] = [1n, rest(base, field)];
  for (let left = exponent; left > 0n; left >>= 1n) {
    if (left & 1n) found = (found * square) % field.modulus;
    square = (square * square) % field.modulus;
  }
  return found;
}

const inverse = (value, field) => power(value, field.modulus - 2n, field);

function numberOf(bytes) {
  let found = 0n;
  for (let at = bytes.length - 1; at >= 0; at -= 1) found = (found << 8n) | BigInt(bytes[at]);
  return found;
}

function encoded(vector, field) {
  const made = new Uint8Array(vector.length * field.size);
  vector.forEach((each, place) => {
    for (let at = 0, left = each; at < field.size; at += 1, left >>= 8n) made[place * field.size + at] = Number(left & 255n);
  });
  return made;
}

const minus = (left, right, field) => left.map((each, at) => rest(each - right[at], field));
const dot = (left, right, field) => left.reduce((sum, each, at) => (sum + each * right[at]) % field.modulus, 0n);

function roots(n, field) {
  const root = power(power(7n, field.seventh, field), field.order / BigInt(n), field);
  const found = [1n];
  while (found.length < n) found.push((found[found.length - 1] * root) % field.modulus);
  return found;
}

/** The values of a polynomial at the roots of unity. */
function transform(coefficients, field) {
  const n = coefficients.length;
  if (n === 1) return coefficients;
  const even = transform(coefficients.filter((_, at) => at % 2 === 0), field);
  const odd = transform(coefficients.filter((_, at) => at % 2 === 1), field);
  const all = roots(n, field);
  const twisted = odd.map((each, at) => (each * all[at]) % field.modulus);
  return [...even.map((each, at) => (each + twisted[at]) % field.modulus), ...even.map((each, at) => rest(each - twisted[at], field))];
}

/** The values of the same polynomial at twice as many roots of unity. */
function doubled(values, field) {
  const n = values.length;
  const found = transform(values, field);
  const scale = inverse(BigInt(n), field);
  const all = roots(2 * n, field);
  const shifted = found.map((_, at) => (((found[(n - at) % n] * scale) % field.modulus) * all[at]) % field.modulus);
  const between = transform(shifted, field);
  return values.flatMap((each, at) => [each, between[at]]);
}

// What may be sent: as circuits.py has it

export function count() {
  const field = P64;
  return {
    field, identifier: 1, arity: 2, calls: 1, joint: 0,
    encode: (value) => [BigInt(value)],
    gadget: ([one, other]) => (one * other) % field.modulus,
    run: (bits, joint, gadget) => gadget([bits[0], bits[0]]),
  };
}

export function sum(largest) {
  const field = P64;
  const length = largest.toString(2).length;
  const last = largest - 2 ** (length - 1) + 1;
  return {
    field, identifier: 2, arity: 1, calls: length, joint: 0,
    encode: (value) => {
      const top = value >= 2 ** (length - 1) ? 1 : 0;
      const left = value - top * last;
      return [...Array.from({ length: length - 1 }, (_, at) => BigInt(Math.floor(left / 2 ** at) % 2)), BigInt(top)];
    },
    gadget: ([one]) => rest(one * (one - 1n), field),
    run: (bits, joint, gadget) => bits.forEach((each) => gadget([each])),
  };
}

/** The whole number nearest to the root, as Python rounds it: halves can't be, since no root of a whole number is one. */
const chunkOf = (buckets) => Math.max(1, Math.round(Math.sqrt(buckets)));

export function histogram(buckets, chunk = chunkOf(buckets)) {
  const field = P128;
  const calls = Math.ceil(buckets / chunk);
  return {
    field, identifier: 4, arity: 2 * chunk, calls, joint: calls,
    encode: (value) => Array.from({ length: buckets }, (_, at) => (at === value ? 1n : 0n)),
    gadget: (inputs) => {
      let found = 0n;
      for (let at = 0; at < inputs.length; at += 2) found += inputs[at] * inputs[at + 1];
      return found % field.modulus;
    },
    run: (bits, joint, gadget) => {
      for (let call = 0; call < calls; call += 1) {
        const inputs = [];
        let weight = joint[call];
        for (let at = call * chunk; at < (call + 1) * chunk; at += 1) {
          const each = bits[at] ?? 0n;
          inputs.push((weight * each) % field.modulus, rest(each - 1n, field));
          weight = (weight * joint[call]) % field.modulus;
        }
        gadget(inputs);
      }
    },
  };
}

/** The circuit of a question. */
export function circuitOf(question) {
  if (question.kind === "number") return sum(question.high - question.low);
  return question.kind === "yes-no" ? count() : histogram(question.options.length);
}

// Shares

function hash(circuit, context, seed, usage, binder) {
  const number = (value, size) => Uint8Array.from({ length: size }, (_, at) => Math.floor(value / 256 ** (size - 1 - at)) % 256);
  const domain = joined(Uint8Array.of(18, 0), number(circuit.identifier, 4), number(usage, 2), context);
  const length = Uint8Array.of(domain.length % 256, domain.length >> 8);
  return turboShake128(joined(length, domain, Uint8Array.of(seed.length), seed, binder));
}

function expanded(circuit, context, seed, usage, binder, length) {
  const stream = hash(circuit, context, seed, usage, binder);
  const found = [];
  while (found.length < length) {
    const value = numberOf(stream(circuit.field.size));
    if (value < circuit.field.modulus) found.push(value);
  }
  return found;
}

function proved(circuit, bits, seeds, joint) {
  const points = 2 ** circuit.calls.toString(2).length;
  const wires = seeds.map((seed) => [seed, ...Array(points - 1).fill(0n)]);
  let call = 0;
  circuit.run(bits, joint, (inputs) => {
    call += 1;
    inputs.forEach((each, wire) => { wires[wire][call] = each; });
  });
  const finer = wires.map((wire) => doubled(wire, circuit.field));
  const outputs = finer[0].map((_, at) => circuit.gadget(finer.map((wire) => wire[at])));
  return [...seeds, ...outputs.slice(0, -1)];
}

/** How many random bytes a report of this circuit is made of. */
export const randomBytes = (circuit) => SEED * 2 * (circuit.joint ? 2 : 1);

/** One value in shares for two servers; `drawn` has `randomBytes` of them. */
export function shard(circuit, context, value, nonce, drawn) {
  const { field } = circuit;
  const bits = circuit.encode(value);
  const seeds = Array.from({ length: drawn.length / SEED }, (_, at) => drawn.slice(at * SEED, (at + 1) * SEED));
  const none = new Uint8Array();
  const [seed, blind, own, proveSeed] = circuit.joint ? seeds : [seeds[0], none, none, seeds[1]];
  const place = Uint8Array.of(1);
  const share = expanded(circuit, context, seed, USAGE.value, place, bits.length);
  const first = minus(bits, share, field);
  let open = none;
  let joint = [];
  if (circuit.joint) {
    const part = (at, secret, numbers) =>
      hash(circuit, context, secret, USAGE.jointPart, joined(Uint8Array.of(at), nonce, encoded(numbers, field)))(SEED);
    open = joined(part(0, own, first), part(1, blind, share));
    const jointSeed = hash(circuit, context, new Uint8Array(SEED), USAGE.jointSeed, open)(SEED);
    joint = expanded(circuit, context, jointSeed, USAGE.joint, Uint8Array.of(1), circuit.joint);
  }
  const proveSeeds = expanded(circuit, context, proveSeed, USAGE.prove, Uint8Array.of(1), circuit.arity);
  const proof = proved(circuit, bits, proveSeeds, joint);
  const theirs = expanded(circuit, context, seed, USAGE.proof, Uint8Array.of(1, 1), proof.length);
  return {
    open,
    shares: [joined(encoded(first, field), encoded(minus(proof, theirs, field), field), own), joined(seed, blind)],
  };
}

// HPKE

const zeros = new Uint8Array(32);
const SUITE = Uint8Array.of(0, 0x10, 0, 1, 0, 1);

async function mac(key, ...parts) {
  const made = await crypto.subtle.importKey("raw", key.length ? key : zeros, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  return new Uint8Array(await crypto.subtle.sign("HMAC", made, joined(...parts)));
}

const extract = (suite, salt, label, secret) => mac(salt, bytesOf("HPKE-v1"), suite, bytesOf(label), secret);

async function expand(suite, key, label, info, length) {
  const found = await mac(key, Uint8Array.of(0, length), bytesOf("HPKE-v1"), suite, bytesOf(label), info, Uint8Array.of(1));
  return found.slice(0, length);
}

/** A secret for the holder of the key whose public half is `helper`; `about` is authenticated with it. */
export async function seal(helper, secret, info, about) {
  const curve = { name: "ECDH", namedCurve: "P-256" };
  const theirs = await crypto.subtle.importKey("raw", helper, curve, false, []);
  const own = await crypto.subtle.generateKey(curve, false, ["deriveBits"]);
  const point = new Uint8Array(await crypto.subtle.exportKey("raw", own.publicKey));
  const agreed = new Uint8Array(await crypto.subtle.deriveBits({ name: "ECDH", public: theirs }, own.privateKey, 256));
  const kem = joined(bytesOf("KEM"), SUITE.slice(0, 2));
  const first = await extract(kem, zeros, "eae_prk", agreed);
  const shared = await expand(kem, first, "shared_secret", joined(point, helper), 32);
  const suite = joined(bytesOf("HPKE"), SUITE);
  const none = new Uint8Array();
  const told = [await extract(suite, zeros, "psk_id_hash", none), await extract(suite, zeros, "info_hash", info)];
  const context = joined(Uint8Array.of(0), ...told);
  const inner = await extract(suite, shared, "secret", none);
  const key = await crypto.subtle.importKey("raw", await expand(suite, inner, "key", context, 16), "AES-GCM", false, ["encrypt"]);
  const iv = await expand(suite, inner, "base_nonce", context, 12);
  const sealed = await crypto.subtle.encrypt({ name: "AES-GCM", iv, additionalData: about }, key, secret);
  return joined(point, new Uint8Array(sealed));
}

// Surveys

/** As Python's json.dumps(…, sort_keys=True, separators=(",", ":"), ensure_ascii=False) writes it. */
function canonical(value) {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  return `{${Object.keys(value).sort().map((name) => `${JSON.stringify(name)}:${canonical(value[name])}`).join(",")}}`;
}

const sha256 = async (bytes) => new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));

/** What the shares of a survey are bound to. */
export async function digestOf(survey) {
  const { id, title, questions } = survey;
  return hex(await sha256(bytesOf(canonical({ id, title, questions }))));
}

/** A key's fingerprint, as institutions read it to each other. */
export async function fingerprintOf(key) {
  return hex((await sha256(key)).slice(0, 10)).match(/..../g).join(" ");
}

/** One report: the leader's shares as they are, the helper's under its seal. `values` are whole numbers from 0, by question. */
export async function reportOf(survey, values, helper, random = (count) => crypto.getRandomValues(new Uint8Array(count))) {
  const digest = await digestOf(survey);
  const nonce = random(16);
  const made = survey.questions.map((question, place) => {
    const circuit = circuitOf(question);
    return shard(circuit, bytesOf(`${digest} ${place}`), values[place], nonce, random(randomBytes(circuit)));
  });
  const about = joined(bytesOf(digest), nonce, ...made.map((each) => each.open));
  const sealed = await seal(helper, joined(...made.map((each) => each.shares[1])), bytesOf("cloister joint survey 1"), about);
  return {
    nonce: hex(nonce),
    public: made.map((each) => hex(each.open)),
    shares: made.map((each) => hex(each.shares[0])),
    sealed: hex(sealed),
  };
}
