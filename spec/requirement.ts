export type Area =
  | 'events'
  | 'session'
  | 'response'
  | 'tools'
  | 'payment'
  | 'voice'
  | 'presence'
  | 'delegation'
  | 'signing'
  | 'routing'
  | 'transport'
  | 'content'
  | 'capabilities'
  | 'version'
  | 'openai'
  | 'providers'
  | 'a2a'
  | 'acp'
  | 'ag-ui'
  | 'omnia'
  | 'envelope'
  | 'identity'
  | 'tls'

/** One thing that a specification demands, in our words. Tests cite it by `id`. */
export interface Requirement {
  readonly id: string
  /** The specification and its section. */
  readonly source: string
  readonly behaviour: string
  readonly area: Area
  /** What has to be built first. Until then its test is an expected failure. */
  readonly gap?: string
}

/** Requirements by id, each `[section, behaviour]`. */
type Rows = Readonly<Record<string, readonly [section: string, behaviour: string]>>

type Listed<R extends Rows> = { readonly [Id in keyof R]: Requirement }

/** What a list of requirements has in common. */
interface List {
  readonly area: Area
  readonly source: (section: string) => string
  readonly gap?: string | undefined
}

function listed<R extends Rows>({ area, source, gap }: List, rows: R): Listed<R> {
  const requirements = Object.entries(rows).map(([id, [section, behaviour]]): [string, Requirement] => [
    id,
    { id, source: source(section), behaviour, area, ...(gap !== undefined && { gap }) },
  ])
  return Object.fromEntries(requirements) as Listed<R>
}

/** What UAMP says of another protocol is cited as UAMP's. */
const sectionOf = (document: string) => (section: string) => (section.startsWith('UAMP') ? section : `${document}, ${section}`)

/** The requirements of one area of UAMP events. */
export function uampEvents<R extends Rows>(area: Area, rows: R, gap?: string): Listed<R> {
  return listed({ area, source: (section) => `UAMP events §${section}`, gap }, rows)
}

/** The requirements of UAMP transports, which describes how an agent is offered over other protocols. */
export function uampTransports<R extends Rows>(area: Area, rows: R, gap?: string): Listed<R> {
  return listed({ area, source: sectionOf('UAMP transports'), gap }, rows)
}

/** The requirements of signed messages between organisations. */
export function envelope<R extends Rows>(rows: R, gap?: string): Listed<R> {
  return listed({ area: 'envelope', source: (section) => `UAMP envelope 1.0 §${section}`, gap }, rows)
}

/** The requirements of one of OpenAI's protocols. */
export function openAi<R extends Rows>(protocol: string, rows: R): Listed<R> {
  return listed({ area: 'openai', source: sectionOf(`OpenAI ${protocol}`) }, rows)
}

/** What it takes to speak to one vendor's API. */
export function provider<R extends Rows>(api: string, rows: R): Listed<R> {
  return listed({ area: 'providers', source: sectionOf(api) }, rows)
}

/** The requirements of one version of A2A. */
export function a2a<R extends Rows>(version: string, rows: R): Listed<R> {
  return listed({ area: 'a2a', source: (section) => `A2A ${version} §${section}` }, rows)
}

/** The requirements of ACP, by the document and its section. */
export function acp<R extends Rows>(source: string, rows: R): Listed<R> {
  return listed({ area: 'acp', source: sectionOf(source) }, rows)
}

/** What both ends of a connection that hosts agents promise. */
export function connect<R extends Rows>(rows: R): Listed<R> {
  return listed({ area: 'transport', source: sectionOf('Hosted agents') }, rows)
}

/** The requirements of paying and being paid, by the document or the part of ours. */
export function payments<R extends Rows>(source: string, rows: R): Listed<R> {
  return listed({ area: 'payment', source: sectionOf(source) }, rows)
}

/** The requirements of AG-UI, by the document and its section. */
export function agUi<R extends Rows>(source: string, rows: R): Listed<R> {
  return listed({ area: 'ag-ui', source: sectionOf(source) }, rows)
}

/** The requirements of knowing who calls, and of being known. */
export function identity<R extends Rows>(source: string, rows: R): Listed<R> {
  return listed({ area: 'identity', source: sectionOf(source) }, rows)
}

/** What a server with a certificate promises, by the document or the part of ours. */
export function tls<R extends Rows>(source: string, rows: R): Listed<R> {
  return listed({ area: 'tls', source: sectionOf(source) }, rows)
}
