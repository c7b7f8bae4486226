import { statSync, watch, type FSWatcher } from 'node:fs'
import { dirname, join, sep } from 'node:path'
import type { AgentRegistry } from '../core/engine/agent-registry.ts'
import { retire, type AssembleContext, type Assembly } from './assemble.ts'
import { fileVersion } from './file-version.ts'
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

interface Watched {
  readonly watcher: FSWatcher
  /** Another folder may take its place, which the watcher does not see. */
  readonly ino: number
}

/** Replaces agents when their files change, without a restart. */
export class Reloader {
  readonly #options: ReloadOptions
  readonly #watched = new Map<string, Watched>()
  #assembly: Assembly
  /** Files of an attempt that failed. */
  #wanted: readonly string[] = []
  /** What the files were when they were last read. */
  #versions: ReadonlyMap<string, string> = new Map()
  #timer: ReturnType<typeof setTimeout> | undefined
  #working: Promise<void> = Promise.resolve()
  #closed = false

  constructor(options: ReloadOptions) {
    this.#options = options
    this.#assembly = options.assembly
    this.#follow(new Map())
  }

  /** Also releases what the agents hold. */
  async close(): Promise<void> {
    this.#closed = true
    clearTimeout(this.#timer)
    for (const { watcher } of this.#watched.values()) watcher.close()
    const closed = this.#working.then(() => retire(this.#assembly))
    // A turn that does not end, or a module that never loads, must not delay the exit.
    await Promise.race([closed, new Promise((resolve) => setTimeout(resolve, LEAVE_MS))])
  }

  /** Begins to follow the files as they are now, or as they were `before` they were read. What has changed since then is read again. */
  #follow(before: ReadonlyMap<string, string>): void {
    const { modules } = this.#options.context
    this.#versions = new Map(this.#files().map((file) => [file, before.get(file) ?? modules.versionOf(file)]))
    this.#watch()
    if (this.#hasChanged()) this.#soon()
  }

  /** Watches folders, because most editors replace a file with a new one. In place of one that is gone, the folder that it was in. */
  #watch(): void {
    const folders = new Map(this.#files().map((file) => nearestFolder(dirname(file))))
    for (const [folder, { watcher, ino }] of this.#watched) {
      if (folders.get(folder) === ino) continue
      watcher.close()
      this.#watched.delete(folder)
    }
    for (const [folder, ino] of folders) {
      if (this.#closed || this.#watched.has(folder)) continue
      try {
        const watcher = watch(folder, { persistent: false }, (_, name) => this.#noticed(folder, name))
        watcher.on('error', this.#options.onError)
        this.#watched.set(folder, { watcher, ino })
      } catch (thrown) {
        this.#options.onError(thrown)
      }
    }
  }

  #noticed(folder: string, name: string | null): void {
    const isPart = (file: string): boolean => file === join(folder, name ?? '') || file.startsWith(join(folder, name ?? '') + sep)
    // A file that is a link changes with its target. Kubernetes updates a config that way.
    if (name === null || this.#files().some(isPart) || this.#hasChanged()) this.#soon()
  }

  #soon(): void {
    clearTimeout(this.#timer)
    if (this.#closed) return
    this.#timer = setTimeout(() => {
      this.#working = this.#working.then(() => this.#reload())
    }, QUIET_MS)
  }

  async #reload(): Promise<void> {
    if (this.#closed) return
    // A folder may be there again.
    this.#watch()
    if (!this.#hasChanged()) return
    const { again, onReload, onError, context } = this.#options
    const before = this.#assembly
    const [file = ''] = before.files
    const versions = new Map(this.#files().map((each) => [each, fileVersion(each)]))
    context.modules.takeRecent()
    try {
      const after = await again(before)
      this.#assembly = after
      this.#wanted = []
      const changes = this.#replace(before, after)
      onReload(`${shown(file)} was read again: ${changes.join('; ')}`)
      // Not awaited: the next change of the file must not wait for running turns.
      void retire(before, after)
    } catch (thrown) {
      this.#wanted = context.modules.takeRecent()
      onError(thrown)
    }
    // The files may import others than before, also those that do not load.
    this.#follow(versions)
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
    const { modules } = this.#options.context
    return [...new Set([...this.#assembly.files, ...this.#wanted].flatMap((file) => modules.filesOf(file)))]
  }

  #hasChanged(): boolean {
    return [...this.#versions].some(([file, version]) => fileVersion(file) !== version)
  }
}

/** A folder and its number on the disk, or those of the nearest one around it that is there. */
function nearestFolder(folder: string): readonly [folder: string, ino: number] {
  const stats = statSync(folder, { throwIfNoEntry: false })
  return stats?.isDirectory() || dirname(folder) === folder ? [folder, stats?.ino ?? 0] : nearestFolder(dirname(folder))
}

function settingsThatDiffer({ settings: before }: Assembly, { settings: after }: Assembly): string[] {
  const names = new Set([...Object.keys(before), ...Object.keys(after)])
  const text = (settings: object, name: string): string => JSON.stringify((settings as Record<string, unknown>)[name]) ?? ''
  return [...names].filter((name) => text(before, name) !== text(after, name))
}
