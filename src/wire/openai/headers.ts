/** How many requests a principal has left. */
interface Quota {
  readonly limit: number
  readonly remaining: number
  readonly resetMs: number
}

/** Headers of every answer: how many requests are left. */
export function openAiHeaders({ limit, remaining, resetMs }: Quota): Record<string, string> {
  return {
    'x-ratelimit-limit-requests': String(limit),
    'x-ratelimit-remaining-requests': String(remaining),
    'x-ratelimit-reset-requests': `${resetMs}ms`,
  }
}
