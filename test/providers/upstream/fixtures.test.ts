import { describe, expect, test } from 'vitest'
import { fixtureNames, loadFixture } from './fixtures.ts'
import { startUpstream } from './index.ts'

/** Where the requests of a recording go to here. */
const MOUNTS = {
  openai: ['https://api.openai.com', '/openai'],
  responses: ['https://api.openai.com', '/openai'],
  compatible: [/^https:\/\/api[.](deepseek|openai)[.]com/, '/compatible'],
  anthropic: ['https://api.anthropic.com', '/anthropic'],
  google: ['https://generativelanguage.googleapis.com', '/google'],
} as const

const KEY = { authorization: 'Bearer key', 'x-api-key': 'key', 'x-goog-api-key': 'key' }

for (const [vendor, [host, mount]] of Object.entries(MOUNTS)) {
  describe(vendor, () => {
    for (const name of fixtureNames(vendor)) {
      test(`the requests of '${name}' are let in, and get the recorded answers`, async () => {
        const { url } = await startUpstream()
        for (const { request, chunks, answer } of loadFixture([vendor], name) ?? []) {
          const response = await fetch(`${url}${request.url.replace(host, mount)}`, {
            method: request.method,
            headers: { ...request.headers, ...KEY },
            body: request.text ?? '',
          })
          const text = await response.text()
          expect(response.status, text).toBe(answer?.status)
          expect(response.headers.get('content-type')).toBe(answer?.headers['content-type'])
          const recorded = chunks.map((chunk) => chunk.text ?? '').join('')
          expect(text).toMatch(new RegExp(`^${pattern(recorded)}$`))
        }
      })
    }
  })
}

/** The recorded text, with anything where it is filled in. */
const pattern = (text: string): string => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&').replace(/\\\{\\\{\w+(:twice)?\\\}\\\}/g, '[^]*?')
