import { checkToolPrice } from '../core/basics/price.ts'
import { nearest } from '../core/basics/nearest.ts'
import type { Tool } from '../core/ports/skill.ts'
import { UampError } from '../protocol/errors.ts'
import { isRecord } from '../protocol/json.ts'

const TOOL: Record<keyof Tool, true> = {
  name: true,
  description: true,
  parameters: true,
  timeoutMs: true,
  needsApproval: true,
  direct: true,
  price: true,
  run: true,
}

/** Throws if a tool cannot run, or misspells a field: a tool with `needApproval` would run without approval. */
export function checkTools(tools: readonly Tool[]): void {
  for (const tool of tools) {
    if (!isRecord(tool)) throw new UampError('invalid_request', 'A tool is not an object: check the names in the list of tools')
    checkFields(tool, TOOL, `The tool "${tool.name}"`)
    if (typeof tool.run !== 'function') throw new UampError('invalid_request', `The tool "${tool.name}" has no function "run"`)
    if (tool.price) checkToolPrice(tool.name, tool.price)
  }
}

/** Throws if a field looks like a misspelt one. Fields that look like none are the user's own. */
export function checkFields(given: object, known: Readonly<Record<string, true>>, owner: string): void {
  const names = Object.keys(known)
  for (const field of Object.keys(given)) {
    if (names.includes(field)) continue
    const near = nearest(
      field,
      names.filter((name) => !(name in given)),
    )
    if (near !== undefined) throw new UampError('invalid_request', `${owner} has no field "${field}": did you mean "${near}"?`)
  }
}
