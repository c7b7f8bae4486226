import type { ClientMethods, Turn } from '../../core/ports/agent.ts'
import { fieldsOf, jsonIn, recordsIn, type Slot } from '../../protocol/json.ts'
import { offeredBy } from '../../upstream/client-answers.ts'
import { parseParams, RPC, RpcError } from '../../wire/json-rpc.ts'
import { refused, type Folder } from './folder.ts'
import type { Inbox } from './session.ts'
import { Command, OfTerminal } from './terminals.ts'

/** The tools of an editor that stand for methods of ACP. */
const FILES = new Map([
  ['fs/read_text_file', 'read_text_file'],
  ['fs/write_text_file', 'write_text_file'],
])
const NO_FILES: ReadonlySet<string> = new Set()

/** What our client does for the agent in one turn, if it is an editor. */
export class Editor {
  /** Names of its tools. */
  readonly tools: ReadonlySet<string>
  readonly methods: ClientMethods | undefined
  /** Begins the ids of its terminals, as the agent knows them: other editors, and we, have terminals of the same names. */
  readonly #mark = `term_${crypto.randomUUID()}_`

  constructor({ config, methods }: Pick<Turn, 'config' | 'methods'>) {
    const isEditor = fieldsOf(config.extensions?.['acp'])['prompt'] === true
    this.tools = isEditor ? offeredBy({ config }) : NO_FILES
    this.methods = methods
  }

  /** The id of a terminal, as the agent knows it. */
  idFor(terminal: string): string {
    return this.#mark + terminal
  }

  /** The editor's own id. `undefined`: it is no terminal of the editor's. */
  idOf(known: unknown): string | undefined {
    return typeof known === 'string' && known.startsWith(this.#mark) ? known.slice(this.#mark.length) : undefined
  }

  /** A call as the editor shows it: its own terminals under their own ids, and no others. */
  shown<T extends { readonly content?: unknown }>(call: T): T {
    if (!Array.isArray(call.content) || !recordsIn(call.content).some(({ type }) => type === 'terminal')) return call
    const content = recordsIn(call.content).flatMap((item) => {
      if (item['type'] !== 'terminal') return [item]
      const terminalId = this.idOf(item['terminalId'])
      return terminalId === undefined ? [] : [{ ...item, terminalId }]
    })
    return { ...call, content }
  }
}

/**
 * ACP to ACP: what the agent asks of its client is asked of the editor that is ours. A path in the folder is the same path in the
 * project of the editor. Undefined: the request is for us.
 */
export function passOn(
  { method, params }: { readonly method: string; readonly params: unknown },
  inbox: Inbox | undefined,
  folder: Folder,
): Promise<unknown> | undefined {
  if (!inbox) return undefined
  if (FILES.has(method)) return passFile(fieldsOf(params), { inbox, name: FILES.get(method) ?? '', folder })
  const { methods } = inbox.editor
  if (!methods?.has(method)) return undefined
  if (method === 'terminal/create') return create(parseParams(Command, params), { editor: inbox.editor, methods, folder })
  const terminalId = inbox.editor.idOf(parseParams(OfTerminal, params).terminalId)
  return terminalId === undefined ? undefined : methods.call(method, { terminalId })
}

function passFile({ path, sessionId: _, ...rest }: Slot, to: { inbox: Inbox; name: string; folder: Folder }): Promise<Slot> | undefined {
  const { inbox, name, folder } = to
  const inside = typeof path === 'string' && inbox.editor.tools.has(name) ? folder.inside(path) : undefined
  if (!inside) return undefined
  const call = { id: `call_${crypto.randomUUID()}`, name, arguments: JSON.stringify({ path: inside, ...rest }) }
  return inbox.call(call).then(({ result, is_error }) => {
    if (is_error) throw failure(result)
    return name === 'read_text_file' ? { content: result } : {}
  })
}

async function create(
  { cwd, command, args, env, outputByteLimit }: Command,
  { editor, methods, folder }: { readonly editor: Editor; readonly methods: ClientMethods; readonly folder: Folder },
): Promise<Slot> {
  const inside = cwd == null ? '' : folder.inside(cwd)
  if (inside === undefined) throw refused(`${cwd} is outside of the folder that this agent may use`)
  const program = { command, args, env, outputByteLimit, ...(inside !== '' && { cwd: inside }) }
  const { terminalId } = fieldsOf(await methods.call('terminal/create', program))
  return { terminalId: editor.idFor(String(terminalId)) }
}

/** The failure of a tool of the editor, in its own words. */
function failure(result: string): RpcError {
  const { message } = fieldsOf(fieldsOf(jsonIn(result))['error'])
  return new RpcError(RPC.internal, typeof message === 'string' ? message : result)
}
