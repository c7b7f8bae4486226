import * as z from 'zod/mini'
import { Tools } from '../../../protocol/tools.ts'
import { TOOLS_EXTENSION } from '../../../wire/a2a/extensions.ts'
import type { Struct } from '../model.ts'
import { extensionsIn, parseParams } from '../request.ts'

/** Named as the client sends it, because errors say where it is wrong. */
const Declaration = z.object({ message: z.object({ metadata: z.object({ [TOOLS_EXTENSION]: z.object({ tools: Tools }) }) }) })

/** The tools of a client, and the metadata beside them. */
export interface Declared {
  readonly tools: z.output<typeof Tools>
  readonly metadata: Struct | undefined
}

/** The tools that a client declares, which counts where it activates the extension. They hold for the response to this message. */
export function toolsIn(metadata: Struct, headers: Headers): Declared | undefined {
  const { [TOOLS_EXTENSION]: declared, ...rest } = metadata
  if (declared === undefined || !extensionsIn(headers).has(TOOLS_EXTENSION)) return undefined
  const { message } = parseParams(Declaration, { message: { metadata } })
  return { tools: message.metadata[TOOLS_EXTENSION].tools, metadata: Object.keys(rest).length > 0 ? rest : undefined }
}
