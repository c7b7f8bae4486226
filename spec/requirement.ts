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

/** The requirements of one area of UAMP events. */
export function uampEvents<R extends Rows>(area: Area, rows: R, gap?: string): { readonly [Id in keyof R]: Requirement } {
  const requirements = Object.entries(rows).map(([id, [section, behaviour]]): [string, Requirement] => [
    id,
    { id, source: `UAMP events §${section}`, behaviour, area, ...(gap !== undefined && { gap }) },
  ])
  return Object.fromEntries(requirements) as { readonly [Id in keyof R]: Requirement }
}

/** The requirements of one of OpenAI's protocols. */
export function openAi<R extends Rows>(protocol: string, rows: R): { readonly [Id in keyof R]: Requirement } {
  const requirements = Object.entries(rows).map(([id, [section, behaviour]]): [string, Requirement] => [
    id,
    { id, source: section.startsWith('UAMP') ? section : `OpenAI ${protocol}, ${section}`, behaviour, area: 'openai' },
  ])
  return Object.fromEntries(requirements) as { readonly [Id in keyof R]: Requirement }
}

/** What it takes to speak to one vendor's API. */
export function provider<R extends Rows>(api: string, rows: R): { readonly [Id in keyof R]: Requirement } {
  const requirements = Object.entries(rows).map(([id, [section, behaviour]]): [string, Requirement] => [
    id,
    { id, source: section.startsWith('UAMP') ? section : `${api}, ${section}`, behaviour, area: 'providers' },
  ])
  return Object.fromEntries(requirements) as { readonly [Id in keyof R]: Requirement }
}

/** The requirements of one version of A2A. */
export function a2a<R extends Rows>(version: string, rows: R): { readonly [Id in keyof R]: Requirement } {
  const requirements = Object.entries(rows).map(([id, [section, behaviour]]): [string, Requirement] => [
    id,
    { id, source: `A2A ${version} §${section}`, behaviour, area: 'a2a' },
  ])
  return Object.fromEntries(requirements) as { readonly [Id in keyof R]: Requirement }
}

/** The requirements of ACP, by the document and its section. */
export function acp<R extends Rows>(source: string, rows: R): { readonly [Id in keyof R]: Requirement } {
  const requirements = Object.entries(rows).map(([id, [section, behaviour]]): [string, Requirement] => [
    id,
    { id, source: `${source}, ${section}`, behaviour, area: 'acp' },
  ])
  return Object.fromEntries(requirements) as { readonly [Id in keyof R]: Requirement }
}

/** The requirements of AG-UI, by the document and its section. */
export function agUi<R extends Rows>(source: string, rows: R): { readonly [Id in keyof R]: Requirement } {
  const requirements = Object.entries(rows).map(([id, [section, behaviour]]): [string, Requirement] => [
    id,
    { id, source: `${source}, ${section}`, behaviour, area: 'ag-ui' },
  ])
  return Object.fromEntries(requirements) as { readonly [Id in keyof R]: Requirement }
}
