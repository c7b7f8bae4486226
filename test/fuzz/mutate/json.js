// @ts-check
import { hostile, KEYS } from './hostile.js'

/** @typedef {import('../../support/random.js').Random} Random */
/** @typedef {{ holder: any, key: string | number }} Place */

/** Does one thing at a random place of a JSON value. @param {any} value is not changed @param {Random} random @returns {unknown} */
export function mutateJson(value, random) {
  try {
    return mutated(value, random)
  } catch (error) {
    // It is so deep already that it cannot be copied.
    if (error instanceof RangeError) return value
    throw error
  }
}

/** @param {any} value @param {Random} random @returns {unknown} */
function mutated(value, random) {
  const copy = structuredClone(value)
  const root = { '': copy }
  const places = placesIn(root)
  const { holder, key } = random.pick(places)
  const found = holder[key]
  random.pick([replace, replace, replace, retype, retype, drop, drop, rename, duplicate, add, shuffle, wrap])()
  return root['']

  function replace() {
    set(hostile(random))
  }
  function retype() {
    const isPlain = typeof found !== 'object'
    set(
      random.pick([
        isPlain ? String(found) : '',
        isPlain ? Number(found) : 0,
        Boolean(found),
        [found],
        { value: found },
        null,
        JSON.stringify(found) ?? '',
      ]),
    )
  }
  function drop() {
    if (Array.isArray(holder)) holder.splice(Number(key), 1)
    else if (holder === root) set(undefined)
    else delete holder[key]
  }
  function rename() {
    if (Array.isArray(holder) || holder === root) return replace()
    delete holder[key]
    define(holder, random.pick([...KEYS, `${key} `, String(key).toUpperCase(), `_${key}`]), found)
  }
  function duplicate() {
    if (Array.isArray(holder)) holder.splice(Number(key), 0, ...Array.from({ length: random.pick([1, 2, 300]) }, () => found))
    else if (Array.isArray(found)) found.push(...found)
    else define(holder === root ? {} : holder, `${key}2`, found)
  }
  function add() {
    if (Array.isArray(found)) found.push(hostile(random))
    else if (typeof found === 'object' && found !== null) define(found, random.pick(KEYS), hostile(random))
    else replace()
  }
  /** Two values change their places. */
  function shuffle() {
    const other = random.pick(places)
    if (other.holder === root || holder === root) return replace()
    const kept = structuredClone(other.holder[other.key])
    define(other.holder, other.key, structuredClone(found))
    set(kept)
  }
  function wrap() {
    /** @type {unknown} */
    let wrapped = found
    for (let level = random.pick([1, 3, 70, 2000]); level > 0; level--)
      wrapped = random.chance(0.5) ? [wrapped] : { [String(key)]: wrapped }
    set(wrapped)
  }
  /** @param {unknown} given */
  function set(given) {
    define(holder, key, given)
  }
}

/** JSON text, at times as no serializer would write it. @param {unknown} value @param {Random} random @returns {string} */
export function jsonText(value, random) {
  const text = written(value)
  if (!random.chance(0.06)) return text
  return random.pick([
    // The same key twice.
    () => text.replace(/\{"(\w+)":/, (_, key) => `{"${key}":null,"${key}":`),
    () => text.replace(/"(\w)(\w*)":/, (_, first, rest) => `"\\u00${first.charCodeAt(0).toString(16)}${rest}":`),
    () => text.replace(/:(\d+)/, ':1e400'),
    () => text.replace(/:(\d+|"[^"]*")/, ':NaN'),
    () => text.replace(/:(\d+|"[^"]*")/, `:${'9'.repeat(5000)}`),
    () => text.replace(/:(\d+|"[^"]*")/, ':-0'),
    () => `\ufeff${text}`,
    () => `${text}${text}`,
    () => `${text}\n${text}`,
    () => `[${text},${text}]`,
    () => text.replaceAll(',', `,${' '.repeat(200)}`),
    () => text.replaceAll('"', "'"),
    () => `${' '.repeat(100_000)}${text}`,
    () => '['.repeat(random.pick([100, 100_000])),
    () => '{"a":'.repeat(20_000),
    () => '',
  ])()
}

/** What is too deep even for who writes it is written as if it were deep alone. @param {unknown} value */
function written(value) {
  try {
    return JSON.stringify(value) ?? ''
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
    return `{"a":${'['.repeat(20_000)}${']'.repeat(20_000)}}`
  }
}

/** @param {any} root @returns {Place[]} */
function placesIn(root) {
  /** @type {Place[]} */
  const places = []
  const visit = (/** @type {any} */ holder) => {
    for (const key of Object.keys(holder)) {
      places.push({ holder, key: Array.isArray(holder) ? Number(key) : key })
      if (typeof holder[key] === 'object' && holder[key] !== null && !Buffer.isBuffer(holder[key])) visit(holder[key])
    }
  }
  visit(root)
  return places
}

/** Also `__proto__`, as `JSON.parse` would. @param {any} holder @param {string | number} key @param {unknown} value */
function define(holder, key, value) {
  Object.defineProperty(holder, key, { value, enumerable: true, configurable: true, writable: true })
}
