import type { Usage } from '../../protocol/usage.ts'

/** Messages API, usage. The counts of `message_delta` are totals so far; null means unchanged. */
export interface WireUsage {
  readonly input_tokens?: number | null
  readonly output_tokens?: number | null
  readonly cache_read_input_tokens?: number | null
  readonly cache_creation_input_tokens?: number | null
  readonly output_tokens_details?: { readonly thinking_tokens?: number | null } | null
}

export function laterUsage(before: WireUsage, later: WireUsage | null | undefined): WireUsage {
  const told = Object.entries(later ?? {}).filter(([, value]) => value !== null && value !== undefined)
  return { ...before, ...Object.fromEntries(told) }
}

/** UAMP events §8.7: here `input_tokens` excludes the cache, and `cached_tokens` counts what was read from it and written to it. */
export function toUsage(wire: WireUsage): Usage {
  const { input_tokens: input, output_tokens: output, cache_read_input_tokens: read, cache_creation_input_tokens: write } = wire
  const reasoning = wire.output_tokens_details?.thinking_tokens
  const cache = read != null || write != null
  return {
    input_tokens: input ?? 0,
    output_tokens: output ?? 0,
    ...(cache && { cached_tokens: (read ?? 0) + (write ?? 0), cache_read: read ?? 0, cache_write: write ?? 0 }),
    input_uncached: input ?? 0,
    output: output ?? 0,
    ...(reasoning != null && { reasoning }),
  }
}
