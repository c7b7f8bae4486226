import { Seeing, type Seen } from './seen.ts'
import { promptFor, shapeOf, truthOf, type Marks, type ShapeName } from './shapes.ts'
import type { Mode, Stage, Talk, Transport } from './transport.ts'

/** A server with the agent, and what becomes of its turns. */
export interface Place {
  readonly url: string
  readonly marks: Marks
  /** Money for one answer. */
  coin(): Promise<string>
  after(task: () => void): void
}

let prompts = 0

/** What the clients of these cells see. An answer that is streamed once is read again in each of the other modes. */
export async function runCells(transport: Transport, shape: ShapeName, { modes, ...place }: Place & { modes: readonly Mode[] }) {
  const seen: Partial<Record<Mode, Seen>> = {}
  let talk: Talk | undefined
  for (const mode of modes) {
    const seeing = new Seeing()
    if (mode === 'streamed' || mode === 'whole') {
      const begun = transport.talk(await stageFor({ shape, streamed: mode === 'streamed', leaves: false }, seeing, place))
      await begun.over
      if (mode === 'streamed') talk = begun
    } else {
      if (!talk || transport.tellsOnce) talk = await unheard(transport, shape, place)
      if (!talk.again) throw new Error(`${transport.name} cannot read again: give it a limit that says so`)
      await talk.again({ url: place.url, mode, seeing, after: place.after })
    }
    seen[mode] = seeing.seen()
  }
  return seen
}

/** An answer that is to be read later. */
async function unheard(transport: Transport, shape: ShapeName, place: Place): Promise<Talk> {
  const leaves = transport.tellsOnce === true
  const talk = transport.talk(await stageFor({ shape, streamed: true, leaves }, new Seeing(), place))
  await talk.over
  return talk
}

interface Asked {
  readonly shape: ShapeName
  readonly streamed: boolean
  readonly leaves: boolean
}

async function stageFor({ shape: name, streamed, leaves }: Asked, seeing: Seeing, { url, marks, coin, after }: Place): Promise<Stage> {
  const number = ++prompts
  const shape = shapeOf(name)
  const { text } = truthOf(name)
  const cancelDue = async (): Promise<void> => {
    if (shape.cancel === 'after the end') return seeing.when(() => seeing.over)
    if (shape.cancel === 'while a question waits') return seeing.when(() => seeing.asked)
    await marks.passed(`${number} holds`)
    if (streamed) await seeing.when(() => seeing.text === text)
  }
  return {
    url,
    shape,
    prompt: promptFor(name, number, leaves),
    streamed,
    seeing,
    coin: shape.asks === 'payment.required' ? await coin() : '',
    cancelDue: cancelDue(),
    stopped: marks.passed(`${number} stopped`),
    leaves,
    letGo: () => marks.pass(`${number} go`),
    after,
  }
}
