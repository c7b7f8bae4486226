import type { InitializeHook, ResolveHook } from 'node:module'
import type { MessagePort } from 'node:worker_threads'

export interface Import {
  readonly parent: string
  readonly child: string
}

/** The loader has a thread of its own, with one copy of this module. */
let port: MessagePort | undefined

export const initialize: InitializeHook<{ readonly port: MessagePort }> = (data) => {
  port = data.port
}

/** Tells who imports whom, and loads what a module imports again if the module itself is loaded again. */
export const resolve: ResolveHook = async (specifier, context, nextResolve) => {
  const resolved = await nextResolve(specifier, context)
  const { parentURL: parent } = context
  if (!parent || !isOwn(parent) || !isOwn(resolved.url)) return resolved
  port?.postMessage({ parent: withoutVersion(parent), child: withoutVersion(resolved.url) } satisfies Import)
  const version = /[?&]version=(\d+)/.exec(parent)?.[1]
  if (version === undefined || resolved.url.includes('?')) return resolved
  return { ...resolved, url: `${resolved.url}?version=${version}` }
}

/** Code of the user, and not of a package. */
function isOwn(url: string): boolean {
  return url.startsWith('file:') && !url.includes('/node_modules/')
}

function withoutVersion(url: string): string {
  return url.replace(/[?#].*$/, '')
}
