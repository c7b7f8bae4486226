/**
 * The id of an item contains that of its response, so that a reference to it is found without a table: `msg_<response>_0` is the first
 * item of its response. The UUID of the response takes 22 characters, as every delta carries it. Input items have an `i` before their
 * number.
 */
export type ItemPrefix = 'msg' | 'rs' | 'fc' | 'mcp' | 'mcpr' | 'ig' | 'fco' | 'mcpa'

const ITEM = /^[a-z]+_([A-Za-z0-9_-]{22})_(.+)$/
const RESPONSE = 'resp_'

export function itemId(prefix: ItemPrefix, responseId: string, place: string | number): string {
  return `${prefix}_${short(responseId.slice(RESPONSE.length))}_${place}`
}

/** The response of an item, and its place in it. */
export function placeOf(id: string): { readonly responseId: string; readonly place: string } | undefined {
  const [, shortened, place] = ITEM.exec(id) ?? []
  return shortened === undefined || place === undefined ? undefined : { responseId: RESPONSE + long(shortened), place }
}

/** Base64url of the UUID's bytes. */
function short(uuid: string): string {
  const bytes = uuid.replaceAll('-', '').match(/../g) ?? []
  const binary = String.fromCharCode(...bytes.map((byte) => Number.parseInt(byte, 16)))
  return btoa(binary).slice(0, 22).replaceAll('+', '-').replaceAll('/', '_')
}

function long(shortened: string): string {
  const binary = atob(shortened.replaceAll('-', '+').replaceAll('_', '/'))
  const hex = Array.from(binary, (char) => char.charCodeAt(0).toString(16).padStart(2, '0')).join('')
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-')
}
