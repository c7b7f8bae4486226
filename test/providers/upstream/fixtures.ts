import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Exchange, readRecording } from '../../../src/testing/recording.ts'
import type { Facts } from './vendor.ts'

const folder = join(import.meta.dirname, 'fixtures')

/** The exchanges of `fixtures/<vendor>/<scenario>.jsonl`: one for each round of tools. */
export function loadFixture(vendors: readonly string[], scenario: string): Exchange[] | undefined {
  for (const vendor of vendors) {
    const file = join(folder, vendor, `${scenario}.jsonl`)
    if (/^[\w-]+$/.test(scenario) && existsSync(file)) return readRecording(readFileSync(file, 'utf8'))
  }
  return undefined
}

export type LoadFixture = typeof loadFixture

/** Reads every file once. */
export function fixtureCache(): LoadFixture {
  const loaded = new Map<string, Exchange[] | undefined>()
  return (vendors, scenario) => {
    const key = `${vendors.join()}/${scenario}`
    if (!loaded.has(key)) loaded.set(key, loadFixture(vendors, scenario))
    return loaded.get(key)
  }
}

export function fixtureNames(vendor: string): string[] {
  return readdirSync(join(folder, vendor)).map((file) => file.replace(/[.]jsonl$/, ''))
}

/**
 * Signatures that the vendor has issued: those of its fixtures. What comes back must be one of them, byte for byte.
 */
export function issuedSignatures(vendor: string): ReadonlySet<string> {
  const issued = new Set<string>()
  for (const name of fixtureNames(vendor)) {
    const text = (loadFixture([vendor], name) ?? []).flatMap(({ chunks }) => chunks.map((chunk) => chunk.text ?? '')).join('')
    for (const [, signature = ''] of text.matchAll(/"(?:signature|thoughtSignature|encrypted_content|data)":"([^"]+)"/g))
      issued.add(signature)
  }
  return issued
}

/** What stands in a fixture as `{{user}}`; `{{user:twice}}` where JSON stands in a string of JSON. */
export function fill(text: string, values: Readonly<Record<string, string>>): string {
  return text.replace(/\{\{(\w+)(:twice)?\}\}/g, (_, name: string, twice?: string) => {
    const once = JSON.stringify(values[name] ?? '').slice(1, -1)
    return twice ? JSON.stringify(once).slice(1, -1) : once
  })
}

export function fillings(facts: Facts, model: string, id: number): Record<string, string> {
  return { model, id: String(id).padStart(6, '0'), user: facts.user, images: facts.images.join(', '), results: facts.results.join(' | ') }
}
