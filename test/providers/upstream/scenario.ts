/** How a fixture is sent. */
export type Delivery =
  /** Everything in one write, instead of one write for each chunk. */
  | 'burst'
  /** Three bytes a write, so that characters and events are cut anywhere. */
  | 'split'
  | 'crlf'
  /** A keep-alive comment before every event. */
  | 'comments'
  /** A breath between chunks. */
  | 'slow'
  /** After half of the chunks nothing more comes, and the connection stays open. */
  | 'stall'
  /** After half of the chunks comments for ever. */
  | 'endless-comments'
  /** After half of the chunks the socket is destroyed. */
  | 'cut'
  /** After half of the chunks, and half of the next one, the answer ends as if it were complete. */
  | 'half'
  /** After half of the chunks the answer ends as if it were complete. */
  | 'short'
  /** After half of the chunks the vendor's own error comes in the stream. */
  | 'failing'
  /** The same, but as the body that a refusal has, and not as an event: Gemini does that, and proxies do. */
  | 'failing-bare'
  /** The first request of this model is refused with 503. */
  | 'flaky'

const DELIVERIES = new Set<string>([
  'burst',
  'split',
  'crlf',
  'comments',
  'slow',
  'stall',
  'endless-comments',
  'cut',
  'half',
  'short',
  'failing',
  'failing-bare',
  'flaky',
] satisfies Delivery[])

export interface Scenario {
  readonly name: string
  readonly delivery: ReadonlySet<Delivery>
}

/** `tools+crlf+split`: a fixture, and how it is sent. */
export function parseScenario(text: string): Scenario {
  const [name = '', ...delivery] = text.split('+')
  const unknown = delivery.find((word) => !DELIVERIES.has(word))
  if (unknown !== undefined) throw new Error(`No such delivery: ${unknown}`)
  return { name, delivery: new Set(delivery as Delivery[]) }
}

/** A model's name may hold a scenario: all of it (`tools`, `vendor/tools+cut`), or what stands behind an `@` (`gpt-5@tools`). */
export function scenarioOf(model: string): string {
  const at = model.lastIndexOf('@')
  return at >= 0 ? model.slice(at + 1) : model.slice(model.lastIndexOf('/') + 1)
}

/** A model's name without its scenario. */
export const baseModel = (model: string): string => (model.includes('@') ? model.slice(0, model.lastIndexOf('@')) : model)
