import { decisionOf, type Form } from './forms.ts'
import { callers, decisionFor, rowFor, rowOf, type Asked, type Caller, type Row } from './rule.ts'
import type { Request, ThingKind, Things, World } from './world.ts'

/** Something that a caller can do by one request. */
export interface Operation extends Asked {
  /** The route, as the server lists it. */
  readonly route: string
  /** What is done there, if a route does several things. */
  readonly what?: string
  readonly form: Form
  /** What it is about, of alice's. */
  readonly thing?: ThingKind
  /** It can be done only once with a thing. */
  readonly once?: true
  /** Agents do not have it: it is the server's own. */
  readonly atRoot?: true
  /** Gets the id of the thing. The path is that of the root. */
  readonly request: (id: string) => Request
}

interface Place {
  readonly world: World
  readonly things: Things
  /** What comes before the path. */
  readonly mount: string
}

export function nameOf({ route, what }: Pick<Operation, 'route' | 'what'>): string {
  return what === undefined ? route : `${route} ${what}`
}

/** What the rule says of an operation. */
export function expectedOf({ thing, ...asked }: Operation, whom = callers): Row {
  return rowFor({ owned: thing !== undefined, ...asked }, whom)
}

/** What the server says of it. */
export function decided(operation: Operation, place: Place, whom = callers): Promise<Row> {
  return rowOf((caller) => decisionAbout(operation, place, caller), whom)
}

export async function decisionAbout(operation: Operation, { world, things, mount }: Place, caller: Caller): Promise<string> {
  const { thing, once, form, request } = operation
  const uses = once && decisionFor({ owned: true, ...operation }, caller) === 'admitted'
  const id = thing === undefined ? '' : await (uses ? things.fresh(thing) : things.shared(thing))
  const asked = request(id)
  return decisionOf(form, await world.ask(caller, { ...asked, path: mount + asked.path }))
}
