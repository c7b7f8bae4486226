/** Resolves after `ms`. Rejects with the signal's reason if that is aborted first. */
export function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason as Error)
    const aborted = (): void => {
      clearTimeout(timer)
      reject(signal.reason as Error)
    }
    const timer = setTimeout(() => {
      signal.removeEventListener('abort', aborted)
      resolve()
    }, ms)
    signal.addEventListener('abort', aborted, { once: true })
  })
}

/** Waits for a promise. Rejects if the signal is aborted first, and then ignores what becomes of the promise. */
export async function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  let aborted: () => void = () => undefined
  const stopped = new Promise<never>((_, reject) => {
    aborted = () => reject(signal.reason as Error)
    if (signal.aborted) aborted()
    else signal.addEventListener('abort', aborted, { once: true })
  })
  try {
    return await Promise.race([promise, stopped])
  } catch (thrown) {
    promise.catch(() => undefined)
    throw thrown
  } finally {
    signal.removeEventListener('abort', aborted)
  }
}
