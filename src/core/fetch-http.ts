import type { HttpClient } from './ports/http.ts'

/** Outbound HTTP where there is nothing but `fetch`. */
export function fetchHttp(): HttpClient {
  return {
    async request({ url, method, headers, body, signal }) {
      // A copy: the types of `fetch` want bytes that are not shared with another thread.
      const sent = typeof body === 'object' ? new Uint8Array(body) : body
      const response = await fetch(url, { method, headers, signal, ...(sent !== undefined && { body: sent }) })
      return { status: response.status, headers: response.headers, body: chunks(response.body) }
    },
  }
}

async function* chunks(body: ReadableStream<Uint8Array> | null): AsyncGenerator<Uint8Array, void> {
  const reader = body?.getReader()
  if (!reader) return
  try {
    for (let step = await reader.read(); !step.done; step = await reader.read()) yield step.value
  } finally {
    await reader.cancel().catch(() => undefined)
  }
}
