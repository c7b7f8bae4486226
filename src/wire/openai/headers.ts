/** How many requests a principal has left. */
interface Quota {
  readonly limit: number
  readonly remaining: number
  readonly resetMs: number
}

/** Headers of every answer: the id by which it is found in logs, and how many requests are left. */
export function openAiHeaders({ limit, remaining, resetMs }: Quota, requestId: string): Record<string, string> {
  return {
    'x-request-id': `req_${requestId}`,
    'x-ratelimit-limit-requests': String(limit),
    'x-ratelimit-remaining-requests': String(remaining),
    'x-ratelimit-reset-requests': `${resetMs}ms`,
  }
}
