/**
 * Randomised at the source, in a browser: the twin of the Python package cloister.local.
 *
 * The same words of 64 bits give the same report in both. Every coin has a probability of `heads`/2^64 and falls on heads where a
 * word lies below `heads`; no float decides anything about a report. Shared test vectors: tests/local/vectors.json.
 *
 *     words        where randomness comes from: systemWords(), or listedWords([…]) in tests
 *     report       one randomised report: report(client, place, next); `client` is what Python's oracle.client says
 *     check        refuses a client whose numbers are not such as a protocol has; `report` checks by itself
 *
 * Whole surveys, and what is promised: cloister-survey.js. No dependencies; nothing is sent anywhere.
 */

export const WORD = 1n << 64n;
const ONES = WORD - 1n;

/** Uniform words from the browser's cryptographic source: a function that gives one BigInt a call. Used words are wiped. */
export function systemWords() {
  const block = new BigUint64Array(256);
  let left = 0;
  return () => {
    if (left === 0) {
      globalThis.crypto.getRandomValues(block);
      left = block.length;
    }
    left -= 1;
    const word = block[left];
    block[left] = 0n;
    return word;
  };
}

/** The words of a list (hexadecimal texts), for tests. What it gives can be foretold: never for a person's answer. */
export function listedWords(texts) {
  let used = 0;
  const next = () => {
    if (used === texts.length) throw new RangeError("the listed words are used up");
    used += 1;
    return BigInt(texts[used - 1]);
  };
  next.used = () => used;
  return next;
}

/** Exactly uniform on 0 … bound − 1 (bound a BigInt up to 2^63): words of the last, incomplete run are thrown away. */
export function below(bound, next) {
  if ((bound & (bound - 1n)) === 0n) return next() & (bound - 1n);
  const limit = WORD - (WORD % bound) - 1n;
  let word = next();
  while (word > limit) word = next();
  return word % bound;
}

/** One coin, one word. */
function flip(heads, next) {
  return next() < heads;
}

/** `width` coins, 64 in a word; see bit_rows in coins.py for the order in which words are drawn. */
export function bitRow(heads, width, next) {
  const lanes = Math.ceil(width / 64);
  const result = new Array(lanes).fill(heads >= WORD ? ONES : 0n);
  if (heads > 0n && heads < WORD) {
    const undecided = new Array(lanes).fill(ONES);
    let where = result.map((_, lane) => lane);
    for (let place = 63n; where.length > 0; place -= 1n) {
      const bit = (heads >> place) & 1n;
      for (const lane of where) {
        const drawn = next();
        if (bit) {
          result[lane] |= undecided[lane] & (drawn ^ ONES);
          undecided[lane] &= drawn;
        } else {
          undecided[lane] &= drawn ^ ONES;
        }
      }
      if ((heads & ((1n << place) - 1n)) === 0n) break; // only zeros are left of heads: what is undecided is tails
      where = where.filter((lane) => undecided[lane] !== 0n);
    }
  }
  if (width % 64) result[lanes - 1] &= (1n << BigInt(width % 64)) - 1n;
  return result;
}

const hex = (word) => "0x" + word.toString(16);

/** For each protocol: how a place becomes a report. `client` is what Python's oracle.client says, `next` gives words. */
const PROTOCOLS = {
  response(client, place, next) {
    const truth = flip(BigInt(client.heads), next);
    return truth ? place : 1 - place;
  },

  direct(client, place, next) {
    const truth = flip(BigInt(client.heads), next);
    const other = Number(below(BigInt(client.size - 1), next));
    return truth ? place : other + (other >= place ? 1 : 0);
  },

  unary(client, place, next) {
    const row = bitRow(BigInt(client.rise), client.size, next);
    const stays = flip(BigInt(client.stay), next);
    const lane = Math.floor(place / 64);
    const bit = 1n << BigInt(place % 64);
    row[lane] = stays ? row[lane] | bit : row[lane] & (bit ^ ONES);
    return row.map(hex);
  },

  ticks(client, places, next) {
    const risen = bitRow(BigInt(client.rise), client.size, next);
    const stayed = bitRow(BigInt(client.stay), client.size, next);
    const mask = new Array(risen.length).fill(0n);
    for (const place of places) mask[Math.floor(place / 64)] |= 1n << BigInt(place % 64);
    return risen.map((lane, index) => hex(lane ^ (mask[index] & (lane ^ stayed[index]))));
  },

  hashing(client, place, next) {
    const number = Number(below(BigInt(functionsOf(client)), next));
    const truth = flip(BigInt(client.heads), next);
    const other = Number(below(BigInt(client.field - 1), next));
    const hash = hashed(client, number, place);
    return number * client.field + (truth ? hash : other + (other >= hash ? 1 : 0));
  },

  subset(client, place, next) {
    const others = client.size - 1;
    const inside = flip(BigInt(client.inside), next);
    const [taken, picked] = [new Set(), []];
    for (let last = others - client.picks; last < others; last += 1) {
      const drawn = Number(below(BigInt(last + 1), next));
      const number = taken.has(drawn) ? last : drawn;
      taken.add(number);
      picked.push(number);
    }
    const leaves = Number(below(BigInt(client.picks), next));
    const row = new Array(Math.ceil(client.size / 64)).fill(0n);
    picked.forEach((number, turn) => {
      const value = inside && turn === leaves ? place : number + (number >= place ? 1 : 0);
      row[Math.floor(value / 64)] |= 1n << BigInt(value % 64);
    });
    return row.map(hex);
  },

  hadamard(client, place, next) {
    const [order, tied] = [client.order, client.order / 2];
    const blocks = Math.ceil(client.size / (order - 1));
    const [block, row] = [Math.floor(place / (order - 1)), (place % (order - 1)) + 1];
    const coin = flip(BigInt(client.heads), next);
    const inside = Number(below(BigInt(tied), next));
    const outside = Number(below(BigInt(blocks * order - tied), next));
    if (coin || outside < tied) return block * order + completed(coin ? inside : outside, row, !coin);
    const [other, column] = [Math.floor((outside - tied) / order), (outside - tied) % order];
    return (other + (other >= block ? 1 : 0)) * order + column;
  },

  heavy(client, text, next) {
    const places = prefixPlaces(client, text);
    const level = Number(below(BigInt(places.length), next));
    const { hashing } = client;
    return level * functionsOf(hashing) * hashing.field + PROTOCOLS.hashing(hashing, places[level], next);
  },

  window(client, value, next) {
    return cellOf(client, pointOf(client, value, client.steps, next), next);
  },

  sign(client, value, next) {
    return signOf(client, BigInt(client.heads), value, next);
  },

  hybrid(client, value, next) {
    const chosen = flip(BigInt(client.choice), next);
    const sign = signOf(client, BigInt(client.sign), value, next);
    const cell = cellOf(client, pointOf(client, value, client.steps, next), next);
    return chosen ? 2 + cell : sign;
  },

  /** A number that may be left out (null): see AmountChannel in amounts.py. */
  number(client, value, next) {
    const { low, high, steps } = client.value;
    let filled = (low + high) / 2;
    if (client.fill === "uniform") {
      const point = Number(below(BigInt(steps + 1), next));
      filled = Math.min(low + (high - low) * (point / steps), high);
    }
    const told = report(client.value, value === null ? filled : value, next);
    return [told, report(client.answered, value === null ? 0 : 1, next)];
  },
};

/** The product of two digits of GF(size): modulo a prime, or as polynomials of bits. */
function product(left, right, client) {
  if (!client.polynomial) return (left * right) % client.field;
  let result = 0;
  for (; right > 0; right >>= 1) {
    if (right & 1) result ^= left;
    left <<= 1;
    if (left & client.field) left ^= client.polynomial;
  }
  return result;
}

/** The value of a place under the function of a number. */
function hashed(client, number, place) {
  const g = client.field;
  if (client.digits === 1) return place;
  let [power, first] = [1, 0]; // g^j, and the number of the first function with j digits after its leading 1
  while (first + power <= number) {
    first += power;
    power *= g;
  }
  let [vector, rest, result] = [number + power - first, place, 0];
  for (let digit = 0; digit < client.digits; digit += 1) {
    const term = product(vector % g, rest % g, client);
    result = client.polynomial ? result ^ term : (result + term) % g;
    vector = Math.floor(vector / g);
    rest = Math.floor(rest / g);
  }
  return result;
}

function functionsOf(client) {
  let [count, power] = [0, 1];
  for (let digit = 0; digit < client.digits; digit += 1) {
    count += power;
    power *= client.field;
  }
  return count;
}

/** A number with one bit more, at the highest bit of `row`, such that the parity of (result & row) is as told. */
function completed(number, row, odd) {
  const place = 31 - Math.clz32(row);
  const low = number & ((1 << place) - 1);
  const spread = ((number - low) << 1) | low;
  return spread | ((parity(spread & row) ^ (odd ? 1 : 0)) << place);
}

function parity(bits) {
  let odd = 0;
  for (; bits !== 0; bits &= bits - 1) odd ^= 1;
  return odd;
}

const CHAIN = 0x9e3779b97f4a7c15n;
const FINGER = 0xd1b54a32d192ed03n;

/** A public hash of words of 64 bits, one to one (mixing.py). */
function mixed(word) {
  let out = word;
  out = ((out ^ (out >> 30n)) * 0xbf58476d1ce4e5b9n) & ONES;
  out = ((out ^ (out >> 27n)) * 0x94d049bb133111ebn) & ONES;
  return out ^ (out >> 31n);
}

const extended = (state, block) => mixed(state ^ (block + 1n));

/** The blocks of bits of a text of at most `length` bytes, followed by zeros. */
function blocksOf(client, text) {
  const octets = new TextEncoder().encode(text);
  if (octets.length > client.length || octets.includes(0)) throw new RangeError(`the word is longer than ${client.length} bytes`);
  let number = 0n;
  for (let index = 0; index < client.length; index += 1) number = (number << 8n) | BigInt(octets[index] || 0);
  let left = BigInt(8 * client.length);
  return client.widths.map((width) => {
    left -= BigInt(width);
    return (number >> left) & ((1n << BigInt(width)) - 1n);
  });
}

/** Where each prefix of a text is counted, level by level. */
function prefixPlaces(client, text) {
  const blocks = blocksOf(client, text);
  const finger = blocks.reduce(extended, FINGER) >> BigInt(64 - client.fingerprint);
  const places = [(blocks[0] << BigInt(client.fingerprint)) | finger];
  let state = mixed(CHAIN ^ places[0]);
  for (const block of blocks.slice(1)) {
    state = extended(state, block);
    places.push(state >> BigInt(64 - client.places));
  }
  return places.map(Number);
}

/** A number's point on a grid: the one below or above it, by a coin that keeps its mean. Privacy does not rest on this step. */
function pointOf(client, value, steps, next) {
  const position = ((value - client.low) / (client.high - client.low)) * steps;
  const lower = Math.floor(position);
  const heads = BigInt(Math.floor((position - lower) * 2 ** 64));
  return lower + (next() < heads ? 1 : 0);
}

/** A cell for a point: in its window, or uniform among all others. All three draws are always made. */
function cellOf(client, point, next) {
  const stays = flip(BigInt(client.heads), next);
  const near = Number(below(BigInt(client.width), next));
  const far = Number(below(BigInt(client.outputs - client.width), next));
  const cell = point + (client.shift || 0) + (stays ? near : client.width + far);
  return ((cell % client.outputs) + client.outputs) % client.outputs;
}

/** A number goes to an end of its interval by a coin, and the end or its opposite is told. */
function signOf(client, heads, value, next) {
  const end = pointOf(client, value, 1, next);
  return flip(heads, next) ? end : 1 - end;
}

/** One randomised report of one place (for ticks: of a list of places), as the plain JSON that Python reads. */
export function report(client, place, next = systemWords()) {
  check(client);
  if (!takes(client, place)) throw new RangeError("the answer is not among those of this protocol");
  return PROTOCOLS[client.protocol](client, place, next);
}

const whole = (number, least, most) => Number.isSafeInteger(number) && number >= least && number <= most;
const coins = (client, ...names) => names.every((name) => COIN.test(client[name]) && BigInt(client[name]) <= WORD);
const bounded = ({ low, high, dimensions }) => dimensions === 1 && low < high && Number.isFinite(high - low);
const COIN = /^0x[0-9a-f]{1,17}$/;
const LARGEST = 2 ** 31;

/** For each protocol: what its client must say, so that its reports have the law that its odds are worked out for. */
const CLIENTS = {
  response: (client) => client.size === 2 && coins(client, "heads"),
  direct: (client) => whole(client.size, 2, LARGEST) && coins(client, "heads"),
  unary: (client) => whole(client.size, 2, LARGEST) && coins(client, "stay", "rise"),
  ticks: (client) => CLIENTS.unary(client) && whole(client.most, 1, client.size),
  subset: (client) => whole(client.size, 2, LARGEST) && whole(client.picks, 1, client.size - 1) && coins(client, "inside"),
  hadamard({ size, order, ...client }) {
    return whole(size, 2, LARGEST) && whole(order, 2, 2 ** 29) && (order & (order - 1)) === 0 && coins(client, "heads");
  },
  hashing({ size, field, polynomial, digits, ...client }) {
    const sound = whole(size, 2, LARGEST) && whole(field, 2, LARGEST) && whole(digits, 1, 31) && coins(client, "heads");
    if (!sound || field ** digits < size || field ** digits > 2 ** 51) return false; // all hashes differ; numbers stay exact
    return polynomial === 0 ? field <= 2 ** 26 : (field & (field - 1)) === 0 && whole(polynomial, field, 2 * field - 1);
  },
  heavy({ length, widths, fingerprint, places, hashing }) {
    const sound = whole(length, 2, 128) && Array.isArray(widths) && widths.every((width) => whole(width, 1, 30));
    if (!sound || widths.reduce((sum, width) => sum + width, 0) !== 8 * length || !whole(places, 1, 31)) return false;
    if (!whole(fingerprint, 1, 30) || widths[0] + fingerprint > places || hashing?.protocol !== "hashing") return false;
    return CLIENTS.hashing(hashing) && 2 ** places <= hashing.size;
  },
  window(client) {
    const sound = whole(client.steps, 1, 2 ** 20) && whole(client.outputs, 2, LARGEST) && whole(client.width, 1, client.outputs - 1);
    return sound && whole(client.shift ?? 0, -client.outputs, client.outputs) && bounded(client) && coins(client, "heads");
  },
  sign: (client) => bounded(client) && coins(client, "heads"),
  hybrid: (client) => CLIENTS.window(client) && coins(client, "sign", "choice"),
  number({ value, answered, fill }) {
    if (!["window", "hybrid", "sign"].includes(value?.protocol) || answered?.protocol !== "response") return false;
    if (fill !== "middle" && !(fill === "uniform" && whole(value.steps, 1, 2 ** 20))) return false;
    return CLIENTS[value.protocol](value) && CLIENTS.response(answered);
  },
};

/** Refuse a client whose numbers are of another kind or size: what is promised is worked out from them, and holds only then. */
export function check(client) {
  if (!Object.hasOwn(PROTOCOLS, client.protocol))
    throw new RangeError(`this page does not know the protocol ${client.protocol}: it is of another version`);
  if ((client.dimensions ?? 1) !== 1) throw new RangeError("this page reports one number at a time");
  if (!CLIENTS[client.protocol](client)) throw new RangeError(`the survey's numbers for ${client.protocol} are not sound`);
}

/** Whether an answer is one that the protocol is for: beyond these, a report could show what no promise covers. */
function takes(client, place) {
  const { protocol, size, low, high } = client;
  if (protocol === "heavy") return typeof place === "string";
  if (protocol === "number") return place === null || takes(client.value, place);
  if (low !== undefined) return typeof place === "number" && place >= low && place <= high;
  if (protocol !== "ticks") return whole(place, 0, size - 1);
  const sound = Array.isArray(place) && place.length <= client.most && new Set(place).size === place.length;
  return sound && place.every((each) => whole(each, 0, size - 1));
}
