import { expect, test } from 'vitest'
import { addressOf } from './address.ts'

test.each([
  ['https://host.example', 'wss://host.example/ws'],
  ['ws://localhost:8787', 'ws://localhost:8787/ws'],
  ['wss://host.example/uamp', 'wss://host.example/uamp'],
  ['https://host.example/bots/', 'wss://host.example/bots/ws'],
  // The address of an agent is what people have at hand.
  ['https://host.example/agents/helper', 'wss://host.example/ws'],
  ['https://host.example/bots/agents/helper/', 'wss://host.example/bots/ws'],
  ['wss://host.example/agents/helper/ws', 'wss://host.example/agents/helper/ws'],
])('%s is reached at %s', (given, address) => {
  expect(addressOf(given)).toBe(address)
})

test.each(['localhost:8787', '127.0.0.1:8787', '[::1]:8787'])('%s lacks what says how it is reached', (given) => {
  expect(() => addressOf(given)).toThrow(`"${given}" is not the address of a host: write ws://${given}/ws, or wss:// where there is TLS`)
})

test.each(['helper.mjs', 'host.example', '', 'ws://'])('"%s" is no address', (given) => {
  expect(() => addressOf(given)).toThrow(`"${given}" is not the address of a host: write wss://host/ws`)
})
