import type { InitializeHook, LoadHook, ResolveHook } from 'node:module'
import { fileURLToPath } from 'node:url'
import type { MessagePort } from 'node:worker_threads'
import { fileVersion } from './file-version.ts'

/** What the loader tells: a file is being loaded, or it imports another. */
export interface Followed {
  readonly parent: string
  /** Which time the parent is loaded. */
  readonly load: number
  readonly child?: string
  /** What the child was before it was read. A change while it is read shows as another version afterwards. */
  readonly version?: string
}

/** The loader has a thread of its own, with one copy of this module. */
let port: MessagePort | undefined
/** By URL: a module is read once, whoever imports it. */
const versions = new Map<string, string>()
/** This package. Linked into a project it looks like the user's own code, and a second copy of it would not know the first. */
const OURS = new URL('../', import.meta.url).href

export const initialize: InitializeHook<{ readonly port: MessagePort }> = (data) => {
  port = data.port
}

/** Tells who imports whom, and loads what a module imports again if the module itself is loaded again. */
export const resolve: ResolveHook = async (specifier, context, nextResolve) => {
  const { parentURL: parent } = context
  if (!parent || !isOwn(parent)) return nextResolve(specifier, context)
  let resolved
  try {
    resolved = await nextResolve(specifier, context)
  } catch (thrown) {
    // It is waited for.
    if (/^\.{0,2}\//.test(specifier)) tell(parent, new URL(specifier, parent).href)
    throw thrown
  }
  if (!isOwn(resolved.url)) return resolved
  const version = loadOf(parent)
  const url = version === 0 || resolved.url.includes('?') ? resolved.url : `${resolved.url}?version=${version}`
  tell(parent, url)
  return { ...resolved, url }
}

/** A module that is loaded again may import less than before. */
export const load: LoadHook = (url, context, nextLoad) => {
  if (isOwn(url)) port?.postMessage({ parent: fileOf(url), load: loadOf(url) } satisfies Followed)
  return nextLoad(url, context)
}

function tell(parent: string, url: string): void {
  const child = fileOf(url)
  const version = versions.get(url) ?? fileVersion(child)
  versions.set(url, version)
  port?.postMessage({ parent: fileOf(parent), load: loadOf(parent), child, version } satisfies Followed)
}

/** Code of the user, and not of a package. */
function isOwn(url: string): boolean {
  return url.startsWith('file:') && !url.includes('/node_modules/') && !url.startsWith(OURS)
}

function fileOf(url: string): string {
  return fileURLToPath(url.replace(/[?#].*$/, ''))
}

/** 0: for the first time. */
function loadOf(url: string): number {
  return Number(/[?&]version=(\d+)/.exec(url)?.[1] ?? 0)
}
