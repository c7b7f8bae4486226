import { watch, type FSWatcher } from 'node:fs'
import { basename, dirname } from 'node:path'
import type { AgentRegistry } from '../core/engine/agent-registry.ts'
import { retire, type AssembleContext, type Assembly } from './assemble.ts'
import { shown } from './shown.ts'

/** Editors write a file in several steps. It is read after this much quiet. */
const QUIET_MS = 100
/** How long MCP servers have to end. */
const LEAVE_MS = 2_000

export interface ReloadOptions {
  readonly assembly: Assembly
  readonly context: Pick<AssembleContext, 'modules'>
  /** Makes the agents again. Takes over what has not changed since `before`. */
  readonly again: (before: Assembly) => Promise<Assembly>
  /** The agents of the running server. A running response keeps its agent; the next one gets the new agent. */
  readonly agents: AgentRegistry
  readonly onReload: (text: string) => void
  /** Called when the config, or a file that it names, is broken. The agents stay as they are. */
  readonly onError: (thrown: unknown) => void
}

/** Replaces agents when their config changes, without a restart. */
export class Reloader {
  readonly #options: ReloadOptions
  readonly #watchers = new Map<string, FSWatcher>()
  #assembly: Assembly
  #versions: string
  #timer: ReturnType<typeof setTimeout> | undefined
  #working: Promise<void> = Promise.resolve()
  #closed = false

  constructor(options: ReloadOptions) {
    this.#options = options
    this.#assembly = options.assembly
    this.#versions = this.#now()
    this.#watch()
  }

  /** Also releases what the agents hold. */
  async close(): Promise<void> {
    this.#closed = true
    clearTimeout(this.#timer)
    for (const watcher of this.#watchers.values()) watcher.close()
    const closed = this.#working.then(() => retire(this.#assembly))
    // A turn that does not end, or a module that never loads, must not delay the exit.
    await Promise.race([closed, new Promise((resolve) => setTimeout(resolve, LEAVE_MS))])
  }

  /** Watches folders, because most editors replace a file with a new one. */
  #watch(): void {
    const folders = new Set(this.#files().map((file) => dirname(file)))
    for (const folder of folders) {
      if (this.#watchers.has(folder)) continue
      const names = (): ReadonlySet<string> => new Set(this.#files().flatMap((file) => (dirname(file) === folder ? basename(file) : [])))
      const watcher = watch(folder, { persistent: false }, (_, name) => {
        // A file that is a link changes with its target. Kubernetes updates a config that way.
        if (name === null || names().has(name) || this.#now() !== this.#versions) this.#soon()
      })
      watcher.on('error', this.#options.onError)
      this.#watchers.set(folder, watcher)
    }
  }

  #soon(): void {
    clearTimeout(this.#timer)
    if (this.#closed) return
    this.#timer = setTimeout(() => {
      this.#working = this.#working.then(() => this.#reload())
    }, QUIET_MS)
  }

  async #reload(): Promise<void> {
    const versions = this.#now()
    if (this.#closed || versions === this.#versions) return
    this.#versions = versions
    const { again, onReload, onError } = this.#options
    const before = this.#assembly
    const [file = ''] = before.files
    try {
      const after = await again(before)
      this.#assembly = after
      const changes = this.#replace(before, after)
      onReload(`${shown(file)} was read again: ${changes.join('; ')}`)
      // Not awaited: the next change of the file must not wait for running turns.
      void retire(before, after)
    } catch (thrown) {
      onError(thrown)
    }
    // The files may import others than before, also those that do not load.
    this.#versions = this.#now()
    this.#watch()
  }

  #replace(before: Assembly, after: Assembly): string[] {
    const { agents } = this.#options
    const changed = after.agents.filter((agent) => agents.get(agent.name) !== agent)
    const kept = new Set(after.agents.map(({ name }) => name))
    const gone = before.agents.filter(({ name }) => !kept.has(name))
    for (const agent of changed) agents.add(agent)
    for (const { name } of gone) agents.remove(name)
    const later = settingsThatDiffer(before, after)
    const told = [
      changed.length === 0 ? '' : `${changed.map(({ name }) => name).join(', ')} changed`,
      gone.length === 0 ? '' : `${gone.map(({ name }) => name).join(', ')} removed`,
      later.length === 0 ? '' : `${later.join(', ')} will change at the next start`,
    ].filter((text) => text !== '')
    return told.length === 0 ? ['nothing changed'] : told
  }

  #files(): readonly string[] {
    return this.#assembly.files.flatMap((file) => this.#options.context.modules.filesOf(file))
  }

  #now(): string {
    return this.#assembly.files.map((file) => this.#options.context.modules.version(file)).join('\n')
  }
}

function settingsThatDiffer({ settings: before }: Assembly, { settings: after }: Assembly): string[] {
  const names = new Set([...Object.keys(before), ...Object.keys(after)])
  const text = (settings: object, name: string): string => JSON.stringify((settings as Record<string, unknown>)[name]) ?? ''
  return [...names].filter((name) => text(before, name) !== text(after, name))
}
