// @ts-check
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** Every way in which base64 can hold a text, whatever stands before it: at each of three places in a group of four characters. @param {string} text */
function inBase64(text) {
  return [0, 1, 2].map((shift) => {
    const whole = Buffer.from(' '.repeat(shift) + text).toString('base64url')
    // What also depends on other bytes is left out.
    return whole.slice(Math.ceil((shift * 4) / 3), Math.floor(((shift + text.length) * 8) / 6))
  })
}

/** How often a payment token, or a payload of x402, can begin in a JSON. */
const MARKS = [...inBase64('payment+jwt'), ...inBase64('"x402Version"')]
const FAST = new RegExp(`${MARKS.join('|')}|payment\\+jwt|"?signature\\\\*"?:\\\\*"0x[0-9a-fA-F]{130}`)
/** A whole token or payload: the header alone is no secret, and documents show it. */
const TOKEN = /\b(eyJ[\w-]{10,})\.(eyJ[\w-]+)\.[\w-]{40,}/g
const PAYLOAD = /\beyJ[\w+/=-]{40,}/g
const SIGNATURE = /"?signature\\*"?:\\*"0x[0-9a-fA-F]{130}/

/** What kind of payment secret a text holds. Undefined: none. @param {string} text @returns {string | undefined} */
export function paymentSecretIn(text) {
  if (!FAST.test(text)) return undefined
  for (const [, header = ''] of text.matchAll(TOKEN)) if (decoded(header)?.typ === 'payment+jwt') return 'a payment token'
  for (const [payload] of text.matchAll(PAYLOAD)) if (decoded(payload)?.x402Version !== undefined) return 'a payment of x402'
  return SIGNATURE.test(text) ? 'the signature of a payment' : undefined
}

/** Files of a folder that hold a payment secret, as bytes: also what a database has deleted and not overwritten. @param {string} folder */
export function paymentSecretsUnder(folder) {
  return readdirSync(folder, { recursive: true, withFileTypes: true }).flatMap((entry) => {
    if (!entry.isFile()) return []
    const path = join(entry.parentPath, entry.name)
    const kind = paymentSecretIn(readFileSync(path, 'latin1'))
    return kind === undefined ? [] : [`${kind} in ${entry.name}`]
  })
}

/** @param {string} part @returns {any} */
function decoded(part) {
  try {
    return JSON.parse(Buffer.from(part, 'base64url').toString())
  } catch {
    return undefined
  }
}
