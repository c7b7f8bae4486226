/** Compares in constant time: how long it takes does not show how much of the secret was right. */
export function isEqual(secret: string, given: string): boolean {
  let difference = secret.length ^ given.length
  for (let i = 0; i < secret.length; i++) difference |= secret.charCodeAt(i) ^ given.charCodeAt(i)
  return difference === 0
}
