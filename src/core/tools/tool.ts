import type { ToolDefinition } from '../../protocol/tools.ts'
import type { Tool, ToolContext } from '../ports/skill.ts'
import { jsonSchemaOf, type OutputOf, type StandardSchema } from './standard-schema.ts'

type Typed<S extends StandardSchema> = Omit<Tool, 'parameters' | 'run' | 'needsApproval'> & {
  readonly parameters: S
  readonly needsApproval?: boolean | ((args: OutputOf<S>, context: Pick<ToolContext, 'turn' | 'callId'>) => boolean | Promise<boolean>)
  run(args: OutputOf<S>, context: ToolContext): unknown
}

/** Defines a tool whose `run` gets its argument types from the schema. */
export function defineTool<S extends StandardSchema>(tool: Typed<S>): Tool {
  return tool as Tool
}

/** The tool in the form that models get (UAMP events §8.6). */
export function toolDefinition({ name, description, parameters }: Tool): ToolDefinition {
  const schema = parameters ? jsonSchemaOf(parameters) : { type: 'object', properties: {} }
  return { type: 'function', function: { name, ...(description !== undefined && { description }), parameters: { ...schema } } }
}
