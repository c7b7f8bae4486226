import * as z from 'zod/mini'
import { parseParams } from '../../wire/rpc-params.ts'
import { Read, Write, type Folder } from './folder.ts'
import type { RemoteAcpOptions } from './index.ts'
import { Command, type Terminals } from './terminals.ts'

const OfTerminal = z.object({ sessionId: z.string(), terminalId: z.string() })

type Service = (params: unknown) => unknown

/** A method that an agent may call, with parameters of this form. */
function service<T extends z.ZodMiniType>(schema: T, run: (params: z.output<T>) => unknown): Service {
  return (params) => run(parseParams(schema, params))
}

/** ACP, File System and Terminals: what an agent may have done here. What the operator does not allow is not there. */
export function servicesOf(options: RemoteAcpOptions, folder: Folder, terminals: Terminals): Map<string, Service> {
  const { write = true, terminal = true } = options
  const services = { 'fs/read_text_file': service(Read, async (asked) => ({ content: await folder.read(asked) })) }
  const writing = { 'fs/write_text_file': service(Write, (asked) => folder.write(asked)) }
  const running = {
    'terminal/create': service(Command, async (command) => ({ terminalId: await terminals.create(command) })),
    'terminal/output': service(OfTerminal, ({ terminalId }) => terminals.find(terminalId).shown),
    'terminal/wait_for_exit': service(OfTerminal, ({ terminalId }) => terminals.find(terminalId).exit),
    'terminal/kill': service(OfTerminal, ({ terminalId }) => terminals.find(terminalId).kill()),
    'terminal/release': service(OfTerminal, ({ terminalId }) => terminals.release(terminalId)),
  }
  return new Map(Object.entries({ ...services, ...(write && writing), ...(terminal && running) }))
}
