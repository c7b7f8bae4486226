import { expect, test } from 'vitest'
import { itemId, placeOf } from './ids.ts'

test('an item tells its response and its place', () => {
  for (let n = 0; n < 200; n++) {
    const responseId = `resp_${crypto.randomUUID()}`
    const id = itemId('msg', responseId, n)
    expect(id).toMatch(/^msg_[\w-]{22}_\d+$/)
    expect(placeOf(id)).toEqual({ responseId, place: String(n) })
  }
  const responseId = 'resp_00000000-0000-0000-0000-000000000000'
  expect(placeOf(itemId('mcpr', responseId, 'ask_resp_1_1'))).toEqual({ responseId, place: 'ask_resp_1_1' })
})

test('what is no id of an item is none', () => {
  for (const id of ['', 'msg_1', 'resp_1', 'msg__', 'msg_AAAA_0', '../../etc_passwd_0', `msg_${'!'.repeat(22)}_0`]) {
    expect(placeOf(id)).toBeUndefined()
  }
})
