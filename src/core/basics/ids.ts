/**
 * An id that nobody can guess and that sorts by time (RFC 9562, UUID version 7): what is stored under such ids at one time lies side by
 * side, and is written together.
 */
export function timeOrderedId(now: number): string {
  const time = now.toString(16).padStart(12, '0')
  return `${time.slice(0, 8)}-${time.slice(8)}-7${crypto.randomUUID().slice(15)}`
}
