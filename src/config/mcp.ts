import { dirname, resolve } from 'node:path'
import type { McpServer, McpSkill } from '../skills/mcp/index.ts'
import type { PlanContext } from './planned.ts'
import type { McpEntry } from './schema.ts'
import { configError, type Path } from './source.ts'

export interface ToolServers {
  readonly skills: readonly McpSkill[]
  close(): Promise<void>
}

/** Starts the servers, all or none. */
export async function toolServers(entries: readonly McpEntry[], context: PlanContext, path: Path): Promise<ToolServers> {
  const started = await Promise.allSettled(entries.map((entry, index) => start(entry, context, [...path, index])))
  const skills = started.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []))
  const close = async (): Promise<void> => void (await Promise.allSettled(skills.map((skill) => skill.close())))
  const failed = started.find((result) => result.status === 'rejected')
  if (!failed) return { skills, close }
  await close()
  throw failed.reason
}

async function start(entry: McpEntry, context: PlanContext, path: Path): Promise<McpSkill> {
  const { source, log } = context
  const { name = `mcp-${path.at(-1)}`, prefix, only, needsApproval } = entry
  const server = serverOf(entry, context, path)
  const { mcpSkill } = await import('../skills/mcp/index.ts')
  try {
    return await mcpSkill({
      name,
      server,
      log,
      ...(prefix !== undefined && { prefix }),
      ...(only && { only }),
      ...(needsApproval !== undefined && { needsApproval }),
    })
  } catch (cause) {
    throw configError(source, [{ path, message: `does not work: ${telling((cause as Error).message)}` }], cause)
  }
}

/** Of what a program said while it went down, the line that says why. */
function telling(message: string): string {
  const lines = message.split('\n').filter((line) => line.trim() !== '')
  return lines.find((line) => /^\w*Error\b/.test(line)) ?? lines[0] ?? ''
}

function serverOf({ command, args = [], env, cwd = '.', url = '', headers }: McpEntry, context: PlanContext, path: Path): McpServer {
  const { variables, source } = context
  if (command === undefined) {
    return { url: variables.in(url, [...path, 'url']), ...(headers && { headers: variables.inAll(headers, [...path, 'headers']) }) }
  }
  return {
    command,
    args: args.map((arg, index) => variables.in(arg, [...path, 'args', index])),
    cwd: resolve(dirname(source.file), cwd),
    ...(env && { env: variables.inAll(env, [...path, 'env']) }),
  }
}
