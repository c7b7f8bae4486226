import * as z from 'zod/mini'
import { explain } from '../protocol/explain.ts'
import { isRecord } from '../protocol/json.ts'
import { nearest } from '../core/basics/nearest.ts'
import type { Problems } from './problems.ts'
import type { Path } from './source.ts'

export interface Into {
  readonly path: Path
  readonly problems: Problems
}

/** The value if it has the form of the schema; else undefined, and its mistakes are among the problems. */
export function parsed<T extends z.ZodMiniType>(schema: T, value: unknown, { path, problems }: Into): z.output<T> | undefined {
  const result = z.safeParse(schema, value, { error: explain, reportInput: true })
  if (result.success) return result.data
  const meant = new Set<string>()
  for (const issue of result.error.issues) {
    if (issue.code !== 'unrecognized_keys') continue
    const known = knownKeys(schema, issue.path)
    for (const key of issue.keys) {
      const near = nearest(key, known)
      if (near !== undefined) meant.add(placeOf([...issue.path, near]))
      problems.add(
        [...path, ...(issue.path as Path), key],
        `is unknown here: ${near === undefined ? `there are ${known.join(', ')}` : `did you mean "${near}"?`}`,
      )
    }
  }
  for (const issue of result.error.issues) {
    if (issue.code === 'unrecognized_keys') continue
    // A field is not missing if it is there under a misspelt name.
    if (issue.input === undefined && meant.has(placeOf(issue.path))) continue
    problems.add([...path, ...(issue.path as Path)], issue.message)
  }
  return undefined
}

function placeOf(path: readonly PropertyKey[]): string {
  return JSON.stringify(path)
}

/** The parts of an object that have the form of their schema. */
export function validParts(shape: Readonly<Record<string, z.ZodMiniType>>, value: unknown): Record<string, unknown> {
  const given = isRecord(value) ? value : {}
  return Object.fromEntries(
    Object.entries(shape).flatMap(([name, schema]) => {
      const result = z.safeParse(schema, given[name])
      return result.success && result.data !== undefined ? [[name, result.data]] : []
    }),
  )
}

/** The keys that the object at a path may have. */
function knownKeys(schema: z.ZodMiniType, path: readonly PropertyKey[]): string[] {
  let at = schema as unknown as Inner
  for (const key of path) {
    while (at.def.innerType) at = at.def.innerType
    const next = at.def.shape?.[String(key)] ?? at.def.valueType ?? at.def.element
    if (!next) return []
    at = next
  }
  while (at.def.innerType) at = at.def.innerType
  return Object.keys(at.def.shape ?? {})
}

interface Inner {
  readonly def: {
    readonly innerType?: Inner
    readonly shape?: Readonly<Record<string, Inner>>
    readonly valueType?: Inner
    readonly element?: Inner
  }
}
