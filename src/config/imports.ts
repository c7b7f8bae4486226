import { existsSync, realpathSync } from 'node:fs'
import { register } from 'node:module'
import { MessageChannel, receiveMessageOnPort, type MessagePort } from 'node:worker_threads'
import type { Followed } from './follow-imports.ts'

/** Knows which of the user's files import which. */
export class Imports {
  readonly #port: MessagePort
  readonly #children = new Map<string, { readonly load: number; readonly files: Set<string> }>()
  readonly #versions: Map<string, string>

  /** `versions`: where the version of each file is noted when it is read. */
  constructor(versions: Map<string, string>) {
    this.#versions = versions
    const { port1, port2 } = new MessageChannel()
    this.#port = port1
    port1.unref()
    register('../config/follow-imports.js', import.meta.url, { data: { port: port2 }, transferList: [port2] })
  }

  /** The file, and all that it imports, itself or by others. */
  from(file: string): readonly string[] {
    this.read()
    // Node names a module by what a link leads to.
    const found = new Set([file, existsSync(file) ? realpathSync(file) : file])
    // A set is visited with what is added to it meanwhile.
    for (const each of found) for (const child of this.#children.get(each)?.files ?? []) found.add(child)
    return [...found]
  }

  /** Takes what the loader has told until now. It tells before an import is done. */
  read(): void {
    for (let got; (got = receiveMessageOnPort(this.#port) as { readonly message: Followed } | undefined);) {
      const { parent, load, child, version } = got.message
      let known = this.#children.get(parent)
      if (!known || load > known.load) this.#children.set(parent, (known = { load, files: new Set() }))
      if (child === undefined || load < known.load) continue
      known.files.add(child)
      if (version !== undefined) this.#versions.set(child, version)
    }
  }
}
