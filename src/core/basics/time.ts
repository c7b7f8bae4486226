/** Rejects with the signal's reason when that is aborted meanwhile. */
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

/** The promise, unless the signal is aborted before. What it then comes to is nobody's concern. */
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
