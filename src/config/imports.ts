import { register } from 'node:module'
import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { MessageChannel, receiveMessageOnPort, type MessagePort } from 'node:worker_threads'
import type { Import } from './follow-imports.ts'

/** Knows which of the user's files import which. */
export class Imports {
  readonly #port: MessagePort
  readonly #children = new Map<string, Set<string>>()

  constructor() {
    const { port1, port2 } = new MessageChannel()
    this.#port = port1
    port1.unref()
    register('../config/follow-imports.js', import.meta.url, { data: { port: port2 }, transferList: [port2] })
  }

  /** The file, and all that it imports, itself or by others. */
  from(file: string): readonly string[] {
    this.#read()
    const found = new Set([resolve(file)])
    // A set is visited with what is added to it meanwhile.
    for (const each of found) for (const child of this.#children.get(each) ?? []) found.add(child)
    return [...found]
  }

  /** What the loader has told until now. It tells before an import is done. */
  #read(): void {
    for (let got; (got = receiveMessageOnPort(this.#port) as { readonly message: Import } | undefined);) {
      const [parent, child] = [got.message.parent, got.message.child].map((url) => fileURLToPath(url)) as [string, string]
      const children = this.#children.get(parent) ?? new Set()
      this.#children.set(parent, children.add(child))
    }
  }
}
