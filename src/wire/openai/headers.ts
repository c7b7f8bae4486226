/** What is left of somebody's requests. */
interface Quota {
  readonly limit: number
  readonly remaining: number
  readonly resetMs: number
}

/** Beside every answer: the id by which it is found in logs, and how many more requests there may be. */
export function openAiHeaders({ limit, remaining, resetMs }: Quota, requestId: string): Record<string, string> {
  return {
    'x-request-id': `req_${requestId}`,
    'x-ratelimit-limit-requests': String(limit),
    'x-ratelimit-remaining-requests': String(remaining),
    'x-ratelimit-reset-requests': `${resetMs}ms`,
  }
}
