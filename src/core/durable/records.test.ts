import { expect, test } from 'vitest'
import { memoryStore } from '../../stores/memory.ts'
import type { Draft } from '../../protocol/events.ts'
import type { Json } from '../../protocol/json.ts'
import { Entry, Slice, Stamp } from '../log/entry.ts'
import { decodeGroup, encodeSlice } from '../log/log-store.ts'
import { type HeadRecord, Records, type SessionRecord, type TurnRecord } from './records.ts'

const owner = { tenant: 'a tenant', id: 'ann', scopes: ['*'] }

const turn: TurnRecord = {
  id: 'resp/1',
  run: 'resp/1',
  session: 's',
  agent: 'demo',
  tenant: owner.tenant,
  owner: owner.id,
  parent: null,
  input: [{ role: 'user', content: 'hi' }],
  stateless: false,
  output: [{ type: 'text', text: 'hello' }],
  status: 'completed',
  eventIds: ['e'],
  createdAt: 1,
  from: 0,
  after: 0,
}

const session: SessionRecord = {
  id: 'sess/1',
  transport: 'test',
  agent: 'demo',
  owner,
  config: { modalities: ['text'] },
  duplex: false,
  onDetach: 'cancel',
  createdAt: 60_000,
  client: undefined,
}

/** Rights are not stored. */
const unarmed = { ...owner, scopes: [] }

/** Without members that are undefined. */
const whole = (record: SessionRecord) => JSON.parse(JSON.stringify(record)) as object

const head: HeadRecord = {
  id: session.id,
  agent: 'demo',
  owner: owner.id,
  turn: null,
  consumed: 0,
  updatedAt: 60_000,
  closed: false,
  epoch: 1,
  base: 0,
}

test.each<[string, TurnRecord]>([
  ['that is like most', turn],
  ['with everything else', { ...turn, run: 'first', parent: 'before', stateless: true, from: 3, after: 4 }],
])('a response %s comes back whole, though its record has nothing twice', async (_, record) => {
  const records = new Records(memoryStore())
  const set = records.setTurn(record)
  await records.store.batch([set])
  expect(await records.turn(owner.tenant, record.id)).toEqual(record)
  expect(JSON.stringify(set.value)).not.toMatch(/a tenant|resp\/1|"parent":null|:false/)
})

test.each<[string, SessionRecord, HeadRecord]>([
  ['that is like most', session, head],
  ['with everything else', { ...session, duplex: true, createdAt: 7 }, { ...head, turn: 't', consumed: 2, closed: true }],
])('a session %s comes back whole, though its record has nothing twice', async (_, record, at) => {
  const records = new Records(memoryStore())
  const { set } = records.setSession(record, at, false)
  await records.store.batch(set)
  const found = await records.session(owner.tenant, record.id)
  expect(found).toMatchObject({ session: { ...whole(record), owner: unarmed }, head: at })
  expect(JSON.stringify(set.map(({ value }) => value))).not.toMatch(/a tenant|sess\/1|:false/)
  expect(JSON.stringify(set.map(({ value }) => value)).match(/"ann"/g)).toHaveLength(1)
})

test('records that format 2 wrote with all of their fields are read as they are', async () => {
  const records = new Records(memoryStore())
  await records.store.set('a%20tenant/turn/resp%2F1', turn as unknown as Json)
  const { id: _, ...stored } = { ...head, session: { ...session, id: undefined, agent: undefined } }
  await records.store.set('a%20tenant/head/sess%2F1', stored as unknown as Json)
  expect(await records.turn(owner.tenant, turn.id)).toEqual(turn)
  expect(await records.session(owner.tenant, session.id)).toMatchObject({ session: { ...whole(session), owner: unarmed }, head })
})

test('the end of a response is stored without the id that its events have in common, and read with it', async () => {
  const stamp = new Stamp('s', 'resp "1"')
  const done: Draft = { type: 'response.done', response: { id: 'resp "1"', status: 'completed', output: [] } }
  const text = encodeSlice(new Slice(1, [new Entry(stamp, 1, done)], [stamp]))
  expect(text.split('\n')[1]).toBe('{"type":"response.done","response":{"status":"completed","output":[]}}')
  const [entry] = [...(await decodeGroup({ sessionId: 's', outputOf: async () => [] }, { first: 1, last: 1, text }, 0))]
  expect(entry?.text).toBe(new Entry(stamp, 1, done).text)
})
