/** Which agents of others are believed. Pure: no clock, no network. */

export interface TrustRules {
  /**
   * Who may call: `@com.example/bob` (one agent), `@alice.*` (one level below), `@alice.**` (any depth), `#verified`, `#reputation:80`,
   * an issuer's URL, or `everyone`, `family`, `platform`, `nobody`. Default: nobody.
   */
  readonly allow?: readonly string[] | undefined
  /** As `allow`, and wins over everything. */
  readonly deny?: readonly string[] | undefined
  /** URLs of issuers that are believed about all their agents, and about labels. */
  readonly trusted?: readonly string[] | undefined
}

/** An agent of somebody else, before anything about it has been verified. */
export interface Candidate {
  readonly issuer: string
  /** The agent's name at its issuer. */
  readonly subject: string
  /** AOAuth: the path between the issuer's URL and the subject. */
  readonly path?: string | undefined
  /** What its issuer says of it: `verified`, `reputation:80`. They count only if the issuer is trusted. */
  readonly labels: readonly string[]
}

export interface Verdict {
  readonly accepted: boolean
  /** For people: which rule decided. */
  readonly because: string
}

/** The rules that mean more than one agent, by name. */
const PRESETS = ['everyone', 'nobody', 'family', 'platform'] as const

interface Known {
  readonly issuer: string
  readonly url: string
  readonly segments: readonly string[] | undefined
  readonly namespace: string | undefined
  readonly labels: readonly string[]
  readonly isTrusted: boolean
}

/** Deny wins, then trusted issuers, then allow; nobody else. `own`: this server's URL, for `family`. */
export function judge({ allow = [], deny = [], trusted = [] }: TrustRules, candidate: Candidate, own: string | undefined): Verdict {
  const isTrusted = trusted.some((issuer) => sameUrl(issuer, candidate.issuer))
  const known = knownOf(candidate, isTrusted)
  if (known === undefined) return { accepted: false, because: 'the name of the agent leads to another address than it says' }
  const denied = deny.find((rule) => matches(rule, known, own))
  if (denied !== undefined) return { accepted: false, because: `"deny" has ${denied}` }
  const labels = allow.filter((rule) => rule.startsWith('#'))
  if (isTrusted && labels.length === 0) return { accepted: true, because: `"trusted" has the issuer` }
  const allowed = allow.find((rule) => matches(rule, known, own))
  if (allowed !== undefined) return { accepted: true, because: `"allow" has ${allowed}` }
  if (isTrusted) return { accepted: false, because: `the issuer is trusted, but "allow" asks for ${labels.join(' or ')}` }
  return { accepted: false, because: allow.length === 0 ? '"allow" names nobody' : 'no rule of "allow" names it' }
}

/** What is wrong with a rule, as the end of a sentence; undefined if nothing is. */
export function wrongRule(rule: string): string | undefined {
  if ((PRESETS as readonly string[]).includes(rule)) return undefined
  if (/^#[a-z][a-z0-9_-]*(?::\d+)?$/.test(rule)) return undefined
  if (/^https?:\/\//i.test(rule)) return wrongUrl(rule)
  const segments = rule.startsWith('@') ? segmentsOf(rule.slice(1)) : []
  const isName =
    segments.length > 0 && segments.every((each, at) => NAME.test(each) || (at > 0 && at === segments.length - 1 && isStars(each)))
  return isName ? undefined : 'must be like "@com.example.*", "#verified", "https://example.com", or everyone, family, platform, nobody'
}

/** A URL is compared letter by letter, so one that no issuer can have would silently allow, or deny, nobody. */
function wrongUrl(rule: string): string | undefined {
  if (!URL.canParse(rule)) return 'is not a URL'
  const url = new URL(rule)
  if (rule.includes('*')) return `must not have a "*": "${url.origin}" means all of an issuer, "@com.example.**" all of a domain`
  if (/[?#]/.test(rule) || url.username !== '') return 'must be a URL without a query, a fragment and a password'
  return sameUrl(url.href, rule) ? undefined : `must be written as "${url.href.replace(/\/+$/, '')}", as tokens have it`
}

const NAME = /^\/?[A-Za-z0-9_:[\]%~-]+$/

function isStars(segment: string): boolean {
  return segment === '*' || segment === '**'
}

function matches(rule: string, known: Known, own: string | undefined): boolean {
  if (rule === 'everyone') return true
  if (rule === 'nobody') return false
  if (rule === 'platform') return known.isTrusted
  if (rule === 'family') return known.namespace !== undefined && own !== undefined && known.namespace === namespaceOf(own)
  if (rule.startsWith('#')) return hasLabel(known.labels, rule.slice(1))
  if (rule.startsWith('@')) return known.segments !== undefined && isBelow(segmentsOf(rule.slice(1)), known.segments)
  return sameUrl(rule, known.issuer) || sameUrl(rule, known.url)
}

/** `reputation:80` asks for at least 80. */
function hasLabel(labels: readonly string[], wanted: string): boolean {
  const [, name, least] = /^(.*):(\d+)$/.exec(wanted) ?? []
  if (name === undefined) return labels.includes(wanted)
  return labels.some((label) => {
    const [, of, value] = /^(.*):(\d+)$/.exec(label) ?? []
    return of === name && Number(value) >= Number(least)
  })
}

function isBelow(pattern: readonly string[], name: readonly string[]): boolean {
  const last = pattern.at(-1) ?? ''
  if (!isStars(last)) return pattern.length === name.length && pattern.every((each, at) => each === name[at])
  const above = pattern.slice(0, -1)
  const deeper = name.length - above.length
  return (last === '*' ? deeper === 1 : deeper >= 1) && above.every((each, at) => each === name[at])
}

/** Undefined: the name of a stranger is not the one that its address has, so that rules about addresses cannot be applied to it. */
function knownOf({ issuer, subject, path = '', labels }: Candidate, isTrusted: boolean): Known | undefined {
  const url = agentUrl({ issuer, subject, path })
  const base = { issuer, url, isTrusted }
  // A trusted issuer names its agents as it likes; others have no name but their address.
  if (!isTrusted) {
    if (!isAsWritten(url)) return undefined
    return { ...base, segments: segmentsOf(nameOf(url) ?? ''), namespace: namespaceOf(url), labels: [] }
  }
  const plain = /^@?([A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*)$/.exec(subject)?.[1]
  return { ...base, segments: plain === undefined ? undefined : segmentsOf(plain), namespace: plain?.split('.')[0], labels }
}

/** False for `https://example.com/alice/..\bob`, which leads to Bob. Alice, who issues tokens below `/alice`, could call herself so. */
function isAsWritten(address: string): boolean {
  return !/[?#]/.test(address) && URL.canParse(address) && new URL(address).href === address
}

/** AOAuth: an agent's own URL. A slash in its name is a part of the name: only `path` leads elsewhere. */
export function agentUrl({ issuer, subject, path = '' }: Pick<Candidate, 'issuer' | 'subject' | 'path'>): string {
  return `${issuer.replace(/\/+$/, '')}${path}/${subject.replaceAll('%', '%25').replaceAll('/', '%2F')}`
}

/**
 * The name of an address: its domain from the end, then its path. `https://agents.example.com/bob` is `com.example.agents/bob`. A slash
 * before the path, because `bob.example.com` belongs to somebody else than `example.com/bob`; the port stays, for the same reason. A host
 * without a domain keeps its port in any case, so that nobody can call themselves `alice` by calling their machine so.
 */
export function nameOf(address: string): string | undefined {
  const url = URL.canParse(address) ? new URL(address) : undefined
  if (!url || !/^https?:$/.test(url.protocol) || url.hostname === '') return undefined
  const labels = url.hostname.split('.')
  const isDomain = labels.length > 1 && !/^\d+$/.test(labels.at(-1) ?? '') && !url.hostname.startsWith('[')
  const port = url.port === '' && !isDomain ? (url.protocol === 'https:' ? '443' : '80') : url.port
  const host = isDomain ? labels.toReversed().join('.') : url.hostname.replaceAll('.', '-')
  // Servers keep their agents under `/agents`: that is no part of anybody's name.
  const path = url.pathname.replace(/\/+$/, '').replace(/^\/agents(?=\/)/, '')
  return `${host}${port === '' ? '' : `:${port}`}${path}`
}

function segmentsOf(name: string): string[] {
  return name.split(/\.|(?=\/)/)
}

/** Below a country's domain these are no owner's name: `example.co.uk`. */
const SECOND_LEVEL = /^(?:ac|co|com|edu|gob|gov|go|ltd|mil|ne|net|nom|or|org|plc|sch)$/

/** Who owns an address: its registered domain, on any port. A host without a domain owns only itself. */
export function namespaceOf(address: string): string | undefined {
  const [host] = nameOf(address)?.split('/') ?? []
  const labels = host?.replace(/:\d+$/, '').split('.') ?? []
  if (labels.length < 2) return host
  const [top = '', second = ''] = labels
  return labels.slice(0, top.length === 2 && SECOND_LEVEL.test(second) ? 3 : 2).join('.')
}

function sameUrl(one: string, other: string): boolean {
  return one.replace(/\/+$/, '') === other.replace(/\/+$/, '')
}
