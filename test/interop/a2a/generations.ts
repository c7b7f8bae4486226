import { jsonRpc02 } from './generation-02.ts'
import { jsonRpc03, rest03 } from './generation-03.ts'
import { jsonRpc1, rest1 } from './generation-1.ts'

/** The official client of each generation, over every binding that it has. */
export const generations = [jsonRpc1, rest1, jsonRpc03, rest03, jsonRpc02]
