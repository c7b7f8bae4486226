import * as z from 'zod/mini'
import { FIRST_EXPLAINED } from '../protocol/explain.ts'
import { RPC, RpcError } from './json-rpc.ts'

/** The parameters of a request. Throws -32602 with the field that is wrong, and what it should be. */
export function parseParams<T extends z.ZodMiniType>(schema: T, value: unknown): z.output<T> {
  const result = z.safeParse(schema, value ?? {}, FIRST_EXPLAINED)
  if (result.success) return result.data
  const [issue] = result.error.issues
  const field = issue?.path.join('.') ?? ''
  throw new RpcError(RPC.invalidParams, `${field === '' ? 'params' : `"${field}"`} ${issue?.message ?? 'is wrong'}`, { field })
}
